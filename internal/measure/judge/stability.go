package judge

import (
	"fmt"
	"math"
	"strings"
	"time"

	"pitot/internal/data/result"
	"pitot/internal/stat"
)

// Answers are how long the answers of the cohort took, in seconds; 0 where
// nothing was answered.
type Answers struct {
	Mean float64 // from when they were due
	// Longest is from its first token on: whatever a queue does, what is in flight
	// grows until the first of such have ended.
	Longest float64
	Slowest float64 // from when it was due
}

// Residence is how long a request takes without the queue in question, in
// seconds; 0 where nothing was answered. It is the shorter of what the first
// answers took and what the cohort did, unless it is known: an unstable queue
// stretches the cohort's, a cold server the first answers'.
func (q *Queue) Residence(took Answers) float64 {
	light := float64(q.conditions.Residence) / 1e9
	if light <= 0 {
		light = took.Mean
		if first := q.light() / 1e9; first > 0 {
			light = min(light, first)
		}
	}
	return light
}

// Stability fills in whether the load was in balance; until is the end of the
// records. The users of a closed loop bound it themselves.
func (q *Queue) Stability(p *result.Point, took Answers, until int64) {
	c, light := q.conditions, q.Residence(took)
	p.Stability = stat.Undecided
	if !c.Ended() {
		p.StabilityWhy = "the window has not ended"
		return
	}
	if c.Seconds() < Shortest {
		p.StabilityWhy = "the window is too short"
		return
	}
	p.InFlight = q.all.means(until)
	if c.Gone != nil {
		p.StabilityWhy = WentAway
		return
	}
	if !c.Open() {
		p.Stability, p.StabilityWhy = stat.Stable, "a closed loop: its users bound what is in flight"
		return
	}
	if c.Load.Varies() {
		p.StabilityWhy = RateVaries
		return
	}
	window := c.Seconds()
	rate := float64(q.members) / window
	if light <= 0 || rate <= 0 {
		p.StabilityWhy = "nothing was answered"
		return
	}
	b := stat.JudgeBacklog(q.served.means(until), window, rate, light)
	p.Growth = &result.Growth{PerS: b.Deficit * rate, Deficit: b.Deficit}
	p.Stability = b.Verdict
	switch b.Verdict {
	case stat.Undecided:
		if b.Drained {
			p.StabilityWhy = fmt.Sprintf("a queue that had formed before drained into the window, %.3g requests on top of %d arrivals: %s", -b.Deficit*rate*window, q.members, c.longer(2*window))
			return
		}
		if b.Longer > 0 {
			p.StabilityWhy = fmt.Sprintf("a rise by %.3g of %d arrivals may be chance: %s", b.Deficit*rate*window, q.members, c.longer(b.Longer*window))
			return
		}
		p.StabilityWhy = c.TooShort(window/light, stat.MinResidences, light)
	case stat.Unstable:
		if window < leastLongest*took.Longest {
			p.Stability = stat.Undecided
			p.StabilityWhy = fmt.Sprintf("answers that take up to %.3g s still fill the server: %s", took.Longest, c.longer(leastLongest*took.Longest))
			return
		}
		p.StabilityWhy = fmt.Sprintf("the queue grew: %.2g %% of the arrivals were left over", 100*b.Deficit)
	}
}

// leastLongest is how many times as long as its longest answer a window must
// be for a rise to be a queue's.
const leastLongest = 2

// giveUpDeficit is the share of the arrivals that must be left over for a load
// to be hopeless: far more than chance gives.
const giveUpDeficit = .1

// giveUpResidences is how many residence times it takes to be sure.
const giveUpResidences = 60

// Hopeless says that a load is beyond what the target serves: by the trend of
// the requests under way in equal blocks of its window so far. Seconds, and
// requests a second; light is what a request takes without a queue.
func Hopeless(underWay []float64, elapsed, rate, light float64) bool {
	if light <= 0 || elapsed < giveUpResidences*light {
		return false
	}
	b := stat.JudgeBacklog(underWay, elapsed, rate, light)
	return b.Verdict == stat.Unstable && b.Deficit > giveUpDeficit
}

// TooShort says how many residence times a window has, how many it needs, and
// what gives them.
func (c *Conditions) TooShort(has float64, needs int, residence float64) string {
	unit := "residence times"
	if has = math.Floor(has); has == 1 {
		unit = "residence time"
	}
	return fmt.Sprintf("%.0f %s; %d needed: %s", has, unit, needs, c.longer(float64(needs)*residence))
}

// TooShortForSessions says the same of conversations: the requests of one are alike, so it
// is as one request that stays in the system for so long.
func (c *Conditions) TooShortForSessions(needs int, session float64) string {
	return fmt.Sprintf("turns of a conversation are alike: %.0f times a conversation's length; %d needed: %s", math.Floor(c.Seconds()/session), needs, c.longer(float64(needs)*session))
}

// TooFew says how many requests a window has, how many it needs, and what gives
// them.
func (c *Conditions) TooFew(has int64, needs int) string {
	return fmt.Sprintf("%d requests; %d needed: %s", has, needs, c.longer(1.1*c.Seconds()*float64(needs)/float64(max(has, 1))))
}

// longer is the flag that makes a window of so many seconds.
func (c *Conditions) longer(seconds float64) string { return LongerFlag(c.needs(seconds)) }

// needs is what a plan asks for that makes a window of so many seconds: a duration
// in seconds, or a number of requests where the window counts them; rounded up.
func (c *Conditions) needs(window float64) (seconds, requests float64) {
	if n := c.Requests; n > 0 {
		return 0, roundUp(float64(n) * window / c.Seconds())
	}
	if w := c.Settling; w != nil { // what the warm-up took of this one
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
