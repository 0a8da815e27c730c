package api

import (
	"cmp"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"pitot/internal/data/record"
	"pitot/internal/workload"
)

// Chat is OpenAI's chat completions, as vLLM, SGLang, llama.cpp, TGI,
// TensorRT-LLM and hosted services serve them.
type Chat struct{ openai }

// Completions is OpenAI's completions: a bare prompt, no chat template.
type Completions struct{ openai }

// openai is what both have in common.
type openai struct{}

func (Chat) Name() string          { return "openai-chat" }
func (Chat) Routes() []string      { return []string{"/v1/chat/completions"} }
func (Chat) Messages(Options) bool { return true }
func (Chat) Alias(tool string) string {
	return map[string]string{"vllm": "openai-chat", "sglang": "sglang-oai-chat", "aiperf": "chat"}[tool]
}

func (Completions) Name() string          { return "openai-completions" }
func (Completions) Routes() []string      { return []string{"/v1/completions"} }
func (Completions) Messages(Options) bool { return false }
func (Completions) Alias(tool string) string {
	return map[string]string{"vllm": "openai", "sglang": "sglang-oai", "aiperf": "completions"}[tool]
}

func (openai) Models() string   { return "/v1/models" }
func (openai) Framing() Framing { return EventStream }
func (openai) Decoder() Decoder { return newFast(new(openaiDecoder)) }

// Sign implements [API].
func (openai) Sign() Sign {
	return Sign{Path: "/v1/models", Field: "data", Of: "a server with OpenAI's routes"}
}

// List implements [API].
func (openai) List(body []byte) (list []Model) {
	var answer struct {
		Data []struct {
			ID          string          `json:"id"`
			OwnedBy     string          `json:"owned_by"`
			MaxModelLen json.Number     `json:"max_model_len"`
			Meta        json.RawMessage `json:"meta"` // llama.cpp's, whatever others call so
		} `json:"data"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return nil
	}
	for _, m := range answer.Data {
		var slot struct {
			Context json.Number `json:"n_ctx"`
		}
		_ = json.Unmarshal(m.Meta, &slot)
		context, _ := strconv.Atoi(cmp.Or(m.MaxModelLen, slot.Context).String())
		list = append(list, Model{m.ID, m.OwnedBy, context})
	}
	return list
}

// Prepare implements [API].
func (openai) Prepare(engine string, o *Options) error {
	switch engine {
	case "":
		o.MaxField = "max_tokens"
	case "vllm":
		o.IgnoreEOS, o.MinTokens, o.RunningUsage = true, true, true
	case "sglang", "pitot":
		o.IgnoreEOS, o.RunningUsage = true, true
	case "llamacpp":
		o.IgnoreEOS = true
	}
	return nil
}

// KeyVariable implements [API].
func (openai) KeyVariable() string { return "OPENAI_API_KEY" }

// Headers implements [API].
func (openai) Headers(key string) []Header {
	h := []Header{{"Accept", "text/event-stream, application/json"}}
	if key != "" {
		h = append(h, Header{"Authorization", "Bearer " + key})
	}
	return h
}

// Fault implements [API].
func (openai) Fault(body []byte) string {
	return faultOf(new(openaiDecoder), body)
}

// Concede implements [API].
func (openai) Concede(refusal string, o *Options) string {
	low := strings.ToLower(refusal)
	switch {
	case o.MaxField == "max_tokens" && strings.Contains(low, "max_completion_tokens"):
		o.MaxField = "max_completion_tokens"
		return "the server wants max_completion_tokens in place of max_tokens"
	case o.RunningUsage && (strings.Contains(low, "stream_options") || strings.Contains(low, "continuous_usage")):
		o.RunningUsage = false
		return "the server does not take continuous_usage_stats: the tokens of an event are known as far as usage and events agree"
	case !o.NoUsage && strings.Contains(low, "stream_options"):
		o.NoUsage = true
		return "the server does not take stream_options: no usage in streams"
	}
	return concedeSampling(low, o)
}

// Asked implements [API].
func (openai) Asked(r *workload.Request, o Options) Asked { return openaiAsked(r, o) }

// openaiAsked reads what is put over the body by hand too; what of it is no
// such number is left for the server to refuse.
func openaiAsked(r *workload.Request, o Options) Asked {
	a := Asked{Tokens: int64(max(r.Output, 0))}
	if r.Body == nil && o.Body == nil {
		return a
	}
	limits := map[string]int64{o.MaxField: a.Tokens}
	for _, object := range [][]byte{r.Body, o.Body} {
		var over map[string]json.RawMessage
		if object == nil || json.Unmarshal(object, &over) != nil {
			continue
		}
		number := func(name string) (int64, bool) {
			n := int32(Impossible)
			s := scanner{b: over[name]}
			ok := s.countNumber(&n) && n >= 0
			return int64(n), ok
		}
		for _, name := range []string{"max_tokens", "max_completion_tokens"} {
			if n, ok := number(name); ok {
				limits[name] = n
			} else if string(over[name]) == "null" { // takes the limit away
				delete(limits, name)
			}
		}
		if n, ok := number("n"); ok {
			a.Choices = n
		}
		for _, name := range []string{"top_logprobs", "logprobs"} { // the second is a number in completions, true in chats
			if n, ok := number(name); ok {
				a.Candidates = n
			}
		}
	}
	a.Tokens = max(limits["max_tokens"], limits["max_completion_tokens"])
	return a
}

// Body implements [API].
func (Chat) Body(dst []byte, r *workload.Request, o Options) ([]byte, error) {
	return openaiBody(dst, o, r, func(dst []byte) []byte {
		return appendMessages(append(dst, `"messages":`...), r, o)
	})
}

// Body implements [API].
func (Completions) Body(dst []byte, r *workload.Request, o Options) (body []byte, err error) {
	body, bad := openaiBody(dst, o, r, func(dst []byte) []byte {
		dst = append(dst, `"prompt":`...)
		if !o.IDs {
			return appendPrompt(dst, r, o)
		}
		dst, err = appendIDs(dst, r, o)
		return dst
	})
	return body, cmp.Or(err, bad)
}

// openaiBody writes what both APIs share. What the user or the workload adds
// comes last and wins.
func openaiBody(dst []byte, o Options, r *workload.Request, prompt func([]byte) []byte) ([]byte, error) {
	start := len(dst)
	dst = append(dst, `{"model":`...)
	dst = appendJSON(dst, []byte(o.Model))
	dst = append(dst, ',')
	dst = prompt(dst)
	if r.Output > 0 {
		dst = append(dst, `,"`...)
		dst = append(dst, o.MaxField...)
		dst = append(dst, `":`...)
		dst = strconv.AppendInt(dst, int64(r.Output), 10)
		if r.Exact && o.MinTokens {
			dst = append(dst, `,"min_tokens":`...)
			dst = strconv.AppendInt(dst, int64(r.Output), 10)
		}
		if r.Exact && o.IgnoreEOS {
			dst = append(dst, `,"ignore_eos":true`...)
		}
	}
	if !o.NoTemperature {
		dst = append(dst, `,"temperature":0`...)
	}
	if o.Stream {
		dst = append(dst, `,"stream":true`...)
		if !o.NoUsage {
			dst = append(dst, `,"stream_options":{"include_usage":true`...)
			if o.RunningUsage {
				dst = append(dst, `,"continuous_usage_stats":true`...)
			}
			dst = append(dst, '}')
		}
	}
	return withExtras(append(dst, '}'), start, r, o)
}

// openaiDecoder reads the events and answers of both APIs: a choice's text
// is in delta (chat stream), message (chat) or text (completions).
type openaiDecoder struct{ reading }

// Event implements [Decoder].
func (o *openaiDecoder) Event(name, data []byte, d *Delta) error {
	if o.plain(name, data, d) {
		return nil
	}
	return o.Whole(data, d)
}

// Whole implements [Decoder].
func (o *openaiDecoder) Whole(data []byte, d *Delta) error {
	o.begin(data)
	s := &o.s
	ok := s.object(func(key []byte) bool {
		switch string(key) {
		case "choices":
			return s.null() || s.array(func() bool { return o.choice(d) })
		case "usage":
			return s.null() || o.usage(d)
		case "error":
			return s.null() || o.fault(d)
		}
		return s.skipValue()
	})
	return o.end(ok, d)
}

// choice reads one element of choices.
func (o *openaiDecoder) choice(d *Delta) bool {
	s := &o.s
	first, text := len(d.Parts), len(d.Text)
	var index, tokens int32
	var finish []byte
	ok := s.object(func(key []byte) bool {
		switch string(key) {
		case "index":
			return s.countNumber(&index)
		case "text":
			return o.text(d, record.Answer)
		case "delta", "message":
			return s.null() || o.delta(d)
		case "finish_reason":
			if s.null() {
				return true
			}
			raw, ok := s.rawString()
			finish = raw
			return ok
		case "logprobs":
			return s.null() || o.logprobs(&tokens)
		case "token_ids":
			return s.null() || o.count(&tokens)
		}
		return s.skipValue()
	})
	if len(finish) > 0 { // some servers say "" where others say null
		d.Ended = true
		if index == 0 {
			d.Finish = finishReason(finish)
		}
	}
	if index == Impossible {
		index = math.MaxInt32
	}
	if index != 0 {
		d.Text = d.Text[:text]
	}
	o.choose(d, first, index, tokens) // the event's tokens, whatever kinds they are of
	return ok
}

// delta reads a chat delta or message. Reasoning under two names is the same text.
func (o *openaiDecoder) delta(d *Delta) bool {
	s := &o.s
	var known [2]int32 // bytes of reasoning under either name
	return s.object(func(key []byte) bool {
		switch string(key) {
		case "content":
			if s.peek() == '[' { // content parts: count what is in them
				return o.contentParts(d)
			}
			return o.text(d, record.Answer)
		case "reasoning", "reasoning_content":
			if s.peek() != '"' {
				return s.skipValue()
			}
			name := 0
			if string(key) == "reasoning_content" {
				name = 1
			}
			n, ok := o.textBeyond(d, record.Reasoning, known[1-name])
			known[name] += n
			return ok
		case "refusal":
			return o.text(d, record.Refusal)
		case "tool_calls":
			return s.null() || s.array(func() bool { return o.toolCall(d) })
		case "function_call":
			return s.null() || o.function(d)
		}
		return s.skipValue()
	})
}

// contentParts reads content given as a list of typed parts.
func (o *openaiDecoder) contentParts(d *Delta) bool {
	s := &o.s
	return s.array(func() bool {
		if s.peek() != '{' {
			return s.skipValue()
		}
		return s.object(func(key []byte) bool {
			if string(key) == "text" && s.peek() == '"' {
				return o.text(d, record.Answer)
			}
			return s.skipValue()
		})
	})
}

func (o *openaiDecoder) toolCall(d *Delta) bool {
	s := &o.s
	return s.object(func(key []byte) bool {
		if string(key) == "function" {
			return s.null() || o.function(d)
		}
		return s.skipValue()
	})
}

// function reads the name and arguments of a call: both are tokens.
func (o *openaiDecoder) function(d *Delta) bool {
	s := &o.s
	return s.object(func(key []byte) bool {
		switch string(key) {
		case "name":
			return o.text(d, record.ToolCall)
		case "arguments":
			if s.peek() != '"' {
				return s.skipValue()
			}
			return o.text(d, record.ToolCall)
		}
		return s.skipValue()
	})
}

// logprobs counts tokens: content (chat) or tokens (completions).
func (o *openaiDecoder) logprobs(n *int32) bool {
	s := &o.s
	if s.peek() != '{' {
		return s.skipValue()
	}
	return s.object(func(key []byte) bool {
		if k := string(key); (k == "content" || k == "tokens") && s.peek() == '[' {
			return o.count(n)
		}
		return s.skipValue()
	})
}

func (o *openaiDecoder) usage(d *Delta) bool {
	s := &o.s
	return s.object(func(key []byte) bool {
		switch string(key) {
		case "prompt_tokens":
			return s.countNumber(&d.Usage.Prompt)
		case "completion_tokens":
			return o.number(countedCompletion, &d.Usage.Completion)
		case "total_tokens":
			return o.number(aNumber, nil)
		case "prompt_tokens_details":
			return s.null() || s.object(func(key []byte) bool {
				if string(key) == "cached_tokens" {
					return s.countNumber(&d.Usage.Cached)
				}
				return s.skipValue()
			})
		case "completion_tokens_details":
			return s.null() || s.object(func(key []byte) bool {
				if string(key) == "reasoning_tokens" {
					return o.number(countedReasoning, &d.Usage.Reasoning)
				}
				return s.skipValue()
			})
		}
		return s.skipValue()
	})
}
