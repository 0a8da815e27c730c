package tokenizer

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// class is the set of properties of a character that the expressions of tokenizers test: a set of
// bits.
type class uint16

const (
	letter      class = 1 << iota // \p{L}
	upper                         // \p{Lu}, \p{Lt}
	lower                         // \p{Ll}
	number                        // \p{N}
	mark                          // \p{M}
	nonspacing                    // \p{Mn}
	punctuation                   // \p{P}
	symbol                        // \p{S}
	space                         // \s: White_Space
	control                       // \p{Cc}, \p{Cf}, \p{Co}, as BERT's normalizer has them
	word                          // \w of Rust's regular expressions
	newline                       // \r, \n
	sign                          // punctuation, and of ASCII what looks like it ($, +, <), as BERT has it
	oldMark                       // \p{M} of StripAccents
	accent                        // \p{Mn} of BERT
	some                          // any character: those that Unicode has not assigned have nothing else
)

// classNames are the classes that unicode.txt names.
var classNames = map[string]class{
	"letter": letter, "upper": upper, "lower": lower, "number": number, "mark": mark,
	"punctuation": punctuation, "symbol": symbol, "control": control, "word": word, "sign": sign,
	"oldMark": oldMark, "accent": accent,
}

// classes has the class of every character. A flat table of 2 MB is the
// fastest there is, and only programs that load a tokenizer have it.
type classes [unicode.MaxRune + 1]class

var classTable = sync.OnceValue(func() *classes {
	t := new(classes)
	set := func(table *unicode.RangeTable, c class) {
		for _, r := range table.R16 {
			for x := uint32(r.Lo); x <= uint32(r.Hi); x += uint32(r.Stride) {
				t[x] |= c
			}
		}
		for _, r := range table.R32 {
			for x := r.Lo; x <= r.Hi; x += r.Stride {
				t[x] |= c
			}
		}
	}
	for _, of := range []struct {
		table *unicode.RangeTable
		class class
	}{
		{unicode.L, letter | word}, {unicode.Lu, upper}, {unicode.Lt, upper}, {unicode.Ll, lower},
		{unicode.N, number}, {unicode.M, mark | word}, {unicode.Mn, nonspacing}, {unicode.P, punctuation}, {unicode.S, symbol},
		{unicode.White_Space, space}, {unicode.Nd, word}, {unicode.Nl, word}, {unicode.Pc, word},
		{unicode.Other_Alphabetic, word}, {unicode.Join_Control, word},
		{unicode.Cc, control}, {unicode.Cf, control}, {unicode.Co, control},
	} {
		set(of.table, of.class)
	}
	for r, c := range t {
		t[r] |= some
		if c&punctuation != 0 || r < utf8.RuneSelf && c&symbol != 0 {
			t[r] |= sign
		}
		if c&mark != 0 {
			t[r] |= oldMark
		}
		if c&nonspacing != 0 {
			t[r] |= accent
		}
	}
	for kind, ranges := range characterRanges() {
		how, names, _ := strings.Cut(kind, ":")
		if how != "new" && how != "differ" {
			continue
		}
		c := class(0)
		for name := range strings.SplitSeq(names, ",") {
			c |= classNames[name]
		}
		for _, x := range ranges {
			for r := x.low; r <= x.high; r++ {
				if how == "new" {
					t[r] |= c
				} else {
					t[r] ^= c
				}
			}
		}
	}
	t['\r'] |= newline
	t['\n'] |= newline
	return t
})

// at gives the class of the character of s that begins at i, and how many bytes it has;
// beyond the end, nothing of 0 bytes.
func (t *classes) at(s []byte, i int) (class, int) {
	if i >= len(s) {
		return 0, 0
	}
	if b := s[i]; b < utf8.RuneSelf {
		return t[b], 1
	}
	r, n := utf8.DecodeRune(s[i:])
	return t[r], n
}

// runEnd gives the end of the run of characters from i on that have one of the bits of any
// and none of those of not.
func (t *classes) runEnd(s []byte, i int, any, not class) int {
	for i < len(s) {
		c, n := t.at(s, i)
		if c&any == 0 || c&not != 0 {
			break
		}
		i += n
	}
	return i
}
