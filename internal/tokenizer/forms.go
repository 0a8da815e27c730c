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
	for _, x := range sinceUnicode9 {
		for r := x[0]; r <= x[1]; r++ {
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
			if blocks[r>>8] && isAfterUnicode9(r) {
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

const firstLater = 0x300

// isAfterUnicode9 says that a character got its decomposition or its combining class after Unicode
// 9.
func isAfterUnicode9(r rune) bool {
	_, ok := slices.BinarySearchFunc(sinceUnicode9[:], r, func(x [2]rune, r rune) int {
		switch {
		case r < x[0]:
			return 1
		case r > x[1]:
			return -1
		}
		return 0
	})
	return ok
}

// sinceUnicode9 was found by asking Hugging Face's library (0.23.3) about each
// character that golang.org/x/text 0.14 (Unicode 15) decomposes or orders.
var sinceUnicode9 = [...][2]rune{
	{0x7FD, 0x7FD}, {0x898, 0x89F}, {0x8CA, 0x8D3}, {0x9FE, 0x9FE}, {0xC3C, 0xC3C}, {0xD3B, 0xD3C}, {0xEBA, 0xEBA}, {0x1715, 0x1715},
	{0x1ABF, 0x1ACE}, {0x1DF6, 0x1DFA}, {0x32FF, 0x32FF}, {0xA7F2, 0xA7F4}, {0xA82C, 0xA82C}, {0xAB69, 0xAB69}, {0x10781, 0x10785},
	{0x10787, 0x107B0}, {0x107B2, 0x107BA}, {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50},
	{0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A}, {0x11938, 0x11938},
	{0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34}, {0x11A47, 0x11A47}, {0x11A99, 0x11A99},
	{0x11D42, 0x11D42}, {0x11D44, 0x11D45}, {0x11D97, 0x11D97}, {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1}, {0x1E030, 0x1E06D},
	{0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}, {0x1F16C, 0x1F16C},
	{0x1FBF0, 0x1FBF9},
}
