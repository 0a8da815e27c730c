package serve

import (
	"bytes"
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

// pieceAt is which piece token i is of an answer whose text begins at first.
func pieceAt(first int64, i int) int {
	return int(uint64(first*7+int64(i)) % uint64(len(pieces)))
}

func piece(first int64, i int) string { return pieces[pieceAt(first, i)] }

// fingerprint stands for the build of the engine (system_fingerprint).
const fingerprint = `,"system_fingerprint":"pitot-mock"`

// template has the parts of an answer that stay the same. Fields and their
// order are those of vLLM 0.32; testdata has what it sent.
type template struct {
	ask
	base    []byte // up to and with `"choices":[`
	details bool   // cached tokens are told
	reasons bool   // reasoning tokens are told
}

// newTemplate encodes what the events of one answer share.
func newTemplate(a ask, id, model string, created int64) template {
	object := "text_completion"
	switch {
	case a.chat && a.stream:
		object = "chat.completion.chunk"
	case a.chat:
		object = "chat.completion"
	}
	return template{ask: a, base: fmt.Appendf(nil, `{"id":%s,"object":"%s","created":%d,"model":%s,"choices":[`,
		marshal(id), object, created, marshal(model))}
}

// marshal is v as JSON, with < and > as they are; it is for values that always
// encode.
func marshal(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return []byte("null")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func (t *template) begin(b []byte, index int) []byte {
	b = append(append(b, "data: "...), t.base...)
	return strconv.AppendInt(append(b, `{"index":`...), int64(index), 10)
}

// role appends the event that only names the role.
func (t *template) role(b []byte, c *choice) []byte {
	b = t.begin(b, c.index)
	b = append(b, `,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`...)
	if t.continuous {
		b = t.countUsage(b, t.prompt, 0, 0)
	}
	b = t.promptIDs(append(b, `,"prompt_token_ids":`...), c, t.tokenIDs)
	return append(b, `,"prompt_text":null}`+"\n\n"...)
}

// promptIDs appends the ids of a choice's prompt if they are told, or null.
func (t *template) promptIDs(b []byte, c *choice, told bool) []byte {
	if !told || len(c.prompt.ids) == 0 {
		return append(b, "null"...)
	}
	return append(b, marshal(c.prompt.ids)...)
}

// answerIDs appends the ids of the tokens [from, to) if the client asked for
// them, or null.
func (t *template) answerIDs(b []byte, c *choice, from, to int) []byte {
	if !t.tokenIDs {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i := from; i < to; i++ {
		if i > from {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, uint64(c.answerID(i)), 10)
	}
	return append(b, ']')
}

// token appends the event of the tokens [from, to) of a choice; false if they
// have none: vLLM writes nothing for what its parsers take away.
func (t *template) token(b []byte, c *choice, from, to int, finish string) ([]byte, bool) {
	b = t.begin(b, c.index)
	if t.chat {
		var shown bool
		if b, shown = t.delta(append(b, `,"delta":{`...), c, from, to, finish != ""); !shown && finish == "" {
			return b, false
		}
		b = append(b, '}')
	} else {
		b = append(b, `,"text":"`...)
		if t.echo && from == 0 {
			b = append(b, c.echo...)
		}
		b = append(c.text(b, from, to, finish != ""), '"')
	}
	b = t.appendLogprobs(append(b, `,"logprobs":`...), c, from, to)
	b = append(b, `,"finish_reason":`...)
	b = appendName(b, c.finishReason(finish))
	if !t.chat || finish != "" {
		b = append(b, `,"stop_reason":`...)
		b = appendStop(b, c, finish)
	}
	if !t.chat {
		b = t.promptIDs(append(b, `,"prompt_token_ids":`...), c, (t.echo || t.tokenIDs) && from == 0)
	}
	b = append(t.answerIDs(append(b, `,"token_ids":`...), c, from, to), "}]"...)
	switch {
	case t.continuous:
		b = t.countUsage(b, c.prompt.tokens, to, min(to, t.reasoning))
	case finish != "" && !t.usage:
		b = append(b, fingerprint...)
	}
	return append(b, "}\n\n"...), true
}

// delta appends the fields of a chat's delta, and says whether there are any.
func (t *template) delta(b []byte, c *choice, from, to int, end bool) ([]byte, bool) {
	switch {
	case t.call != nil:
		return t.callDelta(b, c, from, to)
	case t.reasoning == 0:
		b = append(b, `"content":"`...)
		return append(c.text(b, from, to, end), '"'), true
	}
	before := len(b)
	if until := min(to, t.reasoning); from < until && !t.hideReasoning {
		b = append(b, `"reasoning":"`...)
		b = append(c.text(b, from, until, end), '"')
	}
	// One token ends the reasoning and has no text.
	if from = max(from, t.reasoning+1); from < to {
		if len(b) > before {
			b = append(b, ',')
		}
		b = append(b, `"content":"`...)
		b = append(c.text(b, from, to, end), '"')
	}
	return b, len(b) > before
}

// callDelta appends what the tokens [from, to) give of a call: first its name,
// then piece by piece its arguments.
func (t *template) callDelta(b []byte, c *choice, from, to int) ([]byte, bool) {
	named := from <= callOpen && callOpen < to
	args := t.call.argsIn(from, to)
	if !named && args == "" {
		return b, false
	}
	b = append(b, `"content":null,"tool_calls":[{`...)
	if named {
		b = append(append(append(b, `"id":"`...), c.callID()...), `","type":"function",`...)
	}
	b = append(b, `"index":0,"function":{`...)
	if named {
		b = append(append(b, `"name":`...), marshal(t.call.name)...)
		if args != "" {
			b = append(b, ',')
		}
	}
	if args != "" {
		b = append(append(b, `"arguments":`...), marshal(args)...)
	}
	return append(b, "}}]"...), true
}

// usageEvent appends the event that has nothing but the usage.
func (t *template) usageEvent(b []byte, output, reasoning, cached, stored int) []byte {
	b = append(append(b, "data: "...), t.base...)
	b = appendCounts(append(b, ']'), t.prompt, output)
	if t.details {
		b = appendInt(b, `,"prompt_tokens_details":{"cached_tokens":`, cached)
		if t.chat {
			b = appendInt(b, `,"created_cache_tokens":`, stored)
		}
		b = append(b, '}')
	}
	if t.reasons && t.chat {
		b = append(appendInt(b, `,"completion_tokens_details":{"reasoning_tokens":`, reasoning), '}')
	}
	return append(append(append(b, '}'), fingerprint...), "}\n\n"...)
}

// countUsage appends the usage that goes with an event.
func (t *template) countUsage(b []byte, prompt, output, reasoning int) []byte {
	b = appendCounts(b, prompt, output)
	switch {
	case !t.chat:
	case t.reasons:
		b = append(appendInt(b, `,"completion_tokens_details":{"reasoning_tokens":`, reasoning), '}')
	default:
		b = append(b, `,"completion_tokens_details":null`...)
	}
	return append(b, '}')
}

// appendCounts appends the counts that every usage begins with, and leaves the
// object open.
func appendCounts(b []byte, prompt, output int) []byte {
	b = appendInt(b, `,"usage":{"prompt_tokens":`, prompt)
	b = appendInt(b, `,"total_tokens":`, prompt+output)
	return appendInt(b, `,"completion_tokens":`, output)
}

// whole is the body of an answer that is not streamed.
func (t *template) whole(choices []*choice, output, reasoning, cached, stored int) []byte {
	b := append([]byte(nil), t.base...)
	for i, c := range choices {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendInt(b, `{"index":`, c.index)
		if t.chat {
			b = t.message(append(b, `,"message":{"role":"assistant",`...), c)
		} else {
			b = append(b, `,"text":"`...)
			if t.echo {
				b = append(b, c.echo...)
			}
			b = append(c.text(b, 0, c.sent, true), '"')
		}
		b = t.appendLogprobs(append(b, `,"logprobs":`...), c, 0, c.sent)
		b = appendName(append(b, `,"finish_reason":`...), c.finishReason(c.finish))
		b = appendStop(append(b, `,"stop_reason":`...), c, c.finish)
		b = t.answerIDs(append(b, `,"token_ids":`...), c, 0, c.sent)
		if !t.chat {
			b = t.appendPromptLogprobs(append(b, `,"prompt_logprobs":`...), c)
			b = t.promptIDs(append(b, `,"prompt_token_ids":`...), c, t.tokenIDs)
		}
		b = append(b, `,"routed_experts":null}`...)
	}
	b = append(append(b, `],"service_tier":null`...), fingerprint...)
	b = appendCounts(b, t.prompt, output)
	b = append(b, `,"prompt_tokens_details":`...)
	switch {
	case !t.details:
		b = append(b, "null"...)
	case t.chat:
		b = appendInt(appendInt(b, `{"cached_tokens":`, cached), `,"created_cache_tokens":`, stored)
		b = append(b, `,"multimodal_tokens":null}`...)
	default:
		b = appendInt(b, `{"cached_tokens":`, cached)
		b = append(b, `,"created_cache_tokens":null,"multimodal_tokens":null}`...)
	}
	if t.reasons && t.chat {
		b = append(appendInt(b, `,"completion_tokens_details":{"reasoning_tokens":`, reasoning), "}}"...)
	} else {
		b = append(b, `,"completion_tokens_details":null}`...)
	}
	if t.chat {
		b = t.appendPromptLogprobs(append(b, `,"prompt_logprobs":`...), choices[0])
		b = t.promptIDs(append(b, `,"prompt_token_ids":`...), choices[0], t.tokenIDs)
		b = append(b, `,"prompt_text":null`...)
	}
	return append(b, `,"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}`...)
}

// message appends the fields of a whole chat answer behind its role.
func (t *template) message(b []byte, c *choice) []byte {
	const rest = `,"refusal":null,"annotations":null,"audio":null,"function_call":null`
	b = append(b, `"content":`...)
	switch {
	case t.call != nil && c.sent >= t.call.tokens():
		b = append(append(b, `""`+rest+`,"tool_calls":[{"id":"`...), c.callID()...)
		b = append(append(b, `","type":"function","function":{"name":`...), marshal(t.call.name)...)
		b = append(append(b, `,"arguments":`...), marshal(t.call.args)...)
		b = append(b, `}}],"reasoning":null`...)
	case t.call != nil: // cut off: what there is of it
		raw := t.call.raw()
		b = append(b, marshal(raw[:min(c.sent*callPiece, len(raw))])...)
		b = append(b, rest+`,"reasoning":null`...)
	case t.reasoning > 0:
		b = append(c.text(append(b, '"'), min(t.reasoning+1, c.sent), c.sent, true), `"`+rest+`,"reasoning":`...)
		if t.hideReasoning {
			b = append(b, "null"...)
		} else {
			b = append(c.text(append(b, '"'), 0, min(t.reasoning, c.sent), true), '"')
		}
	default:
		b = append(c.text(append(b, '"'), 0, c.sent, true), `"`+rest+`,"reasoning":null`...)
	}
	return append(b, '}')
}

func appendInt(b []byte, name string, n int) []byte {
	return strconv.AppendInt(append(b, name...), int64(n), 10)
}

func appendName(b []byte, name string) []byte {
	if name == "" {
		return append(b, "null"...)
	}
	return append(append(append(b, '"'), name...), '"')
}

func appendStop(b []byte, c *choice, finish string) []byte {
	if finish == "" || c.stop == "" {
		return append(b, "null"...)
	}
	return append(b, marshal(c.stop)...)
}
