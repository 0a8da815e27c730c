package sim

import "math"

// LaunchFactor returns the factor that one launch, which is one start of a server, multiplies its
// times by. The factor is lognormal over launches, with mean 1 and coefficient of variation cv. It
// depends on its arguments only.
func LaunchFactor(cv float64, launch uint64) float64 {
	if !(cv > 0) {
		return 1
	}
	sigma := math.Sqrt(math.Log1p(cv * cv)) // of the logarithm
	return math.Exp(sigma*normalDeviate(launch, 0, 0) - sigma*sigma/2)
}
