package cli

import (
	"fmt"
	"strings"
	"testing"
)

// In a pipe the first line is the answer; reports behind it stay apart.
func TestAnswerFirst(t *testing.T) {
	for want, parts := range map[string][]string{
		"one\n\ntwo\n": {"\n", "one\n", "\n", "two\n"},
		"one\n":        {"\none\n"},
		"{}\n":         {"", "{}\n"},
		"":             {"\n"},
	} {
		var b strings.Builder
		a := &answerFirst{w: &b}
		for _, p := range parts {
			if n, err := fmt.Fprint(a, p); n != len(p) || err != nil {
				t.Errorf("%q: %d, %v", p, n, err)
			}
		}
		if b.String() != want {
			t.Errorf("%q: %q, want %q", parts, b.String(), want)
		}
	}
}
