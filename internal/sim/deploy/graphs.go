package deploy

import (
	"strings"

	"pitot/internal/say"
	"pitot/internal/sim"
)

// graphs says which steps are CUDA graphs: the host launches such a step, or with
// piecewise graphs what lies between the attention of its layers, all at once. Kernels
// of other steps it launches one by one, and accelerators that are done sooner wait.
type graphs struct {
	answers, mixed capture // steps of answers alone, and with stretches of prompts
	size           int     // tokens of the largest, 0 for what vLLM takes
}

// capture is the part of a step that runs in a CUDA graph.
type capture int

const (
	eager     capture = iota // nothing
	piecewise                // all but the attention
	full                     // everything
)

// graphModes are vLLM's names of cudagraph_mode.
var graphModes = map[string]graphs{
	"none": {}, "piecewise": {answers: piecewise, mixed: piecewise}, "full": {answers: full, mixed: full},
	"full_decode_only": {answers: full}, "full_and_piecewise": {answers: full, mixed: piecewise},
}

// setGraphs sets the mode by vLLM's name.
func (d *Deployment) setGraphs(v string) error {
	mode, ok := graphModes[strings.ToLower(v)]
	if !ok {
		return say.Errorf("%q is no mode of CUDA graphs", v).WithHint("take none, piecewise, full, full_decode_only or full_and_piecewise")
	}
	d.graphs = mode
	return nil
}

// GraphSize is that of the largest graph in tokens. Where nothing else is asked for it is
// what vLLM 0.32 takes (VllmConfig._set_cudagraph_sizes): twice the sequences that run at
// once, and 512 tokens at most, on Blackwell for servers 1,024.
func (d *Deployment) GraphSize() int {
	if d.CaptureSize > 0 {
		return d.CaptureSize
	}
	most := 512
	if strings.HasPrefix(d.Accelerator.Link.Kind, "nvlink5") {
		most = 1024
	}
	return min(2*d.Settings.MaxNumSeqs*(1+d.Settings.NumSpeculativeTokens), most)
}

// SetGraphSize sets that of the largest graph in tokens, which then no longer follows from
// the sequences that run at once.
func (d *Deployment) SetGraphSize(tokens int) { d.CaptureSize = tokens }

// capturedPart returns the part of a step that runs in a CUDA graph.
func (g *graphs) capturedPart(b *sim.Batch) capture {
	switch {
	case b.Tokens > g.size:
		return eager
	case len(b.Prefills) > 0:
		return g.mixed
	}
	return g.answers
}

// launchTime returns the seconds that the host takes to launch a step's kernels.
func (h *hardware) launchTime(b *sim.Batch) float64 {
	switch h.graphs.capturedPart(b) {
	case eager:
		return h.launch
	case piecewise:
		return h.launch * attentionLaunch
	}
	return 0
}
