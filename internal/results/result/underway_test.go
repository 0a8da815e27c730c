package result

import "testing"

// What was under way when a sweep was interrupted is held against no objective, and what was
// measured before stays.
func TestWithholdUnderWay(t *testing.T) {
	point := func() Point {
		share := .9
		return Point{Stage: StageCurve, Requests: Requests{Due: 20, OK: 18}, Goodput: &Goodput{RequestsPerS: 9},
			SLO:     &SLO{Spec: "p99 ttft<1s", Attained: &share, Met: No, Limits: []Limit{{Spec: "p99 ttft<1s", Attained: &share, Met: No}}},
			Classes: map[string]Class{"chat": {Requests: Requests{Due: 9}, SLO: &ClassSLO{Spec: "ttft<1s", Attained: &share, Met: No}}, "jobs": {}}}
	}
	run := Run{Interrupted: true, Points: []Point{point(), point()}}
	run.Points[1].Requests.Errors = map[string]int{interrupted: 2}
	limits, classes := run.Points[1].SLO.Limits, run.Points[1].Classes
	run.WithholdUnderWay()
	if s := run.Points[0].SLO; s.Met != No || s.Attained == nil || run.Points[0].Goodput == nil {
		t.Errorf("a whole point lost %+v", s)
	}
	if s := run.Points[1].SLO; s.Met != Undecided || s.Attained != nil || s.Limits[0].Met != Undecided || s.Limits[0].Attained != nil || run.Points[1].Goodput != nil {
		t.Errorf("a point that was cut is held against the objective: %+v", s)
	}
	if s := run.Points[1].Classes["chat"].SLO; s == nil || s.Spec != "ttft<1s" || s.Met != Undecided || s.Attained != nil || run.Points[1].Classes["jobs"].SLO != nil {
		t.Errorf("a class of a point that was cut is held against its limits: %+v", s)
	}
	if limits[0].Met != No || classes["chat"].SLO.Met != No || run.Points[0].Classes["chat"].SLO.Met != No {
		t.Error("limits that others share were changed")
	}
	run.Interrupted, run.Points[1] = false, point()
	if run.WithholdUnderWay(); run.Points[1].SLO.Met != No {
		t.Error("something is withheld of a sweep that went to its end")
	}
}
