package vllmapi

import (
	"strconv"

	"pitot/internal/twin/serve/dialect"
	"pitot/internal/twin/serve/lm"
)

// maxLogprobs is how many alternatives a client may ask for (vLLM's
// --max-logprobs).
const maxLogprobs = 20

// logprob is that of the rank-th best token, 0 the one that is sent.
func logprob(rank int) string { return strconv.Itoa(-1-rank) + ".5" }

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

// inJSON is token i inside a JSON string, and its bytes as a JSON list.
func (c *choice) inJSON(i int) (text, bytes string) {
	if word, ok := c.Stocked(i); ok {
		return lm.Stock(word)
	}
	raw := c.Text(i)
	list := make([]int, len(raw))
	for k := range len(raw) {
		list[k] = int(raw[k])
	}
	return string(lm.AppendQuoted(nil, raw)), string(dialect.Marshal(list))
}

// instead is the word that is the rank-th best in place of token i, from 1.
func (c *choice) instead(i, rank int) (text, bytes string) {
	word, _ := c.Stocked(i)
	return lm.Stock(word + rank)
}

func (w *writer) chatLogprobs(b []byte, c *choice, from, to int) []byte {
	one := func(text, bytes string, rank int) {
		b = append(append(b, `{"token":"`...), text...)
		b = append(append(b, `","logprob":`...), logprob(rank)...)
		b = append(append(b, `,"bytes":`...), bytes...)
	}
	b = append(b, `{"content":[`...)
	for i := from; i < to; i++ {
		if i > from {
			b = append(b, ',')
		}
		text, bytes := c.inJSON(i)
		one(text, bytes, 0)
		b = append(b, `,"top_logprobs":[`...)
		for rank := range w.logprobs {
			if rank > 0 {
				b = append(b, ',')
				text, bytes = c.instead(i, rank)
			}
			one(text, bytes, rank)
			b = append(b, '}')
		}
		b = append(b, "]}"...)
	}
	return append(b, "]}"...)
}

func (w *writer) completionLogprobs(b []byte, c *choice, from, to int) []byte {
	list := func(name string, one func(i int, text string)) {
		b = append(append(b, name...), '[')
		for i := from; i < to; i++ {
			if i > from {
				b = append(b, ',')
			}
			text, _ := c.inJSON(i)
			one(i, text)
		}
		b = append(b, ']')
	}
	at := c.offset
	list(`{"text_offset":`, func(i int, _ string) {
		b = strconv.AppendInt(b, int64(at), 10)
		at += len(c.Text(i))
	})
	c.offset = at
	list(`,"token_logprobs":`, func(int, string) { b = append(b, logprob(0)...) })
	list(`,"tokens":`, func(_ int, text string) { b = append(append(append(b, '"'), text...), '"') })
	list(`,"top_logprobs":`, func(i int, text string) {
		b = append(b, '{')
		for rank := range max(w.logprobs, 1) { // the token itself at least
			if rank > 0 {
				b = append(b, ',')
				text, _ = c.instead(i, rank)
			}
			b = append(append(append(b, '"'), text...), `":`...)
			b = append(b, logprob(rank)...)
		}
		b = append(b, '}')
	})
	return append(b, '}')
}

// appendPromptLogprobs appends those of the prompt's tokens, or null: the token
// itself, which is none of the best ones, and these. The first token has none.
func (w *writer) appendPromptLogprobs(b []byte, c *choice) []byte {
	if w.promptLogprobs < 0 {
		return append(b, "null"...)
	}
	one := func(id uint32, rank int) {
		b = append(strconv.AppendUint(append(b, '"'), uint64(id), 10), `":{"logprob":`...)
		b = append(append(b, logprob(rank)...), `,"rank":`...)
		b = append(strconv.AppendInt(b, int64(rank+1), 10), `,"decoded_token":`...)
		b = append(append(b, dialect.Marshal(string(w.model.Decode(nil, id)))...), '}')
	}
	b = append(b, '[')
	for i, id := range c.prompt.IDs {
		if i == 0 {
			b = append(b, "null"...)
			continue
		}
		b = append(b, ",{"...)
		one(id, w.promptLogprobs)
		for rank := range w.promptLogprobs {
			if other := w.model.StockID(i + rank); other != id {
				b = append(b, ',')
				one(other, rank)
			}
		}
		b = append(b, '}')
	}
	return append(b, ']')
}
