package choose

import (
	"math"

	"pitot/internal/data/metric"
)

// What no engine can do, whatever its settings, by the datasheet alone: candidates that it
// excludes are not simulated.

// possible says whether a request that is alone can be within the limits: its prompt is
// computed at the peak rate, its answer's weights are read at the full bandwidth. claim is
// one that cannot hold.
func (r *race) possible(c *Candidate) (claim string, ok bool) {
	b := c.Deployment.Bounds()
	for i, limit := range r.wanted.SLO.Limits {
		if limit.Max <= 0 {
			continue
		}
		floor := 0.0
		switch limit.Metric {
		case metric.TPOT:
			floor = b.TokenFloor
		case metric.TTFT, metric.TTFA:
			floor = r.schedule.own * b.PrefillToken
		case metric.E2E:
			floor = r.schedule.own*b.PrefillToken + (r.schedule.output-1)*b.TokenFloor
		}
		// Means of prompts and answers bound a percentile of at least the median of what is
		// skewed to the right; a limit on fewer requests is left to the simulation.
		if (limit.Joint() || limit.P() >= 0.9) && floor >= limit.Max.Seconds() {
			return r.wanted.SLO.Limits[i].String(), false
		}
	}
	return "", true
}

// bound is a rate that no engine on the hardware exceeds: prompts and answers are computed
// at the peak rate, or the weights and the KV cache are read for as many requests as fit
// and as the limit on the time of a token allows.
func (r *race) bound(c *Candidate) float64 {
	s, d := r.schedule, c.Deployment
	b := d.Bounds()
	compute := 1 / ((s.own + s.output) * b.PrefillToken)
	fit, _ := d.Sequences(max(int(s.output), 1)) // prompts may be shared
	limit := math.Inf(1)
	for _, l := range r.wanted.SLO.Limits {
		if l.Metric == metric.TPOT && l.Max > 0 {
			limit = min(limit, l.Max.Seconds())
		}
	}
	context := s.output / 2
	read := 0.0
	for n := 1; n <= fit; n = n + 1 + n/8 {
		step := d.DecodeFloor(n, context)
		if step > limit {
			break
		}
		read = max(read, float64(n)/(s.output*step))
	}
	if read == 0 {
		read = 1 / (s.output * d.DecodeFloor(1, context))
	}
	return min(compute, 1.3*read) // a hundredth of the requests may be over the limit, and n jumps
}
