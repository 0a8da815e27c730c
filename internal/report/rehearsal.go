package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"pitot/internal/experiment"
	"pitot/internal/say"
)

// mostEffects is how many effects of a knob are named.
const mostEffects = 3

// WriteRehearsal says what a plan is expected to come to.
func WriteRehearsal(w io.Writer, r *experiment.Rehearsal, s Style) error {
	p := &printer{w: w, width: s.Width}
	told := 0
	for i := range r.Knobs {
		if len(r.Knobs[i].Effects) > 0 {
			told++
		}
	}
	tell := map[string]bool{}
	for i := range r.Lines {
		if r.Lines[i].Tells {
			tell[r.Lines[i].Row] = true
		}
	}
	p.line("")
	p.write(s, bold, "", fmt.Sprintf("%s: of %s, %d would be told from the baseline; %d of %s can tell something",
		r.Plan.Name(), say.Plural(len(r.Knobs), "value")+" of knobs", told, len(tell), say.Plural(len(r.Forecast.Rows), "row")))
	source := "assumed; launch_cv of the twin would say it"
	if r.Stated {
		source = "as the plan says"
	}
	p.write(s, "", "", fmt.Sprintf("on the twin sim:%s · %s of each configuration, which differ by %s (%s)", say.Plain(r.Twin), say.Plural(r.Launches, "launch"), say.Percent(r.Spread), source))
	cost := ""
	if r.USD > 0 {
		cost = ", " + usdText(r.USD)
	}
	about := func(x float64) string { return say.Count(int64(math.Round(x))) }
	p.write(s, "", "", fmt.Sprintf("the plan takes about %s%s, %s tokens in and %s out", say.Seconds(r.Seconds), cost, about(r.Tokens[0]), about(r.Tokens[1])))
	if r.Budgeted < r.Plan.Launches {
		line := fmt.Sprintf("the budget is enough for %d of %s", r.Budgeted, say.Plural(r.Plan.Launches, "launch"))
		if r.Budgeted < 2 {
			line += ", which would tell nothing; what follows is of all"
		}
		p.write(s, yellow, "", line)
	}
	if wanted := r.Plan.Contract.Capacity; r.Carries > 0 {
		verb := "meets"
		if r.Carries < wanted {
			verb = "misses"
		}
		least := ""
		if r.AtLeast {
			least = "at least "
		}
		p.write(s, "", "", fmt.Sprintf("the baseline is expected to carry %s%s within the limits, and so %s the contract (%s)", least, perS(r.Carries), verb, perS(wanted)))
	}
	for _, u := range r.Unknown {
		p.write(s, yellow, "", "not rehearsed: "+say.Plain(u))
	}

	p.line("")
	p.write(s, bold, "", "What each row can tell")
	t := Table{Head: []string{"row", "metric", "baseline", "smallest change", "most expected", "of", ""}}
	for i := range r.Lines {
		l := &r.Lines[i]
		row := []string{l.Row, l.Metric, rehearsedValue(l), say.Unknown, say.Unknown, "", ""}
		if l.Smallest != nil {
			row[3] = sizeText(*l.Smallest, l.OfShare)
		}
		if l.Metric == "capacity" {
			row[1] = "carries"
		}
		if l.Most != nil {
			row[4], row[5] = say.Change(l.Most.Change, l.OfShare), l.Most.Configuration
		}
		if l.Tells {
			row[6] = "tells"
		}
		t.Rows = append(t.Rows, row)
	}
	t.writeTerminal(p, s)
	p.hanging(s, "", "", "  ", "smallest change: established in four of five such experiments, corrected for the number of effects")

	p.line("")
	p.write(s, bold, "", "What each knob is expected to do")
	for i := range r.Knobs {
		p.hanging(s, "", "", "  ", say.Plain(rehearsedKnob(r, &r.Knobs[i])))
	}

	var waste []string
	for _, name := range r.Idle {
		seconds, usd := r.Share(name)
		line := fmt.Sprintf("row %s: no knob is expected to move it by as much as is established; it takes %s", name, say.Seconds(seconds))
		if usd > 0 {
			line += ", " + usdText(usd)
		}
		if line += " of the plan"; r.Asked(name) {
			line += "; a hypothesis rests on it"
		}
		waste = append(waste, line)
	}
	each := r.Seconds / float64(len(r.Plan.Configurations()))
	for i := range r.Knobs {
		if k := &r.Knobs[i]; len(k.Effects) == 0 {
			line := fmt.Sprintf("%s: nothing of it would be established; it takes %s", k.Configuration, say.Seconds(each))
			if k.Would > 0 {
				line += fmt.Sprintf("; %d launches would tell it", k.Would)
			}
			waste = append(waste, line)
		}
	}
	if len(waste) > 0 {
		p.line("")
		p.write(s, bold, "", "What would tell nothing, if the twin is right")
		for _, l := range waste {
			p.hanging(s, "", "", "  ", say.Plain(l))
		}
	}
	return p.err
}

func rehearsedValue(l *experiment.RehearsedLine) string {
	switch {
	case l.OfShare:
		return say.Percent(l.Baseline)
	case l.Unit == "ms":
		return say.Quantity(l.Baseline) + " ms"
	}
	return say.Quantity(l.Baseline)
}

// rehearsedKnob says what is expected of a configuration.
func rehearsedKnob(r *experiment.Rehearsal, k *experiment.RehearsedKnob) string {
	var parts []string
	for n, e := range k.Effects {
		if n == mostEffects {
			parts = append(parts, fmt.Sprintf("%d more", len(k.Effects)-n))
			break
		}
		parts = append(parts, e.Of()+" "+say.Change(e.Change, e.OfShare))
	}
	text := "nothing that " + say.Plural(r.Launches, "launch") + " would tell"
	if len(parts) > 0 {
		text = strings.Join(parts, ", ")
	}
	if k.Carries > 0 {
		text += "; carries " + perS(k.Carries)
	}
	return k.Configuration + ": " + text
}
