package stats

import "math"

const (
	// ModelError is the relative standard error added to a load read from a
	// fitted curve, because the true curve is not exactly logistic.
	ModelError = 0.01
	// MaxInverseSE is the standard error of a load's logarithm above which it is not
	// given: by then the interval reaches over a factor of ten and more.
	MaxInverseSE = 1
)

// fewBursts is by how much the standard error is larger where the violations make
// few independent bursts: 1 + fewBursts ÷ their number. Chosen on the systems that
// `go run ./bench/stat -only bounds` does not report.
const fewBursts = 1

// Violations come in bursts, and most short windows at the limit meet none: more often than not a
// fit to few requests sees fewer violations than there are, and so lies above the load where they
// reach the limit, in the median by missed ÷ √(violations that a window is allowed) standard
// errors, mostMissed at most, and by nothing where they do not come in bursts (φ = 1). What is
// given is lower by that, of a standard error up to shiftedSE: of larger ones the size is chance,
// and adds more to the error than the shift takes. Chosen on the systems that `go run ./bench/stat
// -only bounds` does not report: at 3,000 and 10,000 requests estimates there lay 23 and 8 % too
// high.
const missed, mostMissed, shiftedSE = 1.2, 1.2, 0.1

// leastBursts is the smallest number of bursts that shows their spread.
const leastBursts = 5

// LeastSlope is the least slope of violations over the load, d logit P / d ln load. It applies
// where the load causes them. It was 2.3 to 70 on all systems simulated.
const LeastSlope = 1.5

// Inverse is the load at which a fitted share of violations reaches a limit.
type Inverse struct {
	Load     float64 // the estimate; also with a Reason, if there is a fit that rises
	SE       float64 // of ln Load, by the delta method
	Interval         // two-sided
	Lower    float64 // one-sided lower limit
	Reason   NoFit   // why there is no estimate, and so no interval; empty if there is one
	Curve    Curve   // that the estimate is read from
}

// Curve is a fitted share of violations: Floor + (1 − Floor)·sigmoid(A + B·ln(load/Centre)).
type Curve struct{ A, B, Centre, Floor float64 }

// LoadAt is the load where the fit reaches the share eps of violations, with a
// two-sided interval at level and a one-sided lower limit that is too high with
// probability alpha. It is the inverse estimate of a dose-response curve (Finney, "Probit
// Analysis", 1971) with the limits of its profile likelihood, which a linearised error and
// Fieller's limits fall short of, or far exceed, where the slope is a guess: they know that
// a load without violations speaks against a slope that would have brought some. The
// larger of the two covariances counts, ModelError is added, and t has m−2 degrees of
// freedom. Estimate and limits are lower by what short windows miss.
//
// For the smallest of k limits to be too high with probability alpha at the
// most, ask each at alpha/k.
func (f Logistic) LoadAt(eps, level, alpha float64) Inverse {
	switch {
	case f.Reason != "":
		return Inverse{Reason: f.Reason}
	case !(f.B > 0):
		return Inverse{Reason: NotRising}
	case !(eps > 0 && eps < 1):
		return Inverse{Reason: ShareOutOfRange}
	case f.floor.Most >= eps:
		return Inverse{Reason: FloorAtLimit}
	}
	x := (logitAbove(f.Floor, eps) - f.A) / f.B
	cov := f.Model
	if f.Robust.varianceAt(x) > cov.varianceAt(x) {
		cov = f.Robust
	}
	caution := 1 + fewBursts/max(f.Bursts, 1)
	cov = cov.scaledBy(caution * caution)
	v := Inverse{SE: math.Sqrt(cov.varianceAt(x)/(f.B*f.B) + ModelError*ModelError), Curve: Curve{f.A, f.B, f.Centre, f.Floor}}
	off := min(mostMissed, missed/math.Sqrt(eps*f.meanRequests())) * (1 - 1/f.Phi)
	estimate := x - off*min(v.SE, shiftedSE)
	v.Load = f.Centre * math.Exp(estimate)
	t := func(level float64) float64 { return StudentQuantile(1-tailProbability(level), float64(f.DF)) }
	switch {
	case v.Load < f.Lowest || v.Load > f.Highest:
		v.Reason = OutsideLoads
	case v.SE > MaxInverseSE:
		v.Reason = TooWide
	case f.Bursts < leastBursts:
		v.Reason = TooFewBursts
	case f.B < LeastSlope:
		v.Reason = HardlyRising
	default:
		phi := f.Phi * max(1, cov.varianceAt(x)/f.Model.varianceAt(x))
		limit := func(t float64) float64 { // of t standard errors to one side
			to := f.profileLimit(x, eps, t, phi)
			return x + math.Copysign(math.Hypot(to-x, t*ModelError), t)
		}
		// Limits move by half of it: how much is missed differs by system.
		below := limit(-(t(level) + off/2))
		above := limit(max(0, t(level)-off/2))
		least := limit(-(t(OneSided(1-alpha)) + off/2))
		if above-x >= widestProfile { // a floor may be all that there is up to what may violate
			v.Reason = NoUpperEnd
			break
		}
		v.Interval = Interval{f.Centre * math.Exp(below), f.Centre * math.Exp(above)}
		v.Lower = f.Centre * math.Exp(least)
		if f.floor.Most > 0 { // the covariance is of one floor
			v.SE = max(v.SE, (above-below)/2/t(level))
		}
	}
	return v
}

// meanRequests returns the mean number of requests of a load.
func (f *Logistic) meanRequests() float64 {
	n := 0
	for _, p := range f.points {
		n += p.N
	}
	return float64(n) / float64(len(f.points))
}

// profileLimit is a limit of the abscissa x at which a share of violations is reached, below x
// where t is negative: where the best curve through it is t² times phi less likely than the best of
// all, by twice the difference of the logarithms (Venzon and Moolgavkar, Applied Statistics 37,
// 1988).
func (f *Logistic) profileLimit(x, eps, t, phi float64) float64 {
	best := f.logPosterior(f.points, f.slope)
	beyond := func(to float64) bool {
		through := f.bestThrough(to, eps)
		return 2*(best-through.logPosterior(f.points, f.slope)) > t*t*phi
	}
	step := math.Copysign(0.01, t)
	inside, outside := x, x+step
	for ; !beyond(outside); outside += step {
		if inside, step = outside, 2*step; math.Abs(outside-x) > widestProfile {
			return outside
		}
	}
	for math.Abs(outside-inside) > 1e-4 {
		if mid := (inside + outside) / 2; beyond(mid) {
			outside = mid
		} else {
			inside = mid
		}
	}
	return inside
}

// widestProfile is the distance up to which limits are sought, in ln of the load.
const widestProfile = 5

// logitAbove is the logit of p where P is eps.
func logitAbove(floor, eps float64) float64 { return math.Log((eps - floor) / (1 - eps)) }

// bestThrough is the best curve that reaches a share of violations at an abscissa.
func (f *Logistic) bestThrough(x, eps float64) (g Logistic) {
	f.atBestFloor(func(floor float64) float64 {
		g = *f
		g.Floor = floor
		g.bestLineAt(x, logitAbove(floor, eps))
		rise := g.byFloor()
		for _, p := range g.points { // the higher the floor, the lower the line
			_, _, r := g.residualOf(p)
			rise -= r / (eps - floor)
		}
		return rise
	})
	return g
}

// bestLineAt finds the best line that reaches a logit at an abscissa and rises at least as
// LeastSlope. Along the lines through a point the posterior is concave, or nearly so.
func (f *Logistic) bestLineAt(x, logit float64) {
	low, high := LeastSlope, math.Inf(1)
	b := max(f.B, LeastSlope)
	for range 60 {
		f.A, f.B = logit-b*x, b
		rise, bend := f.posteriorChange(x)
		if rise > 0 {
			low = b
		} else {
			high = b
		}
		next := b + rise/bend
		switch {
		case next > low && next < high:
		case math.IsInf(high, 1):
			next = 2 * b
		default:
			next = (low + high) / 2
		}
		if math.Abs(next-b) < 1e-4*b {
			break
		}
		b = next
	}
}

// posteriorChange returns the change of the posterior where the line turns about its point at x.
// rise is the first derivative by the slope, and bend is minus the second.
func (f *Logistic) posteriorChange(x float64) (rise, bend float64) {
	bend = f.Phi * f.slope.precision()
	rise = bend * (f.slope.Mean - f.B)
	for _, p := range f.points {
		at, w, r := f.residualOf(p)
		rise += r * (at - x)
		bend += w * (at - x) * (at - x)
	}
	return rise, bend
}
