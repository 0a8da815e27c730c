package report

import (
	"fmt"
	"strings"

	"pitot/internal/experiment"
	"pitot/internal/say"
)

// mostEffects is the number of effects of a knob that a text names at most.
const mostEffects = 3

// writePower says what a plan's launches are expected to tell.
func (p *printer) writePower(f *experiment.Forecast) {
	r := f.Power
	p.line("")
	p.writePainted(bold, "What each row can show")
	source := "assumed; launch_cv of the twin would say it"
	if r.Stated {
		source = "as the plan says"
	}
	p.writeFormat("on the twin sim:%s · %s of each configuration, which differ by %s (%s)",
		r.Twin, say.Plural(r.Launches, "launch"), say.Percent(r.Spread), source)
	if r.Budgeted < f.Plan.Launches {
		line := fmt.Sprintf("the budget is enough for %d of %s", r.Budgeted, say.Plural(f.Plan.Launches, "launch"))
		if r.Budgeted < 2 {
			line += ", which would show nothing; the following is of all"
		}
		p.writePainted(yellow, line)
	}
	for _, u := range r.Unknown {
		p.writePainted(yellow, "not simulated: "+u)
	}
	t := NewTable("row", "metric", "baseline", "smallest change", "most expected", "of", "")
	for i := range r.Lines {
		l := &r.Lines[i]
		row := []string{l.Row, l.Metric, baselineValue(l), say.Unknown, say.Unknown, "", ""}
		if l.Smallest != nil {
			row[3] = sizeText(*l.Smallest, l.OfShare)
		}
		if l.Metric == "capacity" {
			row[1] = "carries"
		}
		if l.Most != nil {
			row[4], row[5] = say.RelativeChange(l.Most.Change, l.OfShare), l.Most.Configuration
		}
		if l.Shows {
			row[6] = "yes"
		}
		t.AddRow(row...)
	}
	p.writeTable(t)
	p.writeWrapped("smallest change: established in four of five such experiments, corrected for the number of effects")

	p.line("")
	p.writePainted(bold, "What each knob is expected to do")
	for i := range r.Knobs {
		p.writeWrapped(expectedOfKnob(r, &r.Knobs[i]))
	}
	waste := idleParts(f)
	if len(waste) == 0 {
		return
	}
	p.line("")
	p.writePainted(bold, "What would show nothing, if the twin is right")
	for _, l := range waste {
		p.writeWrapped(l)
	}
}

// powerLines is the same in short: what can be told, and what the baseline carries.
func powerLines(f *experiment.Forecast) []string {
	r, knobs, rows := f.Power, 0, map[string]bool{}
	for i := range r.Knobs {
		if len(r.Knobs[i].Effects) > 0 {
			knobs++
		}
	}
	for i := range r.Lines {
		if r.Lines[i].Shows {
			rows[r.Lines[i].Row] = true
		}
	}
	lines := []string{fmt.Sprintf("of %s, %d would differ detectably from the baseline; %d of %s can show something",
		say.Plural(len(r.Knobs), "value")+" of knobs", knobs, len(rows), say.Plural(len(f.Rows), "row"))}
	if r.Carries == 0 {
		return lines
	}
	wanted, verb, least := f.Plan.Contract.Capacity, "meets", ""
	if r.Carries < wanted {
		verb = "misses"
	}
	if r.AtLeast {
		least = "at least "
	}
	return append(lines, fmt.Sprintf("the baseline is expected to carry %s%s within the limits, and so %s the contract (%s)", least, perS(r.Carries), verb, perS(wanted)))
}

// idleParts are the rows and the configurations that would tell nothing, with what they take.
func idleParts(f *experiment.Forecast) (waste []string) {
	r := f.Power
	for _, name := range r.Idle {
		seconds, usd := f.Share(name)
		line := fmt.Sprintf("row %s: no knob is expected to move it by as much as is established; it takes %s", name, say.Seconds(seconds))
		if usd > 0 {
			line += ", " + usdText(usd)
		}
		if line += " of the plan"; f.Plan.HasHypothesis(name) {
			line += "; a hypothesis rests on it"
		}
		waste = append(waste, line)
	}
	each := f.Seconds / float64(f.Configurations)
	for i := range r.Knobs {
		k := &r.Knobs[i]
		if len(k.Effects) > 0 {
			continue
		}
		line := fmt.Sprintf("%s: nothing of it would be established; it takes %s", k.Configuration, say.Seconds(each))
		if k.Would > 0 {
			line += fmt.Sprintf("; %d launches would show it", k.Would)
		}
		waste = append(waste, line)
	}
	return waste
}

func baselineValue(l *experiment.PowerLine) string {
	switch {
	case l.OfShare:
		return say.Percent(l.Baseline)
	case l.Unit == "ms":
		return say.Quantity(l.Baseline) + " ms"
	}
	return say.Quantity(l.Baseline)
}

// expectedOfKnob says what is expected of a configuration.
func expectedOfKnob(r *experiment.Power, k *experiment.PowerKnob) string {
	var parts texts
	for n, e := range k.Effects {
		if n == mostEffects {
			parts.addFormat("%d more", len(k.Effects)-n)
			break
		}
		parts.addText(e.Of() + " " + say.RelativeChange(e.Change, e.OfShare))
	}
	text := "no difference that " + say.Plural(r.Launches, "launch") + " would show"
	if len(parts) > 0 {
		text = strings.Join(parts, ", ")
	}
	if k.Carries > 0 {
		text += "; carries " + perS(k.Carries)
	}
	return k.Configuration + ": " + text
}
