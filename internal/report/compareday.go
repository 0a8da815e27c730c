package report

import (
	"slices"
	"strings"

	"pitot/internal/analysis/compare"
	"pitot/internal/say"
)

// addDayComparison puts two sides beside each other by time of day, and says of which a run's own
// test says that it was slower at some times. Whether one side is faster than the other is not told
// by it.
func (m *PairModel) addDayComparison(p *compare.Pair) {
	d := p.Day
	a, b := shortenHeads(p.A, p.B)
	name := strings.ToUpper(d.Metric) + " p50 "
	t := &Table{Head: []string{"time of day, ms", name + a, b}}
	tokens := slices.ContainsFunc(d.Times, func(at compare.DayTime) bool { return at.A.TPOT != nil && at.B.TPOT != nil })
	if tokens {
		t.Head = append(t.Head, "TPOT p50 "+a, b)
	}
	for _, at := range d.Times {
		row := []string{at.From + "–" + at.To, say.Optional(at.A.P50), say.Optional(at.B.P50)}
		if tokens {
			row = append(row, say.Optional(at.A.TPOT), say.Optional(at.B.TPOT))
		}
		t.AddRow(row...)
	}
	m.Day = t
	var parts texts
	for _, s := range d.Slower {
		parts.addFormat("%s in %s p50, %s× at %s–%s", s.Side, strings.ToUpper(s.Metric), say.Decimal(s.Times, 1), s.From, s.To)
	}
	if len(parts) > 0 {
		m.Notes.addText("slower at some times than at others, by the runs' own test: " + strings.Join(parts, "; "))
	}
}
