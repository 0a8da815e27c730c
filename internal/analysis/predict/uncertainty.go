package predict

import (
	"math"
	"slices"
)

// parameterUncertainty works out how well the runs determine each parameter. Three
// things make it miss: the chances of the run and of the replay it is compared
// with, how far the twin is from the runs at its best, and how far the catalogue
// is from the server where the runs say little. With J the change of the residuals
// with the logarithms of the parameters, W their weights and P the precision of
// the priors, the fit answers to residuals r with (JᵀWJ + P)⁻¹JᵀW·r, and to the
// priors' centres with (JᵀWJ + P)⁻¹P. How residuals vary by chance is seen in replays
// with other seeds. J is a difference of replays and has chance in it too, which
// would make each JᵀWJ too large: it is taken from pairs of seeds. cov is the
// covariance of their logarithms.
func (f *fitter) parameterUncertainty() (list []Fitted, cov [][]float64) {
	const seeds, h = 2, 0.3
	const chances, t = 10, 2.26 // Student's t of 9 degrees of freedom at 95 %
	k := len(f.parameters)
	for len(f.slopes) < seeds {
		f.addSlopes()
	}
	var small []int // of which not the logarithm is moved
	for i := range f.parameters {
		if f.hasFaded(&f.parameters[i]) {
			small = append(small, i)
		}
	}
	var trials []trial
	for s := range uint64(seeds) {
		for _, i := range small {
			up := trial{f.d, 20 + s}
			p := &f.parameters[i]
			p.setValue(&up.d, p.value(&f.d)+h*p.centre)
			trials = append(trials, up, trial{f.d, 20 + s})
		}
	}
	for s := range uint64(chances) {
		trials = append(trials, trial{f.d, 100 + s})
	}
	at := f.trialResiduals(trials)
	again := at[seeds*2*len(small):]
	n := len(again[0])
	mean, variance := make([]float64, n), make([]float64, n)
	for l := range n {
		v := make([]float64, chances)
		for s := range v {
			v[s] = again[s][l]
		}
		sd := 0.0
		mean[l], sd = meanSD(v)
		variance[l] = sd * sd
	}
	w := f.residualWeights(mean)
	// info is JᵀWJ; scatter is JᵀW·Σ·WJ, Σ being the covariance of residuals.
	info, scatter := zeroMatrix(k), zeroMatrix(k)
	var jacs, pulls [seeds][][]float64
	for s := range jacs {
		jacs[s] = slices.Clone(f.slopes[s])
		for j, i := range small {
			there, here := at[2*(s*len(small)+j)], at[2*(s*len(small)+j)+1]
			jacs[s][i] = make([]float64, n)
			for l := range there {
				jacs[s][i][l] = (there[l] - here[l]) / h
			}
		}
		pulls[s] = weightedProduct(jacs[s], deviations(again, mean), w)
	}
	ones := slices.Repeat([]float64{1.0 / (chances - 1)}, chances)
	for a := range jacs {
		for b := range jacs {
			if a == b {
				continue
			}
			x, y := weightedProduct(jacs[a], jacs[b], w), weightedProduct(pulls[a], pulls[b], ones)
			for i := range info {
				for j := range info { // both ways round: symmetric
					info[i][j] += (x[i][j] + x[j][i]) / (2 * seeds * (seeds - 1))
					scatter[i][j] += (y[i][j] + y[j][i]) / (2 * seeds * (seeds - 1))
				}
			}
		}
	}
	info = nearestPositive(info)
	inv := cloneMatrix(info)
	for i := range inv {
		inv[i][i] += f.parameters[i].precision()
	}
	inv = invertMatrix(inv)
	spread := multiplyMatrices(inv, multiplyMatrices(info, inv)) // of residuals that vary by one, each for itself
	// By how much they vary, together and in the directions that the runs
	// determine.
	chance := max(trace(multiplyMatrices(spread, scatter))/trace(multiplyMatrices(spread, info)), 0)
	// How much further the twin is from the runs than chance brings it, in each
	// residual.
	misfit := 0.0
	for l := range mean {
		misfit += w[l] * (mean[l]*mean[l]*float64(n)/float64(max(n-k, 1)) - 2*variance[l]) / float64(n)
	}
	misfit = max(misfit, 0)
	cov = zeroMatrix(k)
	for i := range cov {
		for j := range cov {
			cov[i][j] = (2*chance + misfit) * spread[i][j] // chance is of the replay and of the run
			for l := range f.parameters {
				q := &f.parameters[l]
				cov[i][j] += inv[i][l] * inv[j][l] * math.Pow(q.precision()*q.sd, 2)
			}
			cov[i][j] *= bent
		}
	}
	list = make([]Fitted, k)
	for i := range f.parameters {
		p := &f.parameters[i]
		total := min(cov[i][i], p.sd*p.sd)
		v := p.value(&f.d)
		x := Fitted{Name: p.name, Value: v, Unit: p.unit(), Factor: math.Exp(t * math.Sqrt(total))}
		if f.hasFaded(p) {
			x.Factor = 1 + t*math.Sqrt(total)*p.centre/v
		}
		x.Low, x.High = max(v/x.Factor, p.lo), min(v*x.Factor, p.hi)
		if total > p.sd*p.sd/2 { // the runs tell little of it: it may as well be anywhere that the catalogue allows
			usual := math.Exp(t * p.sd)
			x.Low, x.High = min(x.Low, max(p.centre/usual, p.lo)), max(x.High, min(p.centre*usual, p.hi))
			x.Factor = max(x.High/v, v/x.Low)
		}
		x.Identified = x.Factor < 2 && total < p.sd*p.sd/2 // by the runs: what was known before does not count
		if !x.Identified {
			x.StandIn = f.standIn(inv, info, i)
		}
		if v <= p.lo*1.001 || v >= p.hi*0.999 {
			x.AtBound, x.Factor, x.Identified, x.Reason = true, 1, false, "at its bound"
		}
		list[i] = x
	}
	return list, cov
}

// deviations are those of each row from the mean row.
func deviations(rows [][]float64, mean []float64) [][]float64 {
	out := newMatrix(len(rows), len(mean))
	for i, r := range rows {
		for j := range r {
			out[i][j] = r[j] - mean[j]
		}
	}
	return out
}

// bent is by how much variances are larger than slopes at the best fit say. A
// small parameter can grow to many times its size and stand in for a large one,
// which a straight line in their logarithms does not show. With it the ranges
// hold the truth as often as they should (bench/fit).
const bent = 2.5

// standIn names the parameter without which the runs would determine another,
// "" if there is none.
func (f *fitter) standIn(cov, info [][]float64, i int) string {
	if math.Exp(2/math.Sqrt(info[i][i]+f.parameters[i].precision())) > 2 { // not even by itself
		return ""
	}
	best, name := 0.5, ""
	for j := range cov {
		if r := math.Abs(cov[i][j]) / math.Sqrt(cov[i][i]*cov[j][j]); j != i && r > best {
			best, name = r, f.parameters[j].name
		}
	}
	return name
}
