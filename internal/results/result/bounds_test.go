package result

import (
	"strings"
	"testing"
)

// A document of many empty elements is refused before it is decoded; braces in strings are none.
func TestBounded(t *testing.T) {
	list := func(n int, element string) string {
		return strings.TrimSuffix(strings.Repeat(element+",", n), ",")
	}
	for _, c := range []struct {
		name, text string
		ok         bool
	}{
		{"as many points as there may be", `{"points":[` + list(mostElements, "{}") + `]}`, true},
		{"a point more", `{"points":[` + list(mostElements+1, "{}") + `]}`, false},
		{"two lists", `{"points":[` + list(mostElements, "{}") + `],"curve":[` + list(mostElements, "{}") + `]}`, true},
		{"another list", `{"points":[],"others":[` + list(mostElements+1, "{ }") + `]}`, false},
		{"checks of one point", `{"points":[{"checks":[` + list(mostObjects, "{}") + `]}]}`, false},
		{"deep", strings.Repeat(`{"a":`, mostObjects+1), false},
		{"braces in a string", `{"command":["` + strings.Repeat(`{\"`, mostObjects+1) + `"]}`, true},
		{"a string without an end", `{"command":["{`, true},
		{"an escape at the end", `{"a":"\`, true},
		{"numbers", `{"points":[{"x":[` + list(100_000, "1") + `]}]}`, true},
	} {
		if err := checkBounds([]byte(c.text)); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := Decode([]byte(`{"schema":"` + Schema + `","points":[` + list(2_000_000, "{}") + `]}`)); err == nil || !strings.Contains(err.Error(), "10000 elements") {
		t.Errorf("2,000,000 points: %v", err)
	}
}
