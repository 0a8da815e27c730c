package validity

import (
	"math"
	"time"

	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// Answers holds how long the answers of the cohort took, in seconds. Values are 0 where nothing was
// answered.
type Answers struct {
	Mean float64 // from when they were due
	// Longest is from its first token on: whatever a queue does, what is in flight
	// grows until the first of such have ended.
	Longest float64
	Slowest float64 // from when it was due
}

// ResidenceTime returns how long a request takes without the queue in question, in seconds. It returns
// 0 where nothing was answered. It is the shorter of what the first answers took and what the
// cohort did, unless it is known. An unstable queue stretches the cohort's time, a cold server the
// first answers'.
func (q *Queue) ResidenceTime(took Answers) float64 {
	light := float64(q.conditions.Residence) / 1e9
	if light <= 0 {
		light = took.Mean
		if first := q.lightResidence() / 1e9; first > 0 {
			light = min(light, first)
		}
	}
	return light
}

// SetStability fills in whether the load was in balance; until is the end of the
// records. The users of a closed loop bound it themselves.
func (q *Queue) SetStability(p *result.Point, took Answers, until int64) {
	c, light := q.conditions, q.ResidenceTime(took)
	p.Stability = stats.Undecided
	if !c.Ended() {
		p.StabilityWhy = result.Reason{Code: result.WindowOpen}
		return
	}
	if c.Seconds() < Shortest {
		p.StabilityWhy = result.Reason{Code: result.WindowTooShort, Seconds: c.Seconds()}
		return
	}
	p.InFlight = q.all.blockMeans(until)
	if c.Gone != nil {
		p.StabilityWhy = result.Reason{Code: result.ServerWentAway}
		return
	}
	if !c.Open() {
		p.Stability, p.StabilityWhy = stats.Stable, result.Reason{Code: result.ClosedLoop}
		return
	}
	if c.Load.HasVaryingRate() {
		p.StabilityWhy = result.Reason{Code: result.RateVaries}
		return
	}
	window := c.Seconds()
	rate := float64(q.members) / window
	if light <= 0 || rate <= 0 {
		p.StabilityWhy = result.Reason{Code: result.NothingAnswered}
		return
	}
	b := stats.JudgeBacklog(q.served.blockMeans(until), window, rate, light)
	p.Growth = &result.Growth{PerS: b.Deficit * rate, Deficit: b.Deficit}
	p.Stability = b.Verdict
	switch b.Verdict {
	case stats.Undecided:
		if b.Drained {
			p.StabilityWhy = result.Reason{Code: result.QueueDrained, N: -b.Deficit * rate * window, Of: float64(q.members), Longer: c.longerWindow(2 * window)}
			return
		}
		if b.Longer > 0 {
			p.StabilityWhy = result.Reason{Code: result.RiseMayBeChance, N: b.Deficit * rate * window, Of: float64(q.members), Longer: c.longerWindow(b.Longer * window)}
			return
		}
		p.StabilityWhy = c.TooShort(window/light, stats.MinResidences, light)
	case stats.Unstable:
		if window < leastLongest*took.Longest {
			p.Stability = stats.Undecided
			p.StabilityWhy = result.Reason{Code: result.LongAnswers, Seconds: took.Longest, Longer: c.longerWindow(leastLongest * took.Longest)}
			return
		}
		p.StabilityWhy = result.Reason{Code: result.QueueGrew, Share: b.Deficit}
	}
}

// leastLongest is the least length of a window, in times of its longest answer, for a rise to be a
// queue's.
const leastLongest = 2

// giveUpDeficit is the share of the arrivals that must be left over for a load
// to be hopeless: far more than chance gives.
const giveUpDeficit = .1

// giveUpResidences is the number of residence times that it takes to be sure.
const giveUpResidences = 60

// IsHopeless says that a load is beyond what the target serves: by the trend of
// the requests under way in equal blocks of its window so far. Seconds, and
// requests a second; light is what a request takes without a queue.
func IsHopeless(underWay []float64, elapsed, rate, light float64) bool {
	if light <= 0 || elapsed < giveUpResidences*light {
		return false
	}
	b := stats.JudgeBacklog(underWay, elapsed, rate, light)
	return b.Verdict == stats.Unstable && b.Deficit > giveUpDeficit
}

// TooShort returns the reason of a window that has fewer residence times than it needs.
func (c *Conditions) TooShort(has float64, needs int, residence float64) result.Reason {
	return result.Reason{Code: result.FewResidences, N: math.Floor(has), Needed: float64(needs), Longer: c.longerWindow(float64(needs) * residence)}
}

// TooSlow returns the reason of a window that is so many times as long as the queue remembers.
func (c *Conditions) TooSlow(has float64, needs int) result.Reason {
	return result.Reason{Code: result.SlowQueue, N: math.Floor(has), Needed: float64(needs), Longer: c.longerWindow(float64(needs) / has * c.Seconds())}
}

// TooShortForSessions returns the same of conversations. The requests of one are alike, so
// it counts as one request that stays in the system for as long.
func (c *Conditions) TooShortForSessions(needs int, session float64) result.Reason {
	return result.Reason{Code: result.FewSessionTimes, N: math.Floor(c.Seconds() / session), Needed: float64(needs), Longer: c.longerWindow(float64(needs) * session)}
}

// TooFew returns the reason of a window that has fewer requests than it needs.
func (c *Conditions) TooFew(has int64, needs int) result.Reason {
	return result.Reason{Code: result.FewRequests, N: float64(has), Needed: float64(needs), Longer: c.longerWindow(1.1 * c.Seconds() * float64(needs) / float64(max(has, 1)))}
}

// longerWindow returns what a plan sets for a window of that many seconds, rounded up: a duration,
// or a number of requests where the window counts them.
func (c *Conditions) longerWindow(window float64) result.Longer {
	if n := c.Requests; n > 0 {
		return result.Longer{Requests: roundUp(float64(n) * window / c.Seconds())}
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
	return result.Longer{Seconds: d.Seconds()}
}

// roundUp gives the next number of two significant digits.
func roundUp(x float64) float64 {
	if x <= 0 {
		return 0
	}
	unit := math.Pow(10, max(0, math.Floor(math.Log10(x))-1))
	return math.Ceil(x/unit) * unit
}
