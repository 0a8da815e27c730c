package predict

import (
	"encoding/json"
	"math"
	"slices"

	"pitot/internal/sim/deploy"
)

// LeftOut holds how well a fit on the other loads alone predicts a load. The end of a run that was
// fitted cannot show that.
type LeftOut struct {
	Runs     []string `json:"runs"` // of this load
	Requests int      `json:"requests"`
	Reason   string   `json:"reason,omitempty"` // why there is no prediction
	// ErrorPct is the mean over the runs, each predicted whole, and AbsErrorPct that
	// of the errors without their signs; nil with a Reason.
	ErrorPct    *Metrics `json:"error_pct"`
	AbsErrorPct *Metrics `json:"abs_error_pct"`
}

// mostFolds is the number of fits that [fitter.leaveLoadsOut] makes at most.
const mostFolds = 4

// leaveLoadsOut predicts each load by a fit on others: on all others where there are few,
// and of many a fourth is left out at a time. With one load there is nothing to fit on.
func (f *fitter) leaveLoadsOut(d *deploy.Deployment, gaps *regression, runs, shown []*Recording) []LeftOut {
	var loads []string
	of := map[string][]int{} // the runs of each load
	for i, r := range runs {
		key := r.loadKey()
		if of[key] == nil {
			loads = append(loads, key)
		}
		of[key] = append(of[key], i)
	}
	if len(loads) < 2 {
		return nil
	}
	folds := min(len(loads), mostFolds)
	fold := map[string]int{}
	for i, key := range loads {
		fold[key] = i % folds
	}
	list := make([]LeftOut, len(loads))
	for out := range folds {
		others := func(run int) bool { return fold[runs[run].loadKey()] != out }
		g, err := f, error(nil)
		if folds < len(loads) {
			g = f.fitToSome(others)
			slow := gaps.gapsOfSome(others).slowPhases()
			slow.applyTo(&g.d)
		} else { // one of few: without it the fit is another
			g, err = fitOf(d, shown, others)
		}
		for i, key := range loads {
			if fold[key] != out {
				continue
			}
			if err != nil {
				list[i].Reason = "not predicted by the others: " + err.Error()
			}
			list[i].predictLeftOut(runs, of[key], g)
		}
	}
	return list
}

// fitOf is a fit to some of the runs alone.
func fitOf(d *deploy.Deployment, shown []*Recording, wanted func(run int) bool) (*fitter, error) {
	var some []*Recording
	for i, r := range shown {
		if wanted(i) {
			c := *r
			c.course = nil // which the fit to all gave it
			some = append(some, &c)
		}
	}
	f, _, slow, err := fitParameters(d, nil, some, mostSlopes)
	if err != nil {
		return nil, err
	}
	slow.applyTo(&f.d)
	return f, nil
}

// fitToSome is the fit to some of the runs, without having seen the others: the fit to all
// is where it begins, and by its slopes, which are nearly those of fewer runs, it goes
// on (Beirami, Razaviyayn, Shahrampour and Tarokh, "On optimal generalizability in
// parametric learning", 2017, show that one such step is a fit without a part of the
// data, but for a term of second order).
func (f *fitter) fitToSome(wanted func(run int) bool) *fitter {
	g := &fitter{parameters: f.parameters, usual: f.usual, d: f.d, scale: f.scale}
	all := f.meanSlopes()
	jac := make([][]float64, len(all))
	at := 0
	for i, c := range f.runs {
		n := len(c.momentResiduals(c.moments))
		if wanted(i) {
			g.runs = append(g.runs, c)
			g.base = append(g.base, f.base[at:at+n]...)
			for k := range jac {
				jac[k] = append(jac[k], all[k][at:at+n]...)
			}
		}
		at += n
	}
	best, damping := g.totalLoss(&g.d, g.base), 1e-2
	for range 2 {
		best, damping = g.step(jac, best, damping)
	}
	return g
}

// predictLeftOut says how far a fit on other loads is from the runs of one, and how many
// requests these are; without a Reason why it is not.
func (x *LeftOut) predictLeftOut(runs []*Recording, of []int, f *fitter) {
	var errors []Metrics
	for _, i := range of {
		recorded := runs[i].RecordedSeries()
		x.Runs, x.Requests = append(x.Runs, runs[i].Dir), x.Requests+len(recorded.TTFT)
		if x.Reason == "" {
			errors = append(errors, PercentErrors(runs[i].expectedMetrics(&f.d, everyRequest), recorded.Metrics()))
		}
	}
	if x.Reason != "" {
		return
	}
	mean := meanMetrics(errors)
	for i := range errors {
		errors[i] = errors[i].absoluteValues()
	}
	size := meanMetrics(errors)
	x.ErrorPct, x.AbsErrorPct = &mean, &size
}

// leastLeftOut is the least number of loads for an error to expect.
const leastLeftOut = 4

// expectedError returns the error that four of five means and medians stay within, of loads that
// were left out. It returns nil for too few loads.
func expectedError(list []LeftOut) *deploy.ExpectedError {
	var ttft, tpot, e2e []float64
	loads := 0
	for _, x := range list {
		if x.AbsErrorPct == nil {
			continue
		}
		loads++
		ttft = append(ttft, x.AbsErrorPct.TTFT.Mean, x.AbsErrorPct.TTFT.P50)
		tpot = append(tpot, x.AbsErrorPct.TPOT.Mean, x.AbsErrorPct.TPOT.P50)
		e2e = append(e2e, x.AbsErrorPct.E2E.Mean, x.AbsErrorPct.E2E.P50)
	}
	if loads < leastLeftOut {
		return nil
	}
	return &deploy.ExpectedError{TTFTPct: fourOfFive(ttft), TPOTPct: fourOfFive(tpot), E2EPct: fourOfFive(e2e), Loads: loads}
}

// fourOfFive is a bound that a further value is below with a probability of 0.8 at
// least, if it is one of the kind: the order statistic of place ⌈0.8·(n+1)⌉
// (conformal prediction: Vovk, Gammerman and Shafer, Algorithmic Learning in a
// Random World, 2005).
func fourOfFive(v []float64) float64 {
	slices.Sort(v)
	return v[min(int(math.Ceil(0.8*float64(len(v)+1))), len(v))-1]
}

// loadKey returns the load of the run as a key. It leaves out how the load was rendered for the
// server's tokenizer.
func (r *Recording) loadKey() string {
	if r.run == nil {
		return r.Dir
	}
	var workload map[string]any
	_ = json.Unmarshal(r.run.Workload, &workload) // what cannot be read is a workload too
	delete(workload, "vocabulary")
	delete(workload, "calibration")
	key, _ := json.Marshal([]any{r.run.Points[r.point].Load, workload}) // came from JSON
	return string(key)
}
