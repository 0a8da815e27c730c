package metrics

import (
	"testing"

	"pitot/internal/results/metric"
)

// With several answers TPOT is that of one, and TPOT over n − 1 is withheld with a reason.
func TestSeveralAnswersHaveNoTPOTOverNMinus1(t *testing.T) {
	frames := plain(100)
	for i := range frames {
		frames[i].Rows[0].Choices = 2
	}
	f := NewFold(window(10))
	for _, frame := range frames {
		f.Add(frame)
	}
	m := f.Point().Metrics
	if m.SummaryOf(metric.TPOT) == nil || m.SummaryOf(metric.TPOTn1) != nil {
		t.Errorf("TPOT %v, over n − 1 %v", m.SummaryOf(metric.TPOT), m.SummaryOf(metric.TPOTn1))
	}
}
