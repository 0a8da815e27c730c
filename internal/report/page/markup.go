package page

import (
	"bytes"
	"html"
	"regexp"
	"strings"
	"unicode"
)

// markup is HTML that stands in the program, with %s where a text belongs. A string is
// none, so nothing that a user or a server wrote becomes markup.
type markup string

// flags matches a flag of a command, inside which a line must not break.
var flags = regexp.MustCompile(`--[a-z][a-z0-9]*(-[a-z0-9]+)*`)

// A document is HTML as it is written.
type document struct {
	bytes.Buffer
	tables int // written so far
}

// writeMarkup writes markup with a text in the place of each %s. Texts are escaped, as content
// and as values of attributes in double quotes, which are the only places for them.
func (d *document) writeMarkup(form markup, texts ...string) {
	inTag := false
	for _, text := range texts {
		before, after, _ := strings.Cut(string(form), "%s")
		d.WriteString(before)
		if at := strings.LastIndexAny(before, "<>"); at >= 0 {
			inTag = before[at] == '<'
		}
		text = html.EscapeString(strings.ReplaceAll(text, "\x00", "\uFFFD"))
		if !inTag && !strings.HasSuffix(before, "<title>") {
			text = flags.ReplaceAllString(text, `<span class="unbroken">$0</span>`)
		}
		d.WriteString(text)
		form = markup(after)
	}
	d.WriteString(string(form))
}

// removeControls takes out the characters that control the direction of text, or nothing at all.
func (d *document) removeControls() {
	plain := bytes.Map(func(r rune) rune {
		if unicode.IsPrint(r) || strings.ContainsRune("\n\t\u00a0", r) {
			return r
		}
		return ' '
	}, d.Bytes())
	d.Reset()
	d.Write(plain)
}

// putEach puts the same markup for every text, nothing around none.
func (d *document) putEach(before, form, after markup, texts []string) {
	if len(texts) == 0 {
		return
	}
	d.writeMarkup(before)
	for _, text := range texts {
		d.writeMarkup(form, text)
	}
	d.writeMarkup(after)
}

// putNonEmpty puts markup around a text, nothing where there is none.
func (d *document) putNonEmpty(form markup, text string) {
	if text != "" {
		d.writeMarkup(form, text)
	}
}
