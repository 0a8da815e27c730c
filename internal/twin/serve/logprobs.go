package serve

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

// said is token i of the answer inside a JSON string, and its bytes as a JSON
// list.
func (t *template) said(c *choice, i int) (text, bytes string) {
	if !t.scripted(i) {
		p := pieceAt(c.first, i)
		return pieces[p], bytesOf[p]
	}
	raw := t.tokenText(c.first, i)
	list := make([]int, len(raw))
	for k := range len(raw) {
		list[k] = int(raw[k])
	}
	return string(appendQuoted(nil, raw)), string(marshal(list))
}

// instead is the piece that is the rank-th best in place of token i, from 1.
func instead(c *choice, i, rank int) int { return (pieceAt(c.first, i) + rank) % len(pieces) }

func (t *template) chatLogprobs(b []byte, c *choice, from, to int) []byte {
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
		text, bytes := t.said(c, i)
		one(text, bytes, 0)
		b = append(b, `,"top_logprobs":[`...)
		for rank := range t.logprobs {
			if rank > 0 {
				b = append(b, ',')
				p := instead(c, i, rank)
				text, bytes = pieces[p], bytesOf[p]
			}
			one(text, bytes, rank)
			b = append(b, '}')
		}
		b = append(b, "]}"...)
	}
	return append(b, "]}"...)
}

func (t *template) completionLogprobs(b []byte, c *choice, from, to int) []byte {
	list := func(name string, one func(i int, text string)) {
		b = append(append(b, name...), '[')
		for i := from; i < to; i++ {
			if i > from {
				b = append(b, ',')
			}
			text, _ := t.said(c, i)
			one(i, text)
		}
		b = append(b, ']')
	}
	at := c.offset
	list(`{"text_offset":`, func(i int, _ string) {
		b = strconv.AppendInt(b, int64(at), 10)
		at += len(t.tokenText(c.first, i))
	})
	c.offset = at
	list(`,"token_logprobs":`, func(int, string) { b = append(b, logprob(0)...) })
	list(`,"tokens":`, func(_ int, text string) { b = append(append(append(b, '"'), text...), '"') })
	list(`,"top_logprobs":`, func(i int, text string) {
		b = append(b, '{')
		for rank := range max(t.logprobs, 1) { // the token itself at least
			if rank > 0 {
				b = append(b, ',')
				text = pieces[instead(c, i, rank)]
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
func (t *template) appendPromptLogprobs(b []byte, c *choice) []byte {
	if t.promptLogprobs < 0 {
		return append(b, "null"...)
	}
	v := &c.st.s.vocab
	one := func(id uint32, rank int) {
		b = append(strconv.AppendUint(append(b, '"'), uint64(id), 10), `":{"logprob":`...)
		b = append(append(b, logprob(rank)...), `,"rank":`...)
		b = append(strconv.AppendInt(b, int64(rank+1), 10), `,"decoded_token":`...)
		b = append(append(b, marshal(string(v.appendText(nil, id)))...), '}')
	}
	b = append(b, '[')
	for i, id := range c.prompt.ids {
		if i == 0 {
			b = append(b, "null"...)
			continue
		}
		b = append(b, ",{"...)
		one(id, t.promptLogprobs)
		for rank := range t.promptLogprobs {
			if other := c.st.s.pieceIDs[(i+rank)%len(pieces)]; other != id {
				b = append(b, ',')
				one(other, rank)
			}
		}
		b = append(b, '}')
	}
	return append(b, ']')
}
