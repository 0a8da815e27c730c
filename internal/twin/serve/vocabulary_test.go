package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pitot/internal/workload/token"
)

// tokenizer is the one that the embedded targets have.
func tokenizer(c Config) Config {
	c.Tokenize, c.Words = token.Universal().Split, token.Universal()
	return c
}

func (r *rig) tokenized(body string) tokenized {
	r.t.Helper()
	var got tokenized
	_, answer := r.do(post("/tokenize", body))
	if err := json.Unmarshal([]byte(answer), &got); err != nil || got.Count != len(got.Tokens) {
		r.t.Fatalf("%v %s", err, answer)
	}
	return got
}

// Ids are below vocab_size, and lead back to the text byte by byte.
func TestTokenIDs(t *testing.T) {
	for _, vocab := range []int{0, 8000, 32768, 128256} {
		r := start(t, fast, tokenizer(Config{Vocab: vocab}))
		rapid.Check(t, func(t *rapid.T) {
			text := rapid.OneOf(rapid.String(), rapid.StringMatching(`( ?[a-z]{1,12}){1,20}`)).Draw(t, "text")
			quoted := string(marshal(text))
			_ = json.Unmarshal([]byte(quoted), &text) // what is no UTF-8 is replaced
			got := r.tokenized(`{"prompt":` + quoted + `}`)
			for _, id := range got.Tokens {
				if id >= r.vocab.size || vocab > 0 && int(id) >= vocab {
					t.Fatalf("id %d of %d", id, vocab)
				}
			}
			_, back := r.do(post("/detokenize", string(marshal(map[string]any{"tokens": got.Tokens}))))
			if want := string(marshal(map[string]string{"prompt": text})); back != want {
				t.Fatalf("%s comes back as %s", want, back)
			}
		})
	}
}

// Bytes and words have the same ids everywhere: a router may have counted them
// on another server.
func TestWordsHaveFixedIDs(t *testing.T) {
	text := string(token.Universal().AppendText(nil, 1, 500, true))
	a, b := start(t, fast, tokenizer(Config{Vocab: 128256})), start(t, fast, tokenizer(Config{Vocab: 128256}))
	b.tokenized(`{"prompt":"quite other things, in great numbers: 0123456789"}`)
	ids := a.tokenized(`{"prompt":"` + text + `"}`).Tokens
	if diff := fmt.Sprint(ids) != fmt.Sprint(b.tokenized(`{"prompt":"`+text+`"}`).Tokens); diff {
		t.Error("ids differ")
	}
	distinct := map[uint32]bool{}
	for _, id := range ids {
		distinct[id] = true
	}
	if words := len(strings.Fields(text)); len(ids) != words || len(distinct) < words*9/10 {
		t.Errorf("%d ids, %d of them distinct, for %d words", len(ids), len(distinct), words)
	}
	fresh := start(t, fast, tokenizer(Config{Vocab: 128256})) // has met none of them
	_, back := fresh.do(post("/detokenize", string(marshal(map[string]any{"tokens": ids}))))
	if back != `{"prompt":"`+text+`"}` {
		t.Errorf("back: %s", back)
	}
}

// However much text comes, no more of it is remembered than there are ids.
func TestVocabularyIsBounded(t *testing.T) {
	var v vocabulary
	v.init(leastVocab, nil)
	for i := range 10 * leastVocab {
		if id := v.id(fmt.Appendf(nil, "text %d", i)); id >= v.size-specials || id < 256 {
			t.Fatalf("id %d", id)
		}
	}
	v.id(bytes.Repeat([]byte("a"), 1<<20))
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
	var s Server
	s.cfg = tokenizer(Config{}).complete()
	s.caching = true
	s.vocab.init(0, token.Universal())
	text := []byte("what is the air speed of an unladen swallow, in metres per second?")
	asText := s.textPrompt(text, 8)
	asIDs := s.idPrompt(s.encode(text, 8))
	if fmt.Sprint(asText.keys) != fmt.Sprint(asIDs.keys) || asText.hash != asIDs.hash || asText.tokens != asIDs.tokens {
		t.Errorf("%v\n%v", asText, asIDs)
	}
}

// The bytes' names are those of vLLM's tokenizers: see "tok strs" in testdata.
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
