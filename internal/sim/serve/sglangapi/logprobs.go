package sglangapi

import (
	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/lm"
)

// appendLogprobs appends the logprobs of the tokens [from, to), or null.
func (w *writer) appendLogprobs(b []byte, c *choice, from, to int) []byte {
	switch {
	case w.logprobs < 0 || w.plan.Call != nil:
		return append(b, "null"...)
	case !w.chat:
		return w.completionLogprobs(b, c, from, to)
	}
	token := func(i, rank int) {
		text, bytes := c.TokenJSON(i, rank)
		b = dialect.Append(b, `{"token":"`, text, `","bytes":`, bytes, `,"logprob":`, lm.LogprobText(rank))
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
	list(`,"token_logprobs":`, func(int) { b = append(b, lm.LogprobText(0)...) })
	list(`,"tokens":`, func(i int) {
		text, _ := c.TokenJSON(i, 0)
		b = dialect.Append(b, `"`, text, `"`)
	})
	if w.logprobs == 0 {
		return append(b, `,"top_logprobs":[]}`...)
	}
	list(`,"top_logprobs":`, func(i int) {
		for rank := range w.logprobs {
			b = append(b, "{,"[min(rank, 1)])
			text, _ := c.TokenJSON(i, rank)
			b = dialect.Append(b, `"`, text, `":`, lm.LogprobText(rank))
		}
		b = append(b, '}')
	})
	return append(b, '}')
}
