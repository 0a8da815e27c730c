package choose

import (
	"pitot/internal/results/metric"
)

// What no engine can do, whatever its settings, by the datasheet alone: candidates that it
// excludes are not simulated.

// canMeetLimits says whether requests that are alone can be within the limits: a prompt is
// computed at the peak rate, an answer's weights are read at the full bandwidth, all drafts
// accepted. claim is one that more of the requests violate so than may.
func (r *race) canMeetLimits(c *Candidate) (claim string, ok bool) {
	s, d := r.schedule, c.Deployment
	b := d.Bounds()
	token := b.StepFloor / float64(1+d.Settings.DraftsFor(1)) // s
	shared := s.input - s.own                                 // tokens that a cache may have
	if s.talks != nil {
		shared = 0 // they are no part of what is asked there
	}
	for _, limit := range r.wanted.SLO.Limits {
		if limit.Max <= 0 {
			continue
		}
		may := 1 - limit.P()
		if limit.IsJoint() {
			may = 1 - r.wanted.SLO.Share()
		}
		over := 0
		for _, a := range s.asked {
			prompt := max(float64(a.Input)-shared, 0) * b.PrefillToken
			floor := 0.0
			switch limit.Metric {
			case metric.TPOT:
				if a.Output > 1 {
					floor = token
				}
			case metric.TTFT, metric.TTFA:
				floor = prompt
			case metric.E2E:
				floor = prompt + float64(a.Output-1)*token
			}
			if floor >= limit.Max.Seconds() {
				over++
			}
		}
		if float64(over) > may*float64(len(s.asked)) {
			return limit.String(), false
		}
	}
	return "", true
}

// rateBound is a rate that no engine on the hardware exceeds: prompts and answers are computed
// at the peak rate, and the weights and the KV cache are read once for each step of as many
// requests as fit.
func (r *race) rateBound(c *Candidate) float64 {
	s, d := r.schedule, c.Deployment
	compute := 1 / ((s.own + s.output) * d.Bounds().PrefillToken)
	fit, _ := d.CountSequences(max(int(s.output), 1)) // prompts may be shared
	back := s.output / 2                              // tokens of its own that an answer looks back on
	read := 0.0
	for n := 1; n <= fit; n = n + 1 + n/8 {
		read = max(read, float64(n)/(s.output*d.DecodeFloor(n, back)))
	}
	return min(compute, boundStep*read) / s.perArrival()
}

// guessCapacity is about what an engine carries: of conversations no more than its cache holds what
// is said, for what was forgotten is computed again, and takes the place of what others said.
func (r *race) guessCapacity(g *group) float64 {
	const share = 0.3 // of the bound
	s, d := r.schedule, g.list[0].Deployment
	rate := share * g.bound
	if s.talks == nil || s.fitsCache(d, rate) {
		return rate
	}
	for lo, hi := 0.0, rate; ; {
		if rate = (lo + hi) / 2; hi-lo < 0.1*lo || hi < 1e-9 {
			return rate
		}
		if s.fitsCache(d, rate) {
			lo = rate
		} else {
			hi = rate
		}
	}
}

// boundStep makes up for the numbers of requests that are left out.
const boundStep = 1.15
