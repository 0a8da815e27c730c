package deploy

import (
	"cmp"
	"math"
	"strings"
	"time"

	"pitot/internal/twin"
	"pitot/internal/twin/catalogue"
)

// Efficiency is what of its datasheet an accelerator gives, and what a step
// costs besides.
type Efficiency struct {
	Bandwidth       float64 // share of the memory's bandwidth that streaming weights and KV reaches
	Compute         float64 // share of the dense peak that large matrix products reach
	PromptAttention float64 // share of it that the attention of prompts reaches
	Link            float64 // share of the link's bandwidth that collectives reach
	Attention       float64 // share of that bandwidth that reading KV for answers reaches, 1 unless fitted

	Scale      float64       // factor on everything below and above, 1 unless fitted
	PerStep    time.Duration // launches, sampling, the host's part that nothing hides
	PerRequest time.Duration // of a step, for each row
	PerPrefill time.Duration // of a step, for each stretch of a prompt in it
	Collective time.Duration // latency of one collective
}

// Defaults for what was not measured on an accelerator. Bandwidth, Compute
// and PromptAttention are the middle of kernels measured on two GPUs. The overheads
// are those with which the twin agrees with recorded runs of vLLM on both of
// these at once (see testdata of package predict): about 2 ms a step and
// 20 µs a row, on top of what the kernels take. Collectives over PCIe reach
// far less of the link than over NVLink, for they go through the host.
const (
	defaultBandwidth       = 0.90
	defaultCompute         = 0.80
	defaultPromptAttention = 0.50
	defaultLink            = 0.70
	defaultLinkPCIe        = 0.25
	defaultPerStep         = 2200 * time.Microsecond
	defaultPerRequest      = 20 * time.Microsecond
	defaultCollective      = 20 * time.Microsecond
)

// efficiency gives what is known or to be expected of an accelerator.
func efficiency(a *catalogue.Accelerator) Efficiency {
	link := defaultLink
	if strings.HasPrefix(a.Link.Kind, "pcie") {
		link = defaultLinkPCIe
	}
	return Efficiency{
		Bandwidth:       cmp.Or(a.Reached.Bandwidth, defaultBandwidth),
		Compute:         cmp.Or(a.Reached.Compute, defaultCompute),
		PromptAttention: defaultPromptAttention,
		Link:            cmp.Or(a.Reached.Link, link),
		Attention:       1,
		Scale:           1,
		PerStep:         defaultPerStep, PerRequest: defaultPerRequest, Collective: defaultCollective,
	}
}

// Parts are a step's duration by what it is spent on, in seconds.
type Parts struct {
	Weights    float64 // matrix products of the layers, bound by reading weights or by computing
	Experts    float64 // those of the experts
	Head       float64 // computing logits
	Activation float64 // reading and writing activations
	Decode     float64 // attention of answers: reading the KV cache
	Prefill    float64 // attention of prompts
	Draft      float64 // all passes of the drafter
	Collective float64 // tensor parallelism
	Overhead   float64 // host and launches
}

// Total is their sum.
func (p Parts) Total() float64 {
	return p.Weights + p.Experts + p.Head + p.Activation + p.Decode + p.Prefill + p.Draft + p.Collective + p.Overhead
}

// hardware is a deployment in the units of the formulas: bytes, floating
// point operations and seconds, of one accelerator of the group.
type hardware struct {
	bandwidth float64 // bytes/s
	compute   float64 // operations/s of the matrix products
	attention float64 // operations/s of prefill's attention
	link      float64 // bytes/s
	e         Efficiency
	tp        float64

	layers, moeLayers   float64
	dense               float64 // weights of all layers that every token goes through
	expert              float64 // weights of one expert
	experts, perToken   float64
	headWeights, hidden float64
	ff                  float64 // width of the activations of a feed-forward layer
	qDim                float64 // heads × head_dim
	kvPerToken          float64 // bytes of the KV cache for one token, all layers
	weightBytes         float64 // of one weight
	headBytes           float64 // of one weight of the head, which is not quantised
	drafts              float64 // num_speculative_tokens
	drafter             float64 // its weights
	unquantised         float64 // operations/s of matrix products in 16 bits
}

// Step implements [twin.Cost].
func (h *hardware) Step(b *twin.Batch) time.Duration {
	return lasting(h.parts(b).Total())
}

// longestStep is what no step of a deployment that was checked reaches.
const longestStep = 24 * time.Hour

// lasting is a duration of so many seconds, and of [longestStep] at most: more
// would not fit into the clock's 63 bits.
func lasting(seconds float64) time.Duration {
	return time.Duration(min(seconds, longestStep.Seconds()) * 1e9)
}

// parts is the step-time model. T tokens go through every weight of the
// layers: the time is bound by reading the weights (few tokens) or by
// computing (many), and between the two it is the 2-norm of both, which is
// how measured kernels pass from one to the other. Attention is apart: of
// answers it reads their whole KV cache, of prompts it computes 4·heads·dim
// operations for each pair of tokens.
func (h *hardware) parts(b *twin.Batch) Parts {
	t := float64(b.Tokens)
	tp := h.tp
	var p Parts
	p.Weights = either(h.dense*h.weightBytes/tp/h.bandwidth, 2*h.dense*t/tp/h.compute)
	if h.experts > 0 {
		read := h.moeLayers * h.touched(t) * h.expert * h.weightBytes / tp / h.bandwidth
		p.Experts = either(read, 2*h.moeLayers*h.perToken*h.expert*t/tp/h.compute)
	}
	p.Head = max(h.headWeights*h.headBytes/tp/h.bandwidth, 2*h.headWeights*float64(b.Logits)/tp/h.compute)
	p.Activation = h.layers * t * (28*h.hidden + 6*h.ff/tp) / h.bandwidth
	p.Decode = float64(b.DecodeContext) * h.kvPerToken / tp / h.bandwidth / h.e.Attention
	for _, c := range b.Prefills {
		n, k := float64(c.New), float64(c.Context)
		compute := h.layers * 4 * h.qDim / tp * n * (k + n/2) / h.attention
		p.Prefill += max(compute, (k+n)*h.kvPerToken/tp/h.bandwidth)
	}
	if tp > 1 {
		// Two all-reduces in each layer. A ring moves 2·(p − 1)/p of the bytes.
		p.Collective = 2 * h.layers * (h.e.Collective.Seconds() + 2*(tp-1)/tp*t*h.hidden*2/h.link)
	}
	p.Draft = h.draft(t, float64(b.Requests), (p.Decode+p.Prefill+p.Collective)/h.layers)
	p.Overhead = h.e.PerStep.Seconds() + float64(b.Requests)*h.e.PerRequest.Seconds() + float64(len(b.Prefills))*h.e.PerPrefill.Seconds()
	return p.times(h.e.Scale)
}

// touched is how many of a layer's experts a step with so many tokens reads.
// Of E experts of which each token takes k, T tokens touch
// E·(1 − (1 − k/E)^T) if they choose independently.
func (h *hardware) touched(tokens float64) float64 {
	if h.experts == 0 {
		return 0
	}
	return h.experts * (1 - math.Pow(1-h.perToken/h.experts, tokens))
}

// either is the 2-norm of two bounds.
func either(a, b float64) float64 { return math.Sqrt(a*a + b*b) }

func (p Parts) times(f float64) Parts {
	return Parts{p.Weights * f, p.Experts * f, p.Head * f, p.Activation * f, p.Decode * f, p.Prefill * f, p.Draft * f, p.Collective * f, p.Overhead * f}
}
