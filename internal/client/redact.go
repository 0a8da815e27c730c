package client

import (
	"encoding/base64"
	"encoding/hex"
	"html"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

const (
	redacted   = "[redacted]"
	longSecret = 8
	// A piece of a secret is removed from this many characters on, or from a third of the
	// secret on, if that is less; shorter ones than longSecret stay.
	longPiece = 16
	// fewestLetters is the smallest number of letters and digits of a piece.
	fewestLetters = 6
	// escapeLevels bounds how often one escape may be wrapped in another: JSON in JSON in a URL.
	escapeLevels = 4
	// maxRedacted bounds the work on one text. No message shows as much.
	maxRedacted = 256 << 10
)

// Redact removes secrets, one a line, from a text, and what a server may have made of them:
// escaped for JSON, URLs or HTML, in other case, spaced, in base64 or hexadecimal, or cut.
// Secrets shorter than four bytes are ignored, since they occur by chance; those shorter than
// eight are removed only as whole words, since the value of a header may be a plain word. What
// exceeds maxRedacted bytes is cut.
func Redact(s, secrets string) string {
	s = s[:min(len(s), maxRedacted)]
	if secrets == "" {
		return s
	}
	r := lastRedactor.Load()
	if r == nil || r.secrets != secrets {
		r = newRedactor(secrets)
		lastRedactor.Store(r)
	}
	for _, word := range r.words {
		s = redactWord(s, word)
	}
	for _, long := range r.long {
		s = strings.ReplaceAll(s, long, redacted)
	}
	return r.removePieces(s)
}

// lastRedactor is the one that was used last: a process has one target as a rule.
var lastRedactor atomic.Pointer[redactor]

// A redactor finds the pieces of some secrets in texts. It compares letters and digits alone,
// in lower case, since escapes and line breaks concern the others.
type redactor struct {
	secrets     string
	words, long []string
	forms       []string      // the letters of each secret, in each way that it may be written
	pieces      []pieceLength // by length
}

// pieceLength has the shortest pieces of a length that are removed, and where each is.
type pieceLength struct {
	length int
	places map[string]place
}

// place is a position in one of the forms.
type place struct{ form, at int }

func newRedactor(secrets string) *redactor {
	r := &redactor{secrets: secrets}
	for secret := range strings.SplitSeq(secrets, "\n") {
		switch {
		case len(secret) >= longSecret:
			r.long = append(r.long, secret)
			need := max(min((len(secret)+2)/3, longPiece), longSecret)
			for _, level := range levelsOf(secret) {
				r.addForm(level, need)
			}
			r.addForm(newLevel(hex.EncodeToString([]byte(secret))), 2*need)
			for before := range 3 { // bytes that stand before it in what was encoded
				encoded := base64.RawStdEncoding.EncodeToString([]byte("   "[:before] + secret))
				whole := len(encoded) // the characters at either end depend on what stands beside
				if (before+len(secret))%3 != 0 {
					whole--
				}
				r.addForm(newLevel(encoded[(before*4+2)/3:whole]), (need*4-2)/3)
			}
		case len(secret) >= 4:
			r.words = append(r.words, secret)
		}
	}
	return r
}

// addForm adds a way to write a secret, of which pieces of need characters are removed.
func (r *redactor) addForm(l level, need int) {
	letters, at := l.lettersAndDigits()
	form := len(r.forms)
	r.forms = append(r.forms, letters)
	end := 0
	for begin := range letters {
		for end = max(end, begin+fewestLetters); end <= len(letters) && at[end-1]+1-at[begin] < need; {
			end++
		}
		if end > len(letters) {
			return
		}
		p := r.piecesOf(end - begin)
		if _, known := p.places[letters[begin:end]]; !known {
			p.places[letters[begin:end]] = place{form, begin}
		}
	}
}

func (r *redactor) piecesOf(length int) *pieceLength {
	for i := range r.pieces {
		if r.pieces[i].length == length {
			return &r.pieces[i]
		}
	}
	r.pieces = append(r.pieces, pieceLength{length, map[string]place{}})
	return &r.pieces[len(r.pieces)-1]
}

// removePieces replaces the pieces of secrets in a text.
func (r *redactor) removePieces(s string) string {
	if len(s) < fewestLetters || len(r.pieces) == 0 {
		return s
	}
	var secret []bool // by byte of s, nil where there is no piece
	for _, l := range levelsOf(s) {
		letters, at := l.lettersAndDigits()
		covered := 0
		for begin := range letters {
			for _, p := range r.pieces {
				end := begin + p.length
				if end <= covered || end > len(letters) {
					continue
				}
				found, ok := p.places[letters[begin:end]]
				if !ok {
					continue
				}
				form := r.forms[found.form]
				for next := found.at + p.length; end < len(letters) && next < len(form) && letters[end] == form[next]; next++ {
					end++
				}
				if secret == nil {
					secret = make([]bool, len(s))
				}
				for i := l.begin[at[max(begin, covered-1)]]; i < l.end[at[end-1]]; i++ {
					secret[i] = true
				}
				covered = end
			}
		}
	}
	if secret == nil {
		return s
	}
	var out strings.Builder
	for i := range len(s) {
		switch {
		case !secret[i]:
			out.WriteByte(s[i])
		case i == 0 || !secret[i-1]:
			out.WriteString(redacted)
		}
	}
	return out.String()
}

// A level is a text with some levels of escapes undone, and where each byte was before.
type level struct {
	text       []byte
	begin, end []int32
}

func newLevel(s string) level {
	l := level{text: []byte(s), begin: make([]int32, len(s)), end: make([]int32, len(s))}
	for i := range len(s) {
		l.begin[i], l.end[i] = int32(i), int32(i+1)
	}
	return l
}

// levelsOf returns a text as it is, and with each further level of escapes undone.
func levelsOf(s string) []level {
	list := []level{newLevel(s)}
	for range escapeLevels {
		next, changed := list[len(list)-1].unescape()
		if !changed {
			break
		}
		list = append(list, next)
	}
	return list
}

// lettersAndDigits returns the letters and digits of a level, in lower case, and where each stands.
// Bytes beyond ASCII count as letters.
func (l level) lettersAndDigits() (string, []int) {
	out, at := make([]byte, 0, len(l.text)), make([]int, 0, len(l.text))
	for i, c := range l.text {
		switch {
		case 'A' <= c && c <= 'Z':
			c |= 0x20
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c >= utf8.RuneSelf:
		default:
			continue
		}
		out, at = append(out, c), append(at, i)
	}
	return string(out), at
}

// unescape undoes one level of escapes, and reports whether there was any.
func (l level) unescape() (out level, changed bool) {
	for i := 0; i < len(l.text); {
		plain, n := unescapeOne(l.text[i:])
		for j := range len(plain) {
			out.text = append(out.text, plain[j])
			out.begin, out.end = append(out.begin, l.begin[i]), append(out.end, l.end[i+n-1])
		}
		changed = changed || n > 1
		i += n
	}
	return out, changed
}

// unescapeOne returns what a text begins with, one character or an escape, and its length.
func unescapeOne(b []byte) (plain string, n int) {
	number := func(begin, digits int) (plain string, n int, ok bool) {
		if len(b) < begin+digits {
			return "", 0, false
		}
		x, err := strconv.ParseUint(string(b[begin:begin+digits]), 16, 32)
		if err != nil {
			return "", 0, false
		}
		if digits == 2 {
			return string([]byte{byte(x)}), begin + digits, true
		}
		return string(rune(x)), begin + digits, true
	}
	switch {
	case b[0] == '%':
		if plain, n, ok := number(1, 2); ok {
			return plain, n
		}
	case b[0] == '\\' && len(b) > 1:
		switch b[1] {
		case 'u':
			if plain, n, ok := number(2, 4); ok {
				return plain, n
			}
		case 'x':
			if plain, n, ok := number(2, 2); ok {
				return plain, n
			}
		case 'n', 'r', 't', 'b', 'f':
			return " ", 2
		case '\\', '/', '"', '\'':
			return string(b[1:2]), 2
		}
	case b[0] == '&':
		const longest = 12
		if end := strings.IndexByte(string(b[:min(len(b), longest)]), ';'); end > 0 {
			escape := string(b[:end+1])
			if plain := html.UnescapeString(escape); plain != escape {
				return plain, len(escape)
			}
		}
	}
	return string(b[:1]), 1
}

// redactWord removes a short secret where it is a whole word.
func redactWord(s, secret string) string {
	var out strings.Builder
	done := 0
	for {
		i := strings.Index(s[done:], secret)
		if i < 0 {
			out.WriteString(s[done:])
			return out.String()
		}
		begin := done + i
		end := begin + len(secret)
		before, _ := utf8.DecodeLastRuneInString(s[:begin])
		after, _ := utf8.DecodeRuneInString(s[end:])
		out.WriteString(s[done:begin])
		if isAlphanumeric(before) || isAlphanumeric(after) {
			out.WriteString(secret)
		} else {
			out.WriteString(redacted)
		}
		done = end
	}
}

func isAlphanumeric(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}
