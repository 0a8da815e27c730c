package mock

import (
	"fmt"
	"strconv"
)

// maxLogprobs is how many alternatives a client may ask for (vLLM's
// --max-logprobs).
const maxLogprobs = 20

// logprob is that of the rank-th best token, 0 the one that is sent.
func logprob(rank int) string { return strconv.Itoa(-1-rank) + ".5" }

// bytesOf are the pieces' bytes as JSON lists.
var bytesOf = func() (lists [len(pieces)]string) {
	for i, p := range pieces {
		l := "["
		for j := range len(p) {
			if j > 0 {
				l += ","
			}
			l += fmt.Sprint(p[j])
		}
		lists[i] = l + "]"
	}
	return lists
}()

// appendLogprobs appends the logprobs of the tokens [from, to), or null.
func (t *template) appendLogprobs(b []byte, c *choice, from, to int) []byte {
	switch {
	case t.logprobs < 0 || t.hideReasoning && t.reasoning > 0:
		return append(b, "null"...)
	case t.chat:
		return t.chatLogprobs(b, c, from, to)
	}
	return t.completionLogprobs(b, c, from, to)
}

func (t *template) chatLogprobs(b []byte, c *choice, from, to int) []byte {
	one := func(piece, rank int) {
		b = append(append(b, `{"token":"`...), pieces[piece]...)
		b = append(append(b, `","logprob":`...), logprob(rank)...)
		b = append(append(b, `,"bytes":`...), bytesOf[piece]...)
	}
	b = append(b, `{"content":[`...)
	for i := from; i < to; i++ {
		if i > from {
			b = append(b, ',')
		}
		p := pieceAt(c.first, i)
		one(p, 0)
		b = append(b, `,"top_logprobs":[`...)
		for rank := range t.logprobs {
			if rank > 0 {
				b = append(b, ',')
			}
			one((p+rank)%len(pieces), rank)
			b = append(b, '}')
		}
		b = append(b, "]}"...)
	}
	return append(b, "]}"...)
}

func (t *template) completionLogprobs(b []byte, c *choice, from, to int) []byte {
	list := func(name string, one func(p int)) {
		b = append(append(b, name...), '[')
		for i := from; i < to; i++ {
			if i > from {
				b = append(b, ',')
			}
			one(pieceAt(c.first, i))
		}
		b = append(b, ']')
	}
	at := c.offset
	list(`{"text_offset":`, func(p int) {
		b = strconv.AppendInt(b, int64(at), 10)
		at += len(pieces[p])
	})
	c.offset = at
	list(`,"token_logprobs":`, func(int) { b = append(b, logprob(0)...) })
	list(`,"tokens":`, func(p int) { b = append(append(append(b, '"'), pieces[p]...), '"') })
	list(`,"top_logprobs":`, func(p int) {
		b = append(b, '{')
		for rank := range max(t.logprobs, 1) { // the token itself at least
			if rank > 0 {
				b = append(b, ',')
			}
			b = append(append(append(b, '"'), pieces[(p+rank)%len(pieces)]...), `":`...)
			b = append(b, logprob(rank)...)
		}
		b = append(b, '}')
	})
	return append(b, '}')
}
