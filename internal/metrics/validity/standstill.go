package validity

import (
	"iter"
	"maps"
	"math"
	"math/bits"
	"slices"

	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// Something that stops a server or a machine by the clock, a collector of
// garbage, a scrape, a quota of the processor that is used up each second, lets
// all streams stand still together, again and again after the same time. No
// percentile shows that. It is looked for in the times at which nothing came from
// any stream while answers were under way. A prompt may hold up the others too,
// and comes by the clock where arrivals do, or where users take turns in step: so
// first it is asked of times at which no prompt was waited for, and then of the
// others, if nothing about prompts goes by the same clock.

const (
	// quietShift makes bins of 2²¹ ns, 2.1 ms.
	quietShift = 21
	// mostBins bounds what is kept of a window: 39 hours.
	mostBins = 1 << 26
	// leastQuiet is the number of empty bins that make a standstill, 17 ms. manyQuiet is the factor
	// by which it must be longer than the usual silence after a chunk.
	leastQuiet, manyQuiet = 8, 4
	// leastStands is the number of standstills that show a period. onTheBeat is the distance from a
	// multiple of the period within which the time between two of them must lie, as a share of the
	// period. mostOnTheBeat is the share of them that must. By chance 6 % do.
	leastStands, onTheBeat, mostOnTheBeat = 6, .03, .8
	// fewTimes is the number of the times between many standstills that are tried first. At least
	// half of them are multiples of a period that most are multiples of. Of others 6 % are.
	fewTimes = 64
	// justBefore is the time before a standstill, in ns, within which the request was sent whose
	// prompt may be the cause. inStepLength is the resultant length from which on requests are sent
	// or answered by the clock themselves. The length is 1 if all are at one phase, 0 if at any.
	justBefore, inStepLength = 50e6, .35
)

// Arrivals is a bit for each bin of the window in which a chunk came.
type Arrivals struct{ bins []uint64 }

// Add takes the time of a chunk since the window began, in nanoseconds.
func (a *Arrivals) Add(since int64) {
	i := int(since >> quietShift)
	if i < 0 || i >= mostBins {
		return
	}
	for i/64 >= len(a.bins) {
		a.bins = append(a.bins, make([]uint64, 1+len(a.bins))...)
	}
	a.bins[i/64] |= 1 << (i % 64)
}

// silence is a stretch of empty bins, [from, to).
type silence struct{ from, to int }

// eachSilence yields those of so many bins.
func (a *Arrivals) eachSilence(bins int) iter.Seq[silence] {
	return func(yield func(silence) bool) {
		from := 0
		for w, word := range a.bins { // most are empty where requests are few
			for ; word != 0; word &= word - 1 {
				i := 64*w + bits.TrailingZeros64(word)
				if i >= bins {
					return
				}
				if i > from && !yield(silence{from, i}) {
					return
				}
				from = i + 1
			}
		}
	}
}

// usual is the median of how many empty bins follow one with a chunk. Of a busy
// server it is 0, for all the silences there are may be standstills.
func (a *Arrivals) usual(bins int) int {
	lengths := map[int]int{} // how many silences are so long
	n := 0
	for s := range a.eachSilence(bins) {
		lengths[s.to-s.from]++
		bins -= s.to - s.from
		n++
	}
	i := bins/2 - (bins - n)
	if i < 0 || i >= n {
		return 0
	}
	for _, length := range slices.Sorted(maps.Keys(lengths)) {
		if i -= lengths[length]; i < 0 {
			return length
		}
	}
	return 0
}

// Times are when a request of the cohort was due, was sent, had its first token
// and its last, and was done; negative where it never came to that.
type Times struct {
	Due, Sent, First, Last, Done int64
	Again                        int64 // how much later than its first attempt it was sent, 0 without another
}

// firstSent is when the first attempt was sent: another is later for the server's sake.
func (t *Times) firstSent() int64 { return t.Sent - t.Again }

// FindStandstills looks for standstills that come by the clock, nil if there are none;
// cohort are the window's requests.
func (a *Arrivals) FindStandstills(c *Conditions, cohort iter.Seq[Times]) *result.Standstills {
	if !c.Ended() {
		return nil
	}
	bins := int((c.T1 - c.T0) >> quietShift)
	least := max(leastQuiet, manyQuiet*a.usual(bins))
	var silences []silence
	n := 0
	for s := range a.eachSilence(bins) {
		if n++; s.to-s.from >= least {
			silences = append(silences, s)
		}
	}
	if n < leastStands {
		return nil
	}
	binStart := func(bin int) int64 { return c.T0 + int64(bin)<<quietShift }
	var asked []int64
	for _, s := range silences {
		asked = append(asked, timesDuring(binStart(s.from), binStart(s.to))...)
	}
	under := underWayAt(cohort, asked)
	var alone, all []silence
	for _, s := range silences {
		answers, prompts := under.countDuring(binStart(s.from), binStart(s.to))
		if answers > 0 {
			all = append(all, s)
		}
		if answers > 0 && prompts == 0 {
			alone = append(alone, s)
		}
	}
	if s, _ := periodicStandstills(alone, bins); s != nil {
		return s
	}
	s, stands := periodicStandstills(all, bins)
	if s == nil {
		return nil
	}
	frozen := int64(0)
	starts := make([]int64, len(stands))
	for i := range stands {
		starts[i] = binStart(stands[i].from)
		frozen += binStart(stands[i].to) - binStart(stands[i].from)
	}
	window := span{c.T0, c.T1}
	before := min(justBefore, int64(s.EveryS*1e9/4))
	asked = append(append(asked[:0], window.from, window.to), window.lookTimes()...)
	for _, t := range starts {
		asked = append(asked, t+1, t, t-before)
	}
	under = underWayAt(cohort, asked)
	if inStep(cohort, s.EveryS*1e9, window) || under.waitsAt(starts, window) || under.sentBefore(starts, before, frozen, window) {
		return nil
	}
	return s
}

// periodicStandstills gives the period of standstills, nil if they have none, and which have
// it. Others may have come in between, and are most often shorter: so it is asked
// of the longest ones too.
func periodicStandstills(stands []silence, bins int) (*result.Standstills, []silence) {
	for len(stands) >= leastStands {
		if every, on := findPeriod(stands); every > 0 {
			var length []float64
			for _, s := range stands {
				length = append(length, float64(s.to-s.from))
			}
			slices.Sort(length)
			const bin = float64(1<<quietShift) / 1e9
			// What stands still as long as it runs, or longer, is slow; and few of
			// many that should have come may have a multiple of the period.
			beats := float64(bins) / every
			if usual := stats.Percentile(length, .5); usual < every/2 && float64(on+1) > beats/4 {
				return &result.Standstills{EveryS: every * bin, ForMS: usual * bin * 1e3, N: on + 1}, stands
			}
		}
		shortest := slices.MinFunc(stands, func(a, b silence) int { return (a.to - a.from) - (b.to - b.from) })
		stands = slices.DeleteFunc(slices.Clone(stands), func(s silence) bool { return s.to-s.from <= shortest.to-shortest.from })
	}
	return nil, nil
}

// findPeriod is the time, in bins, of which most of the times between standstills
// are multiples, 0 if there is none, and how many are. Standstills may be missing,
// so it is tried with each of those times; of many a part, evenly taken, tells first
// which are worth it.
func findPeriod(stands []silence) (every float64, on int) {
	var between []float64
	for i := range stands[1:] {
		between = append(between, float64(stands[i+1].from-stands[i].from))
	}
	for _, p := range slices.Compact(slices.Sorted(slices.Values(between))) {
		near := max(onTheBeat, 1.5/p) // what is known to a bin is no finer than that
		if near > .1 {
			continue
		}
		if step := len(between) / fewTimes; step > 1 {
			on, of := 0, 0
			for i := 0; i < len(between); i += step {
				if k := math.Round(between[i] / p); k >= 1 && math.Abs(between[i]/p-k) <= near {
					on++
				}
				of++
			}
			if float64(on) < mostOnTheBeat/2*float64(of) {
				continue
			}
		}
		on, beats, span := 0, 0., 0.
		for _, d := range between {
			if k := math.Round(d / p); k >= 1 && math.Abs(d/p-k) <= near {
				on++
				beats, span = beats+k, span+d
			}
		}
		if float64(on) >= mostOnTheBeat*float64(len(between)) {
			return span / beats, on
		}
	}
	return 0, 0
}

// underWay says what was under way at some times: how many prompts had been sent
// before them, and how many answers begun and ended.
type underWay struct {
	times             []int64 // in order
	sent, first, last []int64 // how many were before
}

// underWayAt looks at times, in one pass over the requests.
func underWayAt(cohort iter.Seq[Times], times []int64) *underWay {
	slices.Sort(times)
	u := &underWay{times: slices.Compact(times)}
	counts := [3][]int64{}
	for i := range counts {
		counts[i] = make([]int64, len(u.times)+1)
	}
	for q := range cohort {
		if q.Sent < 0 || q.First < 0 || q.Last < 0 || len(u.times) == 0 {
			continue
		}
		for i, t := range [3]int64{q.Sent, q.First, q.Last} {
			counts[i][u.indexFrom(t+1)]++ // it is before those times
		}
	}
	for i := range counts {
		for k := range u.times {
			if k > 0 {
				counts[i][k] += counts[i][k-1]
			}
		}
	}
	u.sent, u.first, u.last = counts[0], counts[1], counts[2]
	return u
}

// indexFrom is that of the first time which is not before t.
func (u *underWay) indexFrom(t int64) int {
	i, _ := slices.BinarySearch(u.times, t)
	return i
}

// timesDuring are the times that are looked at for a silence.
func timesDuring(from, to int64) []int64 {
	const bin = 1 << quietShift
	return []int64{from + 1, to - bin, to}
}

// countDuring returns the number of answers that were under way in a silence, and the number of
// prompts that were waited for.
func (u *underWay) countDuring(from, to int64) (answers, prompts int64) {
	// Nothing came meanwhile: what began before from and ended behind to is under
	// way, to a bin.
	at := timesDuring(from, to)
	begun := u.first[u.indexFrom(at[0])]
	return begun - u.last[u.indexFrom(at[1])], u.sent[u.indexFrom(at[2])] - begun
}

// span is a time from one stamp to another, in ns.
type span struct{ from, to int64 }

// lookTimes are times evenly spread, with what happened at them.
func (s span) lookTimes() []int64 {
	const looks = 4096
	times := make([]int64, looks)
	for i := range times {
		times[i] = s.from + (s.to-s.from)/looks*int64(i) + 1
	}
	return times
}

// inStep says that requests are sent, or answered, at one phase of a period.
func inStep(cohort iter.Seq[Times], every float64, within span) bool {
	var x, y, n [2]float64
	for q := range cohort {
		if q.Sent < 0 || q.First < 0 || q.Last < 0 {
			continue
		}
		for i, t := range [2]int64{q.Sent, q.Last} {
			if t >= within.from && t < within.to {
				sin, cos := math.Sincos(2 * math.Pi * float64(t-within.from) / every)
				x[i], y[i], n[i] = x[i]+cos, y[i]+sin, n[i]+1
			}
		}
	}
	for i := range n {
		if n[i] > 0 && math.Hypot(x[i], y[i])/n[i] > inStepLength {
			return true
		}
	}
	return false
}

// waitsAt says that a prompt is waited for at more of the starts than its share
// of all time would have it, by two standard deviations of a binomial
// distribution.
func (u *underWay) waitsAt(starts []int64, within span) bool {
	waits := func(t int64) bool { return u.sent[u.indexFrom(t)] > u.first[u.indexFrom(t)] }
	at := 0
	for _, t := range starts {
		if waits(t + 1) {
			at++
		}
	}
	looks, some := within.lookTimes(), 0
	for _, t := range looks {
		if waits(t) {
			some++
		}
	}
	n, p := float64(len(starts)), float64(some)/float64(len(looks))
	return float64(at) > n*p+2*math.Sqrt(n*p*(1-p))+.5
}

// sentBefore says that in the time before each start more requests were sent than
// in the rest of the time that was not frozen, by three standard deviations of a
// Poisson distribution.
func (u *underWay) sentBefore(starts []int64, before, frozen int64, within span) bool {
	sent := func(from, to int64) int64 { return u.sent[u.indexFrom(to)] - u.sent[u.indexFrom(from)] }
	seen := int64(0)
	for _, t := range starts {
		seen += sent(t-before, t)
	}
	expected := float64(sent(within.from, within.to)) * float64(len(starts)) * float64(before) / float64(max(within.to-within.from-frozen, 1))
	return float64(seen) > expected+3*math.Sqrt(expected)+.5
}
