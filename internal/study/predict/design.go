package predict

import (
	"fmt"
	"math"
	"slices"

	"pitot/internal/twin/deploy"
)

// A calibration chooses its loads before it runs them. Each one that could be run
// is served by the twin as it is known so far; how its moments change with each
// parameter says how much it would tell. The next load is the one with which
// TTFT and TPOT of all others are predicted best (I-optimal design: Atkinson,
// Donev and Tobias, Optimum Experimental Designs, with SAS, Oxford 2007, ch. 10),
// given what the priors and the loads chosen before tell.

// DesignLoad is a load that a calibration can run: users in a closed loop, whose
// prompts and answers are between half of a length and one and a half of it.
type DesignLoad struct {
	Users  int `json:"users"`
	Input  int `json:"input_tokens"`
	Output int `json:"output_tokens"`
}

// candidates are the loads that a deployment could be calibrated with: few users
// and many, short prompts and long ones, short answers and longer ones.
func candidates(d *deploy.Deployment) (list []DesignLoad) {
	most := d.Settings.MaxNumSeqs
	users := []int{1, 4, 16, 64}
	if most < 64 {
		users[3] = max(most, 2)
	}
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

// In is the load for so many seconds, of which the first are not measured.
func (l DesignLoad) In(seconds, warmup float64) *Load {
	around := func(mean int) [2]int { return [2]int{max(mean/2, 1), max(mean*3/2, 2)} }
	return &Load{
		Name: fmt.Sprintf("%d users, %d/%d tokens", l.Users, l.Input, l.Output), Users: l.Users, Input: around(l.Input), Output: around(l.Output),
		Requests: mostInRun, Seconds: seconds, Warmup: warmup,
	}
}

// mostInRun is more requests than any load of a calibration has.
const mostInRun = 20_000

// simulate is what a client would record of a load on the twin within so many
// seconds, or of its first requests if these are many; it gives what part of the
// time that was.
func (l DesignLoad) simulate(d *deploy.Deployment, seconds float64, seed uint64) (*Recording, float64) {
	all := l.In(seconds, 0)
	all.Requests = mostSimulated + l.Users
	r := all.Serve(d.Engine(seed), seed)
	if n := len(r.Requests); n == all.Requests {
		return r, min(max(r.Requests[n-1].Arrival/seconds, 0.01), 1)
	}
	return r, 1
}

// mostSimulated is how many requests of a load are thought through, besides one for
// each user: what more of them tell is in proportion.
const mostSimulated = 60

// informed is what a load would tell of the parameters, and how its mean TTFT and
// TPOT depend on them.
type informed struct {
	load  DesignLoad
	info  [][]float64 // JᵀJ
	means [][]float64 // change of the logarithm of each with that of each parameter
}

// informs works it out on the deployment as far as it is known.
func (f *fitter) informs(l DesignLoad, seconds float64) informed {
	const h = 0.4
	r, part := l.simulate(&f.d, seconds, 77) // the replays have other chances
	c := compare(r, &f.d)
	k := len(f.parameters)
	x := informed{load: l, info: square(k), means: make([][]float64, 2)}
	centre := c.momentsOf(c.replayed(&f.d, 1))
	none := c.residuals(centre)
	jac := make([][]float64, k)
	for i := range x.means {
		x.means[i] = make([]float64, k)
	}
	for p := range f.parameters {
		jac[p] = make([]float64, len(none))
		moved, width := f.aside(&f.parameters[p], h)
		if width == 0 {
			continue
		}
		at := c.momentsOf(c.replayed(&moved, 1))
		for i, r := range c.residuals(at) {
			jac[p][i] = (r - none[i]) / width
		}
		for m, i := range []int{0, 1 + len(quantilesFitted)} { // the means of TTFT and of TPOT
			if there, here := at[i].log, centre[i].log; !math.IsNaN(there) && !math.IsNaN(here) {
				x.means[m][p] = (there - here) / width
			}
		}
	}
	if n := len(none); n > 0 {
		x.info = product(jac, jac, slices.Repeat([]float64{1 / part}, n))
	}
	return x
}

// informsAll works it out for each load of a list.
func (f *fitter) informsAll(list []DesignLoad, seconds float64) []informed {
	all := make([]informed, len(list))
	InParallel(len(list), func(i int) { all[i] = f.informs(list[i], seconds) })
	return all
}

// predictionVariance is the mean over loads of the variance of the logarithms of their mean
// TTFT and TPOT, if the parameters' covariance is as given.
func predictionVariance(cov [][]float64, of []informed) float64 {
	sum, n := 0.0, 0.0
	for i := range of {
		for _, g := range of[i].means {
			n++
			for a := range g {
				for b := range g {
					sum += g[a] * cov[a][b] * g[b]
				}
			}
		}
	}
	return sum / n
}

// shrink is by how much a load tells less than its moments do if each is taken
// for itself: they go together.
const shrink = 0.2

// Choose gives so many loads, each of so many seconds, that together tell most of
// the deployment's parameters, the best first, beside the runs that there are. A
// load may come twice.
func Choose(d *deploy.Deployment, known []*Recording, n int, seconds float64) []DesignLoad {
	f := &fitter{}
	f.parameters, f.usual = priors(d)
	f.d = f.usual
	all := f.informsAll(candidates(&f.d), seconds)
	precision := square(len(f.parameters))
	for i := range precision {
		p := f.parameters[i]
		precision[i][i] = 1 / (p.sd * p.sd)
	}
	for _, r := range known { // as the loads that are most like them
		addTo(precision, all[nearest(all, r)].info, shrink)
	}
	var chosen []DesignLoad
	for range n {
		best, at := math.Inf(1), 0
		for i := range all {
			if v := predictionVariance(inverse(plus(precision, all[i].info, shrink)), all); v < best*0.999 {
				best, at = v, i
			}
		}
		addTo(precision, all[at].info, shrink)
		chosen = append(chosen, all[at].load)
	}
	return chosen
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

// next finds it, for parameters whose logarithms have this covariance.
func (f *fitter) next(cov [][]float64) NextLoad {
	const seconds = 20.0
	all := f.informsAll(candidates(&f.d), seconds)
	pct := func(variance float64) float64 { return 100 * math.Sqrt(variance) }
	x := NextLoad{Seconds: seconds, NowPct: pct(predictionVariance(cov, all)), ThenPct: math.Inf(1)}
	c := square(len(cov))
	addTo(c, cov, 1)
	for i := range c {
		c[i][i] += 1e-9 // of what is at its bound
	}
	precision := inverse(c)
	for i := range all {
		if v := pct(predictionVariance(inverse(plus(precision, all[i].info, shrink)), all)); v < x.ThenPct {
			x.ThenPct, x.DesignLoad = v, all[i].load
		}
	}
	return x
}

// nearest is the load that a run is most like.
func nearest(all []informed, r *Recording) int {
	in, out, n := 0.0, 0.0, 0.0
	for _, q := range r.Requests {
		in, out, n = in+float64(q.Input), out+float64(q.Output), n+1
	}
	off := func(a int, b float64) float64 { return math.Abs(math.Log(float64(a) / max(b, 0.5))) }
	best, at := math.Inf(1), 0
	for i := range all {
		l := all[i].load
		if v := off(l.Users, r.running()) + off(l.Input, in/n) + off(l.Output, out/n); v < best {
			best, at = v, i
		}
	}
	return at
}

// addTo adds so much of a matrix to another.
func addTo(m, b [][]float64, f float64) {
	for i := range m {
		for j := range m {
			m[i][j] += f * b[i][j]
		}
	}
}

// plus is a matrix and so much of another.
func plus(a, b [][]float64, f float64) [][]float64 {
	m := square(len(a))
	addTo(m, a, 1)
	addTo(m, b, f)
	return m
}

// Center is the deployment roughly as the runs have it, without how sure that is and
// how far it is off: what the next loads are chosen by.
func Center(d *deploy.Deployment, runs []*Recording) (*deploy.Deployment, error) {
	f, _, _, err := calibrate(d, nil, shownOf(runs), 3)
	if err != nil {
		return nil, err
	}
	return &f.d, nil
}
