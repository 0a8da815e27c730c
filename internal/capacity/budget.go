package capacity

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"pitot/internal/say"
)

// Budget holds the limits of a search: requests in windows, seconds in all, work, or the one that
// ends first. 0 does not bound.
type Budget struct {
	Requests int
	Seconds  float64
	// Work bounds what a simulation takes of a processor. It is counted in what is
	// simulated, and not in time, so that the same search gives the same answer on every
	// machine and under any load of it.
	Work float64
}

// WorkOf returns the work of simulating the given requests, in events. An event of an answer counts
// as one. The rest of a request counts as requestWork events, and a prompt as one for every
// promptWork tokens. On one core of 2023 a million takes a little less than a second. That is from
// the engine's steps to the page of the run: `go run ./bench/stat -only catalogue`. Where requests
// are counted and not recorded, the work is CountedWork times that.
func WorkOf(requests, events, prompt int64, counted bool) float64 {
	work := float64(events) + requestWork*float64(requests) + float64(prompt)/promptWork
	if counted {
		work *= CountedWork
	}
	return work
}

const requestWork, promptWork = 8, 64

// CountedWork is the work of counting a request relative to recording it. It comes from a profile
// of a search of chats on an H100: 0.22 µs an event and 1.33.
const CountedWork = 0.17

const (
	// ClaimRequests is the number of requests that mostly gives an estimate. It holds where no
	// share of them violates at every load (`go run ./bench/stat -only bounds`). With fewer there
	// are bounds, and not always one.
	ClaimRequests = 3_000
	// EnoughRequests is a budget that gives an interval of about ±5 %.
	EnoughRequests = 145_000
	// EnoughWork is the work of a processor that a search on a simulated target may take.
	EnoughWork = 6.5e6
	// Warmup is the length of a warm-up in mean residence times: the share of
	// violations needs 8 to 12 of them from empty, longer than means do.
	Warmup = 10
	// Blocks is into how many blocks a window is divided.
	Blocks = 10
	// Drain is about how long a window's last requests are followed, in
	// residence times.
	Drain = 1
	// probes is about how many probes there are from the staircases on, and
	// roughProbes before them.
	probes      = 2*stairs + mainLoads + 1
	roughProbes = 10
	// loaded is about how many times as long as alone a request takes near
	// the capacity.
	loaded = 2
)

// probeSeconds is about what a probe takes.
func (f *search) probeSeconds(load float64, requests int) float64 {
	return f.secondsBeside(Warmup, load) + float64(requests)/f.requestRate(load)
}

// secondsBeside is about how many seconds of a probe are no window: a warm-up of so many residence
// times, and a drain.
func (f *search) secondsBeside(warmup, load float64) float64 {
	return (warmup + Drain) * f.memoryAt(load)
}

// affordableAt returns the number of requests that the budget pays at each of the loads. A share of
// the whole budget is left over.
func (f *search) affordableAt(loads []float64, spare float64) int {
	return f.affordableRequests(f.requestWork(), loads, spare)
}

// affordableIn returns the number of requests of a probe that the budget pays.
func (f *search) affordableIn(p *Probe, spare float64) int {
	each := f.requestWork()
	if p.Counted {
		each *= CountedWork
	}
	warmup := p.Residences
	if warmup == 0 {
		warmup = Warmup
	}
	return f.affordableAfter(warmup, each, []float64{p.Load}, spare)
}

// setTimeLimits has a probe end with a budget of time: what is forecast of its window and of the
// time behind it is no promise, least of all beyond the limit, where a queue grows and is emptied.
func (f *search) setTimeLimits(p *Probe) {
	b := f.cfg.Budget.Seconds
	if b == 0 {
		return
	}
	left := b - f.cap.Seconds
	p.WindowBy, p.EndBy = left-Drain*p.Residence, left+overtime*b
}

// hasTime says that a budget of time leaves some for a window.
func (f *search) hasTime(p Probe) bool {
	f.setTimeLimits(&p)
	return f.cfg.Budget.Seconds == 0 || p.WindowBy > p.Residences*p.Residence
}

// overtime is the share of its budget of time by which a search may exceed it.
const overtime = 0.05

// longLook is a long look at a load, of all requests that the budget pays: counted where
// that can be, for what it says of the load hangs on how many they are.
func (f *search) longLook(load float64) Probe {
	p := Probe{Load: load, Stage: Verifying, Counted: f.cfg.Count}
	if p.Counted {
		p.Requests = f.affordableIn(&p, shownShare)
	} else {
		p.Requests = f.affordableIn(&p, 0)
	}
	return p
}

// shownShare is the share of a budget of work that is kept for some requests to be recorded
// at the load that is quoted, where the look at it was counted; mostShown is how many at most.
const shownShare, mostShown = 0.1, 3000

// recordLoads records them.
func (f *search) recordLoads(look *Probe) {
	if !look.Counted || f.requestWork() == 0 {
		return
	}
	n := shownShare*f.cfg.Budget.Work/f.requestWork() - f.secondsBeside(bracketWarmup, look.Load)*f.requestRate(look.Load)
	if _, ok := f.measureLoad(Probe{Load: look.Load, Requests: int(min(mostShown, max(lightRequests, n))), Residences: bracketWarmup, Stage: Shown}); !ok {
		return
	}
	for i := range f.cap.Trail {
		if s := &f.cap.Trail[i]; !s.Counted && f.exceedsShare(&s.Seen, 1) {
			return
		}
	}
	if over := f.roundLoad(max(f.hi, overLimit*f.cap.Estimate)); over > look.Load { // what limits it is told by a load that is beyond
		f.measureLoad(Probe{Load: over, Requests: overRequests, Residences: bracketWarmup, Stage: Beyond})
	}
}

// overLimit is the ratio to the estimate of a recorded load beyond the limit. overRequests is its
// number of requests.
const overLimit, overRequests = 1.1, 100

// lowerStill is the expected ratio of a look far below the limit to the load that earlier
// violations give. Those are the violations seen before the loads that are fitted.
const lowerStill = 0.75

// affordableMain returns the number of requests that the budget pays at each of the loads that are
// fitted.
func (f *search) affordableMain(loads []float64) int {
	if f.cfg.Count {
		return f.affordableRequests(f.countingWork(), loads, spareCounted)
	}
	return f.affordableAt(loads, max(spareVerify, f.spareLow()))
}

// spareLow is the share of the budget that a look far below the limit takes. The loads that
// are still to be measured may show violations at lower ones than those so far.
func (f *search) spareLow() (share float64) {
	load := f.lowLoad() * lowerStill
	if !(load > 0) {
		return 0
	}
	n := f.leastLow(load)
	if b := f.cfg.Budget.Requests; b > 0 {
		share = float64(n) / float64(b)
	}
	if b := f.cfg.Budget.Seconds; b > 0 {
		share = max(share, f.probeSeconds(load, n)/b)
	}
	return share
}

// spareConfirm is the share of the budget that confirming a load near the limit takes.
func (f *search) spareConfirm() (share float64) {
	n := f.leastConfirm(f.centred) + lowPhi
	if b := f.cfg.Budget.Requests; b > 0 {
		share = float64(n) / float64(b)
	}
	if b := f.cfg.Budget.Seconds; b > 0 {
		share = max(share, f.probeSeconds(f.centred, n)/b)
	}
	return share
}

// isCostly says that recording a probe would take more than its share of a budget of work,
// where it may be counted instead.
func (f *search) isCostly(load float64, requests int, residences float64) bool {
	if !f.cfg.Count || f.cfg.Budget.Work == 0 {
		return false
	}
	around := f.secondsBeside(residences, load) * f.requestRate(load)
	return f.requestWork()*(float64(requests)+around) > recordedShare*f.cfg.Budget.Work
}

// recordedShare is the share of a budget of work that a probe that only shows the way may
// take to be recorded.
const recordedShare = 0.02

// affordableRequests returns the number of requests of the given work each that the budget pays at
// each of the loads.
func (f *search) affordableRequests(each float64, loads []float64, spare float64) int {
	return f.affordableAfter(Warmup, each, loads, spare)
}

// affordableAfter is the same where each load has a warm-up of so many residence times.
func (f *search) affordableAfter(warmup, each float64, loads []float64, spare float64) int {
	n := math.Inf(1)
	if b := f.cfg.Budget.Requests; b > 0 {
		n = (float64(b)*(1-spare) - float64(f.cap.Requests)) / float64(len(loads))
	}
	if b := f.cfg.Budget.Seconds; b > 0 {
		left, each := b*(1-spare)-f.cap.Seconds, 0.0
		for _, load := range loads {
			left -= f.secondsBeside(warmup, load)
			each += 1 / f.requestRate(load)
		}
		n = min(n, left/each)
	}
	if f.cfg.Budget.Work > 0 && each > 0 {
		left := (f.cfg.Budget.Work*(1-spare) - f.cap.Work) / each
		for _, load := range loads {
			left -= f.requestsAround(load)
		}
		n = min(n, left/float64(len(loads)))
	}
	return int(max(0, min(n, math.MaxInt32)))
}

// requestWork returns the work of simulating and recording a request, 0 while that is not known.
func (f *search) requestWork() float64 { return f.worked / float64(max(f.sent, 1)) }

// countingWork returns the work of simulating a request that is fitted: it is counted where it may
// be.
func (f *search) countingWork() float64 {
	if f.cfg.Count {
		return f.requestWork() * CountedWork
	}
	return f.requestWork()
}

// requestsAround is about how many requests come before and after a window at a load.
func (f *search) requestsAround(load float64) float64 {
	return f.secondsBeside(Warmup, load) * f.requestRate(load)
}

// InRequests returns the number of requests that a budget of work pays. each is the work of
// recording one, and around is the number of requests before and after a window. worth is the
// number of recorded requests that give as good an interval. It differs where those of the fitted
// loads alone are counted. Budget.Requests bounds both.
func (b Budget) InRequests(each, around float64, counted bool) (paid, worth int) {
	n := b.Work/each - probes*around
	worths := n
	if counted {
		fitted := (1-spareCounted-beforeMain)*b.Work/each/CountedWork - mainLoads*around
		n = fitted + spareCounted*b.Work/each/CountedWork
		worths = fitted / (1 - spareVerify - beforeMain)
	}
	most := math.Inf(1)
	if b.Requests > 0 {
		most = float64(b.Requests)
	}
	return int(max(1, min(most, n))), int(max(1, min(most, worths)))
}

// beforeMain is about the share of a budget of work that is spent before the loads that
// are fitted.
const beforeMain = 0.15

// totalRequests is about how many requests the whole budget pays near a load.
func (f *search) totalRequests(load float64) float64 {
	n := math.Inf(1)
	if b := f.cfg.Budget.Requests; b > 0 {
		n = float64(b)
	}
	if b := f.cfg.Budget.Seconds; b > 0 {
		left := b - f.cap.Seconds - probes*f.probeSeconds(load, 0)
		n = min(n, float64(f.cap.Requests)+max(0, left)*f.requestRate(load))
	}
	if each := f.countingWork(); f.cfg.Budget.Work > 0 && each > 0 {
		left := (f.cfg.Budget.Work-f.cap.Work)/each - probes*f.requestsAround(load)
		n = min(n, float64(f.cap.Requests)+max(0, left))
	}
	return n
}

// Outlook holds what a budget can give, as far as it is known beforehand.
type Outlook struct {
	Precisions []Precision // those that are in reach
	Budget     Budget
	Requests   int     // that the budget pays, 0 if that is not known
	HalfWidth  float64 // of the interval, relative; 0: bounds only, or not known
}

// Precision holds the cost of knowing the capacity to ± HalfWidth.
type Precision struct {
	HalfWidth float64 // of the 95 % interval, relative
	Requests  int
	Seconds   float64 // 0 if not known
}

// Traffic holds what is known beforehand of how much violations of a limit cluster, and how few
// they are. The zero value is the usual traffic.
type Traffic struct {
	Allowed float64 // least share of the requests that may violate a limit
	Lengths float64 // squared coefficient of variation of what requests ask for
	Gaps    float64 // that of the gaps between arrivals
	Plain   bool    // nothing else is known to vary from request to request or with time: they share no prefixes, and are all alike
	Cycle   float64 // seconds in which arrivals whose rate takes turns have all of them, 0 where it does not
}

// isMild says that little varies: answers and prompts by half of their mean at the most, and gaps
// no more than those of a Poisson process do.
func (t Traffic) isMild() bool {
	return t.Plain && t.Gaps <= mildGaps && t.Lengths <= mildLengths && t.Cycle == 0
}

// mildGaps and mildLengths are how much that is, squared; to rounding, and lengths are whole
// tokens.
const mildGaps, mildLengths = 1.01, 0.26

// widthFactor is by how much wider than usual an interval is: bursts grow with what varies, as
// waits do (Kingman, Mathematical Proceedings of the Cambridge Philosophical Society 57,
// 1961), and the fewer requests may violate the fewer bursts there are.
func (t Traffic) widthFactor() float64 {
	if t.Allowed == 0 {
		return 1
	}
	return min(mostSpread, max(1/mostSpread, math.Sqrt(max(1, (t.Lengths+t.Gaps)/2)*usualAllowed/t.Allowed)))
}

const usualAllowed, mostSpread = 0.01, 3.

// arrivalHalfWidth is the half-width of an interval that the rate of the arrivals alone leaves,
// where so many requests a second take turns: what a number of cycles brings scatters by how much
// rates differ, for which stands what gaps vary by more than those of a Poisson process do.
func (t Traffic) arrivalHalfWidth(requests, rate float64) float64 {
	if t.Cycle == 0 || !(rate > 0) {
		return 0
	}
	return t.cycleHalfWidth() * math.Sqrt(rate*t.Cycle/requests)
}

// cycleHalfWidth is the half-width of a single cycle. Chosen on the first three systems of `go run
// ./bench/stat -only bounds-slow`, where half-widths were 0.6 to 1.2 times as large with 115 to
// 4,000 cycles. Where bursts last much longer than a queue needs to settle they are as little as a
// tenth of it.
func (t Traffic) cycleHalfWidth() float64 {
	return perCycle * math.Sqrt(min(mostSwing, max(0, t.Gaps-1)))
}

// perCycle is that of rates whose coefficient of variation is 1, and mostSwing the square of the
// most that is reckoned with.
const perCycle, mostSwing = 2.2, 4

// halfWidth of the interval is about √(2² + (c·perRequest/√n)²) percent with n requests: the first
// is the model's own error (stats.ModelError), the second what `go run ./bench/stat -only find`
// shows of M/G/32, whose violations rise as steeply as those of most, by as much wider as the
// traffic makes it. Of few requests c is up to 2: half of them show the way, and what they leave
// open of the curve enters. With fewer than fewRequests it is what `-only bounds` shows of nearly
// all systems: a third of the capacity at 3,000, and less where little varies.
func (t Traffic) halfWidth(requests float64) float64 {
	half := t.widthFactor() * perRequest / math.Sqrt(requests) * (1 + halfKnown/(halfKnown+requests))
	if requests < fewRequests {
		half = max(half, fewPerRequest/math.Sqrt(requests))
	}
	return math.Hypot(ownError, half)
}

// requestsForWidth returns the number of requests of such an interval, and false where it is out of
// reach. No number of them makes it narrower than the model's own error. Close to that it takes
// more than anybody sends.
func (t Traffic) requestsForWidth(halfWidth float64) (n float64, ok bool) {
	lo, hi := float64(ClaimRequests), float64(mostForecast)
	if t.halfWidth(hi) > halfWidth {
		return 0, false
	}
	for hi/lo > 1.001 {
		if n := math.Sqrt(lo * hi); t.halfWidth(n) > halfWidth {
			lo = n
		} else {
			hi = n
		}
	}
	return hi, true
}

const (
	ownError, perRequest       = 0.02, 17.3
	fewRequests, fewPerRequest = 10_000, 20.
	halfKnown                  = 8_000.
	// timeTelling is the share of a budget of time, but for warm-ups, in which windows tell of
	// the limit: the bracket and the look at a lower load have theirs. With it and halfKnown
	// four of five forecasts are kept on the systems that constants are chosen on (`-only timed`).
	timeTelling = 0.45
	// fewestInTime is the number of such requests that an interval mostly takes: the shorter
	// windows are, the fewer of them are fitted.
	fewestInTime = 7_500
	// mostForecast is of how many requests an interval is forecast at most.
	mostForecast = 3_000_000
	// Where about one request is under way at the capacity there is a queue for a single
	// server, whose violations rise slowly with the load: its interval is fewSeats times as wide.
	// Beyond loaded of them under way that fades.
	fewSeats = 2
)

// Forecast says what a search will take and what a budget can give, from the
// residence time of a request alone in seconds, and a guess of the capacity as
// requests a second (0 if there is none). Ask it before the start.
func Forecast(residence, rate float64, b Budget, t Traffic) Outlook {
	return forecastWider((Warmup+Drain)*residence*(roughProbes+loaded*probes), rate, b, t, 1)
}

// ForecastNear is the same when the capacity is roughly known: rate is about it, and
// residence how long a request takes there.
func ForecastNear(residence, rate float64, b Budget, t Traffic) Outlook {
	wider := min(fewSeats, max(1, fewSeats*loaded/(rate*residence)))
	return forecastWider((Warmup+Drain)*residence*(roughProbes/loaded+probes), rate, b, t, wider)
}

// forecastWider is for so many seconds that are no windows, and intervals so much wider than the
// traffic makes them.
func forecastWider(overhead, rate float64, b Budget, t Traffic, wider float64) Outlook {
	o := Outlook{Budget: b}
	for _, goal := range []float64{0.09, 0.06, 0.04} {
		takes, ok := t.requestsForWidth(goal / wider)
		if !ok {
			continue
		}
		p := Precision{HalfWidth: goal, Requests: int(math.Ceil(takes/5000)) * 5000}
		if rate > 0 {
			cycles := max(estimateCycles, t.cycleHalfWidth()*t.cycleHalfWidth()*wider*wider/(goal*goal)/timeTelling)
			p.Seconds = max(overhead+float64(p.Requests)/rate/timeTelling, cycles*t.Cycle)
		}
		o.Precisions = append(o.Precisions, p)
	}
	n, least := math.Inf(1), float64(ClaimRequests)
	if b.Requests > 0 {
		n = float64(b.Requests)
	}
	if b.Seconds > 0 {
		if !(rate > 0) {
			return o
		}
		n, least = min(n, max(1, (b.Seconds-overhead)*rate*timeTelling)), fewestInTime*wider*wider*wider
	}
	if !math.IsInf(n, 1) {
		o.Requests = int(n)
		slow := b.Seconds > 0 && b.Seconds < estimateCycles*t.Cycle || b.Requests > 0 && n < estimateCycles*t.Cycle*rate
		if n >= least && !slow {
			o.HalfWidth = wider * max(t.halfWidth(n), t.arrivalHalfWidth(n, rate))
		}
	}
	return o
}

// String is one line for people.
func (o Outlook) String() string {
	var takes []string
	// What the budget gives needs no more.
	finer := slices.DeleteFunc(slices.Clone(o.Precisions), func(p Precision) bool {
		return o.HalfWidth > 0 && o.Budget.Work == 0 && p.HalfWidth >= o.HalfWidth
	})
	for i, p := range finer { // the unit is written once, so that all fits on a line
		need, about := say.RoundedTime(p.Seconds), "about "
		if p.Seconds <= 0 {
			need, about = say.Count(p.Requests/1000*1000), ""
			if i == 0 {
				need += " requests"
			}
		}
		if i > 0 {
			takes = append(takes, fmt.Sprintf("±%.0f %% %s", 100*p.HalfWidth, need))
			continue
		}
		takes = append(takes, fmt.Sprintf("±%.0f %% takes %s%s", 100*p.HalfWidth, about, need))
	}
	text := strings.Join(takes, ", ")
	if o.Budget.Work > 0 && text != "" { // the simulation is quicker
		text = "on a server, " + text
	}
	var within []string
	if o.Budget.Seconds > 0 {
		within = append(within, say.RoundedTime(o.Budget.Seconds))
	}
	switch {
	case o.Budget.Work > 0:
		within = append(within, "a few seconds of simulation")
	case o.Budget.Requests > 0:
		within = append(within, say.Plural(o.Budget.Requests, "request"))
	}
	if len(within) == 0 || o.Requests == 0 {
		return text
	}
	gives := strings.Join(within, " and ") + ": bounds of the capacity, no estimate"
	if o.HalfWidth > 0 {
		gives = fmt.Sprintf("%s: the capacity to about ±%.0f %%",
			strings.Join(within, " and "), 100*o.HalfWidth)
	}
	if text != "" {
		gives += "; " + text
	}
	return gives
}
