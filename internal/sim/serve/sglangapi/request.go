package sglangapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/example"
	"pitot/internal/sim/serve/lm"
)

// Output lengths of requests that name none. SGLang lets a chat go on until its model ends
// it; this one ends it so.
const (
	defaultChatTokens       = 128
	defaultCompletionTokens = 16
)

// maxChoices bounds the answers of one request: prompts times n.
const maxChoices = 1024

// defaultModel is the model name in the answer to a request that names none.
const defaultModel = "default"

// fields holds the fields that are read of a request. Others are accepted and have no effect.
type fields struct {
	Model         *string         `json:"model"`
	Messages      json.RawMessage `json:"messages"`
	Prompt        json.RawMessage `json:"prompt"`
	MaxTokens     *int            `json:"max_tokens"`
	MaxCompletion *int            `json:"max_completion_tokens"`
	MinTokens     int             `json:"min_tokens"`
	N             *int            `json:"n"`
	Stream        bool            `json:"stream"`
	StreamOptions *struct {
		IncludeUsage         bool `json:"include_usage"`
		ContinuousUsageStats bool `json:"continuous_usage_stats"`
	} `json:"stream_options"`
	Stop              json.RawMessage `json:"stop"`
	NoStopTrim        bool            `json:"no_stop_trim"`
	IgnoreEOS         bool            `json:"ignore_eos"`
	Temperature       *float64        `json:"temperature"`
	TopP              *float64        `json:"top_p"`
	TopK              *int            `json:"top_k"`
	MinP              *float64        `json:"min_p"`
	Frequency         float64         `json:"frequency_penalty"`
	Presence          float64         `json:"presence_penalty"`
	Seed              *int64          `json:"seed"`
	Logprobs          json.RawMessage `json:"logprobs"`
	TopLogprobs       int             `json:"top_logprobs"`
	Echo              bool            `json:"echo"`
	SeparateReasoning *bool           `json:"separate_reasoning"`
	CacheSalt         json.RawMessage `json:"cache_salt"`
	RID               json.RawMessage `json:"rid"`
	Tools             []tool          `json:"tools"`
	ToolChoice        json.RawMessage `json:"tool_choice"`
	Regex             *string         `json:"regex"`
	JSONSchema        *string         `json:"json_schema"`
	ResponseFormat    *struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
}

// tool is a function that the model may call.
type tool struct {
	Function lm.Function `json:"function"`
}

// ask is the parsed form of a request.
type ask struct {
	fields
	chat     bool
	model    string // that the answer names
	id       string
	prompts  []lm.Prompt
	prompt   int // tokens of all prompts
	n        int // answers to each
	plan     lm.Plan
	first    int64 // where the words of the first answer begin
	logprobs int   // how many alternatives to each token, -1 for no logprobs
	last     string
	salt     uint64
}

// read takes a request to the answer that is to be generated, or refuses it.
func (a *api) read(req *dialect.Request, chat bool) (*ask, *dialect.Reply) {
	kind, _, _ := strings.Cut(strings.ToLower(req.Header.Get("Content-Type")), ";")
	if kind != "application/json" {
		return nil, misreadReply("1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed")
	}
	r := &ask{chat: chat, logprobs: -1, n: 1, model: defaultModel}
	if err := json.Unmarshal(req.Body, &r.fields); err != nil {
		return nil, misreadReply("1 validation error:\n  " + describeJSONError(err))
	}
	if r.Model != nil {
		r.model = *r.Model
	}
	if r.N != nil {
		r.n = *r.N
	}
	r.id = requestID(req.N, r.RID)
	for _, step := range []func(*api) *dialect.Reply{r.readPrompts, r.readSampling, r.readTools, r.checkContext} {
		if refused := step(a); refused != nil {
			return nil, refused
		}
	}
	return r, r.settleAnswer(a, req.N, req.Garble)
}

// describeJSONError says what is wrong with JSON that is no request.
func describeJSONError(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return fmt.Sprintf("body.%s: a JSON %s is not what belongs there", wrong.Field, wrong.Value)
	}
	return "body: JSON decode error: " + err.Error()
}

// readPrompts reads what is to be answered.
func (r *ask) readPrompts(a *api) *dialect.Reply {
	if r.chat {
		text, refused := r.chatText()
		if refused != nil {
			return refused
		}
		r.prompts = []lm.Prompt{a.model.TextPrompt(text, a.model.TemplateTokens())}
		return nil
	}
	var list []json.RawMessage
	one, isText := parseString(r.Prompt)
	switch {
	case r.Prompt == nil:
		return misreadReply("1 validation error:\n  body.prompt: Field required")
	case isText && one == "":
		return rejectedReply("Prompt cannot be empty")
	case isText:
		r.prompts = []lm.Prompt{a.model.TextPrompt([]byte(one), 0)}
		return nil
	case json.Unmarshal(r.Prompt, &list) != nil:
		return misreadReply("1 validation error:\n  body.prompt: a string, a list of strings or token ids belongs there")
	}
	if p, ok := a.parseTokenIDs(r.Prompt); ok && len(list) > 0 {
		r.prompts = []lm.Prompt{p}
		return nil
	}
	for i, raw := range list {
		if one, ok := parseString(raw); ok {
			r.prompts = append(r.prompts, a.model.TextPrompt([]byte(one), 0))
		} else if p, ok := a.parseTokenIDs(raw); ok {
			r.prompts = append(r.prompts, p)
		} else {
			return misreadReply(fmt.Sprintf("1 validation error:\n  body.prompt.%d: a string or token ids belong there", i))
		}
	}
	if len(r.prompts) == 0 || !slices.ContainsFunc(r.prompts, func(p lm.Prompt) bool { return p.Tokens > 0 }) {
		return rejectedReply("Prompt cannot be empty")
	}
	return nil
}

// parseTokenIDs is a prompt of token ids, false if it is none.
func (a *api) parseTokenIDs(raw json.RawMessage) (lm.Prompt, bool) {
	var ids []uint32
	if json.Unmarshal(raw, &ids) != nil || bytes.Contains(raw, []byte("null")) {
		return lm.Prompt{}, false
	}
	for i := range ids {
		ids[i] %= uint32(a.model.Size())
	}
	return a.model.IDPrompt(ids), true
}

// parseString is a JSON string, false if it is none.
func parseString(raw json.RawMessage) (s string, ok bool) {
	return s, len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil
}

// chatText is the text of a chat: its messages one after the other.
func (r *ask) chatText() ([]byte, *dialect.Reply) {
	if r.Messages == nil {
		return nil, misreadReply("1 validation error:\n  body.messages: Field required")
	}
	var messages []struct {
		Role    *string         `json:"role"`
		Content json.RawMessage `json:"content"`
		Calls   json.RawMessage `json:"tool_calls"`
	}
	if err := json.Unmarshal(r.Messages, &messages); err != nil {
		return nil, misreadReply("1 validation error:\n  body.messages: a list of messages belongs there")
	}
	if len(messages) == 0 {
		return nil, rejectedReply("Messages cannot be empty.")
	}
	var all []byte
	for i, m := range messages {
		if m.Role == nil {
			return nil, misreadReply(fmt.Sprintf("1 validation error:\n  body.messages.%d.role: Field required", i))
		}
		r.last = *m.Role
		if i > 0 {
			all = append(all, '\n')
		}
		var parts []struct{ Type, Text string }
		switch one, ok := parseString(m.Content); {
		case ok:
			all = append(all, one...)
		case len(m.Content) == 0 || string(m.Content) == "null":
			if r.last != "assistant" { // which may only call tools
				return nil, misreadReply(fmt.Sprintf("1 validation error:\n  body.messages.%d.content: Field required", i))
			}
		case json.Unmarshal(m.Content, &parts) != nil:
			return nil, misreadReply(fmt.Sprintf("1 validation error:\n  body.messages.%d.content: a string or a list of parts belongs there", i))
		default:
			for _, p := range parts {
				if p.Type != "text" {
					return nil, rejectedReply("The model takes text alone, and a part is " + p.Type)
				}
				all = append(all, p.Text...)
			}
		}
		if string(m.Calls) != "null" {
			all = append(all, m.Calls...)
		}
	}
	if len(r.Tools) > 0 {
		raw, _ := json.Marshal(r.Tools)
		all = append(append(raw, '\n'), all...)
	}
	return all, nil
}

// readSampling reads how an answer is drawn and where it stops.
func (r *ask) readSampling(*api) *dialect.Reply {
	value := func(p *float64, usual float64) float64 {
		if p == nil {
			return usual
		}
		return *p
	}
	one, isText := parseString(r.Stop)
	switch {
	case isText:
		r.plan.Stops = []string{one}
	case len(r.Stop) > 0 && json.Unmarshal(r.Stop, &r.plan.Stops) != nil:
		return misreadReply("1 validation error:\n  body.stop: a string or a list of strings belongs there")
	}
	r.plan.Stops = slices.DeleteFunc(r.plan.Stops, func(s string) bool { return s == "" })
	r.plan.KeepStop, r.plan.Least = r.NoStopTrim, r.MinTokens
	if salt, ok := parseString(r.CacheSalt); ok {
		r.salt = lm.HashSalt(salt)
	}
	switch {
	case r.chat && string(r.Logprobs) == "true":
		r.logprobs = r.TopLogprobs
	case !r.chat && len(r.Logprobs) > 0 && string(r.Logprobs) != "null":
		if err := json.Unmarshal(r.Logprobs, &r.logprobs); err != nil {
			return misreadReply("1 validation error:\n  body.logprobs: a number belongs there")
		}
	}
	temperature, topP, minP, topK := value(r.Temperature, 1), value(r.TopP, 1), value(r.MinP, 0), -1
	if r.TopK != nil {
		topK = *r.TopK
	}
	number := func(name, want string, got any) *dialect.Reply {
		return rejectedReply(fmt.Sprintf("%s must be %s, got %v.", name, want, got))
	}
	switch {
	case !(temperature >= 0):
		return number("temperature", "a non-negative finite number", temperature)
	case !(topP > 0 && topP <= 1):
		return number("top_p", "in (0, 1]", topP)
	case !(minP >= 0 && minP <= 1):
		return number("min_p", "in [0, 1]", minP)
	case topK < 1 && topK != -1:
		return number("top_k", "-1 (disable) or at least 1", topK)
	case !(r.Frequency >= -2 && r.Frequency <= 2):
		return number("frequency_penalty", "in [-2, 2]", r.Frequency)
	case !(r.Presence >= -2 && r.Presence <= 2):
		return number("presence_penalty", "in [-2, 2]", r.Presence)
	case r.n < 1 || r.n > maxChoices/len(r.prompts):
		return number("n", fmt.Sprintf("at least 1, and at most %d with all prompts", maxChoices), r.n)
	case r.logprobs > 20:
		return number("logprobs", "at most 20", r.logprobs)
	}
	return nil
}

// readTools reads which tool is called.
func (r *ask) readTools(*api) *dialect.Reply {
	choice, chosen := parseString(r.ToolChoice)
	switch {
	case !r.chat || len(r.ToolChoice) == 0 || string(r.ToolChoice) == "null" || choice == "none" || choice == "auto":
		if choice == "none" {
			r.Tools = nil
		}
		return nil
	case choice == "required" && len(r.Tools) == 0:
		return rejectedReply("Tools cannot be empty if tool choice is set to required.")
	case choice == "required":
		r.plan.Call = r.Tools[0].Function.NewCall()
		return nil
	case chosen:
		return misreadReply("1 validation error:\n  body.tool_choice: Input should be 'auto', 'required' or 'none'")
	case len(r.Tools) == 0:
		return rejectedReply("Tools cannot be empty if tool choice is set to a specific tool.")
	}
	var named tool
	if err := json.Unmarshal(r.ToolChoice, &named); err != nil {
		return misreadReply("1 validation error:\n  body.tool_choice: a tool belongs there")
	}
	for _, t := range r.Tools {
		if t.Function.Name == named.Function.Name {
			r.plan.Call = t.Function.NewCall()
			return nil
		}
	}
	return rejectedReply(fmt.Sprintf("Tool '%s' not found in tools list.", named.Function.Name))
}

// checkContext works out how long an answer may be, and refuses what the context has no room for.
func (r *ask) checkContext(a *api) *dialect.Reply {
	asked := 0
	for _, limit := range []*int{r.MaxCompletion, r.MaxTokens} {
		if limit != nil && asked == 0 && (r.chat || limit == r.MaxTokens) {
			asked = *limit
		}
	}
	longest := 0
	for _, p := range r.prompts {
		r.prompt += p.Tokens
		longest = max(longest, p.Tokens)
	}
	switch {
	case asked < 0:
		return rejectedReply(fmt.Sprintf("max_new_tokens must be at least 0, got %d.", asked))
	case r.MinTokens < 0 || asked > 0 && r.MinTokens > asked:
		return rejectedReply(fmt.Sprintf("min_new_tokens must be in [0, max_new_tokens(%d)], got %d.", asked, r.MinTokens))
	case longest >= a.MaxModelLen:
		return rejectedReply(fmt.Sprintf("The input (%d tokens) is longer than the model's context length (%d tokens).", longest, a.MaxModelLen))
	case asked > a.MaxModelLen-longest:
		return rejectedReply(fmt.Sprintf("Requested token count exceeds the model's maximum context length of %d tokens. You requested a total of %d tokens: "+
			"%d of the input and %d of the completion.", a.MaxModelLen, uint64(asked)+uint64(longest), longest, asked))
	}
	if asked == 0 {
		asked = defaultCompletionTokens
		if r.chat {
			asked = max(defaultChatTokens, r.MinTokens)
		}
	}
	r.plan.Limit = min(asked, max(a.MaxModelLen-longest, 1))
	return nil
}

// settleAnswer decides what the answer says; number is that of the request.
func (r *ask) settleAnswer(a *api, number int64, garble bool) *dialect.Reply {
	m, p := a.model, &r.plan
	r.first = lm.FirstOf(r.prompts, number, r.Temperature, r.Seed)
	if p.Call == nil && r.chat && r.last != "tool" {
		if i, calls := m.CallsTool(len(r.Tools), r.first); calls {
			p.Call = r.Tools[i].Function.NewCall()
		}
	}
	given, refused := r.constrainedAnswer()
	if refused != nil {
		return refused
	}
	if given != "" && p.Call == nil {
		p.Given = m.TokenizeGiven(given)
	}
	m.AnswerKnown(p, r.prompts, garble)
	m.SettleLengths(p, r.first, lm.Mode{Chat: r.chat, IgnoreEOS: r.IgnoreEOS})
	for i := range r.prompts {
		r.prompts[i].IDs = nil
		if !r.Echo || r.chat {
			r.prompts[i].Text = nil
		}
	}
	return nil
}

// constrainedAnswer is an answer of the form that the request asks for, "" where any will do.
func (r *ask) constrainedAnswer() (string, *dialect.Reply) {
	schema := json.RawMessage(nil)
	switch f := r.ResponseFormat; {
	case r.Regex != nil:
		answer, err := example.OfPattern(*r.Regex)
		if err != nil {
			return "", rejectedReply(fmt.Sprintf("Failed to compile the regex: %v", err))
		}
		return answer, nil
	case r.JSONSchema != nil:
		schema = json.RawMessage(*r.JSONSchema)
	case f == nil || f.Type == "text":
		return "", nil
	case f.Type == "json_object":
		schema = json.RawMessage(`{"properties": {"answer": {"type": "string"}}}`)
	case f.Type == "json_schema" && f.JSONSchema.Schema == nil:
		return "", rejectedReply("schema_ is required for json_schema response format request.")
	case f.Type == "json_schema":
		schema = f.JSONSchema.Schema
	default:
		return "", misreadReply("1 validation error:\n  body.response_format.type: Input should be 'text', 'json_object' or 'json_schema'")
	}
	if !json.Valid(schema) {
		return "", rejectedReply("Failed to compile the JSON schema: it is no JSON")
	}
	if kind := example.UnknownType(schema); kind != "" {
		return "", rejectedReply("Failed to compile the JSON schema: there is no type " + kind)
	}
	return example.OfSchema(schema), nil
}
