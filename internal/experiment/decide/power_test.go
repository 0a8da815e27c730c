package decide

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Of effects of the smallest size about four of five are established, by the tests that
// experiments are decided with.
func TestSmallest(t *testing.T) {
	const sd, configurations, launches, experiments = 0.035, 3, 4, 200
	size := SmallestEffect(sd, configurations-1, configurations, launches, 0.95, true)
	r := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range experiments {
		p := Problem{Wanted: 1, Planned: launches, Confidence: 0.95, Precision: 0.04, Early: true, Carries: make([][]float64, configurations)}
		line := Line{Values: make([][]float64, configurations)}
		for range launches {
			block := r.NormFloat64() * 0.1
			for i := range configurations {
				x := block + r.NormFloat64()*sd
				p.Carries[i] = append(p.Carries[i], 10*math.Exp(r.NormFloat64()*sd))
				if i == 1 {
					x += size
				}
				line.Values[i] = append(line.Values[i], math.Exp(x))
			}
		}
		for _, e := range EstimateEffects([]Line{line}, Decide(p), p) {
			if e.Configuration == 1 && e.Adjusted < 0.05 {
				found++
			}
		}
	}
	if share := float64(found) / experiments; share < 0.7 || share > 0.92 {
		t.Errorf("%.2f of effects of %.3f are established", share, size)
	}
	if !math.IsNaN(SmallestEffect(sd, 1, 2, 1, 0.95, true)) {
		t.Error("one launch tells nothing")
	}
}
