package page

import "strings"

// What pages have in common.

// head begins a page: what a browser is told of it, what it is of, and its answer, which
// the caller goes on with.
func (d *document) head(s *shell, eyebrow, of string) {
	d.put(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="pitot">
<link rel="icon" href="data:,">
<title>%s · Pitot</title>
<style>`, s.Policy, s.Tab)
	d.put(s.CSS)
	d.put(`</style>
</head>
<body>
<a class="skip" href="#answer">Skip to the answer</a>
<header class="top">
<p class="eyebrow">Pitot · %s</p>
<p class="target">%s</p>
</header>
<main>
`, eyebrow, of)
}

// foot ends a page.
func (d *document) foot(s *shell) {
	d.put(`</main>
<noscript><p class="warning">The charts need the script of this page. The numbers are in the tables.</p></noscript>
<div id="say" class="sr" aria-live="polite"></div>
<script type="application/json" id="data">`)
	d.put(s.Data)
	d.put(`</script>
<script>`)
	d.put(s.JS)
	d.put(`</script>
</body>
</html>
`)
}

// contents puts the links to sections, and what stands around them.
func (d *document) contents(before markup, sections []section, after markup) {
	d.put(`<nav aria-label="Contents"><ul>`)
	d.put(before)
	d.links(sections)
	d.put(after)
	d.put("</ul></nav>\n")
}

func (d *document) links(sections []section) {
	for i := range sections {
		d.put(`<li><a href="#%s">%s</a></li>`, sections[i].ID, sections[i].Title)
	}
}

func (d *document) sections(list []section) {
	for i := range list {
		d.section(&list[i])
	}
}

// whole puts sections that are of the page, not of one of many points.
func (d *document) whole(list []section) {
	d.put(`<div class="whole">`)
	d.sections(list)
	d.put("</div>\n")
}

func (d *document) section(s *section) {
	if s.Top {
		d.put(`<section id="%s" aria-labelledby="%s-h"><h2 id="%s-h">%s</h2>`, s.ID, s.ID, s.ID, s.Title)
	} else {
		d.put(`<div class="part" id="%s"><h3 id="%s-h">%s</h3>`, s.ID, s.ID, s.Title)
	}
	d.putNonEmpty(`<p>%s</p>`, s.Text)
	if len(s.Charts) > 0 {
		d.charts(s.Charts)
	} else {
		d.putNonEmpty(`<p class="absent">%s</p>`, s.Absent)
	}
	for _, t := range s.Tables {
		if len(t.Table.Rows) > 0 {
			d.table(t)
		}
	}
	for _, t := range s.Folded {
		d.put(`<details class="point"><summary>%s</summary><div class="body">`, t.Caption)
		d.table(t)
		d.put(`</div></details>`)
	}
	d.putEach(`<ul class="facts">`, `<li>%s</li>`, `</ul>`, s.Notes)
	if s.Top {
		d.put(`</section>`)
	} else {
		d.put(`</div>`)
	}
}

func (d *document) table(t captioned) {
	d.put(`<div class="scroll" tabindex="0" role="region" aria-label="%s"><table><caption><span>%s</span></caption><thead><tr>`, t.Caption, t.Caption)
	for _, name := range t.Table.Head {
		if name == "" {
			d.put(`<td></td>`)
		}
		d.putNonEmpty(`<th scope="col">%s</th>`, name)
	}
	d.put(`</tr></thead><tbody>`)
	for _, row := range t.Table.Rows {
		d.put(`<tr>`)
		for i, cell := range row {
			if i == 0 {
				d.put(`<th scope="row">%s</th>`, strings.TrimSpace(cell))
			} else if tone := toneClass(cell); tone != "" {
				d.put(`<td class="%s">%s</td>`, tone, cell)
			} else {
				d.put(`<td>%s</td>`, cell)
			}
		}
		d.put(`</tr>`)
	}
	d.put(`</tbody></table></div>`)
}

// charts puts the places where the page's script draws.
func (d *document) charts(list []*chart) {
	d.put(`<div class="charts">`)
	for _, c := range list {
		wide, rows := "", ""
		if c.Wide {
			wide = " wide"
		}
		if c.Kind == "rows" {
			rows = " rows"
		}
		d.put(`<figure class="chart%s" id="%s" aria-labelledby="%s-t"><figcaption><strong class="title" id="%s-t">%s</strong>`, wide, c.ID, c.ID, c.ID, c.Title)
		d.putNonEmpty(`<p>%s</p>`, c.Note)
		d.put(`</figcaption><div class="plot%s" data-chart="%s"></div></figure>`, rows, c.ID)
	}
	d.put(`</div>`)
}

// joinFacts puts what belongs together on one line.
func joinFacts(list []string) string { return strings.Join(list, " · ") }

// copyableLines are those of what a user copies.
func copyableLines(list []string) string {
	var b strings.Builder
	for _, line := range list {
		b.WriteString(line + "\n")
	}
	return b.String()
}
