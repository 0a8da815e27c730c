package page

import (
	"strconv"
	"strings"
)

// What pages have in common.

// writeHead begins a page: what a browser is told of it, what it is of, and its answer, which
// the caller goes on with.
func (d *document) writeHead(s *shell, eyebrow, of string) {
	d.writeMarkup(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="pitot">
<link rel="icon" href="data:,">
<title>%s · Pitot</title>
<style>`, s.Policy, strings.TrimSuffix(s.Tab, "."))
	d.writeMarkup(s.CSS)
	d.writeMarkup(`</style>
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

// writeFoot ends a page.
func (d *document) writeFoot(s *shell) {
	d.writeMarkup(`</main>
<noscript><p class="warning">The charts need the script of this page. The numbers are in the tables.</p></noscript>
<div id="say" class="sr" aria-live="polite"></div>
<script type="application/json" id="data">`)
	d.writeMarkup(s.Data)
	d.writeMarkup(`</script>
<script>`)
	d.writeMarkup(s.JS)
	d.writeMarkup(`</script>
</body>
</html>
`)
}

// writeContents puts the links to sections, and what stands around them.
func (d *document) writeContents(before markup, sections []section, after markup) {
	d.writeMarkup(`<nav aria-label="Contents"><ul>`)
	d.writeMarkup(before)
	d.writeLinks(sections)
	d.writeMarkup(after)
	d.writeMarkup("</ul></nav>\n")
}

func (d *document) writeLinks(sections []section) {
	for i := range sections {
		d.writeMarkup(`<li><a href="#%s">%s</a></li>`, sections[i].ID, sections[i].Title)
	}
}

func (d *document) writeSections(list []section) {
	for i := range list {
		d.writeSection(&list[i])
	}
}

// writeRunSections puts sections that are of the page, not of one of many points.
func (d *document) writeRunSections(list []section) {
	d.writeMarkup(`<div class="whole">`)
	d.writeSections(list)
	d.writeMarkup("</div>\n")
}

func (d *document) writeSection(s *section) {
	if s.Top {
		d.writeMarkup(`<section id="%s" aria-labelledby="%s-h"><h2 id="%s-h">%s</h2>`, s.ID, s.ID, s.ID, s.Title)
	} else {
		d.writeMarkup(`<div class="part" id="%s"><h3 id="%s-h">%s</h3>`, s.ID, s.ID, s.Title)
	}
	d.putNonEmpty(`<p>%s</p>`, s.Text)
	if len(s.Charts) > 0 {
		d.writeCharts(s.Charts)
	} else {
		d.putNonEmpty(`<p class="absent">%s</p>`, s.Absent)
	}
	for _, t := range s.Tables {
		if len(t.Table.Rows) > 0 {
			d.writeTable(t)
		}
	}
	for _, t := range s.Folded {
		d.writeMarkup(`<details class="point"><summary>%s</summary><div class="body">`, t.Caption)
		d.writeTable(t)
		d.writeMarkup(`</div></details>`)
	}
	d.putEach(`<ul class="facts">`, `<li>%s</li>`, `</ul>`, s.Notes)
	if s.Top {
		d.writeMarkup(`</section>`)
	} else {
		d.writeMarkup(`</div>`)
	}
}

// mostWide is the number of columns that a table has room for at full size.
const mostWide = 12

// mostUnbroken is the number of rows of a table that stays on one page of paper.
const mostUnbroken = 14

func (d *document) writeTable(t captioned) {
	d.tables++ // a number makes its name unique on the page
	looks := ""
	if len(t.Table.Head) > mostWide {
		looks = " dense"
	}
	if len(t.Table.Rows) <= mostUnbroken {
		looks += " short"
	}
	d.writeMarkup(`<div class="scroll%s" tabindex="0" role="region" aria-label="%s"><table><caption><span>%s</span></caption><thead><tr>`, looks, "Table "+strconv.Itoa(d.tables)+": "+t.Caption, t.Caption)
	for _, name := range t.Table.Head {
		if name == "" {
			d.writeMarkup(`<td></td>`)
		}
		d.putNonEmpty(`<th scope="col">%s</th>`, name)
	}
	d.writeMarkup(`</tr></thead><tbody>`)
	for _, row := range t.Table.Rows {
		d.writeMarkup(`<tr>`)
		for i, cell := range row {
			if i == 0 {
				d.writeMarkup(`<th scope="row">%s</th>`, strings.TrimSpace(cell))
			} else if tone := toneClass(cell); tone != "" {
				d.writeMarkup(`<td class="%s">%s</td>`, tone, cell)
			} else {
				d.writeMarkup(`<td>%s</td>`, cell)
			}
		}
		d.writeMarkup(`</tr>`)
	}
	d.writeMarkup(`</tbody></table></div>`)
}

// writeCharts puts the places where the page's script draws.
func (d *document) writeCharts(list []*chart) {
	d.writeMarkup(`<div class="charts">`)
	for _, c := range list {
		wide, rows := "", ""
		if c.Wide {
			wide = " wide"
		}
		if c.Kind == "rows" {
			rows = " rows"
		}
		d.writeMarkup(`<figure class="chart%s" id="%s" aria-labelledby="%s-t"><figcaption><strong class="title" id="%s-t">%s</strong>`, wide, c.ID, c.ID, c.ID, c.Title)
		d.putNonEmpty(`<p>%s</p>`, c.Note)
		d.writeMarkup(`</figcaption><div class="plot%s" data-chart="%s"></div></figure>`, rows, c.ID)
	}
	d.writeMarkup(`</div>`)
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
