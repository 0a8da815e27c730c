package metrics

import (
	"math"
	"testing"

	"pitot/internal/results/metric"
	"pitot/internal/results/record"
)

// A row has a value of a metric exactly where [InRow] says so.
func TestInRow(t *testing.T) {
	r := &record.Row{
		Outcome: record.OK, Stream: true, Due: 0, Sent: 0, FirstToken: 50e6, FirstAnswer: 60e6, LastToken: 150e6, Done: 151e6,
		FirstTokens: 1, CompletionTokens: 11,
	}
	want := map[metric.Name]float64{metric.TTFT: 50e6, metric.TTFA: 60e6, metric.TPOT: 10e6, metric.E2E: 150e6, metric.Generation: 100e6} // nanoseconds
	for _, d := range metric.All() {
		got := OfRow(r).Value(d.Name)
		if InRow(d.Name) == math.IsNaN(got) {
			t.Errorf("%s: in the row: %v, value %v", d.Name, InRow(d.Name), got)
		}
		if x, known := want[d.Name]; known && got != x {
			t.Errorf("%s is %v ns, want %v", d.Name, got, x)
		}
	}
	r.Outcome = record.Failed
	if x := OfRow(r).Value(metric.TTFT); !math.IsNaN(x) {
		t.Errorf("a failed request has a TTFT of %v", x)
	}
}
