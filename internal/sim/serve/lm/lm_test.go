package lm

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
	"pitot/internal/workload/token"
)

// universal is the tokenizer that the embedded targets have.
func universal(c Config) Config {
	c.Tokenize, c.Words = token.Universal().Split, token.Universal()
	return c
}

func TestSplitWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-zé \n\t]*`).Draw(t, "text")
		var got []string
		splitWords([]byte(text), func(b []byte) { got = append(got, strings.TrimPrefix(string(b), " ")) })
		if want := strings.Fields(text); !slices.Equal(got, want) {
			t.Fatalf("%q has words %q, want %q", text, got, want)
		}
	})
}

// Ids are below vocab_size, and lead back to the text byte by byte.
func TestTokenIDs(t *testing.T) {
	for _, vocab := range []int{0, 8000, 32768, 128256} {
		m := New(universal(Config{Vocab: vocab}))
		rapid.Check(t, func(t *rapid.T) {
			text := rapid.OneOf(rapid.String(), rapid.StringMatching(`( ?[a-z]{1,12}){1,20}`)).Draw(t, "text")
			ids := m.Encode([]byte(text), 0)
			for _, id := range ids {
				if int(id) >= m.Size() || vocab > 0 && int(id) >= vocab {
					t.Fatalf("id %d of %d", id, vocab)
				}
			}
			if back := string(m.Decode(nil, ids...)); back != text {
				t.Fatalf("%q comes back as %q", text, back)
			}
		})
	}
}

// Bytes and words have the same ids everywhere: a router may have counted them
// on another server.
func TestWordsHaveFixedIDs(t *testing.T) {
	text := token.Universal().AppendText(nil, 1, 500, true)
	a, b, fresh := New(universal(Config{Vocab: 128256})), New(universal(Config{Vocab: 128256})), New(universal(Config{Vocab: 128256}))
	b.Encode([]byte("quite other things, in great numbers: 0123456789"), 0)
	ids := a.Encode(text, 0)
	if !slices.Equal(ids, b.Encode(text, 0)) {
		t.Error("ids differ")
	}
	distinct := map[uint32]bool{}
	for _, id := range ids {
		distinct[id] = true
	}
	if words := len(strings.Fields(string(text))); len(ids) != words || len(distinct) < words*9/10 {
		t.Errorf("%d ids, %d of them distinct, for %d words", len(ids), len(distinct), words)
	}
	if back := fresh.Decode(nil, ids...); !bytes.Equal(back, text) { // it has met none of them
		t.Errorf("back: %s", back)
	}
}

// However much text comes, no more of it is remembered than there are ids.
func TestVocabularyIsBounded(t *testing.T) {
	var v vocabulary
	v.init(leastVocab, nil)
	for i := range 10 * leastVocab {
		if id := v.idOf(fmt.Appendf(nil, "text %d", i)); id >= v.size-specials || id < 256 {
			t.Fatalf("id %d", id)
		}
	}
	v.idOf(bytes.Repeat([]byte("a"), 1<<20))
	if len(v.text) > leastVocab {
		t.Errorf("%d texts", len(v.text))
	}
	for id, text := range v.text {
		if len(text) > maxTokenText {
			t.Errorf("%d has %d bytes", id, len(text))
		}
	}
}

// A prompt of ids is the prompt of their text: it finds the same in the cache,
// the template's tokens included.
func TestIDsAndTextShareTheCache(t *testing.T) {
	m := New(universal(Config{Cached: true}))
	text := []byte("what is the air speed of an unladen swallow, in metres per second?")
	asText := m.TextPrompt(text, 8)
	asIDs := m.IDPrompt(m.Encode(text, 8))
	if !slices.Equal(asText.keys, asIDs.keys) || asText.hash != asIDs.hash || asText.Tokens != asIDs.Tokens {
		t.Errorf("%v\n%v", asText, asIDs)
	}
}

// What a model was given to say is found in the cache when the next turn
// repeats it, like any other answer.
func TestGivenIsCached(t *testing.T) {
	m := New(universal(Config{Cached: true}))
	for _, text := range []string{`{"stadt": "München, Größe: „XL“ 東京"}`, "", "the first of the choices"} {
		g := m.TokenizeGiven(text)
		if keys := m.TextPrompt([]byte(text), 0).keys; !slices.Equal(keys, g.keys) || g.slice(0, g.tokenCount()) != text {
			t.Errorf("%v\n%v", keys, g.keys)
		}
		if back := string(m.Decode(nil, g.ids...)); back != text {
			t.Errorf("%q", back)
		}
	}
}

// However an answer is taken apart, its parts add up to its text, cut off at the
// first stop string.
func TestAnswersInParts(t *testing.T) {
	m := New(Config{})
	rapid.Check(t, func(t *rapid.T) {
		p := Plan{Limit: rapid.IntRange(1, 80).Draw(t, "limit"), KeepStop: rapid.Bool().Draw(t, "keep")}
		p.Stops = rapid.SliceOfN(rapid.SampledFrom([]string{" air", "of a", "nowhere", "w", " that it are"}), 0, 2).Draw(t, "stops")
		if rapid.Bool().Draw(t, "given") {
			p.Given = m.TokenizeGiven(rapid.String().Draw(t, "text"))
		}
		first := rapid.Int64Range(0, 1000).Draw(t, "first")
		m.SettleLengths(&p, first, Mode{Chat: true})
		whole, parts := m.Begin(&p, first), m.Begin(&p, first)
		want := string(whole.Append(nil, 0, whole.Output, true))
		got := ""
		for from := 0; from < parts.Output; {
			to := min(from+rapid.IntRange(1, 5).Draw(t, "step"), parts.Output)
			got += string(parts.Append(nil, from, to, to == parts.Output))
			from = to
		}
		if got != want {
			t.Fatalf("%q in parts, %q as a whole", got, want)
		}
		for _, s := range p.Stops {
			if quoted := string(AppendQuoted(nil, s)); !p.KeepStop && strings.Contains(want, quoted) && whole.Stop != "" {
				t.Fatalf("%q has %q in it", want, s)
			}
		}
	})
}

// The bytes' names are those of vLLM's tokenizers: see "tok strs" in the testdata
// of vllmapi.
func TestTokenName(t *testing.T) {
	for text, want := range map[string]string{" wörld": "ĠwÃ¶rld", "\n": "Ċ", "a\x00\xff": "aĀÿ", "\x7f\xad": "ġŃ"} {
		if got := tokenName([]byte(text)); got != want {
			t.Errorf("%q is called %q, want %q", text, got, want)
		}
	}
	seen := map[rune]bool{}
	for _, r := range byteNames {
		seen[r] = true
	}
	if len(seen) != 256 {
		t.Errorf("%d names", len(seen))
	}
}
