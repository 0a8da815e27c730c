package api

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/workload"
)

// Chat is OpenAI's chat completions, as vLLM, SGLang, llama.cpp, TGI,
// TensorRT-LLM and hosted services serve them.
var Chat API = openaiDialect(dialect{
	name: "openai-chat", routes: []string{"/v1/chat/completions"},
	alias: map[string]string{"vllm": "openai-chat", "sglang": "sglang-oai-chat", "aiperf": "chat"},
	body:  chatBody,
})

// Completions is OpenAI's completions: a bare prompt, no chat template.
var Completions API = openaiDialect(dialect{
	name: "openai-completions", routes: []string{"/v1/completions"}, bare: true,
	alias: map[string]string{"vllm": "openai", "sglang": "sglang-oai", "aiperf": "completions"},
	body:  completionsBody,
})

// openaiDialect adds what both have.
func openaiDialect(d dialect) *dialect {
	d.models, d.key, d.maxField = "/v1/models", "OPENAI_API_KEY", "max_tokens"
	d.sign = Sign{Path: "/v1/models", Field: "data", Of: "a server with OpenAI's routes"}
	d.decoder = func() Decoder { return newFast(new(openaiDecoder)) }
	d.prepare, d.concede, d.asked = prepareOpenAI, concedeOpenAI, openaiAsked
	return &d
}

// openaiModels reads OpenAI's list of models.
func openaiModels(body []byte) (list []Model) {
	var answer struct {
		Data []struct {
			ID          string          `json:"id"`
			OwnedBy     string          `json:"owned_by"`
			Root        string          `json:"root"`
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
		list = append(list, Model{m.ID, m.OwnedBy, context, m.Root})
	}
	return list
}

// prepareOpenAI sets what engines take beyond OpenAI's fields.
func prepareOpenAI(engine string, o *Options) error {
	switch engine {
	case "vllm":
		o.IgnoreEOS, o.MinTokens, o.RunningUsage = true, true, true
	case "sglang", "pitot":
		o.IgnoreEOS, o.RunningUsage = true, true
	case "llamacpp":
		o.IgnoreEOS = true
	}
	return nil
}

func concedeOpenAI(low string, o *Options) result.Adaptation {
	switch {
	case o.MaxField == "max_tokens" && strings.Contains(low, "max_completion_tokens"):
		o.MaxField = "max_completion_tokens"
		return result.Adaptation{Kind: result.LimitField, Value: o.MaxField}
	case o.RunningUsage && (strings.Contains(low, "stream_options") || strings.Contains(low, "continuous_usage")):
		o.RunningUsage = false
		return result.Adaptation{Kind: result.NoRunningUsage}
	case !o.NoUsage && strings.Contains(low, "stream_options"):
		o.NoUsage = true
		return result.Adaptation{Kind: result.NoUsage}
	}
	return concedeSampling(low, o)
}

func openaiAsked(r *workload.Request, o Options) Asked {
	over := overlays(r, o, "")
	limit := func(name string) int64 {
		if name == o.MaxField {
			return over.number(int64(r.Output), name)
		}
		return over.number(0, name)
	}
	return Asked{
		Tokens:  max(limit("max_tokens"), limit("max_completion_tokens")),
		Choices: over.number(0, "n"),
		// The second is a number in completions, true in chats.
		Candidates: max(over.number(0, "top_logprobs"), over.number(0, "logprobs")),
	}
}

func chatBody(dst []byte, r *workload.Request, o Options) ([]byte, error) {
	return openaiBody(dst, o, r, func(dst []byte) []byte {
		return appendMessages(append(dst, `"messages":`...), r, o)
	})
}

func completionsBody(dst []byte, r *workload.Request, o Options) (body []byte, err error) {
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
	dst = appendModel(dst, o)
	dst = append(dst, ',')
	dst = prompt(dst)
	if r.Output > 0 {
		dst = appendNumber(append(append(dst, `,"`...), o.MaxField...), `":`, r.Output)
		if r.Exact && o.MinTokens {
			dst = appendNumber(dst, `,"min_tokens":`, r.Output)
		}
		dst = appendIf(dst, r.Exact && o.IgnoreEOS, `,"ignore_eos":true`)
	}
	dst = appendIf(dst, !o.NoTemperature, `,"temperature":0`)
	if o.Stream {
		dst = append(dst, `,"stream":true`...)
		if !o.NoUsage {
			dst = append(dst, `,"stream_options":{"include_usage":true`...)
			dst = append(appendIf(dst, o.RunningUsage, `,"continuous_usage_stats":true`), '}')
		}
	}
	return withExtras(append(dst, '}'), start, r, o)
}

// openaiDecoder reads the events and answers of both APIs: a choice's text
// is in delta (chat stream), message (chat) or text (completions).
type openaiDecoder struct{ reading }

func (o *openaiDecoder) readEvent(data []byte, d *Delta) error { return o.Whole(data, d) }

// Whole implements [Decoder]. Values of types that are not expected are passed over.
func (o *openaiDecoder) Whole(data []byte, d *Delta) error {
	o.beginEvent(data)
	s := &o.s
	isError := false
	ok := s.eachKey(func(key []byte) bool {
		switch string(key) {
		case "choices":
			return o.eachObject(func() bool { return o.readChoice(d) })
		case "usage":
			return o.readUsage(d)
		case "error":
			return o.readFault(d)
		case "object": // vLLM's older errors: {"object":"error","message":"…"}
			var word []byte
			ok := o.readWord(&word)
			isError = string(word) == "error"
			return ok
		}
		return s.skipValue()
	})
	o.isError = o.isError || isError
	return o.endEvent(ok, d)
}

// readChoice reads one element of choices.
func (o *openaiDecoder) readChoice(d *Delta) bool {
	s := &o.s
	if s.peek() != '{' {
		return s.skipValue()
	}
	first, text := len(d.Parts), len(d.Text)
	var index, tokens int32
	reason := ""
	ok := s.eachKey(func(key []byte) bool {
		switch string(key) {
		case "index":
			return s.countNumber(&index)
		case "text":
			return o.readText(d, record.Answer)
		case "delta", "message":
			return o.readDelta(d)
		case "finish_reason":
			return o.readReason(&reason)
		case "error": // OpenRouter's
			return o.readFault(d)
		case "logprobs":
			return o.countLogprobs(&tokens)
		case "token_ids":
			return o.countElements(&tokens)
		}
		return s.skipValue()
	})
	if index == Impossible {
		index = math.MaxInt32
	}
	if reason != "" { // some servers say "" where others say null
		d.endChoice(index, reason)
	}
	if index != 0 {
		d.Text = d.Text[:text]
	}
	o.assignChoice(d, first, index, tokens) // the event's tokens, whatever kinds they are of
	return ok
}

// reasoningNames are the names under which servers stream reasoning. Some send the same
// text under several of them.
var reasoningNames = []string{"reasoning", "reasoning_content", "reasoning_details", "thinking_blocks"}

// readDelta reads a chat delta or message.
func (o *openaiDecoder) readDelta(d *Delta) bool {
	s := &o.s
	known := int32(0) // bytes of reasoning, under the name that had most
	return o.eachField(func(key []byte) bool {
		switch k := string(key); k {
		case "content":
			return o.readContents(d, record.Answer, 0)
		case "refusal":
			return o.readText(d, record.Refusal)
		case "tool_calls":
			return o.eachObject(func() bool { return o.toolCall(d) })
		case "function_call":
			return o.readFunction(d)
		case "audio", "images":
			return o.skipOpaque(d)
		default:
			switch {
			case !slices.Contains(reasoningNames, k):
				return s.skipValue()
			case s.peek() == '"':
				n, ok := o.textBeyond(d, record.Reasoning, known)
				known = max(known, n)
				return ok
			case known > 0:
				return s.skipValue()
			}
			before := textOf(d, record.Reasoning)
			ok := o.readContents(d, record.Reasoning, 0)
			known = textOf(d, record.Reasoning) - before
			return ok
		}
	})
}

// textOf returns how many bytes of a kind the choice that is being read has so far.
func textOf(d *Delta, kind record.Kind) (n int32) {
	for _, p := range d.Parts {
		if p.Choice == undecided && p.Kind == kind {
			n += p.Bytes
		}
	}
	return n
}

// maxContentDepth bounds parts within parts.
const maxContentDepth = 4

// readContents reads text, or a list of typed parts, as Mistral sends it: a part of the type
// "thinking" or "reasoning.text" has reasoning, others have what kind says.
func (o *openaiDecoder) readContents(d *Delta, kind record.Kind, depth int) bool {
	s := &o.s
	switch c := s.peek(); {
	case c == '"':
		return o.readText(d, kind)
	case c == '[' && depth < maxContentDepth:
		return s.eachElement(func() bool { return o.readContents(d, kind, depth+1) })
	case c == '{' && depth < maxContentDepth:
		if of := string(stringField(s.b[s.i:], "type")); strings.Contains(of, "thinking") || strings.Contains(of, "reasoning") {
			kind = record.Reasoning
		}
		return s.eachKey(func(key []byte) bool {
			switch string(key) {
			case "text", "content", "thinking", "reasoning", "summary", "value":
				return o.readContents(d, kind, depth+1)
			case "refusal":
				return o.readContents(d, record.Refusal, depth+1)
			}
			return s.skipValue()
		})
	}
	return s.skipValue()
}

func (o *openaiDecoder) toolCall(d *Delta) bool {
	return o.fieldIn("function", func() bool { return o.readFunction(d) })
}

// readFunction reads the name and arguments of a call: both are tokens.
func (o *openaiDecoder) readFunction(d *Delta) bool {
	return o.eachField(func(key []byte) bool {
		s := &o.s
		switch k := string(key); {
		case k == "arguments" && s.peek() == '{': // in place of the string that holds it
			return o.readArguments(d)
		case k == "name" || k == "arguments":
			return o.readText(d, record.ToolCall)
		}
		return s.skipValue()
	})
}

// countLogprobs counts tokens: content (chat) or tokens (completions).
func (o *openaiDecoder) countLogprobs(n *int32) bool {
	return o.eachField(func(key []byte) bool {
		if k := string(key); k == "content" || k == "tokens" {
			return o.countElements(n)
		}
		return o.s.skipValue()
	})
}

func (o *openaiDecoder) readUsage(d *Delta) bool {
	s := &o.s
	return o.eachField(func(key []byte) bool {
		switch string(key) {
		case "prompt_tokens":
			return s.countNumber(&d.Usage.Prompt)
		case "completion_tokens":
			return o.readCount(countedCompletion, &d.Usage.Completion)
		case "total_tokens":
			return o.readCount(aNumber, nil)
		case "prompt_tokens_details":
			return o.countIn("cached_tokens", &d.Usage.Cached)
		case "completion_tokens_details":
			return o.fieldIn("reasoning_tokens", func() bool {
				return o.readCount(countedReasoning, &d.Usage.Reasoning)
			})
		}
		return s.skipValue()
	})
}
