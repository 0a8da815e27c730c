package metrics

import (
	"math"
	"testing"

	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
)

// A worker of two is lost at 5 s of 10. Of what it was to send behind that nothing was offered
// to the server, which served all else within the limit but one request in twenty: shares,
// goodput and errors are those of what it was offered, and what is lost is counted besides.
func TestLostWithWorker(t *testing.T) {
	s := window(10)
	s.SLO = spec(t, "p90 ttft<200ms")
	s.Planned = 1000
	s.Workers = []result.Worker{{Rank: 0, CPUs: 1}, {Rank: 1, CPUs: 1, Lost: &result.Lost{At: 5, Why: "killed", Early: true}}}
	var frames []record.Frame
	ok, good, lost, under := 0, 0, 0, 0
	for i := range int64(1000) {
		due := 10 * i
		var f record.Frame
		switch worker := i % 2; {
		case worker == 1 && due > 5000: // nobody sent it
			f = cut(i, due, 0)
			r := record.BlankRow()
			r.ID, r.Due, r.Done, r.Outcome, r.Error = i, due*ms, due*ms, record.Unsent, record.ErrWorkerLost
			f.Rows = []record.Row{r}
			lost++
		case worker == 1 && due > 4900: // it was under way
			f = cut(i, due, 5000-due)
			f.Rows[0].Error = record.ErrWorkerLost
			under++
		default:
			ttft := int64(50)
			if ok++; ok%20 == 0 {
				ttft = 300
			} else {
				good++
			}
			f = answer{id: i, due: due, stamps: []int64{due + ttft, due + ttft + 10}, usage: 2, first: 1}.frame()
		}
		f.Worker = int32(i % 2)
		frames = append(frames, f)
	}
	p := fold(s, frames...).Point()
	if q := p.Requests; q.Due != ok+under || q.OK != ok || q.Cut != under || q.Unsent != 0 || q.LostWithWorker != lost || q.Errors[record.ErrWorkerLost] != under {
		t.Fatalf("%+v, of %d ok, %d under way, %d lost", q, ok, under, lost)
	}
	near(t, "share", p.SLO.Attained, float64(good)/float64(ok+under))
	near(t, "goodput", &p.Goodput.RequestsPerS, float64(good)/10)
	near(t, "offered", p.Throughput.DuePerS, float64(ok+under)/10)
	if p.SLO.Met != yes || p.Outcome != result.OK {
		t.Errorf("met %v (%v), the server was %v", p.SLO.Met, p.SLO.Why, p.Outcome)
	}
	if x, _, why := p.MetricValue(metric.All().Find(metric.Errors)); x == nil || *x != 0 {
		t.Errorf("errors %v (%v), none failed", x, why)
	}
	if of := p.Workers[1]; of.Requests != 500-lost || of.Lost.Missed != lost+under {
		t.Errorf("worker 1: %+v missed %d of %d and %d", of, of.Lost.Missed, lost, under)
	}
	for _, c := range p.Checks {
		switch {
		case c.Name == result.CheckAccounting && c.Status != result.Pass:
			t.Errorf("%+v", c)
		case c.Name == result.CheckOffered && c.Status != result.Pass && c.Case != result.CaseWorkers:
			t.Errorf("%+v", c)
		}
	}
	// Where the limit hangs on what was under way it is open.
	s.SLO = spec(t, "p95 ttft<200ms")
	if p := fold(s, frames...).Point(); p.SLO.Met != undecided || p.SLO.Why.IsNone() || math.Abs(*p.SLO.Attained-.95) > .02 {
		t.Errorf("met %v (%v), %v within", p.SLO.Met, p.SLO.Why, *p.SLO.Attained)
	}
	claims, err := s.SLO.SplitClaims()
	if err != nil {
		t.Fatal(err)
	}
	if v := fold(s, frames...).CountViolations(claims, 10); v.N != ok+under || v.Of[0] != ok-good+under {
		t.Errorf("a search counts %d of %d, %d of %d are", v.Of[0], v.N, ok-good+under, ok+under)
	}
}
