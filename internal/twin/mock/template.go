package mock

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// pieces are the texts of the tokens: one common English word each, with the
// space before it.
var pieces = [...]string{
	" the", " air", " of", " and", " flow", " to", " in", " a", " speed", " is", " was", " for", " with", " as",
	" on", " by", " at", " from", " this", " that", " it", " are", " be", " an", " or", " not", " have", " one",
	" time", " first", " new", " water",
}

// piece is the text of token i of request n.
func piece(n int64, i int) string {
	return pieces[uint64(n*7+int64(i))%uint64(len(pieces))]
}

// template has the parts of a stream's events that stay the same.
type template struct {
	chat bool
	base []byte // up to and with `"choices":[`
}

// newTemplate encodes what the events of one answer share.
func newTemplate(a ask, id, model string, created int64) template {
	object := "text_completion"
	if a.chat {
		object = "chat.completion.chunk"
	}
	if !a.stream && a.chat {
		object = "chat.completion"
	}
	quote := func(s string) []byte {
		b, err := json.Marshal(s)
		if err != nil { // a string always encodes
			return []byte(`""`)
		}
		return b
	}
	return template{chat: a.chat, base: fmt.Appendf(nil, `{"id":%s,"object":"%s","created":%d,"model":%s,"choices":[`,
		quote(id), object, created, quote(model))}
}

// role appends the event that only names the role.
func (t *template) role(b []byte, a ask) []byte {
	b = append(append(b, "data: "...), t.base...)
	b = append(b, `{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`...)
	if a.continuous {
		b = appendUsage(b, a.prompt, 0)
	}
	return append(b, "}\n\n"...)
}

// token appends the event of tokens from..to of request n.
func (t *template) token(b []byte, a ask, n int64, from, to int, finish string) []byte {
	b = append(append(b, "data: "...), t.base...)
	if t.chat {
		b = append(b, `{"index":0,"delta":{"content":"`...)
	} else {
		b = append(b, `{"index":0,"text":"`...)
	}
	for i := from; i < to; i++ {
		b = append(b, piece(n, i)...)
	}
	if t.chat {
		b = append(b, `"},"logprobs":null,"finish_reason":`...)
	} else {
		b = append(b, `","logprobs":null,"finish_reason":`...)
	}
	b = appendFinish(b, finish)
	if !t.chat || finish != "" {
		b = append(b, `,"stop_reason":null`...)
	}
	b = append(b, `}]`...)
	if a.continuous {
		b = appendUsage(b, a.prompt, to)
	} else if !t.chat {
		b = append(b, `,"usage":null`...)
	}
	return append(b, "}\n\n"...)
}

// usage appends the event that has nothing but the usage.
func (t *template) usage(b []byte, a ask, output int) []byte {
	b = append(append(b, "data: "...), t.base...)
	b = appendUsage(append(b, ']'), a.prompt, output)
	return append(b, "}\n\n"...)
}

// whole is the body of an answer that is not streamed.
func (t *template) whole(a ask, text []byte, output int, finish string) []byte {
	b := append([]byte(nil), t.base...)
	if t.chat {
		b = append(b, `{"index":0,"message":{"role":"assistant","content":"`...)
		b = append(b, text...)
		b = append(b, `"},"logprobs":null,"finish_reason":`...)
	} else {
		b = append(b, `{"index":0,"text":"`...)
		b = append(b, text...)
		b = append(b, `","logprobs":null,"finish_reason":`...)
	}
	b = appendFinish(b, finish)
	b = append(b, `,"stop_reason":null}]`...)
	return append(appendUsage(b, a.prompt, output), '}')
}

func appendFinish(b []byte, finish string) []byte {
	if finish == "" {
		return append(b, "null"...)
	}
	return append(append(append(b, '"'), finish...), '"')
}

func appendUsage(b []byte, prompt, output int) []byte {
	b = append(b, `,"usage":{"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(prompt), 10)
	b = append(b, `,"total_tokens":`...)
	b = strconv.AppendInt(b, int64(prompt+output), 10)
	b = append(b, `,"completion_tokens":`...)
	b = strconv.AppendInt(b, int64(output), 10)
	return append(b, '}')
}
