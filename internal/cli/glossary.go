package cli

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"pitot/docs/reference"
)

// glossaryEntry is an entry of the glossary: its terms and what they mean.
type glossaryEntry struct {
	terms []string
	text  string
}

var (
	entryHead    = regexp.MustCompile(`(?s)^\*\*(.+?)\.\*\* (.*)$`)
	markdownLink = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	linkAside    = regexp.MustCompile(` \(\[[^\]]*\]\([^)]*\)\)`) // a link in brackets by itself
)

// glossary returns the entries of the glossary, without their links.
func glossary() (list []glossaryEntry) {
	for paragraph := range strings.SplitSeq(reference.Glossary, "\n\n") {
		m := entryHead.FindStringSubmatch(strings.Join(strings.Fields(paragraph), " "))
		if m == nil {
			continue
		}
		text := markdownLink.ReplaceAllString(linkAside.ReplaceAllString(m[2], ""), "$1")
		list = append(list, glossaryEntry{strings.Split(m[1], ", "), strings.NewReplacer("`", "", "*", "").Replace(text)})
	}
	return list
}

// writeGlossary writes the entries of the glossary that a word names, and reports whether there are
// any.
func writeGlossary(w io.Writer, word string) bool {
	found := false
	same := func(term string) bool { return strings.EqualFold(strings.ReplaceAll(term, " ", "-"), word) }
	for _, e := range glossary() {
		if slices.ContainsFunc(e.terms, same) {
			fmt.Fprintln(w, strings.Join(e.terms, ", "))
			writeLines(w, 1, "", e.text)
			found = true
		}
	}
	return found
}
