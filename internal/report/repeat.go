package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
)

// Repeats holds what several measurements of one load show. For each value it has the median over
// the repeats, and the distance between them.
type Repeats struct {
	Answer  string // the headline
	Table   Table
	Figures []Figure
	Legend  texts
}

// repeatedValue is one that the repeats of a load are laid side by side by.
type repeatedValue struct {
	*metric.Metric
	percentile string // its key, "" of a window's metric
}

// key is that of the value in run.json.
func (v repeatedValue) key() string {
	if v.percentile == "" {
		return v.Key
	}
	return v.Key + "." + v.percentile
}

// name returns the name of the value.
func (v repeatedValue) name() string { return strings.TrimSpace(v.Label + " " + v.percentile) }

// unit returns the unit of the value. It returns "" for a share.
func (v repeatedValue) unit() string {
	if v.Unit == metric.Share {
		return ""
	}
	return string(v.Unit)
}

// repeatedValues are those that are shown, in their order: rates first.
func repeatedValues(run *result.Run) (list []repeatedValue) {
	for _, m := range run.Metrics() {
		if m.HasSingleValue() && m.Show != metric.Data {
			list = append(list, repeatedValue{Metric: m})
		}
	}
	for _, m := range run.Metrics().WithPercentiles() {
		if len(m.Compared) == 0 || m.Instead != "" && run.Metrics().Find(m.Instead) != nil {
			continue
		}
		for _, p := range usualPercentiles() {
			list = append(list, repeatedValue{m, p})
		}
	}
	return list
}

// newRepeats is nil for a run that is no repetition of one load.
func newRepeats(run *result.Run) *Repeats {
	r := run.Repeats
	if r == nil || len(run.Points) == 0 {
		return nil
	}
	o := &Repeats{Table: NewTable(say.Plural(len(r.Points), "repeat"), "median", "least", "most")}
	if len(r.Pooled) > 0 {
		o.Table.Head = append(o.Table.Head, "of all")
	}
	var marked bool
	var pooled int64
	medians := map[string]string{}
	for _, v := range repeatedValues(run) {
		write, key := formatterFor(v.Metric.Unit), v.key()
		spread, ok := r.Spread[key]
		if _, all := r.Pooled[key]; !ok && !all || v.Name == metric.CachedShare && spread[1] == 0 {
			continue
		}
		mark := ""
		if fewAt(run, r.Points, v) {
			mark, marked = "~", true
		}
		median, least, most := say.Unknown, say.Unknown, say.Unknown
		if ok {
			least, most = mark+write(spread[0]), mark+write(spread[1])
		}
		x, known := r.Median[key]
		if known {
			median = mark + write(x)
		}
		name, asked := strings.TrimSpace(v.name()+" "+v.unit()), ""
		if rate := run.Points[0].Load.Rate; rate != nil && v.Name == metric.OfferedRate {
			asked = ", requested " + say.Decimal(*rate, 3)
		}
		row := []string{name + asked, median, least, most}
		if len(r.Pooled) > 0 {
			row = append(row, "")
			if x, ok := r.Pooled[key]; ok {
				row[4], pooled = write(x.Value), max(pooled, x.N)
				if x.Few {
					row[4], marked = "~"+row[4], true
				}
				if !known {
					medians[key] = v.name() + " " + row[4] + " " + v.unit() + " over all requests"
				}
			}
		}
		o.Table.AddRow(row...)
		if !known {
			continue
		}
		medians[key] = v.name() + " " + median + " " + v.unit()
		if v.percentile == "" {
			medians[key] = median + " " + v.name() + " " + v.unit()
		}
		if v.unit() != "" && (v.percentile == "" || v.Show == metric.Headline) {
			o.Figures = append(o.Figures, Figure{Name: strings.ToUpper(name[:1]) + v.name()[1:], Value: median, Unit: v.unit(), Note: least + " to " + most + asked})
		}
	}
	o.Legend = nonEmpty(map[bool]string{true: "~ few independent samples"}[marked], "each with prompts and arrivals of its own", r.Covers)
	if pooled > 0 {
		o.Legend.addText("of all: over the " + say.Plural(int(pooled), "request") + " of all repeats together")
	}
	var spreads []string
	for _, either := range [][2]string{{"output_tokens_per_s", "requests_per_s"}, {"ttft_ms.p99", "ttft_ms.p50"}, {"tpot_ms.p99", "tpot_ms.p50"}} {
		if text := cmp.Or(medians[either[0]], medians[either[1]]); text != "" {
			spreads = append(spreads, text)
		}
	}
	o.setAnswer(run, spreads)
	return o
}

// setAnswer is the sentence to quote.
func (o *Repeats) setAnswer(run *result.Run, medians []string) {
	r, load := run.Repeats, loadName(&run.Points[0])
	of := say.Plural(len(r.Points), "repeat")
	switch s := run.Points[0].SLO; {
	case s != nil && len(r.Met) > 0:
		o.Answer = fmt.Sprintf("%s: SLO met in %s of %s", load, say.Count(r.Met[result.Yes]), of)
		if n := r.Met[result.Undecided]; n > 0 {
			o.Answer += ", undecided in " + say.Count(n)
		}
		if len(medians) > 0 {
			o.Answer += " (median " + medians[len(medians)-1] + ")"
		}
	case len(medians) > 0:
		o.Answer = load + ", medians of " + of + ": " + strings.Join(medians, ", ")
	default:
		o.Answer = load + ": no value is known of all " + of
	}
}

// fewAt says that a percentile rests on few samples at one of the points.
func fewAt(run *result.Run, points []int, v repeatedValue) bool {
	return slices.ContainsFunc(points, func(i int) bool {
		if i < 0 || i >= len(run.Points) { // a damaged run
			return false
		}
		s := run.Points[i].Metrics.SummaryOf(v.Name)
		return s != nil && slices.Contains(s.Few, v.percentile)
	})
}

// headlineRepeats says what the repeats show together.
func (m *Model) headlineRepeats() {
	c := &m.Headline
	for i := range m.Points {
		for _, name := range m.Points[i].Because {
			if !slices.Contains(c.Because, name) {
				c.Because = append(c.Because, name)
			}
		}
	}
	c.Sentence = m.Repeats.Answer
	c.Interval = "after each median the least and the most of the repeats"
	m.Figures = m.Repeats.Figures
}

func (o *Repeats) writeTerminal(p *printer) {
	p.line("")
	p.writeTable(o.Table)
	p.writePainted(dim, o.Legend...)
}

func (o *Repeats) writeMarkdown(p *markdown) {
	p.line("")
	p.writeTable(o.Table)
	p.line("")
	p.writeItem(escapeTexts(o.Legend)...)
}
