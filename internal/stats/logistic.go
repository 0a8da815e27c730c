package stats

import "math"

// Share is the number of n requests that violated a limit at one load.
type Share struct {
	Load          float64
	Violations, N int
	// Less is the reduction of its weight: 0 for the full weight of its requests, 1 for none.
	Less float64
	// Within is the variation of violations from block to block of the window, relative to
	// independent ones. It is 0 where that is not known, which counts as none. The fit's use of it
	// was chosen and is measured so.
	Within float64
}

// Prior is a normal prior on a slope. No spread means no prior.
type Prior struct{ Mean, SD float64 }

// precision is 1/SD².
func (p Prior) precision() float64 {
	if p.SD > 0 {
		return 1 / (p.SD * p.SD)
	}
	return 0
}

// Covariance is that of the two coefficients of a line.
type Covariance struct{ AA, AB, BB float64 }

// varianceAt gives the variance of a + b·x.
func (c Covariance) varianceAt(x float64) float64 { return c.AA + 2*x*c.AB + x*x*c.BB }

// scaledBy is the covariance of coefficients whose standard errors are √k times as large.
func (c Covariance) scaledBy(k float64) Covariance { return Covariance{k * c.AA, k * c.AB, k * c.BB} }

// inverse of the symmetric matrix, which must be positive definite.
func (c Covariance) inverse() Covariance {
	det := c.AA*c.BB - c.AB*c.AB
	return Covariance{c.BB / det, -c.AB / det, c.AA / det}
}

// Floor holds what is known beforehand of the share of violations that remains at any load. Such
// violations come where requests fail, or where answers take longer than a limit by themselves.
type Floor struct {
	Most          float64 // that it may be; 0: there is none
	Violations, N int     // of loads so light that they have hardly a part in it
	Phi           float64 // how much more Violations vary than binomial ones, as where failures come in clusters; below 1 it is 1
}

// Logistic is the fit of logit p = A + B·ln(load/Centre) to shares of violations
// P = Floor + (1 − Floor)·p at several loads.
type Logistic struct {
	A, B, Centre    float64
	Floor           float64
	Phi             float64    // how much more the counts vary than binomial ones: Pearson's χ²/(m−2), or within loads if that is more; at least 1
	Model           Covariance // of A and B, by Phi
	Robust          Covariance // of A and B, by the HC3 sandwich
	Bursts          float64    // about how many independent ones the violations make, their number ÷ Phi
	DF              int        // m−2
	Lowest, Highest float64    // loads
	Reason          NoFit      // why there is no fit; empty if there is one

	points []Share // that were fitted, for the profile
	slope  Prior
	floor  Floor
}

// NoFit is why there is no fit of shares of violations, or no load where it reaches a limit.
type NoFit string

// Why there is none.
const (
	NoCurve         NoFit = "shares_determine_no_curve"
	CountOutOfRange NoFit = "count_out_of_range"
	FewerLoads      NoFit = "fewer_than_three_loads"
	NoViolation     NoFit = "no_violation_at_fitted_loads"
	AllViolate      NoFit = "all_violate_at_fitted_loads"
	NotRising       NoFit = "violations_do_not_rise"
	HardlyRising    NoFit = "violations_hardly_rise"
	ShareOutOfRange NoFit = "share_out_of_range"
	FloorAtLimit    NoFit = "floor_may_reach_limit"
	OutsideLoads    NoFit = "estimate_outside_loads"
	TooWide         NoFit = "interval_over_factor_of_ten"
	NoUpperEnd      NoFit = "interval_without_upper_end"
	TooFewBursts    NoFit = "few_bursts_of_violations"
)

// FitLogistic fits shares of violations by quasi-binomial logistic regression
// on the logarithm of the load (McCullagh and Nelder, "Generalized Linear
// Models", 1989, sections 4.4 and 4.5). Violations come in bursts, so the
// likelihood counts for 1/φ of its binomial weight against the prior on the
// slope, with φ from the residuals. So few of these as there are loads are often alike by chance
// where bursts are few, so that φ is no less than violations vary from block to block within the
// loads, on average over the violations. The centre is the geometric mean of the
// loads.
//
// The sandwich covariance divides each residual by 1 − its leverage (HC3 of
// MacKinnon and White, Journal of Econometrics 29, 1985), and so does not
// assume that φ is the same at every load.
func FitLogistic(points []Share, slope Prior) Logistic { return FitAboveFloor(points, slope, Floor{}) }

// FitAboveFloor is the same above a floor that is fitted along with the line: what violates a
// limit by itself is no sign of the load (Abbott, Journal of Economic Entomology 18, 1925;
// Finney, "Probit Analysis", 1971, chapter 7), for one degree of freedom. What light loads showed
// of the floor counts like the prior, by how it varies itself.
func FitAboveFloor(points []Share, slope Prior, floor Floor) Logistic {
	if reason := unfitReason(points); reason != "" {
		return Logistic{Reason: reason}
	}
	f := Logistic{points: points, slope: slope, floor: floor, DF: len(points) - 2, Phi: 1, Lowest: points[0].Load, Highest: points[0].Load}
	var logs, violations, n float64
	for _, p := range points {
		f.Lowest, f.Highest = min(f.Lowest, p.Load), max(f.Highest, p.Load)
		logs += math.Log(p.Load)
		violations += float64(p.Violations)
		n += float64(p.N)
	}
	f.Centre = math.Exp(logs / float64(len(points)))
	f.A, f.B = logit(violations/n), 0
	// φ is taken from a fit that the prior hardly touches and then weighs the
	// prior: were it taken again, a misfit of the prior would raise it further.
	for range 2 {
		if !f.fitFloorAndLine() {
			return Logistic{Reason: NoCurve}
		}
		f.estimateSpread(points, slope)
	}
	f.Bursts = max(0, violations-f.Floor*n) / f.Phi
	if finite := f.Model.varianceAt(1) + f.Robust.varianceAt(1); math.IsNaN(finite) || math.IsInf(finite, 0) {
		return Logistic{Reason: NoCurve}
	}
	return f
}

// unfitReason is why points cannot be fitted.
func unfitReason(points []Share) NoFit {
	loads := map[float64]bool{}
	violations, n := 0., 0.
	for _, p := range points {
		if !(p.Load > 0) || math.IsInf(p.Load, 1) || p.N < 1 || p.Violations < 0 || p.Violations > p.N {
			return CountOutOfRange
		}
		loads[p.Load] = true
		violations += float64(p.Violations)
		n += float64(p.N)
	}
	switch {
	case len(loads) < 3:
		return FewerLoads
	case violations <= 0:
		return NoViolation
	case violations >= n:
		return AllViolate
	}
	return ""
}

// fitFloorAndLine finds the floor and the line that are most likely together.
func (f *Logistic) fitFloorAndLine() (ok bool) {
	f.atBestFloor(func(floor float64) float64 {
		f.Floor = floor
		ok = f.maximizePosterior(f.points, f.slope)
		return f.byFloor()
	})
	return ok
}

// floorStep is the precision to which a floor is sought, as a share of its largest value.
const floorStep = 0.01

// atBestFloor asks for floors until the last is where the posterior turns from rising to falling.
// rise gives how it changes with the floor where all else is the best for it: there that is the
// derivative by the floor alone.
func (f *Logistic) atBestFloor(rise func(floor float64) float64) {
	low, high := 0., f.floor.Most
	if !(rise(low) > 0) || high == 0 || rise(high) > 0 {
		return
	}
	for high-low > floorStep*f.floor.Most {
		if middle := (low + high) / 2; rise(middle) > 0 {
			low = middle
		} else {
			high = middle
		}
	}
}

// lightLikelihood is φ times the logarithm of the likelihood of what light loads showed.
func (f *Logistic) lightLikelihood() (log float64) {
	if f.floor.Violations > 0 {
		log = float64(f.floor.Violations) * math.Log(max(f.Floor, leastFloor))
	}
	return f.Phi / max(1, f.floor.Phi) * (log + float64(f.floor.N-f.floor.Violations)*math.Log1p(-f.Floor))
}

// leastFloor stands for none where there is a violation that has no other cause.
const leastFloor = 1e-12

// byFloor is the derivative of the posterior by the floor.
func (f *Logistic) byFloor() float64 {
	at := func(share, violations, rest float64) float64 {
		return (violations*(1-share)/max(share, leastFloor) - rest) / (1 - f.Floor)
	}
	sum := f.Phi / max(1, f.floor.Phi) * at(f.Floor, float64(f.floor.Violations), float64(f.floor.N-f.floor.Violations))
	for _, p := range f.points {
		v := float64(p.Violations)
		sum += (1 - p.Less) * at(f.ShareAt(p.Load), v, float64(p.N)-v)
	}
	return sum
}

// maximizePosterior maximises the posterior by Newton's method. Without a floor it is concave, so
// that halving the steps which do not climb leads to its top; above one it is nearly so.
func (f *Logistic) maximizePosterior(points []Share, slope Prior) bool {
	for range 100 {
		ga, gb := f.posteriorGradient(points, slope)
		v := f.informationMatrix(points, slope).inverse()
		da, db := v.AA*ga+v.AB*gb, v.AB*ga+v.BB*gb
		switch move := math.Abs(da) + math.Abs(db); {
		case move < 1e-8:
			return true
		case !(move <= math.MaxFloat64): // no point counts for anything
			return false
		}
		a, b, height := f.A, f.B, f.logPosterior(points, slope)
		rise := (ga*da + gb*db) / 10 // a good part of what the slope promises
		climbed := false
		for step := 1.0; step > 0 && !climbed; step /= 2 {
			f.A, f.B = a+step*da, b+step*db
			climbed = f.logPosterior(points, slope) >= height+step*rise-1e-12*math.Abs(height) // to rounding
		}
		if !climbed {
			return false
		}
	}
	return false
}

// residualOf gives the abscissa of a point, its binomial variance n·P(1−P), and its
// residual v − n·P, both without cancelling where P is nearly 1; above a floor the first times
// (p/P)² and the second times p/P, which is what they tell of the line.
func (f *Logistic) residualOf(p Share) (x, variance, residual float64) {
	x = math.Log(p.Load / f.Centre)
	eta := f.A + f.B*x
	yes, no := sigmoid(eta), sigmoid(-eta)
	v, weight := float64(p.Violations), 1-p.Less
	rest := float64(p.N) - v
	if f.Floor > 0 {
		share := f.Floor + (1-f.Floor)*yes
		weight *= yes / share
		return x, weight * float64(p.N) * yes * (1 - f.Floor) * no, weight * (v*(1-f.Floor)*no - rest*share)
	}
	return x, weight * float64(p.N) * yes * no, weight * (v*no - rest*yes)
}

// logPosterior is φ times its logarithm.
func (f *Logistic) logPosterior(points []Share, slope Prior) float64 {
	d := f.B - slope.Mean
	sum := f.lightLikelihood() - f.Phi*slope.precision()*d*d/2
	for _, p := range points {
		eta := f.A + f.B*math.Log(p.Load/f.Centre)
		v, log := float64(p.Violations), logSigmoid(eta)
		if f.Floor > 0 {
			log = math.Log(f.Floor + (1-f.Floor)*sigmoid(eta))
		}
		sum += (1 - p.Less) * (v*log + (float64(p.N)-v)*(math.Log1p(-f.Floor)+logSigmoid(-eta)))
	}
	return sum
}

// posteriorGradient is the derivative of posterior.
func (f *Logistic) posteriorGradient(points []Share, slope Prior) (ga, gb float64) {
	gb = f.Phi * slope.precision() * (slope.Mean - f.B)
	for _, p := range points {
		x, _, r := f.residualOf(p)
		ga += r
		gb += r * x
	}
	return ga, gb
}

// informationMatrix is minus the second derivative of posterior; above a floor it is what that is
// on average.
func (f *Logistic) informationMatrix(points []Share, slope Prior) Covariance {
	h := Covariance{BB: f.Phi * slope.precision()}
	for _, p := range points {
		x, w, _ := f.residualOf(p)
		h.AA += w
		h.AB += w * x
		h.BB += w * x * x
	}
	return h
}

// estimateSpread takes φ and the covariances from the residuals.
func (f *Logistic) estimateSpread(points []Share, slope Prior) {
	bread := f.informationMatrix(points, slope).inverse()
	var pearson, weights, within, violations float64
	var meat Covariance
	for _, p := range points {
		x, w, r := f.residualOf(p)
		if w == 0 {
			continue // so far from the limit that the model leaves no chance
		}
		pearson += r * r / w
		weights += 1 - p.Less
		v := (1 - p.Less) * float64(p.Violations)
		within, violations = within+v*p.Within, violations+v
		u := r / max(1-w*bread.varianceAt(x), 1e-9) // a leverage of 1 but for rounding
		meat.AA += u * u
		meat.AB += u * u * x
		meat.BB += u * u * x * x
	}
	f.Phi = max(1, pearson/weights*float64(len(points))/float64(f.DF), within/max(violations, 1))
	f.Model = Covariance{f.Phi * bread.AA, f.Phi * bread.AB, f.Phi * bread.BB}
	f.Robust = bread.sandwichWith(meat)
}

// sandwichWith is c·m·c.
func (c Covariance) sandwichWith(m Covariance) Covariance {
	aa, ab := c.AA*m.AA+c.AB*m.AB, c.AA*m.AB+c.AB*m.BB // rows of c·m
	ba, bb := c.AB*m.AA+c.BB*m.AB, c.AB*m.AB+c.BB*m.BB
	return Covariance{aa*c.AA + ab*c.AB, aa*c.AB + ab*c.BB, ba*c.AB + bb*c.BB}
}

// ShareAt is the share of violations that the fit expects at a load.
func (f *Logistic) ShareAt(load float64) float64 {
	return f.Floor + (1-f.Floor)*sigmoid(f.A+f.B*math.Log(load/f.Centre))
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// logSigmoid is ln sigmoid(x), also where that is nearly 1 or 0.
func logSigmoid(x float64) float64 { return min(x, 0) - math.Log1p(math.Exp(-math.Abs(x))) }

func logit(p float64) float64 { return math.Log(p / (1 - p)) }
