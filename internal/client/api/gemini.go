package api

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/results/record"
	"pitot/internal/workload"
)

// Gemini is Google's generateContent, streamed with alt=sse. An event has as many
// tokens as the server likes, and tells the usage so far.
//
// It cannot be held to a length: answers may end early. Thoughts that it shows are
// summaries; their tokens are counted, and are never seen.
var Gemini API = &dialect{
	name: "gemini", routes: geminiRoutes, models: "/v1beta/models", key: "GEMINI_API_KEY",
	maxField: "maxOutputTokens",
	sign: Sign{
		Host: "generativelanguage.googleapis.com", Path: "/v1beta/models", Field: "models", Of: "Gemini",
	},
	decoder: func() Decoder { return newFast(new(geminiDecoder)) },
	headers: func(key string) []Header {
		return requestHeaders(eventsOrJSON, Header{"x-goog-api-key", key})
	},
	list: geminiModels, prepare: prepareGemini, concede: concedeSampling,
	asked: geminiAsked, body: geminiBody,
}

var geminiRoutes = []string{
	"/v1beta/models/{model}:streamGenerateContent", "/v1beta/models/{model}:generateContent",
}

// geminiModels reads the models that generate.
func geminiModels(body []byte) (list []Model) {
	var answer struct {
		Models []struct {
			Name    string
			Context json.Number `json:"inputTokenLimit"`
			Methods []string    `json:"supportedGenerationMethods"`
		}
	}
	_ = json.Unmarshal(body, &answer)
	for _, m := range answer.Models {
		if m.Name != "" && (m.Methods == nil || slices.Contains(m.Methods, "generateContent")) {
			context, _ := strconv.Atoi(m.Context.String())
			list = append(list, Model{Name: strings.TrimPrefix(m.Name, "models/"), Context: max(context, 0)})
		}
	}
	return list
}

func prepareGemini(_ string, o *Options) error {
	if o.Route = geminiRoutes[0] + "?alt=sse"; !o.Stream {
		o.Route = geminiRoutes[1]
	}
	return nil
}

func geminiAsked(r *workload.Request, o Options) Asked {
	over := overlays(r, o, "generationConfig")
	return Asked{
		Tokens:  over.number(int64(r.Output), "maxOutputTokens"),
		Choices: over.number(0, "candidateCount"),
	}
}

func geminiBody(dst []byte, r *workload.Request, o Options) ([]byte, error) {
	start := len(dst)
	dst = append(dst, `{"contents":[`...)
	system, rest := systemApart(r)
	for i, m := range rest.Messages {
		role := "user"
		if m.Role == "assistant" {
			role = "model"
		}
		dst = appendIf(dst, i > 0, ",")
		dst = append(append(append(dst, `{"role":"`...), role...), `","parts":[{"text":`...)
		dst = append(appendPrompt(dst, &workload.Request{Messages: []workload.Message{m}}, o), "}]}"...)
	}
	dst = append(dst, ']')
	if len(system.Messages) > 0 {
		dst = append(appendPrompt(append(dst, `,"systemInstruction":{"parts":[{"text":`...), system, o), "}]}"...)
	}
	dst = append(dst, `,"generationConfig":{`...)
	dst = o.appendLimit(dst, r, "maxOutputTokens", "")
	return withExtras(append(dst, "}}"...), start, r, o)
}

// geminiDecoder reads events, and whole answers, which are one or a list of them.
type geminiDecoder struct {
	reading
	called bool // a function
}

// Reset implements [Decoder].
func (x *geminiDecoder) Reset() {
	x.reading.Reset()
	x.called = false
}

// readEvent implements [holeReader].
func (x *geminiDecoder) readEvent(data []byte, d *Delta) error {
	return x.endEvent(x.readResponse(d), d)
}

// Whole implements [Decoder].
func (x *geminiDecoder) Whole(data []byte, d *Delta) error {
	x.beginEvent(data)
	if x.s.peek() == '[' {
		return x.endEvent(x.s.eachElement(func() bool { return x.readResponse(d) }), d)
	}
	return x.endEvent(x.readResponse(d), d)
}

// readResponse reads one response.
func (x *geminiDecoder) readResponse(d *Delta) bool {
	s := &x.s
	return s.eachKey(func(key []byte) bool {
		switch string(key) {
		case "candidates":
			return x.eachObject(func() bool { return x.readCandidate(d) })
		case "usageMetadata":
			return x.readUsage(d)
		case "promptFeedback":
			var reason []byte
			ok := x.fieldIn("blockReason", func() bool { return x.readWord(&reason) })
			if len(reason) > 0 {
				d.endChoice(0, "content_filter")
			}
			return ok
		case "error":
			return s.null() || x.readFault(d)
		case "responseId":
			return x.skipVarying()
		}
		return s.skipValue()
	})
}

// readCandidate reads one of the answers.
func (x *geminiDecoder) readCandidate(d *Delta) bool {
	s := &x.s
	first, kept := len(d.Parts), len(d.Text)
	index := int32(0)
	var finish []byte
	ok := x.eachField(func(key []byte) bool {
		switch string(key) {
		case "content":
			return x.fieldIn("parts", func() bool {
				return x.eachObject(func() bool { return x.readPart(d) })
			})
		case "index":
			return s.countNumber(&index)
		case "finishReason":
			return x.readWord(&finish)
		}
		return s.skipValue()
	})
	index = max(index, 0)
	if len(finish) > 0 {
		d.endChoice(index, x.finishOf(finish))
	}
	if index > 0 {
		d.Text = d.Text[:kept]
	}
	x.assignChoice(d, first, index, 0)
	return ok
}

// finishOf is a finish reason in the words of the other APIs where they have one.
func (x *geminiDecoder) finishOf(raw []byte) string {
	switch string(raw) {
	case "STOP":
		if x.called {
			return "tool_calls"
		}
		return "stop"
	case "MAX_TOKENS":
		return "length"
	}
	if record.KindOfFinish(string(raw)) == record.FinishFiltered { // SAFETY, BLOCKLIST, SPII and others
		return "content_filter"
	}
	return finishReason(raw)
}

// readPart reads one part of an answer: text, a summary of thoughts, or the call of a
// function.
func (x *geminiDecoder) readPart(d *Delta) bool {
	s := &x.s
	kind := record.Answer
	ahead := reading{s: scanner{b: s.b, i: s.i}}
	ahead.fieldIn("thought", func() bool {
		if ahead.s.peek() == 't' {
			kind = record.Reasoning
		}
		return ahead.s.skipValue()
	})
	return x.eachField(func(key []byte) bool {
		switch k := string(key); {
		case k == "text" && s.peek() == '"':
			d.Summarised = d.Summarised || kind == record.Reasoning
			return x.readText(d, kind)
		case k == "functionCall":
			x.called = true
			return x.eachField(func(key []byte) bool {
				switch string(key) {
				case "name":
					return x.readText(d, record.ToolCall)
				case "args":
					return x.readArguments(d)
				}
				return s.skipValue()
			})
		case k == "inlineData" || k == "fileData" || k == "executableCode" || k == "thoughtSignature":
			return x.skipOpaque(d)
		}
		return s.skipValue()
	})
}

// readUsage reads the counts so far. Those of thoughts stand beside those of the answer.
func (x *geminiDecoder) readUsage(d *Delta) bool {
	s := &x.s
	if d.Usage != Unsaid {
		x.nFound = maxHoles + 1 // of two the later counts: that is no template's
	}
	u := Unsaid
	tools := int32(0)
	ok := x.eachField(func(key []byte) bool {
		switch string(key) {
		case "promptTokenCount":
			return s.countNumber(&u.Prompt)
		case "toolUsePromptTokenCount":
			return s.countNumber(&tools)
		case "cachedContentTokenCount":
			return s.countNumber(&u.Cached)
		case "candidatesTokenCount":
			return x.readCount(countedCompletion, &u.Completion)
		case "totalTokenCount":
			return x.readCount(aNumber, nil)
		case "thoughtsTokenCount":
			return s.countNumber(&u.Reasoning)
		}
		return s.skipValue()
	})
	if u.Prompt >= 0 && tools > 0 {
		u.Prompt = sumCount(u.Prompt, tools)
	}
	if u.Reasoning > 0 && u.Completion != Impossible {
		u.Completion = sumCount(max(u.Completion, 0), u.Reasoning)
	}
	d.Usage = u
	return ok
}

// sumCount adds two counts.
func sumCount(a, b int32) int32 {
	if n := int64(a) + int64(b); n <= math.MaxInt32 {
		return int32(n)
	}
	return Impossible
}
