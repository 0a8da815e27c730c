package arrival

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pitot/internal/say"
)

// Gaps have mean 1/rate and coefficient of variation 1/√shape, and of shape 1
// the exponential distribution (Kolmogorov-Smirnov).
func TestGammaDistribution(t *testing.T) {
	const n, rate = 100_000, 250.0
	for name, shape := range map[string]float64{"gamma(0.25)": .25, "gamma(1)": 1, "gamma(4)": 4, "gamma(100)": 100} {
		due := firstDues(t, n, name, rate, 20)
		gaps, last := make([]float64, n), int64(0)
		var sum, squares float64
		for i, d := range due {
			gaps[i] = float64(d-last) * rate / 1e9
			last = d
			sum += gaps[i]
			squares += gaps[i] * gaps[i]
		}
		mean := sum / n
		cv := math.Sqrt(squares/n-mean*mean) / mean
		if want := 1 / math.Sqrt(shape); math.Abs(mean-1) > .01*max(1, want) || math.Abs(cv-want) > .02*want {
			t.Errorf("%s: mean %.4f, CV %.4f, want 1 and %.4f", name, mean, cv, want)
		}
		if shape != 1 {
			continue
		}
		slices.Sort(gaps)
		worst := distanceFrom(gaps, exponentialCDF)
		if limit := 1.63 / math.Sqrt(n); worst > limit { // 1 %
			t.Errorf("distance to the exponential distribution %.5f, want below %.5f", worst, limit)
		}
	}
}

// A seed means the same times for ever.
func TestGammaGolden(t *testing.T) {
	for name, want := range map[string][]int64{
		"gamma(0.5)": {38031780, 300950504, 347874617, 352970084, 625091299},
		"gamma(3)":   {92254404, 296271221, 410201612, 485808002, 631950242},
	} {
		if got := firstDues(t, len(want), name, 10, 7); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestGammaEnds(t *testing.T) {
	due := firstDues(t, 20_000, "gamma(0.5)", MinRate, 1)
	if !slices.IsSorted(due) || due[len(due)-1] != math.MaxInt64 {
		t.Errorf("last of 20,000 at one in 12 days is due at %d", due[len(due)-1])
	}
	for name, want := range map[string]string{
		"gamma":      "wants its numbers",
		"gamma()":    "no number",
		"gamma(x)":   "no number",
		"gamma(1":    "a parenthesis is missing",
		"gamma(0)":   "want 0.01 to 1000",
		"gamma(NaN)": "no number",
		"gamma(1e9)": "want 0.01 to 1000",
	} {
		p, err := parse(name, 1, 0)
		if p != nil || err == nil || !strings.Contains(err.Error()+say.HintOf(err), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
