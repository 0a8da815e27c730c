package inspect

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/analysis/explain"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// A cause reigns over neighbouring loads; one at which it is not known ends none.
func TestReigns(t *testing.T) {
	s := explain.Symptom{Metric: metric.TTFT, Of: "p90"}
	var points []ExplainedPoint
	for i, cause := range []explain.Cause{explain.Compute, explain.Unknown, explain.Compute, explain.Seats, explain.Seats} {
		points = append(points, ExplainedPoint{Load: string(rune('a' + i)), Symptoms: []explain.Diagnosis{{Symptom: s, Primary: explain.Finding{Cause: cause}}}})
	}
	want := []Reign{{s, explain.Compute, "a", "c"}, {s, explain.Seats, "d", "e"}}
	if diff := cmp.Diff(want, causeRanges(points)); diff != "" {
		t.Error(diff)
	}
	if causeRanges(points[:1]) != nil {
		t.Error("one load has no stretch")
	}
}

// The limits that are not met are looked at; where all are met, the usual figures.
func TestSymptoms(t *testing.T) {
	limit := func(m metric.Name, p float64, met result.Met) result.Limit {
		return result.Limit{Metric: m, Percentile: p, Met: met}
	}
	p := &result.Point{SLO: &result.SLO{Met: result.No, Limits: []result.Limit{limit(metric.TTFT, 99, result.No), limit(metric.TPOT, 50, result.Yes), limit(metric.Errors, 0, result.No)}}}
	if diff := cmp.Diff([]explain.Symptom{{Metric: metric.TTFT, Of: "p99"}}, symptoms(p)); diff != "" {
		t.Error(diff)
	}
	// A limit that is undecided is no symptom beside one that is missed, and is one of joint
	// limits.
	p.SLO.Limits[1].Met = result.Undecided
	if diff := cmp.Diff([]explain.Symptom{{Metric: metric.TTFT, Of: "p99"}}, symptoms(p)); diff != "" {
		t.Error(diff)
	}
	p.SLO.Limits[0].Met, p.SLO.Limits[2].Met = result.Undecided, result.Undecided
	if got := symptoms(p); len(got) != 2 {
		t.Errorf("of joint limits: %v", got)
	}
	p.SLO.Limits[1].Met, p.SLO.Met = result.Yes, result.Yes
	if diff := cmp.Diff(usual, symptoms(p)); diff != "" {
		t.Error(diff)
	}
}

// A server is what its owner says, an embedded target what its name says, and fixed
// latencies are no hardware.
func TestDeployment(t *testing.T) {
	for _, c := range []struct{ kind, spec, said, want string }{
		{"http", "http://host:8000", "", ""},
		{"http", "http://host:8000", "llama-3.1-8b@h100", "llama-3.1-8b@h100"},
		{"http", "http://host:8000", "sim:llama-3.1-8b@h100", "llama-3.1-8b@h100"},
		{"sim", "sim:llama-3.1-8b@h100?max_num_seqs=8", "", "llama-3.1-8b@h100?max_num_seqs=8"},
		{"sim", "sim:fixed", "", ""},
		{"mock", "mock:", "", ""},
	} {
		d, note, err := deployment(&result.Run{Target: result.Target{Kind: c.kind, Spec: c.spec}}, c.said)
		named := ""
		if d != nil {
			named = d.SpecString()
		}
		if err != nil || named != c.want || (d == nil) != (note != "") {
			t.Errorf("%+v: %q, %q, %v", c, named, note, err)
		}
	}
	if _, _, err := deployment(&result.Run{}, "nonsense"); err == nil {
		t.Error("nonsense is taken")
	}
}

// What limits a search is told by loads at the limit: not by one below it that violates by
// chance, nor by one far beyond it, unless no other does.
func TestTellingOfASearch(t *testing.T) {
	point := func(rate float64, met result.Met, verdict result.Verdict) result.Point {
		return result.Point{Load: result.Load{Rate: &rate}, SLO: &result.SLO{Met: met}, Verdict: verdict, Requests: result.Requests{Due: 100, OK: 100}}
	}
	run := &result.Run{
		Capacity: &result.Capacity{CI95: &[2]float64{9, 11}},
		Points: []result.Point{point(40, result.No, result.Valid), point(5, result.No, result.Valid), point(10, result.No, result.Invalid),
			point(12, result.No, result.Valid), point(13, result.No, result.Valid), point(9.5, result.Yes, result.Valid)},
	}
	for _, c := range []struct {
		points int
		want   []int
	}{{6, []int{3, 4}}, {3, []int{1}}} {
		run.Points = run.Points[:c.points]
		if got := tellingPoints(run); !slices.Equal(got, c.want) {
			t.Errorf("of %d windows %v tell, want %v", c.points, got, c.want)
		}
	}
	if run.Points[1] = point(5, result.Yes, result.Valid); !slices.Equal(tellingPoints(run), []int{0}) {
		t.Errorf("%v tell where only a load far beyond does", tellingPoints(run))
	}
}

// Of windows of a search that are near each other those at its limit are never left out for
// one of more requests: explain tells of the load that the report tells of.
func TestApartKeepsTheLimit(t *testing.T) {
	point := func(rate float64, met result.Met, due int) result.Point {
		return result.Point{Load: result.Load{Rate: &rate}, SLO: &result.SLO{Met: met}, Verdict: result.Valid, Requests: result.Requests{Due: due, OK: due}}
	}
	run := &result.Run{
		Capacity: &result.Capacity{CI95: &[2]float64{191, 209}},
		Points: []result.Point{point(192, result.Yes, 900), point(195, result.No, 300), point(209, result.No, 300), point(229, result.No, 2000),
			point(100, result.Yes, 300), point(105, result.Yes, 400), point(240, result.No, 100)},
	}
	if got := spacedWindows(run, run.ByLoad()); !slices.Equal(got, []int{5, 1, 2, 6}) {
		t.Errorf("windows %v are explained", got)
	}
	if !IsTelling(run, 1) || IsTelling(run, 3) {
		t.Error("other windows tell what limits it than the first two at the limit")
	}
}

// Requests that failed or were cut off alone break an objective where those that were answered were
// within it, and the queue does not grow.
func TestFailedAlone(t *testing.T) {
	share := func(x float64) *float64 { return &x }
	limit := func(m metric.Name, percentile, attained float64) result.Limit {
		return result.Limit{Metric: m, Percentile: percentile, Attained: share(attained), Met: result.No}
	}
	const said = "requests that were not answered: 74 of 392 (70 timeout, 4 reset); those that were answered were within the objective"
	of := func(ok int) float64 { return float64(ok) / 392 }
	for name, c := range map[string]struct {
		spec      string
		attained  float64
		limits    []result.Limit
		stability stats.Stability
		want      string
	}{
		"joint limits":                     {"ttft<60ms, tpot<11ms @95%", of(318), []result.Limit{limit(metric.TTFT, 0, of(318)), limit(metric.TPOT, 0, of(318))}, stats.Stable, said},
		"joint limits, and many are slow":  {"ttft<60ms, tpot<11ms @95%", of(300), []result.Limit{limit(metric.TTFT, 0, of(318)), limit(metric.TPOT, 0, of(300))}, stats.Stable, ""},
		"a percentile":                     {"p99 ttft<60ms", of(318), []result.Limit{limit(metric.TTFT, 99, of(316))}, stats.Stable, said},
		"a percentile that is slow":        {"p99 ttft<60ms", of(318), []result.Limit{limit(metric.TTFT, 99, of(314))}, stats.Stable, ""},
		"errors":                           {"errors<1%", of(318), []result.Limit{{Metric: metric.Errors, Met: result.No}}, stats.Undecided, said},
		"a queue that grows":               {"p99 ttft<60ms", of(318), []result.Limit{limit(metric.TTFT, 99, of(318))}, stats.Unstable, ""},
		"an objective that cannot be read": {"?", of(318), []result.Limit{limit(metric.TTFT, 99, of(318))}, stats.Stable, ""},
	} {
		p := &result.Point{Stability: c.stability, SLO: &result.SLO{Spec: c.spec, Met: result.No, Attained: share(c.attained), Limits: c.limits},
			Requests: result.Requests{Due: 392, OK: 318, Cut: 74, Errors: map[string]int{"timeout": 70, "reset": 4}}}
		if got := failedAlone(p); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
