package page

import (
	"fmt"
	"io"
	"math"

	"pitot/internal/experiment"
	"pitot/internal/report"
	"pitot/internal/say"
)

// decisionView holds what the page of a decision says.
type decisionView struct {
	report.DecisionModel
	Sentence string
	Parts    []section
	Commands []string
}

// WriteDecision writes the page of an experiment's record.
func WriteDecision(w io.Writer, m report.DecisionModel) error {
	v := &decisionView{DecisionModel: m, Sentence: say.Sentence(m.Headline)}
	for _, part := range m.Sections {
		if len(part.Commands) > 0 {
			v.Commands = part.Commands
			continue
		}
		s := section{ID: part.ID, Title: part.Title, Notes: part.Lines, Top: true}
		switch {
		case len(part.Table.Rows) == 0:
		case part.ID == "effects": // most of them are none
			s.Tables = []captioned{{"Effects that are established", part.Brief}}
			s.Folded = []captioned{{"All of them", part.Table}}
		default:
			s.Tables = []captioned{{part.Title, part.Table}}
		}
		if part.ID == "configurations" {
			if c := carriedChart(m.Of); c != nil {
				s.Charts = []*chart{c}
			}
		}
		v.Parts = append(v.Parts, s)
	}
	name := m.Of.Experiment
	return writePage(w, v.Sentence, "decision record", name+" · "+m.Of.Target, v.Parts, v.writeBody)
}

// carriedChart draws what configurations carry against the baseline, nil where nothing is
// known.
func carriedChart(r *experiment.Record) *chart {
	g := changeGroup{title: "What is carried, against the baseline", rowsAre: "Configuration", in: "ratio"}
	for i := range r.Standings {
		s := &r.Standings[i]
		if s.Change == nil {
			continue
		}
		percent := func(x float64) float64 { return roundTo(100*math.Max(math.Min(x, 1e7), -1), 6) }
		out := row{Name: s.Name, At: percent(*s.Change), Lo: new(percent(s.Change95[0])), Hi: new(percent(s.Change95[1])), Band: &[2]float64{}, Look: "open", Text: say.RelativeChange(*s.Change, false), Word: report.StandingText(r, s)}
		if s.PAdjusted != nil && *s.PAdjusted < 1-r.Contract.Confidence {
			if out.Look = "good"; *s.Change < 0 {
				out.Look = "bad"
			}
		}
		out.Say = []string{fmt.Sprintf("carries %s/s", say.Optional(s.Carries)), "contract: " + report.StandingText(r, s)}
		g.rows = append(g.rows, out)
	}
	if len(g.rows) == 0 {
		return nil
	}
	k := g.drawChart()
	k.ID, k.Group, k.Wide = "carried", "carried", true
	k.Note = "A hollow dot: no change is established. Bars are intervals of each configuration alone."
	return k
}

func (v *decisionView) writeBody(d *document) {
	d.writeMarkup(`<section id="answer" class="answer" aria-labelledby="claim">
<h1 id="claim">%s</h1>
<p class="verdict"><strong class="chip %s">%s</strong></p>
<ul class="facts">`, withoutBreaks(v.Sentence), chipClass(v.Word), v.Word)
	for _, line := range v.Basis {
		d.writeMarkup(`<li>%s</li>`, withoutBreaks(line))
	}
	d.writeMarkup("</ul>\n</section>\n")
	d.writeContents("", v.Parts, `<li><a href="#redo">To do it again</a></li>`)
	d.writeRunSections(v.Parts)
	d.writeMarkup(`<section id="redo" aria-labelledby="redo-h"><h2 id="redo-h">To do it again</h2><pre tabindex="0" aria-label="Commands">%s</pre></section>
`, copyableLines(v.Commands))
}
