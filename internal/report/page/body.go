package page

import (
	"slices"
	"strconv"
	"strings"

	"pitot/internal/report"
	"pitot/internal/say"
)

// writeBody is the page of a run: its answer, what limits it, the run as a whole, its points, and
// what is needed to do it again.
func (v *pageView) writeBody(d *document) {
	v.writeAnswer(d)
	d.writeMarkup(`<nav aria-label="Contents"><ul>`)
	d.writeLinks(v.Sections)
	d.writeMarkup(`<li><a href="#limits">What limits it</a></li>`)
	if v.Several {
		d.writeMarkup(`<li><a href="#points">Points</a></li>`)
	} else {
		for i := range v.Points {
			d.writeLinks(v.Points[i].Sections)
		}
	}
	d.writeMarkup(`<li><a href="#conditions">Conditions</a></li><li><a href="#redo">Reproduce</a></li></ul></nav>
`)
	d.writeRunSections(v.Sections)
	first := 0 // sections of a run's only point that come before what limits it
	if !v.Several && len(v.Points) == 1 {
		first = min(1, len(v.Points[0].Sections))
		d.writeSections(v.Points[0].Sections[:first])
	}
	v.writeLimits(d)
	if v.Overview != nil {
		d.runChecks(v.Overview)
	}
	d.writeMarkup("\n")
	if v.Several {
		d.writeMarkup(`<section id="points" aria-labelledby="points-h"><h2 id="points-h">Points</h2><p>Each load in full: open one.</p>
`)
		for i := range v.Points {
			p := &v.Points[i]
			d.writeMarkup(`<details class="point" id="%s"><summary><span class="ordinal">%s</span> %s <span class="v">%s</span></summary>`, p.ID, p.Ordinal, p.Summary, string(p.Verdict))
			p.writeBody(d, 0)
			d.writeMarkup("</details>\n")
		}
		d.writeMarkup(`</section>`)
	} else {
		for i := range v.Points {
			v.Points[i].writeBody(d, first)
		}
	}
	d.writeMarkup(`
<section id="conditions" aria-labelledby="conditions-h"><h2 id="conditions-h">Conditions of this measurement</h2><dl class="conditions">`)
	if o := v.Overview; o != nil {
		for _, fact := range o.Facts {
			if len(fact) == 0 {
				continue
			}
			label, value, ok := strings.Cut(fact[0], ": ")
			if !ok || len(label) > 13 { // a fact without a label
				label, value = "Search", fact[0]
			}
			d.writeMarkup(`<div><dt>%s</dt><dd>%s</dd></div>`, label, joinFacts(append([]string{value}, fact[1:]...)))
		}
	}
	for _, c := range v.Conditions {
		value := markup(`<div><dt>%s</dt><dd>%s</dd></div>`)
		if !c.Known {
			value = `<div><dt>%s</dt><dd class="absent">%s</dd></div>`
		}
		d.writeMarkup(value, c.Name, c.Value)
	}
	again := ""
	if v.Config != "" {
		again = ", and the configuration that does the run again"
	}
	d.writeMarkup(`</dl></section>
<section id="redo" aria-labelledby="redo-h"><h2 id="redo-h">Reproduce</h2><p>The command as it was given%s.</p><pre tabindex="0" aria-label="Command">%s</pre>`, again, v.Command)
	d.putNonEmpty(`<pre tabindex="0" aria-label="Configuration">%s</pre>`, v.Config)
	d.writeMarkup("</section>\n")
}

// writeAnswer is the claim with its figures, and what a reader is warned of.
func (v *pageView) writeAnswer(d *document) {
	d.writeMarkup(`<section id="answer" class="answer %s" aria-labelledby="claim">
<h1 id="claim">%s</h1>
`, v.Kind, withoutBreaks(v.Headline.Sentence))
	if v.Headline.HasInterval() {
		d.writeMarkup(`<p class="interval">%s</p>`, withoutBreaks(v.Headline.Interval))
	}
	because := strings.Join(v.Headline.Because, ", ")
	if because == "" && !v.Several {
		because = "all checks passed"
	}
	if note := v.VerdictNote(); note != "" {
		because += ": " + note
	}
	d.writeMarkup(`
<p class="verdict">Measurement <strong class="chip">%s</strong> `, string(v.Headline.Verdict))
	if v.Run.Environment.Stamps == "virtual" {
		d.writeMarkup(`<span class="chip simulated">simulated</span> `)
	}
	d.writeMarkup("%s</p>\n", because)
	d.putEach("", "<p class=\"warning\">%s</p>\n", "", v.Warnings)
	d.writeMarkup("\n")
	d.putEach("", "<p class=\"warning\">%s</p>\n", "", v.Missing)
	d.writeMarkup("\n")
	if len(v.Figures) > 0 {
		d.writeMarkup(`<dl class="figures in-%s">`, strconv.Itoa(columnsOf(len(v.Figures))))
		for _, f := range v.Figures {
			d.writeMarkup(`<div><dt>%s</dt><dd><b>%s</b> <span>%s</span>`, f.Name, f.Value, f.Unit)
			d.putNonEmpty(`<small>%s</small>`, f.Note)
			d.writeMarkup(`</dd></div>`)
		}
		d.writeMarkup(`</dl>`)
	}
	d.writeMarkup("\n")
	if !v.Headline.HasInterval() {
		d.putNonEmpty(`<p class="interval unknown">%s</p>`, withoutBreaks(v.Headline.Interval))
	}
	d.writeMarkup("\n</section>\n")
}

// writeLimits writes what limits the target, and the way to decide what to do about it.
func (v *pageView) writeLimits(d *document) {
	d.writeMarkup(`<section id="limits" aria-labelledby="limits-h"><h2 id="limits-h">What limits it</h2>`)
	v.writeMeanTTFT(d)
	d.writeMarkup(`<ul class="limits">`)
	d.putEach("", `<li>%s</li>`, "", v.Limited)
	d.writeMarkup(`</ul>`)
	if v.Decision != nil {
		d.writeMarkup(`
<h3 id="decision">Diagnosis at %s</h3><ol class="decision" aria-labelledby="decision">`, v.Decision.Load)
		for _, step := range v.Decision.Steps {
			d.writeMarkup(`<li class="%s"><strong>%s</strong> <span class="says">%s</span>`, step.State, step.Name, withoutBreaks(step.Says))
			if len(step.Branches) > 0 {
				d.writeMarkup(`<ul>`)
				for _, b := range step.Branches {
					if b.Taken {
						d.writeMarkup(`<li class="taken"><span class="sr">taken: </span>%s</li>`, b.Text)
					} else {
						d.writeMarkup(`<li>%s</li>`, b.Text)
					}
				}
				d.writeMarkup(`</ul>`)
			}
			d.putNonEmpty(`<p>%s</p>`, withoutBreaks(step.Then))
			d.writeMarkup(`</li>`)
		}
		d.writeMarkup(`</ol>`)
	}
	d.writeMarkup("</section>\n")
}

// writeMeanTTFT draws what the mean TTFT of a run's only point is made of, where the server reports
// it: network and API server, queue, prefill.
func (v *pageView) writeMeanTTFT(d *document) {
	if v.Several || len(v.Run.Points) != 1 {
		return
	}
	parts := report.MeanTTFT(&v.Run.Points[0])
	total := 0.
	for _, p := range parts {
		total += max(p.MS, 0)
	}
	if total == 0 {
		return
	}
	var text []string
	for _, p := range parts {
		text = append(text, p.Name+" "+say.Quantity(p.MS)+" ms")
	}
	label := "Mean TTFT of requests that ended in the window = " + strings.Join(text, " + ")
	d.writeMarkup(`<p>Mean TTFT of requests that ended in the window, from left to right:</p><svg class="parts" viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label="%s">`, label)
	at := 0.
	for i, p := range parts {
		width := 100 * max(p.MS, 0) / total
		d.writeMarkup(`<rect class="%s" x="%s" y="0" width="%s" height="4"/>`, "t"+strconv.Itoa(i+1), say.Decimal(at, 2), say.Decimal(max(width-.2, 0), 2))
		at += width
	}
	d.writeMarkup(`</svg><p class="key">`)
	for i := range parts {
		d.writeMarkup(`<span class="%s"><i></i>%s</span>`, "t"+strconv.Itoa(i+1), text[i])
	}
	d.writeMarkup("</p>\n")
}

// runChecks writes the outcome of the checks of all loads.
func (d *document) runChecks(o *report.Overview) {
	d.writeMarkup(`<section id="run-checks" aria-labelledby="run-checks-h"><h2 id="run-checks-h">Checks of the run</h2>`)
	if len(o.Failed) > 0 {
		d.writeMarkup(`<ul class="checks">`)
		for i := range o.Failed {
			c := &o.Failed[i]
			d.writeMarkup(`<li><strong class="%s">%s</strong> %s: %s (limit %s), at %s of %s loads. %s</li>`,
				string(c.Status), string(c.Status), c.Name, c.Value, c.Limit, strconv.Itoa(c.Points), strconv.Itoa(o.Points), c.Advice)
		}
		d.writeMarkup(`</ul>`)
	}
	d.writeMarkup(`<p>%s of %s loads passed every check`, strconv.Itoa(o.Clean), strconv.Itoa(o.Points))
	if o.Aside > 0 {
		d.writeMarkup(`; flags at %s that were exploratory or overloaded, as expected`, strconv.Itoa(o.Aside))
	}
	if o.Invalid > 0 {
		d.writeMarkup(`; %s`, o.DiscardedText())
	}
	d.writeMarkup(`.</p></section>`)
}

// writeBody is a point in full, but for its first sections, which are written already.
func (p *pagePoint) writeBody(d *document, written int) {
	d.writeMarkup(`<div class="body"><ul class="facts">`)
	d.putNonEmpty(`<li>%s</li>`, joinFacts(p.Load))
	d.putNonEmpty(`<li>%s</li>`, joinFacts(p.Headline))
	d.putNonEmpty(`<li><strong class="fail">%s</strong></li>`, p.Outcome)
	if f := p.Failures; f != nil {
		d.writeMarkup(`<li>%s`, f.Total)
		d.putEach(`<ul>`, `<li>%s</li>`, `</ul>`, f.Classes)
		d.writeMarkup(`</li>`)
	}
	d.putEach("", `<li>%s</li>`, "", p.Remarks)
	for _, line := range slices.Concat(p.Cost, p.Server) {
		d.writeMarkup(`<li>%s</li>`, joinFacts(line.Parts()))
	}
	d.putNonEmpty(`<li>%s</li>`, joinFacts(p.Instrument))
	d.writeMarkup("</ul>\n")
	d.writeSections(p.Sections[written:])
	d.writeMarkup(`</div>`)
}
