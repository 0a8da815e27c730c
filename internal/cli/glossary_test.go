package cli

import (
	"bytes"
	"strings"
	"testing"

	"pitot/docs/reference"
)

// Every entry of the glossary can be shown, as plain text.
func TestGlossary(t *testing.T) {
	entries := glossary()
	if n := strings.Count("\n"+reference.Glossary, "\n**"); len(entries) != n {
		t.Errorf("%d entries of %d are read", len(entries), n)
	}
	for _, e := range entries {
		if e.text == "" || strings.ContainsAny(e.text, "`*[]") {
			t.Errorf("%q: %q", e.terms, e.text)
		}
		for _, term := range e.terms {
			var b bytes.Buffer
			if !writeGlossary(&b, strings.ToLower(strings.ReplaceAll(term, " ", "-"))) || !strings.Contains(b.String(), term) {
				t.Errorf("nothing is shown of %q", term)
			}
		}
	}
	if writeGlossary(&bytes.Buffer{}, "no-such-word") {
		t.Error("a word that is not there is found")
	}
}
