package target

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/workload"
)

// Where a server's tokenizer makes more than one token of some generated
// words, and the server tells which tokens it makes of a text (POST
// /tokenize, as vLLM has it), the words that are not one token are left out.
// Then prompts have the length that was asked for there, too.

// fewestWords is the smallest vocabulary worth having: 9 bits a token.
const fewestWords = 512

// fewestFirst is from how many words on that can begin prompts of any template others are left
// out: so many texts are apart within the next word at the latest.
const fewestFirst = 64

// countWords returns the number of words for which is returns true.
func countWords(words iter.Seq[string], is func(w string) bool) (n int) {
	for w := range words {
		if is(w) {
			n++
		}
	}
	return n
}

// restrictVocabulary replaces the vocabulary by the words that are one token each, and says
// whether it could.
func (t *Target) restrictVocabulary(ctx context.Context) bool {
	v := t.Options.Vocab
	one, ok := t.singleTokenWords(ctx, slices.Collect(v.Words()), " ")
	if !ok || len(one) < fewestWords {
		return false
	}
	first, ok := t.singleTokenWords(ctx, slices.Collect(v.FirstWords()), "\n")
	if !ok || len(first) == 0 {
		return false
	}
	// Chat templates write a line break before a prompt or a space: where enough words are one
	// token behind either, no others begin prompts.
	behindSpace, ok := t.singleTokenWords(ctx, slices.Collect(v.FirstWords()), " ")
	both := func(w string) bool { return first[w] && behindSpace[w] }
	if n := countWords(v.FirstWords(), both); ok && n >= fewestFirst {
		maps.DeleteFunc(first, func(w string, _ bool) bool { return !both(w) })
	}
	r, err := v.RestrictTo(func(w string) bool { return one[w] }, func(w string) bool { return first[w] })
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

// takeWords replaces the vocabulary by the words that are one token each for the
// model's tokenizer, so that a generated prompt has as many tokens as words, and says
// whether it could.
func (t *Target) takeWords() bool {
	e := t.Tokenizer.NewEncoder()
	tokens := func(text string) int {
		n, err := e.Count([]byte(text))
		if err != nil {
			return -1 // of no use in a prompt
		}
		return n
	}
	const before = "the"
	alone := tokens(before)
	goesOn := func(w string) bool { return tokens(before+" "+w) == alone+1 }
	begins := func(w string) bool { return tokens(w) == 1 }
	first := begins
	// As with the server's own tokenizer: some templates write a space before a prompt.
	if both := func(w string) bool { return begins(w) && goesOn(w) }; countWords(t.Options.Vocab.FirstWords(), both) >= fewestFirst {
		first = both
	}
	v, err := t.Options.Vocab.RestrictTo(goesOn, first)
	if err != nil || v.Size() < fewestWords {
		t.noteAdaptation(result.Adaptation{Kind: result.ServerLengths, Why: result.Reason{Code: result.FewPlainWords}})
		return false
	}
	for start := range uint64(4) { // words next to each other stay what they are
		if n := tokens(string(v.AppendText(nil, start, longWords, true))); n != longWords {
			t.noteAdaptation(result.Adaptation{Kind: result.ServerLengths, Why: result.Reason{Code: result.WordsCountMore, N: float64(n), Of: longWords}})
			return false
		}
	}
	t.Options.Vocab = v
	t.Calibration = workload.Calibration{PerWord: 1}
	return true
}

// lengthsByTokenizer notes that prompts are as long as the tokenizer counts, and why the server's
// count is not known. Of a chat it counts the text alone: the server's template adds tokens that
// only the server can count.
func (t *Target) lengthsByTokenizer(why result.ReasonCode) {
	kind := result.TokenizerLengths
	if t.API.Messages(t.Options) {
		kind = result.TextLengths
	} else {
		t.Calibration.Overhead = float64(t.Tokenizer.TemplateTokens())
	}
	t.noteAdaptation(result.Adaptation{Kind: kind, Why: result.Reason{Code: why}})
}

// calibrateByTokenizer takes the length of prompts from the tokenizer. The server is
// asked for its count of one prompt, which tells what its template adds, and of a longer
// one, which tells whether the tokenizer is that of its model: if not, it says so, and
// prompts are as long as the server counts.
func (t *Target) calibrateByTokenizer(ctx context.Context) (done bool, err error) {
	all := t.Options.Vocab
	if !t.takeWords() {
		return false, nil
	}
	var besides [2]int32
	seed := uint64(time.Now().UnixNano())
	for i, n := range []int{shortWords, longWords} {
		row := t.askWithRetries(ctx, requestOfWords(n, seed+uint64(i)), 1)
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if row.PromptTokens < 0 {
			t.lengthsByTokenizer(result.PromptsNotCounted)
			return true, nil
		}
		besides[i] = row.PromptTokens - int32(n)
	}
	if besides[0] != besides[1] {
		t.noteAdaptation(result.Adaptation{Kind: result.ServerLengths, Why: result.Reason{Code: result.NotModelsTokenizer,
			N: shortWords, Of: longWords, Low: float64(besides[0] + shortWords), High: float64(besides[1] + longWords)}})
		t.Held = &result.TokenizerMatch{Ours: longWords - shortWords, Theirs: longWords - shortWords + int(besides[1]-besides[0]), Differ: int(max(besides[1]-besides[0], besides[0]-besides[1]))}
		t.Options.Vocab, t.Calibration = all, workload.Calibration{}
		return false, nil
	}
	t.Calibration.Overhead = float64(besides[0])
	t.Server["prompt_tokens"] = fmt.Sprintf("%s + 1 per word", say.Exact(t.Calibration.Overhead))
	return true, nil
}
