package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pitot/internal/data/result"
)

// column is one percentile. Its value is shown from a number of samples on,
// and firm from another: 1/(1−p) and 10/(1−p).
type column struct {
	key, head   string
	shown, firm int
	of          func(*result.Summary) *float64
}

func columns() []column {
	return []column{
		{"p50", "p50", 2, 20, func(s *result.Summary) *float64 { return s.P50 }},
		{"p90", "p90", 10, 100, func(s *result.Summary) *float64 { return s.P90 }},
		{"p95", "p95", 20, 200, func(s *result.Summary) *float64 { return s.P95 }},
		{"p99", "p99", 100, 1000, func(s *result.Summary) *float64 { return s.P99 }},
		{"p99_9", "p99.9", 1000, 10_000, func(s *result.Summary) *float64 { return s.P999 }},
	}
}

// cell is a value with its mark: ~ rests on few samples, > is only known to
// be larger, – is not there.
func cell(s *result.Summary, key string, v *float64) string {
	switch over, censored := s.Over[key]; {
	case censored:
		return ">" + quantity(over)
	case v != nil && slices.Contains(s.Few, key):
		return "~" + quantity(*v)
	}
	return optional(v)
}

// line is a metric in a table of latencies.
type line struct {
	name    string
	summary *result.Summary
}

// tables shows the latencies of all and of each class.
func (m *PointModel) tables(p *result.Point) {
	lines := m.lines(&p.Metrics)
	shown := slices.DeleteFunc(columns(), func(c column) bool {
		return !slices.ContainsFunc(lines, func(l line) bool { return cell(l.summary, c.key, c.of(l.summary)) != unknown })
	})
	m.Latencies.Head = []string{"ms"}
	for _, c := range shown {
		m.Latencies.Head = append(m.Latencies.Head, c.head)
	}
	m.Latencies.Head = append(m.Latencies.Head, "max", "mean", "n")
	for _, l := range lines {
		s, row := l.summary, []string{l.name}
		for _, c := range shown {
			row = append(row, cell(s, c.key, c.of(s)))
		}
		m.Latencies.Rows = append(m.Latencies.Rows, append(row, cell(s, "max", s.Max), cell(s, "mean", s.Mean), count(s.N)))
		m.remarks(l)
	}
	if len(lines) == 0 {
		m.Latencies = Table{}
	}
	m.classes(p)
	m.legend()
	m.intervals(p, lines)
}

// lines are the metrics that there are; for those that are undefined a remark
// says why, once for each reason.
func (m *PointModel) lines(x *result.Metrics) (lines []line) {
	var reasons []string
	without := map[string][]string{}
	add := func(name, key string, s *result.Summary) {
		why := plain(x.Undefined[key])
		if s != nil {
			why = plain(steady(s))
		}
		if s != nil && why == "" {
			lines = append(lines, line{name, s})
		} else if why != "" {
			if without[why] == nil {
				reasons = append(reasons, why)
			}
			without[why] = append(without[why], name)
		}
	}
	add("TTFT", "ttft_ms", x.TTFT)
	if differs(x.TTFT, x.Service.TTFT) {
		add("  from sent", "", x.Service.TTFT)
	}
	if differs(x.TTFT, x.TTFA) {
		add("TTFA", "ttfa_ms", x.TTFA)
	}
	add("TPOT", "tpot_ms", x.TPOT)
	name := "ITL"
	if x.ITL != nil && x.ITL.Label != "" {
		name += " " + plain(x.ITL.Label)
	}
	add(name, "itl_ms", x.ITL)
	if x.ITL == nil || x.ITL.Label != "" {
		add("ICL", "icl_ms", x.ICL)
	}
	add("stall", "stall_ms", x.Stall)
	add("E2E", "e2e_ms", x.E2E)
	if differs(x.E2E, x.Service.E2E) {
		add("  from sent", "", x.Service.E2E)
	}
	if k := x.TokensPerChunk; x.TPOT != nil && x.TPOT.Label != "" && k != nil && k.P50 != nil && *k.P50 > 1 {
		m.Remarks = append(m.Remarks, "TPOT "+plain(x.TPOT.Label)+"; at the median an event carries "+quantity(*k.P50)+" tokens, so it reads too low")
	}
	for _, why := range reasons {
		m.Remarks = append(m.Remarks, "no "+strings.Join(without[why], ", ")+": "+why)
	}
	return lines
}

// differs says whether two views are worth two lines.
func differs(a, b *result.Summary) bool {
	if a == nil || b == nil {
		return false
	}
	return slices.ContainsFunc(columns(), func(c column) bool {
		x, y := c.of(a), c.of(b)
		return x != nil && y != nil && max(*x-*y, *y-*x) > max(1, 0.02**x)
	})
}

// remarks says what the kernel's merging leaves open, and what is missing.
func (m *PointModel) remarks(l line) {
	s, name := l.summary, strings.TrimSpace(l.name)
	b, ok := s.Bounds["p99"]
	if ok && s.P99 != nil && b[1]-b[0] > 0.02**s.P99 {
		text := fmt.Sprintf("%s p99 lies between %s and %s ms", name, quantity(b[0]), quantity(b[1]))
		if b, ok := s.Bounds["p50"]; ok && quantity(b[0]) != quantity(b[1]) {
			text += fmt.Sprintf(", p50 between %s and %s ms", quantity(b[0]), quantity(b[1]))
		}
		m.Remarks = append(m.Remarks, text+": the kernel merged some arrivals")
	}
	if s.Excluded > 0 {
		m.Remarks = append(m.Remarks, fmt.Sprintf("ITL is of %s of %s: nobody told the tokens in the others' chunks",
			count(s.Streams), plural(int(s.Streams+s.Excluded), "stream")))
	}
	if s.Missing > 0 && s.N > 0 {
		m.Remarks = append(m.Remarks, name+" is undefined for "+plural(int(s.Missing), "request"))
	}
}

func (m *PointModel) classes(p *result.Point) {
	if len(p.Classes) < 2 {
		return
	}
	t := &Table{Head: []string{"class", "requests", "TTFT p50", "p99", "TPOT p50", "p99", "E2E p50", "p99"}}
	length := func(name string) float64 {
		if s := p.Classes[name].Metrics.InputTokens; s != nil && s.Mean != nil {
			return *s.Mean
		}
		return 0
	}
	names := slices.SortedFunc(maps.Keys(p.Classes), func(a, b string) int {
		return cmp.Or(cmp.Compare(length(a), length(b)), strings.Compare(a, b))
	})
	for _, n := range names {
		c := p.Classes[n]
		row := []string{cut(plain(n), maxName), count(c.Requests.Due)}
		for _, s := range []*result.Summary{c.Metrics.TTFT, c.Metrics.TPOT, c.Metrics.E2E} {
			if s == nil {
				row = append(row, unknown, unknown)
				continue
			}
			row = append(row, cell(s, "p50", s.P50), cell(s, "p99", s.P99))
		}
		t.Rows = append(t.Rows, row)
	}
	m.Classes = t
}

// maxName is how much of a class's name is shown, in characters.
const maxName = 24

// legend explains the marks that occur, and says which percentiles are
// missing for lack of samples and how many they need.
func (m *PointModel) legend() {
	mark := map[string]bool{}
	missing := map[string]bool{}
	look := func(t *Table) {
		for _, r := range t.Rows {
			for i, c := range r[1:] {
				mark[c[:1]] = true
				if c == unknown {
					mark[unknown], missing[t.Head[i+1]] = true, true
				}
			}
		}
	}
	look(&m.Latencies)
	if m.Classes != nil {
		look(m.Classes)
	}
	if mark["~"] {
		m.Legend = append(m.Legend, "~ few samples")
	}
	if mark[">"] {
		m.Legend = append(m.Legend, "> at least: some were not followed to their end")
	}
	needs := ""
	for _, c := range columns() {
		dropped := len(m.Latencies.Rows) > 0 && !slices.Contains(m.Latencies.Head, c.head)
		switch {
		case !dropped && !missing[c.head]:
		case needs == "":
			needs = c.head + " needs " + count(c.shown)
		default:
			needs += ", " + c.head + " " + count(c.shown)
		}
	}
	if needs == "" {
		return
	}
	needs += " samples"
	if mark[unknown] {
		needs = unknown + " too few: " + needs
	}
	m.Legend = append(m.Legend, needs)
}
