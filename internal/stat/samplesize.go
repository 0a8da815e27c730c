package stat

import "math"

// mostValues is the most values a side that [ValuesNeeded] gives.
const mostValues = 10_000

// ValuesNeeded is how many values a side a two-sided t test at the given level
// needs to find a difference with the given power: the least k for which
// [MinDetectable] is not above it. ok is false without a difference or a
// spread, and where more than 10,000 would be needed.
func ValuesNeeded(delta, sd, level, power float64) (k int, ok bool) {
	delta = math.Abs(delta)
	if !(delta > 0) || !(sd > 0) {
		return 0, false
	}
	// t has heavier tails than the normal distribution, so fewer than this are
	// never enough, and few more are.
	z := (NormalQuantile(1-tail(level)) + NormalQuantile(power)) * sd / delta
	if least := 2 * z * z; least > 2 {
		if least > mostValues {
			return 0, false
		}
		k = int(least)
	}
	for k = max(k, 2); k <= mostValues; k++ {
		if least, _ := MinDetectable(sd, k, level, power); least <= delta {
			return k, true
		}
	}
	return 0, false
}
