package report

import (
	"fmt"
	"slices"
	"strings"

	"pitot/internal/analysis/compare"
	"pitot/internal/say"
)

// What searches for a capacity found on two sides, next to each other.

// buildCapacities is the table of one objective: a line for each thing that is known.
func buildCapacities(c *compare.Comparison, p *compare.Pair) PairModel {
	m := newPairModel(c, p)
	few := ""
	if len(p.Rows) == 0 || p.Rows[0].TooFewLaunches() {
		few = ReasonText(p.FewLaunches())
	}
	m.Title = append(m.Title, launchesTitle(p, few))
	a, b := &p.Capacity.A, &p.Capacity.B
	if len(p.Rows) > 0 {
		m.writeTable(p, few == "")
	} else {
		x, y := shortenHeads(say.PlainLine(p.A), say.PlainLine(p.B))
		m.Table.Head = []string{"", x, y, "change"}
	}
	add := func(name, x, y, change string) {
		if x == say.Unknown && y == say.Unknown {
			return
		}
		row := make([]string, len(m.Table.Head))
		copy(row, []string{name, x, y, change})
		m.Table.AddRow(row...)
	}
	if len(p.Rows) == 0 {
		add("estimate", say.Optional(a.Estimate), say.Optional(b.Estimate), "")
	}
	add("95 % interval", intervalCell(a.CI95), intervalCell(b.CI95), "")
	least, most := "", ""
	if len(p.Rows) == 0 { // else the estimates say more
		least, most = boundText("at least ", p.Capacity.ChangeAtLeast), boundText("at most ", p.Capacity.ChangeAtMost)
	}
	add("at least, verified", foundText(a, a.AtLeast), foundText(b, b.AtLeast), least)
	add("at most", foundText(a, a.AtMost), foundText(b, b.AtMost), most)
	dearer := ""
	if x, y := a.USDPerMOutput, b.USDPerMOutput; x != nil && y != nil {
		dearer = say.RelativeChange(*y / *x - 1, false)
	}
	add("$ per M tokens", say.Optional(a.USDPerMOutput), say.Optional(b.USDPerMOutput), dearer)
	if len(m.Table.Rows) == 0 {
		m.Table = Table{}
	} else if a.AtLeast != nil || b.AtLeast != nil || a.AtMost != nil || b.AtMost != nil {
		m.Legend.addText("at least and at most: both hold at " + say.Percent(max(a.Level, b.Level)))
		if least+most != "" {
			m.Legend.addText("their changes: each at 95 %")
		}
	}
	if a.USDPerMOutput != nil || b.USDPerMOutput != nil {
		m.Legend.addText("$ per million output tokens within the SLO, at the load that was verified")
	}
	for i, found := range []*compare.Found{a, b} {
		if found.Binding != "" && found.Binding != p.Capacity.SLO {
			m.Notes.addText([]string{p.A, p.B}[i] + ": " + found.Binding + " is reached first")
		}
	}
	for _, l := range p.Left {
		m.Notes.addText("no estimate: " + l.Why)
	}
	told := *p
	told.Left = nil
	m.addLegend(c, &told)
	return m
}

func foundText(f *compare.Found, x *float64) string {
	if f.NoLoad {
		return "no load"
	}
	return say.Optional(x)
}

func boundText(word string, x *float64) string {
	if x == nil {
		return ""
	}
	return word + say.RelativeChange(*x, false)
}

// answerFromCapacities makes the answer of what searches found, where no verdict on the systems
// says it.
func (m *AnswerModel) answerFromCapacities(p *compare.Pair, v compare.Verdict) {
	a, b := &p.Capacity.A, &p.Capacity.B
	unit := LoadSuffix(p.Capacity.Over)
	if v.Word == compare.NotCompared {
		m.Basis = texts{noCapacity(p)}
		m.More.addText("To continue the search: pitot find --continue RUN.")
		return
	}
	word := ": capacity "
	if b.NoLoad {
		word = ": "
	}
	said := fmt.Sprintf("%s%s%s; %s: %s", p.B, word, capacityText(b, unit), p.A, capacityText(a, unit))
	change := ""
	switch at := slices.IndexFunc(p.Rows, func(r compare.Row) bool { return r.Metric == "capacity" }); {
	case at >= 0:
		r := &p.Rows[at]
		change = say.RelativeChange(r.Change, false)
		if r.CI95 != nil {
			change += " (95 % interval " + changeSpan(*r.CI95, false) + ")"
		}
	case p.Capacity.ChangeAtLeast != nil && *p.Capacity.ChangeAtLeast > 0:
		change = "at least " + say.RelativeChange(*p.Capacity.ChangeAtLeast, false) + " (95 %)"
	case p.Capacity.ChangeAtMost != nil && *p.Capacity.ChangeAtMost < 0:
		change = "at most " + say.RelativeChange(*p.Capacity.ChangeAtMost, false) + " (95 %)"
	case p.Capacity.ChangeAtLeast != nil && p.Capacity.ChangeAtMost != nil:
		change = fmt.Sprintf("between %s and %s (90 %%)", say.RelativeChange(*p.Capacity.ChangeAtLeast, false), say.RelativeChange(*p.Capacity.ChangeAtMost, false))
	}
	if v.Word == compare.Undistinguished && v.Why != "" {
		m.Claim, m.Basis, m.Aside, m.More = said, nil, false, nil
		if change != "" {
			m.Claim = p.B + " against " + p.A + ": capacity " + change
			m.More.addText(said + ".")
		}
		m.More.addText("No verdict on the systems ("+v.Why+").", moreLaunches())
	} else {
		m.More.addText(said + ".")
	}
	if x, y := a.USDPerMOutput, b.USDPerMOutput; x != nil && y != nil {
		m.More.addFormat("$%s against $%s per million output tokens within the SLO.", say.Quantity(*y), say.Quantity(*x))
	}
}

// capacityText is the best that is known of a capacity.
func capacityText(f *compare.Found, unit string) string {
	switch {
	case f.NoLoad:
		return "no load meets the SLO"
	case f.Estimate != nil && f.CI95 != nil:
		return say.Quantity(*f.Estimate) + unit + " (" + fromTo(*f.CI95) + ")"
	case f.Estimate != nil:
		return say.Quantity(*f.Estimate) + unit
	case f.AtLeast != nil && f.AtMost != nil:
		return fmt.Sprintf("at least %s, at most %s%s (%s)", say.Quantity(*f.AtLeast), say.Quantity(*f.AtMost), unit, say.Percent(f.Level))
	case f.AtLeast != nil:
		return fmt.Sprintf("at least %s%s (%s)", say.Quantity(*f.AtLeast), unit, say.Percent(f.Level))
	case f.AtMost != nil:
		return fmt.Sprintf("at most %s%s (%s)", say.Quantity(*f.AtMost), unit, say.Percent(f.Level))
	}
	return say.Unknown
}

// noCapacity says why searches were not compared, and what to do.
func noCapacity(p *compare.Pair) string {
	var without []string
	if !p.Capacity.A.IsKnown() {
		without = append(without, p.A)
	}
	if !p.Capacity.B.IsKnown() {
		without = append(without, p.B)
	}
	return "nothing is known of the capacity of " + strings.Join(without, " and ")
}
