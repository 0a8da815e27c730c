package vllmapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"pitot/internal/sim"
	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/lm"
)

// Anthropic's Messages, which vLLM makes a chat of, and of whose answer it makes a
// message.

// beginMessages begins the answer of /v1/messages.
func (a *api) beginMessages(req *dialect.Request) (*dialect.Call, *dialect.Reply) {
	b, refused := readBody(req)
	if refused != nil {
		return nil, refused
	}
	chat, refused := b.chatOfMessages()
	if refused != nil {
		return nil, refused
	}
	call, refused := a.beginChat(withBody(req, chat))
	if refused != nil {
		return nil, anthropicFailure(refused)
	}
	w := &messagesWriter{writer: call.Writer.(*writer), id: call.ID}
	call.Opening, call.Writer = 1, w
	return call, nil
}

// withBody is a request with another body.
func withBody(req *dialect.Request, body map[string]any) *dialect.Request {
	other := *req
	other.Body = dialect.Marshal(body)
	return &other
}

// chatOfMessages is the chat that vLLM makes of a request for a message.
func (b *body) chatOfMessages() (map[string]any, *dialect.Reply) {
	for _, name := range []string{"model", "messages", "max_tokens"} {
		if b.m[name] == nil {
			b.noteMissing(name)
		}
	}
	if model, ok := b.stringField("model"); ok && model == "" {
		b.complainWith("value_error", "model", "Value error, Model is required", b.m["model"], "'error': ValueError('Model is required')")
	}
	if n := b.intField("max_tokens", 1); n <= 0 {
		b.complainWith("value_error", "max_tokens", "Value error, max_tokens must be positive", b.m["max_tokens"], "'error': ValueError('max_tokens must be positive')")
	}
	if refused := b.faultReply(); refused != nil {
		return nil, refused
	}
	chat := b.selectFields("model", "max_tokens", "temperature", "top_p", "top_k", "cache_salt")
	chat["max_completion_tokens"] = b.m["max_tokens"]
	if b.boolField("stream") {
		chat["stream"] = true
		chat["stream_options"] = map[string]bool{"include_usage": true}
	}
	if b.hasField("stop_sequences") {
		chat["stop"] = b.m["stop_sequences"]
	}
	var list []map[string]json.RawMessage
	if json.Unmarshal(b.m["messages"], &list) != nil {
		chat["messages"] = b.m["messages"] // refused there
		return chat, nil
	}
	if b.hasField("system") {
		list = slices.Insert(list, 0, map[string]json.RawMessage{"role": []byte(`"system"`), "content": b.m["system"]})
	}
	for _, m := range list {
		if blocks := b.textOfBlocks(m["content"], 0); blocks != nil {
			m["content"] = dialect.Marshal(*blocks)
		}
	}
	if refused := b.faultReply(); refused != nil {
		return nil, refused
	}
	chat["messages"] = list
	b.toolsOfMessages(chat)
	return chat, nil
}

// selectFields is so many of the fields that are there.
func (b *body) selectFields(names ...string) map[string]any {
	some := map[string]any{}
	for _, name := range names {
		if raw, ok := b.m[name]; ok {
			some[name] = raw
		}
	}
	return some
}

// deepest bounds how far blocks may stand in blocks: each level is read again for those
// around it.
const deepest = 8

// textOfBlocks is the text of a content in blocks, of results and calls of tools too, at
// a depth; nil where it is a plain string. Blocks that stand too deep are complained of.
func (b *body) textOfBlocks(content json.RawMessage, depth int) *string {
	if len(content) == 0 || content[0] != '[' {
		return nil
	}
	if depth == deepest {
		b.noteFault("string_type", "content", json.RawMessage("[]"))
		return nil
	}
	var blocks []struct {
		Text, Thinking string
		Input, Content json.RawMessage
	}
	if json.Unmarshal(content, &blocks) != nil {
		return nil
	}
	var text strings.Builder
	for _, block := range blocks {
		text.WriteString(block.Text + block.Thinking)
		text.Write(block.Input)
		var plain string
		switch inner := b.textOfBlocks(block.Content, depth+1); {
		case inner != nil:
			text.WriteString(*inner)
		case len(block.Content) > 0 && block.Content[0] == '"' && json.Unmarshal(block.Content, &plain) == nil:
			text.WriteString(plain)
		}
	}
	all := text.String()
	return &all
}

// toolsOfMessages puts the tools, and which is to be called, in a chat's words.
func (b *body) toolsOfMessages(chat map[string]any) {
	var tools []struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Schema      json.RawMessage `json:"input_schema"`
	}
	if !b.hasField("tools") || json.Unmarshal(b.m["tools"], &tools) != nil {
		return
	}
	var list []any
	for _, t := range tools {
		list = append(list, functionTool(map[string]any{"name": t.Name, "description": t.Description, "parameters": t.Schema}))
	}
	chat["tools"], chat["tool_choice"] = list, "auto"
	var choice struct{ Type, Name string }
	_ = json.Unmarshal(b.m["tool_choice"], &choice)
	switch choice.Type {
	case "any":
		chat["tool_choice"] = "required"
	case "none":
		chat["tool_choice"] = "none"
	case "tool":
		chat["tool_choice"] = functionTool(map[string]any{"name": choice.Name})
	}
}

// functionTool is a function, or its name, as a chat has it.
func functionTool(function any) map[string]any {
	return map[string]any{"type": "function", "function": function}
}

// anthropicFailure is a refusal as this route words it: without its parameter.
func anthropicFailure(r *dialect.Reply) *dialect.Reply {
	var f failureBody
	if json.Unmarshal(r.Body, &f) != nil || f.Error.Message == "" {
		return r
	}
	other := *r
	other.Body = anthropicError(f.Error.Type, f.Error.Message)
	return &other
}

func anthropicError(kind, message string) []byte {
	return fmt.Appendf(nil, `{"type":"error","error":{"type":%s,"message":%s}}`, dialect.Marshal(kind), dialect.Marshal(message))
}

// messagesWriter writes a message.
type messagesWriter struct {
	*writer
	id      string
	block   lm.Kind // of the content block that is open, if any is
	open    bool
	index   int // of that block
	finish  string
	noUsage bool
	failed  bool
}

// beginEvent begins an event.
func (w *messagesWriter) beginEvent(b []byte, kind string) []byte {
	return fmt.Appendf(b, "event: %s\ndata: {\"type\":\"%s\"", kind, kind)
}

// Open implements [dialect.Writer].
func (w *messagesWriter) Open(b []byte, _ int) []byte {
	return fmt.Appendf(w.beginEvent(b, "message_start"), `,"message":{"id":%s,"type":"message","role":"assistant","content":[],"model":%s,`+
		`"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":%d,"output_tokens":0}}}`+"\n\n", dialect.Marshal(w.id), dialect.Marshal(w.served), w.prompt)
}

// Tokens implements [dialect.Writer].
func (w *messagesWriter) Tokens(b []byte, index, from, to int, finish string) ([]byte, bool) {
	c := &w.choices[index]
	c.sent = to
	if finish != "" {
		w.finish = finish
	}
	shown := false
	c.EachPiece(from, to, finish != "", func(kind lm.Kind, text []byte) {
		shown = true
		b = w.openBlock(b, c, kind, text)
		var field string
		switch kind {
		case lm.Text:
			field = `"text_delta","text`
		case lm.Thought:
			field = `"thinking_delta","thinking`
		case lm.CallArgs:
			field = `"input_json_delta","partial_json`
		default:
			return
		}
		b = append(dialect.Append(w.beginEvent(b, "content_block_delta"), `,"delta":{"type":`, field, `":"`), text...)
		b = append(dialect.AppendInt(b, `"},"index":`, w.index), "}\n\n"...)
	})
	return b, shown
}

// openBlock opens the content block that a piece belongs to, where another is open or
// none.
func (w *messagesWriter) openBlock(b []byte, c *choice, kind lm.Kind, text []byte) []byte {
	block := kind
	if kind == lm.CallArgs {
		block = lm.CallName
	}
	if w.open && w.block == block {
		return b
	}
	if w.open {
		b = w.closeBlock(b)
		w.index++
	}
	w.open, w.block = true, block
	b = append(w.beginEvent(b, "content_block_start"), `,"content_block":{"type":`...)
	switch block {
	case lm.Text:
		b = append(b, `"text","text":""`...)
	case lm.Thought:
		b = append(b, `"thinking","thinking":""`...)
	default:
		b = fmt.Appendf(b, `"tool_use","id":"%s","name":"%s","input":{}`, c.callID(), text)
	}
	return append(dialect.AppendInt(b, `},"index":`, w.index), "}\n\n"...)
}

// closeBlock ends the open block; what was thought is signed.
func (w *messagesWriter) closeBlock(b []byte) []byte {
	if w.block == lm.Thought {
		b = fmt.Appendf(w.beginEvent(b, "content_block_delta"), `,"delta":{"type":"signature_delta","signature":"%s"},"index":%d}`+"\n\n", w.placeholderSignature(), w.index)
	}
	return append(dialect.AppendInt(w.beginEvent(b, "content_block_stop"), `,"index":`, w.index), "}\n\n"...)
}

// placeholderSignature stands for one.
func (w *messagesWriter) placeholderSignature() string {
	n := uint64(w.choices[0].number)
	return fmt.Sprintf("%016x%016x", sim.Mix(n), sim.Mix(^n))
}

// stopReason is why an answer ended: the reason, and the stop sequence or null.
func (w *messagesWriter) stopReason(finish string) (reason string, sequence []byte) {
	c := &w.choices[0]
	switch {
	case finish == "length":
		return "max_tokens", []byte("null")
	case w.plan.Call != nil:
		return "tool_use", []byte("null")
	case c.Stop != "":
		return "stop_sequence", dialect.Marshal(c.Stop)
	}
	return "end_turn", []byte("null")
}

// Usage implements [dialect.Writer]: the event that ends the message has it.
func (w *messagesWriter) Usage(b []byte, n dialect.Counts) []byte {
	if w.open {
		b = w.closeBlock(b)
	}
	reason, sequence := w.stopReason(w.finish)
	b = fmt.Appendf(w.beginEvent(b, "message_delta"), `,"delta":{"stop_reason":"%s","stop_sequence":%s},"usage":`, reason, sequence)
	if w.noUsage {
		b = append(b, "null"...)
	} else {
		b = w.appendUsage(b, n)
	}
	return append(b, "}\n\n"...)
}

// WithoutUsage implements [dialect.Uncounted].
func (w *messagesWriter) WithoutUsage() { w.noUsage = true }

// appendUsage appends the usage: of the prompt what is neither from the cache nor stored in
// it is counted apart.
func (w *messagesWriter) appendUsage(b []byte, n dialect.Counts) []byte {
	if !w.details {
		return fmt.Appendf(b, `{"input_tokens":%d,"output_tokens":%d}`, w.prompt, n.Output)
	}
	return fmt.Appendf(b, `{"input_tokens":%d,"output_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d}`,
		w.prompt-n.Cached-n.Stored, n.Output, n.Stored, n.Cached)
}

// Done implements [dialect.Writer].
func (w *messagesWriter) Done(b []byte) []byte {
	if w.failed { // nothing follows an error
		return b
	}
	return append(w.beginEvent(b, "message_stop"), "}\n\n"...)
}

// Error implements [dialect.Writer].
func (w *messagesWriter) Error(b []byte) []byte {
	w.failed = true
	return fmt.Appendf(b, "event: error\ndata: %s\n\n", anthropicError("internal_error", engineFailed))
}

// Malformed implements [dialect.Writer].
func (w *messagesWriter) Malformed(b []byte) []byte {
	return append(w.beginEvent(b, "content_block_delta"), `,"delta":{"type":"text_del`+"\n\n"...)
}

// Whole implements [dialect.Writer].
func (w *messagesWriter) Whole(b []byte, parts []dialect.Part, n dialect.Counts) []byte {
	c, p := &w.choices[0], parts[0]
	var blocks []string
	add := func(format string, args ...any) { blocks = append(blocks, fmt.Sprintf(format, args...)) }
	c.EachPiece(0, p.Tokens, true, func(kind lm.Kind, text []byte) {
		switch kind {
		case lm.Text:
			add(`{"type":"text","text":"%s"}`, text)
		case lm.Thought:
			add(`{"type":"thinking","thinking":"%s","signature":"%s"}`, text, w.placeholderSignature())
		case lm.CallName:
			args := w.plan.Call.Args
			if p.Tokens < w.plan.Call.Tokens() {
				args = "{}"
			}
			add(`{"type":"tool_use","id":"%s","name":"%s","input":%s}`, c.callID(), text, args)
		}
	})
	if len(blocks) == 0 {
		add(`{"type":"text","text":""}`)
	}
	reason, sequence := w.stopReason(p.Finish)
	b = fmt.Appendf(b, `{"id":%s,"type":"message","role":"assistant","content":[%s],"model":%s,"stop_reason":"%s"`,
		dialect.Marshal(w.id), strings.Join(blocks, ","), dialect.Marshal(w.served), reason)
	if string(sequence) != "null" {
		b = fmt.Appendf(b, `,"stop_sequence":%s`, sequence)
	}
	return append(w.appendUsage(append(b, `,"usage":`...), n), '}')
}

// countTokens answers /v1/messages/count_tokens.
func (a *api) countTokens(req *dialect.Request) dialect.Reply {
	b, refused := readBody(req)
	if refused != nil {
		return *refused
	}
	b.m = maps.Clone(b.m)
	b.m["max_tokens"] = []byte("1")
	chat, refused := b.chatOfMessages()
	if refused != nil {
		return *refused
	}
	r, refused := a.read(withBody(req, chat), true)
	if refused != nil {
		return *anthropicFailure(refused)
	}
	return dialect.Reply{Status: http.StatusOK, Body: fmt.Appendf(nil,
		`{"input_tokens":%d,"context_management":{"original_input_tokens":%d}}`, r.prompt, r.prompt)}
}
