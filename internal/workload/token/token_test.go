package token

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
)

func TestUniversal(t *testing.T) {
	v := Universal()
	if v.Size() != 8192 || v.FirstSize() != 2048 || v.Name() != "universal" {
		t.Fatalf("universal vocabulary: %d words, %d first words, name %q", v.Size(), v.FirstSize(), v.Name())
	}
	seen := map[string]bool{}
	for i := range v.Size() {
		w := string(v.words.wordAt(i))
		if seen[w] || strings.Trim(w, "abcdefghijklmnopqrstuvwxyz") != "" {
			t.Errorf("word %d %q is repeated or not plain", i, w)
		}
		seen[w] = true
	}
	for i := range v.FirstSize() {
		if w := string(v.first.wordAt(i)); !seen[w] {
			t.Errorf("first word %q is no word", w)
		}
	}
}

// A seed means the same text for ever.
func TestAppendTextGolden(t *testing.T) {
	v := Universal()
	for _, c := range []struct {
		seed  uint64
		n     int
		first bool
		want  string
	}{
		{0, 10, true, "think because terrified meets hers basement poll struggle airport manually"},
		{0, 3, false, " syndrome because terrified"},
		{1, 6, true, "names distant pronounced ladies repl houses"},
		{1 << 63, 5, true, "ending stabil lol exerc romance"},
		{7, 1, true, "handle"},
		{7, 0, true, ""},
		{7, -1, true, ""},
	} {
		if got := string(v.AppendText(nil, c.seed, c.n, c.first)); got != c.want {
			t.Errorf("AppendText(%d, %d, %t) = %q, want %q", c.seed, c.n, c.first, got, c.want)
		}
	}
}

func TestAppendTextLaws(t *testing.T) {
	v := Universal()
	rapid.Check(t, func(t *rapid.T) {
		s, n := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 300).Draw(t, "n")
		whole := v.AppendText(nil, s, n, true)
		if got := v.Count(whole); got != n {
			t.Fatalf("%d words count as %d tokens: %q", n, got, whole)
		}
		if got := len(strings.Fields(string(whole))); got != n || whole[0] == ' ' {
			t.Fatalf("text of %d words has %d: %q", n, got, whole)
		}
		if !bytes.HasPrefix(whole, v.AppendText(nil, s, n-1, true)) {
			t.Fatal("a shorter text is not the beginning of a longer one")
		}
		inner := v.AppendText(nil, s, n, false)
		_, restWhole, _ := bytes.Cut(whole, []byte(" "))
		_, restInner, _ := bytes.Cut(inner[1:], []byte(" "))
		if inner[0] != ' ' || !bytes.Equal(restWhole, restInner) {
			t.Fatalf("first changes more than the first word: %q and %q", whole, inner)
		}
		if got := v.Count(append(whole, inner...)); got != 2*n {
			t.Fatalf("two texts of %d words joined count as %d tokens", n, got)
		}
	})
}

func TestAppendTextAllocatesNothing(t *testing.T) {
	v, dst := Universal(), make([]byte, 0, 1<<14)
	if n := testing.AllocsPerRun(100, func() { v.AppendText(dst, 1, 1000, true) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Every word is drawn, and none much more often than another.
func TestAppendTextIsEven(t *testing.T) {
	v := Universal()
	const n = 1 << 20
	count := map[string]int{}
	for w := range strings.FieldsSeq(string(v.AppendText(nil, 42, n, true))) {
		count[w]++
	}
	chi2, mean := 0.0, float64(n)/float64(v.Size())
	for i := range v.Size() {
		d := float64(count[string(v.words.wordAt(i))]) - mean
		chi2 += d * d / mean
	}
	// 8,191 degrees of freedom: mean 8,191, standard deviation 128.
	if chi2 < 8191-5*128 || chi2 > 8191+5*128 {
		t.Errorf("chi-squared %.0f over %d words", chi2, v.Size())
	}
}

func TestCount(t *testing.T) {
	v := Universal()
	for _, c := range []struct {
		text string
		want int
	}{
		{"", 0},
		{"able", 1},
		{" able", 1},
		{"able above", 2},
		{"able  above", 3}, // the second space is a stretch of its own
		{"able, above", 3}, // and so is the comma
		{"xqzv", 1},
		{"xqzvw", 2},
		{"able xqzv above", 4},          // " xqzv" is 5 bytes
		{"früh", 2},                     // one word of 5 bytes, not "fr" and "h"
		{"ableabove", 3},                // 9 bytes that are no word
		{strings.Repeat("7", 400), 100}, // digits
		{"\xff\xfe\x00", 1},             // no text at all
		{strings.Repeat(" able", 50), 50},
	} {
		if got := v.Count([]byte(c.text)); got != c.want {
			t.Errorf("Count(%q) = %d, want %d", c.text, got, c.want)
		}
	}
}

func FuzzCount(f *testing.F) {
	for _, s := range []string{"", "able", "able,above ", "früh\n\tüber", " \xff able"} {
		f.Add([]byte(s))
	}
	v := Universal()
	f.Fuzz(func(t *testing.T, text []byte) {
		if n := v.Count(text); n < 0 || n > len(text) || (n == 0) != (len(text) == 0) {
			t.Errorf("Count of %d bytes = %d", len(text), n)
		}
		var joined []byte
		v.Split(text, func(b []byte) { joined = append(joined, b...) })
		if string(joined) != string(text) {
			t.Errorf("the tokens of %q are %q", text, joined)
		}
	})
}

func TestRestrict(t *testing.T) {
	four := func(w string) bool { return len(w) == 4 }
	v, err := Universal().RestrictTo(four, four)
	if err != nil {
		t.Fatal(err)
	}
	if v.Size() != 1214 || v.FirstSize() != 495 || v.Name() != "universal/1214" {
		t.Errorf("four-letter words: %d, first %d, name %q", v.Size(), v.FirstSize(), v.Name())
	}
	text := v.AppendText(nil, 3, 500, true)
	if len(text) != 500*5-1 || v.Count(text) != 500 {
		t.Errorf("500 four-letter words are %d bytes, %d tokens", len(text), v.Count(text))
	}
	early := func(w string) bool { return w < "m" }
	again, err := v.RestrictTo(early, early)
	if err != nil || again.Name() != "universal/"+strconv.Itoa(again.Size()) {
		t.Errorf("restricted twice: %v, %v", again, err)
	}
	all := func(string) bool { return true }
	if same, _ := v.RestrictTo(all, all); same.Name() != v.Name() {
		t.Errorf("nothing taken away: name %q", same.Name())
	}
	if _, err := v.RestrictTo(all, func(string) bool { return false }); err == nil {
		t.Error("an empty vocabulary is no error")
	}
}

func BenchmarkAppendText(b *testing.B) {
	const words = 1024
	v, dst := Universal(), make([]byte, 0, 1<<14)
	b.ReportAllocs()
	n := uint64(0)
	for b.Loop() {
		n++
		dst = v.AppendText(dst[:0], n, words, true)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/words, "ns/word")
}

func BenchmarkCount(b *testing.B) {
	v := Universal()
	text := v.AppendText(nil, 1, 1024, true)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		v.Count(text)
	}
}

func BenchmarkParseUniversal(b *testing.B) {
	for b.Loop() {
		newVocabulary("universal", parseWords(wordList), parseWords(firstList))
	}
}
