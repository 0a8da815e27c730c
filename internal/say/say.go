// Package say words what a user reads: what went wrong in one
// clear sentence and what to do instead, and numbers as people write them.
package say

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Error is a mistake of the user's, not of the program's.
type Error struct {
	Msg  string // one sentence, lower case, no period
	Hint string // what to do, "" if there is nothing to say
}

// Error implements error.
func (e *Error) Error() string { return e.Msg }

// Errorf gives a mistake of the user's: one sentence, lower case, no period.
func Errorf(format string, args ...any) *Error {
	return &Error{Msg: fmt.Sprintf(format, args...)}
}

// WithHint gives the same mistake with what to do about it.
func (e *Error) WithHint(hint string) *Error {
	return &Error{Msg: e.Msg, Hint: hint}
}

// HintOf gives the hint of an error, "" if it has none.
func HintOf(err error) string {
	var u *Error
	if errors.As(err, &u) {
		return u.Hint
	}
	return ""
}

// longestName is the longest that is taken for a mistyped name.
const longestName = 64

// NearestName gives the known name that a mistyped one most likely means: the only
// one that it is the beginning of, or the one fewest letters away. It gives ""
// when none is close: at most a third of its letters may differ, and case does
// not matter.
func NearestName(name string, known []string) string {
	if name == "" || len(name) > longestName {
		return ""
	}
	name = strings.ToLower(name)
	best, at, begun := "", max(utf8.RuneCountInString(name)/3, 1)+1, 0
	for _, k := range known {
		if d := editDistance(name, strings.ToLower(k)); d < at {
			best, at = k, d
		}
	}
	if best != "" || len(name) < 3 {
		return best
	}
	for _, k := range known {
		if strings.HasPrefix(strings.ToLower(k), name) {
			best = k
			begun++
		}
	}
	if begun != 1 {
		return ""
	}
	return best
}

// KnownHint says of a name that is not among the known ones which was most likely
// meant, or which there are: the hint of an error.
func KnownHint(name string, known []string) string {
	if n := NearestName(name, known); n != "" {
		return "did you mean " + n + "?"
	}
	return "known: " + QuotedNames(known)
}

// editDistance is the number of letters to insert, delete, replace or swap with
// their neighbour (optimal string alignment).
func editDistance(a, b string) int {
	s, t := []rune(a), []rune(b)
	rows := [3][]int{make([]int, len(t)+1), make([]int, len(t)+1), make([]int, len(t)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(s); i++ {
		before, last, now := rows[(i+2)%3], rows[i%3], rows[(i+1)%3]
		now[0] = i
		for j := 1; j <= len(t); j++ {
			cost := 1
			if s[i-1] == t[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
	}
	return rows[(len(s)+1)%3][len(t)]
}

// QuotedNames lists names for a message.
func QuotedNames(names []string) string {
	out := ""
	for i, n := range slices.Sorted(slices.Values(names)) {
		if i > 0 {
			out += ", "
		}
		out += n
	}
	return out
}
