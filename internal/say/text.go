package say

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// PlainLine makes one printable line of any text: what servers say may hold line
// breaks and escape sequences, which are no business of a terminal.
func PlainLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
	return strings.Join(strings.Fields(s), " ")
}

// Truncate shortens a text to n characters, the last of which says so.
func Truncate(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return strings.TrimRight(string([]rune(s)[:n-1]), " ") + "…"
}

// Sentence makes one of a phrase: capital letter and full stop.
func Sentence(s string) string {
	if s == "" {
		return ""
	}
	first, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[n:] + "."
}

// List joins the parts of an enumeration: "a, b and c".
func List(parts ...string) string {
	if n := len(parts); n > 1 {
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
	return strings.Join(parts, "")
}
