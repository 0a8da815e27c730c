package profile

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pitot/internal/workload/arrival"
)

// csvOf is a trace of a law, with lengths about so many tokens.
func csvOf(t testing.TB, law string, seed uint64, n, tokens int) string {
	t.Helper()
	p, err := arrival.Parse(law, 5, seed)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("timestamp,input_tokens,output_tokens\n")
	for i := range n {
		fmt.Fprintf(&b, "%.6f,%d,%d\n", float64(p.Next())/1e9, tokens+(i*7919+int(seed)*31)%tokens, 20+(i*104729+int(seed))%80)
	}
	return b.String()
}

// Two traces of one law are alike; what another has different is named, and nothing else.
func TestDiffNamesWhatDiffers(t *testing.T) {
	const n = 6000
	like := write(t, csvOf(t, "poisson", 1, n, 500))
	for _, c := range []struct {
		text string
		want string // of the rows that differ, as they begin
	}{
		{csvOf(t, "poisson", 2, n, 500), ""},
		{csvOf(t, "poisson", 3, n, 600), "prompt tokens"},
		{csvOf(t, "gamma(0.1)", 9, n, 500), "gaps, ms; CV of the gaps; dispersion at 1 s; dispersion at 10 s; dispersion at 60 s"},
	} {
		a, b, err := LookBoth(like, write(t, c.text))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range Diff(a, b) {
			if r.Differ {
				names = append(names, r.Name)
			}
		}
		if got := strings.Join(names, "; "); got != c.want {
			t.Errorf("%q differ, want %q", got, c.want)
		}
	}
}

// A profile and its log are alike.
func TestDiffOfAProfile(t *testing.T) {
	log := csvOf(t, "mmpp(1:20s,5:5s)", 5, 8000, 700)
	p, _ := profileOf(t, log, Options{5, 2})
	a, b, err := LookBoth(write(t, log), write(t, encoded(t, p)))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range Diff(a, b) {
		if r.Differ {
			t.Errorf("%s: %g and %g, %g apart", r.Name, r.A, r.B, r.Distance)
		}
	}
}

// What a cache could serve is known of four prompts by hand.
func TestServed(t *testing.T) {
	trace := `{"timestamp": 0, "input_length": 1024, "output_length": 5, "hash_ids": [1, 2]}
{"timestamp": 1000, "input_length": 1024, "output_length": 5, "hash_ids": [1, 3]}
{"timestamp": 2000, "input_length": 1000, "output_length": 5, "hash_ids": [4, 5]}
{"timestamp": 3000, "input_length": 1024, "output_length": 5, "hash_ids": [1, 3]}
`
	a, _, err := LookBoth(write(t, trace), write(t, trace))
	if err != nil {
		t.Fatal(err)
	}
	const prompt = 3*1024 + 1000
	for size, want := range map[int]float64{0: (512 + 1024) / float64(prompt), 4 * 512: (512 + 1024) / float64(prompt), 2 * 512: 512 / float64(prompt), 512: 512 / float64(prompt)} {
		if got := a.Served(size); math.Abs(got-want) > 1e-9 {
			t.Errorf("of a cache of %d tokens: %.4f, want %.4f", size, got, want)
		}
	}
}
