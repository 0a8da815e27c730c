package catalogue

import (
	"errors"
	"fmt"
)

// Kind is the kind of attention that a layer has to earlier tokens.
type Kind string

// Kinds of layers.
const (
	Full    Kind = "full"    // on everything, by the keys and values of each token
	Sliding Kind = "sliding" // on the last Window tokens
	Chunked Kind = "chunked" // on those since the last multiple of Window tokens
	Latent  Kind = "latent"  // on everything, by one short vector of each token that all heads share (MLA)
	Linear  Kind = "linear"  // by a state that does not grow (gated delta rule)
)

// Attention describes the attention of a number of a model's layers. Their order makes no
// difference: a step goes through all layers.
type Attention struct {
	Kind   Kind `yaml:"kind"`
	Layers int  `yaml:"layers"`
	Window int  `yaml:"window"` // tokens, of Sliding and Chunked
	Gated  bool `yaml:"gated"`  // what comes of the heads is multiplied by a gate of the layer's input

	// Of Full, Sliding and Chunked; 0 is the model's own. Of Latent, Heads alone.
	Heads   int `yaml:"heads"`
	KVHeads int `yaml:"kv_heads"`
	HeadDim int `yaml:"head_dim"`

	// Of Latent: ranks of what queries, and keys with values, are projected down to (a
	// QRank of 0 is no such projection), and what a head's queries and keys have with
	// and without positions.
	QRank   int `yaml:"q_rank"`
	KVRank  int `yaml:"kv_rank"`
	RopeDim int `yaml:"rope_dim"`
	NopeDim int `yaml:"nope_dim"`

	// Of Linear: its heads of keys and queries, those of values, and the width of the
	// convolution before them.
	KeyHeads   int `yaml:"key_heads"`
	ValueHeads int `yaml:"value_heads"`
	KeyDim     int `yaml:"key_dim"`
	Conv       int `yaml:"conv"`

	ValueDim int `yaml:"value_dim"` // of a head, of Latent and Linear
}

// GrowsPerToken says whether what such layers keep of a sequence grows with each token.
func (a *Attention) GrowsPerToken() bool { return a.Kind == Full || a.Kind == Latent }

// ValuesPerToken returns the number of values that a layer keeps of one token.
func (a *Attention) ValuesPerToken() int64 {
	switch a.Kind {
	case Latent:
		return int64(a.KVRank + a.RopeDim)
	case Linear:
		return 0
	}
	return 2 * int64(a.KVHeads) * int64(a.HeadDim)
}

// MaxShards returns the number of parts into which accelerators can divide the values that a layer
// keeps. With more accelerators than parts, several hold the same part.
func (a *Attention) MaxShards() int {
	switch a.Kind {
	case Latent:
		return 1
	case Linear:
		return a.KeyHeads
	}
	return a.KVHeads
}

// StateSize returns the number of values that a layer keeps of a sequence besides, whatever its
// length. For Linear these are a matrix of each head, in 32 bits, and the tokens the convolution
// looks back on.
func (a *Attention) StateSize() (matrix, conv int64) {
	if a.Kind != Linear {
		return 0, 0
	}
	return int64(a.ValueHeads) * int64(a.KeyDim) * int64(a.ValueDim), int64(a.Conv-1) * a.Channels()
}

// Channels is the width of queries, keys and values of Linear together.
func (a *Attention) Channels() int64 {
	return 2*int64(a.KeyHeads)*int64(a.KeyDim) + int64(a.ValueHeads)*int64(a.ValueDim)
}

// MatMul is a matrix product of a layer: its weights' rows and columns.
// Whole ones each accelerator of a group has in full, the others are divided
// among them. Wide ones stay in 16 bits whatever the others are kept in.
type MatMul struct {
	Rows, Columns int64
	Whole, Wide   bool
}

// MatMuls are a layer's matrix products. Keys and values of several
// accelerators that share a head are counted once here.
func (a *Attention) MatMuls(hidden int) []MatMul {
	d := int64(hidden)
	switch a.Kind {
	case Latent:
		heads := int64(a.Heads)
		query, value := heads*int64(a.NopeDim+a.RopeDim), heads*int64(a.ValueDim)
		down := MatMul{Rows: int64(a.QRank + a.KVRank + a.RopeDim), Columns: d, Whole: true}
		list := []MatMul{down, {Rows: query, Columns: int64(a.QRank)}}
		if a.QRank == 0 {
			list[1].Columns = d
		}
		// Multiplied into queries and out of what the heads give, head by head: not quantised.
		return append(list, MatMul{Rows: heads * int64(a.NopeDim), Columns: int64(a.KVRank), Wide: true}, MatMul{Rows: value, Columns: int64(a.KVRank), Wide: true},
			MatMul{Rows: d, Columns: value})
	case Linear:
		value := int64(a.ValueHeads) * int64(a.ValueDim)
		return []MatMul{{Rows: a.Channels() + value, Columns: d}, {Rows: 2 * int64(a.ValueHeads), Columns: d, Wide: true}, {Rows: d, Columns: value}}
	}
	q, kv := int64(a.Heads)*int64(a.HeadDim), int64(a.KVHeads)*int64(a.HeadDim)
	into := q + 2*kv
	if a.Gated {
		into += q
	}
	return []MatMul{{Rows: into, Columns: d}, {Rows: d, Columns: q}}
}

// WeightCount is the number of a layer's weights.
func (a *Attention) WeightCount(hidden int) (n int64) {
	for _, p := range a.MatMuls(hidden) {
		n += p.Rows * p.Columns
	}
	if a.Kind == Linear {
		n += int64(a.Conv) * a.Channels()
	}
	return n
}

// AttentionKinds gives the model's layers by how they look back, with their heads: all
// look back on everything where Attention names none.
func (m *Model) AttentionKinds() []Attention {
	if len(m.Attention) == 0 {
		return []Attention{{Kind: Full, Layers: m.Layers, Heads: m.Heads, KVHeads: m.KVHeads, HeadDim: m.HeadDim}}
	}
	list := make([]Attention, len(m.Attention))
	for i, a := range m.Attention {
		if a.Kind != Linear && a.Heads == 0 {
			a.Heads = m.Heads
		}
		if a.Kind != Linear && a.Kind != Latent {
			if a.KVHeads == 0 {
				a.KVHeads = m.KVHeads
			}
			if a.HeadDim == 0 {
				a.HeadDim = m.HeadDim
			}
		}
		list[i] = a
	}
	return list
}

// checkAttention says what is missing or impossible in the kinds of layers.
func (m *Model) checkAttention() error {
	type count struct {
		name string
		v    int
	}
	layers, keeps := 0, false
	for _, a := range m.AttentionKinds() {
		counts := []count{{"the number", a.Layers}}
		switch a.Kind {
		case Full, Sliding, Chunked:
			counts = append(counts, count{"num_attention_heads", a.Heads}, count{"num_key_value_heads", a.KVHeads}, count{"head_dim", a.HeadDim})
			if a.Kind != Full {
				counts = append(counts, count{"window", a.Window})
			}
		case Latent:
			if a.QRank < 0 || a.QRank > mostUnits || a.RopeDim < 0 || a.RopeDim > mostUnits {
				return fmt.Errorf("q_lora_rank is %d and qk_rope_head_dim %d", a.QRank, a.RopeDim)
			}
			counts = append(counts, count{"num_attention_heads", a.Heads}, count{"kv_lora_rank", a.KVRank}, count{"qk_nope_head_dim", a.NopeDim}, count{"v_head_dim", a.ValueDim})
		case Linear:
			counts = append(counts, count{"linear_num_key_heads", a.KeyHeads}, count{"linear_num_value_heads", a.ValueHeads},
				count{"linear_key_head_dim", a.KeyDim}, count{"linear_value_head_dim", a.ValueDim}, count{"linear_conv_kernel_dim", a.Conv})
		default:
			return fmt.Errorf("layers of the kind %q are not known", a.Kind)
		}
		for _, c := range counts {
			if c.v <= 0 || c.v > mostUnits {
				return fmt.Errorf("%s of the layers of %s attention is %d", c.name, a.Kind, c.v)
			}
		}
		keeps = keeps || a.Kind != Linear
		layers += a.Layers
	}
	switch {
	case layers != m.Layers:
		return fmt.Errorf("%d layers are of some kind, of %d", layers, m.Layers)
	case !keeps:
		return errors.New("none of its layers has attention that looks back on tokens")
	}
	return nil
}
