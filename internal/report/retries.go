package report

import (
	"fmt"

	"pitot/internal/results/result"
	"pitot/internal/say"
)

// addRetries remarks on requests that were sent again: what that made of the load, and what
// the first attempts alone would have been.
func (m *PointModel) addRetries(p *result.Point) {
	x, due := p.Retries, p.Requests.Due
	if x == nil || due == 0 {
		return
	}
	failed := 0
	for _, n := range x.FirstErrors {
		failed += n
	}
	share := func(n int) string { return say.Percent(float64(n) / float64(due)) }
	if failed == 0 {
		m.Remarks.addText("no request had to be sent again: the first attempt answered all")
		return
	}
	text := fmt.Sprintf("of %s the first attempt answered %s and a later one %s", say.Plural(due, "request"), share(x.FirstOK), share(x.LaterOK))
	if left := due - x.FirstOK - x.LaterOK; left > 0 {
		text += ", " + share(left) + " were not answered"
	}
	m.Remarks.addText(text)
	text = "first attempts failed: " + share(failed) + " of the requests"
	for i, class := range ByCount(x.FirstErrors) {
		if i == maxClasses {
			text += ", …"
			break
		}
		text += fmt.Sprintf(", %s %s", say.Count(x.FirstErrors[class]), class)
	}
	m.Remarks.addText(text)
	if x.Amplification != nil {
		text = fmt.Sprintf("retries made the load %s times the planned one: %s for %s", say.Decimal(*x.Amplification, 3), say.Plural(x.Attempts, "attempt"), say.Plural(due, "request"))
		if x.BackoffMS != nil {
			text += ", each retried one waiting " + say.Seconds(*x.BackoffMS/1e3) + " between them"
		}
		m.Remarks.addText(text)
	}
}

// mostRetried says at which load of a run retries added most to it, "" where they added
// nothing to any.
func mostRetried(run *result.Run) string {
	var at *result.Point
	for i := range run.Points {
		if x := run.Points[i].Retries; x != nil && x.Amplification != nil && *x.Amplification > 1 && (at == nil || *x.Amplification > *at.Retries.Amplification) {
			at = &run.Points[i]
		}
	}
	if at == nil {
		return ""
	}
	return fmt.Sprintf("retries made the load up to %s times the planned one, at %s %s", say.Decimal(*at.Retries.Amplification, 3), say.Decimal(at.Load.Value(), 3), at.Load.Unit())
}
