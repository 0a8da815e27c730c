package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"pitot/internal/say"
	"pitot/internal/slo"
	"pitot/internal/workload"
)

// How workloads look.

// WritePresets writes the workloads that have a name, one a line.
func WritePresets(w io.Writer, s Style) error {
	p := newPrinter(w, s)
	p.line("")
	const row = "%-20s %6s %7s %7s %6s %6s  %-28s %s"
	p.line(row, "", "in p50", "p99", "out p50", "p99", "shared", "hardest on", "from")
	for _, preset := range workload.Presets() {
		in, out := presetLengths(preset)
		shared := ""
		if n := preset.System + preset.Prefix; preset.PrefixShare > 0 || preset.System > 0 {
			shared = say.Count(n)
		}
		p.line(row, preset.Name, say.Count(preset.System+preset.Prefix+in.Quantile(.5)), say.Count(preset.System+preset.Prefix+in.Quantile(.99)),
			say.Count(out.Quantile(.5)), say.Count(out.Quantile(.99)), shared, preset.Stresses, preset.From)
	}
	p.line("")
	p.writePainted(dim, "in, out: tokens of a prompt and of an answer; shared: tokens that all prompts begin with", "of agents: their first prompt, and each further one repeats what was said", "arrivals: poisson, unless --arrival says otherwise")
	p.line("")
	p.line("pitot workload show NAME    its lengths, and where the numbers come from")
	p.line("pitot run TARGET --rate 4 --workload NAME")
	return p.err
}

// presetLengths are those of a preset, which a test reads.
func presetLengths(p workload.Preset) (in, out workload.Lengths) {
	return lengthsOf(p, p.Input), lengthsOf(p, p.Output)
}

func lengthsOf(p workload.Preset, written string) workload.Lengths {
	l, err := workload.ParseLengths(written)
	if err != nil {
		panic(fmt.Sprintf("report: preset %s: %v", p.Name, err))
	}
	return l
}

// thinkPause is the pause of a preset's conversations.
func thinkPause(p workload.Preset) workload.Pause {
	x, err := workload.ParsePause(p.Think)
	if err != nil {
		panic(fmt.Sprintf("report: preset %s: %v", p.Name, err))
	}
	return x
}

// WritePreset draws one of them.
func WritePreset(w io.Writer, preset workload.Preset, s Style) error {
	p := newPrinter(w, s)
	in, out := presetLengths(preset)
	p.line("")
	p.writePainted(bold, preset.Name+": "+preset.About)
	for _, fact := range presetFacts(preset) {
		p.writeText(fact)
	}
	if preset.Turns != "" {
		p.writeFormat("conversations: each request repeats what was said, behind %s tokens of a system prompt that all share; %s pass before the next on average", say.Count(preset.System), say.Duration(thinkPause(preset).Mean()))
	}
	if law, err := workload.ParseSubAgents(preset.SubAgents); err == nil {
		p.writeText(subAgentsSay(law) + ", which run at once, each behind " + say.Count(law.System) + " tokens that all sub-agents share; the next step waits for them and reads their last answers")
	}
	p.line("")
	p.line("prompt tokens")
	drawHistogram(p, in)
	if preset.Turns != "" {
		p.line("")
		p.line("tokens that each further request adds")
		drawHistogram(p, lengthsOf(preset, preset.TurnInput))
		p.line("")
		p.line("requests")
		drawHistogram(p, lengthsOf(preset, preset.Turns))
	}
	p.line("")
	p.line("answer tokens")
	drawHistogram(p, out)
	p.line("")
	p.line("the same as")
	for _, setting := range presetSettings(preset) {
		p.line("  %s", setting)
	}
	if preset.Turns != "" {
		p.line("  --turns '%s'", preset.Turns)
		p.line("  --set turn-input='%s'", preset.TurnInput)
		p.line("  --think '%s' --system %d", preset.Think, preset.System)
		if preset.SubAgents != "" {
			p.line("  --set sub-agents='%s'", preset.SubAgents)
		}
	}
	return p.err
}

// subAgentsSay says what sub-agents steps start.
func subAgentsSay(s workload.SubAgents) string {
	agents := say.Plural(int(s.Agents.Mean()+.5), "sub-agent")
	if n := s.Agents.Mean(); n != math.Trunc(n) {
		agents = say.Decimal(n, 2) + " sub-agents"
	}
	return fmt.Sprintf("%s of the steps start %s of %s requests on average", say.Percent(s.Share), agents, say.Decimal(s.Steps.Mean(), 2))
}

// objectiveNamed returns the limits of the objective with a name. It returns "" if no objective has
// it.
func objectiveNamed(name string) string {
	for _, o := range slo.Presets() {
		if o.Name == name {
			return o.Spec
		}
	}
	return ""
}

// MixedClass is a class of requests as it is shown.
type MixedClass struct {
	Name, What    string // and what it asks in one line
	Input, Output workload.Lengths
	Prefix        int // tokens, on average, besides Input
}

// WriteMix draws the classes of a workload: of those with prompts from a file the one line.
func WriteMix(w io.Writer, name, about string, classes []MixedClass, s Style) error {
	p := newPrinter(w, s)
	p.line("")
	p.writePainted(bold, strings.TrimSuffix(name+": "+about, ": "))
	for _, c := range classes {
		p.line("")
		p.writePainted(bold, c.Name+": "+c.What)
		if c.Input.IsZero() {
			continue
		}
		if c.Prefix > 0 {
			p.writeText(say.Count(c.Prefix) + " tokens on average in front of the prompts below")
		}
		p.line("prompt tokens")
		drawHistogram(p, c.Input)
		p.line("answer tokens")
		drawHistogram(p, c.Output)
	}
	return p.err
}

// WriteTrace draws what is known of the requests of a file: lengths, and the gaps between their
// times.
func WriteTrace(w io.Writer, name string, t *workload.Trace, s Style) error {
	p := newPrinter(w, s)
	p.line("")
	p.writePainted(bold, name+": "+say.Plural(t.Requests(), "request")+" ("+t.Format+")")
	part := DrawFile(name, t).Parts[0]
	draw := func(label string, values []float64, written func(float64) string) {
		if len(values) > 0 {
			p.line("")
			p.line("%s", label)
			bars(p, values, written)
		}
	}
	whole := func(x float64) string { return say.Count(int64(math.Round(x))) }
	prompts := "prompt tokens"
	if t.Counted {
		prompts += ", as counted here: a server's tokenizer may differ"
	}
	draw(prompts, part.Prompts, whole)
	draw("answer tokens", part.Answers, whole)
	draw("gaps between arrivals, ms", part.Gaps, say.Quantity)
	return p.err
}

// drawHistogram draws a distribution of lengths.
func drawHistogram(p *printer, l workload.Lengths) {
	if l.Quantile(0) == l.Quantile(1) {
		p.line("  %s each", say.Count(l.Quantile(.5)))
		return
	}
	p.write("", "  ", fmt.Sprintf("mean %s", say.Count(int64(math.Round(l.Mean())))),
		fmt.Sprintf("p50 %s", say.Count(l.Quantile(.5))), fmt.Sprintf("p90 %s", say.Count(l.Quantile(.9))), fmt.Sprintf("p99 %s", say.Count(l.Quantile(.99))))
	drawOctaves(p, spreadOf(l, 0))
}

// bars draws values, in order, that are there: what they come to, and their histogram.
func bars(p *printer, values []float64, written func(float64) string) {
	at := func(share float64) string { return written(valueAt(values, share)) }
	if values[0] == values[len(values)-1] {
		p.line("  %s each", at(0))
		return
	}
	p.write("", "  ", "mean "+written(meanOf(values)), "p50 "+at(.5), "p90 "+at(.9), "p99 "+at(.99))
	drawOctaves(p, values)
}

// drawOctaves draws shares of values in stretches of which each is twice as long as the one
// before; below 1 is one of its own.
func drawOctaves(p *printer, values []float64) {
	const width = 40
	counts := map[int]int{}
	least, most, tallest := math.MaxInt, math.MinInt, 0
	for _, x := range values {
		k := -1
		if x >= 1 {
			k = int(math.Log2(x))
		}
		counts[k]++
		least, most, tallest = min(least, k), max(most, k), max(tallest, counts[k])
	}
	label := len(say.Count(int64(1) << (most + 1)))
	for k := least; k <= most; k++ {
		bar := strings.Repeat("█", (counts[k]*width+tallest/2)/tallest)
		share := say.Percent(float64(counts[k]) / float64(len(values)))
		if k < 0 {
			p.line("  %-*s %6s  %s", 2*label+4, "below 1", share, bar)
			continue
		}
		if k == 0 {
			p.line("  %*s    %*s %6s  %s", label, "1", label, "", share, bar)
			continue
		}
		p.line("  %*s to %-*s %6s  %s", label, say.Count(int64(1)<<k), label, say.Count(int64(1)<<(k+1)-1), share, bar)
	}
}
