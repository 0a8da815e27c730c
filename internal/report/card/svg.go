package card

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// WriteSVG writes a card as an SVG that follows the reader's light or dark theme. It needs no font:
// texts have the widths that they were laid out with.
func (c *Card) WriteSVG(w io.Writer) error {
	var s svg
	s.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d"`, width, height)
	s.printf(` role="img" aria-labelledby="title desc">`)
	s.printf("\n<title id=\"title\">%s</title>\n", escapeXML(c.Headline))
	s.printf("<desc id=\"desc\">%s</desc>\n", escapeXML(c.plainText()))
	s.printf("<style>\n%s%s", typeRules, light.rules())
	s.printf("@media (prefers-color-scheme: dark) {\n%s}\n</style>\n", dark.rules())
	c.draw(&s)
	s.printf("</svg>\n")
	_, err := io.WriteString(w, s.String())
	return err
}

// typeRules are the style rules of texts.
const typeRules = `text { font-family: system-ui, sans-serif; white-space: pre; }
.bold { font-weight: 700; }
.mono { font-family: ui-monospace, monospace; }
`

// rules are the style rules of a theme.
func (t *theme) rules() string {
	var b strings.Builder
	for p, name := range paintName {
		fmt.Fprintf(&b, ".%[1]s { fill: #%06[2]x; } .%[1]s-line { stroke: #%06[2]x; }\n",
			name, t[p])
	}
	return b.String()
}

// svg is a canvas that writes SVG elements.
type svg struct{ strings.Builder }

func (s *svg) printf(format string, args ...any) { fmt.Fprintf(s, format, args...) }

// short writes a coordinate to a tenth.
func short(x float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(x, 'f', 1, 64), ".0")
}

func (s *svg) rect(x, y, w, h, radius float64, p paint) {
	s.printf(`<rect class="%s" x="%s" y="%s" width="%s" height="%s" rx="%s"/>`+"\n",
		paintName[p], short(x), short(y), short(w), short(h), short(radius))
}

func (s *svg) line(points []point, width float64, p paint) {
	s.printf(`<polyline class="%s-line" fill="none" stroke-width="%s"`, paintName[p], short(width))
	s.printf(` stroke-linejoin="round" points="`)
	for i, at := range points {
		if i > 0 {
			s.printf(" ")
		}
		s.printf("%s,%s", short(at.x), short(at.y))
	}
	s.printf("\"/>\n")
}

func (s *svg) dot(at point, radius float64, p paint) {
	s.printf(`<circle class="%s" cx="%s" cy="%s" r="%s"/>`+"\n",
		paintName[p], short(at.x), short(at.y), short(radius))
}

func (s *svg) text(at point, f face, size float64, p paint, text string) {
	if text == "" {
		return
	}
	class, w := paintName[p]+[...]string{"", " bold", " mono"}[f], textWidth(f, size, text)
	s.printf(`<text class="%s" x="%s" y="%s"`, class, short(at.x), short(at.y))
	s.printf(` font-size="%s" textLength="%s"`, short(size), short(w))
	s.printf(` lengthAdjust="spacingAndGlyphs">%s</text>`+"\n", escapeXML(text))
}

// escapeXML escapes a text for an element or an attribute.
func escapeXML(s string) string { return xmlEscapes.Replace(s) }

var xmlEscapes = strings.NewReplacer(
	"&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;",
)
