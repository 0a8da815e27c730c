package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A complete design gives the textbook's fit; values that are missing, or a drift of the
// blocks, do not move a difference.
func TestBlocks(t *testing.T) {
	nan := math.NaN()
	drift := []float64{0, 5, -3, 11}
	values := [][]float64{{1, 2, 3, 4}, {3, 4, 5, 6}, {1.5, 2.5, nan, nan}}
	for _, row := range values {
		for b := range row {
			row[b] += drift[b]
		}
	}
	values[0][0] += .1 // the only error there is
	fit, ok := FitBlocks(values)
	if !ok || fit.DF != 10-(3+4-1) {
		t.Fatalf("%+v", fit)
	}
	d, ok := fit.Difference(0, 1, .95)
	if !ok || math.Abs(d.Estimate-(2-.025)) > 1e-9 || d.DF != fit.DF {
		t.Errorf("%+v", d)
	}
	line, ok := fit.Trend(.95)
	if !ok || math.Abs(line.Estimate-(1+2.6)) > .4 || line.P < .05 { // blocks go 0, 5, −3, 11, and 1 up in each
		t.Errorf("%+v", line)
	}
	alone, ok := FitBlocks([][]float64{{1, 2, 3}, {nan, nan, nan}})
	if m, known := alone.Mean(0, .95); !ok || !known || alone.DF != 2 || math.Abs(alone.SD-1) > 1e-12 || m.Estimate != 2 || math.Abs(m.SE-1/math.Sqrt(3)) > 1e-12 {
		t.Errorf("blocks are errors of one treatment alone: %+v, %+v", alone, m)
	}
	if _, ok := FitBlocks([][]float64{{1, nan}, {nan, 2}}); ok {
		t.Error("no block has two treatments")
	}
}

// Of treatments that are alike, in blocks that drift and of which some are bad, few
// differences are called real; and the interval of a mean holds
// what it was in these blocks.
func TestBlocksHold(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const runs, treatments, blocks = 1500, 5, 4
	differ, outside, drifts := 0, 0, 0
	for range runs {
		values := make([][]float64, treatments)
		levels := make([]float64, blocks)
		for b := range levels {
			levels[b] = .06 * r.NormFloat64()
		}
		for k := range values {
			for b := range blocks {
				values[k] = append(values[k], levels[b]+.035*r.NormFloat64())
			}
		}
		fit, ok := FitBlocks(values)
		if !ok {
			t.Fatal("no fit")
		}
		d, _ := fit.Difference(0, 1, .95)
		if d.P < .05 {
			differ++
		}
		hours, _ := Moments(levels)
		if m, ok := fit.Mean(0, .95); !ok || !m.Contains(hours) {
			outside++
		}
		if d, ok := fit.Trend(.95); ok && d.P < .01 {
			drifts++
		}
	}
	if share := float64(differ) / runs; share > .07 {
		t.Errorf("%.3f of equal treatments differ", share)
	}
	if share := float64(outside) / runs; share > .07 {
		t.Errorf("%.3f of levels lie outside of their interval", share)
	}
	if share := float64(drifts) / runs; share > .05 {
		t.Errorf("a trend of blocks that have none is seen in %.3f", share)
	}
}
