package tokenizer

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// normalForm is one of Unicode's normalization forms, as Hugging Face's library has it: of Unicode
// 9. What was given a decomposition or a combining class later is left as it is.
func normalForm(f norm.Form) normalizer {
	var blocks [(unicode.MaxRune + 1) >> 8]bool // of 256 characters that have one of those
	later := characterRanges()["decomposed"]
	for _, x := range later {
		for r := x.low; r <= x.high; r++ {
			blocks[r>>8] = true
		}
	}
	return normalizerOf(func(t *classes, dst, s []byte) []byte {
		if f.QuickSpan(s) == len(s) {
			return nil
		}
		done, plain, marks := 0, true, 0
		flush := func(end int) {
			if plain && len(dst) == 0 {
				dst = f.Append(dst, s[done:end]...)
			} else if plain {
				dst = append(dst, f.Bytes(s[done:end])...) // Append would order marks across the boundary
			} else {
				dst = normalizeSlowly(f, dst, s[done:end])
			}
			plain = true
		}
		for i := 0; i < len(s); {
			r, n := utf8.DecodeRune(s[i:])
			if r < firstLater {
				marks = 0
				i += n
				continue
			}
			if blocks[r>>8] && isAmong(later, r) {
				flush(i)
				dst = append(dst, s[i:i+n]...)
				done, marks = i+n, 0
			} else if t[r]&mark != 0 && f.Properties(s[i:]).CCC() != 0 {
				if marks++; marks > mostMarks {
					plain = false
				}
			} else {
				marks = 0
			}
			i += n
		}
		flush(len(s))
		return dst
	})
}

// mostMarks is up to where the library norm follows the standard to the
// letter: in a longer run of combining marks it puts a character of its own (the
// Stream-Safe Text Format, UAX #15).
const mostMarks = 20

// normalizeSlowly normalizes by the definition: decompose, order, compose.
func normalizeSlowly(f norm.Form, dst, s []byte) []byte {
	whole := norm.NFD
	if f == norm.NFKC || f == norm.NFKD {
		whole = norm.NFKD
	}
	type char struct {
		r   rune
		ccc uint8
	}
	var chars []char
	for i := 0; i < len(s); {
		_, n := utf8.DecodeRune(s[i:])
		for _, r := range string(whole.Bytes(s[i : i+n])) {
			chars = append(chars, char{r, whole.PropertiesString(string(r)).CCC()})
		}
		i += n
	}
	for i := 0; i < len(chars); {
		end := i + 1
		for end < len(chars) && chars[end].ccc != 0 {
			end++
		}
		if chars[i].ccc != 0 {
			i--
		}
		slices.SortStableFunc(chars[i+1:end], func(a, b char) int { return int(a.ccc) - int(b.ccc) })
		i = end
	}
	if f == norm.NFC || f == norm.NFKC {
		out := chars[:0]
		starter := -1
		for _, c := range chars {
			if starter >= 0 {
				last := out[len(out)-1]
				free := len(out)-1 == starter || last.ccc != 0 && last.ccc < c.ccc
				pair := []rune(norm.NFC.String(string([]rune{out[starter].r, c.r})))
				if free && len(pair) == 1 {
					out[starter].r = pair[0]
					continue
				}
			}
			out = append(out, c)
			if c.ccc == 0 {
				starter = len(out) - 1
			}
		}
		chars = out
	}
	for _, c := range chars {
		dst = utf8.AppendRune(dst, c.r)
	}
	return dst
}

// firstLater is where combining marks begin; no character before them got a decomposition later.
const firstLater = 0x300
