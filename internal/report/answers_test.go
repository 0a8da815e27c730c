package report

import (
	"math/rand/v2"
	"strings"
	"testing"

	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// A server that damages 15 % of its answers and is asked too few whose answers are known is not
// said to vary alone: of its greedy answers no more differ than the known ones would not have told.
func TestBatchVarianceOrDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	damaged := func(n int, share float64) (wrong int) {
		for range n {
			if rng.Float64() < share {
				wrong++
			}
		}
		return wrong
	}
	known := func(n int, share float64) *result.Answered {
		return &result.Answered{Answered: n, Wrong: damaged(n, share), AloneAnswered: 80}
	}
	greedy := func(share float64) *result.Answered {
		x := known(200, share)
		v := stats.ClopperPearson(x.Wrong, 200, 1, .95)
		x.CI95 = &[2]float64{v.Lo, v.Hi}
		return x
	}
	const alone, either = "batch variance: ", "batch variance, or damage to fewer than"
	for range 20 {
		if text := batchVarianceText(greedy(.15), known(10, .15)); !strings.HasPrefix(text, either) {
			t.Fatal(text)
		}
		if text := batchVarianceText(greedy(.8), known(200, 0)); !strings.HasPrefix(text, alone) {
			t.Fatal(text)
		}
	}
	if text := batchVarianceText(greedy(.8), &result.Answered{Answered: 2, AloneAnswered: 3}); !strings.Contains(text, "too few known answers") {
		t.Error(text)
	}
}

// One of many loads is found damaged by chance more often than one alone, and that is said.
func TestDamageAmongManyLoads(t *testing.T) {
	few, strong := .005, .0001
	for _, c := range []struct {
		chance float64
		loads  int
		want   string
	}{{few, 1, "at most 1 of 100 loads"}, {few, 20, "up to 18.2 % of runs"}, {strong, 20, "in 1 of 100 runs of 20 loads"}} {
		if text := oftenByChance(&result.Answered{Chance: &c.chance}, c.loads); !strings.HasSuffix(text, c.want) {
			t.Error(text)
		}
	}
}
