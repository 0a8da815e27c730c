package reporttest

import (
	"fmt"
	"testing"

	"pitot/internal/analysis/compare"
	"pitot/internal/analysis/tools"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
)

// LaunchSide are runs of a side, with all times slower by a factor, and launches
// that differ a little.
func LaunchSide(name string, n int, factor float64, edit func(run *result.Run, i int)) compare.Side {
	s := compare.Side{Name: name}
	for i := range n {
		f := factor * (1 + 0.01*float64(i%3-1))
		run := ServerRun(20_000)
		run.Launch, run.Started = fmt.Sprint(i+1), "measured on side "+name
		p := &run.Points[0]
		p.Metrics.SetSummary(metric.TTFT, SummaryAround(20_000, 87.3*f))
		p.Metrics.SetSummary(metric.E2E, SummaryAround(20_000, 1155.2*f))
		p.Metrics.SetSummary(metric.Stall, SummaryAround(20_000, 11.6*(1+0.2*float64(i%2))))
		attained := 0.995 - 0.001*float64(i)
		p.SLO = &result.SLO{Spec: "ttft<200ms @99%", Attained: &attained}
		if edit != nil {
			edit(run, i)
		}
		s.Runs = append(s.Runs, compare.Source{Path: fmt.Sprintf("runs/%s/%d", name, i+1), Run: run})
	}
	return s
}

// contest describes a comparison.
type contest struct {
	Clauses, Primary string // as of the command line
	Sides            []struct {
		Name     string
		Launches int // of [LaunchSide]
		Factor   float64
		Changes  []variant       // of each launch, or the same of all
		Others   []*tools.Result // in place of launches
	}
}

// Comparisons are of all kinds, by name.
func Comparisons(t testing.TB) map[string]*compare.Comparison {
	t.Helper()
	var contests map[string]contest
	readFile("comparisons.json", &contests)
	all := map[string]*compare.Comparison{}
	for name, x := range contests {
		var err error
		o := compare.Options{Within: 0.05}
		if x.Clauses != "" {
			if o.Clauses, err = compare.ParseClauses(x.Clauses); err != nil {
				t.Fatal(err)
			}
		}
		if x.Primary != "" {
			if o.Primary, err = compare.ParsePrimary(x.Primary); err != nil {
				t.Fatal(err)
			}
		}
		var sides []compare.Side
		for _, s := range x.Sides {
			side := LaunchSide(s.Name, s.Launches, s.Factor, func(run *result.Run, i int) {
				if n := len(s.Changes); n > 0 {
					*run = *s.Changes[i%n].variantOf(run)
				}
			})
			side.Others = s.Others
			sides = append(sides, side)
		}
		if all[name], err = compare.Compare(sides, o); err != nil {
			t.Fatal(err)
		}
	}
	return all
}
