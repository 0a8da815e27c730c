package workload

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
)

// Why a line is no JSON object, as far as fields looks at it.
var (
	errNoObject   = errors.New("want a JSON object")
	errObjectEnds = errors.New("want a JSON object: it ends within")
)

// eachMember hands on the members of a JSON object, in order: keys without their quotes and
// values as they stand. It is many times as fast as encoding/json, and looks at no more of
// a value than where it ends.
func eachMember(raw []byte, each func(key, value []byte)) error {
	i := skipBlanks(raw, 0)
	if i >= len(raw) || raw[i] != '{' {
		return errNoObject
	}
	i = skipBlanks(raw, i+1)
	if i < len(raw) && raw[i] == '}' {
		return checkObjectEnd(raw, i+1)
	}
	for i < len(raw) {
		if raw[i] != '"' {
			return errNoObject
		}
		end := stringEnd(raw, i)
		if end < 0 {
			return errObjectEnds
		}
		key := raw[i+1 : end-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			var s string
			if json.Unmarshal(raw[i:end], &s) != nil {
				return errNoObject
			}
			key = []byte(s)
		}
		if i = skipBlanks(raw, end); i >= len(raw) {
			return errObjectEnds
		}
		if raw[i] != ':' {
			return errNoObject
		}
		from := skipBlanks(raw, i+1)
		if end = valueEnd(raw, from); end < 0 || end >= len(raw) {
			if from < len(raw) {
				each(key, raw[from:from]) // it is there, and its end is not
			}
			return errObjectEnds
		}
		if end == from {
			return errNoObject
		}
		each(key, raw[from:end])
		if i = skipBlanks(raw, end); i >= len(raw) {
			return errObjectEnds
		}
		switch raw[i] {
		case '}':
			return checkObjectEnd(raw, i+1)
		case ',':
			i = skipBlanks(raw, i+1)
		default:
			return errNoObject
		}
	}
	return errObjectEnds
}

// checkObjectEnd asks that nothing stands behind an object.
func checkObjectEnd(raw []byte, i int) error {
	if skipBlanks(raw, i) < len(raw) {
		return errNoObject
	}
	return nil
}

// skipBlanks is where the next thing stands.
func skipBlanks(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\t' || raw[i] == '\r' || raw[i] == '\n') {
		i++
	}
	return i
}

// stringEnd is behind the string that begins at i, -1 where it does not end.
func stringEnd(raw []byte, i int) int {
	for k := i + 1; k < len(raw); k++ {
		n := bytes.IndexByte(raw[k:], '"')
		if n < 0 {
			return -1
		}
		escape := bytes.IndexByte(raw[k:k+n], '\\')
		if escape < 0 {
			return k + n + 1
		}
		k += escape + 1 // what is escaped is stepped over
	}
	return -1
}

// valueEnd is behind the value that begins at i, -1 where it does not end.
func valueEnd(raw []byte, i int) int {
	if i >= len(raw) {
		return -1
	}
	switch raw[i] {
	case '"':
		return stringEnd(raw, i)
	case '{', '[':
		depth := 0
		for k := i; k < len(raw); k++ {
			switch raw[k] {
			case '"':
				end := stringEnd(raw, k)
				if end < 0 {
					return -1
				}
				k = end - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return k + 1
				}
			}
		}
		return -1
	}
	for k := i; k < len(raw); k++ {
		switch raw[k] {
		case ',', '}', ']', ' ', '\t', '\r', '\n':
			return k
		}
	}
	return len(raw)
}

// wholeNumber reads a number that is whole, though it may be written as 10.0; ok is false of
// anything else, and beyond 2⁵³.
func wholeNumber(value []byte) (n int64, ok bool) {
	if len(value) == 0 || len(value) > 40 {
		return 0, false
	}
	if len(value) <= 15 && (value[0] != '0' || len(value) == 1) {
		ok = true
		for _, c := range value {
			if c < '0' || c > '9' {
				ok = false
				break
			}
			n = 10*n + int64(c-'0')
		}
		if ok {
			return n, true
		}
	}
	var x json.Number
	if json.Unmarshal(value, &x) != nil || value[0] == '"' {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(x), 64)
	if n = int64(f); err != nil || f < -1<<53 || f > 1<<53 || float64(n) != f {
		return 0, false
	}
	return n, true
}

// tokenCount reads a number of tokens, [Unknown] where it is none.
func tokenCount(value []byte) (n int32, ok bool) {
	x, ok := wholeNumber(value)
	if !ok || x < 0 || x > MaxLength {
		return Unknown, false
	}
	return int32(x), true
}

// appendNumbers reads an array of whole numbers.
func appendNumbers(dst []int64, value []byte) ([]int64, bool) {
	if len(value) < 2 || value[0] != '[' {
		return dst, false
	}
	i := skipBlanks(value, 1)
	if i < len(value) && value[i] == ']' {
		return dst, skipBlanks(value, i+1) == len(value)
	}
	for i < len(value) {
		var n int64
		from := i
		for i < len(value) && value[i] >= '0' && value[i] <= '9' {
			n = 10*n + int64(value[i]-'0')
			i++
		}
		if digits := i - from; digits == 0 || digits > 18 || digits > 1 && value[from] == '0' || i < len(value) && value[i] != ',' && value[i] != ']' && value[i] != ' ' {
			end := valueEnd(value, from)
			if end <= from {
				return dst, false
			}
			var ok bool
			if n, ok = anyNumber(value[from:end]); !ok {
				return dst, false
			}
			i = end
		}
		dst = append(dst, n)
		if i = skipBlanks(value, i); i >= len(value) {
			return dst, false
		}
		if value[i] == ']' {
			return dst, skipBlanks(value, i+1) == len(value)
		}
		if value[i] != ',' {
			return dst, false
		}
		i = skipBlanks(value, i+1)
	}
	return dst, false
}

// anyNumber is an id: a whole number of 64 bits, with or without a sign.
func anyNumber(value []byte) (int64, bool) {
	if n, err := strconv.ParseInt(string(value), 10, 64); err == nil && json.Valid(value) {
		return n, true
	}
	if n, err := strconv.ParseUint(string(value), 10, 64); err == nil && json.Valid(value) {
		return int64(n), true // its bits: an id is the same or another one
	}
	return wholeNumber(value)
}

// unquoteValue is the text of a JSON string, or another value as it stands.
func unquoteValue(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return string(value)
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : len(value)-1])
	}
	var s string
	if json.Unmarshal(value, &s) != nil {
		return string(value)
	}
	return s
}
