package vllmapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitot/internal/sim"
	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/lm"
)

// OpenAI's Responses, as vLLM has them: a chat, whose answer is told in events that
// have a type and a number each.

// beginResponses begins the answer of /v1/responses.
func (a *api) beginResponses(req *dialect.Request) (*dialect.Call, *dialect.Reply) {
	b, refused := readBody(req)
	if refused != nil {
		return nil, refused
	}
	b.needsInput()
	limit := b.intField("max_output_tokens", 1)
	if refused := b.faultReply(); refused != nil {
		return nil, refused
	}
	if id, ok := b.stringField("previous_response_id"); ok {
		r := responsesFailure(http.StatusNotFound, "invalid_request_error", "Response with id '"+id+"' not found.", "response_id")
		return nil, &r
	}
	chat := b.chatOfResponse()
	if refused := b.faultReply(); refused != nil {
		return nil, refused
	}
	call, refused := a.beginChat(withBody(req, chat))
	if refused != nil {
		return nil, limitRenamed(refused)
	}
	w := &responsesWriter{writer: call.Writer.(*writer), echo: b, began: time.Now().Unix(), limit: limit, number: uint64(req.N)}
	if !b.hasField("max_output_tokens") {
		w.limit = w.plan.Limit
	}
	call.ID = w.prefixedID("resp")
	call.Opening, call.Early, call.Writer = 2, 2, w
	return call, nil
}

// needsInput notes that there is no input, or one of no form.
func (b *body) needsInput() {
	raw := b.m["input"]
	var list []json.RawMessage
	if raw == nil {
		b.noteFault("missing", "input", json.RawMessage(fmt.Sprintf("<%d>", len(b.m)+1))) // vLLM adds one
	} else if _, ok := b.stringField("input"); !ok && json.Unmarshal(raw, &list) != nil {
		b.noteNeither("input", raw)
	}
}

// limitRenamed is a refusal in which a limit beyond the context is called by its name
// here; of others vLLM gives a chat's.
func limitRenamed(r *dialect.Reply) *dialect.Reply {
	if !bytes.Contains(r.Body, []byte("cannot be greater than max_model_len")) {
		return r
	}
	other := *r
	other.Body = bytes.ReplaceAll(r.Body, []byte("max_tokens"), []byte("max_output_tokens"))
	return &other
}

func responsesFailure(status int, kind, message, param string) dialect.Reply {
	return dialect.Reply{Status: status, Body: dialect.Marshal(failureBody{failureError{Message: message, Type: kind, Param: &param, Code: status}})}
}

// chatOfResponse is the chat that a request for a response comes to.
func (b *body) chatOfResponse() map[string]any {
	chat := b.selectFields("model", "temperature", "top_p", "top_k", "presence_penalty", "frequency_penalty",
		"repetition_penalty", "ignore_eos", "seed", "stop", "cache_salt", "priority", "stream")
	if b.hasField("max_output_tokens") {
		chat["max_tokens"] = b.m["max_output_tokens"]
	}
	var messages []any
	say := func(role string, content any) {
		messages = append(messages, map[string]any{"role": role, "content": content})
	}
	if text, ok := b.stringField("instructions"); ok {
		say("system", text)
	}
	var items []struct {
		Type, Role        string
		Content           json.RawMessage
		Name, Arguments   string
		Output            json.RawMessage
		Summary, Thoughts json.RawMessage
	}
	text, ok := b.stringField("input")
	switch {
	case ok:
		say("user", text)
	case json.Unmarshal(b.m["input"], &items) == nil:
		for _, i := range items {
			switch i.Type {
			case "function_call":
				say("assistant", i.Name+i.Arguments)
			case "function_call_output":
				say("tool", string(i.Output))
			case "reasoning":
			default:
				if blocks := b.textOfBlocks(i.Content, 0); blocks != nil {
					say(i.Role, *blocks)
				} else {
					say(i.Role, i.Content)
				}
			}
		}
	}
	chat["messages"] = messages
	b.toolsOfResponse(chat)
	return chat
}

// toolsOfResponse puts the tools, and which is to be called, in a chat's words.
func (b *body) toolsOfResponse(chat map[string]any) {
	var tools []map[string]json.RawMessage
	if !b.hasField("tools") || json.Unmarshal(b.m["tools"], &tools) != nil || len(tools) == 0 {
		return
	}
	var list []any
	for _, t := range tools {
		if string(t["type"]) == `"function"` {
			list = append(list, functionTool(t))
		}
	}
	if len(list) == 0 {
		return
	}
	chat["tools"] = list
	var choice struct{ Name string }
	switch {
	case !b.hasField("tool_choice"):
	case json.Unmarshal(b.m["tool_choice"], &choice) == nil:
		chat["tool_choice"] = functionTool(map[string]any{"name": choice.Name})
	default:
		chat["tool_choice"] = b.m["tool_choice"]
	}
}

// responsesWriter writes a response.
type responsesWriter struct {
	*writer
	echo    *body // what the response repeats of the request
	number  uint64
	began   int64
	limit   int
	events  int // that were written
	finish  string
	counted dialect.Counts
	noUsage bool
	failed  bool

	kind   lm.Kind // of the item that is open, if one is
	open   bool
	items  [][]byte // that are complete
	text   []byte   // of the open one, as it stands inside a JSON string
	called []byte   // name of the function of the open one, likewise
}

// prefixedID is the identity of the response, or of one of its items.
func (w *responsesWriter) prefixedID(prefix string) string {
	return fmt.Sprintf("%s_%016x", prefix, sim.Mix(w.number^uint64(len(w.items)+len(prefix))<<32))
}

// itemID is that of the item that is open.
func (w *responsesWriter) itemID() string {
	return w.prefixedID(map[lm.Kind]string{lm.Text: "msg", lm.Thought: "rs", lm.CallName: "fc"}[w.kind])
}

// appendEvent appends an event: the fields before its number, which are in the order of the
// alphabet but for the type, and those behind it.
func (w *responsesWriter) appendEvent(b []byte, kind string, before, behind []byte) []byte {
	end := `"` + kind + `"`
	if kind == "response.function_call_arguments.done" {
		end += `,"name":"` + string(w.called) + `"`
	}
	b = fmt.Appendf(b, "event: %s\ndata: {%s,\"sequence_number\":%d%s,\"type\":%s}\n\n", kind, before, w.events, behind, end)
	w.events++
	return b
}

// Open implements [dialect.Writer].
func (w *responsesWriter) Open(b []byte, i int) []byte {
	kind := [...]string{"response.created", "response.in_progress"}[i&1]
	return w.appendEvent(b, kind, w.appendResponse([]byte(`"response":`), "in_progress"), nil)
}

// Tokens implements [dialect.Writer].
func (w *responsesWriter) Tokens(b []byte, index, from, to int, finish string) ([]byte, bool) {
	c := &w.choices[index]
	c.sent = to
	if finish != "" {
		w.finish = finish
	}
	shown := false
	c.EachPiece(from, to, finish != "", func(kind lm.Kind, text []byte) {
		shown = true
		b = w.openItem(b, kind, text)
		var name, logprobs string
		at := `"content_index":0,`
		switch kind {
		case lm.Text:
			name, logprobs = "output_text", `"logprobs":[],`
		case lm.Thought:
			name = "reasoning_text"
		case lm.CallArgs:
			name, at = "function_call_arguments", ""
		default:
			return
		}
		w.text = append(w.text, text...)
		b = w.appendEvent(b, "response."+name+".delta", fmt.Appendf(nil, `%s"delta":"%s","item_id":"%s",%s"output_index":%d`,
			at, text, w.itemID(), logprobs, len(w.items)), nil)
	})
	return b, shown
}

// openItem opens the item that a piece belongs to, where another is open or none.
func (w *responsesWriter) openItem(b []byte, kind lm.Kind, text []byte) []byte {
	item := kind
	if kind == lm.CallArgs {
		item = lm.CallName
	}
	if w.open && w.kind == item {
		return b
	}
	b = w.closeItem(b)
	w.open, w.kind, w.text = true, item, nil
	if item == lm.CallName {
		w.called = append([]byte(nil), text...)
	}
	b = w.appendEvent(b, "response.output_item.added", append(w.appendItem([]byte(`"item":`), "in_progress", false),
		fmt.Sprintf(`,"output_index":%d`, len(w.items))...), nil)
	if item != lm.CallName {
		b = w.appendEvent(b, "response.content_part.added", w.appendPart(nil, "[]"), nil)
	}
	return b
}

// appendPart appends what a part's event has.
func (w *responsesWriter) appendPart(text []byte, logprobs string) []byte {
	part := fmt.Appendf(nil, `{"annotations":[],"text":"%s","type":"output_text","logprobs":%s}`, text, logprobs)
	if w.kind == lm.Thought {
		part = fmt.Appendf(nil, `{"text":"%s","type":"reasoning_text"}`, text)
	}
	return fmt.Appendf(nil, `"content_index":0,"item_id":"%s","output_index":%d,"part":%s`, w.itemID(), len(w.items), part)
}

// appendItem appends the open item.
func (w *responsesWriter) appendItem(b []byte, status string, whole bool) []byte {
	if status != "null" {
		status = `"` + status + `"`
	}
	var id = w.itemID()
	switch w.kind {
	case lm.CallName:
		return fmt.Appendf(b, `{"arguments":"%s","call_id":"%s","name":"%s","type":"function_call","id":"%s","async":null,"caller":null,"namespace":null,"status":%s}`,
			w.text, w.choices[0].callID(), w.called, id, status)
	case lm.Thought:
		content := "null"
		if whole {
			content = fmt.Sprintf(`[{"text":"%s","type":"reasoning_text"}]`, w.text)
		}
		return fmt.Appendf(b, `{"id":"%s","summary":[],"type":"reasoning","content":%s,"encrypted_content":null,"status":%s}`, id, content, status)
	}
	content := "[]"
	if whole {
		content = fmt.Sprintf(`[{"annotations":[],"text":"%s","type":"output_text","logprobs":null}]`, w.text)
	}
	return fmt.Appendf(b, `{"id":"%s","content":%s,"role":"assistant","status":%s,"type":"message","phase":null}`, id, content, status)
}

// closeItem ends the open item.
func (w *responsesWriter) closeItem(b []byte) []byte {
	if !w.open {
		return b
	}
	at := fmt.Sprintf(`"output_index":%d`, len(w.items))
	switch w.kind {
	case lm.CallName:
		b = w.appendEvent(b, "response.function_call_arguments.done", fmt.Appendf(nil, `"arguments":"%s","item_id":"%s",%s`, w.text, w.itemID(), at), nil)
	case lm.Thought:
		b = w.appendEvent(b, "response.reasoning_text.done", fmt.Appendf(nil, `"content_index":0,"item_id":"%s",%s`, w.itemID(), at), fmt.Appendf(nil, `,"text":"%s"`, w.text))
	default:
		b = w.appendEvent(b, "response.output_text.done", fmt.Appendf(nil, `"content_index":0,"item_id":"%s","logprobs":[],%s`, w.itemID(), at), fmt.Appendf(nil, `,"text":"%s"`, w.text))
	}
	if w.kind != lm.CallName {
		b = w.appendEvent(b, "response.content_part.done", w.appendPart(w.text, "null"), nil)
	}
	item := w.appendItem(nil, "completed", true)
	b = w.appendEvent(b, "response.output_item.done", fmt.Appendf(nil, `"item":%s,%s`, item, at), nil)
	w.items, w.open = append(w.items, item), false
	return b
}

// Usage implements [dialect.Writer]: the last event has it.
func (w *responsesWriter) Usage(b []byte, n dialect.Counts) []byte {
	w.counted = n
	return b
}

// WithoutUsage implements [dialect.Uncounted].
func (w *responsesWriter) WithoutUsage() { w.noUsage = true }

// Done implements [dialect.Writer]. vLLM's last event is called completed even where
// the response is not.
func (w *responsesWriter) Done(b []byte) []byte {
	if w.failed { // nothing follows an error
		return b
	}
	b = w.closeItem(b)
	return w.appendEvent(b, "response.completed", w.appendResponse([]byte(`"response":`), w.finalStatus()), nil)
}

// finalStatus returns the final status of the response.
func (w *responsesWriter) finalStatus() string {
	if w.finish == "length" {
		return "incomplete"
	}
	return "completed"
}

// appendResponse appends the response as it stands.
func (w *responsesWriter) appendResponse(b []byte, status string) []byte {
	ended := status != "in_progress"
	incomplete, usage := "null", "null"
	if status == "incomplete" {
		incomplete = `{"reason":"max_output_tokens"}`
	}
	if ended && !w.noUsage {
		usage = w.usageJSON()
	}
	raw := func(name, unset string) string {
		if !w.echo.hasField(name) {
			return unset
		}
		return tidyJSON(w.echo.m[name], unset)
	}
	float := func(name string, unset float64) string {
		text := strconv.FormatFloat(w.echo.floatField(name, unset), 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return text
	}
	tools, choice := w.echoedTools()
	b = fmt.Appendf(b, `{"id":"%s","created_at":%d,"incomplete_details":%s,"instructions":%s,"metadata":%s,"model":%s,"object":"response","output":[%s]`,
		w.responseID(), w.began, incomplete, raw("instructions", "null"), raw("metadata", "null"), dialect.Marshal(w.served), bytes.Join(w.items, []byte(",")))
	b = fmt.Appendf(b, `,"parallel_tool_calls":%s,"temperature":%s,"tool_choice":%s,"tools":%s,"top_p":%s,"background":false,"max_output_tokens":%d`,
		raw("parallel_tool_calls", "true"), float("temperature", 1), choice, tools, float("top_p", 1), w.limit)
	b = fmt.Appendf(b, `,"max_tool_calls":%s,"previous_response_id":null,"prompt":null,"reasoning":%s,"service_tier":%s,"status":"%s","text":%s,"top_logprobs":%s,"truncation":%s,"usage":%s,"user":%s`,
		raw("max_tool_calls", "null"), raw("reasoning", "null"), raw("service_tier", `"auto"`), status, raw("text", "null"), raw("top_logprobs", "null"), raw("truncation", `"disabled"`), usage, raw("user", "null"))
	return fmt.Appendf(b, `,"presence_penalty":%s,"frequency_penalty":%s,"kv_transfer_params":null,"ec_transfer_params":null,"input_messages":null,"output_messages":null}`,
		float("presence_penalty", 0), float("frequency_penalty", 0))
}

// tidyJSON is a value without spaces, unset where there is none.
func tidyJSON(raw json.RawMessage, unset string) string {
	var tidy bytes.Buffer
	if json.Compact(&tidy, raw) != nil {
		return unset
	}
	return tidy.String()
}

// responseID is that of the response, whatever items there are by now.
func (w *responsesWriter) responseID() string {
	return (&responsesWriter{number: w.number}).prefixedID("resp")
}

// echoedTools returns the request's tools and its tool choice, as the response repeats them.
func (w *responsesWriter) echoedTools() (tools, choice string) {
	var list []map[string]json.RawMessage
	if !w.echo.hasField("tools") || json.Unmarshal(w.echo.m["tools"], &list) != nil || len(list) == 0 {
		return "[]", `"none"`
	}
	var b strings.Builder
	for i, t := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		field := func(name string) string { return tidyJSON(t[name], "null") }
		fmt.Fprintf(&b, `{"name":%s,"parameters":%s,"strict":%s,"type":%s,"allowed_callers":null,"async":null,"defer_loading":null,"description":%s,"output_schema":null}`,
			field("name"), field("parameters"), field("strict"), field("type"), field("description"))
	}
	choice = `"auto"`
	var named map[string]json.RawMessage
	switch raw := w.echo.m["tool_choice"]; {
	case !w.echo.hasField("tool_choice"):
	case json.Unmarshal(raw, &named) == nil:
		choice = fmt.Sprintf(`{"name":%s,"type":%s}`, cmp.Or(string(named["name"]), "null"), cmp.Or(string(named["type"]), `"function"`))
	default:
		choice = string(raw)
	}
	return "[" + b.String() + "]", choice
}

// usageJSON is the usage.
func (w *responsesWriter) usageJSON() string {
	reasoning, n := 0, w.counted
	if w.plan.Reasoning > 0 {
		reasoning = min(w.choices[0].sent, w.plan.Reasoning)
	}
	if !w.details {
		n.Cached, n.Stored = 0, 0
	}
	return fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d,"cache_write_tokens":%d,"input_tokens_per_turn":[],"cached_tokens_per_turn":[]},`+
		`"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d,"tool_output_tokens":0,"output_tokens_per_turn":[],"tool_output_tokens_per_turn":[]},"total_tokens":%d}`,
		w.prompt, n.Cached, n.Stored, n.Output, reasoning, w.prompt+n.Output)
}

// Error implements [dialect.Writer].
func (w *responsesWriter) Error(b []byte) []byte {
	w.failed = true
	return fmt.Appendf(b, "event: error\ndata: {\"code\":\"server_error\",\"message\":%s,\"param\":null,\"sequence_number\":%d,\"type\":\"error\"}\n\n",
		dialect.Marshal(engineFailed), w.events)
}

// Malformed implements [dialect.Writer].
func (w *responsesWriter) Malformed(b []byte) []byte {
	return append(b, "event: response.output_text.delta\ndata: {\"content_index\":0,\"del\n\n"...)
}

// Whole implements [dialect.Writer].
func (w *responsesWriter) Whole(b []byte, parts []dialect.Part, n dialect.Counts) []byte {
	p := parts[0]
	w.finish, w.counted, w.choices[0].sent = p.Finish, n, p.Tokens
	close := func() {
		if w.open {
			status := "completed"
			if w.kind == lm.Thought {
				status = "null"
			}
			w.items, w.open = append(w.items, w.appendItem(nil, status, true)), false
		}
	}
	w.choices[0].EachPiece(0, p.Tokens, true, func(kind lm.Kind, text []byte) {
		text = slices.Clone(text)
		if kind == lm.CallArgs {
			w.text = text
			return
		}
		close()
		if w.open, w.kind, w.text = true, kind, text; kind == lm.CallName {
			w.called, w.text = text, nil
		}
	})
	close()
	return w.appendResponse(b, w.finalStatus())
}
