package metrics

import (
	"testing"

	"pitot/internal/results/result"
	"pitot/internal/slo"
)

func TestNearLimits(t *testing.T) {
	s, err := slo.Parse("p99 ttft<150ms, errors<1%")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		bad    int64
		errors result.Met
		want   bool
	}{
		"none violate":       {0, yes, false},
		"a tenth of allowed": {10, yes, false},
		"half of allowed":    {50, yes, true},
		"twice what may":     {200, yes, true},
		"ten times":          {1000, yes, false},
		"errors decide":      {200, no, false},
	} {
		const due = 10_000
		limits := []result.Limit{{Met: yes}, {Met: c.errors}}
		if got := markNear(s, limits, []int64{due - c.bad, due}, due, due); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
