package experiment

import (
	"math"
	"testing"

	"pitot/internal/experiment/decide"
	"pitot/internal/stats"
)

// Where nothing is sure to be carried, no rate is named as if it were.
func TestOpenWithNothingSure(t *testing.T) {
	d := decide.Decision{Leads: 0, SD: 0.1, Of: []decide.Standing{{Launches: 2, Sure: stats.Interval{Lo: 0, Hi: math.Inf(1)}}}}
	r := &Record{Answer: AnswerUndecided, Standings: []Standing{{Name: "baseline"}}}
	if got, want := new(Experiment).openReason(r, &d, &decide.Problem{Wanted: 5}), "what baseline is sure to carry is not known, and 5.00/s is wanted"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
