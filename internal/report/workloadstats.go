package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"pitot/internal/say"
	"pitot/internal/workload"
	"pitot/internal/workload/arrival"
)

// WorkloadStats writes what the requests of a workload are like. counter is the tokenizer that its
// texts were counted with, "" for that of no model.
func WorkloadStats(w io.Writer, name, counter string, t *workload.Trace, findings []workload.Finding, s Style) error {
	p := newPrinter(w, s)
	p.line("")
	what := t.Format
	if t.Unit != "" {
		what += ", times in " + t.Unit
	}
	p.writePainted(bold, name+": "+say.Plural(t.Requests(), "request")+" ("+what+")")
	counted := "tokens"
	switch {
	case t.Counted && counter != "":
		counted = "tokens as its tokenizer counts them: " + counter
	case t.Counted:
		counted = "tokens as counted here, a server's tokenizer may differ"
	}
	lengths := func(label, unit string, column []int32) {
		q, mean := workload.Quantiles(column, 0, .5, .9, .99, 1)
		if q == nil {
			return
		}
		p.writeText(fmt.Sprintf("%-8s mean %s", label, say.Count(int64(math.Round(mean)))), "p50 "+say.Count(q[1]), "p90 "+say.Count(q[2]), "p99 "+say.Count(q[3]), fmt.Sprintf("%s to %s %s", say.Count(q[0]), say.Count(q[4]), unit))
	}
	lengths("prompts", counted, t.Input)
	lengths("answers", "tokens", t.Output)
	if r := t.LengthCorrelation(); !math.IsNaN(r) {
		p.line("prompts and answers: rank correlation %.2f", r)
	}
	if e := arrival.ObserveTimes(t.At); !math.IsNaN(e.Rate) {
		span := float64(t.At[len(t.At)-1]-t.At[0]) / 1e9
		p.line("arrivals %s/s over %s, CV of the gaps %s", say.Quantity(e.Rate), say.Seconds(span), say.Decimal(e.CV, 2))
		p.line("         dispersion of counts %s (1 of a Poisson process)", dispersionText(e))
		if step := arrival.StampRounding(t.At); step > 0 {
			if law, err := arrival.ParseLaw("trace(x,spread)", arrival.Files{Times: func(string) (arrival.Stamps, error) { return arrival.StampList(t.At), nil }}); err == nil {
				if process, err := law.NewProcess(law.OwnRate(), 1, 0); err == nil {
					due := make([]int64, len(t.At))
					for i := range due {
						due[i] = process.Next()
					}
					spread := arrival.ObserveTimes(due)
					p.line("         rounded to %s; spread: CV %s, dispersion %s", say.Seconds(float64(step)/1e9), say.Decimal(spread.CV, 2), dispersionText(spread))
				}
			}
		}
	}
	if blocks, tokens, ok := t.BlockSharing(); ok {
		size, _ := t.BlockSize()
		p.line("shared   %s of the prompt tokens, %s of the blocks of %d, in a cache that forgets nothing", say.Percent(tokens), say.Percent(blocks), size)
	}
	writeFindings(p, findings)
	return p.err
}

func dispersionText(e arrival.Expected) string {
	var parts texts
	for i, t := range arrival.Scales {
		if !math.IsNaN(e.Dispersion[i]) {
			parts.addFormat("%s at %g s", say.Decimal(e.Dispersion[i], 2), t)
		}
	}
	return strings.Join(parts, ", ")
}

// WorkloadLint writes what is odd about a workload.
func WorkloadLint(w io.Writer, name string, findings []workload.Finding, s Style) error {
	p := newPrinter(w, s)
	if len(findings) == 0 {
		p.line("%s: nothing odd", name)
		return p.err
	}
	writeFindings(p, findings)
	return p.err
}

func writeFindings(p *printer, findings []workload.Finding) {
	for _, f := range findings {
		p.writeMarked(yellow, "note", f.Name+": "+f.Text)
		p.write("", "      ", f.Hint)
	}
}
