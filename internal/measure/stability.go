package measure

import (
	"fmt"
	"math"
	"strings"
	"time"

	"pitot/internal/data/result"
	"pitot/internal/stat"
)

// residences are the two times that a window is measured by, in seconds; 0
// where nothing was answered.
type residences struct {
	light float64 // of a request without the queue in question
	mean  float64 // of a request of the cohort
	// longest is the longest answer, from its first token on: whatever a queue
	// does, what is in flight grows until the first of such have ended.
	longest float64
}

// residences takes the shorter of what the first answers took and what the
// cohort did for the light load's, unless it is known: an unstable queue
// stretches the cohort's, a cold server the first answers'.
func (f *Fold) residences(all *part) (r residences) {
	if all.outline.e2e.n > 0 {
		r.mean = all.outline.e2e.total.Sum() / float64(all.outline.e2e.n) / 1e9
	}
	r.longest = all.outline.generation.top / 1e9
	r.light = float64(f.setup.Residence) / 1e9
	if r.light <= 0 {
		r.light = r.mean
		if first := f.visits.light() / 1e9; first > 0 {
			r.light = min(r.light, first)
		}
	}
	return r
}

// stability judges whether the load was in balance. The users of a closed
// loop bound it themselves.
func (f *Fold) stability(p *result.Point, took residences) {
	s, light := &f.setup, took.light
	p.Stability = stat.Undecided
	if !s.ended() {
		p.StabilityWhy = "the window has not ended"
		return
	}
	if s.seconds() < shortest {
		p.StabilityWhy = "the window is too short"
		return
	}
	p.InFlight = f.visits.all.means(f.end)
	if s.Gone != nil {
		p.StabilityWhy = wentAway
		return
	}
	if !s.open() {
		p.Stability, p.StabilityWhy = stat.Stable, "a closed loop: its users bound what is in flight"
		return
	}
	window := s.seconds()
	rate := float64(f.cohort.Len()) / window
	if light <= 0 || rate <= 0 {
		p.StabilityWhy = "nothing was answered"
		return
	}
	b := stat.JudgeBacklog(f.visits.served.means(f.end), window, rate, light)
	p.Growth = &result.Growth{PerS: b.Deficit * rate, Deficit: b.Deficit}
	p.Stability = b.Verdict
	switch b.Verdict {
	case stat.Undecided:
		if b.Drained {
			p.StabilityWhy = fmt.Sprintf("a queue that had formed before drained into the window, %.3g requests on top of %d arrivals: %s", -b.Deficit*rate*window, f.cohort.Len(), f.ask(2*window))
			return
		}
		if b.Longer > 0 {
			p.StabilityWhy = fmt.Sprintf("a rise by %.3g of %d arrivals may be chance: %s", b.Deficit*rate*window, f.cohort.Len(), f.ask(b.Longer*window))
			return
		}
		p.StabilityWhy = f.tooShort(window/light, stat.MinResidences, light)
	case stat.Unstable:
		if window < leastLongest*took.longest {
			p.Stability = stat.Undecided
			p.StabilityWhy = fmt.Sprintf("answers that take up to %.3g s still fill the server: %s", took.longest, f.ask(leastLongest*took.longest))
			return
		}
		p.StabilityWhy = fmt.Sprintf("the queue grew: %.2g %% of the arrivals were left over", 100*b.Deficit)
	}
}

// leastLongest is how many times as long as its longest answer a window must
// be for a rise to be a queue's.
const leastLongest = 2

// tooShort says how many residence times a window has, how many it needs, and
// what gives them.
func (f *Fold) tooShort(has float64, needs int, residence float64) string {
	unit := "residence times"
	if has = math.Floor(has); has == 1 {
		unit = "residence time"
	}
	return fmt.Sprintf("%.0f %s; %d needed: %s", has, unit, needs, f.ask(float64(needs)*residence))
}

// ask is the flag that makes a window of so many seconds.
func (f *Fold) ask(seconds float64) string { return LongerFlag(f.needs(seconds)) }

// needs is what a plan asks for that makes a window of so many seconds: a duration
// in seconds, or a number of requests where the window counts them; rounded up.
func (f *Fold) needs(window float64) (seconds, requests float64) {
	if n := f.setup.Requests; n > 0 {
		return 0, roundUp(float64(n) * window / f.setup.seconds())
	}
	if w := f.setup.Settling; w != nil { // what the warm-up took of this one
		window += float64(w.Begin-w.Planned) / 1e9
	}
	d := time.Duration(math.Ceil(window)) * time.Second
	switch {
	case d > 2*time.Hour:
		d = (d + 10*time.Minute - 1).Truncate(10 * time.Minute)
	case d > 5*time.Minute:
		d = (d + time.Minute - 1).Truncate(time.Minute)
	case d > time.Minute:
		d = (d + 10*time.Second - 1).Truncate(10 * time.Second)
	}
	return d.Seconds(), 0
}

// LongerFlag is the flag that asks for a duration in seconds, or for a number of
// requests.
func LongerFlag(seconds, requests float64) string {
	if requests > 0 {
		return fmt.Sprintf("--requests %.0f", requests)
	}
	text := time.Duration(seconds * float64(time.Second)).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return "--duration " + text
}

// roundUp gives the next number of two significant digits.
func roundUp(x float64) float64 {
	if x <= 0 {
		return 0
	}
	unit := math.Pow(10, max(0, math.Floor(math.Log10(x))-1))
	return math.Ceil(x/unit) * unit
}
