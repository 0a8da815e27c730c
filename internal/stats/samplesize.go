package stats

import (
	"math"
	"sort"
)

// mostValues is the most values a side that [ValuesNeeded] gives.
const mostValues = 10_000

// ValuesNeeded returns the number of values a side that a two-sided t test needs to find a
// difference. The test has the given level and power. The standard deviation sd is itself
// estimated, with df degrees of freedom. The result is the least k whose power, averaged over the
// possible true deviations, reaches the given one (Julious and Owen, "Sample size calculations for
// clinical studies allowing for uncertainty about the variance", Pharmaceutical Statistics 5,
// 2006). ok is false without a difference or a spread, and where more than 10,000 values would be
// needed.
func ValuesNeeded(delta, sd, df, level, power float64) (k int, ok bool) {
	delta = math.Abs(delta)
	if !(delta > 0) || !(sd > 0) || !(df > 0) {
		return 0, false
	}
	ratios := chiRatios(df)
	enough := func(k int) bool { return testOf(k, level).averagePower(delta/sd, ratios) >= power }
	if !enough(mostValues) {
		return 0, false
	}
	return 2 + sort.Search(mostValues-2, func(i int) bool { return enough(i + 2) }), true
}

// DetectableDifference returns the smallest difference that a two-sided t test of k values a side
// finds with the given power, where the standard deviation sd is an estimate with df degrees of
// freedom: the inverse of [ValuesNeeded]. ok is false below two values a side and without spread.
func DetectableDifference(sd, df float64, k int, level, power float64) (delta float64, ok bool) {
	if k < 2 || !(sd > 0) || !(df > 0) {
		return 0, false
	}
	test, ratios := testOf(k, level), chiRatios(df)
	found := func(delta float64) bool { return test.averagePower(delta/sd, ratios) >= power }
	lo, hi := 0., sd
	for !found(hi) {
		if lo, hi = hi, 2*hi; math.IsInf(hi, 0) {
			return 0, false
		}
	}
	for range 50 {
		if mid := lo + (hi-lo)/2; found(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi, true
}

// FiresAt returns the smallest true difference at which a gate fires with the given power: the
// estimate is least or more, and a two-sided t test of k values a side finds the difference. The
// standard deviation sd is an estimate with df degrees of freedom. ok is as in
// [DetectableDifference].
func FiresAt(least, sd, df float64, k int, level, power float64) (delta float64, ok bool) {
	if k < 2 || !(sd > 0) || !(df > 0) {
		return 0, false
	}
	of := float64(2 * (k - 1))
	t, root := StudentQuantile(1-tailProbability(level), of), math.Sqrt(2/float64(k))
	truth, found := chiRatios(df), chiRatios(of)
	if of > 100 { // it is known as good as exactly
		found = []weighted{{1, 1}}
	}
	fires := func(delta float64) (p float64) {
		for _, c := range truth {
			se := sd / c.x * root // the true one
			for _, f := range found {
				p += c.weight * f.weight * NormalCDF((delta-max(least, t*f.x*se))/se)
			}
		}
		return p
	}
	lo, hi := 0., least+sd
	for fires(hi) < power {
		if lo, hi = hi, 2*hi; math.IsInf(hi, 0) {
			return 0, false
		}
	}
	for range 12 {
		if mid := lo + (hi-lo)/2; fires(mid) < power {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi, true
}

// tTest is a two-sided t test of two sides.
type tTest struct {
	values   float64 // of a side
	df       float64
	critical float64 // a statistic beyond it is significant
}

func testOf(k int, level float64) tTest {
	df := float64(2 * (k - 1))
	return tTest{float64(k), df, StudentQuantile(1-tailProbability(level), df)}
}

// averagePower returns the power to find a difference, in estimated standard deviations, averaged
// over what the ratio of the estimate to the true one may be. The noncentral t is taken as normal
// (Abramowitz and Stegun, "Handbook of Mathematical Functions", 1964, 26.7.10).
func (t tTest) averagePower(difference float64, ratios []weighted) (power float64) {
	scale := math.Sqrt(1 + t.critical*t.critical/(2*t.df))
	for _, c := range ratios {
		shift := difference * c.x * math.Sqrt(t.values/2)
		power += c.weight * NormalCDF((shift-t.critical*(1-1/(4*t.df)))/scale)
	}
	return power
}

// weighted is a value and the probability that it stands for.
type weighted struct{ x, weight float64 }

// chiRatios is the law of the ratio of an estimated standard deviation to the true one, with
// df degrees of freedom: √(χ²/df), on a grid.
func chiRatios(df float64) []weighted {
	const cells = 48
	lo, hi := max(0, 1-5/math.Sqrt(2*df)), 1+5/math.Sqrt(2*df)
	out, sum := make([]weighted, cells), 0.
	for i := range out {
		x := lo + (hi-lo)*(float64(i)+.5)/cells
		out[i] = weighted{x, math.Exp((df-1)*math.Log(x) - df*(x*x-1)/2)}
		sum += out[i].weight
	}
	for i := range out {
		out[i].weight /= sum
	}
	return out
}
