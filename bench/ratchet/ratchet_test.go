package main

import (
	"io"
	"slices"
	"strings"
	"testing"
)

const source = "package p\n\n" +
	"// A is what it says.\ntype A struct {\n\t// b is how many\n\tb int // c is who\n}\n\n" +
	"// Len returns it.\nfunc (a A) Len() int { return a.b; }\n\n" +
	"// are: parseHTTPRequest are nine words.\nfunc parseHTTPRequest() {}\n"

func TestCode(t *testing.T) {
	c := code{byDir: map[string]float64{}}
	long := "\t\t\t// " + strings.Repeat("ü", 85) + "\n"
	for path, text := range map[string]string{
		"internal/x/y/a.go": source,
		"internal/x/b.go":   "package p\n" + long + "\t" + long,
		"cmd/x/main.go":     "package main; func main() {}\n",
	} {
		if err := c.add(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	// package p type A struct { b int } = 9; func ( a A ) Len ( ) int { return a . b ; } = 16; func
	// parseHTTPRequest ( ) { } = 6
	if want := (map[string]float64{"internal/x": 9 + 16 + 6 + 2, "cmd/x": 9}); c.byDir["internal/x"] != want["internal/x"] || c.byDir["cmd/x"] != want["cmd/x"] || c.tokens != 42 {
		t.Errorf("tokens %v, %d in all", c.byDir, c.tokens)
	}
	if c.functions != 3 || c.words != 5 || c.oneWord != 2 || c.vague != 2 || c.longLines != 1 {
		t.Errorf("%+v", c)
	}
}

func TestWordsOfName(t *testing.T) {
	for name, want := range map[string]string{
		"muster": "muster", "startLocalWorkers": "start Local Workers", "URL": "URL", "parseHTTPRequest": "parse HTTP Request",
		"TestRun_early": "Test Run early", "p99Of": "p99 Of", "newTTFTOf": "new TTFT Of", "isA": "is A", "utf8": "utf8", "_": "",
	} {
		if got := strings.Join(wordsOfName(name), " "); got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
}

func TestProseWords(t *testing.T) {
	if n := proseWords("# Two words\n\n```\ncode here\n```\n| a | 7 | – |\n|---|---|---|\n~~~ go\n```\n~~~\nend\n"); n != 5 {
		t.Errorf("%d words", n)
	}
}

// A limit has three digits and no figure is worse than its own; -update tightens limits, adds and
// removes some, and loosens none.
func TestLimits(t *testing.T) {
	for _, f := range []struct {
		figure
		want float64
	}{
		{figure{"a", 123_456, false}, 124_000}, {figure{"a", 123_456, true}, 123_000}, {figure{"a", 124_000, false}, 124_000}, {figure{"a", 87, false}, 87},
		{figure{"a", 2.1349, true}, 2.13}, {figure{"a", 0.23451, false}, 0.235}, {figure{"a", 0.235, false}, 0.235}, {figure{"a", 0, false}, 0},
	} {
		if got := f.limit(); got != f.want || f.worseThan(got) {
			t.Errorf("%v has the limit %v, not %v", f.value, got, f.want)
		}
	}
	figures := []figure{{"same", 1234, false}, {"better", 90, false}, {"worse", 110, false}, {"fewer", 2, true}, {"new", 5, false}}
	limits := map[string]float64{"same": 1240, "better": 100, "worse": 100, "fewer": 3, "gone": 1}
	worse := compare(io.Discard, figures, limits, false)
	if want := []string{"fewer: 2, the limit is 3", "gone: there is no such figure any more: -update", "new: 5, and it has no limit: -update", "worse: 110, the limit is 100"}; !slices.Equal(worse, want) {
		t.Errorf("worse are %q", worse)
	}
	after := tightened(figures, limits)
	if len(after) != 5 || after["same"] != 1240 || after["better"] != 90 || after["worse"] != 100 || after["fewer"] != 3 || after["new"] != 5 {
		t.Errorf("limits after -update: %v", after)
	}
	if worse := compare(io.Discard, figures, after, true); len(worse) != 2 {
		t.Errorf("worse after -update are %q", worse)
	}
	if got := number(1234567); got != "1,234,567" {
		t.Errorf("number %s", got)
	}
}
