package predict

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"pitot/internal/results/result"
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

// Of a server whose speed differs from sitting to sitting as much as from run to run, the
// error to expect holds for four of five runs of another sitting; that of the loads
// left out alone holds for fewer.
func TestErrorHoldsAtAnotherTime(t *testing.T) {
	const servers, loads, pace, lacking = 400, 10, 0.1, 0.05
	dice := rand.New(rand.NewPCG(3, 4))
	alone, held, n := 0, 0, 0
	for range servers {
		var left []LeftOut
		for range loads { // each measured twice; the twin lacks something of each
			off := lacking * dice.NormFloat64()
			size := 0.0
			for range 2 {
				size += 100 * math.Abs(off+pace*dice.NormFloat64()) / 2
			}
			m := Metrics{TTFT: Quantities{Mean: size, P50: size}, TPOT: Quantities{Mean: size, P50: size}, E2E: Quantities{Mean: size, P50: size}}
			left = append(left, LeftOut{AbsErrorPct: &m})
		}
		e := expectedError(left)
		wide := errorAtOtherTime(e, 100*pace)
		sitting := pace * dice.NormFloat64()
		for range loads {
			off := 100 * math.Abs(sitting+lacking*dice.NormFloat64()+pace*dice.NormFloat64())
			n++
			if off <= e.TPOTPct {
				alone++
			}
			if off <= wide.TPOTPct {
				held++
			}
		}
	}
	t.Logf("of %d the error to expect holds of %d, without the pace of %d", n, held, alone)
	if held < n*78/100 || held > n*90/100 || alone > n*75/100 {
		t.Errorf("of %d the error to expect holds of %d, without the pace of %d", n, held, alone)
	}
	if errorAtOtherTime(nil, 10) != nil {
		t.Error("an error to expect where there is none")
	}
}
