package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"pitot/internal/analysis/audit"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/stats"
)

// How the results of `pitot check`, the audit of the instrument, look.

// WriteJSON writes any result for programs.
func WriteJSON(w io.Writer, v any) error {
	data, err := result.Indent(v)
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

// levelTable has a line for each level, and one of the worker with the largest error. The whole
// table also says how many requests a level has, how much was merged and where gaps are.
func levelTable(levels []*audit.Level, whole bool) (t Table, legend []string) {
	t = NewTable("streams", "chunks/s", "TTFT mean", "TTFT p99", "gap p50", "gap p99", "CPU µs/chunk")
	if whole {
		t.Head = append(t.Head, "n", "merged", "lag p99", "true gap p99")
	}
	few, withheld, inside := false, false, false
	add := func(name, speed string, cpu time.Duration, l *audit.Accuracy) {
		figures := l.KeyFigures()
		row := []string{name, speed}
		for _, f := range figures {
			text := say.Unknown
			if e, known := f.Error(); known {
				text = fewMark(f.Few) + fmt.Sprintf("%+.3f", e)
				few = few || f.Few
			} else {
				withheld = true
			}
			row = append(row, text)
		}
		row = append(row, fmt.Sprintf("%.1f", float64(cpu)/1e3))
		if l.EndToEnd {
			row[1], row[len(row)-1] = say.Unknown, say.Unknown
		}
		if whole {
			lag, gap := say.Unknown, say.Unknown
			if s := l.Lag; s != nil && s.P99 != nil {
				lag = fewMark(slices.Contains(s.Few, "p99")) + fmt.Sprintf("%.2f", *s.P99)
			}
			if _, known := l.IsWithinBounds(); known {
				gap, inside = insideText(figures[2], figures[3]), true
			}
			row = append(row, say.Count(figures[0].N), say.Percent(l.MergedShare), lag, gap)
		}
		t.AddRow(row...)
	}
	for _, l := range levels {
		add(say.Count(l.Streams), say.Count(int64(l.ChunksPerS)), l.CPUPerChunk, &l.Accuracy)
		if worst, _ := l.WorstWorker(); worst != nil {
			add(fmt.Sprintf("worker %d", worst.Rank), "", worst.CPUPerChunk, &worst.Accuracy)
		}
	}
	legend = append(legend, "errors in ms: Pitot minus the server's log")
	least, firm := stats.SamplesNeeded(.99)
	if few {
		legend = append(legend, fmt.Sprintf("~ fewer than %s samples", say.Count(firm)))
	}
	if withheld {
		legend = append(legend, fmt.Sprintf("%s fewer than %s", say.Unknown, say.Count(least)))
	}
	if inside {
		legend = append(legend, fmt.Sprintf("inside: the true gaps are within ±%g ms of what Pitot prints", float64(audit.Tolerance)/1e6))
	}
	return t, legend
}

// WriteLevels writes the table of levels.
func WriteLevels(w io.Writer, levels []*audit.Level, s Style) {
	p := newPrinter(w, s)
	t, legend := levelTable(levels, s.Full)
	if s.Full {
		p.writeColumns(t, len(t.Head)-1)
	} else {
		p.writeColumns(t)
	}
	p.writePainted(dim, legend...)
}

// referenceFact says what the reference server sends.
func referenceFact(r audit.Reference, window time.Duration) labelled {
	return labelled{Label: "Reference", Value: []string{fmt.Sprintf("a server in its own process: %s to the first token, %s, %s apart; closed loop, %s a level",
		say.Duration(r.TTFT), say.Plural(r.Tokens, "token"), say.Duration(r.ITL), say.Duration(window))}}
}

// insideText says where the true p99 of gaps lies, or the p50 where that alone is
// outside.
func insideText(p50, p99 audit.Figure) string {
	shown, name, word := p99, "", "inside"
	if in, _ := p99.IsWithinBounds(); !in {
		word = "OUTSIDE"
	} else if in, _ := p50.IsWithinBounds(); !in {
		shown, name, word = p50, "p50 ", "OUTSIDE"
	}
	lo, hi := shown.TrueRange()
	return fmt.Sprintf("%s%s%.3f %s %.3f–%.3f", name, fewMark(shown.Few), *shown.True, word, lo, hi)
}

// fewMark marks what rests on few samples.
func fewMark(is bool) string {
	if is {
		return "~"
	}
	return ""
}

// WriteCheck writes the verdict and the levels that it rests on.
func WriteCheck(w io.Writer, r audit.Reference, window time.Duration, levels []*audit.Level, s Style) {
	if len(levels) == 0 {
		return
	}
	p := newPrinter(w, s)
	answer, facts := checkVerdict(levels)
	p.writeAnswer(answer)
	facts = append(facts, worstWorkerFacts(levels)...)
	if late := levels[len(levels)-1].Late; late.Max > 0 {
		facts = append(facts, labelled{Label: "Server late", Value: []string{fmt.Sprintf("at the last level it wrote its events late by %s", late)}})
	}
	p.writeFacts(append(facts, referenceFact(r, window)))
	if levels[0].EndToEnd {
		p.line("")
		p.line("E2E takes the place of TTFT, since nothing is streamed.")
	}
	p.line("")
	WriteLevels(w, levels, s)
}

// checkVerdict returns the sentence that counts, and which figures are how close to the truth.
func checkVerdict(levels []*audit.Level) (answer string, facts []labelled) {
	near, wide := levelsWithin(levels, .1), levelsWithin(levels, 1)
	var reach []string
	add := func(levels []*audit.Level, limit string) {
		reach = append(reach, reachText(levels, limit))
		facts = append(facts, labelled{Label: "To " + limit, Value: []string{figuresOf(levels)}})
	}
	if len(near) > 0 {
		add(near, "0.1 ms")
	}
	if len(near) < len(wide) { // else the wider limit adds nothing
		add(wide, "1 ms")
	}
	if len(wide) < len(levels) {
		facts = append(facts, labelled{Label: "Over 1 ms", Value: []string{largestErrorText(levels, len(wide))}})
	}
	if len(reach) == 0 {
		return "Not accurate to 1 ms at any level", facts
	}
	return "Accurate " + strings.Join(reach, ", "), facts
}

// largestErrorText names the figure with the largest error at one of the levels by their size.
func largestErrorText(levels []*audit.Level, at int) string {
	levels = slices.SortedFunc(slices.Values(levels), func(a, b *audit.Level) int { return a.Streams - b.Streams })
	name, most := "", 0.0
	for _, f := range levels[at].KeyFigures() {
		if e, known := f.Error(); known && max(e, -e) > max(most, -most) {
			name, most = f.Name, e
		}
	}
	return fmt.Sprintf("%s %+.3f ms at %s", name, most, say.Plural(levels[at].Streams, "stream"))
}

// worstWorkerFacts name the worker whose error is the largest of all levels, and say how far apart
// the workers' clocks are taken to be. There are none where one process sent the load.
func worstWorkerFacts(levels []*audit.Level) []labelled {
	worst, most, apart, bound, outside := "", -1.0, 0.0, 0.0, 0
	for _, l := range levels {
		if w, f := l.WorstWorker(); w != nil {
			if e, _ := f.Error(); max(e, -e) > most {
				most = max(e, -e)
				which := fmt.Sprintf("worker %d of %d", w.Rank, len(l.Workers))
				if len(l.Workers) == 1 { // of a fleet no more take part than there are streams
					which = "the one worker that took part"
				}
				worst = fmt.Sprintf("%s: its %s is off by %+.3f ms at %s", which, f.Name, e, say.Plural(l.Streams, "stream"))
			}
		}
		for _, w := range l.Workers {
			ahead := max(w.Ahead, -w.Ahead)
			apart, bound = max(apart, ahead), max(bound, w.Bound)
			if ahead > w.Bound {
				outside++
			}
		}
	}
	if worst == "" {
		return nil
	}
	within := "all within their bounds"
	if outside > 0 {
		within = fmt.Sprintf("%d OUTSIDE their bounds", outside)
	}
	return []labelled{
		{Label: "Worst worker", Value: []string{worst}},
		{Label: "Clocks", Value: []string{fmt.Sprintf("taken to be up to %.3f ms apart, though they are one: %s of at most %.3f ms", apart, within, bound)}},
	}
}

// CheckAPIs says with which APIs the mean TTFT is true, and under that shows the levels of
// each.
func CheckAPIs(w io.Writer, r audit.Reference, window time.Duration, levels []*audit.Level, s Style) {
	const limit = .1 // ms
	var off texts
	for _, l := range levels {
		figures := l.KeyFigures()
		if e, known := figures[0].Error(); !known {
			off.addFormat("%s at %s (not known)", l.API, say.Plural(l.Streams, "stream"))
		} else if e > limit || e < -limit {
			off.addFormat("%s at %s (%+.3f ms)", l.API, say.Plural(l.Streams, "stream"), e)
		}
	}
	text := "at every level"
	if len(off) > 0 {
		text = fmt.Sprintf("at %d of %d levels, not with %s", len(levels)-len(off), len(levels), strings.Join(off, ", "))
	}
	what := "TTFT"
	if slices.ContainsFunc(levels, func(l *audit.Level) bool { return l.EndToEnd }) {
		what = "TTFT (E2E where nothing is streamed)"
	}
	p := newPrinter(w, s)
	p.writeAnswer(fmt.Sprintf("The mean %s is within %g ms of the truth %s", what, limit, text))
	p.writeFacts([]labelled{referenceFact(r, window)})
	p.line("")
	t, legend := levelTable(levels, s.Full)
	t.Head = append([]string{"API"}, t.Head...)
	for i, row := 0, 0; i < len(levels); i++ {
		rows := 1
		if worst, _ := levels[i].WorstWorker(); worst != nil {
			rows = 2
		}
		for range rows {
			t.Rows[row] = append([]string{levels[i].API}, t.Rows[row]...)
			row++
		}
	}
	p.writeColumns(t)
	p.writePainted(dim, legend...)
}

// levelsWithin are the levels from the smallest to the last before one whose worst
// error is over the limit, in milliseconds.
func levelsWithin(levels []*audit.Level, limit float64) []*audit.Level {
	levels = slices.SortedFunc(slices.Values(levels), func(a, b *audit.Level) int { return a.Streams - b.Streams })
	if i := slices.IndexFunc(levels, func(l *audit.Level) bool { return l.LargestError() > limit }); i >= 0 {
		return levels[:i]
	}
	return levels
}

// reachText says up to how many streams an error was kept: "to 1 ms up to 10 streams".
func reachText(levels []*audit.Level, limit string) string {
	reach := "up to"
	if len(levels) == 1 {
		reach = "at"
	}
	return fmt.Sprintf("to %s %s %s", limit, reach, say.Plural(levels[len(levels)-1].Streams, "stream"))
}

// figuresOf names the figures that any of the levels could give, and from how
// many samples where they are few at all of them.
func figuresOf(levels []*audit.Level) string {
	var names []string
	for i := range (&audit.Level{}).KeyFigures() {
		name, n, firm := "", int64(0), false
		for _, l := range levels {
			f := l.KeyFigures()[i]
			if _, known := f.Error(); known {
				name, n, firm = f.Name, max(n, f.N), firm || !f.Few
			}
		}
		switch {
		case name == "":
			continue
		case !firm:
			name += fmt.Sprintf(" (few: n = %s)", say.Count(n))
		}
		names = append(names, name)
	}
	return say.List(names...)
}

// CheckedClient writes what was true of another client's run.
func CheckedClient(w io.Writer, r *audit.Client) error {
	p := newPrinter(w, Style{})
	p.line("")
	p.line("true, by the server's log: %s answered, %s failed or refused", say.Plural(r.Requests, "request"), say.Count(r.Failed))
	table := NewTable("ms", "TTFT mean", "TTFT p99", "gap p50", "gap p99")
	t, row := r.True, []string{"true", say.Unknown, say.Unknown, say.Unknown, say.Unknown}
	if s := t.TTFT; s != nil {
		row[1], row[2] = twoDecimals(s.Mean), fewMark(slices.Contains(s.Few, "p99"))+twoDecimals(s.P99)
	}
	if s := t.Gap; s != nil {
		row[3], row[4] = fewMark(slices.Contains(s.Few, "p50"))+twoDecimals(s.P50), fewMark(slices.Contains(s.Few, "p99"))+twoDecimals(s.P99)
	}
	table.AddRow(row...)
	if c := r.Reported; c != nil {
		table.AddRow(c.Tool+" reported", twoDecimals(c.MeanTTFT), twoDecimals(c.P99TTFT), twoDecimals(c.MedianITL), twoDecimals(c.P99ITL))
	}
	p.writeTable(table)
	if lo, firm := stats.SamplesNeeded(.99); t.TTFT != nil && t.TTFT.N < firm {
		p.line("p99 from %s samples on, ~ few: from %s on, – fewer: withheld", say.Count(firm), say.Count(lo))
	}
	var facts texts
	if r.Rate > 0 { // two arrivals have no spread
		facts.addFormat("%s requests/s arrived, CV of their gaps %.2f", say.Quantity(r.Rate), r.GapCV)
	}
	facts.addText(fmt.Sprintf("%.1f µs of CPU per token, start-up included", float64(r.CPUPerToken)/1e3),
		fmt.Sprintf("wall %s, %s under load", say.Seconds(r.Wall.Seconds()), say.Seconds(r.Span.Seconds())))
	if r.MemoryBytes > 0 {
		facts.addFormat("%.0f MB of memory", float64(r.MemoryBytes)/1e6)
	}
	p.line("%s", strings.Join(facts, " · "))
	if r.Reported == nil {
		p.line("the client left no result that can be read; let it write one to {dir} (vllm bench serve: --save-result --result-dir {dir}; aiperf: --artifact-dir {dir})")
	}
	if r.Exit != "" {
		p.line("the command ended with: %s", r.Exit)
	}
	p.line("the server wrote its events late by %s", r.Late)
	return p.err
}

func twoDecimals(x *float64) string {
	if x == nil {
		return say.Unknown
	}
	return fmt.Sprintf("%.2f", *x)
}
