package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"pitot/internal/analysis/tools"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
)

// How another tool's result looks. There is no verdict: nothing in such a file
// says whether its instrument kept up.

// face is a format in which a table and the texts around it are written.
type face interface {
	writeParts(parts ...string) // on one line, as far as they fit
	writeTable(t Table)
	writeGap()
	failure() error
}

func (p *printer) writeParts(parts ...string) { p.writeText(parts...) }
func (p *printer) writeGap()                  { p.line("") }
func (p *printer) failure() error             { return p.err }

func (p *markdown) writeParts(parts ...string) { p.writeItem(escapeTexts(parts)...) }
func (p *markdown) writeGap()                  { p.line("") }
func (p *markdown) failure() error             { return p.err }

// WriteToolResult writes what a file of another tool says, for a terminal or as
// Markdown.
func WriteToolResult(w io.Writer, r *tools.Result, asMarkdown bool) error {
	title := r.Tool + " " + r.Version
	if r.Model != "" {
		title = r.Model + ", by " + title
	}
	facts := []string{"measured by another instrument, whose definitions these are: Pitot vouches for none of it"}
	if by := r.MeasuredBy(); by != "" {
		facts = []string{"measured by " + by, "written in that tool's format and by its definitions"}
	}
	var to face
	if asMarkdown {
		md := &markdown{w: w}
		md.line("### " + escapeMarkdown(title))
		md.line("")
		md.writeItem(strongText(facts[0]), escapeMarkdown(r.File), escapeMarkdown(r.Started))
		to = md
	} else {
		p := newPrinter(w, Style{})
		p.line("")
		p.line("%s", say.PlainLine(title))
		p.writeText(facts...)
		p.writeText(nonEmpty(r.File, r.Started)...)
		to = p
	}
	for _, n := range r.Notes {
		to.writeParts(n)
	}
	for i := range r.Points {
		point := &r.Points[i]
		load := foreignLoad(point)
		if n := len(r.Points); n > 1 {
			load = append(nonEmpty(fmt.Sprintf("result %d of %d", i+1, n), string(point.Verdict)), load...)
		}
		to.writeGap()
		to.writeParts(load...)
		to.writeParts(foreignHeadline(point)...)
		to.writeGap()
		table, meanings := foreignTable(point)
		if len(table.Rows) == 0 {
			continue
		}
		to.writeTable(table)
		if asMarkdown {
			to.writeGap()
		}
		for _, m := range meanings {
			to.writeParts(m)
		}
	}
	return to.failure()
}

func foreignLoad(p *tools.ReportedPoint) (out []string) {
	switch {
	case p.Rate != nil:
		out = append(out, "requested "+say.Quantity(*p.Rate)+" req/s")
	case p.Unlimited:
		out = append(out, "as many requests as were let through")
	}
	if p.Concurrency != nil {
		out = append(out, "at most "+say.Quantity(*p.Concurrency)+" at once")
	}
	if p.Seconds != nil {
		out = append(out, say.Seconds(*p.Seconds))
	}
	if len(out) == 0 {
		out = []string{"the load is not reported"}
	}
	return out
}

func foreignHeadline(p *tools.ReportedPoint) (out texts) {
	whole := func(x *float64, what string) {
		if x != nil {
			n := say.Quantity(*x)
			if *x == math.Trunc(*x) && math.Abs(*x) < 1<<53 {
				n = say.Count(int64(*x))
			}
			out = append(out, n+" "+what)
		}
	}
	whole(p.OK, "answered")
	whole(p.Failed, "failed")
	whole(p.Incomplete, "cut off")
	if p.Failed == nil {
		out = append(out, "failures not reported")
	}
	out.addQuantity(p.RequestsPerS, "req/s")
	out.addQuantity(p.OutputTokensPerS, "output tok/s")
	out.addQuantity(p.InputTokensPerS, "input tok/s")
	out.addQuantity(p.GoodPerS, "req/s within its limits")
	return out
}

// foreignTable has the columns that the tool fills, and what it means by the
// rows.
func foreignTable(p *tools.ReportedPoint) (t Table, meanings []string) {
	names := []string{"p50", "p90", "p95", "p99", "p99.9"}
	rows := []struct {
		name string
		s    *tools.Summary
	}{{"TTFT", p.TTFT}, {"TPOT", p.TPOT}, {"ITL", p.ITL}, {"E2E", p.E2E}}
	used := map[string]bool{}
	for _, r := range rows {
		for _, n := range names {
			used[n] = used[n] || r.s.P(n) != nil
		}
	}
	t.Head = []string{"ms", "mean"}
	for _, n := range names {
		if used[n] {
			t.Head = append(t.Head, n)
		}
	}
	t.Head = append(t.Head, "max")
	var namesOf Grouping // by what they mean
	for _, r := range rows {
		if r.s == nil {
			continue
		}
		cells := []string{r.name, say.Optional(r.s.Mean)}
		for _, n := range names {
			if used[n] {
				cells = append(cells, say.Optional(r.s.P(n)))
			}
		}
		t.AddRow(append(cells, say.Optional(r.s.Max))...)
		if what := r.s.What; what != "" {
			namesOf.AddName(what, r.name)
		}
	}
	for _, what := range namesOf.Keys {
		meanings = append(meanings, strings.Join(namesOf.Names[what], " and ")+": "+what)
	}
	return t, meanings
}

// SideBySide lays runs and other tools' results side by side: what each says of
// itself, with no judgement between them.
type SideBySide struct {
	rows    [][]string
	foreign bool
}

// AddRun adds the points of a run, by load: the latencies that count from when a request
// was sent, as the others do.
func (b *SideBySide) AddRun(run *result.Run, dir string) {
	for _, i := range run.ByLoad() {
		p := &run.Points[i]
		load := tools.ReportedPoint{Rate: p.Load.Rate}
		if n := p.Load.Concurrency; n != nil {
			load.Concurrency = new(float64(*n))
		}
		ttft, e2e, tpot := p.Metrics.SummaryOf(metric.ServiceTTFT), p.Metrics.SummaryOf(metric.ServiceE2E), p.Metrics.SummaryOf(metric.TPOTn1)
		b.rows = append(b.rows, []string{
			filepath.Base(dir), loadOfTool(&load), say.Optional(p.Throughput.RequestsPerS), say.Optional(p.Throughput.OutputTokensPerS),
			ofSummary(ttft, "mean"), ofSummary(ttft, "p50"), ofSummary(ttft, "p99"), ofSummary(tpot, "mean"), ofSummary(e2e, "mean"), byPitot(p.Verdict),
		})
	}
}

// AddToolResult adds those of another tool.
func (b *SideBySide) AddToolResult(r *tools.Result) {
	b.foreign = true
	mean := func(s *tools.Summary) string {
		if s == nil {
			return say.Unknown
		}
		return say.Optional(s.Mean)
	}
	for i := range r.Points {
		p := &r.Points[i]
		tpot := mean(p.TPOT)
		if p.TPOT != nil && r.Alike("tpot") == "" { // it means something else
			tpot = say.Unknown
		}
		b.rows = append(b.rows, []string{
			filepath.Base(r.File), loadOfTool(p), say.Optional(p.RequestsPerS), say.Optional(p.OutputTokensPerS),
			mean(p.TTFT), say.Optional(p.TTFT.P("p50")), say.Optional(p.TTFT.P("p99")), tpot, mean(p.E2E), cmp.Or(r.By, r.Tool) + " " + string(p.Verdict),
		})
	}
}

// Write writes the table, if there is something of another tool to compare with
// something else.
func (b *SideBySide) Write(w io.Writer, asMarkdown bool) error {
	if !b.foreign || len(b.rows) < 2 {
		return nil
	}
	t := Table{Head: []string{"", "requested", "req/s", "tok/s", "TTFT mean", "p50", "p99", "TPOT mean", "E2E mean", "by"}, Rows: b.rows}
	p, md := newPrinter(w, Style{}), &markdown{w: w}
	const about = "side by side, ms from when a request was sent; what another instrument measured is not judged against it"
	p.line("")
	if asMarkdown {
		md.line(about)
		md.line("")
		md.writeTable(t)
		return md.err
	}
	p.writeText(about)
	p.line("")
	p.writeTable(t)
	return p.err
}

// byPitot says who measured it, and whether that can be trusted.
func byPitot(v result.Verdict) string {
	switch v {
	case result.Valid:
		return "pitot"
	case result.ValidWithFlags:
		return "pitot, flags"
	}
	return "pitot, " + string(v)
}

func loadOfTool(p *tools.ReportedPoint) string {
	switch {
	case p.Rate != nil:
		return say.Quantity(*p.Rate) + "/s"
	case p.Concurrency != nil:
		return say.Decimal(*p.Concurrency, 1) + " users"
	case p.Unlimited:
		return "all at once"
	}
	return say.Unknown
}

func ofSummary(s *result.Summary, key string) string {
	if s == nil {
		return say.Unknown
	}
	if key == "mean" {
		return say.Optional(s.Mean)
	}
	return cellText(s, key)
}
