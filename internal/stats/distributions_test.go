package stats

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// near says whether two numbers agree to a relative error.
func near(got, want, relative float64) bool {
	return got == want || math.Abs(got-want) <= relative*math.Abs(want)
}

// Values of SciPy 1.15.
func TestDistributions(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"normal", NormalCDF(1.959963984540054), .975},
		{"normal", NormalCDF(-8), 6.22096057427174e-16},
		{"normal", NormalCDF(.5), .6914624612740131},
		{"normal quantile", NormalQuantile(.975), 1.959963984540054},
		{"normal quantile", NormalQuantile(1e-12), -7.034483825301131},
		{"normal quantile", NormalQuantile(.3), -.5244005127080409},
		{"beta", IncompleteBeta(.5, 2, 3), .6875},
		{"beta", IncompleteBeta(.3, .5, .5), .36901011956554536},
		{"beta", IncompleteBeta(.9, 10, 1), .34867844010000004},
		{"beta", IncompleteBeta(.2, 100, 300), .00799453086687934},
		{"beta", IncompleteBeta(.0101, 1e4, 1e6), .9777875433046725},
		{"beta", IncompleteBeta(.99, 5e6, 5e4), .012502841297117725},
		{"Student", StudentCDF(1, 1), .75},
		{"Student", StudentCDF(2, 5), .9490302605850708},
		{"Student", StudentCDF(-3, 10), .006671827511284785},
		{"Student", StudentCDF(.1, 4), .5374220795302733},
		{"Student", StudentCDF(-20, 3), .0001366016251236558},
		{"Student", StudentCDF(1.5, 2.5), .8760817734568519},
		{"Student quantile", StudentQuantile(.975, 1), 12.706204736174694},
		{"Student quantile", StudentQuantile(.975, 5), 2.5705818356363146},
		{"Student quantile", StudentQuantile(.975, 10), 2.228138851986274},
		{"Student quantile", StudentQuantile(.95, 14), 1.761310135774891},
		{"Student quantile", StudentQuantile(.995, 2), 9.924843200918287},
		{"Student quantile", StudentQuantile(.6, 3), .2766706623326898},
		{"Student quantile", StudentQuantile(.999999, 1), 318309.88617359026},
		{"Student quantile", StudentQuantile(.975, 2.5), 3.5746548420036817},
		{"Student quantile", StudentQuantile(.1, 1000), -1.2823987214609247},
		{"binomial", BinomialCDF(3, 10, .5), .171875},
		{"binomial", BinomialCDF(60, 8053, .01), .009975539824664691},
		{"binomial", BinomialCDF(9990, 10000, .999), .5421328760209828},
		{"binomial", BinomialCDF(99_100, 10_000_000, .01), .002101318971768995},
		{"binomial", BinomialCDF(495, 500, .99), .560388913251898},
		{"binomial", BinomialCDF(-1, 5, .5), 0},
		{"binomial", BinomialCDF(5, 5, .5), 1},
		{"binomial tail", BinomialTail(4, 5, .5), 1. / 32},
		{"binomial tail", BinomialTail(-1, 5, .5), 1},
		{"binomial tail", BinomialTail(5, 5, .5), 0},
	} {
		if !near(c.got, c.want, 1e-7) {
			t.Errorf("%s: %.16g, want %.16g", c.name, c.got, c.want)
		}
	}
	for _, p := range []float64{0, 1} {
		want := math.Inf(int(2*p - 1))
		if NormalQuantile(p) != want || StudentQuantile(p, 3) != want {
			t.Errorf("quantiles of %v must be infinite", p)
		}
	}
	if NormalQuantile(.5) != 0 || StudentQuantile(.5, 3) != 0 {
		t.Error("medians must be 0")
	}
}

func TestQuantilesInvert(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := math.Exp(rapid.Float64Range(-30, -1e-3).Draw(t, "ln p"))
		a, b := rapid.Float64Range(.1, 500).Draw(t, "a"), rapid.Float64Range(.1, 500).Draw(t, "b")
		if got := NormalCDF(NormalQuantile(p)); !near(got, p, 1e-10) {
			t.Errorf("normal: %g comes back as %g", p, got)
		}
		if got := StudentCDF(StudentQuantile(p, a), a); !near(got, p, 1e-8) && a > 1 {
			t.Errorf("Student, df %g: %g comes back as %g", a, p, got)
		}
		x := BetaQuantile(p, a, b)
		lo, hi := IncompleteBeta(math.Nextafter(x*(1-1e-14), 0), a, b), IncompleteBeta(math.Nextafter(x*(1+1e-14), 1), a, b)
		if lo > p*(1+1e-10) || hi < p*(1-1e-10) {
			t.Errorf("beta(%g, %g): %g lies between neither %g nor %g", a, b, p, lo, hi)
		}
	})
}

// The sums that the incomplete beta function stands for.
func TestBinomialSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 400).Draw(t, "n")
		p := rapid.Float64Range(.001, .999).Draw(t, "p")
		var sum float64
		for k := range n {
			c := lgamma(float64(n+1)) - lgamma(float64(k+1)) - lgamma(float64(n-k+1))
			sum += math.Exp(c + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
			if got := BinomialCDF(k, n, p); math.Abs(got-sum) > 1e-10 {
				t.Fatalf("P(B ≤ %d) of Bin(%d, %g) = %g, the sum is %g", k, n, p, got, sum)
			}
			if got := BinomialCDF(k, n, p) + BinomialTail(k, n, p); math.Abs(got-1) > 1e-10 {
				t.Fatalf("both tails of Bin(%d, %g) at %d make %g", n, p, k, got)
			}
		}
	})
}
