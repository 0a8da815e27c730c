package search

import (
	"context"
	"math"
	"slices"

	"pitot/internal/stat"
)

// What varies between windows near a limit is mostly the arrivals and the lengths, and
// those are known: so the schedule of a search is sent to the twin again. The twin is not the
// server. It is slowed by k, the limits as they are, until as many of its requests violate
// them as of the server's. An engine slowed by k is the same engine to which everything comes
// k times as fast, with limits k times as tight, so that one engine answers for every k. What
// it says of the capacity, see [search.explain].

// Twin is an engine in virtual time on which a search is done again.
type Twin interface {
	// Again sends the requests of steps of the search, warm-ups and all that came behind
	// included, to the twin slowed by k. It counts for each step those of its window that
	// violate each limit, and in the last place those that violate any.
	Again(ctx context.Context, steps []int, k float64) ([][]int, error)
	// Long puts loads on the twin as it is, each by itself, and gives of each for each
	// limit, in the order of the window's requests, how many times as long as it allows
	// each of them took.
	Long(ctx context.Context, loads []float64, requests int) ([][][]float64, error)
}

const (
	// lattice is the step of ln k on which replays are made, and slowest the largest
	// of them: k from 1/3 to 3.
	lattice, slowest = 0.0125, 88
	coarse           = 16 // lattice steps between the first replays
	// nearLimit is how many times the share that may violate is near it, to either side.
	nearLimit = 3
	// noneSeen stands for no violation where a k is to be found.
	noneSeen = 0.7
	// weighings is how often windows are weighed by the k found last.
	weighings = 3
	// inZone is how many replays determine where the violations agree.
	inZone = 8
	// loadStep is the lattice of the logarithms of long runs' loads.
	loadStep = 0.01
	// roughLong and twinLong are how many requests a long run has at the most where the
	// twin's capacity is looked for, and where it is read off at longLoads loads: those have
	// together longTimes as many as the search had in windows, so that what chance leaves of
	// the twin is little beside what it leaves of the server, and leastLong each.
	roughLong, longLoads           = 3_000, 9
	leastLong, twinLong, longTimes = 4_000, 40_000, 10
	// Where the twin's capacity only says which load to look at, a share of it is enough.
	guessLong = 8_000
	// outside is up to how many times outside the loads of long runs a capacity is believed.
	outside = 1.5
)

// replayer calibrates a twin on the steps of a search. What was replayed is kept.
type replayer struct {
	ctx   context.Context
	twin  Twin
	cfg   *FindConfig
	trail []Step
	from  float64 // about the twin's capacity
	long  int     // requests of a long run
	guess int     // of one that only says which load to look at
	again map[[2]int][]int
	runs  map[[2]int][][]float64 // long runs by load and length
	err   error                  // the first: nothing that is worked out holds then
}

// newReplayer is for a search that had so many requests in windows.
func newReplayer(ctx context.Context, cfg *FindConfig, requests int) *replayer {
	long := min(max(longTimes*requests/longLoads, leastLong), twinLong)
	return &replayer{ctx: ctx, twin: cfg.Twin, cfg: cfg, long: long, guess: min(long, guessLong), again: map[[2]int][]int{}, runs: map[[2]int][][]float64{}}
}

// window is one that was measured, as far as it calibrates a claim.
type window struct {
	step   int
	load   float64
	n      int
	seen   float64 // violations that the twin could make
	errors int
	weight float64 // in the sums that are to agree
}

// weigh takes a window for the less the more its share is above what may violate.
func (w *window) weigh(share, eps float64) {
	x := share / (2 * eps)
	w.weight = 1 / (1 + x*x)
}

// windows of a claim.
func (r *replayer) windows(claim int) (list []window) {
	for i := range r.trail {
		s := &r.trail[i].Seen
		if s.Counts() {
			list = append(list, window{i, r.trail[i].Load, s.N, float64(max(0, s.violations(claim)-s.Errors)), s.Errors, 1})
		}
	}
	return list
}

// total is the weighted sum of the requests of windows that violate a claim on the twin
// slowed by k, by the lattice; each is how many of each window do.
func (r *replayer) total(claim int, of []window, at int) (each []float64, sum float64) {
	var missing []int
	for _, w := range of {
		if _, ok := r.again[[2]int{w.step, at}]; !ok {
			missing = append(missing, w.step)
		}
	}
	if len(missing) > 0 && r.err == nil {
		var counts [][]int
		counts, r.err = r.twin.Again(r.ctx, missing, math.Exp(lattice*float64(at)))
		for i, c := range counts {
			r.again[[2]int{missing[i], at}] = c
		}
	}
	if r.err != nil {
		return make([]float64, len(of)), 0
	}
	for _, w := range of {
		c := r.again[[2]int{w.step, at}]
		x := float64(c[len(c)-1])
		if claim != Joint {
			x = float64(c[claim])
		}
		each = append(each, x)
		sum += w.weight * x
	}
	return each, sum
}

// profile is the violations of the twin by ln k on the lattice: raw as they are, rising
// as they would be if they only ever rose.
type profile struct {
	at          []int
	raw, rising []float64
}

// profile replays windows over all of 1/3 to 3, and finer where as many violate as wanted.
func (r *replayer) profile(claim int, of []window, want float64) profile {
	totals := map[int]float64{}
	var at []int
	look := func(j int) {
		if _, ok := totals[j]; !ok {
			_, totals[j] = r.total(claim, of, j)
			at = append(at, j)
		}
	}
	for j := -slowest; j <= slowest; j += coarse {
		look(j)
	}
	slices.Sort(at)
	low, high := want/3-0.5, 3*want+2
	for step := coarse / 2; step >= 1; step /= 2 {
		zone := 0
		var between []int
		for i, j := range at {
			if x := totals[j]; x >= low && x <= high {
				zone++
			}
			if i > 0 && j-at[i-1] == 2*step {
				if a, b := totals[at[i-1]], totals[j]; max(a, b) >= low && min(a, b) <= high {
					between = append(between, j-step)
				}
			}
		}
		if zone >= inZone {
			break
		}
		for _, j := range between {
			look(j)
		}
		slices.Sort(at)
	}
	p := profile{at: at}
	for _, j := range at {
		p.raw = append(p.raw, totals[j])
	}
	p.rising = rising(p.raw)
	return p
}

// rising is the nearest sequence that never falls, by pooling adjacent violators
// (Ayer and others, Annals of Mathematical Statistics 26, 1955).
func rising(xs []float64) []float64 {
	type pool struct {
		mean float64
		n    int
	}
	var pools []pool
	for _, x := range xs {
		pools = append(pools, pool{x, 1})
		for k := len(pools) - 1; k > 0 && pools[k-1].mean > pools[k].mean; k-- {
			a, b := pools[k-1], pools[k]
			pools = append(pools[:k-1], pool{(a.mean*float64(a.n) + b.mean*float64(b.n)) / float64(a.n+b.n), a.n + b.n})
		}
	}
	var out []float64
	for _, p := range pools {
		for range p.n {
			out = append(out, p.mean)
		}
	}
	return out
}

// reach is between which ln k so many violate: infinite where that is beyond the lattice.
func (p profile) reach(want float64) (lo, hi float64) {
	scale := func(x float64) float64 { return math.Log(x + 0.5) }
	y := scale(want)
	lo, hi = math.Inf(1), math.Inf(-1)
	n := len(p.at)
	for i := range n - 1 {
		a, b := scale(p.rising[i]), scale(p.rising[i+1])
		if y < a || y > b {
			continue
		}
		from, to := float64(p.at[i]), float64(p.at[i+1])
		x, z := from, to
		if b > a {
			x = from + (to-from)*(y-a)/(b-a)
			z = x
		}
		lo, hi = min(lo, x), max(hi, z)
	}
	switch {
	case y < scale(p.rising[0]):
		return math.Inf(-1), math.Inf(-1)
	case y > scale(p.rising[n-1]):
		return math.Inf(1), math.Inf(1)
	}
	if lo <= -slowest {
		lo = math.Inf(-1)
	}
	if hi >= slowest {
		hi = math.Inf(1)
	}
	return lo * lattice, hi * lattice
}

// middle is the ln k at which so many violate: by a line through the replays that come
// near, as far as there are enough, else between neighbours.
func (p profile) middle(want float64) float64 {
	lo, hi := p.reach(want)
	if at := (lo + hi) / 2; math.IsInf(lo, 0) || math.IsInf(hi, 0) {
		return at
	}
	scale := func(x float64) float64 { return math.Log(x + 0.5) }
	var n, sx, sy, xx, xy float64
	from, to := math.Inf(1), math.Inf(-1)
	for i, at := range p.at {
		x, y := float64(at)*lattice-(lo+hi)/2, scale(p.raw[i])-scale(want)
		if math.Abs(y) > math.Log(nearLimit) {
			continue
		}
		n, sx, sy, xx, xy = n+1, sx+x, sy+y, xx+x*x, xy+x*y
		from, to = min(from, x), max(to, x)
	}
	slope := (n*xy - sx*sy) / (n*xx - sx*sx)
	x := (sx*slope - sy) / n / slope
	if n < 4 || !(slope > 0) || !(x >= from && x <= to) {
		x = 0
	}
	return (lo+hi)/2 + x
}

// runLong makes long runs of the twin at loads of the lattice, and keeps how many times as
// long as each limit allows requests took, ascending, and in the last place as any does.
func (r *replayer) runLong(places []int, n int) {
	var missing []int
	var loads []float64
	for _, at := range places {
		if r.runs[[2]int{at, n}] == nil {
			missing, loads = append(missing, at), append(loads, math.Exp(loadStep*float64(at)))
		}
	}
	if len(missing) == 0 || r.err != nil {
		return
	}
	var all [][][]float64
	if all, r.err = r.twin.Long(r.ctx, loads, n); r.err != nil {
		return
	}
	for i, of := range all {
		any := slices.Clone(of[0])
		for _, times := range of[1:] {
			for i, x := range times {
				any[i] = max(any[i], x)
			}
		}
		of = append(slices.Clone(of), any)
		for l := range of {
			of[l] = slices.Clone(of[l])
			slices.Sort(of[l])
		}
		r.runs[[2]int{missing[i], n}] = of
	}
}

// share of a claim's violations on the twin slowed by k, at the load of a long run by
// what it is of the twin as it is.
func (r *replayer) share(claim, at, n int, lnk float64) stat.Share {
	r.runLong([]int{at}, n)
	of := r.runs[[2]int{at, n}]
	if of == nil {
		return stat.Share{Load: 1, N: 1} // the twin failed
	}
	times := of[len(of)-1]
	if claim != Joint {
		times = of[claim]
	}
	below, _ := slices.BinarySearch(times, math.Exp(-lnk))
	return stat.Share{Load: math.Exp(loadStep*float64(at) - lnk), Violations: len(times) - below, N: len(times)}
}

// slowTwin is the share of violations of the twin slowed by k, by the load.
type slowTwin struct {
	stat.Logistic
	runs     []stat.Share
	capacity float64
	se       float64 // of its logarithm
}

// expect is the expected share at a load: by the long runs about it, for the curve is no
// straight line in the logarithms far from the limit.
func (s *slowTwin) expect(load float64) float64 {
	about := slices.Clone(s.runs)
	for i := range about {
		x := s.B * math.Log(about[i].Load/load)
		about[i].Less = 1 - math.Exp(-x*x/2)
	}
	if f := stat.FitLogistic(about, stat.Prior{Mean: s.B, SD: s.B / 2}); f.Reason == "" && f.B > 0 {
		return f.ShareAt(load)
	}
	return s.ShareAt(load)
}

// places are the loads of long runs that lie around where the twin slowed by k violates
// a claim as often as may be: from a third of that to so many times as often.
func (r *replayer) places(claim int, eps, lnk, near, most float64) []int {
	const stride, tries = 8, 60
	at := int(math.Round((math.Log(near)+lnk)/loadStep/stride)) * stride
	shares := map[int]float64{}
	look := func(j int) float64 {
		s := r.share(claim, j, roughLong, lnk)
		shares[j] = (float64(s.Violations) + 0.5) / (float64(s.N) + 1)
		return shares[j]
	}
	lo, hi := at, at
	if look(at) > eps {
		for range tries {
			if lo -= stride; look(lo) < eps/nearLimit {
				break
			}
		}
	} else {
		for range tries {
			if hi += stride; look(hi) > odds(eps, most) {
				break
			}
		}
	}
	for range tries {
		if shares[hi] > odds(eps, most) {
			break
		}
		hi += stride
		look(hi)
	}
	for range tries {
		if shares[lo] < eps/nearLimit {
			break
		}
		lo -= stride
		look(lo)
	}
	// Where the share goes from a third to three times what may violate, by those rough runs.
	edge := func(want float64) float64 {
		for j := lo; j < hi; j += stride {
			if a, b := math.Log(shares[j]), math.Log(shares[j+stride]); a <= want && want <= b && b > a {
				return float64(j) + stride*(want-a)/(b-a)
			}
		}
		return float64(lo+hi) / 2
	}
	from, to := edge(math.Log(eps/nearLimit)), edge(math.Log(odds(eps, most)))
	step := 1 // a power of two, so that calibrations share runs
	for float64(2*step*(longLoads-1)) <= to-from {
		step *= 2
	}
	middle := int(math.Round((from + to) / 2 / float64(step)))
	var list []int
	for i := range longLoads {
		list = append(list, step*(middle+i-longLoads/2))
	}
	return list
}

// curve is the twin slowed by k, from long runs.
func (r *replayer) curve(claim int, eps, lnk float64, places []int, n int) (slowTwin, bool) {
	r.runLong(places, n)
	var shares []stat.Share
	for _, at := range places {
		shares = append(shares, r.share(claim, at, n, lnk))
	}
	s := slowTwin{Logistic: stat.FitLogistic(shares, stat.Prior{}), runs: shares}
	v := s.LoadAt(eps, 0.95, 0.05)
	switch {
	case !(v.Load > 0):
		s.Reason = v.Reason
		return s, false
	case v.Load < s.Lowest/outside || v.Load > s.Highest*outside:
		s.Reason = "it lies far outside the loads that were asked, where a load of any size violates the limits as often"
		return s, false
	}
	s.capacity, s.se = v.Load, math.Sqrt(max(0, v.SE*v.SE-stat.ModelError*stat.ModelError))
	return s, true
}

// agree finds the k at which as many requests violate a claim. First all windows count,
// those far beyond the limit the less: there the twin's shape rules.
func (r *replayer) agree(claim int, out *Replayed) (use []window, eps, lnk float64, ok bool) {
	use = r.windows(claim)
	first := math.Inf(1)
	for _, w := range use {
		if w.seen > 0 {
			first = min(first, w.load)
		}
	}
	if math.IsInf(first, 1) {
		out.Reason = "no request violated the limit"
		return use, 0, 0, false
	}
	use = slices.DeleteFunc(use, func(w window) bool { return w.load < first/2 })
	for i := range use {
		use[i].weigh(use[i].seen/float64(use[i].n), r.cfg.eps(claim))
	}
	r.from = first
	for range weighings {
		if eps, lnk, ok = r.fitted(claim, use, out); !ok {
			return use, eps, lnk, false
		}
		twin, known := r.curve(claim, eps, lnk, r.places(claim, eps, lnk, first, nearLimit), r.guess)
		if !known {
			out.Reason = "the twin's own capacity is not known: " + twin.Reason
			return use, eps, lnk, false
		}
		r.from = twin.capacity
		for i := range use {
			use[i].weigh(twin.ShareAt(use[i].load), eps)
		}
	}
	return use, eps, lnk, true
}

// longCurve is the twin slowed by k as exactly as it takes, and how it goes on above.
func (r *replayer) longCurve(claim int, eps, lnk float64) (slowTwin, bool) {
	s, ok := r.curve(claim, eps, lnk, r.places(claim, eps, lnk, r.from, nearLimit), r.long)
	if !ok {
		return s, false
	}
	beyond := r.places(claim, eps, lnk, s.capacity, adjustedNear)
	r.runLong(beyond, r.guess)
	for _, at := range beyond {
		s.runs = append(s.runs, r.share(claim, at, r.guess, lnk))
	}
	return s, true
}

// slowed is how many requests of each window violate on the twin slowed by k, between the
// replays to either side.
func (r *replayer) slowed(claim int, use []window, lnk float64) []float64 {
	at := lnk / lattice
	low := math.Floor(at)
	each, _ := r.total(claim, use, int(low))
	above, _ := r.total(claim, use, int(low)+1)
	for i := range each {
		each[i] += (at - low) * (above[i] - each[i])
	}
	return each
}

// fitted is at which ln k windows violate as often as they did, and what may violate but
// for errors.
func (r *replayer) fitted(claim int, use []window, out *Replayed) (eps, lnk float64, ok bool) {
	seen, n, violations := 0.0, 0, 0.0
	out.Errors = 0
	for _, w := range use {
		seen, n, violations, out.Errors = seen+w.weight*w.seen, n+w.n, violations+w.seen, out.Errors+w.errors
	}
	out.Windows, out.Requests, out.Violations = len(use), n, int(violations)
	if eps = r.cfg.eps(claim) - float64(out.Errors)/float64(n); eps <= 0 {
		out.Reason = "more requests fail than may violate the limit"
		return eps, 0, false
	}
	seen = max(seen, noneSeen)
	p := r.profile(claim, use, seen)
	if lnk = p.middle(seen); math.IsInf(lnk, 0) {
		out.Reason = "the twin slowed by 1/3 to 3 does not violate the limits as often"
		return eps, lnk, false
	}
	return eps, lnk, true
}
