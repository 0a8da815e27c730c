package say

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestErrorf(t *testing.T) {
	err := fmt.Errorf("read plan: %w", Errorf("%q has no unit", "60").WithHint("write 60s"))
	if err.Error() != `read plan: "60" has no unit` || HintOf(err) != "write 60s" {
		t.Errorf("%v; %s", err, HintOf(err))
	}
	if HintOf(errors.New("a bug")) != "" {
		t.Error("a bug has a hint")
	}
}

func TestKnown(t *testing.T) {
	names := []string{"b", "a"}
	if got := KnownHint("zz", names); got != "known: a, b" {
		t.Error(got)
	}
	if got := KnownHint("A", names); got != "did you mean a?" {
		t.Error(got)
	}
	if names[0] != "b" {
		t.Error("the caller's list was sorted")
	}
}

func TestNearest(t *testing.T) {
	known := []string{"rate", "requests", "concurrency", "duration", "input", "output"}
	for _, c := range []struct{ name, want string }{
		{"rat", "rate"}, {"reqests", "requests"}, {"concurency", "concurrency"},
		{"durtaion", "duration"}, {"ouptut", "output"}, {"zzz", ""}, {"", ""},
		{"conc", "concurrency"}, {"Rate", "rate"}, {"r", ""}, {"re", ""}, {strings.Repeat("x", 1000), ""},
	} {
		if got := NearestName(c.name, known); got != c.want {
			t.Errorf("Nearest(%q) = %q, want %q", c.name, got, c.want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"ab", "ba", 1}, {"abcd", "acbd", 1}} {
		if got := editDistance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
