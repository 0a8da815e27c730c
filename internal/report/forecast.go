package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"pitot/internal/experiment"
	"pitot/internal/say"
)

// WriteForecast says what a plan takes, and what its launches are expected to tell.
func WriteForecast(w io.Writer, f *experiment.Forecast, s Style) error {
	p := newPrinter(w, s)
	about := func(x float64) string { return say.Count(int64(math.Round(x))) }
	head := f.Plan.Name() + ": " + forecastTime(f, f.Seconds)
	if f.USD > 0 {
		head += ", " + usdText(f.USD)
	}
	p.writePainted(bold, head, fmt.Sprintf("%s of %s", say.Plural(f.Launches, "launch"), say.Plural(f.Configurations, "configuration")), fmt.Sprintf("about %s requests, %s tokens in and %s out", about(f.Requests), about(f.Tokens[0]), about(f.Tokens[1])))
	c := &f.Plan.Contract
	p.writeText("contract: " + c.Limits.String() + " at " + say.Exact(c.Capacity) + "/s, by row " + c.Row)
	if f.Power != nil {
		for _, line := range powerLines(f) {
			p.writeText(line)
		}
	}
	p.line("")
	t := NewTable("one launch", "load", "requests", "tokens in", "out", "time")
	var seconds, requests, in, out float64
	for _, r := range f.Rows {
		t.AddRow(r.Row.Name, r.Load, about(r.Requests), about(r.Input), about(r.Output), say.Seconds(r.Seconds))
		seconds, requests, in, out = seconds+r.Seconds, requests+r.Requests, in+r.Input, out+r.Output
	}
	t.AddRow("all rows", "", about(requests), about(in), about(out), say.Seconds(seconds))
	p.writeTable(t)
	for _, r := range f.Rows {
		if r.Row.Question != "" {
			p.writeWrapped(r.Row.Name + ": " + r.Row.Question)
		}
	}
	for _, r := range f.Rows {
		for _, h := range r.Row.Hypotheses {
			p.writeWrapped("hypothesis: " + h.Text)
		}
		expected, note := f.Plan.ExpectedHypotheses(r.Row)
		for _, h := range expected {
			p.writeWrapped("hypothesis: " + h.Text + " (" + note + ")")
		}
	}
	p.line("")
	p.writeText("each launch is a start of the engine of its own, with one of:")
	for _, c := range f.Plan.Configurations() {
		line := c.Name
		if f.Plan.Server != nil {
			if flags := f.Plan.Flags(c); flags != "" {
				line += ": " + flags
			}
		}
		if gpus := f.Plan.GPUs(c); gpus != "" {
			line += " (" + gpus + ": it is compared with the others by load per GPU)"
		}
		p.line("  %s", say.PlainLine(line))
	}
	if f.Start > 0 {
		by := "as those that were made"
		if !f.StartKnown {
			by = "assumed, until one is made"
		}
		if f.Plan.ByHand() {
			by += "; they are made by hand: run says when, and with which flags"
		}
		p.writeFormat("a start and a stop of the server: %s, %s", say.Seconds(f.Start), by)
	}
	for _, n := range f.Notes {
		p.writePainted(yellow, "note: "+n)
	}
	p.line("")
	if f.Done > 0 {
		p.writeFormat("%s of %s runs are measured already", say.Count(f.Done), say.Count(f.Parts))
	}
	for _, v := range f.Void {
		p.writePainted(yellow, "void, planned otherwise: "+v)
	}
	for _, o := range f.Over {
		p.writePainted(yellow, "over the budget: "+o)
	}
	if f.Plan.Stop.Early {
		p.writeText("less, where configurations are given up or the answer is clear after two launches")
	}
	switch {
	case f.Power != nil:
		p.writePower(f)
	case f.Plan.Server != nil && f.TwinFailed == "":
		p.writePainted(yellow, "note: what the launches would show is not known without a twin: name the server's GPU with --deployment h100, or in the plan, target: {url: …, twin: sim:llama-3.1-8b@h100}")
	}
	return p.err
}

// ToGo returns, in a line, the time that the remaining measurements take.
func ToGo(f *experiment.Forecast) string {
	text := forecastTime(f, f.Left) + " to go"
	if f.Plan.Stop.Early {
		text += ", less where the answer is clear before"
	}
	return text
}

// forecastTime is a time that a plan takes, as far as it is known.
func forecastTime(f *experiment.Forecast, seconds float64) string {
	text := "about " + say.Seconds(seconds)
	if len(f.Unknown) > 0 {
		text = "at least " + say.Seconds(seconds)
	}
	if strings.HasPrefix(f.Plan.Target, "sim:") {
		text += " of virtual time"
	}
	return text
}

// WriteStatus says how far an experiment came, and what is known by now.
func WriteStatus(w io.Writer, x experiment.Status, f *experiment.Forecast, m DecisionModel, s Style) error {
	p := newPrinter(w, s)
	p.line("")
	p.writePainted(answerColor(m.Word), m.Headline)
	p.writeText(fmt.Sprintf("%s complete, %s at most to go", say.Plural(x.Launches, "launch"), say.Count(x.Left)), stoppedText(m.Of))
	if x.Left > 0 {
		p.writeText(ToGo(f))
	}
	p.line("")
	t := NewTable("", "runs", "of", "carries", "contract")
	for i, c := range x.Configurations {
		st := &m.Of.Standings[i]
		state := st.Contract
		if c.GivenUp > 0 {
			state = "given up after " + say.Plural(c.GivenUp, "launch")
		}
		t.AddRow(c.Name, say.Count(c.Parts), say.Count(c.Of), say.Optional(st.Carries), state)
	}
	p.writeTable(t)
	for i := range x.NotStarted {
		for _, l := range notStarted(&x.NotStarted[i]) {
			p.writeHanging(yellow, "", "  ", l)
		}
	}
	if w := x.Waits; w != nil {
		p.writePainted(yellow, fmt.Sprintf("it waits: %s (%s, launch %d)", w.Sentence(), w.Configuration, w.Launch))
	}
	for _, section := range m.Sections {
		if section.ID == "next" {
			for _, l := range section.Lines {
				p.writeText(l)
			}
		}
	}
	return p.err
}
