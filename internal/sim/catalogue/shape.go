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
	for _, a := range m.AttentionKinds() {
		one := a.WeightCount(m.Hidden)
		if m.QKVBias && a.Kind != Linear && a.Kind != Latent {
			one += int64(a.Heads+2*a.KVHeads) * int64(a.HeadDim)
		}
		n += int64(a.Layers) * one
	}
	return n
}

// ExpertWeights is the number of weights of one expert: gate, up and down.
func (m *Model) ExpertWeights() int64 { return 3 * int64(m.Hidden) * int64(m.MoEIntermediate) }

// SharedWeights is the number of weights that every token of an MoE layer goes
// through besides its experts: router and shared expert.
func (m *Model) SharedWeights() int64 {
	return int64(m.Hidden)*int64(m.Experts) + 3*int64(m.Hidden)*int64(m.SharedExpertIntermediate)
}

// FeedForward is the number of weights of one dense feed-forward layer.
func (m *Model) FeedForward() int64 { return 3 * int64(m.Hidden) * int64(m.Intermediate) }

// FeedForwardWeights is the number of weights of all feed-forward layers that every token goes
// through.
func (m *Model) FeedForwardWeights() int64 {
	moe := int64(m.moeLayers())
	return (int64(m.Layers)-moe)*m.FeedForward() + moe*m.SharedWeights()
}

// DenseWeights is the number of weights in all layers that every token goes through.
func (m *Model) DenseWeights() int64 { return m.AttentionWeights() + m.FeedForwardWeights() }

// RoutedWeights is the number of weights of all experts in all layers.
func (m *Model) RoutedWeights() int64 {
	return int64(m.moeLayers()) * int64(m.Experts) * m.ExpertWeights()
}

// EmbeddingWeights is the number of weights of the embedding, and of the head.
func (m *Model) EmbeddingWeights() int64 { return int64(m.Vocab) * int64(m.Hidden) }

// Count is the number of weights of the whole model, without the norms'
// small change.
func (m *Model) Count() int64 {
	n := m.DenseWeights() + m.RoutedWeights() + m.EmbeddingWeights()
	if !m.Tied {
		n += m.EmbeddingWeights()
	}
	return n
}

// ActiveWeights is the number of weights that one token goes through, the head
// included.
func (m *Model) ActiveWeights() int64 {
	return m.DenseWeights() + int64(m.moeLayers())*int64(m.ExpertsPerToken)*m.ExpertWeights() + m.EmbeddingWeights()
}

// KVPerToken is the number of values that the KV cache holds for one more
// token: of all layers whose cache grows, or of all that slide where none grows.
func (m *Model) KVPerToken() (n int64) {
	for _, a := range m.GrowingLayers() {
		n += int64(a.Layers) * a.ValuesPerToken()
	}
	return n
}

// GrowingLayers are the layers that a KV block has the tokens of: those whose cache
// grows, or all that slide where none does.
func (m *Model) GrowingLayers() (list []Attention) {
	kinds := m.AttentionKinds()
	for _, a := range kinds {
		if a.GrowsPerToken() {
			list = append(list, a)
		}
	}
	if list == nil {
		for _, a := range kinds {
			if a.ValuesPerToken() > 0 {
				list = append(list, a)
			}
		}
	}
	return list
}
