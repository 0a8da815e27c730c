package api

import (
	"math"
	"strconv"
	"strings"

	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/workload"
)

// Responses is OpenAI's Responses, as OpenAI, vLLM, llama.cpp and gateways serve it.
// What an event is, its JSON says: not every server names events, and names are not
// looked at.
var Responses API = &dialect{
	name: "openai-responses", routes: []string{"/v1/responses"}, models: "/v1/models",
	key: "OPENAI_API_KEY", alias: map[string]string{"aiperf": "responses"},
	maxField: "max_output_tokens", // it has no sign: its servers have chats too
	decoder:  func() Decoder { return newFast(new(responsesDecoder)) },
	prepare:  prepareResponses, concede: concedeResponses, asked: responsesAsked, body: responsesBody,
}

func prepareResponses(engine string, o *Options) error {
	o.IgnoreEOS = o.IgnoreEOS || engine == "vllm" || engine == "pitot"
	return nil
}

// leastResponse is the smallest token limit that OpenAI accepts.
const leastResponse = 16

func concedeResponses(low string, o *Options) result.Adaptation {
	switch {
	case o.LeastTokens == 0 && strings.Contains(low, "max_output_tokens") && strings.Contains(low, ">= 16"):
		o.LeastTokens = leastResponse
		return result.Adaptation{Kind: result.MinimumTokens, Value: strconv.Itoa(leastResponse)}
	case !o.NoStore && strings.Contains(low, "store"):
		o.NoStore = true
		return result.Adaptation{Kind: result.NoStore}
	}
	return concedeSampling(low, o)
}

func responsesAsked(r *workload.Request, o Options) Asked {
	over := overlays(r, o, "")
	return Asked{
		Tokens:     over.number(int64(limitAsked(r, o)), "max_output_tokens"),
		Candidates: over.number(0, "top_logprobs"),
	}
}

func responsesBody(dst []byte, r *workload.Request, o Options) ([]byte, error) {
	start := len(dst)
	dst = appendModel(dst, o)
	dst = appendMessages(append(dst, `,"input":`...), r, o)
	if n := limitAsked(r, o); n > 0 {
		dst = appendNumber(dst, `,"max_output_tokens":`, n)
		dst = appendIf(dst, r.Exact && o.IgnoreEOS, `,"ignore_eos":true`)
	}
	dst = appendIf(dst, !o.NoTemperature, `,"temperature":0`)
	dst = appendIf(dst, !o.NoStore, `,"store":false`) // OpenAI keeps answers for 30 days otherwise
	dst = appendIf(dst, o.Stream, `,"stream":true`)
	return withExtras(append(dst, '}'), start, r, o)
}

// responsesDecoder reads events, and whole answers, which are a response as the events
// have it too.
type responsesDecoder struct {
	reading
	called bool // a function
}

// Reset implements [Decoder].
func (x *responsesDecoder) Reset() {
	x.reading.Reset()
	x.called = false
}

// readEvent implements [holeReader].
func (x *responsesDecoder) readEvent(data []byte, d *Delta) error {
	// What an event is may stand at its end, and the events around a text are larger than the
	// text: each is read once, and what counts of it again.
	s := &x.s
	var kind string
	var delta, item, response, message, logprobs int // where they stand
	mark := func(place *int) bool {
		s.skipSpace()
		*place = s.i
		return s.skipValue()
	}
	ok := s.eachKey(func(key []byte) bool {
		switch string(key) {
		case "type":
			if kind != "" || s.peek() != '"' {
				return s.skipValue()
			}
			raw, ok := s.rawString()
			kind = string(raw)
			return ok
		case "sequence_number", "obfuscation":
			return x.skipVarying()
		case "delta":
			return mark(&delta)
		case "logprobs":
			return mark(&logprobs)
		case "item":
			return mark(&item)
		case "response":
			return mark(&response)
		case "message":
			return mark(&message)
		case "error":
			return s.null() || x.readFault(d)
		}
		return s.skipValue()
	})
	if !ok {
		return errJSON
	}
	end, tokens := s.i, int32(0)
	of, isDelta := deltaKind(kind)
	again := func(place int, read func() bool) { // reads what stands there, if anything does
		if s.i = place; place > 0 {
			ok = ok && read()
		}
	}
	if isDelta {
		again(delta, func() bool { return x.readText(d, of) })
		again(logprobs, func() bool { return x.countElements(&tokens) })
	}
	if kind == "response.output_item.added" {
		again(item, func() bool { return x.readItem(d) })
	}
	if kind != "response.created" && kind != "response.in_progress" {
		again(response, func() bool { return x.readResponse(d, false) })
	}
	if kind == "error" {
		again(message, func() bool { return x.readError(d) })
	}
	s.i = end
	switch kind {
	case "error":
		if d.Fault == nil {
			d.Fault = &Fault{Type: kind}
		}
	case "response.failed":
		if d.Fault == nil {
			d.Fault = &Fault{Message: "the response failed", Type: kind}
		}
	case "response.completed", "response.incomplete":
		d.Ended, d.Done, x.done = true, true, true
	}
	d.Opaque = strings.HasPrefix(kind, "response.audio.") || strings.HasPrefix(kind, "response.image_generation_call.")
	d.Summarised = len(d.Parts) > 0 && kind == "response.reasoning_summary_text.delta"
	if x.assignChoice(d, 0, 0, tokens); len(d.Parts) == 0 {
		d.Empty = false
	}
	return x.endEvent(ok, d)
}

// readError reads the message of an error.
func (x *responsesDecoder) readError(d *Delta) bool {
	if x.s.peek() != '"' {
		return true
	}
	raw, ok := x.s.rawString()
	d.Fault = &Fault{Message: unquote(raw), Type: "error"}
	return ok
}

// deltaKind returns the kind of text in an event of a type, and false for one without text.
func deltaKind(kind string) (record.Kind, bool) {
	switch kind {
	case "response.output_text.delta":
		return record.Answer, true
	case "response.reasoning_text.delta", "response.reasoning_summary_text.delta":
		return record.Reasoning, true
	case "response.refusal.delta":
		return record.Refusal, true
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta",
		"response.mcp_call_arguments.delta", "response.code_interpreter_call_code.delta", "response.shell_call_command.delta":
		return record.ToolCall, true
	}
	return 0, false
}

// Whole implements [Decoder].
func (x *responsesDecoder) Whole(data []byte, d *Delta) error {
	x.beginEvent(data)
	ok := x.readResponse(d, true)
	x.assignChoice(d, 0, 0, 0)
	return x.endEvent(ok, d)
}

// readResponse reads a response: how it ended, and its usage. Its output is read where
// it has not come in events.
func (x *responsesDecoder) readResponse(d *Delta, whole bool) bool {
	s := &x.s
	var status, reason []byte
	ok := x.eachField(func(key []byte) bool {
		switch string(key) {
		case "status":
			return x.readWord(&status)
		case "incomplete_details":
			return x.fieldIn("reason", func() bool { return x.readWord(&reason) })
		case "usage":
			return s.null() || x.readUsage(d)
		case "error":
			return s.null() || x.readFault(d)
		case "output":
			if !whole {
				return s.skipValue()
			}
			return x.eachObject(func() bool { return x.readItem(d) })
		}
		return s.skipValue()
	})
	switch {
	case string(reason) == "max_output_tokens":
		d.endChoice(0, "length")
	case len(reason) > 0:
		d.endChoice(0, finishReason(reason))
	case string(status) == "completed" && x.called:
		d.endChoice(0, "tool_calls")
	case string(status) == "completed":
		d.endChoice(0, "stop")
	case string(status) == "failed" && d.Fault != nil: // its error says more
	case len(status) > 0 && string(status) != "queued" && string(status) != "in_progress":
		d.endChoice(0, finishReason(status)) // incomplete, cancelled, failed
	}
	return ok
}

// readItem reads an element of the output: one that is added has at most the name of a
// function, one of a whole answer has everything.
func (x *responsesDecoder) readItem(d *Delta) bool {
	s := &x.s
	kind := string(stringField(s.b[s.i:], "type"))
	of := record.Answer
	switch {
	case kind == "reasoning":
		of = record.Reasoning
	case strings.HasSuffix(kind, "_call"):
		x.called = true
		of = record.ToolCall
	}
	call := of == record.ToolCall
	return x.eachField(func(key []byte) bool {
		switch k := string(key); {
		case call && (k == "name" || k == "arguments" || k == "input"):
			return x.readText(d, record.ToolCall)
		case !call && (k == "content" || k == "summary"):
			return x.eachObject(func() bool { return x.readContents(d, of, k == "summary") })
		}
		return s.skipValue()
	})
}

// readContents reads one part of an item's content.
func (x *responsesDecoder) readContents(d *Delta, of record.Kind, summary bool) bool {
	s := &x.s
	return x.eachField(func(key []byte) bool {
		k := string(key)
		if k != "text" && k != "refusal" || s.peek() != '"' {
			return s.skipValue()
		}
		kind := of
		if k == "refusal" {
			kind = record.Refusal
		}
		d.Summarised = d.Summarised || summary
		return x.readText(d, kind)
	})
}

func (x *responsesDecoder) readUsage(d *Delta) bool {
	s := &x.s
	return x.eachField(func(key []byte) bool {
		switch string(key) {
		case "input_tokens":
			return s.countNumber(&d.Usage.Prompt)
		case "output_tokens":
			return s.countNumber(&d.Usage.Completion)
		case "input_tokens_details":
			return x.countIn("cached_tokens", &d.Usage.Cached)
		case "output_tokens_details":
			return x.countIn("reasoning_tokens", &d.Usage.Reasoning)
		}
		return s.skipValue()
	})
}

// limitAsked is the limit of tokens that a request names, 0 for none.
func limitAsked(r *workload.Request, o Options) int {
	if r.Output <= 0 {
		return 0
	}
	return min(max(r.Output, o.LeastTokens), math.MaxInt32)
}
