package loadgen

import (
	"math"
	"strings"
	"testing"

	"pitot/internal/results/record"
	"pitot/internal/tokenizer"
)

// counter counts with a tokenizer of ten words.
func counter(t *testing.T) *Counter {
	t.Helper()
	tok, err := tokenizer.Parse([]byte(`{"pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always"},
		"decoder":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always"},
		"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["▁air",-1],["▁flow",-1],["▁speed",-1],["▁",-9],["a",-9],["i",-9],["r",-9],["s",-9],[".",-9]]}}`))
	if err != nil {
		t.Fatal(err)
	}
	return NewCounter(tok)
}

// row is an answer of chunks of these texts, and what is streamed of it.
func answerOf(pieces []string, of func(i int, c *record.Chunk)) (r record.Row, chunks []record.Chunk, text []byte) {
	r = record.BlankRow()
	for i, p := range pieces {
		c := record.Chunk{Bytes: int32(len(p))}
		if of != nil {
			of(i, &c)
		}
		chunks, text = append(chunks, c), append(text, p...)
		r.TextBytes += int64(len(p))
	}
	return r, chunks, text
}

func TestCounter(t *testing.T) {
	c := counter(t)
	for name, x := range map[string]struct {
		pieces []string
		of     func(i int, c *record.Chunk)
		total  int32
		each   []int32 // 0: not known
	}{
		"a token each":              {[]string{" air", " flow", " speed"}, nil, 3, []int32{1, 1, 1}},
		"several in a chunk":        {[]string{"air flow", " speed air"}, nil, 4, []int32{2, 2}},
		"one token in two chunks":   {[]string{" ai", "r flow"}, nil, 2, []int32{0, 0}},
		"unknown text":              {[]string{" xyz", " air"}, nil, 3, []int32{0, 0}},
		"the server told them":      {[]string{" air", " flow speed"}, func(i int, c *record.Chunk) { c.Tokens = 7 }, 3, []int32{7, 7}},
		"reasoning, then an answer": {[]string{" air", " flow", "speed", " air"}, func(i int, c *record.Chunk) { c.Kind = record.Kind(1 - i/2) }, 4, []int32{1, 1, 1, 1}},
		"two answers":               {[]string{" air", " flow", " flow air", " speed"}, func(i int, c *record.Chunk) { c.Choice = int32(i % 2) }, 5, []int32{1, 1, 2, 1}},
		"the largest index":         {[]string{" air", " flow", " flow air", " speed"}, func(i int, c *record.Chunk) { c.Choice = int32(i%2) * math.MaxInt32 }, 5, []int32{1, 1, 2, 1}},
	} {
		r, chunks, text := answerOf(x.pieces, x.of)
		c.Count(&r, chunks, text)
		if r.Counted != x.total || r.CompletionTokens != x.total || !r.NoUsage {
			t.Errorf("%s: %d tokens, %d completion tokens, want %d", name, r.Counted, r.CompletionTokens, x.total)
		}
		for i := range chunks {
			if chunks[i].Tokens != x.each[i] {
				t.Errorf("%s: chunk %d has %d tokens, want %d", name, i, chunks[i].Tokens, x.each[i])
			}
		}
	}
	r, chunks, text := answerOf([]string{" air", " flow"}, nil)
	r.CompletionTokens = 9
	if c.Count(&r, chunks, text); r.CompletionTokens != 9 || r.NoUsage || r.Counted != 2 || r.FirstTokens != 1 {
		t.Errorf("beside a usage of 9: %+v", r)
	}
	r, chunks, text = answerOf([]string{" air", " flow"}, func(i int, c *record.Chunk) {
		if i == 0 {
			c.Kind = record.Reasoning
		}
	})
	r.CompletionTokens, r.HiddenTokens = 32, 30
	if c.Count(&r, chunks, text); r.Counted != record.Unset || chunks[0].Tokens != 0 {
		t.Errorf("a summary of reasoning was counted: %d", r.Counted)
	}
	r, chunks, text = answerOf([]string{" air flow", " speed air"}, nil)
	if c.Whole(&r, chunks, text); r.Counted != 4 || r.CompletionTokens != 4 || r.FirstTokens != record.Unset {
		t.Errorf("an answer that was not streamed: %+v", r)
	}
	r, chunks, text = answerOf([]string{" air", " flow"}, nil)
	if c.Count(&r, chunks, text[1:]); r.Counted != record.Unset {
		t.Errorf("text that is not what was streamed was counted: %d", r.Counted)
	}
}

// An answer that the tokenizer gives up on has no count, and is told of.
func TestGaveUp(t *testing.T) {
	tok, err := tokenizer.Parse([]byte(`{"pre_tokenizer":{"type":"Split","behavior":"Isolated","pattern":{"Regex":"(?:a|a)*b"}},
		"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`))
	if err != nil {
		t.Fatal(err)
	}
	c := NewCounter(tok)
	r, chunks, text := answerOf([]string{strings.Repeat("a", 40)}, nil)
	c.Count(&r, chunks, text)
	if n, why := c.GaveUp(); n != 1 || why == nil || r.Counted != record.Unset || r.CompletionTokens != record.Unset || r.NoUsage {
		t.Errorf("%d given up, %v: %+v", n, why, r)
	}
}
