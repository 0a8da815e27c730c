package predict

import (
	"fmt"
	"math"
	"slices"

	"pitot/internal/sim/deploy"
)

// A calibration chooses its loads before it runs them. Each one that could be run
// is served by the twin as it is known so far; how its moments change with each
// parameter says how much it would tell. The next load is the one with which
// TTFT and TPOT of all others are predicted best (I-optimal design: Atkinson,
// Donev and Tobias, Optimum Experimental Designs, with SAS, Oxford 2007, ch. 10),
// given what the priors and the loads chosen before tell.
//
// The twin is not the server: what it lacks is off by some percent in each load, alike
// in loads that are alike (Kennedy and O'Hagan, J. R. Statist. Soc. B 63, 425, 2001).
// A design that took the twin for the truth would ask the one load that tells most of a
// parameter again and again, and predict all others by what the twin lacks there (Box
// and Draper, J. Am. Statist. Ass. 54, 622, 1959); this one goes where it has not been.

// DesignLoad is a load that a calibration can run: users in a closed loop, whose
// prompts and answers are between half of a length and one and a half of it.
type DesignLoad struct {
	Users  int `json:"users"`
	Input  int `json:"input_tokens"`
	Output int `json:"output_tokens"`
}

// candidateLoads are the loads that a deployment could be calibrated with: few users
// and many, short prompts and long ones, short answers and longer ones.
func candidateLoads(d *deploy.Deployment) (list []DesignLoad) {
	most := max(min(d.Settings.MaxNumSeqs, 64), 2)
	users := slices.DeleteFunc([]int{1, 4, 16}, func(n int) bool { return n >= most })
	users = append(users, most)
	longest := max(min(d.Settings.MaxModelLen*3/5, 6000), 16) // half as much again, and an answer, must fit
	for _, u := range users {
		for _, in := range []int{64, 512, 2048, 6000} {
			for _, out := range []int{16, 128} {
				// What a longer answer tells, it tells behind shorter prompts too. The contexts
				// fill the KV cache and seldom overflow it: on average half of an answer is there.
				if in > longest || u*(in+out/2)*6/5 > d.KVTokens() || in > 512 && out > 16 || u > 16 && in > 2048 {
					continue
				}
				list = append(list, DesignLoad{u, in, out})
			}
		}
	}
	if len(list) == 0 {
		list = append(list, DesignLoad{1, max(longest/2, 1), 8})
	}
	return list
}

// LoadFor is the load for so many seconds, of which the first are not measured.
func (l DesignLoad) LoadFor(seconds, warmup float64) *TwinLoad {
	around := func(mean int) [2]int { return [2]int{max(mean/2, 1), max(mean*3/2, 2)} }
	return &TwinLoad{
		Name: fmt.Sprintf("%d users, %d/%d tokens", l.Users, l.Input, l.Output), Users: l.Users, Input: around(l.Input), Output: around(l.Output),
		Requests: mostInRun, Seconds: seconds, Warmup: warmup,
	}
}

// mostInRun is more requests than any load of a calibration has.
const mostInRun = 20_000

// simulate returns what a client would record of a load on the twin within a number of seconds
// after the warm-up. It stops at the first requests if these are many. It also returns what part of
// the time that was.
func (l DesignLoad) simulate(d *deploy.Deployment, seconds, warmup float64, seed uint64) (*Recording, float64) {
	all := l.LoadFor(warmup+seconds, warmup)
	all.Requests = mostSimulated + l.Users
	r := all.Serve(d.Engine(seed), seed)
	n := len(r.Requests)
	if n < all.Requests {
		return r, 1
	}
	from := min(warmup, r.Requests[l.Users].Arrival) // each user has asked before
	for i := range r.Requests {
		r.Requests[i].measured = r.Requests[i].Arrival >= from
	}
	return r, min(max((r.Requests[n-1].Arrival-from)/seconds, 0.01), 1)
}

// mostSimulated is the number of requests of a load that are simulated at most, besides one for
// each user. What more of them tell is in proportion.
const mostSimulated = 60

// informed holds what a load would tell of the parameters and of what the twin lacks in its TTFT
// and TPOT, in this order. It also holds how its mean TTFT and TPOT depend on the parameters.
type informed struct {
	load  DesignLoad
	info  [][]float64  // JᵀJ
	means [2][]float64 // change of the logarithm of each with that of each parameter
}

// informationOf works it out on the deployment as far as it is known.
func (f *fitter) informationOf(l DesignLoad, seconds, warmup float64) informed {
	const h = 0.4
	r, part := l.simulate(&f.d, seconds, warmup, 77) // the replays have other chances
	c := newComparison(r, &f.d)
	k := len(f.parameters)
	x := informed{load: l, info: zeroMatrix(k + 2)}
	centre := c.momentsOf(c.replayRun(&f.d, 1))
	none := c.momentResiduals(centre)
	jac := make([][]float64, k, k+2)
	for i := range x.means {
		x.means[i] = make([]float64, k)
	}
	for p := range f.parameters {
		jac[p] = make([]float64, len(none))
		moved, width := f.stepAside(&f.parameters[p], h)
		if width == 0 {
			continue
		}
		at := c.momentsOf(c.replayRun(&moved, 1))
		for i, r := range c.momentResiduals(at) {
			jac[p][i] = (r - none[i]) / width
		}
		for m, i := range []int{0, 1 + len(quantilesFitted)} { // the means of TTFT and of TPOT
			if there, here := at[i].log, centre[i].log; !math.IsNaN(there) && !math.IsNaN(here) {
				x.means[m][p] = (there - here) / width
			}
		}
	}
	if n := len(none); n > 0 {
		ttft, tpot := c.levelSlopes()
		jac = append(jac, ttft, tpot)
		x.info = weightedProduct(jac, jac, slices.Repeat([]float64{1 / part}, n))
	}
	return x
}

// design holds what is known of the parameters. It also holds what is known of what the twin lacks
// in TTFT and TPOT of each load that could be measured.
type design struct {
	loads      []informed
	parameters int
	precision  [][]float64 // of the parameters, then of TTFT and TPOT of each load
	counts     float64     // what a load tells by its moments, of that so much
}

// newDesign works out what each load of a list would tell, with this known of the
// parameters.
func (f *fitter) newDesign(list []DesignLoad, seconds, warmup float64, precision [][]float64) *design {
	k := len(f.parameters)
	g := &design{make([]informed, len(list)), k, zeroMatrix(k + 2*len(list)), shrink / max(f.scale*f.scale, 1)}
	InParallel(len(list), func(i int) { g.loads[i] = f.informationOf(list[i], seconds, warmup) })
	for i := range precision {
		copy(g.precision[i], precision[i])
	}
	lacking := zeroMatrix(len(list))
	for i, a := range list {
		for j, b := range list {
			lacking[i][j] = lacks * lacks * math.Exp(-a.distanceTo(float64(b.Users), float64(b.Input), float64(b.Output))/alikeWithin)
		}
	}
	lacking = invertMatrix(lacking)
	for i := range lacking {
		for j := range lacking {
			for m := range 2 {
				g.precision[k+2*i+m][k+2*j+m] = lacking[i][j]
			}
		}
	}
	return g
}

// lacks is the error of the twin in a load for what it has no parameter of, as a standard deviation
// of the logarithm. The error is alike in loads that differ by less than a factor of e to the power
// of alikeWithin.
const lacks, alikeWithin = 0.1, 2.0

// distanceTo returns the distance of a load from another, by the logarithms of their users and
// lengths.
func (l DesignLoad) distanceTo(users, input, output float64) float64 {
	off := func(a int, b float64) float64 { return math.Abs(math.Log(float64(a) / max(b, 0.5))) }
	return off(l.Users, users) + off(l.Input, input) + off(l.Output, output)
}

// precisionWith is the precision once a load is measured too, counting what it tells from such a
// place on: 0 for all, g.parameters for what the twin lacks there alone.
func (g *design) precisionWith(load, from int) [][]float64 {
	m := cloneMatrix(g.precision)
	at := func(i int) int {
		if i < g.parameters {
			return i
		}
		return 2*load + i
	}
	info := g.loads[load].info
	for i := from; i < len(info); i++ {
		for j := from; j < len(info); j++ {
			m[at(i)][at(j)] += g.counts * info[i][j]
		}
	}
	return m
}

// variance is the mean over loads of the variance of the logarithms of their mean TTFT
// and TPOT, with such a precision, which it needs for itself.
func (g *design) variance(precision [][]float64) float64 {
	cov := invertMatrix(precision)
	sum := 0.0
	for i := range g.loads {
		for m, slope := range g.loads[i].means {
			at := g.parameters + 2*i + m
			sum += cov[at][at]
			for a := range slope {
				sum += 2 * slope[a] * cov[a][at]
				for b := range slope {
					sum += slope[a] * cov[a][b] * slope[b]
				}
			}
		}
	}
	return sum / float64(2*len(g.loads))
}

// bestLoad is the load with which the variance would be least, and what it then is.
func (g *design) bestLoad() (load int, variance float64) {
	each := make([]float64, len(g.loads))
	InParallel(len(each), func(i int) { each[i] = g.variance(g.precisionWith(i, 0)) })
	for i, v := range each {
		if v < each[load]*0.999 {
			load = i
		}
	}
	return load, each[load]
}

// shrink is by how much a load tells less than its moments do if each is taken
// for itself: they go together.
const shrink = 0.2

// ChooseLoads gives so many loads, each measured for so many seconds behind its warm-up,
// that together tell most of the deployment's parameters and of what the twin lacks,
// the best first, beside the runs that there are. A load may come twice. If neither
// these nor the runs have long prompts of a single user, the last of them is such a load:
// what a prompt costs by itself no other load shows without the twin's help.
func ChooseLoads(d *deploy.Deployment, known []*Recording, n int, seconds, warmup float64) []DesignLoad {
	f := &fitter{}
	f.parameters, f.usual = priors(d)
	f.d = f.usual
	precision := zeroMatrix(len(f.parameters))
	for i := range precision {
		p := f.parameters[i]
		precision[i][i] = 1 / (p.sd * p.sd)
	}
	g := f.newDesign(candidateLoads(&f.d), seconds, warmup, precision)
	probe, ok := g.singleUserLoad()
	probed := !ok // there is nothing to probe with

	for _, r := range known { // as the loads that are most like them
		at := g.nearest(r)
		g.precision = g.precisionWith(at, 0)
		probed = probed || g.loads[at].load.probesLike(probe)
	}
	var chosen []DesignLoad
	for range n {
		at, _ := g.bestLoad()
		g.precision = g.precisionWith(at, 0)
		chosen = append(chosen, g.loads[at].load)
		probed = probed || g.loads[at].load.probesLike(probe)
	}
	if !probed && len(known) > 0 && n > 1 { // the first that are chosen need not have it
		chosen[n-1] = probe
	}
	return chosen
}

// singleUserLoad is the load of a single user with the longest prompts of which enough are
// answered; ok is false where there is no such load.
func (g *design) singleUserLoad() (load DesignLoad, ok bool) {
	for i := range g.loads {
		x := &g.loads[i]
		if x.load.Users == 1 && x.load.Input > load.Input && slices.ContainsFunc(x.means[0], func(v float64) bool { return v != 0 }) {
			load, ok = x.load, true
		}
	}
	return load, ok
}

// longPrompts are long enough that what they cost shows beside what any request does.
const longPrompts = 2048

// probesLike says that a load tells what another of a single user would.
func (l DesignLoad) probesLike(other DesignLoad) bool {
	return l.Users == 1 && l.Input >= min(other.Input, longPrompts)
}

// NextLoad is the load with which a fit would know most more: by how many percent
// the means of TTFT and TPOT are off for what is not known of the parameters, as the
// root of the mean square over loads of all kinds, without it and with it.
type NextLoad struct {
	DesignLoad
	Seconds float64 `json:"seconds"`
	NowPct  float64 `json:"error_now_pct"`
	ThenPct float64 `json:"error_then_pct"`
}

// chooseNextLoad finds it, for parameters whose logarithms have this covariance.
func (f *fitter) chooseNextLoad(cov [][]float64) NextLoad {
	const seconds, warmup = 20.0, 2.0
	c := nearestPositive(cov)
	for i := range c {
		c[i][i] += 1e-6 // of what is at its bound
	}
	g := f.newDesign(candidateLoads(&f.d), seconds, warmup, invertMatrix(c))
	for _, c := range f.runs { // which parameters they tell is in cov
		g.precision = g.precisionWith(g.nearest(c.run), g.parameters)
	}
	pct := func(variance float64) float64 { return 100 * math.Sqrt(variance) }
	x := NextLoad{Seconds: seconds}
	at, then := g.bestLoad()
	x.DesignLoad, x.NowPct, x.ThenPct = g.loads[at].load, pct(g.variance(g.precision)), pct(then)
	return x
}

// nearest is the load that a run is most like.
func (g *design) nearest(r *Recording) int {
	in, out, n := 0.0, 0.0, 0.0
	for _, q := range r.Requests {
		in, out, n = in+float64(q.Input), out+float64(q.Output), n+1
	}
	users := r.meanRunning()
	best, at := math.Inf(1), 0
	for i := range g.loads {
		if v := g.loads[i].load.distanceTo(users, in/n, out/n); v < best {
			best, at = v, i
		}
	}
	return at
}

// RoughFit is the deployment roughly as the runs have it, without how sure that is and
// how far it is off: what the next loads are chosen by.
func RoughFit(d *deploy.Deployment, runs []*Recording) (*deploy.Deployment, error) {
	f, _, _, err := fitParameters(d, nil, shownOf(runs), 3)
	if err != nil {
		return nil, err
	}
	return &f.d, nil
}
