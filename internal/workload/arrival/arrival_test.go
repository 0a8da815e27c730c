package arrival

import (
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
	"pitot/internal/say"
)

// parse is the process of a law that needs no file.
func parse(name string, rate float64, seed uint64) (Process, error) {
	l, err := ParseLaw(name, Files{})
	if err != nil {
		return nil, err
	}
	return l.NewProcess(rate, seed, 0)
}

func firstDues(t testing.TB, n int, name string, rate float64, seed uint64) []int64 {
	t.Helper()
	p, err := parse(name, rate, seed)
	if err != nil {
		t.Fatal(err)
	}
	due := make([]int64, n)
	for i := range due {
		due[i] = p.Next()
	}
	return due
}

// A seed means the same times for ever.
func TestGolden(t *testing.T) {
	for _, c := range []struct {
		name string
		rate float64
		seed uint64
		want []int64
	}{
		{"poisson", 10, 0, []int64{12407814, 96450103, 459761389, 462716426, 686821510}},
		{"poisson", 1000, 1, []int64{288017, 1275822, 2100710, 2147679, 3746871}},
		{"constant", 3, 0, []int64{0, 333333333, 666666667, 1000000000, 1333333333}},
		{"constant", 1e9, 9, []int64{0, 1, 2, 3}},
		{"constant", 0.5, 9, []int64{0, 2e9, 4e9}},
		{"constant", MinRate, 9, []int64{0, 1e15, 2e15}},
	} {
		if got := firstDues(t, len(c.want), c.name, c.rate, c.seed); !slices.Equal(got, c.want) {
			t.Errorf("%s at %g/s, seed %d: %v, want %v", c.name, c.rate, c.seed, got, c.want)
		}
	}
}

func anyRate(t *rapid.T) float64 {
	return math.Pow(10, rapid.Float64Range(-6, 9).Draw(t, "log10 rate"))
}

func TestMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := min(max(anyRate(t), MinRate), MaxRate)
		p, err := parse(rapid.SampledFrom([]string{"poisson", "constant"}).Draw(t, "name"), rate, rapid.Uint64().Draw(t, "seed"))
		if err != nil {
			t.Fatal(err)
		}
		last := int64(0)
		for i := range 200 {
			due := p.Next()
			if due < last {
				t.Fatalf("request %d is due at %d, before %d", i, due, last)
			}
			last = due
		}
	})
}

// Each time of a constant process is the exact i/rate, rounded once.
func TestConstantIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := min(max(anyRate(t), MinRate), MaxRate)
		p, err := NewConstant(rate)
		if err != nil {
			t.Fatal(err)
		}
		gap := new(big.Rat).Quo(big.NewRat(1e9, 1), new(big.Rat).SetFloat64(rate))
		exact, half := new(big.Rat), big.NewRat(1, 2)
		for i := range 500 {
			off := new(big.Rat).Sub(big.NewRat(p.Next(), 1), exact)
			if off.Abs(off).Cmp(half) > 0 {
				t.Fatalf("request %d at %g/s is %s ns off", i, rate, off.FloatString(3))
			}
			exact.Add(exact, gap)
		}
	})
}

func TestConstantDoesNotDrift(t *testing.T) {
	const n = 3_000_001
	due := firstDues(t, n, "constant", 7, 0)
	if got, want := due[n-1], int64(math.Round(3e6/7*1e9)); got != want {
		t.Errorf("request 3,000,000 at 7/s is due at %d, want %d", got, want)
	}
}

// exponentialCDF is the share of values up to x of the exponential distribution with mean 1.
func exponentialCDF(x float64) float64 { return 1 - math.Exp(-x) }

// Gaps of a Poisson process: mean 1/rate, standard deviation the same, and
// the exponential distribution (Kolmogorov-Smirnov).
func TestPoissonDistribution(t *testing.T) {
	const n, rate = 100_000, 250.0
	due := firstDues(t, n, "poisson", rate, 20)
	gaps, last := make([]float64, n), int64(0)
	var sum, squares float64
	for i, d := range due {
		gaps[i] = float64(d-last) * rate / 1e9
		last = d
		sum += gaps[i]
		squares += gaps[i] * gaps[i]
	}
	mean := sum / n
	if sd := math.Sqrt(squares/n - mean*mean); math.Abs(mean-1) > 0.01 || math.Abs(sd-1) > 0.02 {
		t.Errorf("gaps have mean %.4f and standard deviation %.4f, want 1 and 1", mean, sd)
	}
	slices.Sort(gaps)
	worst := distanceFrom(gaps, exponentialCDF)
	if limit := 1.63 / math.Sqrt(n); worst > limit { // 1 %
		t.Errorf("distance to the exponential distribution %.5f, want below %.5f", worst, limit)
	}
}

func TestPoissonSeedsDiffer(t *testing.T) {
	if slices.Equal(firstDues(t, 5, "poisson", 1, 1), firstDues(t, 5, "poisson", 1, 2)) {
		t.Error("seeds 1 and 2 give the same times")
	}
}

func TestEndOfTime(t *testing.T) {
	for _, name := range []string{"poisson", "constant"} {
		due := firstDues(t, 20_000, name, MinRate, 1)
		if !slices.IsSorted(due) || due[len(due)-1] != math.MaxInt64 {
			t.Errorf("%s: last of 20,000 at one in 12 days is due at %d", name, due[len(due)-1])
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		rate float64
		want string
	}{
		{"poison", 1, "did you mean poisson?"},
		{"Constant", 1, "did you mean constant?"},
		{"const", 1, "did you mean constant?"},
		{"weibull", 1, "known: constant, diurnal"},
		{"", 1, "known: constant"},
		{strings.Repeat("x", 1e6), 1, "known: "},
		{"poisson", 0, "rate 0 is out of range"},
		{"poisson", -1, "out of range"},
		{"constant", math.NaN(), "out of range"},
		{"constant", math.Inf(1), "out of range"},
	} {
		p, err := parse(c.name, c.rate, 0)
		if err == nil || !strings.Contains(err.Error()+"; "+say.HintOf(err), c.want) || p != nil {
			t.Errorf("parse(%.20q, %g) = %v, %v, want an error with %q", c.name, c.rate, p, err, c.want)
		}
	}
}

func BenchmarkPoisson(b *testing.B) {
	p, _ := NewPoisson(1000, 1)
	for b.Loop() {
		p.Next()
	}
}

// distanceFrom is Kolmogorov and Smirnov's distance of a sorted sample from a continuous
// distribution, by its cumulative function.
func distanceFrom(x []float64, cdf func(float64) float64) (most float64) {
	n := float64(len(x))
	for i, v := range x {
		f := cdf(v)
		most = max(most, math.Abs(f-float64(i)/n), math.Abs(f-float64(i+1)/n))
	}
	return most
}
