package capacity

import (
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// CompleteRun gives a run of many points that was killed what is known of them
// together; it says whether the run is such a one.
func CompleteRun(measured *result.Run) bool {
	if len(measured.Points) == 0 {
		return false
	}
	if measured.Points[0].Stage == "" {
		measured.Repeats = SummarizeRepeats(measured.Points)
		return measured.Repeats != nil
	}
	if measured.Points[0].Stage == result.StageCold {
		return false
	}
	if measured.Points[0].IsOfCurve() {
		points := measured.Points
		if last := measured.UnderWay(); last >= 0 {
			points = points[:last]
		}
		measured.Curve = CurveOf(points)
		if x := measured.Curve.Crossing; measured.Interrupted && x != nil && x.Why.Code == result.NoneMissed {
			x.Why.Code = result.NoneMissedYet
		}
		return true
	}
	c := &result.Capacity{Over: measured.Points[0].Load.Over(), Covers: ThisLaunch, Unfinished: true,
		Why:    result.Reason{Code: result.SearchKilled},
		Limits: []result.CapacityLimit{}, Trail: []result.CapacityProbe{}}
	for i := range measured.Points {
		p := &measured.Points[i]
		c.Requests += p.Requests.Due
		c.Seconds += p.Seconds.Warmup + p.Seconds.Window + p.Seconds.Drain
		if p.SLO != nil {
			c.SLO = p.SLO.Spec
		}
		c.Trail = append(c.Trail, result.CapacityProbe{Point: i, Stage: p.Stage, Load: PointOf(i, p).Load, Requests: p.Requests.Due,
			Violations: []int{}, Stability: p.Stability})
	}
	measured.Capacity = c
	return true
}

// CurveStage is the stage of a sweep's points.
const CurveStage = result.StageCurve

// KnownOrNil is a number that may be missing.
func KnownOrNil(x float64) *float64 {
	if x == 0 {
		return nil
	}
	return &x
}

// IntervalOrNil is an interval as run.json has it, nil for none.
func IntervalOrNil(v stats.Interval) *[2]float64 {
	if v == (stats.Interval{}) {
		return nil
	}
	return &[2]float64{v.Lo, v.Hi}
}
