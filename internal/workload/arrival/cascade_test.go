package arrival

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pitot/internal/stats"
)

// gapsApart is Kolmogorov and Smirnov's distance of the gaps of two lists of times.
func gapsApart(a, b []int64) float64 {
	gaps := func(due []int64) (out []float64) {
		for i := 1; i < len(due); i++ {
			out = append(out, float64(due[i]-due[i-1]))
		}
		slices.Sort(out)
		return out
	}
	return stats.KSDistance(gaps(a), gaps(b))
}

func drawTimes(t testing.TB, l *Law, rate float64, seed uint64, n int) []int64 {
	t.Helper()
	p, err := l.NewProcess(rate, seed, 0)
	if err != nil {
		t.Fatal(err)
	}
	due := make([]int64, n)
	for i := range due {
		due[i] = p.Next()
	}
	return due
}

// What sums make of a log has its gaps and its dispersions, whatever it is like: the laws
// here and their numbers have no part in how the constants were chosen.
func TestCascadeIsLikeItsLog(t *testing.T) {
	for _, text := range []string{"poisson", "gamma(0.2)", "on-off(3s,9s)", "mmpp(1:40s,6:5s)", "0.5*gamma(0.2) + 0.5*gamma(0.1)", "sinusoid(0.9,600s)"} {
		due := drawTimes(t, law1(t, text), 6, 11, 12_000)
		c, ok := NewCascade(due, 5)
		if !ok {
			t.Fatalf("%s: none", text)
		}
		l, err := FromCascade(c)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		want := ObserveTimes(due)
		if r := l.OwnRate(); math.Abs(r/want.Rate-1) > 0.001 {
			t.Errorf("%s: rate %g, want %g", text, r, want.Rate)
		}
		for seed := range uint64(3) {
			again := drawTimes(t, l, l.OwnRate(), seed, len(due))
			if d := gapsApart(due, again); d > 0.02 {
				t.Errorf("%s: gaps are %.4f apart", text, d)
			}
			got := ObserveTimes(again)
			for i := range Scales {
				if r := got.Dispersion[i] / want.Dispersion[i]; math.Abs(r-1) > 0.1 {
					t.Errorf("%s: the dispersion at %g s is %.3g, want %.3g", text, Scales[i], got.Dispersion[i], want.Dispersion[i])
				}
			}
			if slices.Equal(again, due) {
				t.Errorf("%s: the log's own times", text)
			}
		}
	}
}

// A longer log has more between two knots, and is told all the same.
func TestCascadeOfALongLog(t *testing.T) {
	due := drawTimes(t, law1(t, "mmpp(1:20s,6:5s)"), 20, 3, 80_000)
	c, ok := NewCascade(due, 5)
	if !ok || len(c.Spans) > mostKnots+1 || c.Every < 16 {
		t.Fatalf("%v, %d spans of %d", ok, len(c.Spans), c.Every)
	}
	l, err := FromCascade(c)
	if err != nil {
		t.Fatal(err)
	}
	again := drawTimes(t, l, l.OwnRate(), 1, len(due))
	if d := gapsApart(due, again); d > 0.02 {
		t.Errorf("gaps are %.4f apart", d)
	}
	got, want := ObserveTimes(again), ObserveTimes(due)
	for i := range Scales {
		if r := got.Dispersion[i] / want.Dispersion[i]; math.Abs(r-1) > 0.1 {
			t.Errorf("the dispersion at %g s is %.3g, want %.3g", Scales[i], got.Dispersion[i], want.Dispersion[i])
		}
	}
}

// Nothing that few requests say is told: a span holds as many as were asked for, and so does
// each step of a quantile.
func TestCascadeTellsOfMany(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, least := rapid.IntRange(2, 300).Draw(t, "n"), rapid.IntRange(1, 40).Draw(t, "least")
		due := make([]int64, n)
		for i := 1; i < n; i++ {
			due[i] = due[i-1] + rapid.SampledFrom([]int64{0, 1, 1e3, 1e6, 1e9, 3e9, 3600e9}).Draw(t, "gap")
		}
		c, ok := NewCascade(due, least)
		if !ok {
			return
		}
		if what := c.Check(); what != "" {
			t.Fatalf("%s makes no law", what)
		}
		for g := range c.Spans {
			if c.gapCount(g) < least {
				t.Fatalf("span %d is of %d requests", g, c.gapCount(g))
			}
		}
		steps := 0
		for _, s := range c.Splits {
			steps += len(s.Logits)
		}
		if steps*least > n*40 { // each gap is in one split of each level
			t.Fatalf("%d steps of %d requests", steps, n)
		}
		l, err := FromCascade(c)
		if err != nil {
			t.Fatal(err)
		}
		p, err := l.NewProcess(l.OwnRate(), 1, rapid.Int64Range(0, 1e13).Draw(t, "from"))
		if err != nil {
			t.Fatal(err)
		}
		for last, k := int64(0), 0; k < 3*n; k++ {
			due := p.Next()
			if due < last {
				t.Fatalf("goes back from %d to %d", last, due)
			}
			last = due
		}
	})
}

// The gaps of this log once came to more than a span, rounded: the last time of a group was a
// nanosecond later than the knot after it.
func TestCascadeTimesNeverGoBack(t *testing.T) {
	const log = "12311211101000240110053501064404130660013160621241110502000160113100420650010404020060" +
		"0042460001053000113610116021115004430224350101435205230413100600022436160050412110363630011550304423" +
		"124000100102040240061131060462513"
	gaps := []int64{0, 1, 1e3, 1e6, 1e9, 3e9, 3600e9} // nanoseconds, by digit
	due := []int64{0}
	for _, digit := range log {
		due = append(due, due[len(due)-1]+gaps[digit-'0'])
	}
	c, ok := NewCascade(due, 12)
	if !ok {
		t.Fatal("no law")
	}
	l, err := FromCascade(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []int64{0, 1} {
		p, err := l.NewProcess(l.OwnRate(), 1, from)
		if err != nil {
			t.Fatal(err)
		}
		for last, k := int64(0), 0; k < 3*len(due); k++ {
			due := p.Next()
			if due < last {
				t.Fatalf("from %d: goes back from %d to %d", from, last, due)
			}
			last = due
		}
	}
}

// A log of a request each nanosecond, or more, makes no law.
func TestCascadeOfALogThatIsTooFast(t *testing.T) {
	due := make([]int64, 16)
	due[15] = 1
	if c, ok := NewCascade(due, 1); ok {
		t.Errorf("a law of %g requests per second", c.MeanRate())
	}
}

// What a file may say of one does no harm.
func TestCascadeThatMakesNoLaw(t *testing.T) {
	good := func() *Cascade {
		return &Cascade{Requests: 16, Every: 8, Spans: []float64{1, 2}, Slopes: []float64{0}, Splits: []Split{{0, 0, []float64{0}}}}
	}
	if _, err := FromCascade(good()); err != nil {
		t.Fatal(err)
	}
	for i, spoil := range []func(c *Cascade){
		func(c *Cascade) { c.Requests = 0 },
		func(c *Cascade) { c.Every = 0 },
		func(c *Cascade) { c.Spans = nil },
		func(c *Cascade) { c.Spans = []float64{1, 2, 3} },
		func(c *Cascade) { c.Requests, c.Spans = 40, []float64{1} },
		func(c *Cascade) { c.Spans = []float64{1, math.NaN()} },
		func(c *Cascade) { c.Spans = []float64{1, -1} },
		func(c *Cascade) { c.Spans = []float64{0, 0} },
		func(c *Cascade) { c.Slopes = []float64{2} },
		func(c *Cascade) { c.Splits[0].Logits = nil },
		func(c *Cascade) { c.Splits[0].Logits = []float64{1, 0} },
		func(c *Cascade) { c.Splits = append(c.Splits, c.Splits[0]) },
		func(c *Cascade) { c.Gaps = Correction{From: []float64{1}} },
		func(c *Cascade) { c.Gaps = Correction{From: []float64{0}, To: []float64{1}} },
	} {
		c := good()
		spoil(c)
		if _, err := FromCascade(c); err == nil {
			t.Errorf("case %d is a law", i)
		}
	}
}
