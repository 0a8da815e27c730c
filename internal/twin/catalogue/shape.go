package catalogue

// moeLayers is the number of layers with experts.
func (m *Model) moeLayers() int {
	if m.Experts == 0 {
		return 0
	}
	return m.Layers - m.DenseLayers
}

// Attention is the number of weights of one layer's attention: the
// projections of queries, keys, values and output.
func (m *Model) Attention() int64 {
	d, q, kv := int64(m.Hidden), int64(m.Heads*m.HeadDim), int64(m.KVHeads*m.HeadDim)
	n := d*q + 2*d*kv + q*d
	if m.QKVBias {
		n += q + 2*kv
	}
	return n
}

// Expert is the number of weights of one expert: gate, up and down.
func (m *Model) Expert() int64 { return 3 * int64(m.Hidden) * int64(m.MoEIntermediate) }

// Shared is the number of weights that every token of an MoE layer goes
// through besides its experts: router and shared expert.
func (m *Model) Shared() int64 {
	return int64(m.Hidden)*int64(m.Experts) + 3*int64(m.Hidden)*int64(m.SharedExpertIntermediate)
}

// FeedForward is the number of weights of one dense feed-forward layer.
func (m *Model) FeedForward() int64 { return 3 * int64(m.Hidden) * int64(m.Intermediate) }

// Dense is the number of weights in all layers that every token goes through.
func (m *Model) Dense() int64 {
	moe := int64(m.moeLayers())
	return int64(m.Layers)*m.Attention() + (int64(m.Layers)-moe)*m.FeedForward() + moe*m.Shared()
}

// Routed is the number of weights of all experts in all layers.
func (m *Model) Routed() int64 {
	return int64(m.moeLayers()) * int64(m.Experts) * m.Expert()
}

// Embedding is the number of weights of the embedding, and of the head.
func (m *Model) Embedding() int64 { return int64(m.Vocab) * int64(m.Hidden) }

// Count is the number of weights of the whole model, without the norms'
// small change.
func (m *Model) Count() int64 {
	n := m.Dense() + m.Routed() + m.Embedding()
	if !m.Tied {
		n += m.Embedding()
	}
	return n
}

// Active is the number of weights that one token goes through, the head
// included.
func (m *Model) Active() int64 {
	return m.Dense() + int64(m.moeLayers())*int64(m.ExpertsPerToken)*m.Expert() + m.Embedding()
}

// KVPerToken is the number of values that the KV cache holds for one token:
// keys and values of all layers that look back on everything. What the others
// keep does not grow with the context, and is little.
func (m *Model) KVPerToken() int64 {
	return 2 * int64(m.Layers-m.SlidingLayers) * int64(m.KVHeads) * int64(m.HeadDim)
}
