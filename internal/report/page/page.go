// Package page writes a run or a comparison as one HTML file that asks no network for
// anything. What it says is the report's model; what it draws of single requests it
// reads from the records, in one pass.
package page

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"pitot/internal/analysis/compare"
	"pitot/internal/report"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/stats"
)

var (
	//go:embed page.css
	css string
	//go:embed page.js
	js string
)

// Extra holds what the page of a run shows besides its model.
type Extra struct {
	Series  []*Series // of each point, as far as there are any
	Missing []string  // what of the run's files could not be read
	Config  string    // the run's config.yaml
}

// section is a part of the page with its charts.
type section struct {
	ID, Title, Text string
	Charts          []*chart
	Tables          []captioned
	Folded          []captioned // below them, opened by the reader
	Notes           []string    // below the tables
	Absent          string      // why there is nothing
	Top             bool        // of the page, not of one of many points
}

// captioned is a table with a caption.
type captioned struct {
	Caption string
	Table   report.Table
}

// pagePoint is a point of the page.
type pagePoint struct {
	report.PointModel
	ID       string
	Summary  string // in a line
	Sections []section
}

// Write writes the page of a run.
func Write(w io.Writer, m report.Model, with Extra) error {
	view := viewOf(m, with)
	all := slices.Clone(view.Sections)
	for _, p := range view.Points {
		all = append(all, p.Sections...)
	}
	return writePage(w, m.Headline.Sentence, view.Date, view.Title, all, view.writeBody)
}

// shell holds the parts around every page, whatever it shows.
type shell struct {
	Tab      string // what the browser's tab says
	Policy   string
	CSS      markup
	JS, Data markup
}

// newShell makes one that holds what the charts of some sections draw.
func newShell(tab string, sections []section) (*shell, error) {
	charts := map[string]*chart{}
	for _, s := range sections {
		for _, c := range s.Charts {
			charts[c.ID] = c
		}
	}
	data, err := chartData(charts)
	if err != nil {
		return nil, fmt.Errorf("write page: %w", err)
	}
	policy := fmt.Sprintf("default-src 'none'; script-src %s; style-src %s; img-src data:; base-uri 'none'; form-action 'none'", hashOf(js), hashOf(css))
	return &shell{tab, policy, markup(css), markup(js), markup(data)}, nil
}

// writePage writes a page: what the browser's tab says, what it is of, and its body, of which
// these sections are a part.
func writePage(w io.Writer, tab, eyebrow, of string, sections []section, body func(*document)) error {
	s, err := newShell(tab, sections)
	if err != nil {
		return err
	}
	var d document
	d.writeHead(s, eyebrow, of)
	body(&d)
	d.removeControls() // of texts of servers and files, before the data that the script reads
	d.writeFoot(s)
	_, err = d.WriteTo(w)
	return err
}

// toneClass is the class of a word that stands out where it is written.
func toneClass(word string) string {
	switch word {
	case string(result.Fail), string(result.Invalid), string(result.Failing), compare.Slower, compare.Worse:
		return "bad"
	case string(result.Flag), string(stats.Unstable), report.QueueGrows:
		return "warn"
	case compare.Faster, compare.Better:
		return "good"
	}
	return ""
}

// hashOf names a script or a style in a content security policy.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// pageView holds what the page of a run says.
type pageView struct {
	report.Model
	Missing  []string
	Sections []section // of the run as a whole
	Points   []pagePoint
	Several  bool
	Command  string
	Config   string
	Date     string
	Kind     string // "success", "flags" or "invalid"
}

func viewOf(m report.Model, with Extra) *pageView {
	run := m.Run
	v := &pageView{Model: m, Missing: with.Missing, Config: with.Config, Several: len(m.Points) > 1}
	v.Date, _, _ = strings.Cut(run.Started, "T")
	v.Command = say.ShellLine(run.Command)
	v.Kind = map[result.Verdict]string{result.Valid: "valid", result.ValidWithFlags: "flags"}[run.Verdict]
	if m.Overview != nil && len(run.Points) > 1 {
		v.Sections = append(v.Sections, section{ID: "curve", Title: "The curve", Charts: curveCharts(run),
			Notes: []string{"Each load has a window of its own. Latencies count from when a request was due."}, Absent: "No load was measured well enough to draw."})
		if c := paretoCharts(run); len(c) > 0 {
			v.Sections = append(v.Sections, section{ID: "pareto", Title: "Pareto front", Charts: c})
		}
		if c := costCharts(run); len(c) > 0 {
			v.Sections = append(v.Sections, section{ID: "cost", Title: "Cost", Charts: c})
		}
		if c := attainmentChart(run); len(c) > 0 {
			v.Sections = append(v.Sections, section{ID: "slo", Title: "SLO attainment over load", Charts: c})
		}
		v.Sections = append(v.Sections, section{ID: "loads", Title: "All loads", Tables: []captioned{{"By load; " + strings.Join(m.Overview.LoadsLegend(m.Overview.Loads), " · "), m.Overview.Loads}}})
		if t := m.Overview.Spread; t != nil {
			loads := &v.Sections[len(v.Sections)-1]
			loads.Tables = append(loads.Tables, captioned{"Loads that were measured several times: the least and the most", *t})
		}
	}
	if r := m.Repeats; r != nil {
		v.Sections = append(v.Sections, section{ID: "repeats", Title: "Repeats", Tables: []captioned{{"One load, measured several times; " + strings.Join(r.Legend, " · "), r.Table}}})
	}
	for i := range m.Points {
		p := pagePoint{PointModel: m.Points[i], ID: fmt.Sprintf("p%d", i+1)}
		var s *Series
		if i < len(with.Series) {
			s = with.Series[i]
		}
		p.Summary = strings.Join(append([]string{say.Decimal(run.Points[i].Load.Value(), 3) + " " + run.Points[i].Load.Unit()}, m.Points[i].Headline[:min(3, len(m.Points[i].Headline))]...), " · ")
		p.Sections = pointSections(p.ID+"-", &run.Points[i], &m.Points[i], s)
		for k := range p.Sections {
			p.Sections[k].Top = !v.Several
		}
		v.Points = append(v.Points, p)
	}
	for k := range v.Sections {
		v.Sections[k].Top = true
	}
	return v
}

// pointSections are the parts of a point's account, in the order of the page.
func pointSections(prefix string, p *result.Point, m *report.PointModel, s *Series) (list []section) {
	addSection := func(id, title, text string, charts []*chart, absent string, tables ...captioned) {
		list = append(list, section{ID: prefix + id, Title: title, Text: text, Charts: charts, Absent: absent, Tables: tables})
	}
	const unread = "The records of this point could not be read."
	absent := unread
	var spreads, times, rasters, lengths, lined []*chart
	if s != nil {
		spreads, times, rasters, lengths, lined = spreadCharts(prefix, p, s), timeCharts(prefix, s), rasterCharts(prefix, s), lengthCharts(prefix, s), viewCharts(prefix, p, s)
		absent = "Nothing to draw: no request of this point got so far."
		if e := p.Metrics.SummaryOf(metric.E2E); e != nil && !e.NoSteadyState().IsNone() {
			absent = "Not drawn: " + report.ReasonText(e.NoSteadyState()) + ", so this load has no distribution."
		}
	}
	if p.Outcome == result.Failing { // what was not served comes before the latencies of the rest
		var first []*chart
		times = slices.DeleteFunc(times, func(c *chart) bool {
			lost := c.ID == prefix+"flow" || c.ID == prefix+"errors"
			if lost {
				first = append(first, c)
			}
			return lost
		})
		if len(first) > 0 {
			addSection("served", "Requests served and failed", "", first, "")
		}
	}
	tables := []captioned{{"Percentiles, ms" + legendOf(m), m.Latencies}}
	if m.Intervals != nil {
		tables = append(tables, captioned{"Intervals", *m.Intervals})
	}
	if m.Classes != nil {
		tables = append(tables, captioned{"Classes of requests, ms", *m.Classes})
	}
	if len(m.Latencies.Rows) == 0 {
		tables = nil
	}
	addSection("spread", "Distributions", "", spreads, absent, tables...)
	if m.Objective != nil {
		addSection("slo", "SLO attainment", strings.Join(m.Objective.Facts, " · "), nil, "", captioned{"Each limit by itself, and jointly", m.Objective.Table})
	}
	if p.Answers != nil {
		addSection("answers", "Are the answers right?", strings.Join(m.Answers, ". ")+".", nil, "", captioned{"Under this load and one at a time", report.AnswersTable(p.Answers)})
	}
	var course []captioned
	if m.Turns != nil {
		course = append(course, captioned{"Requests by their turn in the conversation", *m.Turns}, captioned{"Requests by how many tokens of the prompt were said before", *m.Histories})
	}
	if m.OverTime != nil {
		course = append(course, captioned{"Blocks of the window, by when requests were due", *m.OverTime})
	}
	addSection("time", "Timeline", "", times, unread, course...)
	addSection("raster", "Requests and their tokens", "", rasters, absent)
	text := ""
	if s != nil {
		for _, l := range []struct {
			name string
			l    Lengths
		}{{"input", s.Input}, {"output", s.Output}} {
			if l.l.Alike {
				text += fmt.Sprintf("All requests: %s %s tokens planned and served. ", say.Count(l.l.Only), l.name)
			}
		}
	}
	uncounted := ""
	if text == "" {
		uncounted = "The tokens were not counted."
	}
	addSection("lengths", "Lengths planned and served", text, lengths, uncounted)
	if m.ViewsAgree {
		addSection("views", "Latency from due and from sent", "Both are the same: requests were sent when they were due.", nil, "")
	} else {
		addSection("views", "Latency from due and from sent", "The response view counts from the time at which a request was due. The service view counts from the time at which it was sent.", lined, absent)
	}
	ends := report.NewTable("How it ended", "Requests")
	row := func(name string, n int) { ends.AddRow(name, say.Count(n)) }
	row("due in the window", p.Requests.Due)
	for _, reason := range report.ByCount(p.Requests.Finish) {
		row("ok, finish reason "+cmp.Or(reason, "none"), p.Requests.Finish[reason])
	}
	errors := report.NewTable("Error class", "Requests", "Said of the first")
	for _, class := range report.ByCount(p.Requests.Errors) {
		errors.AddRow(cmp.Or(class, "none"), say.Count(p.Requests.Errors[class]), p.Requests.ErrorExamples[class])
	}
	row("failed", p.Requests.Failed)
	row("cut off before the end", p.Requests.Cut)
	row("never sent", p.Requests.Unsent)
	if n := p.Requests.LostWithWorker; n > 0 {
		row("besides, lost with their worker before they were sent", n)
	}
	if n := p.Requests.SkippedEvents; n > 0 {
		row("events skipped: heartbeats, or after the end mark", n)
	}
	tables = []captioned{{"due = ok + failed + cut + unsent", ends}}
	if len(errors.Rows) > 0 {
		tables = append(tables, captioned{"Errors", errors})
	}
	addSection("ends", "Errors and finish reasons", "", nil, "", tables...)
	checks := report.NewTable("Check", "Status", "Value", "Limit", "What to do")
	for _, status := range []result.Status{result.Fail, result.Flag, result.Pass} {
		for i := range p.Checks {
			if p.Checks[i].Status != status {
				continue
			}
			c := report.BuildCheck(&p.Checks[i])
			checks.AddRow(c.Name, string(status), c.Value, c.Limit, c.Advice)
		}
	}
	addSection("checks", "Checks", string(p.Verdict)+": "+m.ChecksPassed()+".", nil, "", captioned{"The instrument against its limits", checks})
	return list
}

func legendOf(m *report.PointModel) string {
	if len(m.Legend) == 0 {
		return ""
	}
	return "; " + strings.Join(m.Legend, " · ")
}

// unbreakable matches the text after which a line must not break: the percentile of a limit, and a
// number before its unit.
var unbreakable = regexp.MustCompile(`\bp[0-9.]+ |[0-9] (%|req/s|ms|users|tok/s)`)

// withoutBreaks keeps such words on one line.
func withoutBreaks(text string) string {
	return unbreakable.ReplaceAllStringFunc(text, func(s string) string { return strings.ReplaceAll(s, " ", "\u00a0") })
}

// mostInRow is the number of figures that fit next to each other.
const mostInRow = 8

// columnsOf returns the number of figures in a row, for n figures. The rows are as few as they can
// be and about as long as each other.
func columnsOf(n int) int {
	rows := max(1, (n+mostInRow-1)/mostInRow)
	return (n + rows - 1) / rows
}
