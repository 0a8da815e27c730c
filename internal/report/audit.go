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

const checkLine = "%8s %8s %9s %9s  %8s %8s  %8s %8s  %8s %8s  %s\n"

// CheckHead writes the head of the table of levels that so many workers are asked at, 0 where one
// process asks.
func CheckHead(w io.Writer, r audit.Reference, window time.Duration, workers int) {
	by := ""
	if workers > 0 {
		by = ", by " + say.Plural(workers, "worker") + ": under all of them the one that is off by most"
	}
	fmt.Fprintf(w, "reference: %s to the first token, then one each %s, %s in all; closed loop, %s at each level%s\n",
		say.Duration(r.TTFT), say.Duration(r.ITL), say.Plural(r.Tokens, "token"), say.Duration(window), by)
	fmt.Fprintf(w, "error = what Pitot measured − what the server's log has, ms; n = requests measured, with %s each\n", say.Plural(r.Tokens-1, "gap"))
	few, firm := stats.SamplesNeeded(.99)
	fmt.Fprintf(w, "p99 from %s samples on, ~ few: from %s on, – fewer: withheld\n", say.Count(firm), say.Count(few))
	fmt.Fprintf(w, "inside = true p50 and p99 of gaps lie within the bounds that Pitot prints ±%g ms, which are what is shown\n\n", float64(audit.Tolerance)/1e6)
	fmt.Fprintf(w, checkLine, "streams", "n", "chunks/s", "CPU", "TTFT", "TTFT", "gap", "gap", "merged", "lag", "true gap p99")
	fmt.Fprintf(w, checkLine, "", "", "", "µs/chunk", "mean", "p99", "p50", "p99", "share", "p99 ms", "and where it may be, ms")
}

// CheckLevel writes one line of it, and one of the worker that is off by most.
func CheckLevel(w io.Writer, l *audit.Level) {
	checkRow(w, say.Count(l.Streams), say.Count(int64(l.ChunksPerS)), l.CPUPerChunk, &l.Accuracy)
	if worst, _ := l.WorstWorker(); worst != nil {
		checkRow(w, fmt.Sprintf("worker %d", worst.Rank), "", worst.CPUPerChunk, &worst.Accuracy)
	}
}

func checkRow(w io.Writer, name, speed string, cpu time.Duration, l *audit.Accuracy) {
	figures := l.KeyFigures()
	cells := []any{name, say.Count(figures[0].N), speed, fmt.Sprintf("%.1f", float64(cpu)/1e3)}
	if l.EndToEnd {
		cells[2], cells[3] = say.Unknown, say.Unknown
	}
	for _, f := range figures {
		text := say.Unknown
		if e, known := f.Error(); known {
			text = fewMark(f.Few) + fmt.Sprintf("%+.3f", e)
		}
		cells = append(cells, text)
	}
	lag := say.Unknown
	if s := l.Lag; s != nil && s.P99 != nil {
		lag = fewMark(slices.Contains(s.Few, "p99")) + fmt.Sprintf("%.2f", *s.P99)
	}
	gap := say.Unknown
	if _, known := l.IsWithinBounds(); known {
		gap = insideText(figures[2], figures[3])
	}
	fmt.Fprintf(w, checkLine, append(cells, say.Percent(l.MergedShare), lag, gap)...)
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
func WriteCheck(w io.Writer, r audit.Reference, window time.Duration, workers int, levels []*audit.Level) {
	if len(levels) == 0 {
		return
	}
	CheckVerdict(w, levels)
	fmt.Fprintln(w)
	CheckHead(w, r, window, workers)
	for _, l := range levels {
		CheckLevel(w, l)
	}
}

// CheckVerdict writes the sentence that counts: which figures are how close
// to the truth up to which level.
func CheckVerdict(w io.Writer, levels []*audit.Level) {
	if len(levels) == 0 {
		return
	}
	near, wide := levelsWithin(levels, .1), levelsWithin(levels, 1)
	var reach []string
	var facts []labelled
	add := func(levels []*audit.Level, limit string) {
		reach = append(reach, reachText(levels, limit))
		facts = append(facts, labelled{Label: limit, Value: []string{figuresOf(levels)}})
	}
	if len(near) > 0 {
		add(near, "0.1 ms")
	}
	if len(near) < len(wide) { // else the wider limit adds nothing
		add(wide, "1 ms")
	}
	if len(reach) == 0 {
		fmt.Fprintln(w, "Not accurate to 1 ms at any level.")
	} else {
		fmt.Fprintf(w, "Accurate %s.\n", strings.Join(reach, ", "))
	}
	newPrinter(w, Style{}).writeFacts(facts)
	if len(facts) > 0 {
		fmt.Fprintln(w)
	}
	if text := worstWorkerText(levels); text != "" {
		fmt.Fprintln(w, text)
	}
	if what := endToEnd(levels[0]); what != "" {
		fmt.Fprintln(w, "Shown is"+strings.TrimPrefix(what, ":")+".")
	}
	if late := levels[len(levels)-1].Late; late.Max > 0 {
		fmt.Fprintf(w, "At the last level the server wrote its events late by %s.\n", late)
	}
}

// worstWorkerText names the worker whose error is the largest of all levels, and says how far
// apart their clocks are taken to be; "" where one process asked.
func worstWorkerText(levels []*audit.Level) string {
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
		return ""
	}
	within := "all within their bounds"
	if outside > 0 {
		within = fmt.Sprintf("%d OUTSIDE their bounds", outside)
	}
	return fmt.Sprintf("Off by most is %s.\nTheir clocks, which are one, were taken to be up to %.3f ms apart, %s of at most %.3f ms.", worst, apart, within, bound)
}

// CheckAPIs says with which APIs the mean TTFT is true, and under that shows the levels of
// each.
func CheckAPIs(w io.Writer, r audit.Reference, window time.Duration, workers int, levels []*audit.Level) {
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
	fmt.Fprintf(w, "The mean %s is within %g ms of the truth %s.\n\n", what, limit, text)
	CheckHead(w, r, window, workers)
	for i, l := range levels {
		if i == 0 || l.API != levels[i-1].API {
			fmt.Fprintln(w, l.API+endToEnd(l))
		}
		CheckLevel(w, l)
	}
}

// endToEnd says what stands in place of a TTFT.
func endToEnd(l *audit.Level) string {
	if l.EndToEnd {
		return ": E2E in place of TTFT, since nothing is streamed"
	}
	return ""
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
