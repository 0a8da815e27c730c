package page

import (
	"strconv"
	"strings"

	"pitot/internal/report"
)

// body is the page of a run: its answer, what limits it, the run as a whole, its points, and
// what is needed to do it again.
func (v *pageView) body(d *document) {
	v.writeAnswer(d)
	v.writeLimits(d)
	d.put(`<nav aria-label="Contents"><ul>`)
	d.links(v.Sections)
	if v.Several {
		d.put(`<li><a href="#points">Points</a></li>`)
	} else {
		for i := range v.Points {
			d.links(v.Points[i].Sections)
		}
	}
	d.put(`<li><a href="#conditions">Conditions</a></li><li><a href="#redo">Redo it</a></li></ul></nav>
`)
	if o := v.Overview; o != nil && len(o.Facts) > 0 {
		d.put(`<ul class="facts">`)
		for _, fact := range o.Facts {
			d.putNonEmpty(`<li>%s</li>`, joinFacts(fact))
		}
		d.put(`</ul>`)
	}
	d.put("\n")
	d.whole(v.Sections)
	if v.Overview != nil {
		d.runChecks(v.Overview)
	}
	d.put("\n")
	if v.Several {
		d.put(`<section id="points" aria-labelledby="points-h"><h2 id="points-h">Points</h2><p>Each load in full: open one.</p>
`)
		for i := range v.Points {
			p := &v.Points[i]
			d.put(`<details class="point" id="%s"><summary><span class="ordinal">%s</span> %s <span class="v">%s</span></summary>`, p.ID, p.Ordinal, p.Summary, string(p.Verdict))
			p.body(d)
			d.put("</details>\n")
		}
		d.put(`</section>`)
	} else {
		for i := range v.Points {
			v.Points[i].body(d)
		}
	}
	d.put(`
<section id="conditions" aria-labelledby="conditions-h"><h2 id="conditions-h">Conditions</h2><p>The claim holds under these, and for no others.</p><dl class="conditions">`)
	for _, c := range v.Conditions {
		value := markup(`<div><dt>%s</dt><dd>%s</dd></div>`)
		if !c.Known {
			value = `<div><dt>%s</dt><dd class="absent">%s</dd></div>`
		}
		d.put(value, c.Name, c.Value)
	}
	again := ""
	if v.Config != "" {
		again = ", and the configuration that does the run again"
	}
	d.put(`</dl></section>
<section id="redo" aria-labelledby="redo-h"><h2 id="redo-h">Redo it</h2><p>The command as it was given%s.</p><pre tabindex="0" aria-label="Command">%s</pre>`, again, v.Command)
	d.putNonEmpty(`<pre tabindex="0" aria-label="Configuration">%s</pre>`, v.Config)
	d.put("</section>\n")
}

// writeAnswer is the claim with its figures, and what a reader is warned of.
func (v *pageView) writeAnswer(d *document) {
	d.put(`<section id="answer" class="answer %s" aria-labelledby="claim">
<h1 id="claim">%s</h1>
`, v.Kind, withoutBreaks(v.Claim.Sentence))
	if v.Claim.HasInterval() {
		d.put(`<p class="interval">%s</p>`, withoutBreaks(v.Claim.Interval))
	}
	because := strings.Join(v.Claim.Because, ", ")
	if because == "" && !v.Several {
		because = "all checks passed"
	}
	d.put(`
<p class="verdict"><strong class="chip">%s</strong> %s</p>
`, string(v.Claim.Verdict), because)
	d.putEach("", "<p class=\"warning\">%s</p>\n", "", v.Warnings)
	d.put("\n")
	d.putEach("", "<p class=\"warning\">%s</p>\n", "", v.Missing)
	d.put("\n")
	if len(v.Figures) > 0 {
		d.put(`<dl class="figures in-%s">`, strconv.Itoa(columnsOf(len(v.Figures))))
		for _, f := range v.Figures {
			d.put(`<div><dt>%s</dt><dd><b>%s</b> <span>%s</span>`, f.Name, f.Value, f.Unit)
			d.putNonEmpty(`<small>%s</small>`, f.Note)
			d.put(`</dd></div>`)
		}
		d.put(`</dl>`)
	}
	d.put("\n")
	if !v.Claim.HasInterval() {
		d.putNonEmpty(`<p class="interval unknown">%s</p>`, withoutBreaks(v.Claim.Interval))
	}
	d.put("\n</section>\n")
}

// writeLimits writes what limits the target, and the way to decide what to do about it.
func (v *pageView) writeLimits(d *document) {
	d.put(`<section id="limits" aria-labelledby="limits-h"><h2 id="limits-h">What limits it</h2><ul class="limits">`)
	d.putEach("", `<li>%s</li>`, "", v.Limited)
	d.put(`</ul>`)
	if v.Decision != nil {
		d.put(`
<h3 id="decision">The way to decide, at %s</h3><ol class="decision" aria-labelledby="decision">`, v.Decision.Load)
		for _, step := range v.Decision.Steps {
			d.put(`<li class="%s"><strong>%s</strong> <span class="says">%s</span>`, step.State, step.Name, withoutBreaks(step.Says))
			if len(step.Branches) > 0 {
				d.put(`<ul>`)
				for _, b := range step.Branches {
					if b.Taken {
						d.put(`<li class="taken"><span class="sr">taken: </span>%s</li>`, b.Text)
					} else {
						d.put(`<li>%s</li>`, b.Text)
					}
				}
				d.put(`</ul>`)
			}
			d.putNonEmpty(`<p>%s</p>`, withoutBreaks(step.Then))
			d.put(`</li>`)
		}
		d.put(`</ol>`)
	}
	d.put("</section>\n")
}

// runChecks writes the outcome of the checks of all loads.
func (d *document) runChecks(o *report.Overview) {
	d.put(`<section id="run-checks" aria-labelledby="run-checks-h"><h2 id="run-checks-h">Checks of the run</h2>`)
	if len(o.Failed) > 0 {
		d.put(`<ul class="checks">`)
		for i := range o.Failed {
			c := &o.Failed[i]
			d.put(`<li><strong class="%s">%s</strong> %s: %s (limit %s), at %s of %s loads. %s</li>`,
				string(c.Status), string(c.Status), c.Name, c.Value, c.Limit, strconv.Itoa(c.Points), strconv.Itoa(o.Points), c.Advice)
		}
		d.put(`</ul>`)
	}
	d.put(`<p>%s of %s loads passed every check`, strconv.Itoa(o.Clean), strconv.Itoa(o.Points))
	if o.Aside > 0 {
		d.put(`; flags at %s that only showed the way, or lie beyond what is served, are left out`, strconv.Itoa(o.Aside))
	}
	if o.Invalid > 0 {
		d.put(`; %s`, o.DiscardedText())
	}
	d.put(`.</p></section>`)
}

// body is a point in full.
func (p *pagePoint) body(d *document) {
	d.put(`<div class="body"><ul class="facts">`)
	d.putNonEmpty(`<li>%s</li>`, joinFacts(p.Load))
	d.putNonEmpty(`<li>%s</li>`, joinFacts(p.Headline))
	d.putNonEmpty(`<li><strong class="fail">%s</strong></li>`, p.Outcome)
	if f := p.Failures; f != nil {
		d.put(`<li>%s`, f.Total)
		d.putEach(`<ul>`, `<li>%s</li>`, `</ul>`, f.Classes)
		d.put(`</li>`)
	}
	d.putEach("", `<li>%s</li>`, "", p.Remarks)
	for _, line := range p.Cost {
		d.put(`<li>%s</li>`, joinFacts(line))
	}
	for _, line := range p.Server {
		d.put(`<li>%s</li>`, joinFacts(line))
	}
	d.putNonEmpty(`<li>%s</li>`, joinFacts(p.Instrument))
	d.put("</ul>\n")
	d.sections(p.Sections)
	d.put(`</div>`)
}
