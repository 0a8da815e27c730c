package stats

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// The sum and the squares are those of exact arithmetic, rounded once, in
// whatever order the numbers come.
func TestTotalIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		finite := rapid.Custom(func(t *rapid.T) float64 {
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				return float64(rapid.Int64Range(-1e13, 1e13).Draw(t, "ns"))
			case 1:
				return rapid.Float64Range(-1e-300, 1e-300).Draw(t, "small")
			case 2:
				return rapid.Float64Range(-1e100, 1e100).Draw(t, "large")
			}
			return rapid.Float64Range(0, 1e9).Draw(t, "ratio")
		})
		xs := rapid.SliceOfN(finite, 1, 50).Draw(t, "xs")
		sum, squares := new(big.Rat), new(big.Rat)
		for _, x := range xs {
			sum.Add(sum, new(big.Rat).SetFloat64(x))
		}
		mean := new(big.Rat).Quo(sum, big.NewRat(int64(len(xs)), 1))
		for _, x := range xs {
			d := new(big.Rat).SetFloat64(x)
			d.Sub(d, mean)
			squares.Add(squares, d.Mul(d, d))
		}
		want, _ := sum.Float64()
		wantSquares, _ := squares.Float64()

		rng.Shuffle(len(xs), func(i, j int) { xs[i], xs[j] = xs[j], xs[i] })
		var a Total
		for _, x := range xs {
			a.Add(x)
		}
		if a.N() != int64(len(xs)) || a.Sum() != want || a.Squares() != wantSquares {
			t.Fatalf("n %d, sum %g want %g, squares %g want %g", a.N(), a.Sum(), want, a.Squares(), wantSquares)
		}
	})
}

func TestTotalOfNothing(t *testing.T) {
	var none, zeros Total
	zeros.Add(0)
	zeros.Add(math.Copysign(0, -1))
	if none.N() != 0 || none.Sum() != 0 || none.Squares() != 0 || !math.IsNaN(none.Mean()) {
		t.Error("nothing adds up to something")
	}
	if zeros.N() != 2 || zeros.Sum() != 0 || zeros.Squares() != 0 || zeros.Mean() != 0 {
		t.Error("zeros add up to something")
	}
}

func BenchmarkTotal(b *testing.B) {
	xs := make([]float64, 1024)
	for i := range xs {
		xs[i] = rand.ExpFloat64() * 1e8
	}
	var t Total
	for i := 0; b.Loop(); i++ {
		t.Add(xs[i&1023])
	}
}
