package api

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// errJSON is any departure from strict JSON; callers add what was read.
var errJSON = errors.New("invalid JSON")

// scanner walks one JSON text without building it: an event of a stream is
// read once, and only the few fields that are measured are looked at.
type scanner struct {
	b []byte
	i int
}

func (s *scanner) skipSpace() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\n', '\r', '\t':
			s.i++
		default:
			return
		}
	}
}

// peek gives the next significant byte, 0 at the end.
func (s *scanner) peek() byte {
	if s.i < len(s.b) && s.b[s.i] > ' ' { // servers write few spaces
		return s.b[s.i]
	}
	s.skipSpace()
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

// takeByte consumes c if it is next.
func (s *scanner) takeByte(c byte) bool {
	if s.peek() == c {
		s.i++
		return true
	}
	return false
}

// rawString reads a string and gives what stands between its quotes, escapes left
// as they are.
func (s *scanner) rawString() (raw []byte, ok bool) {
	if !s.takeByte('"') {
		return nil, false
	}
	b, start := s.b, s.i
	n := stringLength(b[start:], 0)
	if n < 0 {
		s.i = len(b)
		return nil, false
	}
	s.i += n + 1
	return b[start : start+n], true
}

// stringLength returns the length of the string that b begins with, without its opening quote. It
// returns -1 where there is none. The first known bytes are known to be part of one.
func stringLength(b []byte, known int) int {
	for i := known; ; {
		if i += plainLength(b[i:]); i == len(b) {
			return -1
		}
		switch b[i] {
		case '"':
			return i
		case '\\':
			s := scanner{b: b, i: i}
			if !s.escape() {
				return -1
			}
			i = s.i
		default:
			return -1
		}
	}
}

// plainLength returns the number of bytes at the beginning of b that stand for themselves in a
// string. These are at least a space, and neither a quote nor a backslash. It tests eight at once.
// (A byte of w is below n where subtracting n borrows and its high bit is not set: S. E. Anderson,
// Bit Twiddling Hacks, "Determine if a word has a byte less than n". With their second bit flipped,
// controls and the quote are those below 0x21. A borrow can make later bytes look as if they were
// below, but none before it: the first one is right.)
func plainLength(b []byte) (n int) {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for ; n+8 <= len(b); n += 8 {
		w := binary.LittleEndian.Uint64(b[n:])
		controls, backslash := (w^ones*0x02)-ones*0x21, (w^ones*'\\')-ones
		if others := (controls | backslash) &^ w & high; others != 0 {
			return n + bits.TrailingZeros64(others)/8
		}
	}
	for n < len(b) && b[n] >= ' ' && b[n] != '"' && b[n] != '\\' {
		n++
	}
	return n
}

// escape checks one escape sequence.
func (s *scanner) escape() bool {
	if s.i+1 >= len(s.b) {
		return false
	}
	switch s.b[s.i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.i += 2
		return true
	case 'u':
		if s.i+6 > len(s.b) {
			return false
		}
		for _, c := range s.b[s.i+2 : s.i+6] {
			if !isHex(c) {
				return false
			}
		}
		s.i += 6
		return true
	}
	return false
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// eachKey calls field for every key; field must consume the value.
func (s *scanner) eachKey(field func(key []byte) bool) bool {
	if !s.takeByte('{') {
		return false
	}
	if s.takeByte('}') {
		return true
	}
	for {
		key, ok := s.rawString()
		if !ok || !s.takeByte(':') || !field(key) {
			return false
		}
		if s.takeByte('}') {
			return true
		}
		if !s.takeByte(',') {
			return false
		}
	}
}

// eachElement calls element for every element; element must consume it.
func (s *scanner) eachElement(element func() bool) bool {
	if !s.takeByte('[') {
		return false
	}
	if s.takeByte(']') {
		return true
	}
	for {
		if !element() {
			return false
		}
		if s.takeByte(']') {
			return true
		}
		if !s.takeByte(',') {
			return false
		}
	}
}

// maxNesting bounds the nesting of values that are skipped: the limit of
// encoding/json.
const maxNesting = 10_000

// skipValue consumes any value. Nesting is followed without recursion, so that no
// input can exhaust the stack.
func (s *scanner) skipValue() bool {
	if c := s.peek(); c != '{' && c != '[' {
		return s.scalar()
	}
	var nest []byte // closing brackets that are due
	var small [32]byte
	nest = small[:0]
	for {
		switch c := s.peek(); c {
		case '{', '[':
			s.i++
			end := c + 2 // '}' and ']' follow their openers by two
			if s.takeByte(end) {
				break
			}
			if len(nest) == maxNesting {
				return false
			}
			nest = append(nest, end)
			if end == '}' && !s.key() {
				return false
			}
			continue
		default:
			if !s.scalar() {
				return false
			}
		}
		for { // a value has ended: close what it was the last of
			if len(nest) == 0 {
				return true
			}
			end := nest[len(nest)-1]
			if s.takeByte(end) {
				nest = nest[:len(nest)-1]
				continue
			}
			if !s.takeByte(',') || end == '}' && !s.key() {
				return false
			}
			break
		}
	}
}

// rawValue consumes any value and gives it as it stands.
func (s *scanner) rawValue() (raw []byte, ok bool) {
	s.skipSpace()
	from := s.i
	ok = s.skipValue()
	return s.b[from:s.i], ok
}

func (s *scanner) key() bool {
	if i := s.i; i < len(s.b) && s.b[i] == '"' { // as nearly all are
		if i += 1 + plainLength(s.b[i+1:]); i+1 < len(s.b) && s.b[i] == '"' && s.b[i+1] == ':' {
			s.i = i + 2
			return true
		}
	}
	_, ok := s.rawString()
	return ok && s.takeByte(':')
}

// scalar consumes a string, number or literal.
func (s *scanner) scalar() bool {
	switch c := s.peek(); c {
	case '"':
		n := stringLength(s.b[s.i+1:], 0)
		s.i += n + 2
		return n >= 0
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		_, _, ok := s.number()
		return ok
	}
}

func (s *scanner) literal(word string) bool {
	s.skipSpace()
	if len(s.b)-s.i < len(word) || string(s.b[s.i:s.i+len(word)]) != word {
		return false
	}
	s.i += len(word)
	return true
}

// null consumes null if it is next.
func (s *scanner) null() bool { return s.peek() == 'n' && s.literal("null") }

// number reads a number strictly by JSON's grammar. n is its integer part,
// saturated; whole says that it has no other and no exponent.
func (s *scanner) number() (n int64, whole, ok bool) {
	s.skipSpace()
	neg := s.i < len(s.b) && s.b[s.i] == '-'
	if neg {
		s.i++
	}
	start := s.i
	for s.i < len(s.b) && '0' <= s.b[s.i] && s.b[s.i] <= '9' {
		if n < 1<<53 {
			n = n*10 + int64(s.b[s.i]-'0')
		}
		s.i++
	}
	digits := s.i - start
	if digits == 0 || digits > 1 && s.b[start] == '0' {
		return 0, false, false
	}
	whole = true
	if s.i < len(s.b) && s.b[s.i] == '.' {
		whole = false
		s.i++
		if !s.digits() {
			return 0, false, false
		}
	}
	if s.i < len(s.b) && (s.b[s.i] == 'e' || s.b[s.i] == 'E') {
		whole = false
		s.i++
		if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		if !s.digits() {
			return 0, false, false
		}
	}
	if neg {
		n = -n
	}
	return n, whole, true
}

func (s *scanner) digits() bool {
	start := s.i
	for s.i < len(s.b) && '0' <= s.b[s.i] && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > start
}

// Impossible is a number that counts nothing: negative, broken, or beyond
// what 32 bits hold.
const Impossible = -2

// countNumber reads a number that counts something. It takes a number in quotes as a
// number; null and values of other types change nothing. 1.28e2 is 128 as JSON has it.
func (s *scanner) countNumber(into *int32) bool {
	switch c := s.peek(); {
	case c == '"':
		raw, ok := s.rawString()
		if n, digits := plainNumber(raw); digits > 0 && digits == len(raw) {
			*into = n
		}
		return ok
	case c != '-' && (c < '0' || '9' < c):
		return s.skipValue()
	}
	from := s.i
	n, whole, ok := s.number()
	if !ok {
		return false
	}
	if !whole {
		x, err := strconv.ParseFloat(string(s.b[from:s.i]), 64)
		if n = Impossible; err == nil && x == math.Trunc(x) && math.Abs(x) <= math.MaxInt32 {
			n = int64(x)
		}
	}
	if n < 0 || n > math.MaxInt32 {
		n = Impossible
	}
	*into = int32(n)
	return true
}

// textLen is the length in UTF-8 bytes of the text that a raw JSON string
// means. It allocates nothing: line breaks and quotes come in every answer.
func textLen(raw []byte) (n int) {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 || i+1 >= len(raw) {
			return n + len(raw)
		}
		n += i
		r := escapedRune(raw[i:])
		if r < 0 {
			n, raw = n+1, raw[i+2:]
			continue
		}
		raw = raw[i+6:]
		if utf16.IsSurrogate(r) {
			if pair := utf16.DecodeRune(r, escapedRune(raw)); pair != utf8.RuneError {
				r, raw = pair, raw[6:]
			} else {
				r = utf8.RuneError // a half without its other half
			}
		}
		n += utf8.RuneLen(r)
	}
}

// escapedRune gives the code unit of a \u escape that b begins with, -1 if it
// begins with none.
func escapedRune(b []byte) (r rune) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	for _, c := range b[2:6] {
		if c > '9' {
			c = c&^0x20 - 'A' + '0' + 10
		}
		r = r<<4 | rune(c-'0')
	}
	return r
}

var quote = []byte{'"'}

// unquote gives the text of a raw JSON string; invalid UTF-8 is replaced.
func unquote(raw []byte) string {
	var t string
	if json.Unmarshal(slices.Concat(quote, raw, quote), &t) == nil {
		return t
	}
	return string(bytes.ToValidUTF8(raw, []byte("\uFFFD")))
}

// appendUnquoted appends the text of a raw JSON string, as [unquote] gives it.
func appendUnquoted(b, raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return append(b, raw...)
	}
	return append(b, unquote(raw)...)
}

// atEnd says whether nothing but space is left.
func (s *scanner) atEnd() bool { return s.peek() == 0 && s.i >= len(s.b) }
