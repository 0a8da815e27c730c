package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"pitot/internal/say"
	"pitot/internal/workload"
)

// How workloads look.

// Presets writes the workloads that have a name, one a line.
func Presets(w io.Writer, s Style) error {
	p := &printer{w: w}
	p.line("")
	const row = "%-20s %9s %9s %9s %9s %8s  %s"
	p.line(row, "", "in p50", "p99", "out p50", "p99", "shared", "hardest on")
	for _, preset := range workload.Presets() {
		in, out := presetLengths(preset)
		shared := ""
		if preset.PrefixShare > 0 {
			shared = say.Count(preset.Prefix)
		}
		p.line(row, preset.Name, say.Count(preset.Prefix+in.Quantile(.5)), say.Count(preset.Prefix+in.Quantile(.99)),
			say.Count(out.Quantile(.5)), say.Count(out.Quantile(.99)), shared, preset.Stresses)
	}
	p.line("")
	p.write(s, dim, "", "in, out: tokens of a prompt and of an answer; shared: tokens that all prompts begin with")
	p.line("")
	p.line("pitot workload show NAME    its lengths, and where the numbers come from")
	p.line("pitot run TARGET --rate 4 --workload NAME")
	return p.err
}

// presetLengths are those of a preset, which a test reads.
func presetLengths(p workload.Preset) (in, out workload.Lengths) {
	in, errIn := workload.ParseLengths(p.Input)
	out, errOut := workload.ParseLengths(p.Output)
	if errIn != nil || errOut != nil {
		panic(fmt.Sprintf("report: preset %s: %v, %v", p.Name, errIn, errOut))
	}
	return in, out
}

// Preset draws one of them.
func Preset(w io.Writer, preset workload.Preset, s Style) error {
	p := &printer{w: w}
	in, out := presetLengths(preset)
	p.line("")
	p.write(s, bold, "", preset.Name+": "+preset.About)
	p.write(s, "", "", "hardest on "+preset.Stresses)
	p.write(s, "", "", "from "+preset.Source)
	switch {
	case preset.Prefix > 0 && preset.PrefixShare > 0:
		p.write(s, "", "", fmt.Sprintf("%s tokens in front of every prompt, the same for %s of the requests; the lengths below come behind them", say.Count(preset.Prefix), say.Percent(preset.PrefixShare)))
	case preset.Prefix > 0:
		p.write(s, "", "", fmt.Sprintf("%s tokens in front of every prompt, of its own; the lengths below come behind them", say.Count(preset.Prefix)))
	}
	p.line("")
	p.line("prompt tokens")
	histogram(p, s, in)
	p.line("")
	p.line("answer tokens")
	histogram(p, s, out)
	p.line("")
	p.line("the same as")
	p.line("  --input '%s'", preset.Input)
	p.line("  --output '%s'", preset.Output)
	if preset.Prefix > 0 {
		p.line("  --prefix %d --prefix-share %s", preset.Prefix, say.Exact(preset.PrefixShare))
	}
	return p.err
}

// histogram draws a distribution of lengths: shares of the requests in stretches of
// which each is twice as long as the one before.
func histogram(p *printer, s Style, l workload.Lengths) {
	const cells, width = 4096, 40
	if l.Quantile(0) == l.Quantile(1) {
		p.line("  %s each", say.Count(l.Quantile(.5)))
		return
	}
	p.write(s, "", "  ", fmt.Sprintf("mean %s", say.Count(int64(math.Round(l.Mean())))),
		fmt.Sprintf("p50 %s", say.Count(l.Quantile(.5))), fmt.Sprintf("p90 %s", say.Count(l.Quantile(.9))), fmt.Sprintf("p99 %s", say.Count(l.Quantile(.99))))
	counts := map[int]int{}
	least, most, tallest := math.MaxInt, 0, 0
	for i := range cells {
		k := int(math.Log2(float64(l.Quantile((float64(i) + 0.5) / cells))))
		counts[k]++
		least, most, tallest = min(least, k), max(most, k), max(tallest, counts[k])
	}
	label := len(say.Count(1 << (most + 1)))
	for k := least; k <= most; k++ {
		bar := strings.Repeat("█", (counts[k]*width+tallest/2)/tallest)
		p.line("  %*s to %-*s %6s  %s", label, say.Count(int64(1)<<k), label, say.Count(int64(1)<<(k+1)-1), say.Percent(float64(counts[k])/cells), bar)
	}
}
