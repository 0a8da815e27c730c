package report

import (
	"fmt"
	"slices"

	"pitot/internal/results/result"
	"pitot/internal/say"
)

// What became of conversations.

// mostFailed is the share of failed sessions up to which InferenceX's AgentX takes a run
// (SemiAnalysisAI/InferenceX, pull request 1393).
const mostFailed = 0.05

// addSessions makes the tables by turn and by history, and remarks on how conversations ended.
func (m *PointModel) addSessions(p *result.Point) {
	x := p.Sessions
	if x == nil {
		return
	}
	text := fmt.Sprintf("%s began in the window: %s finished", say.Plural(x.Begun, "conversation"), say.Count(x.Finished))
	if x.EndedEarly > 0 {
		text += fmt.Sprintf(", %s ended early and %s of theirs were never sent", say.Count(x.EndedEarly), say.Plural(x.NeverAsked, "turn"))
	}
	if x.GoingOn > 0 {
		text += fmt.Sprintf(", %s still going on when the load ended", say.Count(x.GoingOn))
	}
	m.Remarks.addText(text)
	if x.FailedShare != nil && x.EndedEarly > 0 {
		text := say.Percent(*x.FailedShare) + " of those that came to an end ended early, "
		if *x.FailedShare > mostFailed {
			text += "more than the " + say.Percent(mostFailed) + " up to which AgentX takes a run"
		} else {
			text += "within the " + say.Percent(mostFailed) + " up to which AgentX takes a run"
		}
		if v := x.FailedShareCI95; v != nil {
			text += fmt.Sprintf(" (95 %% interval %s to %s)", say.Percent(v[0]), say.Percent(v[1]))
		}
		m.Remarks.addText(text)
	}
	final := func(s *float64) string {
		if s == nil {
			return "longer than they were followed"
		}
		return say.Seconds(*s)
	}
	if x.Begun > 0 && x.FinalS.P50 != nil {
		text := "from the first request to the end of the last answer: p50 " + final(x.FinalS.P50)
		if v := x.FinalS.P50CI95; v != nil {
			text += fmt.Sprintf(" (95 %% interval %s to %s)", say.Seconds(v[0]), say.Seconds(v[1]))
		}
		m.Remarks.addText(text + ", p90 " + final(x.FinalS.P90))
	}
	if x.RereadTokens != nil && x.PromptTokens != nil {
		m.Remarks.addFormat("a finished conversation had %s prompt tokens, %s of them said in it before", say.Quantity(*x.PromptTokens), say.Quantity(*x.RereadTokens))
	}
	m.Turns = placedTable("turn", x.ByTurn)
	m.Histories = placedTable("history, tokens", x.ByHistory)
}

func placedTable(head string, list []result.Placed) *Table {
	if len(list) == 0 {
		return nil
	}
	t := &Table{Head: []string{head, "TTFT p50, ms", "p90", "cached", "history", "n"}, Spare: []int{4}}
	intervals := slices.ContainsFunc(list, func(p result.Placed) bool { return p.TTFT.P50CI95 != nil })
	if intervals {
		t.Head, t.Spare = slices.Insert(t.Head, 2, "95 %"), []int{5}
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
		row := []string{place, say.Optional(p.TTFT.P50), say.Optional(p.TTFT.P90), cached, say.Quantity(p.HistoryTokens), say.Count(p.Requests)}
		if intervals {
			cell := "–"
			if v := p.TTFT.P50CI95; v != nil {
				cell = say.Quantity(v[0]) + "–" + say.Quantity(v[1])
			}
			row = slices.Insert(row, 2, cell)
		}
		t.AddRow(row...)
	}
	return t
}
