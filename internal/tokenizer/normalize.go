package tokenizer

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// normalizer is a step that changes a text before it is taken apart. As with
// preTokenizer, an encoder makes its own of it, which keeps a buffer: what it
// returns is good until it is called again. cut says that the text no longer
// begins with what it began with.
type normalizer func(t *classes, work *budget) func(s []byte) (out []byte, cut bool)

// normalizerOf makes a normalizer of a function that appends the new text to dst, or gives nil
// where nothing changes.
func normalizerOf(with func(t *classes, dst, s []byte) []byte) normalizer {
	return func(t *classes, work *budget) func([]byte) ([]byte, bool) {
		buf := make([]byte, 0, 64)
		return func(s []byte) ([]byte, bool) {
			out := with(t, buf[:0], s)
			if out == nil {
				return s, false
			}
			buf = out
			return out, false
		}
	}
}

// runeNormalizer is a normalizer that looks at each character alone: becomes appends
// what one becomes that is not the same.
func runeNormalizer(same func(class, rune) bool, becomes func(dst []byte, c class, r rune) []byte) normalizer {
	return func(t *classes, work *budget) func([]byte) ([]byte, bool) {
		var plain [utf8.RuneSelf]bool // ASCII that is the same
		for r := range rune(utf8.RuneSelf) {
			plain[r] = same(t[r], r)
		}
		return normalizerOf(func(t *classes, dst, s []byte) []byte {
			done := 0
			for i := 0; i < len(s); {
				if s[i] < utf8.RuneSelf && plain[s[i]] {
					i++
					continue
				}
				r, n := utf8.DecodeRune(s[i:])
				if c := t[r]; !same(c, r) {
					dst = becomes(append(dst, s[done:i]...), c, r)
					done = i + n
				}
				i += n
			}
			if done == 0 {
				return nil
			}
			return append(dst, s[done:]...)
		})(t, work)
	}
}

// lowercase goes by single characters, as Rust's does: no final sigma, and İ is i and a dot.
var lowercase = runeNormalizer(
	func(c class, r rune) bool { return c&(upper|number|symbol) == 0 || unicode.ToLower(r) == r },
	func(dst []byte, _ class, r rune) []byte {
		if r == 'İ' {
			return append(dst, "i̇"...)
		}
		return utf8.AppendRune(dst, unicode.ToLower(r))
	})

// dropCharacters leaves characters of a kind out.
func dropCharacters(kind func(class, rune) bool) normalizer {
	return reportLeading(kind, runeNormalizer(
		func(c class, r rune) bool { return !kind(c, r) },
		func(dst []byte, _ class, _ rune) []byte { return dst }))
}

// reportLeading tells of a normalizer that leaves a kind of character out when it left out the
// first.
func reportLeading(kind func(class, rune) bool, n normalizer) normalizer {
	return func(t *classes, work *budget) func([]byte) ([]byte, bool) {
		change := n(t, work)
		return func(s []byte) ([]byte, bool) {
			out, _ := change(s)
			r, n := utf8.DecodeRune(s)
			return out, n > 0 && kind(t[r], r)
		}
	}
}

var withoutMarks = dropCharacters(func(c class, _ rune) bool { return c&oldMark != 0 })

// cleaned is BERT's: no control characters, and every blank a space.
var cleaned = reportLeading(isMeaningless, runeNormalizer(
	func(c class, r rune) bool { return r == ' ' || c&space == 0 && !isMeaningless(c, r) },
	func(dst []byte, c class, r rune) []byte {
		if isMeaningless(c, r) {
			return dst
		}
		return append(dst, ' ')
	}))

func isMeaningless(c class, r rune) bool {
	return c&control != 0 && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFD
}

func isIdeograph(r rune) bool {
	return r >= 0x3400 && (0x4E00 <= r && r <= 0x9FFF || 0x3400 <= r && r <= 0x4DBF || 0x20000 <= r && r <= 0x2A6DF ||
		0x2A700 <= r && r <= 0x2B73F || 0x2B740 <= r && r <= 0x2B81F || 0x2B920 <= r && r <= 0x2CEAF ||
		0xF900 <= r && r <= 0xFAFF || 0x2F800 <= r && r <= 0x2FA1F)
}

// spaced puts spaces around ideographs, which are words to BERT.
var spaced = runeNormalizer(
	func(_ class, r rune) bool { return !isIdeograph(r) },
	func(dst []byte, _ class, r rune) []byte {
		return append(utf8.AppendRune(append(dst, ' '), r), ' ')
	})

var withoutAccents = dropCharacters(func(c class, _ rune) bool { return c&accent != 0 })

// replace puts content in the place of each match.
func replace(at finder, content string) normalizer {
	if l, ok := at.(literal); ok && len(l) == 1 {
		return normalizerOf(func(_ *classes, dst, s []byte) []byte {
			if bytes.IndexByte(s, l[0]) < 0 {
				return nil
			}
			checkGrowth(len(s)+bytes.Count(s, l)*len(content), len(s))
			return replaceByte(dst, s, l[0], content)
		})
	}
	return func(t *classes, work *budget) func([]byte) ([]byte, bool) {
		at := limitFinder(at, work)
		return normalizerOf(func(t *classes, dst, s []byte) []byte {
			begin, end := at.find(t, s, 0)
			if begin == end {
				return nil
			}
			done := 0
			for begin < end {
				dst = append(append(dst, s[done:begin]...), content...)
				checkGrowth(len(dst), len(s))
				done = end
				begin, end = at.find(t, s, done)
			}
			return append(dst, s[done:]...)
		})(t, work)
	}
}

func prepend(text string) normalizer {
	return normalizerOf(func(_ *classes, dst, s []byte) []byte {
		if len(s) == 0 {
			return nil
		}
		return append(append(dst, text...), s...)
	})
}

func strip(left, right bool) normalizer {
	return func(t *classes, work *budget) func([]byte) ([]byte, bool) {
		blank := func(r rune) bool { return t[r]&space != 0 }
		return func(s []byte) ([]byte, bool) {
			n := len(s)
			if left {
				s = bytes.TrimLeftFunc(s, blank)
			}
			cut := len(s) < n
			if right {
				s = bytes.TrimRightFunc(s, blank)
			}
			return s, cut
		}
	}
}

// spaceless is SentencePiece's rule for what is no text and what is no space but
// stands for one.
var spaceless = runeNormalizer(
	func(_ class, r rune) bool { return spacelessOf(r) == r },
	func(dst []byte, _ class, r rune) []byte {
		if x := spacelessOf(r); x >= 0 {
			return utf8.AppendRune(dst, x)
		}
		return dst
	})

// spacelessOf gives what becomes of a character: itself, a space, or -1, nothing.
func spacelessOf(r rune) rune {
	switch {
	case 1 <= r && r <= 8, r == 0x0B, 0x0E <= r && r <= 0x1F, r == 0x7F, r == 0x8F, r == 0x9F:
		return -1
	case r == '\t', r == '\n', r == '\f', r == '\r', r == 0x1680, 0x200B <= r && r <= 0x200F,
		r == 0x2028, r == 0x2029, r == 0x2581, r == 0xFEFF, r == 0xFFFD:
		return ' '
	}
	return r
}
