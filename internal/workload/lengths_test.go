package workload

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pitot/internal/say"
	"pitot/internal/workload/seed"
)

func lengths(t testing.TB, s string) Lengths {
	t.Helper()
	l, err := ParseLengths(s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestParseLengths(t *testing.T) {
	for in, want := range map[string]string{
		"1024":                            "1024",
		" 7 ":                             "7",
		"Uniform( 1 , 10 )":               "uniform(1,10)",
		"uniform(5,5)":                    "uniform(5,5)",
		"normal(100,0)":                   "normal(100,0)",
		"normal(100.5,1e1)":               "normal(100.5,10)",
		"lognormal(1154.3,1108.2)":        "lognormal(1154.3,1108.2)",
		"lognormal(10,-0)":                "lognormal(10,0)",
		"gamma(100,50)":                   "gamma(100,50)",
		"zipf(1.1, 4096)":                 "zipf(1.1,4096)",
		"Quantiles(0:1, 50:200 ,100:4e3)": "quantiles(0:1,50:200,100:4000)",
	} {
		if got := lengths(t, in); got.String() != want {
			t.Errorf("ParseLengths(%q) = %s, want %s", in, got, want)
		}
	}
	for in, want := range map[string]string{
		"":                          "write a number of tokens as 1024",
		"1k":                        "write a number of tokens as 1024",
		"0":                         "want 1 to 16777216 tokens",
		"-3":                        "want 1 to 16777216 tokens",
		"99999999999":               "want 1 to 16777216 tokens",
		"uniform(10,1)":             "did you mean uniform(1,10)?",
		"uniform(1.5,3)":            "whole numbers",
		"uniform(1,+Inf)":           "at most",
		"uniform(1)":                lengthHint,
		"uniform(1,2":               lengthHint,
		"uniform(1,2,3)":            "not two numbers",
		"weibull(1,2)":              lengthHint,
		"gamma(10,-1)":              "the standard deviation is -1",
		"zipf(-1,10)":               "the exponent is -1",
		"zipf(1,0.5)":               "a whole number",
		"quantiles()":               "is not PERCENT:TOKENS",
		"quantiles(0:1)":            "the longest, at 100",
		"quantiles(0:9,50:7,100:8)": "fewer than before",
		"quantiles(0:1,0:2,100:8)":  "does not rise",
		"quantiles(0:0,100:8)":      "not between 1",
		"fixed(1,2)":                lengthHint,
		"normal(a,b)":               "not two numbers",
		"normal(NaN,1)":             "not two numbers",
		"normal(0.5,1)":             "the first number is 0.5",
		"normal(10,-1)":             "the standard deviation is -1",
		"lognormal(1e300,1)":        "the first number is 1e+300",
	} {
		if l, err := ParseLengths(in); err == nil || !strings.Contains(err.Error()+"; "+say.HintOf(err), want) || !l.IsZero() {
			t.Errorf("ParseLengths(%q) = %v, %v, want an error with %q", in, l, err, want)
		}
	}
}

// Moments of 20,000 draws against those asked for, within five standard
// errors (with the log-normal's heavy tail allowed for in its deviation).
func TestLengthsMoments(t *testing.T) {
	const n = 20_000
	for _, c := range []struct {
		spec             string
		mean, sd, within float64 // within: of the deviation, relative
		min, max         int
	}{
		{"300", 300, 0, 0, 300, 300},
		{"uniform(1,10)", 5.5, math.Sqrt(99.0 / 12), 0.02, 1, 10},
		{"normal(1000,100)", 1000, 100, 0.03, 500, 1500},
		{"lognormal(1000,500)", 1000, 500, 0.06, 100, 20_000},
		{"lognormal(200,400)", 200, 400, 0.25, 1, 100_000},
		{"gamma(1000,500)", 1000, 500, 0.03, 1, 10_000},
		{"gamma(200,400)", 200, 400, 0.06, 1, 20_000},
		{"zipf(0,101)", 51, math.Sqrt((101*101 - 1) / 12.0), 0.02, 1, 101},
	} {
		l := lengths(t, c.spec)
		var sum, squares float64
		for i := range uint64(n) {
			x := l.Draw(seed.At(3, streamInput, i))
			if x < c.min || x > c.max {
				t.Fatalf("%s gave %d", l, x)
			}
			sum += float64(x)
			squares += float64(x) * float64(x)
		}
		mean := sum / n
		sd := math.Sqrt(max(0, squares/n-mean*mean))
		if math.Abs(mean-c.mean) > 5*c.sd/math.Sqrt(n) || math.Abs(sd-c.sd) > c.within*c.sd {
			t.Errorf("%s: mean %.2f, standard deviation %.2f, want %.2f and %.2f", l, mean, sd, c.mean, c.sd)
		}
		if math.Abs(l.Mean()-c.mean) > 1e-9*c.mean {
			t.Errorf("%s: Mean() = %g, want %g", l, l.Mean(), c.mean)
		}
	}
}

func TestLengthsGolden(t *testing.T) {
	for _, c := range []struct {
		spec string
		u    uint64
		want int
	}{
		{"uniform(1,10)", 0, 1},
		{"uniform(1,10)", math.MaxUint64, 10},
		{"uniform(1,16777216)", math.MaxUint64, MaxLength},
		{"normal(100,10)", 1 << 63, 100},
		{"normal(100,10)", 0xD7783DE6F4F9DA4B, 110}, // the 84.17th percentile: one standard deviation
		{"normal(1,1000)", 0, 1},
		{"lognormal(100,100)", 1 << 63, 71}, // median m/√2 when sd = m
		{"lognormal(16777216,16777216)", math.MaxUint64, MaxLength},
		{"lognormal(1,16777216)", 0, 1},
	} {
		if got := lengths(t, c.spec).Draw(c.u); got != c.want {
			t.Errorf("%s at %#x = %d, want %d", c.spec, c.u, got, c.want)
		}
	}
	if got := (Lengths{}).Draw(5); got != Unknown {
		t.Errorf("no lengths at all give %d", got)
	}
	if FixedLength(0) != lengths(t, "1") || FixedLength(1<<30).Draw(0) != MaxLength {
		t.Error("Fixed does not hold its length to what can be")
	}
}

// At is a quantile function: it never falls.
func TestLengthsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Uint64().Draw(t, "a"), rapid.Uint64().Draw(t, "b")
		for _, spec := range []string{"uniform(3,900)", "normal(400,300)", "lognormal(400,900)", "gamma(400,900)", "gamma(400,3)", "zipf(1.2,5000)", "quantiles(0:1,50:100,100:9000)"} {
			l, _ := ParseLengths(spec)
			if lo, hi := l.Draw(min(a, b)), l.Draw(max(a, b)); lo < 1 || lo > hi {
				t.Fatalf("%s: %d at the lower draw, %d at the higher", l, lo, hi)
			}
		}
	})
}

func FuzzParseLengths(f *testing.F) {
	for _, s := range []string{"1024", "uniform(1,10)", "normal(5.5,0)", "lognormal(1e3,2e2)", "uniform(,)", "((", "normal(0x1p4,Inf)", "gamma(100,1e6)", "gamma(1,0)", "zipf(1,16777216)", "quantiles(0:1,50:7,100:7)"} {
		f.Add(s, uint64(1))
	}
	f.Fuzz(func(t *testing.T, s string, u uint64) {
		l, err := ParseLengths(s)
		if err != nil {
			return
		}
		if n := l.Draw(u); n < 1 || n > MaxLength {
			t.Errorf("%s gave %d", l, n)
		}
		if again, err := ParseLengths(l.String()); err != nil || again != l {
			t.Errorf("%q reads back as %v, %v", l, again, err)
		}
	})
}

// Quantiles are met exactly, and the mean of what is drawn is the mean that is told.
func TestLengthsQuantiles(t *testing.T) {
	l := lengths(t, "quantiles(0:10,50:208,95:6700,100:32768)")
	for p, want := range map[float64]int{0.5: 208, 0.95: 6700} {
		if got := l.Quantile(p); got != want {
			t.Errorf("quantile %g is %d, want %d", p, got, want)
		}
	}
	for _, spec := range []string{"quantiles(0:10,50:208,95:6700,100:32768)", "zipf(1.1,4096)", "zipf(2,1000)", "zipf(1,50)", "gamma(300,200)"} {
		l, n, sum := lengths(t, spec), 50_000, 0.0
		for i := range n { // in the middle of equal shares: no chance in it
			sum += float64(l.Quantile((float64(i) + 0.5) / float64(n)))
		}
		// Cells of equal share say little of a heavy tail beyond the last of them.
		if mean := sum / float64(n); math.Abs(mean/l.Mean()-1) > 0.015 {
			t.Errorf("%s: mean %.3f, told %.3f", spec, mean, l.Mean())
		}
	}
}

// Zipf's shares are k^−exponent over their sum.
func TestLengthsZipf(t *testing.T) {
	const most, n = 300, 400_000
	l := lengths(t, "zipf(1.3,300)")
	total := 0.0
	for k := 1; k <= most; k++ {
		total += math.Pow(float64(k), -1.3)
	}
	counts := make([]int, most+1)
	for i := range n {
		counts[l.Quantile((float64(i)+0.5)/n)]++
	}
	for _, k := range []int{1, 2, 31, 32, 33, 34, 100, 300} {
		if want := n * math.Pow(float64(k), -1.3) / total; math.Abs(float64(counts[k])-want) > 2 {
			t.Errorf("%d of %d are %d long, want %.1f", counts[k], n, k, want)
		}
	}
}

func BenchmarkLengths(b *testing.B) {
	for _, spec := range []string{"lognormal(400,900)", "gamma(400,300)", "zipf(1.1,4096)", "quantiles(0:1,50:200,100:4000)"} {
		l := lengths(b, spec)
		b.Run(spec, func(b *testing.B) {
			for i := range b.N {
				l.Draw(seed.At(3, streamInput, uint64(i)))
			}
		})
	}
}

func TestVariation(t *testing.T) {
	for spec, want := range map[string]float64{"300": 0, "lognormal(1000,1500)": 2.25, "normal(1000,100)": 0.01, "uniform(1,1999)": 1. / 3} {
		l, err := ParseLengths(spec)
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		if got := l.SquaredCV(); math.Abs(got-want) > 0.1*want+1e-9 {
			t.Errorf("%s: %v, want %v", spec, got, want)
		}
	}
	if got := (Lengths{}).SquaredCV(); !math.IsNaN(got) {
		t.Errorf("of nothing: %v", got)
	}
}
