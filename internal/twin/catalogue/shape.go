package catalogue

// moeLayers is the number of layers with experts.
func (m *Model) moeLayers() int {
	if m.Experts == 0 {
		return 0
	}
	return m.Layers - m.DenseLayers
}

// AttentionWeights is the number of weights of all layers' attention: the
// projections of queries, keys, values and output.
func (m *Model) AttentionWeights() (n int64) {
	for _, a := range m.Kinds() {
		one := a.Weights(m.Hidden)
		if m.QKVBias && a.Kind != Linear && a.Kind != Latent {
			one += int64(a.Heads+2*a.KVHeads) * int64(a.HeadDim)
		}
		n += int64(a.Layers) * one
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

// Fed is the number of weights of all feed-forward layers that every token goes
// through.
func (m *Model) Fed() int64 {
	moe := int64(m.moeLayers())
	return (int64(m.Layers)-moe)*m.FeedForward() + moe*m.Shared()
}

// Dense is the number of weights in all layers that every token goes through.
func (m *Model) Dense() int64 { return m.AttentionWeights() + m.Fed() }

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

// KVPerToken is the number of values that the KV cache holds for one more
// token: of all layers whose cache grows, or of all that slide where none grows.
func (m *Model) KVPerToken() (n int64) {
	for _, a := range m.Growing() {
		n += int64(a.Layers) * a.Kept()
	}
	return n
}

// Growing are the layers that a KV block has the tokens of: those whose cache
// grows, or all that slide where none does.
func (m *Model) Growing() (list []Attention) {
	kinds := m.Kinds()
	for _, a := range kinds {
		if a.Grows() {
			list = append(list, a)
		}
	}
	if list == nil {
		for _, a := range kinds {
			if a.Kept() > 0 {
				list = append(list, a)
			}
		}
	}
	return list
}
