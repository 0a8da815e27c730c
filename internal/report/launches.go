package report

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"pitot/internal/analysis/compare"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/stats"
)

// LaunchesModel holds what a report shows of the launches of one target. They were measured one
// after the other.
type LaunchesModel struct {
	Title    string
	Loads    []SpreadModel
	Verdicts texts  // of the runs: how many are VALID, and which are not
	Dir      string // that holds their directories
}

// SpreadModel is one load, or a capacity.
type SpreadModel struct {
	Answer []string // the sentence to quote
	Table  Table
	Legend texts
	Notes  texts
}

// BuildLaunches makes the model of runs of the launches of one target.
func BuildLaunches(s compare.Side, dir string) LaunchesModel {
	m := LaunchesModel{Dir: dir}
	valid := 0
	var others []string
	for _, r := range s.Runs {
		m.Title = r.Run.Target.Spec + " · " + say.Plural(len(s.Runs), "launch")
		if r.Run.Verdict == result.Valid {
			valid++
			continue
		}
		text := "launch " + r.Run.Launch + " " + string(r.Run.Verdict)
		if why := decidingChecks(r.Run); len(why) > 0 {
			text += ": " + strings.Join(why, ", ")
		}
		others = append(others, text)
	}
	if valid > 0 {
		m.Verdicts.addFormat("%s of %s VALID", say.Count(valid), say.Plural(len(s.Runs), "launch"))
	}
	m.Verdicts.addText(others...)
	for _, d := range compare.LaunchSpreads(s) {
		m.Loads = append(m.Loads, spreadModel(d))
	}
	return m
}

// decidingChecks are the checks that decided a run's verdict, each once.
func decidingChecks(run *result.Run) (names []string) {
	for i := range run.Points {
		for _, name := range buildPoint(run, &run.Points[i]).Because {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func spreadModel(d compare.Spread) SpreadModel {
	of := say.Plural(d.Launches, "launch")
	m := SpreadModel{Table: NewTable(of, "mean", "95 % interval", "least", "most")}
	write := func(v compare.SpreadValue) func(float64) string {
		if v.Unit == "share" {
			return say.Percent
		}
		return say.Quantity
	}
	few := false
	var spreads []string
	for _, v := range d.Values {
		to, mark := write(v), ""
		if v.Few && v.Unit != "share" {
			mark, few = "~", true
		}
		interval := say.Unknown
		if v.CI95 != nil {
			interval = to(v.CI95[0]) + "…" + to(v.CI95[1])
		}
		unit := v.Unit
		if unit == "share" || unit == "/s" {
			unit = ""
		}
		name := strings.TrimSpace(v.Metric + " " + unit)
		m.Table.AddRow(name, mark+to(v.Value), interval, mark+to(v.Least), mark+to(v.Most))
		switch v.Metric {
		case "p99 ttft", "p99 tpot", "output tok/s", "capacity":
			text := v.Metric + " " + mark + to(v.Value)
			if unit != "" {
				text += " " + unit
			} else if v.Metric == "capacity" {
				text += v.Unit
			}
			if v.CI95 != nil {
				text += " (" + interval + ")"
			}
			spreads = append(spreads, text)
		}
	}
	m.Answer = []string{d.What, of}
	switch {
	case d.Why != "":
		m.Answer = append(m.Answer, "no value: "+d.Why)
	case len(spreads) > 0:
		m.Answer = append(m.Answer, strings.Join(spreads, ", "))
	}
	if len(m.Table.Rows) > 0 {
		m.Legend = nonEmpty("interval of the mean over launches (of times and rates the geometric), by Student's t over these", map[bool]string{true: "~ few independent samples"}[few])
	} else {
		m.Table = Table{}
	}
	for _, l := range d.Left {
		m.Notes.addText(l.Metric + ": " + l.Why)
	}
	m.Notes.addText(d.Notes...)
	return m
}

// WriteTerminal writes it for a terminal.
func (m LaunchesModel) WriteTerminal(w io.Writer, s Style) error {
	p := newPrinter(w, s)
	p.line("")
	p.writePainted(bold, m.Title)
	for _, l := range m.Loads {
		p.line("")
		p.writePainted(bold, l.Answer...)
		if len(l.Table.Rows) > 0 {
			p.writeTable(l.Table)
			p.writePainted(dim, l.Legend...)
		}
		for _, n := range l.Notes {
			p.writeText(n)
		}
	}
	p.line("")
	p.writeText(m.Verdicts...)
	p.linePainted(dim, "saved in "+m.Dir+", a directory for each launch: pitot compare "+say.ShellLine([]string{m.Dir})+" OTHER")
	return p.err
}

// WriteMarkdown writes it for a document.
func (m LaunchesModel) WriteMarkdown(w io.Writer) error {
	p := &markdown{w: w}
	p.line("### " + escapeMarkdown(m.Title))
	for _, l := range m.Loads {
		p.line("")
		p.line(strongText(strings.Join(l.Answer, " · ")))
		p.line("")
		if len(l.Table.Rows) > 0 {
			p.writeTable(l.Table)
			p.line("")
			p.writeItem(escapeTexts(l.Legend)...)
		}
		for _, n := range l.Notes {
			p.writeItem(escapeMarkdown(n))
		}
	}
	for _, v := range m.Verdicts {
		p.writeItem(escapeMarkdown(v))
	}
	return p.err
}

// mostDetectable is the number of metrics of a load that [WriteDetectable] lists at most.
const mostDetectable = 6

// WriteDetectable writes, for each load of a side, the smallest changes at which a gate on one
// metric alone fires, before the other side is measured. A gate with "by X" fires in half of the
// comparisons at X, and more clauses make each harder to fire.
func WriteDetectable(w io.Writer, side compare.Side, s Style) error {
	p := newPrinter(w, s)
	for _, load := range compare.LaunchSpreads(side) {
		if load.Why != "" {
			continue
		}
		if load.Launches < compare.Enough {
			p.writeFormat("%s: %s; a verdict on systems takes %d a side (pitot run … --launch NAME), and how much they spread is not known before", load.What, say.Plural(load.Launches, "launch"), compare.Enough)
			continue
		}
		values := slices.DeleteFunc(slices.Clone(load.Values), func(v compare.SpreadValue) bool { return v.Detectable == nil })
		stats.SortStable(values, func(a, b compare.SpreadValue) int { return cmp.Compare(*a.Detectable, *b.Detectable) })
		var list []string
		for _, v := range values[:min(mostDetectable, len(values))] {
			list = append(list, v.Metric+" "+say.ChangeSize(*v.Detectable, v.Unit == "share"))
		}
		if len(list) > 0 {
			p.writeFormat("%s: with %d launches on the other side too, a gate on one metric alone, without by, fires at these changes with 80 %% power:", load.What, load.Launches)
			p.write("", "  ", list...)
			p.write("", "  ", "by X takes a change beyond X, and each further clause more: pitot compare says at which a clause fires")
		}
	}
	return p.err
}
