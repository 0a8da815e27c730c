package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
)

// caveat is a reservation that a reader must know about a value.
type caveat uint8

const (
	firm       caveat = iota
	fewSamples        // ~ it rests on few samples
	atLeast           // > some were not followed to their end
	absent            // – there is none
)

func caveatOf(s *result.Summary, key string) caveat {
	v := s.Value(key)
	if s == nil {
		return absent
	}
	switch _, censored := s.Over[key]; {
	case censored:
		return atLeast
	case v == nil:
		return absent
	case slices.Contains(s.Few, key):
		return fewSamples
	}
	return firm
}

// cellText is one value of a summary with its mark.
func cellText(s *result.Summary, key string) string {
	switch caveatOf(s, key) {
	case atLeast:
		return ">" + say.Quantity(s.Over[key])
	case fewSamples:
		return "~" + say.Quantity(*s.Value(key))
	case absent:
		return say.Unknown
	}
	return say.Quantity(*s.Value(key))
}

// caveats are those that occur in tables, for their legend.
type caveats struct {
	seen map[caveat]bool
	lack map[string]bool // keys of percentiles that are absent for lack of samples
}

func newCaveats() *caveats { return &caveats{map[caveat]bool{}, map[string]bool{}} }

// markedCell gives a value and notes its mark.
func (c *caveats) markedCell(s *result.Summary, key string) string {
	is := caveatOf(s, key)
	c.seen[is] = true
	if is == absent && s != nil {
		c.lack[key] = true
	}
	return cellText(s, key)
}

// headlineMetrics are the distributions that stand where there is room for few.
func headlineMetrics(m *result.Metrics) (list []result.Distribution) {
	for _, d := range m.List {
		if d.Show == metric.Headline {
			list = append(list, d)
		}
	}
	return list
}

// usualPercentiles are the percentiles that stand there.
func usualPercentiles() []string { return []string{"p50", "p99"} }

// shownOf are the percentiles of a metric that stand in a table of loads: its median, and the one
// that the objective limits, by which one sees how near a load is to it.
func shownOf(points []result.Point, name metric.Name) []string {
	shown := usualPercentiles()
	for i := range points {
		if points[i].SLO == nil {
			continue
		}
		for _, l := range points[i].SLO.Limits {
			if p, ok := metric.PercentileOf(fmt.Sprintf("p%g", l.Percentile)); ok && l.Metric == name && l.Class == "" && p.Key != shown[0] {
				return []string{shown[0], p.Key}
			}
		}
		break
	}
	return shown
}

// percentileName is a percentile as users write it.
func percentileName(key string) string {
	if p, ok := metric.PercentileOf(key); ok {
		return p.Name
	}
	return key
}

// line is a metric in a table of latencies.
type line struct {
	metric  *metric.Metric
	name    string
	view    bool // of the line above: it stands under it
	summary *result.Summary
}

// titleCell is its name in the first column.
func (l line) titleCell() string {
	if l.view {
		return "  " + l.name
	}
	return l.name
}

// addLatencyTables shows the latencies of all and of each class.
func (m *PointModel) addLatencyTables(p *result.Point) {
	lines := m.metricLines(&p.Metrics)
	m.lines = lines
	shown := slices.DeleteFunc(metric.Percentiles(), func(c metric.Percentile) bool {
		return !slices.ContainsFunc(lines, func(l line) bool { return cellText(l.summary, c.Key) != say.Unknown })
	})
	m.Latencies.Head = []string{"ms"}
	for _, c := range shown {
		m.Latencies.Head = append(m.Latencies.Head, c.Name)
	}
	m.Latencies.Head = append(m.Latencies.Head, "max", "mean", "n")
	marks := newCaveats()
	for _, l := range lines {
		row := []string{l.titleCell()}
		for _, c := range shown {
			row = append(row, marks.markedCell(l.summary, c.Key))
		}
		m.Latencies.AddRow(append(row, marks.markedCell(l.summary, "max"), marks.markedCell(l.summary, "mean"), say.Count(l.summary.N))...)
		m.addLineRemarks(l)
	}
	if len(lines) == 0 {
		m.Latencies = Table{}
	}
	m.addClasses(p, marks)
	m.addLegend(marks, shown)
	m.addIntervalTable(p, lines)
}

// metricLines are the metrics that there are; for those that are undefined a remark
// says why, once for each reason.
func (m *PointModel) metricLines(x *result.Metrics) (lines []line) {
	var without Grouping // names by the reason
	addRow := func(d *result.Distribution, name string, view bool, key string, s *result.Summary) {
		why := ReasonText(x.Undefined[key])
		if s != nil {
			why = ReasonText(s.NoSteadyState())
		}
		if s != nil && why == "" {
			lines = append(lines, line{d.Metric, name, view, s})
		} else if why != "" {
			without.AddName(why, name)
		}
	}
	for _, d := range x.List {
		of := x.SummaryOf(d.Unlike)
		switch {
		case d.Show == metric.Data, d.Unlike != "" && !viewsDiffer(of, d.Summary):
			continue
		}
		if other := x.SummaryOf(d.Instead); other != nil && other.Label == "" {
			continue
		}
		addRow(&d, rowName(&d), d.Under != "", d.Key, d.Summary)
	}
	if tpot, k := x.SummaryOf(metric.TPOT), x.SummaryOf(metric.TokensPerChunk).Value("p50"); tpot != nil && tpot.Label != "" && k != nil && *k > 1 {
		m.TooLow = "TPOT " + tpot.Label + "; at the median an event carries " + say.Quantity(*k) + " tokens, so it reads too low"
		m.Remarks.addText(m.TooLow)
	}
	for _, why := range without.Keys {
		m.Remarks.addText("no " + without.JoinNames(why) + ": " + why)
	}
	return lines
}

// rowName returns the name of a metric in the table.
func rowName(d *result.Distribution) string {
	name := cmp.Or(d.Under, d.Metric.Label)
	if d.Name == metric.ITL && d.Summary != nil && d.Summary.Label != "" {
		name += " " + d.Summary.Label
	}
	if d.Unit != metric.Milliseconds {
		name += ", " + string(d.Unit)
	}
	return name
}

// viewsDiffer says whether two views are worth two lines.
func viewsDiffer(a, b *result.Summary) bool {
	if a == nil || b == nil {
		return false
	}
	return slices.ContainsFunc(metric.Percentiles(), func(p metric.Percentile) bool {
		x, y := a.Value(p.Key), b.Value(p.Key)
		return x != nil && y != nil && max(*x-*y, *y-*x) > max(1, 0.02**x)
	})
}

// viewsAgree says that no metric has two views that differ.
func viewsAgree(x *result.Metrics) bool {
	return !slices.ContainsFunc(x.AllViews(), func(v result.Views) bool {
		return v.Response.Summary == nil || v.Service.Summary == nil || viewsDiffer(v.Response.Summary, v.Service.Summary)
	})
}

// addLineRemarks says what the kernel's merging leaves open, and what is missing.
func (m *PointModel) addLineRemarks(l line) {
	s, name := l.summary, l.name
	b, ok := s.Bounds["p99"]
	if ok && s.P99 != nil && b[1]-b[0] > 0.02**s.P99 {
		text := fmt.Sprintf("%s p99 lies between %s and %s ms", name, say.Quantity(b[0]), say.Quantity(b[1]))
		if b, ok := s.Bounds["p50"]; ok && say.Quantity(b[0]) != say.Quantity(b[1]) {
			text += fmt.Sprintf(", p50 between %s and %s ms", say.Quantity(b[0]), say.Quantity(b[1]))
		}
		m.Remarks.addText(text + ": the kernel merged some arrivals")
	}
	if s.Excluded > 0 {
		m.Remarks.addFormat("ITL is of %s of %s: the tokens in the others' chunks are not known",
			say.Count(s.Streams), say.Plural(int(s.Streams+s.Excluded), "stream"))
	}
	if s.Missing > 0 && s.N > 0 {
		m.Remarks.addText(name + " is undefined for " + say.Plural(int(s.Missing), "request"))
	}
}

func (m *PointModel) addClasses(p *result.Point, marks *caveats) {
	if len(p.Classes) < 2 {
		return
	}
	t := &Table{Head: []string{"class", "requests"}}
	length := func(name string) float64 {
		if x := p.Classes[name].Metrics.SummaryOf(metric.InputTokens).Value(metric.Mean); x != nil {
			return *x
		}
		return 0
	}
	names := slices.SortedFunc(maps.Keys(p.Classes), func(a, b string) int {
		return cmp.Or(cmp.Compare(length(a), length(b)), strings.Compare(a, b))
	})
	heads := headlineMetrics(&p.Metrics)
	for _, d := range heads {
		t.Head = append(t.Head, headsOf(d.Metric, usualPercentiles())...)
	}
	for _, n := range names {
		c := p.Classes[n]
		row := []string{say.Truncate(say.PlainLine(n), maxName), say.Count(c.Requests.Due)}
		for _, d := range heads {
			for _, key := range usualPercentiles() {
				row = append(row, marks.markedCell(c.Metrics.SummaryOf(d.Name), key))
			}
		}
		t.AddRow(row...)
	}
	m.Classes = t
}

// headsOf are the heads of a metric's percentiles: the first has its name.
func headsOf(m *metric.Metric, keys []string) (heads []string) {
	for i, key := range keys {
		head := percentileName(key)
		if i == 0 {
			head = m.Label + " " + head
		}
		heads = append(heads, head)
	}
	return heads
}

// maxName is the length of a class's name that a report shows at most, in characters.
const maxName = 24

// addLegend explains the marks that occur, and says which percentiles are missing for
// lack of samples and how many they need. Those that no row has are not shown.
func (m *PointModel) addLegend(marks *caveats, shown []metric.Percentile) {
	if marks.seen[fewSamples] {
		m.Legend.addText("~ few independent samples")
	}
	if marks.seen[atLeast] {
		m.Legend.addText("> at least: some were not followed to their end")
	}
	needs := ""
	for _, p := range metric.Percentiles() {
		dropped := len(m.Latencies.Rows) > 0 && !slices.Contains(shown, p)
		switch least, _ := p.SamplesNeeded(); {
		case !dropped && !marks.lack[p.Key]:
		case needs == "":
			needs = p.Name + " needs " + say.Count(least)
		default:
			needs += ", " + p.Name + " " + say.Count(least)
		}
	}
	if needs == "" {
		return
	}
	needs += " samples"
	if marks.seen[absent] {
		needs = say.Unknown + " too few: " + needs
	}
	m.Legend.addText(needs)
}
