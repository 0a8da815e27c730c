package tokenizer

import (
	"bytes"
	"encoding/binary"
	"unicode"
	"unicode/utf8"

	"pitot/internal/say"
)

// charsmap is the normalization that a SentencePiece model has in it, made
// beforehand: a trie of what is replaced, as a double array (Aoe 1989, in the form of
// the library darts-clone), and the texts that take its place, each ended by a 0.
type charsmap struct {
	units []uint32
	texts []byte
	plain [utf8.RuneSelf]bool // ASCII that is not replaced
}

func parseCharsmap(data []byte) (*charsmap, error) {
	if len(data) < 4 {
		return nil, damagedError("its charsmap ends too early")
	}
	size := binary.LittleEndian.Uint32(data)
	if uint64(size) > uint64(len(data)-4) || size%4 != 0 || size == 0 {
		return nil, damagedError("its charsmap ends too early")
	}
	m := &charsmap{texts: data[4+size:]}
	for text := range bytes.SplitSeq(m.texts, []byte{0}) {
		if len(text) > longestToken {
			return nil, damagedError("its charsmap has a text of %s bytes", say.Count(len(text)))
		}
	}
	for rest := data[4 : 4+size]; len(rest) > 0; rest = rest[4:] {
		m.units = append(m.units, binary.LittleEndian.Uint32(rest))
	}
	for b := range m.plain {
		_, length := m.match([]byte{byte(b)}, false)
		m.plain[b] = length == 0
	}
	return m, nil
}

// match gives what takes the place of the longest text that s begins with, or of the
// shortest, and the length of that; 0 where there is none.
func (m *charsmap) match(s []byte, longest bool) (text []byte, length int) {
	at, found := uint32(0), -1
	unit := m.units[0]
	step := func() { at ^= unit >> 10 << (unit & (1 << 9) >> 6) }
	step()
	for i, b := range s {
		if b == 0 {
			break
		}
		at ^= uint32(b)
		if at >= uint32(len(m.units)) {
			break
		}
		unit = m.units[at]
		if unit&(1<<31|0xFF) != uint32(b) {
			break
		}
		step()
		if unit>>8&1 == 1 && at < uint32(len(m.units)) {
			found, length = int(m.units[at]&(1<<31-1)), i+1
			if !longest {
				break
			}
		}
	}
	if found < 0 || found > len(m.texts) {
		return nil, 0
	}
	text = m.texts[found:]
	if end := bytes.IndexByte(text, 0); end >= 0 {
		text = text[:end]
	}
	return text, length
}

// normalizeGraphemes returns the normalizer that goes over a text as Hugging Face's library does. A
// grapheme cluster of less than 6 bytes becomes the text of the first entry that it begins with.
// Any other goes by code points, each in the same way.
func (m *charsmap) normalizeGraphemes() normalizer {
	return normalizerOf(func(t *classes, dst, s []byte) []byte {
		i := 0
		for i < len(s) && s[i] < utf8.RuneSelf && m.plain[s[i]] {
			i++
		}
		if i == len(s) {
			return nil
		}
		if i > 0 {
			i--
		}
		dst = append(dst, s[:i]...)
		for i < len(s) {
			checkGrowth(len(dst), len(s))
			end := clusterEnd(t, s, i)
			if end-i < 6 {
				if text, n := m.match(s[i:end], false); n > 0 {
					dst = append(dst, text...)
					i = end
					continue
				}
			}
			for i < end {
				_, n := utf8.DecodeRune(s[i:])
				if text, found := m.match(s[i:i+n], false); found > 0 {
					dst = append(dst, text...)
				} else {
					dst = append(dst, s[i:i+n]...)
				}
				i += n
			}
		}
		return dst
	})
}

// clusterEnd gives the end of the extended grapheme cluster that begins at i, as
// far as clusters of less than 6 bytes go (UAX #29): sequences of flags, of Hangul and of emoji
// are longer, and their parts are looked at one by one anyway.
func clusterEnd(t *classes, s []byte, i int) int {
	r, n := utf8.DecodeRune(s[i:])
	end := i + n
	if r < utf8.RuneSelf && (end == len(s) || s[end] < utf8.RuneSelf) {
		if r == '\r' && end < len(s) && s[end] == '\n' {
			end++
		}
		return end
	}
	for isPrepended(r) && end < len(s) {
		next, n := utf8.DecodeRune(s[end:])
		if breaksCluster(t, next) {
			return end
		}
		r = next
		end += n
	}
	if breaksCluster(t, r) {
		return end
	}
	for end < len(s) {
		next, n := utf8.DecodeRune(s[end:])
		if next < utf8.RuneSelf || !extendsCluster(t, next) {
			break
		}
		end += n
		if next == 0x200D && (r == '©' || r == '®') { // the two that emoji are made of and have 2 bytes
			if after, n := utf8.DecodeRune(s[end:]); n > 2 && t[after]&symbol != 0 {
				end += n
			}
		}
	}
	return end
}

// breaksCluster says that a cluster ends before and behind a character.
func breaksCluster(t *classes, r rune) bool {
	return t[r]&control != 0 && !extendsCluster(t, r) && !isPrepended(r) && !unicode.Is(unicode.Co, r) || r == 0x2028 || r == 0x2029
}

// extendsCluster says that a character belongs to the one before it: Extend, ZWJ, SpacingMark.
func extendsCluster(t *classes, r rune) bool {
	switch {
	case t[r]&mark != 0:
		return t[r]&nonspacing != 0 || !isAmong(characterRanges()["alone"], r)
	case r == 0x200D, 0x1F3FB <= r && r <= 0x1F3FF, r == 0x0E33, r == 0x0EB3:
		return true
	}
	return r >= 0x200C && unicode.Is(unicode.Other_Grapheme_Extend, r)
}

// isPrepended says that a character belongs to the one behind it.
func isPrepended(r rune) bool {
	return 0x600 <= r && unicode.Is(unicode.Prepended_Concatenation_Mark, r) ||
		r == 0x0D4E || r == 0x111C2 || r == 0x111C3 || r == 0x1193F || r == 0x11941 || r == 0x11A3A ||
		0x11A84 <= r && r <= 0x11A89 || r == 0x11D46 || r == 0x11F02
}
