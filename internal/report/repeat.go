package report

import (
	"fmt"
	"slices"
	"strings"

	"pitot/internal/data/result"
)

// Repeats is what one load shows that was measured several times: of each value
// the median over the repeats, and how far they came out apart.
type Repeats struct {
	Answer  []string // the headline
	Table   Table
	Figures []Figure
	Legend  []string
}

// repeatedValue is one that the repeats of a load are laid side by side by.
type repeatedValue struct {
	name, unit, key string
	write           func(float64) string
}

// repeatedValues are those that are shown, in their order.
func repeatedValues() []repeatedValue {
	list := []repeatedValue{
		{"came due", "req/s", "due_per_s", quantity}, {"throughput", "req/s", "requests_per_s", quantity}, {"output", "tok/s", "output_tokens_per_s", quantity},
		{"goodput", "req/s", "goodput.requests_per_s", quantity}, {"in SLO", "", "slo.attained", percent},
	}
	for _, m := range []string{"TTFT", "TPOT", "stall", "E2E"} {
		for _, p := range []string{"p50", "p99"} {
			list = append(list, repeatedValue{m + " " + p, "ms", strings.ToLower(m) + "_ms." + p, quantity})
		}
	}
	return list
}

// repeats is nil for a run that is no repetition of one load.
func repeats(run *result.Run) *Repeats {
	r := run.Repeats
	if r == nil || len(run.Points) == 0 {
		return nil
	}
	o := &Repeats{Table: Table{Head: []string{plural(len(r.Points), "repeat"), "median", "least", "most"}}}
	var marked bool
	medians := map[string]string{}
	for _, v := range repeatedValues() {
		spread, ok := r.Spread[v.key]
		if !ok {
			continue
		}
		mark := ""
		if fewAt(run, r.Points, v.key) {
			mark, marked = "~", true
		}
		median, least, most := unknown, mark+v.write(spread[0]), mark+v.write(spread[1])
		x, known := r.Median[v.key]
		if known {
			median = mark + v.write(x)
		}
		name, asked := strings.TrimSpace(v.name+" "+v.unit), ""
		if rate := run.Points[0].Load.Rate; rate != nil && v.key == "due_per_s" {
			asked = ", asked " + loadValue(*rate)
		}
		o.Table.Rows = append(o.Table.Rows, []string{name + asked, median, least, most})
		if !known {
			continue
		}
		medians[v.key] = v.name + " " + median + " ms"
		if v.unit != "ms" {
			medians[v.key] = median + " " + v.name + " " + v.unit
		}
		if v.unit != "" && !strings.HasPrefix(v.name, "stall") {
			o.Figures = append(o.Figures, Figure{Name: strings.ToUpper(v.name[:1]) + v.name[1:], Value: median, Unit: v.unit, Note: least + " to " + most + asked})
		}
	}
	o.Legend = present(map[bool]string{true: "~ few samples"}[marked], "each with prompts and arrivals of its own", r.Covers)
	var said []string
	for _, either := range [][2]string{{"output_tokens_per_s", "requests_per_s"}, {"ttft_ms.p99", "ttft_ms.p50"}, {"tpot_ms.p99", "tpot_ms.p50"}} {
		if text := firstOf(medians[either[0]], medians[either[1]]); text != "" {
			said = append(said, text)
		}
	}
	o.answer(run, said)
	return o
}

// answer is the sentence to quote.
func (o *Repeats) answer(run *result.Run, medians []string) {
	r, load := run.Repeats, atLoad(&run.Points[0])
	of := plural(len(r.Points), "repeat")
	switch s := run.Points[0].SLO; {
	case s != nil && len(r.Met) > 0:
		met := fmt.Sprintf("%s, %s is met in %s of %s", load, plain(s.Spec), count(r.Met["yes"]), of)
		if n := r.Met["undecided"]; n > 0 {
			met += ", undecided in " + count(n)
		}
		o.Answer = []string{met}
		load = "medians"
	default:
		load += ", medians of " + of
	}
	switch {
	case len(medians) > 0:
		o.Answer = append(o.Answer, load+": "+strings.Join(medians, ", "))
	case len(o.Answer) == 0:
		o.Answer = []string{load + ": no value is known of all"}
	}
}

// fewAt says that a percentile rests on few samples at one of the points.
func fewAt(run *result.Run, points []int, key string) bool {
	name, percentile, _ := strings.Cut(key, ".")
	return slices.ContainsFunc(points, func(i int) bool {
		if i < 0 || i >= len(run.Points) { // a damaged run
			return false
		}
		m := &run.Points[i].Metrics
		s := map[string]*result.Summary{"ttft_ms": m.TTFT, "tpot_ms": m.TPOT, "stall_ms": m.Stall, "e2e_ms": m.E2E}[name]
		return s != nil && slices.Contains(s.Few, percentile)
	})
}

// claimRepeats says what the repeats show together.
func (m *Model) claimRepeats() {
	c := &m.Claim
	for i := range m.Points {
		for _, name := range m.Points[i].Because {
			if !slices.Contains(c.Because, name) {
				c.Because = append(c.Because, name)
			}
		}
	}
	c.Sentence = sentence(strings.Join(m.Repeats.Answer, "; "))
	c.Interval = "beside each median the least and the most of the repeats"
	m.Figures = m.Repeats.Figures
}

func (o *Repeats) text(p *printer, s Style) {
	p.line("")
	p.write(s, bold, "", o.Answer...)
	p.line("")
	o.Table.text(p, s)
	p.write(s, dim, "", o.Legend...)
}

func (o *Repeats) markdown(p *printer) {
	p.line("")
	o.Table.markdown(p)
	p.line("")
	p.item(inMarkdown(strings.Join(o.Legend, " · ")))
}
