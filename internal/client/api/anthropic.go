package api

import (
	"strings"

	"pitot/internal/results/record"
	"pitot/internal/workload"
)

// Anthropic is Anthropic's Messages, as Anthropic, vLLM, llama.cpp and gateways serve
// it.
//
// Not known from it: whether thinking that it shows is all that was thought, or a
// summary. It has no field that holds an engine to a length: answers may end early.
var Anthropic API = &dialect{
	name: "anthropic", routes: []string{"/v1/messages"}, models: "/v1/models", key: "ANTHROPIC_API_KEY",
	alias: map[string]string{"aiperf": "messages"}, sign: Sign{Host: "api.anthropic.com"},
	maxField: "max_tokens",
	decoder:  func() Decoder { return newFast(new(anthropicDecoder)) },
	headers: func(key string) []Header {
		version := Header{"anthropic-version", "2023-06-01"}
		return requestHeaders(eventsOrJSON, version, Header{"x-api-key", key})
	},
	concede: concedeSampling, asked: anthropicAsked, body: anthropicBody,
}

// messagesLimit is the token limit sent where the length is left to the server: the API wants a
// limit.
const messagesLimit = 4096

func anthropicAsked(r *workload.Request, o Options) Asked {
	return Asked{Tokens: overlays(r, o, "").number(int64(anthropicLimit(r)), "max_tokens")}
}

func anthropicLimit(r *workload.Request) int {
	if r.Output > 0 {
		return r.Output
	}
	return messagesLimit
}

// anthropicBody writes a request. What a system says stands apart from the conversation.
func anthropicBody(dst []byte, r *workload.Request, o Options) ([]byte, error) {
	start := len(dst)
	dst = appendModel(dst, o)
	system, rest := systemApart(r)
	if len(system.Messages) > 0 {
		dst = appendPrompt(append(dst, `,"system":`...), system, o)
	}
	dst = appendMessages(append(dst, `,"messages":`...), rest, o)
	dst = appendNumber(dst, `,"max_tokens":`, anthropicLimit(r))
	dst = appendIf(dst, !o.NoTemperature, `,"temperature":0`)
	dst = appendIf(dst, o.Stream, `,"stream":true`)
	return withExtras(append(dst, '}'), start, r, o)
}

// systemApart divides a conversation into what a system says and the rest.
func systemApart(r *workload.Request) (system, rest *workload.Request) {
	system, rest = &workload.Request{}, &workload.Request{}
	for _, m := range r.Messages {
		to := rest
		if m.Role == "system" {
			to = system
		}
		to.Messages = append(to.Messages, m)
	}
	return system, rest
}

// anthropicDecoder reads events and whole messages.
type anthropicDecoder struct {
	reading
	prompt, cached int32 // of the usage so far that counts the most of the prompt
}

// Reset implements [Decoder].
func (x *anthropicDecoder) Reset() {
	x.reading.Reset()
	x.prompt, x.cached = record.Unset, record.Unset
}

// readEvent implements [holeReader].
func (x *anthropicDecoder) readEvent(data []byte, d *Delta) error {
	s := &x.s
	kind := string(stringField(data, "type"))
	ok := s.eachKey(func(key []byte) bool {
		switch k := string(key); {
		case k == "message" && kind == "message_start":
			return x.fieldIn("usage", func() bool { return s.null() || x.readUsage(d) })
		case k == "content_block" && kind == "content_block_start":
			return x.readBlock(d)
		case k == "delta" && kind == "content_block_delta":
			return x.eachField(func(key []byte) bool { return x.textField(key, d) })
		case k == "delta" && kind == "message_delta":
			return x.eachField(func(key []byte) bool { return x.stopReason(key, d) })
		case k == "usage" && kind == "message_delta":
			return s.null() || x.readUsage(d)
		case k == "error":
			return s.null() || x.readFault(d)
		}
		return s.skipValue()
	})
	switch kind {
	case "message_start":
		// What it counts of the answer is a beginning, and no count: some servers say 0,
		// some 1.
		d.Usage.Completion, d.Usage.Reasoning = record.Unset, record.Unset
	case "message_stop":
		d.Done, x.done = true, true
	}
	if x.assignChoice(d, 0, 0, 0); len(d.Parts) == 0 {
		d.Empty = false
	}
	return x.endEvent(ok, d)
}

// Whole implements [Decoder].
func (x *anthropicDecoder) Whole(data []byte, d *Delta) error {
	x.Reset()
	x.beginEvent(data)
	s := &x.s
	ok := s.eachKey(func(key []byte) bool {
		switch string(key) {
		case "content":
			return x.eachObject(func() bool { return x.readBlock(d) })
		case "usage":
			return s.null() || x.readUsage(d)
		case "error":
			return s.null() || x.readFault(d)
		}
		return x.stopReason(key, d)
	})
	x.assignChoice(d, 0, 0, 0)
	return x.endEvent(ok, d)
}

// readBlock reads a content block: what a stream's block begins with, or a whole one. Of
// the call of a tool the name is text, and what is put into it.
func (x *anthropicDecoder) readBlock(d *Delta) bool {
	s := &x.s
	call := strings.HasSuffix(string(stringField(s.b[s.i:], "type")), "tool_use")
	return x.eachField(func(key []byte) bool {
		switch k := string(key); {
		case call && k == "name":
			return x.readText(d, record.ToolCall)
		case call && k == "input":
			input, ok := s.rawValue()
			return ok && (len(input) <= len("{}") || x.addArguments(d, input))
		case call:
			return s.skipValue()
		}
		return x.textField(key, d)
	})
}

// textField reads a field that may be text.
func (x *anthropicDecoder) textField(key []byte, d *Delta) bool {
	s := &x.s
	if s.peek() != '"' {
		return s.skipValue()
	}
	switch string(key) {
	case "data", "signature": // of reasoning that is encrypted
		return x.skipOpaque(d)
	case "text":
		return x.readText(d, record.Answer)
	case "thinking":
		return x.readText(d, record.Reasoning)
	case "partial_json":
		return x.readText(d, record.ToolCall)
	}
	return s.skipValue()
}

// stopReason reads a field that may say why the answer ended, in the words of the
// other APIs where they have one.
func (x *anthropicDecoder) stopReason(key []byte, d *Delta) bool {
	if string(key) != "stop_reason" {
		return x.s.skipValue()
	}
	reason := ""
	ok := x.readReason(&reason)
	switch reason {
	case "":
		return ok
	case "end_turn", "stop_sequence":
		reason = "stop"
	case "max_tokens", "model_context_window_exceeded":
		reason = "length"
	case "tool_use":
		reason = "tool_calls"
	}
	d.endChoice(0, reason)
	return ok
}

// readUsage reads a usage. The prompt is the sum of what was read from the cache, what was
// stored there and the rest; of the usages of a stream, at its start and at its end, the
// one that counts more of the prompt is taken: gateways may say 0 first, and vLLM
// tells the share of the cache at the end alone.
func (x *anthropicDecoder) readUsage(d *Delta) bool {
	s := &x.s
	rest, stored, cached := int32(record.Unset), int32(record.Unset), int32(record.Unset)
	ok := x.eachField(func(key []byte) bool {
		switch string(key) {
		case "input_tokens":
			return s.countNumber(&rest)
		case "cache_creation_input_tokens":
			return s.countNumber(&stored)
		case "cache_read_input_tokens":
			return s.countNumber(&cached)
		case "output_tokens":
			return s.countNumber(&d.Usage.Completion)
		case "output_tokens_details":
			return x.countIn("thinking_tokens", &d.Usage.Reasoning)
		}
		return s.skipValue()
	})
	if min(rest, stored, cached) == Impossible {
		d.Usage.Prompt = Impossible
		return ok
	}
	if sum := int64(max(rest, 0)) + int64(max(stored, 0)) + int64(max(cached, 0)); rest != record.Unset && sum <= 1<<31-1 && int32(sum) >= x.prompt {
		x.prompt = int32(sum)
		if cached != record.Unset {
			x.cached = cached
		}
		d.Usage.Prompt, d.Usage.Cached = x.prompt, x.cached
	}
	return ok
}
