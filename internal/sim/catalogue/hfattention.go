package catalogue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// kindOf gives the kinds of layer_types.
var kindOf = map[string]Kind{"full_attention": Full, "sliding_attention": Sliding, "chunked_attention": Chunked, "linear_attention": Linear}

// isLlama4 says whether the config is that of a Llama 4.
func (c *hfConfig) isLlama4() bool { return strings.HasPrefix(c.ModelType, "llama4") }

// isGemma3 says whether the config is that of a Gemma 3.
func (c *hfConfig) isGemma3() bool { return strings.HasPrefix(c.ModelType, "gemma3") }

// fillDefaults fills in what configs of Gemma 3 leave out where it is as in
// transformers' Gemma3TextConfig.
func (c *hfConfig) fillDefaults() {
	if !c.isGemma3() {
		return
	}
	fill := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	fill(&c.Heads, 8)
	fill(&c.Vocab, 262208)
	fill(&c.MaxPosition, 131072)
	fill(&c.SlidingPattern, 6)
	kv, dim, window, tied := 4, 256, 4096, true
	if c.KVHeads == nil {
		c.KVHeads = &kv
	}
	if c.HeadDim == nil {
		c.HeadDim = &dim
	}
	if c.SlidingWindow == nil {
		c.SlidingWindow = &window
	}
	if c.Tied == nil {
		c.Tied = &tied
	}
}

// mostLayers bounds how many layers are looked at one by one.
const mostLayers = 1 << 14

// attentionKinds gives the kinds of the config's layers, none where all look back on
// everything by keys and values. Of latent ones it sets the model's heads of keys
// and values, of which there is one.
func (c *hfConfig) attentionKinds(m *Model) ([]Attention, error) {
	if c.KVLoRARank > 0 {
		a := Attention{Kind: Latent, Layers: m.Layers, KVRank: c.KVLoRARank, RopeDim: c.RopeDim, NopeDim: c.NopeDim, ValueDim: c.VHeadDim}
		if c.QLoRARank != nil {
			a.QRank = *c.QLoRARank
		}
		m.KVHeads, m.HeadDim = 1, cmp.Or(c.NopeDim+c.RopeDim, m.HeadDim)
		return []Attention{a}, nil
	}
	if m.Layers > mostLayers {
		return nil, fmt.Errorf("num_hidden_layers is %d", m.Layers)
	}
	count := map[Kind]int{}
	for i := range max(m.Layers, 0) {
		count[c.layerKind(i)]++
	}
	var list []Attention
	for _, kind := range []Kind{Full, Sliding, Chunked, Linear} {
		n := count[kind]
		if n == 0 {
			continue
		}
		a := Attention{Kind: kind, Layers: n}
		switch kind {
		case Sliding:
			a.Window = *c.SlidingWindow
		case Chunked:
			a.Window = c.ChunkSize
		case Linear:
			a.KeyHeads, a.ValueHeads, a.KeyDim, a.ValueDim, a.Conv = c.LinearKeyHeads, c.LinearValueHeads, c.LinearKeyDim, c.LinearValueDim, c.LinearConv
		}
		if kind != Linear && slices.Contains(deltaNet, c.ModelType) {
			a.Gated = c.OutputGate == nil || *c.OutputGate
		}
		list = append(list, a)
	}
	if len(list) == 1 && list[0].Kind == Full && !list[0].Gated {
		return nil, nil
	}
	if count[Full] == 0 && count[Sliding]+count[Chunked] > 0 {
		m.Caveats = append(m.Caveats, fmt.Sprintf("all of its %d layers slide: the twin keeps the KV cache of all tokens, the engine of the window", m.Layers))
	}
	return list, nil
}

// layerKind is that of layer i.
func (c *hfConfig) layerKind(i int) Kind {
	slides := c.SlidingWindow != nil && *c.SlidingWindow > 0 && (c.UseSlidingWindow == nil || *c.UseSlidingWindow) && *c.SlidingWindow < cmp.Or(c.MaxPosition, defaultMaxPosition)
	fullEvery := func(n int, other Kind) Kind {
		if (i+1)%n == 0 {
			return Full
		}
		return other
	}
	if n := len(c.LayerTypes); n > 0 { // a list that is too short goes round
		kind := kindOf[c.LayerTypes[i%n]]
		if kind == Sliding && !slides {
			return Full
		}
		return kind
	}
	switch {
	case slices.Contains(deltaNet, c.ModelType):
		return fullEvery(max(cmp.Or(c.FullInterval, 4), 1), Linear)
	case c.isLlama4():
		if len(c.NoRope) > 0 {
			if c.NoRope[i%len(c.NoRope)] == 0 {
				return Full
			}
			return Chunked
		}
		return fullEvery(4, Chunked)
	case !slides:
		return Full
	case c.ModelType == "gemma2":
		return fullEvery(2, Sliding)
	case c.isGemma3():
		return fullEvery(max(c.SlidingPattern, 1), Sliding)
	case c.MaxWindowLayers != nil:
		if i < *c.MaxWindowLayers {
			return Full
		}
	}
	return Sliding
}
