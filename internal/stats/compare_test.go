package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pitot/bench/stat/queue"
	_ "pitot/internal/rapidtest" // the same draws each time
)

// SciPy's ttest_ind(equal_var=False) and statsmodels' ttost_ind.
func TestWelch(t *testing.T) {
	a, b := []float64{12.1, 11.8, 12.6, 12.3, 11.9}, []float64{12.9, 13.4, 12.7, 13.1, 13.8, 12.8}
	d, ok := Welch(a, b, .95)
	if !ok || !near(d.P, .001765105078754058, 1e-8) || !near(d.DF, 8.970167387461684, 1e-9) || !near(d.Estimate/d.SE, 4.387820816564608, 1e-9) ||
		!near(d.Lo, .4728871898498217, 1e-8) || !near(d.Hi, 1.480446143483515, 1e-8) {
		t.Errorf("%+v", d)
	}
	if p := d.TOST(1.5); !near(p, .021656242666870003, 1e-8) {
		t.Errorf("TOST p = %.12g", p)
	}
	back, _ := Welch(b, a, .95)
	if back.TOST(1.5) != d.TOST(1.5) || back.Estimate != -d.Estimate {
		t.Error("the order must not matter")
	}
	for _, c := range [][2][]float64{{{1}, {1, 2}}, {nil, nil}, {{1, 1}, {2, 2}}} {
		if _, ok := Welch(c[0], c[1], .95); ok {
			t.Errorf("%v", c)
		}
	}
}

// An equal pair of systems, 5 launches each at 0.8: called different in 7 % of
// comparisons at most.
func TestEqualSystems(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	launch := func() float64 {
		q := queue.New(32, .8, rng.Uint64())
		q.Warm(20)
		m, _ := Moments(q.TTFTs(800))
		return math.Log(m)
	}
	var welch, shift tally
	for range 400 {
		var a, b [5]float64
		for i := range a {
			a[i], b[i] = launch(), launch()
		}
		d, _ := Welch(a[:], b[:], .95)
		welch.add(d.P < .05)
		shift.add(!HodgesLehmann(a[:], b[:], .95).Contains(0))
	}
	welch.within(t, "Welch on launches calls equal systems different", 0, .07)
	shift.within(t, "Hodges-Lehmann does", 0, .07)
}

func TestMannWhitneyDistribution(t *testing.T) {
	// Two-sided p of complete separation, as SciPy's mannwhitneyu(method="exact").
	for k, want := range map[int]float64{3: .1, 4: .02857142857142857, 5: .007936507936507936} {
		if got := 2 * mannWhitneyCDF(0, k, k); !near(got, want, 1e-12) {
			t.Errorf("%d + %d: %g, want %g", k, k, got, want)
		}
	}
	// The normal approximation takes over smoothly.
	for _, u := range []int{200, 260, 312, 400} {
		exact := mannWhitneyCDF(u, 25, 25)
		mean, sd := 312.5, math.Sqrt(25*25*51/12.)
		if approximate := NormalCDF((float64(u) + .5 - mean) / sd); math.Abs(exact-approximate) > 2e-3 {
			t.Errorf("P(U ≤ %d) = %g, approximately %g", u, exact, approximate)
		}
	}
}

func TestHodgesLehmann(t *testing.T) {
	s := HodgesLehmann([]float64{1, 2, 3, 4, 5}, []float64{11, 12, 13, 14, 1000}, .95)
	if s.Estimate != 10 || s.Reason != "" || s.Lo != 7 || s.Hi != 997 { // the third of each end
		t.Errorf("%+v", s)
	}
	if s := HodgesLehmann([]float64{1, 2, 3}, []float64{4, 5, 6}, .95); s.Estimate != 3 || !strings.Contains(s.Reason, "too few") {
		t.Errorf("%+v", s)
	}
	if s := HodgesLehmann(nil, []float64{4, 5, 6}, .95); s.Reason == "" {
		t.Errorf("%+v", s)
	}
	rng := rand.New(rand.NewPCG(3, 1))
	var small, large tally
	for range 1000 {
		small.add(HodgesLehmann(cauchy(rng, 6, 0), cauchy(rng, 8, 2), .95).Contains(2))
	}
	for range 500 {
		large.add(HodgesLehmann(cauchy(rng, 40, 0), cauchy(rng, 30, 2), .95).Contains(2))
	}
	small.within(t, "6 + 8 hold the shift", .94, .985)
	large.within(t, "40 + 30 hold the shift", .91, .985)
}

func cauchy(rng *rand.Rand, n int, centre float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = centre + math.Tan(math.Pi*(rng.Float64()-.5))
	}
	return out
}

// statsmodels' multipletests(method="holm")
func TestHolm(t *testing.T) {
	got := Holm([]float64{.01, .04, .03, .005})
	for i, want := range []float64{.03, .06, .06, .02} {
		if !near(got[i], want, 1e-12) {
			t.Errorf("%v", got)
		}
	}
}

func TestHolmKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ps := rapid.SliceOf(rapid.Float64Range(0, 1)).Draw(t, "p")
		adjusted := Holm(ps)
		for i := range ps {
			if adjusted[i] < ps[i] || adjusted[i] > 1 {
				t.Errorf("%g becomes %g", ps[i], adjusted[i])
			}
			for j := range ps {
				if ps[i] < ps[j] && adjusted[i] > adjusted[j] {
					t.Errorf("%v turns around in %v", ps, adjusted)
				}
			}
		}
		if len(ps) > 0 && !near(slices.Min(adjusted), min(1, float64(len(ps))*slices.Min(ps)), 1e-12) {
			t.Errorf("the smallest of %v is not Bonferroni's", adjusted)
		}
	})
}

// Launches whose shares lie as far apart as the margin are called equivalent in one
// comparison of twenty at most, be it that they saw no events at all.
func TestSharesAreNotCalledEquivalent(t *testing.T) {
	const reps, margin = 1000, .01
	rng := rand.New(rand.NewPCG(4, 4))
	share := func(mean, cv, n float64) float64 {
		if cv > 0 { // a launch's own, of coefficient of variation cv: 1/cv² exponential ones
			k, sum := 1/(cv*cv), 0.
			for range int(k) {
				sum += rng.ExpFloat64()
			}
			mean *= sum / k
		}
		events, at := 0., rng.ExpFloat64()
		for ; at < mean*n; at += rng.ExpFloat64() {
			events++
		}
		return events / n
	}
	for _, n := range []float64{100, 1000} {
		for _, launches := range []int{3, 5, 10} {
			for _, low := range []float64{0, .0005, .01} {
				for _, cv := range []float64{0, .5, 1} {
					var wrong, right, naive tally
					for range reps {
						a, b, c := make([]float64, launches), make([]float64, launches), make([]float64, launches)
						for i := range launches {
							a[i], b[i], c[i] = share(low, cv, n), share(low+margin, cv, n), share(low, cv, n)
						}
						p := equivalentShares(a, b, n, margin)
						wrong.add(p < .05)
						right.add(equivalentShares(a, c, n, margin) < .05)
						d, spread := Welch(a, b, .95)
						naive.add(!spread && a[0] == b[0] || spread && d.TOST(margin) < .05)
						other := func(xs []float64) []float64 {
							out := make([]float64, len(xs))
							for i, x := range xs {
								out[i] = 1 - x
							}
							return out
						}
						if q := equivalentShares(other(b), other(a), n, margin); !near(p, q, 1e-9) {
							t.Fatalf("of %v and %v: %g, of what is left %g", a, b, p, q)
						}
					}
					what := fmt.Sprintf("%g requests, %d launches, share %g, launches differ by %g", n, launches, low, cv)
					t.Logf("%s: wrongly %.3f (t alone %.3f), rightly %.3f", what, wrong.share(), naive.share(), right.share())
					wrong.within(t, what, 0, .075) // 5 % and 3.6 standard errors
				}
			}
		}
	}
	for _, c := range []struct{ a, b []float64 }{{[]float64{0}, []float64{0, 0}}, {[]float64{0, 0}, []float64{0}}, {[]float64{.2, .2}, []float64{.2, .2}}} {
		if p := equivalentShares(c.a, c.b, 0, margin); p < .5 {
			t.Errorf("%v and %v, of how many nobody knows: %g", c.a, c.b, p)
		}
	}
}

// equivalentShares is the p-value that the means of two samples of shares lie within ±margin.
func equivalentShares(a, b []float64, n, margin float64) float64 {
	return max(ShareBelow(a, b, n, margin), ShareBelow(b, a, n, margin))
}
