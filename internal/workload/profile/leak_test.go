package profile

import (
	"encoding/hex"
	"strings"
	"testing"
)

// Nothing that stands in any text, name, id or header of a log of any form stands in its
// profile: not four characters in a row.
func TestProfileHasNoText(t *testing.T) {
	list := traffic(300)
	for form := range logs() {
		t.Run(form, func(t *testing.T) {
			log := logOf(form, list, letters)
			p, _ := profileOf(t, log, Options{5, 2})
			text := strings.ToLower(encoded(t, p))
			planted := 0
			for _, word := range strings.FieldsFunc(log, func(r rune) bool { return !strings.ContainsRune("qxzjkvwQXZJKVW", r) }) {
				if len(word) < 24 {
					continue
				}
				planted++
				for i := range len(word) - 3 {
					if part := strings.ToLower(word[i : i+4]); strings.Contains(text, part) {
						t.Fatalf("%q of %q is in the profile", part, word)
					}
				}
			}
			if planted < len(list) {
				t.Fatalf("%d words were planted", planted)
			}
		})
	}
}

// Digits stand in every profile, so they are told apart otherwise: of two logs that differ in
// each name, id and text, and in nothing else, the profiles are the same to the byte. So are
// those of one log at two times of day: what time it was is not told.
func TestProfileKnowsNoNames(t *testing.T) {
	list := traffic(300)
	for form := range logs() {
		t.Run(form, func(t *testing.T) {
			one, _ := profileOf(t, logOf(form, list, digits(1)), Options{5, 2})
			two, _ := profileOf(t, logOf(form, list, digits(2)), Options{5, 2})
			if a, b := encoded(t, one), encoded(t, two); a != b {
				t.Errorf("other names make another profile:\n%s", differing(a, b))
			}
			before := began
			began = began.Add(1234567 * 1e9)
			defer func() { began = before }()
			later, _ := profileOf(t, logOf(form, list, digits(1)), Options{5, 2})
			if a, b := encoded(t, one), encoded(t, later); a != b {
				t.Errorf("another day makes another profile:\n%s", differing(a, b))
			}
		})
	}
}

// differing is the first line that two texts do not share.
func differing(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return x[i] + "\n" + y[i]
		}
	}
	return "one is longer"
}

// The key is forgotten, and stands nowhere.
func TestKeyIsForgotten(t *testing.T) {
	b, err := NewBuilder(Options{5, 2})
	if err != nil {
		t.Fatal(err)
	}
	key := b.key
	if _, err := ReadLog(write(t, logOf("openai", traffic(100), letters)), b.Add); err != nil {
		t.Fatal(err)
	}
	p, err := b.BuildProfile()
	if err != nil {
		t.Fatal(err)
	}
	if b.key != [32]byte{} || b.mac != nil {
		t.Error("the key is still there")
	}
	text := encoded(t, p)
	if strings.Contains(text, string(key[:])) || strings.Contains(text, hex.EncodeToString(key[:])) {
		t.Error("the key is in the profile")
	}
	other, err := NewBuilder(Options{5, 2})
	if err != nil {
		t.Fatal(err)
	}
	if other.key == key {
		t.Error("the same key again")
	}
}

// A document that few asked about leaves no bucket, no stretch and no length of its own, and
// one that many asked about does: the test can fail.
func TestRareDocumentLeavesNothing(t *testing.T) {
	const long = 1 << 20
	of := func(times int, everyClient bool) *Profile {
		b, err := NewBuilder(Options{5, 2})
		if err != nil {
			t.Fatal(err)
		}
		document := []byte(strings.Repeat("a document that nobody else has. ", 2000))
		for i := range 400 {
			q := Request{At: int64(i) * 1e9, End: unknown, Input: 300 + i%70, Output: 50 + i%9, TTFT: unknown, Client: "c" + string(rune('a'+i%8)), Prompt: []byte(strings.Repeat("what everybody says. ", 20))}
			if i%39 == 7 && i/39 < times {
				q.Input, q.Output, q.Prompt = long, 7777, document
				if !everyClient {
					q.Client = "ca"
				}
			}
			b.Add(&q)
		}
		p, err := b.BuildProfile()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	longest := func(p *Profile) (x int) {
		for _, b := range p.Classes[0].Lengths.Buckets {
			x = max(x, b[1], b[3])
		}
		for _, s := range append(p.Classes[0].Lengths.Prompts, p.Classes[0].Lengths.Answers...) {
			x = max(x, s.Tokens)
		}
		if p.Prefixes != nil {
			for _, n := range p.Prefixes.Nodes {
				x = max(x, n[1])
			}
			for _, a := range p.Prefixes.Again {
				x = max(x, a[1])
			}
		}
		return x
	}
	for _, times := range []int{1, 4} {
		if x := longest(of(times, true)); x >= 1000 {
			t.Errorf("a document of %d requests leaves a length of %d", times, x)
		}
	}
	if x := longest(of(8, false)); x >= 1000 {
		t.Errorf("a document of one client leaves a length of %d", x)
	}
	if x := longest(of(8, true)); x < long/2 {
		t.Errorf("a document of 8 requests leaves %d at most", x)
	}
}
