package page

import (
	"fmt"
	"io"
	"math"
	"slices"

	"pitot/internal/report"
	"pitot/internal/say"
)

// workloadView holds what the page of a workload says.
type workloadView struct {
	report.Drawing
	Table    captioned
	Sections []section
	Command  string
}

// WriteWorkload writes the page of a workload. command is what did it.
func WriteWorkload(w io.Writer, d report.Drawing, command []string) error {
	v := &workloadView{Drawing: d, Table: captioned{"What its lengths come to", d.QuantileTable()}, Command: say.ShellLine(command)}
	for i := range d.Parts {
		p := &d.Parts[i]
		prefix := fmt.Sprintf("w%d-", i)
		s := section{ID: fmt.Sprintf("part-%d", i), Title: "Lengths", Top: true, Charts: drawnCharts(prefix, p)}
		if p.Name != "" {
			s.Title, s.Text = p.Name, say.Sentence(p.What)
		}
		if len(s.Charts) == 0 {
			s.Absent = "Its lengths are all the same, or not known."
		}
		v.Sections = append(v.Sections, s)
		if charts := arrivalCharts(prefix, p); len(charts) > 0 {
			v.Sections = append(v.Sections, section{ID: fmt.Sprintf("arrivals-%d", i), Title: "Arrivals", Top: true, Charts: charts})
		}
	}
	return writePage(w, d.Name+" · workload", "workload", d.Name, v.Sections, v.writeBody)
}

// scaleOf is the scale of an axis of values in order: of their logarithm where they span octaves.
func scaleOf(values []float64) string {
	if values[len(values)-1] > 20*max(values[0], 1) {
		return "log"
	}
	return ""
}

// sharesChart is the histogram of values in order; nil where all are the same.
func sharesChart(id, title, unit string, tone int, values []float64) *chart {
	n := len(values)
	if n == 0 || values[0] == values[n-1] {
		return nil
	}
	c := &chart{ID: id, Title: title, X: axis{Name: "Length", Unit: unit, Scale: scaleOf(values)}, Y: axisFromZero("Requests", "%")}
	var edges []float64
	if c.X.Scale == "log" {
		c.Note = "Bins of a quarter of an octave."
		for k := math.Floor(4 * math.Log2(max(values[0], 1))); ; k++ {
			edges = append(edges, math.Exp2(k/4))
			if edges[len(edges)-1] > values[n-1] {
				break
			}
		}
	} else {
		width := max(math.Ceil((values[n-1]-values[0])/40), 1)
		c.Note = "Bins of " + say.Plural(int(width), "token") + "."
		for x := values[0]; ; x += width {
			edges = append(edges, x)
			if x > values[n-1] {
				break
			}
		}
	}
	d := drawn{Name: "share of the requests", Kind: "bars", Tone: tone}
	at := 0
	for i := range edges[:len(edges)-1] {
		from := at
		for at < n && (values[at] < edges[i+1] || i == len(edges)-2) {
			at++
		}
		d.addPoint(edges[i], 100*float64(at-from)/float64(n))
	}
	d.addPoint(edges[len(edges)-1], math.NaN())
	c.Series = []drawn{d}
	return c
}

// belowOf is the share of values, in order, at or below each of some of them.
func belowOf(name string, tone, dash int, values []float64) drawn {
	d := drawn{Name: name, Kind: "line", Tone: tone, Dash: dash, Plain: true}
	n := len(values)
	for i := 0; i <= 200 && n > 0; i++ {
		k := min(i*n/200, n-1)
		if x := values[k]; x > 0 {
			d.addPoint(x, 100*float64(k+1)/float64(n))
		}
	}
	return d
}

// drawnCharts are the plots of a part's lengths.
func drawnCharts(prefix string, p *report.DrawnPart) []*chart {
	prompts := sharesChart(prefix+"prompts", "Prompt tokens", "tokens", 1, p.Prompts)
	answers := sharesChart(prefix+"answers", "Answer tokens", "tokens", 2, p.Answers)
	var both, scatter *chart
	if prompts != nil || answers != nil {
		both = &chart{ID: prefix + "below", Title: "Requests at or below a length", X: axis{Name: "Length", Unit: "tokens", Scale: scaleOf(slices.Sorted(slices.Values(slices.Concat(p.Prompts, p.Answers))))},
			Y: shareAxis("Requests"), Series: []drawn{belowOf("prompts", 1, 0, p.Prompts), belowOf("answers", 2, 1, p.Answers)}}
	}
	if prompts != nil && answers != nil && len(p.Pairs) > 1 {
		scatter = &chart{ID: prefix + "pairs", Title: "Prompts and their answers", Note: say.Plural(len(p.Pairs), "request") + ".",
			X: axis{Name: "Prompt", Unit: "tokens", Scale: prompts.X.Scale}, Y: axis{Name: "Answer", Unit: "tokens", Scale: answers.X.Scale}}
		d := drawn{Name: "requests", Kind: "dots", Tone: 1}
		for _, pair := range p.Pairs {
			d.addPoint(max(pair[0], 1), max(pair[1], 1))
		}
		scatter.Series = []drawn{d}
	}
	return drawableCharts(prompts, answers, both, scatter)
}

// arrivalCharts are those of a part's times.
func arrivalCharts(prefix string, p *report.DrawnPart) []*chart {
	n := len(p.Times)
	if n < 2 || p.Times[n-1] == 0 {
		return nil
	}
	const stretches = 120
	width := p.Times[n-1] / stretches
	over := &chart{ID: prefix + "rate", Title: "Requests per second", Note: "In stretches of " + say.Seconds(width) + ".", Wide: true,
		X: axis{Name: "Time", Unit: "s"}, Y: axisFromZero("Requests", "/s")}
	d, at := drawn{Name: "requests per second", Kind: "step", Tone: 1, Plain: true}, 0
	for i := range stretches {
		k := 0
		for at < n && (p.Times[at] < float64(i+1)*width || i == stretches-1) {
			at, k = at+1, k+1
		}
		d.addPoint(float64(i)*width, float64(k)/width)
	}
	over.Series = []drawn{d}
	none, _ := slices.BinarySearch(p.Gaps, math.SmallestNonzeroFloat64)
	gaps := &chart{ID: prefix + "gaps", Title: "Gaps between arrivals", X: logAxis("Gap", "ms"), Y: shareAxis("Gaps at or below")}
	if none > 0 {
		gaps.Note = say.Percent(float64(none)/float64(len(p.Gaps))) + " of them are of no time, and are left of the plot."
	}
	mean := p.Times[n-1] * 1e3 / float64(n-1)
	poisson := drawn{Name: "of a Poisson process", Kind: "line", Tone: 5, Dash: 1, Plain: true}
	for i := range 100 {
		share := (float64(i) + .5) / 100
		poisson.addPoint(-mean*math.Log(1-share), 100*share)
	}
	gaps.Series = []drawn{belowOf("of these", 1, 0, p.Gaps), poisson}
	return drawableCharts(over, gaps)
}

func (v *workloadView) writeBody(d *document) {
	claim := v.Name
	if v.About != "" {
		claim = say.Sentence(v.About)
	}
	d.writeMarkup(`<section id="answer" class="answer" aria-labelledby="claim">
<h1 id="claim">%s</h1>
`, claim)
	if len(v.Facts) > 0 {
		d.writeMarkup(`<ul class="facts">`)
		for _, fact := range v.Facts {
			d.writeMarkup(`<li>%s</li>`, say.Sentence(fact))
		}
		d.writeMarkup(`</ul>`)
	}
	d.writeMarkup("\n</section>\n")
	d.writeContents(`<li><a href="#come-to">Quantiles</a></li>`, v.Sections, `<li><a href="#redo">Reproduce</a></li>`)
	d.writeMarkup(`<section id="come-to" aria-labelledby="come-to-h"><h2 id="come-to-h">Quantiles</h2>`)
	d.writeTable(v.Table)
	d.writeMarkup("</section>\n")
	d.writeRunSections(v.Sections)
	d.writeMarkup(`<section id="redo" aria-labelledby="redo-h"><h2 id="redo-h">Reproduce</h2>`)
	d.putNonEmpty(`<p>The same by settings.</p><pre tabindex="0" aria-label="Settings">%s</pre>`, copyableLines(v.SameAs))
	d.writeMarkup(`<p>The command as it was given.</p><pre tabindex="0" aria-label="Command">%s</pre></section>
`, v.Command)
}
