package decide

import (
	"math"

	"pitot/internal/stats"
)

// power is the share of experiments in which an effect of the smallest size is established.
const power = 0.8

// SmallestEffect is the least effect, as a difference of logarithms or of shares, that so many
// launches would establish in four of five experiments. sd is the standard deviation
// between launches; comparisons is for how many effects it is corrected. It takes the
// first of Holm's steps for all, which errs on the side of more. NaN where nothing could be
// established.
func SmallestEffect(sd float64, comparisons, configurations, launches int, confidence float64, early bool) float64 {
	if launches < 2 || configurations < 2 || comparisons < 1 {
		return math.NaN()
	}
	alpha := (1 - confidence) * (1 - capacityPart) / float64(comparisons)
	if early {
		alpha *= ErrorShare(launches, launches)
	}
	return DetectableEffect(sd*math.Sqrt(2/float64(launches)), float64((configurations-1)*(launches-1)), alpha)
}

// DetectableEffect is the effect that a t test at a level establishes in four of five
// experiments, by its standard error and degrees of freedom.
func DetectableEffect(se, df, alpha float64) float64 {
	return (stats.StudentQuantile(1-alpha/2, df) + stats.StudentQuantile(power, df)) * se
}
