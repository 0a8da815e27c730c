package explain

import (
	"cmp"
	"math"
	"slices"

	"pitot/internal/results/metric"
	"pitot/internal/stats"
)

// Request is one request as its client saw it. Times are seconds on one clock; what is
// not known is NaN.
type Request struct {
	Due, Sent, First, Last float64
	Held, Lag              float64 // of the time from due to sent: waiting for a slot or turn, and the client's own delay
	Connect                float64 // a TCP connect for it, NaN where the connection was there
	Input, Output          int     // tokens
	Chunks                 []float64
	TPOT, Stall            float64 // s, as measured
	Measured               bool    // in the window
}

// ttft is counted from when it was due.
func (r *Request) ttft() float64 { return r.First - r.Due }

// metricValue is the request's of a metric in seconds.
func (r *Request) metricValue(m metric.Name) float64 {
	switch m {
	case metric.TTFT:
		return r.ttft()
	case metric.TPOT:
		return r.TPOT
	case metric.Stall:
		return r.Stall
	case metric.E2E:
		return r.Last - r.Due
	}
	return math.NaN()
}

// SymptomValue gives the value of a symptom in milliseconds, ok false where no request has one.
func SymptomValue(s Symptom, list []Request) (float64, bool) {
	v := s.valuesOf(list)
	for i := range v {
		v[i] *= 1e3
	}
	return statistic(s.Of, v)
}

// valuesOf are those of the symptom's metric in seconds.
func (s Symptom) valuesOf(list []Request) (v []float64) {
	for i := range list {
		if x := list[i].metricValue(s.Metric); list[i].Measured && !math.IsNaN(x) {
			v = append(v, x)
		}
	}
	return v
}

// statistic is the one of a name; it sorts v.
func statistic(of string, v []float64) (float64, bool) {
	if len(v) == 0 {
		return 0, false
	}
	stats.SortFloat64(v)
	at := func(p float64) float64 { return v[min(max(int(math.Ceil(p*float64(len(v))-1e-9))-1, 0), len(v)-1)] }
	switch of {
	case "p50":
		return at(.5), true
	case "p90":
		return at(.9), true
	case "p95":
		return at(.95), true
	case "p99":
		return at(.99), true
	}
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v)), true
}

// Statistic is the mean or a percentile of values in any order.
func Statistic(of string, v []float64) (float64, bool) { return statistic(of, slices.Clone(v)) }

// ObserveFacts finds the facts that a client's own times tell of a symptom.
func ObserveFacts(s Symptom, list []Request) Facts {
	f := Facts{}
	var set setter = func(sig Signal, x float64, unit string) {
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			f.Set(sig, x, unit, FromClient)
		}
	}
	var ttft, tpot, answers, connects, input, held, lag, connecting []float64
	for i := range list {
		r := &list[i]
		if x := r.First - r.Sent; !math.IsNaN(x) {
			ttft = append(ttft, x*1e3)
		}
		if x := r.Last - r.First; !math.IsNaN(x) {
			answers = append(answers, x*1e3)
		}
		if !r.Measured {
			continue
		}
		if !math.IsNaN(r.TPOT) {
			tpot = append(tpot, r.TPOT*1e3)
		}
		input = append(input, float64(r.Input))
		held, lag = append(held, r.Held*1e3), append(lag, r.Lag*1e3)
		connecting = append(connecting, max(r.Sent-r.Due-r.Held-r.Lag, 0)*1e3)
	}
	set(Answered, float64(len(ttft)), "")
	set.mean(HeldMean, held, "ms")
	set.mean(LagMean, lag, "ms")
	set.mean(ConnectMean, connecting, "ms")
	if len(input) > 0 {
		set(PromptMost, slices.Max(input), "")
	}
	set.setSparedShare(s, list, LagShare, func(r *Request) float64 { return r.Lag })
	set.setSparedShare(s, list, HeldShare, func(r *Request) float64 { return r.Held })
	for i := range list {
		if x := list[i].Connect; !math.IsNaN(x) && x > 0 {
			connects = append(connects, x*1e3)
		}
	}
	set.mean(TTFTMean, ttft, "ms")
	set.mean(TPOTMean, tpot, "ms")
	set.mean(AnswerMean, answers, "ms")
	if mean, ok := Statistic("mean", answers); ok && len(answers) > 1 {
		squares := 0.0
		for _, x := range answers {
			squares += (x - mean) * (x - mean)
		}
		n := float64(len(answers))
		set(AnswerError, math.Sqrt(squares/(n-1)/n), "ms")
	}
	set.mean(PromptMean, input, "")
	if len(ttft) > 0 {
		slices.Sort(ttft)
		set(TTFTLeast, ttft[len(ttft)/20], "ms")
	}
	if x, ok := Statistic("p50", connects); ok && len(connects) >= 3 {
		set(RoundTrip, x, "ms")
	}
	observeFlight(list, set)
	observeArrivals(list, set)
	observeTail(s, list, set)
	return f
}

// setter takes a fact of the client's.
type setter func(s Signal, x float64, unit string)

// mean sets that of some values, where there are any.
func (set setter) mean(s Signal, v []float64, unit string) {
	if x, ok := Statistic("mean", v); ok {
		set(s, x, unit)
	}
}

// setSparedShare sets the share of a symptom that goes where each request is spared a part of its
// time.
func (set setter) setSparedShare(s Symptom, list []Request, share Signal, spared func(r *Request) float64) {
	if !slices.Contains(whole, s.Metric) {
		return
	}
	var was, is []float64
	for i := range list {
		if r := &list[i]; r.Measured && !math.IsNaN(r.metricValue(s.Metric)) {
			was = append(was, r.metricValue(s.Metric))
			is = append(is, r.metricValue(s.Metric)-spared(r))
		}
	}
	before, ok := statistic(s.Of, was)
	if after, _ := statistic(s.Of, is); ok && before > 0 {
		set(share, max(1-after/before, 0), "share")
	}
}

// piece is the time within which what comes of a stream is one arrival in several pieces:
// no engine makes two tokens of a stream in less.
const piece = 0.5e-3 // s

// observeArrivals looks at the gaps between arrivals of each stream. The last one of a
// stream is not looked at, for what is held back is let go when the answer ends.
func observeArrivals(list []Request, set setter) {
	var gaps, inner []float64
	tokens, arrivals := 0, 0
	for i := range list {
		r := &list[i]
		if !r.Measured || len(r.Chunks) < 2 {
			continue
		}
		inner = inner[:0]
		at := r.Chunks[0]
		for _, t := range r.Chunks[1:] {
			if t-at > piece {
				inner = append(inner, (t-at)*1e3)
			}
			at = t
		}
		arrivals += len(inner)
		gaps = append(gaps, inner[:max(len(inner)-1, 0)]...)
		tokens += r.Output - 1
	}
	if arrivals < 20 || len(gaps) < 10 {
		return
	}
	stats.SortFloat64(gaps)
	q := func(p float64) float64 { return gaps[int(p*float64(len(gaps)-1))] }
	set(PerArrival, float64(tokens)/float64(arrivals), "")
	set(GapMedian, q(.5), "ms")
	set(Evenness, (q(.75)-q(.25))/max(q(.5), 1e-9), "")
}

// observeFlight counts how many requests were under way in the mean.
func observeFlight(list []Request, set setter) {
	begin, end, sum := math.Inf(1), math.Inf(-1), 0.0
	for i := range list {
		if r := &list[i]; !math.IsNaN(r.Sent) && !math.IsNaN(r.Last) {
			begin, end, sum = min(begin, r.Sent), max(end, r.Last), sum+r.Last-r.Sent
		}
	}
	if end > begin {
		set(InFlight, sum/(end-begin), "")
	}
}

// span is a stretch of time.
type span struct{ from, to float64 }

// overlap returns the part of a span that lies in others. The others are in order and apart.
func (s span) overlap(of []span) (sum float64) {
	for _, x := range of {
		sum += max(min(s.to, x.to)-max(s.from, x.from), 0)
	}
	return sum
}

func lengthsOf(list []span) (lengths []float64) {
	for _, s := range list {
		lengths = append(lengths, s.to-s.from)
	}
	return lengths
}

// observeTail looks at the requests that have the symptom: the slowest tenth where it is
// a tail, else all.
func observeTail(s Symptom, list []Request, set setter) {
	least := math.Inf(-1)
	if s.Of != "mean" && s.Of != "p50" {
		if x, ok := statistic("p90", s.valuesOf(list)); ok {
			least = x
		}
	}
	silences, shortest := silencesOf(list)
	frozen := byClock(silences)
	asked := promptsOf(list)
	stopped := silencesWithoutPrompt(silences, asked)
	var in, silent, stops, coincide, beside, besideBy []float64
	var firsts []float64
	begin, end := math.Inf(1), math.Inf(-1)
	for i := range list {
		if !math.IsNaN(list[i].First) {
			firsts = append(firsts, list[i].First)
			begin, end = min(begin, list[i].Due), max(end, list[i].Last)
		}
	}
	slices.Sort(firsts)
	chance := []float64{}
	for i := range list {
		r := &list[i]
		if x := r.metricValue(s.Metric); !r.Measured || math.IsNaN(x) || x < least {
			continue
		}
		stall := r.longestGap()
		of := stall
		if s.Metric == metric.TTFT {
			of = span{r.Sent, r.First}
		}
		in = append(in, of.overlap(frozen)*1e3)
		silent = append(silent, (of.overlap(silences)+shortest)*1e3)
		stops = append(stops, of.overlap(stopped)*1e3)
		if stall.to > stall.from {
			const near = 1e-3 // s: tokens of one step leave the server one after the other
			n := 0
			k, _ := slices.BinarySearch(firsts, stall.from)
			for ; k < len(firsts) && firsts[k] <= stall.to+near; k++ {
				if firsts[k] != r.First {
					n++
				}
			}
			coincide = append(coincide, float64(min(n, 1)))
			was, by := asked.besidePrompt(r, stall, max(end-begin, 1e-9))
			beside, besideBy = append(beside, was), append(besideBy, by)
			rate := float64(len(firsts)) / max(end-begin, 1e-9)
			chance = append(chance, 1-math.Exp(-rate*(r.medianGap()+near)))
		}
	}
	if enough := silences != nil; enough {
		set.mean(FrozenInTail, in, "ms")
		set.mean(SilentInTail, silent, "ms")
		set.mean(StoppedInTail, stops, "ms")
	}
	set.mean(AtFirsts, coincide, "share")
	set.mean(AtFirstsBy, chance, "share")
	set.mean(Beside, beside, "share")
	set.mean(BesideBy, besideBy, "share")
	if len(frozen) > 0 {
		x, _ := statistic("p50", lengthsOf(frozen))
		set(Standstill, x*1e3, "ms")
	}
}

// longestGap is the stretch of the request's longest gap.
func (r *Request) longestGap() (s span) {
	for k := 1; k < len(r.Chunks); k++ {
		if r.Chunks[k]-r.Chunks[k-1] > s.to-s.from {
			s = span{r.Chunks[k-1], r.Chunks[k]}
		}
	}
	return s
}

// medianGap is that of the request's gaps in seconds.
func (r *Request) medianGap() float64 {
	var v []float64
	for k := 1; k < len(r.Chunks); k++ {
		v = append(v, r.Chunks[k]-r.Chunks[k-1])
	}
	x, _ := statistic("p50", v)
	return x
}

const (
	leastStandstill = 0.05 // s
	fewStandstills  = 4
	onTheBeat       = 0.04 // of the period
	leastPeriod     = 0.3  // s
	mostPeriods     = 6    // between two: further apart any time is near a multiple
)

// silencesOf are the times at which nothing came from any stream while answers were under way;
// nil where too few came to tell. Shorter ones than least are not among them.
func silencesOf(list []Request) (out []span, least float64) {
	var all []float64
	type change struct {
		at   float64
		open int
	}
	var changes []change
	for i := range list {
		r := &list[i]
		if len(r.Chunks) < 2 {
			continue
		}
		all = append(all, r.Chunks...)
		changes = append(changes, change{r.Chunks[0], 1}, change{r.Chunks[len(r.Chunks)-1], -1})
	}
	if len(all) < 50 {
		return nil, 0
	}
	stats.SortFloat64(all)
	stats.SortStable(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	var gaps []float64
	for i := 1; i < len(all); i++ {
		if g := all[i] - all[i-1]; g > 1e-4 {
			gaps = append(gaps, g)
		}
	}
	usual, ok := statistic("p50", gaps)
	if !ok {
		return nil, 0
	}
	out, least = []span{}, max(leastStandstill, 4*usual)
	open, at := 0, 0
	for i := 1; i < len(all); i++ {
		for at < len(changes) && changes[at].at <= all[i-1] {
			open += changes[at].open
			at++
		}
		if all[i]-all[i-1] > least && open > 0 {
			out = append(out, span{all[i-1], all[i]})
		}
	}
	return out, least
}

// byClock are the silences that come again and again after the same time.
func byClock(silences []span) []span {
	out := slices.Clone(silences)
	// Prompts make silences too, of other lengths: the longer ones are asked by themselves.
	for len(out) >= fewStandstills {
		if byTheClock(out) {
			return out
		}
		shortest := math.Inf(1)
		for _, x := range out {
			shortest = min(shortest, x.to-x.from)
		}
		out = slices.DeleteFunc(out, func(x span) bool { return x.to-x.from <= 1.15*shortest })
	}
	return nil
}

// silencesWithoutPrompt are the silences that no prompt of ours makes: no request waited for its
// first token as they began, or they are far longer than most, while a step has a budget of prompt
// tokens.
func silencesWithoutPrompt(silences []span, asked *prompts) []span {
	most, _ := statistic("p90", lengthsOf(silences))
	return slices.DeleteFunc(slices.Clone(silences), func(x span) bool {
		return asked.hasPendingPrompt(x) && (len(silences) < fewLengths || x.to-x.from < farLonger*most)
	})
}

// A silence that is so many times as long as nine of ten others, of so many, is no step.
const fewLengths, farLonger = 20, 4

// byTheClock says that silences end again and again after the same time.
func byTheClock(list []span) bool {
	var steps []float64
	for i := 1; i < len(list); i++ {
		steps = append(steps, list[i].to-list[i-1].to)
	}
	for _, p := range steps {
		on := 0
		for _, x := range steps {
			if n := math.Round(x / p); p > leastPeriod && n >= 1 && n <= mostPeriods && math.Abs(x-n*p) <= onTheBeat*p {
				on++
			}
		}
		if on >= fewStandstills-1 && float64(on) >= 0.8*float64(len(steps)) {
			return true
		}
	}
	return false
}
