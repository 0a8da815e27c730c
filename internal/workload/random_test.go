package workload

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pitot/internal/workload/token"
)

func random(t testing.TB, c RandomConfig) *Random {
	t.Helper()
	r, err := NewRandom(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func requestAt(t testing.TB, s Source, i int64) Request {
	t.Helper()
	r, err := s.At(i)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func promptText(r Request) string { return string(r.AppendPrompt(nil, token.Universal())) }

// A seed and a nonce mean the same requests for ever.
func TestRandomGolden(t *testing.T) {
	c := RandomConfig{Input: lengths(t, "uniform(4,9)"), Output: lengths(t, "lognormal(128,64)"), Prefix: 3, PrefixShare: 0.5, Seed: 1, Nonce: 2}
	r := random(t, c)
	for i, want := range []struct {
		text          string
		input, output int
	}{
		{"lang sign worked conj trailer innocent deeper surfaces revolutionary tar", 10, 58},
		{"lang sign worked tex exhibit gem vegetables sense merged mole chron", 11, 132},
		{"outer halt luc picked among vessels practice here tradition nod toast definitely", 12, 113},
		{"stro blur experimental beside broader table feas valuable caller", 9, 110},
	} {
		got := requestAt(t, r, int64(i))
		if promptText(got) != want.text || got.Input != want.input || got.Output != want.output {
			t.Errorf("request %d is {%q, %d, %d}, want %+v", i, promptText(got), got.Input, got.Output, want)
		}
		if got.ID != int64(i) || !got.Exact || got.Session != Unknown || got.Body != nil || got.Messages[0].Role != "user" {
			t.Errorf("request %d: %+v", i, got)
		}
	}
}

func TestRandomIsPure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := RandomConfig{
			Input: FixedLength(rapid.IntRange(1, 300).Draw(t, "input")), Output: FixedLength(1),
			Prefix: rapid.IntRange(0, 100).Draw(t, "prefix"), PrefixShare: rapid.Float64Range(0, 1).Draw(t, "share"),
			Seed: rapid.Uint64().Draw(t, "seed"), Nonce: rapid.Uint64().Draw(t, "nonce"),
		}
		a, err := NewRandom(c)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := NewRandom(c)
		i := rapid.Int64Range(0, math.MaxInt64).Draw(t, "i")
		_, _ = b.At(i / 2) // what else was asked does not matter
		x, err := a.At(i)
		if err != nil {
			t.Fatal(err)
		}
		y, _ := b.At(i)
		if !reflect.DeepEqual(x, y) {
			t.Fatalf("request %d is %+v, then %+v", i, x, y)
		}
		if n := token.Universal().Count(x.AppendPrompt(nil, token.Universal())); n != x.Input {
			t.Fatalf("request of %d planned tokens has %d", x.Input, n)
		}
	})
}

// No cache can serve a request from another one's beginning.
func TestFirstWordsAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for nonce := range uint64(5) {
		r := random(t, RandomConfig{Input: FixedLength(8), Output: FixedLength(1), Nonce: nonce})
		for i := range int64(10_000) {
			s := promptText(requestAt(t, r, i))
			if seen[s] {
				t.Fatalf("nonce %d, request %d: first eight words %q are not new", nonce, i, s)
			}
			seen[s] = true
		}
	}
}

func TestNonceChangesWordsAlone(t *testing.T) {
	c := RandomConfig{Input: lengths(t, "uniform(10,500)"), Output: lengths(t, "normal(50,20)"), Prefix: 16, PrefixShare: 0.3, Seed: 9}
	a := random(t, c)
	c.Nonce = 1
	b := random(t, c)
	for i := range int64(500) {
		x, y := requestAt(t, a, i), requestAt(t, b, i)
		if x.Input != y.Input || x.Output != y.Output || len(x.Messages[0].Segments) != len(y.Messages[0].Segments) {
			t.Fatalf("request %d changes its shape with the nonce", i)
		}
		if a, b, _ := strings.Cut(promptText(x), " "); strings.HasPrefix(promptText(y), a+" "+b[:10]) {
			t.Fatalf("request %d begins alike under two nonces", i)
		}
	}
}

func TestPrefixShare(t *testing.T) {
	for _, share := range []float64{0, 0.1, 0.5, 1} {
		r := random(t, RandomConfig{Input: FixedLength(10), Output: FixedLength(1), Prefix: 32, PrefixShare: share, Seed: 4, Nonce: 5})
		const n = 10_000
		groups := map[string]int{}
		for i := range int64(n) {
			q := requestAt(t, r, i)
			words := strings.Fields(promptText(q))
			if len(words) != 42 || q.Input != 42 {
				t.Fatalf("share %g: request %d has %d words, %d planned, want 42", share, i, len(words), q.Input)
			}
			groups[strings.Join(words[:32], " ")]++
		}
		most := 0
		for _, count := range groups {
			most = max(most, count)
		}
		shared := n - len(groups) + 1 // all other groups have one member
		if math.Abs(float64(shared)/n-share) > 0.02 && share > 0 || share == 0 && most != 1 || most != shared {
			t.Errorf("share %g: %d of %d requests share a prefix, the largest group has %d", share, shared, n, most)
		}
	}
}

func TestCalibration(t *testing.T) {
	for _, c := range []struct {
		overhead, perWord      float64
		input, prefix          int
		words, planned, shared int
	}{
		{0, 0, 100, 0, 100, 100, 0},
		{0, 0, 100, 20, 120, 120, 20},
		{11, 1, 100, 0, 89, 100, 0},
		{11, 1, 100, 20, 109, 120, 20},
		{11, 1, 5, 0, 1, 12, 0},    // the template alone is longer
		{30, 1, 5, 20, 21, 51, 20}, // and longer than prefix and input
		{10, 1.5, 100, 0, 60, 100, 0},
		{10, 1.5, 101, 0, 61, 102, 0}, // the nearest that can be had
		{10, 1.5, 100, 30, 80, 130, 20},
		{-2, 1, 100, 0, 102, 100, 0},
	} {
		r := random(t, RandomConfig{Input: FixedLength(c.input), Output: FixedLength(1), Prefix: c.prefix, PrefixShare: 1, Calibration: Calibration{Overhead: c.overhead, PerWord: c.perWord}})
		q := requestAt(t, r, 0)
		segments := q.Messages[0].Segments
		words, shared := 0, 0
		for _, s := range segments {
			words += s.Words
		}
		if len(segments) == 2 {
			shared = segments[0].Words
		}
		if words != c.words || q.Input != c.planned || shared != c.shared {
			t.Errorf("%+v: %d words, %d planned, %d shared", c, words, q.Input, shared)
		}
	}
}

func TestNewRandomErrors(t *testing.T) {
	ok := RandomConfig{Input: FixedLength(1), Output: FixedLength(1)}
	for want, spoil := range map[string]func(*RandomConfig){
		"lengths are missing":      func(c *RandomConfig) { c.Input = Lengths{} },
		"prefix is -1":             func(c *RandomConfig) { c.Prefix = -1 },
		"prefix share is NaN":      func(c *RandomConfig) { c.PrefixShare = math.NaN() },
		"prefix share is 1.5":      func(c *RandomConfig) { c.PrefixShare = 1.5 },
		"0 + NaN × words":          func(c *RandomConfig) { c.Calibration.PerWord = math.NaN() },
		"12 + 0 × words":           func(c *RandomConfig) { c.Calibration.Overhead = 12 },
		"+Inf + 1 × words is no n": func(c *RandomConfig) { c.Calibration = Calibration{Overhead: math.Inf(1), PerWord: 1} },
	} {
		c := ok
		spoil(&c)
		if _, err := NewRandom(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	if _, err := random(t, ok).At(-1); err == nil {
		t.Error("request -1 is no error")
	}
}

func TestRandomDescribe(t *testing.T) {
	r := random(t, RandomConfig{Input: FixedLength(1024), Output: lengths(t, "uniform(1,8)"), Prefix: 64, PrefixShare: 0.5, Calibration: Calibration{Overhead: 11, PerWord: 1}})
	got, err := json.Marshal(r.Describe(token.Universal()))
	const want = `{"kind":"random","input":"1024","output":"uniform(1,8)","prefix":{"tokens":64,"share":0.5,"prompt":"1088"},` +
		`"vocabulary":{"name":"universal","words":8192,"first_words":2048},"calibration":{"overhead_tokens":11,"tokens_per_word":1}}`
	if err != nil || string(got) != want {
		t.Errorf("description %s, %v, want %s", got, err, want)
	}
}

func TestAppendPrompt(t *testing.T) {
	v := token.Universal()
	generated := func(s uint64, n int) Segment { return Segment{Seed: s, Words: n} }
	r := Request{Messages: []Message{
		{Role: "system", Segments: []Segment{generated(1, 2), generated(1, 2)}},
		{Role: "user", Segments: []Segment{{Text: "Say:"}, generated(1, 1)}},
		{Role: "user", Segments: []Segment{generated(7, 1)}},
	}}
	a, b, c := string(v.AppendText(nil, 1, 2, true)), string(v.AppendText(nil, 1, 2, false)), string(v.AppendText(nil, 1, 1, false))
	d := string(v.AppendText(nil, 7, 1, false))
	if got, want := string(r.AppendPrompt([]byte("> "), v)), "> "+a+b+"\nSay:"+c+d; got != want {
		t.Errorf("prompt %q, want %q", got, want)
	}
	if got := string(r.Messages[0].Append([]byte("> "), v)); got != "> "+a+b {
		t.Errorf("message %q, want %q", got, "> "+a+b)
	}
	if got := string(r.Messages[2].Append(nil, v)); got != "handle" {
		t.Errorf("message %q begins with a space or another word", got)
	}
}

func BenchmarkRandomAt(b *testing.B) {
	r := random(b, RandomConfig{Input: lengths(b, "lognormal(1024,512)"), Output: lengths(b, "lognormal(128,64)"), Prefix: 64, PrefixShare: 0.5})
	b.ReportAllocs()
	var i int64
	for b.Loop() {
		_, _ = r.At(i)
		i++
	}
}

// With a share between nobody and everybody the classes tell who shares the prefix.
func TestPrefixClasses(t *testing.T) {
	for share, want := range map[float64][]string{0: {""}, 1: {""}, 0.5: {OwnPrefix, SharedPrefix}} {
		r := random(t, RandomConfig{Input: FixedLength(10), Output: FixedLength(1), Prefix: 32, PrefixShare: share, Seed: 4, Nonce: 5})
		var got []string
		for i := range int64(50) {
			q, err := r.At(i)
			if err != nil {
				t.Fatal(err)
			}
			if shares := len(q.Messages[0].Segments) == 2; q.Class != "" && shares != (q.Class == SharedPrefix) || q.Input != 42 {
				t.Errorf("share %g: %+v", share, q)
			}
			if !slices.Contains(got, q.Class) {
				got = append(got, q.Class)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("share %g: classes %q", share, got)
		}
	}
}
