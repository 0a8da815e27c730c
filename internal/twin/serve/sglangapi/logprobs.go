package sglangapi

import (
	"strconv"

	"pitot/internal/twin/serve/dialect"
	"pitot/internal/twin/serve/lm"
)

// formatLogprob is that of the rank-th best token, 0 the one that is sent.
func formatLogprob(rank int) string { return strconv.Itoa(-1-rank) + ".5" }

// inJSON is the rank-th best in place of token i as it stands in a JSON string, and its
// bytes as a list.
func (c *choice) inJSON(i, rank int) (text, bytes string) {
	if word, ok := c.StockIndex(i); ok || rank > 0 {
		return lm.StockWord(word + rank)
	}
	raw := c.TokenText(i)
	list := make([]int, len(raw))
	for k := range len(raw) {
		list[k] = int(raw[k])
	}
	return string(lm.AppendQuoted(nil, raw)), string(dialect.Marshal(list))
}

// appendLogprobs appends the logprobs of the tokens [from, to), or null.
func (w *writer) appendLogprobs(b []byte, c *choice, from, to int) []byte {
	switch {
	case w.logprobs < 0 || w.plan.Call != nil:
		return append(b, "null"...)
	case !w.chat:
		return w.completionLogprobs(b, c, from, to)
	}
	token := func(i, rank int) {
		text, bytes := c.inJSON(i, rank)
		b = append(append(append(b, `{"token":"`...), text...), `","bytes":`...)
		b = append(append(append(b, bytes...), `,"logprob":`...), formatLogprob(rank)...)
	}
	b = append(b, `{"content":[`...)
	for i := from; i < to; i++ {
		if i > from {
			b = append(b, ',')
		}
		token(i, 0)
		b = append(b, `,"top_logprobs":[`...)
		for rank := range w.logprobs {
			if rank > 0 {
				b = append(b, ',')
			}
			token(i, rank)
			b = append(b, '}')
		}
		b = append(b, "]}"...)
	}
	return append(b, "]}"...)
}

// completionLogprobs appends those of a completion; SGLang does not work out where in the
// text a token is.
func (w *writer) completionLogprobs(b []byte, c *choice, from, to int) []byte {
	list := func(name string, one func(i int)) {
		b = append(append(b, name...), '[')
		for i := from; i < to; i++ {
			if i > from {
				b = append(b, ',')
			}
			one(i)
		}
		b = append(b, ']')
	}
	list(`{"text_offset":`, func(int) { b = append(b, "-1"...) })
	list(`,"token_logprobs":`, func(int) { b = append(b, formatLogprob(0)...) })
	list(`,"tokens":`, func(i int) {
		text, _ := c.inJSON(i, 0)
		b = append(append(append(b, '"'), text...), '"')
	})
	if w.logprobs == 0 {
		return append(b, `,"top_logprobs":[]}`...)
	}
	list(`,"top_logprobs":`, func(i int) {
		for rank := range w.logprobs {
			b = append(b, "{,"[min(rank, 1)])
			text, _ := c.inJSON(i, rank)
			b = append(append(append(append(b, '"'), text...), `":`...), formatLogprob(rank)...)
		}
		b = append(b, '}')
	})
	return append(b, '}')
}
