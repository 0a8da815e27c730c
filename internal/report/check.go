package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"pitot/internal/check"
)

// How a check of the instrument looks.

// JSON writes any result for programs.
func JSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

const checkLine = "%8s %10s %9s  %9s %9s  %9s %9s  %9s %8s  %s\n"

// CheckHead writes the head of the table of levels.
func CheckHead(w io.Writer, r check.Reference, each time.Duration) {
	fmt.Fprintf(w, "reference: %v to the first token, then %d tokens at one each %v; closed loop, %v at each level\n", r.TTFT, r.Tokens, r.ITL, each)
	fmt.Fprint(w, "error = what Pitot said − what the server's log says, milliseconds\n\n")
	fmt.Fprintf(w, checkLine, "streams", "chunks/s", "CPU", "TTFT", "TTFT", "gap", "gap", "merged", "lag", "true gap p99")
	fmt.Fprintf(w, checkLine, "", "", "µs/chunk", "mean", "p99", "p50", "p99", "share", "p99 ms", "and its bounds, ms")
}

// CheckLevel writes one line of it.
func CheckLevel(w io.Writer, l *check.Level) {
	signed := func(x float64) string { return fmt.Sprintf("%+.3f", x) }
	inside := "inside"
	if !l.Within(0.1) {
		inside = "OUTSIDE"
	}
	fmt.Fprintf(w, checkLine, count(l.Streams), count(int64(l.ChunksPerS)), fmt.Sprintf("%.1f", float64(l.CPUPerChunk)/1e3),
		signed(l.Said.MeanTTFT-l.True.MeanTTFT), signed(l.Said.P99TTFT-l.True.P99TTFT),
		signed(l.Said.MedianGap-l.True.MedianGap), signed(l.Said.P99Gap-l.True.P99Gap),
		percent(l.MergedShare), fmt.Sprintf("%.2f", l.LagP99.Seconds()*1e3),
		fmt.Sprintf("%.3f %s %.3f–%.3f", l.True.P99Gap, inside, l.Said.P99Bounds[0], l.Said.P99Bounds[1]))
}

// CheckVerdict writes the one sentence that counts.
func CheckVerdict(w io.Writer, levels []*check.Level, r check.Reference) {
	reach := func(limit float64) string {
		var best *check.Level
		for _, l := range levels {
			if l.Worst() <= limit && (best == nil || l.Streams > best.Streams) {
				best = l
			}
		}
		if best == nil {
			return "at no level"
		}
		return fmt.Sprintf("up to %s (%s tok/s)", plural(best.Streams, "stream"), count(int64(best.ChunksPerS)))
	}
	fmt.Fprintf(w, "\nThis machine measures mean and p99 TTFT, p50 and p99 gaps within 0.1 ms %s and within 1 ms %s.\n", reach(0.1), reach(1))
	if n := len(levels); n > 0 && levels[n-1].Late != "" {
		fmt.Fprintf(w, "At the last level the %s\n", levels[n-1].Late)
	}
}

// CheckedClient writes what was true of another client's run.
func CheckedClient(w io.Writer, r *check.Client) error {
	p := &printer{w: w}
	t := r.True
	p.line("")
	p.line("true, by the server's log: %s answered, %s failed or refused", plural(t.Requests, "request"), count(r.Failed))
	table := Table{Head: []string{"ms", "TTFT mean", "TTFT p99", "gap p50", "gap p99"}}
	table.Rows = append(table.Rows, []string{"true", fixed(&t.MeanTTFT), fixed(&t.P99TTFT), fixed(&t.MedianGap), fixed(&t.P99Gap)})
	if c := r.Said; c != nil {
		table.Rows = append(table.Rows, []string{c.Tool + " said", fixed(c.MeanTTFT), fixed(c.P99TTFT), fixed(c.MedianITL), fixed(c.P99ITL)})
	}
	table.text(p, Style{})
	facts := []string{fmt.Sprintf("%s requests/s arrived, CV of their gaps %.2f", quantity(r.Rate), r.GapCV),
		fmt.Sprintf("%.1f µs of CPU per token, start-up included", float64(r.CPUPerToken)/1e3),
		fmt.Sprintf("wall %s, of which load %s", seconds(r.Wall.Seconds()), seconds(r.Span.Seconds()))}
	if r.MemoryBytes > 0 {
		facts = append(facts, fmt.Sprintf("%.0f MB of memory", float64(r.MemoryBytes)/1e6))
	}
	p.line("%s", strings.Join(facts, " · "))
	if r.Said == nil {
		p.line("the client left no result that can be read; let it write one to {dir} (vllm bench serve: --save-result --result-dir {dir})")
	}
	if r.ExitError != nil {
		p.line("the command ended with: %v", r.ExitError)
	}
	p.line("%s", r.Late)
	return p.err
}

func fixed(x *float64) string {
	if x == nil {
		return unknown
	}
	return fmt.Sprintf("%.2f", *x)
}
