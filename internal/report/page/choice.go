package page

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"pitot/internal/analysis/choose"
	"pitot/internal/report"
	"pitot/internal/say"
)

// choiceView holds what the page of a choice says.
type choiceView struct {
	report.ChoiceModel
	Sentence string
	Parts    []section
	Command  string
}

// WriteChoice writes the page of a choice of deployments. command is what made it.
func WriteChoice(w io.Writer, m report.ChoiceModel, command []string) error {
	v := &choiceView{ChoiceModel: m, Sentence: say.Sentence(m.Answer), Command: say.ShellLine(command)}
	options := section{ID: "options", Title: "What there is to choose from", Top: true, Notes: append(m.Legend, m.Remarks...)}
	if len(m.Options.Rows) > 0 {
		options.Tables = []captioned{{"Deployments, the cheapest first", m.Options}}
		options.Charts = drawableCharts(costChart(m), frontChart(m))
	}
	v.Parts = []section{options}
	x := m.Choice
	return writePage(w, v.Sentence, "choice of a deployment", x.Model+" · "+x.SLO, v.Parts, v.writeBody)
}

// mostDrawn is the number of options that have a line of their own in a chart.
const mostDrawn = 6

// frontChart draws what a GPU gives against what each user gets: up and to the right is
// better, and no deployment is both.
func frontChart(m report.ChoiceModel) *chart {
	c := &chart{ID: "front", Title: "Tokens for a GPU against tokens for a user", Wide: true,
		X:    axisFromZero("Each user gets", "output tokens/s"),
		Y:    axisFromZero("Each GPU gives", "output tokens/s"),
		Note: "Each dot is a load of one engine; up and to the right is better. A cross: the limits are not met."}
	for i := range m.Choice.Options[:min(mostDrawn, len(m.Choice.Options))] {
		o := &m.Choice.Options[i]
		name := report.EngineName(o)
		met := drawn{Name: name, Kind: "line", Tone: i + 1}
		not := drawn{Name: name + ", limits not met", Kind: "dots", Tone: i + 1, Shape: 1, Aside: true}
		for _, p := range o.Points {
			of := &met
			if !p.Met {
				of = &not
			}
			of.addPoint(roundTo(p.PerUser, 5), roundTo(p.PerGPU, 5))
		}
		c.Series = append(c.Series, met)
		if len(not.X) > 0 {
			c.Series = append(c.Series, not)
		}
	}
	return c
}

// costChart returns the chart of the cost of each option, with its interval. It returns nil if no
// prices are known.
func costChart(m report.ChoiceModel) *chart {
	c := &chart{ID: "cost", Title: "Cost of a million output tokens", Kind: "rows", Wide: true, X: logAxis("Cost", "$ per million output tokens"),
		Note: "Bars: by the errors to expect of the twin, four of five."}
	for i := range m.Options.Rows { // what costs far more is left out there too
		o := &m.Choice.Options[i]
		if o.PerHour <= 0 {
			continue
		}
		look := "open"
		if i == 0 {
			look = "good"
		}
		c.Rows = append(c.Rows, row{Name: report.EngineName(o), At: o.PerMillion, Lo: &o.Million80[0], Hi: &o.Million80[1], Look: look,
			Text: "$" + say.Dollars(o.PerMillion), Word: fmt.Sprintf("%s, $%s an hour", say.Plural(o.Engines, "engine"), say.Dollars(o.PerHour)), Say: choiceSays(m.Choice, o)})
	}
	if len(c.Rows) == 0 {
		return nil
	}
	return c
}

func choiceSays(x *choose.Choice, o *choose.Option) []string {
	return []string{
		"an engine carries " + report.RateText(x, o.Capacity),
		o.Claim + " is reached first",
		fmt.Sprintf("%.0f %% likely that nothing costs less", 100*o.Cheapest),
	}
}

func (v *choiceView) writeBody(d *document) {
	d.writeMarkup(`<section id="answer" class="answer" aria-labelledby="claim">
<h1 id="claim">%s</h1>
`, withoutBreaks(v.Sentence))
	d.putNonEmpty("<p class=\"warning\">%s</p>\n", withoutBreaks(v.Warning()))
	d.writeMarkup(`<ul class="facts">`)
	for _, line := range append(slices.Clone(v.Facts), v.Workload) {
		label := ""
		if line.Label != "" {
			label = line.Label + ": "
		}
		d.writeMarkup(`<li>%s</li>`, withoutBreaks(label+strings.Join(line.Values, " · ")))
	}
	d.writeMarkup("</ul>\n</section>\n")
	d.writeContents("", v.Parts, `<li><a href="#start">Start and verify it</a></li>`)
	d.writeRunSections(v.Parts)
	d.writeMarkup(`<section id="start" aria-labelledby="start-h"><h2 id="start-h">Start and verify it</h2>`)
	d.putNonEmpty(`<p>Each engine:</p><pre tabindex="0" aria-label="Start">%s</pre>`, copyableLines(v.Start))
	d.putNonEmpty(`<p>On the machine, and in virtual time:</p><pre tabindex="0" aria-label="Verify">%s</pre>`, copyableLines(v.Verify))
	d.writeMarkup(`<p>The command as it was given.</p><pre tabindex="0" aria-label="Command">%s</pre></section>
`, v.Command)
}
