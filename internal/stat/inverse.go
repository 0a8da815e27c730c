package stat

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

// leastBursts is how many of them are too few to tell their spread.
const leastBursts = 5

// LeastSlope is how steeply violations rise with the load at least, d logit P / d ln
// load, where it is the load that causes them: 2.3 to 70 on all systems simulated.
const LeastSlope = 1.5

// Inverse is the load at which a fitted share of violations reaches a limit.
type Inverse struct {
	Load     float64 // the estimate; also with a Reason, if there is a fit that rises
	SE       float64 // of ln Load, by the delta method
	Interval         // two-sided
	Lower    float64 // one-sided lower limit
	Reason   string  // why there is no estimate, and so no interval; empty if there is one
}

// LoadAt is the load where the fit reaches the share eps of violations, with a
// two-sided interval at level and a one-sided lower limit that is too high with
// probability alpha. It is the inverse estimate of a dose-response curve with
// Fieller's limits (Finney, "Probit Analysis", 1971), which a linearised error falls
// short of just where the slope is a guess: all loads at which a line reaches the share
// whose coefficients are within t standard errors, and whose slope is not below
// LeastSlope. The larger of the two covariances counts, ModelError is added, and t has
// m−2 degrees of freedom.
//
// For the smallest of k limits to be too high with probability alpha at the
// most, ask each at alpha/k.
func (f Logistic) LoadAt(eps, level, alpha float64) Inverse {
	switch {
	case f.Reason != "":
		return Inverse{Reason: f.Reason}
	case !(f.B > 0):
		return Inverse{Reason: "violations do not rise with the load"}
	case !(eps > 0 && eps < 1):
		return Inverse{Reason: "no share of violations between 0 and 1 is asked for"}
	}
	x := (logit(eps) - f.A) / f.B
	cov := f.Model
	if f.Robust.varianceAt(x) > cov.varianceAt(x) {
		cov = f.Robust
	}
	caution := 1 + fewBursts/max(f.Bursts, 1)
	cov = cov.times(caution * caution)
	v := Inverse{Load: f.Centre * math.Exp(x)}
	v.SE = math.Sqrt(cov.varianceAt(x)/(f.B*f.B) + ModelError*ModelError)
	t := func(level float64) float64 { return StudentQuantile(1-tail(level), float64(f.DF)) }
	switch {
	case v.Load < f.Lowest || v.Load > f.Highest:
		v.Reason = "the estimate lies outside the loads measured"
	case v.SE > MaxInverseSE:
		v.Reason = "the interval would reach over more than a factor of ten"
	case f.Bursts < leastBursts:
		v.Reason = "violations came in too few bursts"
	case f.B < LeastSlope:
		v.Reason = "violations hardly rise with the load"
	default:
		lo, hi := f.fieller(cov, logit(eps), t(level))
		least, _ := f.fieller(cov, logit(eps), t(OneSided(1-alpha)))
		v.Interval = Interval{f.Centre * math.Exp(lo), f.Centre * math.Exp(hi)}
		v.Lower = f.Centre * math.Exp(least)
	}
	return v
}

// fieller gives the limits of the abscissa at which the line reaches a logit: the least
// and the most over the ellipse of the coefficients. For each slope in it the intercept
// lies within a stretch, whose ends are asked.
func (f Logistic) fieller(c Covariance, logit, t float64) (lo, hi float64) {
	const slopes = 400
	x := (logit - f.A) / f.B
	lo, hi = x, x
	wide := t * math.Sqrt(c.BB)
	from := max(LeastSlope, f.B-wide)
	rest := math.Sqrt(max(0, c.AA-c.AB*c.AB/c.BB))
	for i := range slopes + 1 {
		b := from + (f.B+wide-from)*float64(i)/slopes
		u := (b - f.B) / math.Sqrt(c.BB)
		a, half := f.A+c.AB/c.BB*(b-f.B), math.Sqrt(max(0, t*t-u*u))*rest
		lo, hi = min(lo, (logit-a-half)/b), max(hi, (logit-a+half)/b)
	}
	return x - math.Hypot(x-lo, t*ModelError), x + math.Hypot(hi-x, t*ModelError)
}
