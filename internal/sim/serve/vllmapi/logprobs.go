package vllmapi

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/lm"
)

// maxLogprobs is the maximum number of alternatives that a client may request (vLLM's
// --max-logprobs).
const maxLogprobs = 20

// appendLogprobs appends the logprobs of the tokens [from, to), or null.
func (w *writer) appendLogprobs(b []byte, c *choice, from, to int) []byte {
	switch {
	case w.logprobs < 0 || w.hideReasoning && w.plan.Reasoning > 0:
		return append(b, "null"...)
	case w.chat:
		return w.chatLogprobs(b, c, from, to)
	}
	return w.completionLogprobs(b, c, from, to)
}

func (w *writer) chatLogprobs(b []byte, c *choice, from, to int) []byte {
	appendToken := func(i, rank int) {
		text, bytes := c.TokenJSON(i, rank)
		b = dialect.Append(b, `{"token":"`, text, `","logprob":`, lm.LogprobText(rank), `,"bytes":`, bytes)
	}
	b = append(b, `{"content":[`...)
	for i := from; i < to; i++ {
		if i > from {
			b = append(b, ',')
		}
		appendToken(i, 0)
		b = append(b, `,"top_logprobs":[`...)
		for rank := range w.logprobs {
			if rank > 0 {
				b = append(b, ',')
			}
			appendToken(i, rank)
			b = append(b, '}')
		}
		b = append(b, "]}"...)
	}
	return append(b, "]}"...)
}

// scored is a token as the logprobs of a completion tell of it.
type scored struct {
	text  string // inside a JSON string
	chars int
	rank  int      // -1: it has none, as nothing comes before it
	best  []string // those that would be likelier, or come next after it, from rank 0 on
}

func (w *writer) completionLogprobs(b []byte, c *choice, from, to int) []byte {
	var tokens []scored
	if w.echo && from == 0 {
		tokens = w.scoredPrompt(c)
	}
	if !w.echoOnly {
		for i := from; i < to; i++ {
			text, _ := c.TokenJSON(i, 0)
			t := scored{text: text, chars: utf8.RuneCountInString(c.TokenText(i)), best: []string{text}}
			for rank := 1; rank < w.logprobs; rank++ {
				other, _ := c.TokenJSON(i, rank)
				t.best = append(t.best, other)
			}
			tokens = append(tokens, t)
		}
	}
	list := func(name string, one func(t *scored)) {
		b = append(append(b, name...), '[')
		for i := range tokens {
			if i > 0 {
				b = append(b, ',')
			}
			one(&tokens[i])
		}
		b = append(b, ']')
	}
	list(`{"text_offset":`, func(t *scored) {
		b = strconv.AppendInt(b, int64(c.offset), 10)
		c.offset += t.chars
	})
	list(`,"token_logprobs":`, func(t *scored) {
		if t.rank < 0 {
			b = append(b, "null"...)
			return
		}
		b = append(b, lm.LogprobText(t.rank)...)
	})
	list(`,"tokens":`, func(t *scored) { b = dialect.Append(b, `"`, t.text, `"`) })
	list(`,"top_logprobs":`, func(t *scored) {
		if t.rank < 0 {
			b = append(b, "null"...)
			return
		}
		b = dialect.Append(b, `{"`, t.text, `":`, lm.LogprobText(t.rank))
		for rank, other := range t.best {
			if other != t.text {
				b = dialect.Append(b, `,"`, other, `":`, lm.LogprobText(rank))
			}
		}
		b = append(b, '}')
	})
	return append(b, '}')
}

// scoredPrompt are the tokens of a choice's prompt, of which none is among the
// likeliest.
func (w *writer) scoredPrompt(c *choice) []scored {
	tokens := make([]scored, len(c.prompt.IDs))
	for i, id := range c.prompt.IDs {
		text := string(w.model.Decode(nil, id))
		t := scored{text: string(lm.AppendQuoted(nil, text)), chars: utf8.RuneCountInString(text), rank: w.logprobs}
		if i == 0 {
			t.rank = -1
		}
		for rank := range w.logprobs {
			other, _ := lm.StockWord(i + rank)
			t.best = append(t.best, other)
		}
		tokens[i] = t
	}
	return tokens
}

// appendPromptLogprobs appends those of the prompt's tokens, or null: the token
// itself, which is none of the best ones, and these. The first token has none.
func (w *writer) appendPromptLogprobs(b []byte, c *choice) []byte {
	if w.promptLogprobs < 0 {
		return append(b, "null"...)
	}
	appendToken := func(id uint32, rank int) {
		b = fmt.Appendf(b, `"%d":{"logprob":%s,"rank":%d,"decoded_token":%s}`, id, lm.LogprobText(rank), rank+1, dialect.Marshal(string(w.model.Decode(nil, id))))
	}
	b = append(b, '[')
	for i, id := range c.prompt.IDs {
		if i == 0 {
			b = append(b, "null"...)
			continue
		}
		b = append(b, ",{"...)
		appendToken(id, w.promptLogprobs)
		for rank := range w.promptLogprobs {
			if other := w.model.StockID(i + rank); other != id {
				b = append(b, ',')
				appendToken(other, rank)
			}
		}
		b = append(b, '}')
	}
	return append(b, ']')
}
