package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// An autoregressive series, with a level that swings by so much over all stretches.
func levelSeries(rng *rand.Rand, each int, memory, swing float64) [][]float64 {
	const n = 12
	out := make([][]float64, n)
	x := rng.NormFloat64()
	for k := range out {
		for i := range each {
			x = memory*x + math.Sqrt(1-memory*memory)*rng.NormFloat64()
			at := (float64(k) + float64(i)/float64(each)) / n
			out[k] = append(out[k], math.Exp(x+swing*math.Sin(2*math.Pi*at)))
		}
	}
	return out
}

// At one level stretches are called different about as seldom as is said, also where values
// depend on those before them for a batch; and a swing is seen.
func TestLevelsDiffer(t *testing.T) {
	for _, c := range []struct {
		memory, swing float64
		least, most   float64 // share of series with P below 1 %
	}{{0, 0, 0, .04}, {.9, 0, 0, .04}, {0, .4, .98, 1}, {.9, 1.5, .98, 1}} {
		const runs = 100
		rng := rand.New(rand.NewPCG(7, uint64(1000*c.memory)))
		n := 0
		for range runs {
			p, ok := LevelsDiffer(levelSeries(rng, 240, c.memory, c.swing), nil)
			if !ok || p < 0 || p > 1 {
				t.Fatal(p, ok)
			}
			if p < .01 {
				n++
			}
		}
		if share := float64(n) / runs; share < c.least || share > c.most {
			t.Errorf("memory %g, swing %g: %.3f of the series differ, want %g to %g", c.memory, c.swing, share, c.least, c.most)
		}
	}
}

func TestLevelsDifferOfOddSeries(t *testing.T) {
	same := make([][]float64, 3)
	for k := range same {
		same[k] = make([]float64, 120)
	}
	if p, ok := LevelsDiffer(same, nil); !ok || p != 1 {
		t.Error("all alike:", p, ok)
	}
	for i := range same[1] {
		same[1][i] = 1
	}
	if p, ok := LevelsDiffer(same, nil); !ok || p != 0 {
		t.Error("two values that never mix:", p, ok)
	}
	if _, ok := LevelsDiffer(same[:1], nil); ok {
		t.Error("one stretch differs from nothing")
	}
	same[2] = same[2][:99]
	if _, ok := LevelsDiffer(same, nil); ok {
		t.Error("39 values were enough")
	}
	if _, ok := LevelsDiffer(nil, nil); ok {
		t.Error("nothing differs")
	}
}

// Waits that a companion explains are of one level, however long it stays high; and what it
// does not explain is seen.
func TestLevelsDifferBeside(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	values, beside := levelSeries(rng, 240, .5, 0), levelSeries(rng, 240, .999, 1)
	explained := make([][]float64, len(values))
	for k := range values {
		for i, x := range values[k] {
			beside[k][i] = math.Round(2 * math.Log(beside[k][i]))
			explained[k] = append(explained[k], .1*x+beside[k][i])
		}
	}
	if p, ok := LevelsDiffer(explained, nil); !ok || p > .01 {
		t.Error("alone they differ, and do not:", p, ok)
	}
	if p, ok := LevelsDiffer(explained, beside); !ok || p < .01 {
		t.Error("explained, and they differ:", p, ok)
	}
	for i := range explained[4] {
		explained[4][i] += 1
	}
	if p, ok := LevelsDiffer(explained, beside); !ok || p > .01 {
		t.Error("one that nothing explains is not seen:", p, ok)
	}
}
