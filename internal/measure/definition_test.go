package measure

import (
	"testing"

	"pitot/internal/data/metric"
)

// Each distribution of the catalogue is measured, in one way.
func TestEveryMetricIsDefined(t *testing.T) {
	list := Definitions()
	if want := metric.All().Distributions(); len(list) != len(want) {
		t.Fatalf("%d definitions of %d metrics", len(list), len(want))
	}
	for _, d := range list {
		if (d.Request == nil) == (d.gaps == nil) || (d.Of == metric.Gap) != (d.gaps != nil) {
			t.Errorf("%s, of a %s: its function is missing, or of something else", d.Name, d.Of)
		}
	}
}
