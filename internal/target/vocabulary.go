package target

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
)

// Where a server's tokenizer makes more than one token of some generated
// words, and the server tells which tokens it makes of a text (POST
// /tokenize, as vLLM has it), the words that are not one token are left out.
// Then prompts have the length that was asked for there, too.

// fewestWords is the smallest vocabulary worth having: 9 bits a token.
const fewestWords = 512

// restrict replaces the vocabulary by the words that are one token each, and says
// whether it could.
func (t *Target) restrict(ctx context.Context) bool {
	v := t.Options.Vocab
	one, ok := t.singleTokenWords(ctx, slices.Collect(v.Words()), " ")
	if !ok || len(one) < fewestWords {
		return false
	}
	first, ok := t.singleTokenWords(ctx, slices.Collect(v.FirstWords()), "\n")
	if !ok || len(first) == 0 {
		return false
	}
	r, err := v.Restrict(func(w string) bool { return one[w] }, func(w string) bool { return first[w] })
	if err != nil {
		return false
	}
	t.Options.Vocab = r
	return true
}

// singleTokenWords asks which words are one token when sep stands before them; a line
// break never is part of a word's token, a space is.
func (t *Target) singleTokenWords(ctx context.Context, words []string, sep string) (map[string]bool, bool) {
	one := map[string]bool{}
	for batch := range slices.Chunk(words, 1024) {
		body, _ := json.Marshal(map[string]any{
			"model": t.Options.Model, "prompt": sep + strings.Join(batch, sep),
			"add_special_tokens": false, "return_token_strs": true,
		})
		a, err := t.fetch(ctx, "POST", t.Dialer.Endpoint.Base+"/tokenize", body)
		if err != nil || a.Status != 200 {
			return nil, false
		}
		var answer struct {
			Strings []string `json:"token_strs"`
		}
		if json.Unmarshal(a.Body, &answer) != nil {
			return nil, false
		}
		counts := perWord(answer.Strings, sep)
		if len(counts) != len(batch) { // not a tokenizer we understand
			return nil, false
		}
		for i, n := range counts {
			if n == 1 {
				one[batch[i]] = true
			}
		}
	}
	return one, true
}

// perWord counts the tokens of each word. Tokenizers write the space before a
// word as Ġ (byte-level BPE), ▁ (SentencePiece) or itself; line breaks are
// tokens of their own: Ċ, <0x0A> or themselves.
func perWord(tokens []string, sep string) (counts []int) {
	begins := []string{"Ġ", "▁", " "}
	if sep == "\n" {
		begins = []string{"Ċ", "<0x0A>", "\n"}
	}
	for _, tok := range tokens {
		begun := false
		for _, b := range begins {
			begun = begun || strings.HasPrefix(tok, b)
		}
		switch {
		case begun && sep == "\n":
			counts = append(counts, 0)
		case begun:
			counts = append(counts, 1)
		case len(counts) > 0:
			counts[len(counts)-1]++
		}
	}
	return counts
}
