package predict

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"pitot/internal/data/result"
)

// paced is a run of a load whose times are those of the load times a factor.
func paced(name string, factor float64, dice *rand.Rand) *Recording {
	r := &Recording{run: &result.Run{Workload: []byte(`{"name":"` + name + `"}`), Points: make([]result.Point, 1)}}
	for range 200 {
		tpot := 0.01 * factor * math.Exp(0.1*dice.NormFloat64())
		r.Requests = append(r.Requests, Recorded{Input: 100, Output: 20, measured: true, seen: timing{ttft: tpot, tpot: tpot, e2e: 20 * tpot}})
	}
	return r
}

func TestPaceIsThatOfRunsOfOneLoad(t *testing.T) {
	const sd = 0.15
	dice := rand.New(rand.NewPCG(1, 2))
	var runs []*Recording
	for i := range 60 { // each load twice, of very different speed
		level := math.Exp(2 * dice.NormFloat64())
		for range 2 {
			runs = append(runs, paced(strconv.Itoa(i), level*math.Exp(sd*dice.NormFloat64()), dice))
		}
	}
	if got := paceOf(runs); math.Abs(got-sd) > 0.04 { // its standard error is sd/√120
		t.Errorf("pace %.3f, is %v", got, sd)
	}
	if got := paceOf(runs[:1]); got != 0 {
		t.Errorf("of one run the pace is %v", got)
	}
	still := []*Recording{paced("a", 1, dice), paced("a", 1, dice), paced("a", 1, dice)}
	if got := paceOf(still); got > 0.02 {
		t.Errorf("of runs that differ by their requests alone the pace is %v", got)
	}
}
