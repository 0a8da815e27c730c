package search

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"pitot/internal/stat"
)

// A capacity by replay. What varies between windows near a limit is mostly the arrivals
// and the lengths, and those are known: so the schedule of the search is sent to the twin
// again. The twin is not the server. It is slowed by k, the limits as they are, until as
// many of its requests violate them as of the server's; the capacity is that of the twin
// slowed by k. An engine slowed by k is the same engine to which everything comes k times
// as fast, with limits k times as tight, so that one engine answers for every k.

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

// Replayed is what a replay of the search on the twin says of the capacity.
type Replayed struct {
	Claim    int
	Estimate float64
	// Interval is two-sided. An end that is not known is 0.
	Interval stat.Interval
	K        float64 // how much slower than the twin the server is
	// Rho is the correlation, over windows, of what the server and the twin violated
	// beyond what their loads lead to expect: what the schedule explains.
	Rho        float64
	Windows    int     // that calibrate: their expected share is near what may violate
	Requests   int     // in them
	Violations int     // of them, without errors
	Errors     int     // likewise, that the twin does not make
	Phi        float64 // over-dispersion of what the replay leaves unexplained
	// Parts of the standard error of ln Estimate.
	Chance, TwinError, ModelError, Drift float64
	Slope                                float64 // d logit P / d ln load of the slowed twin
	Reason                               string  // why there is no interval
}

const (
	// lattice is the step of ln k on which replays are made, and slowest the largest
	// of them: k from 1/3 to 3.
	lattice, slowest = 0.0125, 88
	coarse           = 16 // lattice steps between the first replays
	// Windows calibrate whose expected share of violations is within nearLimit times
	// what may violate, to either side.
	nearLimit = 3
	// leastWindows calibrate, or there is no interval.
	leastWindows = 6
	// noneSeen stands for no violation where a k is to be found.
	noneSeen = 0.7
	// weighings is how often windows are weighed by the k found last.
	weighings = 3
	// inZone is how many replays determine where the violations agree.
	inZone = 8
	// loadStep is the lattice of the logarithms of long runs' loads.
	loadStep = 0.01
	// roughLong and twinLong are how many requests a long run has where the twin's
	// capacity is looked for, and where it is read off at longLoads loads.
	roughLong, longLoads = 3_000, 9
	twinLong             = 40_000
	// Where the twin's capacity only says which load to look at, a share of it is enough.
	guessLong = 8_000
)

// replayer calibrates a twin on the steps of a search. What was replayed is kept.
type replayer struct {
	ctx   context.Context
	twin  Twin
	cfg   *FindConfig
	trail []Step
	long  int // requests of a long run
	again map[[2]int][]int
	runs  map[[2]int][][]float64 // long runs by load and length
	err   error                  // the first: nothing that is worked out holds then
}

func newReplayer(ctx context.Context, twin Twin, cfg *FindConfig) *replayer {
	return &replayer{ctx: ctx, twin: twin, cfg: cfg, long: twinLong, again: map[[2]int][]int{}, runs: map[[2]int][][]float64{}}
}

// With a twin main windows may be short, for their edges are replayed with them: where the
// budget pays no longer ones there are replayedMain of them, of leastReplayed requests or more.
const replayedMain, leastReplayed = 12, 40

// leastRho is from which correlation on a replay explains enough of a search to be given.
const leastRho = 0.5

// replay reads the capacity off a replay of all that was measured: that of the claim that
// binds by it.
func (f *search) replay() {
	if f.cfg.Twin == nil || f.cfg.Closed || f.err != nil || f.died || f.cap.Floor.Lower > 0 {
		return
	}
	r := newReplayer(f.ctx, f.cfg.Twin, &f.cfg)
	best, known := Replayed{Estimate: math.Inf(1)}, false
	for _, claim := range f.cfg.claims() {
		c, ok := r.calibrate(claim, f.cap.Trail[f.begun:])
		if ok && c.Estimate < best.Estimate || !ok && !known {
			best, known = c, ok
		}
	}
	if best.Reason == "" && best.Rho < leastRho {
		best.Reason = fmt.Sprintf("the twin explains too little: a correlation of %.2f, it takes %.1f", best.Rho, leastRho)
	}
	if best.Reason != "" {
		best.Estimate, best.Interval = 0, stat.Interval{}
	}
	if f.ctx.Err() == nil {
		f.cap.Replayed = &best
	}
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

// roots are the least and the most ln k at which the violations as they are agree with
// those wanted.
func (p profile) roots(want float64) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for i := range len(p.at) - 1 {
		if a, b := p.raw[i]-want, p.raw[i+1]-want; a <= 0 && b >= 0 || a >= 0 && b <= 0 {
			x := float64(p.at[i])
			if a != b {
				x += float64(p.at[i+1]-p.at[i]) * a / (a - b)
			}
			lo, hi = min(lo, x*lattice), max(hi, x*lattice)
		}
	}
	return lo, hi
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
	capacity float64
	se       float64 // of its logarithm
}

// expect is the expected share at a load.
func (s *slowTwin) expect(load float64) float64 {
	return 1 / (1 + math.Exp(-(s.A + s.B*math.Log(load/s.Centre))))
}

// places are the loads of long runs that lie around where the twin slowed by k violates
// a claim as often as may be.
func (r *replayer) places(claim int, eps, lnk, near float64) []int {
	const stride, most = 8, 60
	at := int(math.Round((math.Log(near)+lnk)/loadStep/stride)) * stride
	shares := map[int]float64{}
	look := func(j int) float64 {
		s := r.share(claim, j, roughLong, lnk)
		shares[j] = (float64(s.Violations) + 0.5) / (float64(s.N) + 1)
		return shares[j]
	}
	lo, hi := at, at
	if look(at) > eps {
		for range most {
			if lo -= stride; look(lo) < eps/nearLimit {
				break
			}
		}
	} else {
		for range most {
			if hi += stride; look(hi) > eps*nearLimit {
				break
			}
		}
	}
	for range most {
		if shares[hi] > eps*nearLimit {
			break
		}
		hi += stride
		look(hi)
	}
	for range most {
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
	from, to := edge(math.Log(eps/nearLimit)), edge(math.Log(eps*nearLimit))
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
	s := slowTwin{Logistic: stat.FitLogistic(shares, stat.Prior{})}
	v := s.LoadAt(eps, 0.95, 0.05)
	if !(v.Load > 0) {
		return s, false
	}
	s.capacity, s.se = v.Load, math.Sqrt(max(0, v.SE*v.SE-stat.ModelError*stat.ModelError))
	return s, true
}

// calibrate finds what a replay of all steps says of a claim.
func (r *replayer) calibrate(claim int, trail []Step) (out Replayed, ok bool) {
	r.trail = trail
	if out, ok = r.agree(claim); r.err != nil {
		return Replayed{Claim: claim, Reason: "the twin failed: " + r.err.Error()}, false
	}
	return out, ok
}

// agree finds the k at which as many requests violate a claim.
func (r *replayer) agree(claim int) (out Replayed, ok bool) {
	var twin slowTwin
	out.Claim = claim
	use := r.windows(claim)
	first := math.Inf(1)
	for _, w := range use {
		if w.seen > 0 {
			first = min(first, w.load)
		}
	}
	if math.IsInf(first, 1) {
		out.Reason = "no request violated the limit"
		return out, false
	}
	use = slices.DeleteFunc(use, func(w window) bool { return w.load < first/2 })
	// First all count, those far beyond the limit the less: there the twin's shape rules.
	var eps, lnk float64
	var p profile
	for i := range use {
		use[i].weigh(use[i].seen/float64(use[i].n), r.cfg.eps(claim))
	}
	for range weighings {
		if _, eps, lnk, ok = r.fitted(claim, use, &out); !ok {
			return out, false
		}
		if twin, ok = r.curve(claim, eps, lnk, r.places(claim, eps, lnk, first), guessLong); !ok {
			out.Reason = "the twin's own capacity is not known: " + twin.Reason
			return out, false
		}
		for i := range use {
			use[i].weigh(twin.expect(use[i].load), eps)
		}
	}
	near := func(w window) bool {
		x := twin.expect(w.load)
		return x >= eps/nearLimit && x <= eps*nearLimit
	}
	use = slices.DeleteFunc(use, func(w window) bool { return !near(w) })
	if out.Windows = len(use); len(use) < leastWindows {
		out.K, out.Slope, out.Estimate = math.Exp(lnk), twin.B, twin.capacity
		out.Reason = fmt.Sprintf("%d windows are near the limit, it takes %d", len(use), leastWindows)
		return out, true
	}
	for i := range use {
		use[i].weight = 1
	}
	if p, eps, lnk, ok = r.fitted(claim, use, &out); !ok {
		return out, false
	}
	if twin, ok = r.curve(claim, eps, lnk, r.places(claim, eps, lnk, twin.capacity), r.long); !ok {
		out.Reason = "the twin's own capacity is not known: " + twin.Reason
		return out, false
	}
	out.K, out.Slope, out.Estimate = math.Exp(lnk), twin.B, twin.capacity
	still := 0
	for _, w := range use {
		if near(w) {
			still++
		}
	}
	if still < leastWindows || still < len(use)/2 {
		out.Reason = fmt.Sprintf("%d windows are near the limit, it takes %d", still, max(leastWindows, len(use)/2))
		return out, true
	}
	r.judge(claim, &out, use, p, eps, lnk, &twin)
	return out, true
}

// fitted is at which ln k windows violate as often as they did, and what may violate but
// for errors.
func (r *replayer) fitted(claim int, use []window, out *Replayed) (p profile, eps, lnk float64, ok bool) {
	seen, n, violations := 0.0, 0, 0.0
	out.Errors = 0
	for _, w := range use {
		seen, n, violations, out.Errors = seen+w.weight*w.seen, n+w.n, violations+w.seen, out.Errors+w.errors
	}
	out.Windows, out.Requests, out.Violations = len(use), n, int(violations)
	if eps = r.cfg.eps(claim) - float64(out.Errors)/float64(n); eps <= 0 {
		out.Reason = "more requests fail than may violate the limit"
		return p, eps, 0, false
	}
	seen = max(seen, noneSeen)
	p = r.profile(claim, use, seen)
	if lnk = p.middle(seen); math.IsInf(lnk, 0) {
		out.Reason = "the twin slowed by 1/3 to 3 does not violate the limits as often"
		return p, eps, lnk, false
	}
	return p, eps, lnk, true
}

// judge works out how sure a calibration is.
func (r *replayer) judge(claim int, out *Replayed, use []window, p profile, eps, lnk float64, twin *slowTwin) {
	again := r.near(claim, use, p, lnk)
	m := len(use)
	residual, expected := make([]float64, m), make([]float64, m)
	var seen, squares, fourth float64
	for i, w := range use {
		expected[i] = float64(w.n) * twin.expect(w.load)
		residual[i] = w.seen - again[i]
		seen += w.seen
		squares += residual[i] * residual[i]
		fourth += math.Pow(residual[i], 4)
	}
	out.Rho = correlation(use, again, expected)
	out.Phi = max(1, squares*float64(m)/float64(m-1)/max(seen, 1))
	// A few windows may make most of the residuals: then they are of few degrees of freedom.
	free := float64(m - 1)
	if fourth > 0 {
		free = min(free, max(2, 3*squares*squares/fourth-2))
	}
	t := stat.StudentQuantile((1+r.cfg.Level)/2, free)
	// All totals T of which what was seen is within t standard errors, √(φT).
	middle, wide := seen+t*t*out.Phi/2, t*math.Sqrt(out.Phi*seen+t*t*out.Phi*out.Phi/4)
	least, most := p.middle(max(0, middle-wide)), p.middle(middle+wide)
	if lo, hi := p.roots(seen); lo <= hi {
		least, most = min(least, lo), max(most, hi)
	}
	out.TwinError = twin.se
	out.ModelError = max(stat.ModelError, r.unfit(claim, use, again, expected, twin))
	out.Drift = drift(residual, expected, twin.B)
	if out.Errors > 0 {
		out.TwinError = math.Hypot(out.TwinError, math.Sqrt(float64(out.Errors))/float64(out.Requests)/eps/twin.B)
	}
	others := stat.NormalQuantile((1+r.cfg.Level)/2) * math.Sqrt(out.TwinError*out.TwinError+out.ModelError*out.ModelError+out.Drift*out.Drift)
	end := func(to float64) (float64, bool) {
		if math.IsInf(to, 0) || math.IsNaN(to) {
			return 0, false
		}
		// By the same shorter runs here and there.
		here, ok := r.curve(claim, eps, lnk, r.places(claim, eps, lnk, twin.capacity), guessLong)
		there, also := r.curve(claim, eps, to, r.places(claim, eps, to, twin.capacity*math.Exp(lnk-to)), guessLong)
		return math.Log(there.capacity / here.capacity), ok && also
	}
	if x, ok := end(most); ok {
		out.Interval.Lo = out.Estimate * math.Exp(-math.Hypot(min(0, x), others))
	}
	if x, ok := end(least); ok {
		out.Interval.Hi = out.Estimate * math.Exp(math.Hypot(max(0, x), others))
	}
	if out.Interval.Hi > 0 && out.Interval.Lo > 0 {
		out.Chance = math.Sqrt(max(0, math.Pow(math.Log(out.Interval.Hi/out.Interval.Lo)/2, 2)-others*others)) / t
	}
}

// near is what the twin slowed by k violates in each window: the mean of the replays
// about k, scaled to what they are at k together.
func (r *replayer) near(claim int, use []window, p profile, lnk float64) []float64 {
	order := slices.Clone(p.at)
	far := func(at int) float64 { return math.Abs(float64(at)*lattice - lnk) }
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(far(a), far(b)) })
	mean := make([]float64, len(use))
	var sum, seen float64
	const replays = 4
	for _, j := range order[:min(replays, len(order))] {
		each, total := r.total(claim, use, j)
		for i, x := range each {
			mean[i] += x
		}
		sum += total
	}
	for _, w := range use {
		seen += w.seen
	}
	for i := range mean {
		if sum > 0 {
			mean[i] *= seen / sum
		}
	}
	return mean
}

// correlation is that of what the server and the twin violated in windows, beyond what
// is expected, over its square root.
func correlation(use []window, again, expected []float64) float64 {
	var v, t, e float64
	for i, w := range use {
		v, t, e = v+w.seen, t+again[i], e+expected[i]
	}
	if e == 0 {
		return 0
	}
	var xx, yy, xy float64
	for i, w := range use {
		root := math.Sqrt(max(expected[i], 1e-9))
		x, y := (w.seen-v/e*expected[i])/root, (again[i]-t/e*expected[i])/root
		xx, yy, xy = xx+x*x, yy+y*y, xy+x*y
	}
	if xx == 0 || yy == 0 {
		return 0
	}
	return xy / math.Sqrt(xx*yy)
}

// unfit is by how much the capacity differs, as a standard error, between the half of
// the windows at lower loads and those at higher ones, beyond what chance makes of it.
func (r *replayer) unfit(claim int, use []window, again, expected []float64, twin *slowTwin) float64 {
	order := make([]int, len(use))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(use[a].load, use[b].load) })
	var excess, chance [2]float64
	for half := range 2 {
		part := order[:len(order)/2]
		if half == 1 {
			part = order[len(order)/2:]
		}
		var d, t, squares float64
		for _, i := range part {
			d += use[i].seen - again[i]
			t += again[i]
			squares += math.Pow(use[i].seen-again[i], 2)
		}
		if t < 3 {
			return 0
		}
		excess[half] = d / t
		chance[half] = max(squares, t) / (t * t)
	}
	apart := excess[1] - excess[0]
	return math.Sqrt(max(0, apart*apart-chance[0]-chance[1])) / 2 / twin.B
}

// drift is by how much what is unexplained changes in the course of the search, as a
// standard error of the capacity's logarithm; 0 where that may well be chance.
func drift(residual, expected []float64, slope float64) float64 {
	m := float64(len(residual))
	var ee, xe, xx, re, rx float64
	for i := range residual {
		x := float64(i)/m - 0.5
		ee += expected[i]
		xe += x * expected[i]
		xx += x * x * expected[i]
		re += residual[i]
		rx += x * residual[i]
	}
	det := ee*xx - xe*xe
	if !(det > 0) {
		return 0
	}
	a, b := (xx*re-xe*rx)/det, (ee*rx-xe*re)/det
	var left float64
	for i := range residual {
		x := float64(i)/m - 0.5
		left += math.Pow(residual[i]-expected[i]*(a+b*x), 2) / max(expected[i], 1e-9)
	}
	se := math.Sqrt(left / (m - 2) * ee / det)
	if !(se > 0) || math.Abs(b)/se < stat.StudentQuantile(0.975, m-2) {
		return 0
	}
	return math.Abs(b) / 2 / slope
}
