package report

import (
	"fmt"

	"pitot/internal/data/result"
	"pitot/internal/say"
)

// What became of conversations.

// mostFailed is the share of failed sessions up to which InferenceX's AgentX takes a run
// (SemiAnalysisAI/InferenceX, pull request 1393).
const mostFailed = 0.05

// sessions makes the tables by turn and by history, and remarks on how conversations ended.
func (m *PointModel) sessions(p *result.Point) {
	x := p.Sessions
	if x == nil {
		return
	}
	text := fmt.Sprintf("%s began in the window: %s finished", say.Plural(x.Begun, "conversation"), say.Count(x.Finished))
	if x.EndedEarly > 0 {
		text += fmt.Sprintf(", %s ended early and %s of theirs never asked", say.Count(x.EndedEarly), say.Plural(x.NeverAsked, "turn"))
	}
	if x.GoingOn > 0 {
		text += fmt.Sprintf(", %s still going on when the load ended", say.Count(x.GoingOn))
	}
	m.Remarks = append(m.Remarks, text)
	if x.FailedShare != nil && x.EndedEarly > 0 {
		text := say.Percent(*x.FailedShare) + " of those that came to an end ended early, "
		if *x.FailedShare > mostFailed {
			text += "more than the " + say.Percent(mostFailed) + " up to which AgentX takes a run"
		} else {
			text += "within the " + say.Percent(mostFailed) + " up to which AgentX takes a run"
		}
		m.Remarks = append(m.Remarks, text)
	}
	final := func(s *float64) string {
		if s == nil {
			return "longer than they were followed"
		}
		return say.Seconds(*s)
	}
	if x.Begun > 0 && x.FinalS.P50 != nil {
		m.Remarks = append(m.Remarks, fmt.Sprintf("from the first request to the end of the last answer: p50 %s, p90 %s", final(x.FinalS.P50), final(x.FinalS.P90)))
	}
	if x.RereadTokens != nil && x.PromptTokens != nil {
		m.Remarks = append(m.Remarks, fmt.Sprintf("a finished conversation had %s prompt tokens, %s of them said in it before", say.Quantity(*x.PromptTokens), say.Quantity(*x.RereadTokens)))
	}
	m.Turns = placedTable("turn", x.ByTurn)
	m.Histories = placedTable("history, tokens", x.ByHistory)
}

func placedTable(head string, list []result.Placed) *Table {
	if len(list) == 0 {
		return nil
	}
	t := &Table{Head: []string{head, "TTFT p50, ms", "p90", "cached", "history", "n"}, Spare: []int{4}}
	number := func(x *float64) string {
		if x == nil {
			return "–"
		}
		return say.Quantity(*x)
	}
	for _, p := range list {
		place := say.Count(p.From)
		if p.To > p.From {
			place += "–" + say.Count(p.To)
		}
		cached := "–"
		if p.CachedShare != nil {
			cached = say.Decimal(100**p.CachedShare, 1) + " %"
		}
		t.Rows = append(t.Rows, []string{place, number(p.TTFT.P50), number(p.TTFT.P90), cached, say.Quantity(p.HistoryTokens), say.Count(p.Requests)})
	}
	return t
}
