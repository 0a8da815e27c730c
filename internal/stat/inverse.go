package stat

import "math"

const (
	// ModelError is the relative standard error added to a load read from a
	// fitted curve, because the true curve is not exactly logistic.
	ModelError = 0.01
	// MaxInverseSE is the relative standard error of a load above which it is
	// not given.
	MaxInverseSE = 0.25
)

// Inverse is the load at which a fitted share of violations reaches a limit.
type Inverse struct {
	Load     float64 // the estimate; also with a Reason, if there is a fit that rises
	SE       float64 // of ln Load
	Interval         // two-sided
	Lower    float64 // one-sided lower limit
	Reason   string  // why there is no estimate, and so no interval; empty if there is one
}

// LoadAt is the load where the fit reaches the share eps of violations, with a
// two-sided interval at level and a one-sided lower limit that is too high with
// probability alpha. It is the inverse estimate of a dose-response curve
// (Finney, "Probit Analysis", 1971): x = (logit ε − A)/B has the variance
// (V_AA + 2x·V_AB + x²·V_BB)/B² by the delta method. The larger of the two
// covariances counts, ModelError is added, and t has m−2 degrees of freedom.
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
	v := Inverse{Load: f.Centre * math.Exp(x)}
	v.SE = math.Sqrt(max(f.Model.varianceAt(x), f.Robust.varianceAt(x))/(f.B*f.B) + ModelError*ModelError)
	switch {
	case v.Load < f.Lowest || v.Load > f.Highest:
		v.Reason = "the estimate lies outside the loads measured"
	case v.SE > MaxInverseSE:
		v.Reason = "the standard error is above 25 %"
	default:
		logs := studentInterval(math.Log(v.Load), v.SE, float64(f.DF), level)
		v.Interval = Interval{math.Exp(logs.Lo), math.Exp(logs.Hi)}
		v.Lower = math.Exp(studentInterval(math.Log(v.Load), v.SE, float64(f.DF), OneSided(1-alpha)).Lo)
	}
	return v
}
