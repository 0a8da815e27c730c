package explain

import (
	"cmp"
	"math"
	"slices"

	"pitot/internal/stats"
)

// prompts are the times from sent to first token of all requests, so kept that how a gap lies to
// them takes no look at each: a tail of a tenth would make that quadratic.
type prompts struct {
	sent  []float64 // s, in order
	until []float64 // of those sent up to each, the latest first token
	took  []float64 // s, in order
	after []float64 // of the times from each on, the sum; one more, 0
}

func promptsOf(list []Request) *prompts {
	var bySent []span
	p := &prompts{}
	for i := range list {
		if r := &list[i]; !math.IsNaN(r.First) && !math.IsNaN(r.Sent) {
			bySent = append(bySent, span{r.Sent, r.First})
			p.took = append(p.took, r.First-r.Sent)
		}
	}
	stats.SortStable(bySent, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	latest := math.Inf(-1)
	for _, s := range bySent {
		latest = max(latest, s.to)
		p.sent, p.until = append(p.sent, s.from), append(p.until, latest)
	}
	stats.SortFloat64(p.took)
	p.after = make([]float64, len(p.took)+1)
	for i := len(p.took) - 1; i >= 0; i-- {
		p.after[i] = p.after[i+1] + p.took[i]
	}
	return p
}

// besidePrompt is 1 where a gap of a request lies between another request and its first
// token, as it does while that one's prompt is computed in several steps, else 0; and how
// often a gap of its length would by chance, in so many seconds. A gap that begins first is not
// made by it: where all stands still, first tokens stand still too.
func (p *prompts) besidePrompt(r *Request, gap span, seconds float64) (was, by float64) {
	if p.hasPendingPrompt(gap) { // the request's own first token is before it
		was = 1
	}
	part := 0.8 * (gap.to - gap.from)
	k, _ := slices.BinarySearch(p.took, part)
	by = p.after[k] - part*float64(len(p.took)-k)
	if own := r.First - r.Sent - part; own > 0 {
		by -= own
	}
	return was, 1 - math.Exp(-max(by, 0)/seconds)
}

// hasPendingPrompt reports whether a request waited for its first token through most of a gap.
func (p *prompts) hasPendingPrompt(gap span) bool {
	length := gap.to - gap.from
	n, _ := slices.BinarySearchFunc(p.sent, gap.from+0.1*length, func(sent, at float64) int {
		if sent <= at {
			return -1
		}
		return 1
	})
	return n > 0 && p.until[n-1] >= gap.to-0.1*length
}
