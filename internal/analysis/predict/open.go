package predict

import (
	"cmp"
	"math"
	"slices"

	"pitot/internal/sim/deploy"
)

// What a fit leaves open shows where a load is unlike those that were fitted: there
// its parameters, each possible by itself, give predictions that differ. The error to
// expect of such a load is that of the loads that were left out, and the spread of the
// predictions; and it grows with the distance, for what the model lacks need not be
// seen where the runs were.

// mostDirections is the number of directions that are kept. Further ones hardly add to the spread.
const mostDirections = 6

// uncertainDirections are the ways in which the parameters may be off together, the most open
// first: principal axes of the covariance of their logarithms, one standard deviation
// long, as factors by name.
func (f *fitter) uncertainDirections(cov [][]float64) (list []map[string]float64) {
	values, vectors := eigen(cov)
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
	for _, k := range order[:min(mostDirections, len(order))] {
		sd := math.Sqrt(max(values[k], 0))
		one := map[string]float64{}
		for i := range f.parameters {
			one[f.parameters[i].name] = math.Round(1e4*math.Exp(min(max(sd*vectors[i][k], -1), 1))) / 1e4
		}
		list = append(list, one)
	}
	return list
}

// shiftedAlong is a deployment that is off in a direction.
func shiftedAlong(d *deploy.Deployment, direction map[string]float64) *deploy.Deployment {
	c := *d
	for i := range parameters {
		p := &parameters[i]
		if f := direction[p.name]; f > 0 {
			p.setValue(&c, p.value(d)*f)
		}
	}
	return &c
}

// widening is by how much an error is larger where a load is beyond what was fitted
// by a factor of e, and openness how many standard deviations of what the runs leave open
// it counts: these are rather too large, and a part of them is in the error of loads
// within. Both were chosen on simulated servers, and others said how often the errors
// hold (bench/fit).
const widening, openness = 0.25, 0.4

// ErrorAt is the error to expect of the predictions of a fitted deployment for a load:
// as of those that were left out of the fit where it is within what was fitted, and
// wider beyond. predicted gives the load's means. nil where nothing is known.
func ErrorAt(d *deploy.Deployment, load deploy.Range, predicted func(*deploy.Deployment) Metrics) *deploy.ExpectedError {
	if d.FittedError == nil {
		return nil
	}
	x := *d.FittedError
	beyond := d.FitDistance(load)
	if beyond == 0 {
		return &x
	}
	here := predicted(d)
	var ttft, tpot, e2e float64 // variances of the logarithms
	add := func(sum *float64, there, here Quantities) {
		if there.Mean > 0 && here.Mean > 0 {
			*sum += math.Pow(math.Log(there.Mean/here.Mean), 2)
		}
	}
	for _, direction := range d.FittedOpen {
		there := predicted(shiftedAlong(d, direction))
		add(&ttft, there.TTFT, here.TTFT)
		add(&tpot, there.TPOT, here.TPOT)
		add(&e2e, there.E2E, here.E2E)
	}
	for _, y := range []struct {
		pct      *float64
		variance float64
	}{{&x.TTFTPct, ttft}, {&x.TPOTPct, tpot}, {&x.E2EPct, e2e}} {
		*y.pct = (1 + widening*beyond) * math.Hypot(*y.pct, 100*openness*math.Sqrt(y.variance))
	}
	return &x
}
