package deploy

import "pitot/internal/sim"

// Bounds holds limits that no engine can beat on the deployment's hardware. They follow from the
// datasheet's numbers alone: efficiencies and overheads are left out. Bytes, operations and seconds
// are those of one accelerator of the group; all accelerators work at the same time.
type Bounds struct {
	WeightBytes  float64 `json:"weight_bytes"`        // read in each step, of a dense model or with all experts touched
	ActiveBytes  float64 `json:"active_weight_bytes"` // read in a step with one token
	Bandwidth    float64 `json:"bytes_per_s"`         // bytes/s
	Peak         float64 `json:"operations_per_s"`    // operations/s with the weights' data type
	KVPerToken   float64 `json:"kv_bytes_per_token"`  // bytes
	StepFloor    float64 `json:"step_s"`              // s, a step with one token: ActiveBytes ÷ Bandwidth
	FullFloor    float64 `json:"full_step_s"`         // s, a step that touches all weights
	Tokens       float64 `json:"tokens_per_step"`     // that a step gives a request in the mean: above 1 with drafts
	TokenFloor   float64 `json:"token_s"`             // s, StepFloor ÷ Tokens: no token comes faster in the mean
	PrefillToken float64 `json:"prompt_token_s"`      // s of computing for one token of a prompt, attention left out
	// ComputeBatch is the number of tokens in a step from which on computing
	// takes longer than reading the weights.
	ComputeBatch float64 `json:"compute_bound_tokens"`
}

// Bounds works them out.
func (d *Deployment) Bounds() Bounds {
	m, tp := &d.Model, float64(d.TensorParallel)
	dense, x := d.denseBytes(), bytesOf[d.expertType()]
	routed := float64(m.ActiveWeights() - m.EmbeddingWeights() - m.DenseWeights()) // that a token goes through
	head := float64(m.EmbeddingWeights()) * max(bytesOf[d.DType], 2)
	b := Bounds{
		WeightBytes: dense + float64(m.RoutedWeights())*x/d.expertSharers() + head/tp,
		ActiveBytes: dense + routed*x/d.expertSharers() + head/tp,
		Bandwidth:   d.Accelerator.BandwidthGBs * 1e9,
		Peak:        d.densePeak(),
		KVPerToken:  d.kvPerToken(),
	}
	b.StepFloor = b.ActiveBytes / b.Bandwidth
	b.FullFloor = b.WeightBytes / b.Bandwidth
	b.Tokens = d.TokensPerStep()
	b.TokenFloor = b.StepFloor / b.Tokens
	b.PrefillToken = 2 * float64(m.ActiveWeights()-m.EmbeddingWeights()) / tp / b.Peak
	if b.PrefillToken > 0 {
		b.ComputeBatch = b.FullFloor / b.PrefillToken
	}
	return b
}

// DecodeFloor is the shortest mean time from one token to the next for n
// sequences with so much context each, in seconds. In a step weights and KV
// cache are read once, or the operations done at the peak rate, whichever takes
// longer; with drafts a step computes them too and gives more tokens.
// Making drafts is left out.
func (d *Deployment) DecodeFloor(n int, context float64) float64 {
	b, h := d.Bounds(), d.hardware()
	drafts := d.Settings.DraftsFor(n)
	tokens := float64(n) * float64(1+drafts)
	all := tokens * max(h.engines, 1) // that the experts have
	weights := b.FullFloor
	if x := &h.expert; x.count > 0 {
		weights = b.StepFloor + (b.FullFloor-b.StepFloor)*max(x.expertsRead(all)-x.perToken, 0)/max(x.count-x.perToken, 1)
	}
	read := weights + float64(n)*context*b.KVPerToken/b.Bandwidth
	return max(read, tokens*b.PrefillToken) / d.tokensOf(drafts)
}

// CountSequences returns the number of sequences of a length that fit into the KV cache. It also
// returns the number that the engine runs at once: the smaller of fit and max_num_seqs.
func (d *Deployment) CountSequences(tokens int) (fit, run int) {
	s := &d.Settings
	fit = (s.NumGPUBlocks - 1) / max((tokens+s.BlockSize-1)/s.BlockSize+s.BlocksBeside(tokens), 1)
	return fit, min(fit, d.Settings.MaxNumSeqs)
}

// Limit says in a word what a share of a deployment's time goes to.
type Limit string

// What can limit.
const (
	Weights    Limit = "reading weights"
	Compute    Limit = "computing"
	KVRead     Limit = "reading the KV cache"
	Drafts     Limit = "drafting"
	Links      Limit = "collectives"
	Overhead   Limit = "overhead"
	KVCapacity Limit = "KV cache full"
	Seats      Limit = "max_num_seqs"
	Frontend   Limit = "API server"
)

// Bound says which part of a step's time is the largest.
func (d *Deployment) Bound(b *sim.Batch) Limit {
	h := d.hardware()
	p := h.parts(b)
	t := float64(b.Tokens)
	x := &h.expert
	all := t * max(h.engines, 1) // tokens that the experts have
	read, compute := x.n*x.expertsRead(all)*x.read, x.n*x.compute*all
	for _, k := range h.products {
		read += k.n * k.read
		compute += k.n * k.compute * t
	}
	products := p.Weights + p.Experts + p.Head + p.Activation
	best, most := Weights, products
	if compute > read {
		best = Compute
		most += p.Prefill
	}
	for _, c := range []struct {
		l Limit
		s float64
	}{{KVRead, p.Decode}, {Drafts, p.Draft}, {Links, p.Collective}, {Overhead, p.Overhead}} {
		if c.s > most {
			best, most = c.l, c.s
		}
	}
	return best
}
