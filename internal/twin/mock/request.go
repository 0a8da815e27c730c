package mock

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
)

// maxChoices bounds the answers of one request: prompts times n.
const maxChoices = 1024

// ask is what a request comes to. Fields that are not read, among them most
// sampling parameters, are accepted and have no effect.
type ask struct {
	chat, stream      bool
	usage, continuous bool
	prompts           []prompt
	prompt            int // tokens of all prompts
	n                 int // answers to each
	limit             int // tokens that an answer may have
	output            int // tokens after which it ends, if no stop string does
	least             int // min_tokens: no stop string before
	stops             []string
	keepStop          bool // include_stop_str_in_output
	logprobs          int  // how many alternatives to each token, -1 for no logprobs
	echo              bool
	hideReasoning     bool
	reasoning         int // tokens of the answer that are reasoning
	call              *toolCall
	salt              uint64
	priority          int
}

// jsonBody refuses what is announced as something else than JSON. vLLM also
// refuses what is not announced at all; that much is overlooked here.
func jsonBody(req *http.Request) *reply {
	if req.Header.Get("Content-Type") == "" {
		return nil
	}
	kind, _, _ := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if kind == "application/json" {
		return nil
	}
	return refusal("Bad Request", "", "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed")
}

// parse reads the body of generation number n. Checks come in vLLM's order:
// the types of the fields, what goes together, the model, the prompt, and the
// sampling parameters.
func (s *Server) parse(raw []byte, chat bool, number int64) (ask, *reply) {
	a := ask{chat: chat, logprobs: -1}
	b, refused := readBody(raw)
	if refused != nil {
		return a, refused
	}
	a.stream = b.boolean("stream")
	a.n = b.integer("n", 1)
	a.echo = b.boolean("echo") && !chat
	a.keepStop = b.boolean("include_stop_str_in_output")
	a.stops = b.texts("stop")
	a.least = b.integer("min_tokens", 0)
	a.priority = b.integer("priority", 0)
	a.hideReasoning = b.has("include_reasoning") && !b.boolean("include_reasoning")
	ignoreEOS := b.boolean("ignore_eos")
	temperature, topP := b.number("temperature", 1), b.number("top_p", 1)
	limit := b.integer("max_tokens", -1)
	limited := b.has("max_tokens")
	if chat && b.has("max_completion_tokens") {
		limit, limited = b.integer("max_completion_tokens", -1), true
	}
	if salt, ok := b.text("cache_salt"); ok {
		a.salt = tokenID([]byte(salt))
	}
	tops := b.integer("top_logprobs", 0)
	switch {
	case chat && b.boolean("logprobs"):
		a.logprobs = tops
	case !chat && b.has("logprobs"):
		a.logprobs = b.integer("logprobs", 0)
	}
	var refusedCall *reply
	if chat {
		a.call, refusedCall = b.toolCall()
	}
	var text []byte
	if chat {
		if b.m["messages"] == nil {
			b.missing("messages")
		} else {
			text = b.chatText(b.m["messages"])
		}
		if b.has("tools") && len(b.faults) == 0 {
			text = append(append(append([]byte(nil), b.m["tools"]...), '\n'), text...)
		}
	}
	refusedOptions := a.options(b)
	if !chat && b.has("prompt") {
		a.prompts = s.prompts(b)
	}
	if refused := b.refused(); refused != nil {
		return a, refused
	}
	if chat {
		p := s.textPrompt(text, s.cfg.PromptOverhead)
		a.prompts = []prompt{p}
	}

	if refusedOptions != nil {
		return a, refusedOptions
	}
	if refused := a.refuseLogprobs(b, tops); refused != nil {
		return a, refused
	}
	if refusedCall != nil {
		return a, refusedCall
	}
	if one, ok := b.text("prompt"); !chat && (!b.has("prompt") || ok && one == "") {
		return a, parameter("prompt", "", "Either prompt or prompt_embeds must be provided and non-empty.")
	}
	if model, ok := b.text("model"); ok && model != "" && model != s.cfg.Model {
		r := reply{status: http.StatusNotFound, body: failureJSON(http.StatusNotFound,
			fmt.Sprintf("The model `%s` does not exist. Valid aliases: %s.", model, s.cfg.Model), "model")}
		return a, &r
	}
	if chat && isEmptyList(b.m["messages"]) {
		return a, rejection("", "Cannot apply chat template to an empty conversation. Provide at least one message.")
	}
	if len(a.prompts) == 0 {
		return a, rejection("", "You must pass at least one prompt")
	}
	if refused := s.fits(&a); refused != nil {
		return a, refused
	}
	a.limit = s.limit(&a, limit, limited)
	if refused := a.refuseSampling(temperature, topP); refused != nil {
		return a, refused
	}
	if a.logprobs == -1 && b.has("logprobs") && (!chat || b.boolean("logprobs")) {
		a.logprobs = maxLogprobs // all there are
	}
	a.plan(s, number, ignoreEOS)
	if !a.echo {
		for i := range a.prompts { // a stream lives longer than its prompt is needed
			a.prompts[i].text, a.prompts[i].given = nil, nil
		}
	}
	return a, nil
}

// refuseLogprobs says what is wrong with what is asked of logprobs.
func (a *ask) refuseLogprobs(b *body, tops int) *reply {
	if a.chat && b.has("top_logprobs") && tops != 0 {
		switch {
		case tops < -1:
			return parameter("top_logprobs", fmt.Sprint(tops), "`top_logprobs` must be a positive value or -1.")
		case a.logprobs < 0 && !b.boolean("logprobs"):
			return parameter("top_logprobs", "", "when using `top_logprobs`, `logprobs` must be set to true.")
		}
	}
	if !a.chat && b.has("logprobs") && a.logprobs < -1 {
		return parameter("logprobs", fmt.Sprint(a.logprobs), "`logprobs` must be a positive value or -1.")
	}
	return nil
}

// refuseSampling says what is wrong with the sampling parameters.
func (a *ask) refuseSampling(temperature, topP float64) *reply {
	switch {
	case a.n < 1:
		return rejection("", "n must be at least 1, got %d.", a.n)
	case a.n*len(a.prompts) > maxChoices:
		return rejection("", "n must be at most %d, got %d.", maxChoices/len(a.prompts), a.n)
	case temperature < 0:
		return parameter("temperature", python(temperature), "temperature must be non-negative, got "+python(temperature)+".")
	case !(topP > 0 && topP <= 1):
		return parameter("top_p", python(topP), "top_p must be in (0, 1], got "+python(topP)+".")
	case a.limit < 1:
		return parameter("max_tokens", fmt.Sprint(a.limit), fmt.Sprintf("max_tokens must be at least 1, got %d.", a.limit))
	case a.least < 0:
		return rejection("", "min_tokens must be greater than or equal to 0, got %d.", a.least)
	case a.least > a.limit:
		return rejection("", "min_tokens must be less than or equal to max_tokens=%d, got %d.", a.limit, a.least)
	case hasEmpty(a.stops):
		return rejection("", "stop cannot contain an empty string.")
	case a.n > 1 && temperature == 0:
		return rejection("", "n must be 1 when using greedy sampling, got %d.", a.n)
	case a.logprobs > maxLogprobs:
		return parameter("logprobs", fmt.Sprint(a.logprobs),
			fmt.Sprintf("Requested sample logprobs of %d, which is greater than max allowed: %d", a.logprobs, maxLogprobs))
	}
	return nil
}

// options reads stream_options.
func (a *ask) options(b *body) *reply {
	if !b.has("stream_options") {
		return nil
	}
	var o struct {
		IncludeUsage         bool `json:"include_usage"`
		ContinuousUsageStats bool `json:"continuous_usage_stats"`
	}
	if err := json.Unmarshal(b.m["stream_options"], &o); err != nil {
		b.add("model_attributes_type", "body.stream_options", "Input should be a valid dictionary or object to extract fields from", b.m["stream_options"])
		return nil
	}
	if !a.stream {
		return parameter("stream_options", "", "Stream options can only be defined when `stream=True`.")
	}
	a.usage = o.IncludeUsage
	a.continuous = o.IncludeUsage && o.ContinuousUsageStats
	return nil
}

// fits refuses prompts that leave no room. Of a text the real server looks at
// no more than would fit, so it does not know how much too long it is.
func (s *Server) fits(a *ask) *reply {
	for _, p := range a.prompts {
		a.prompt += p.tokens
		if p.tokens <= s.cfg.MaxModelLen {
			continue
		}
		contains, n := "", p.tokens
		if p.text != nil {
			contains, n = "at least ", s.cfg.MaxModelLen+1
		}
		return parameter("input_tokens", fmt.Sprint(n), fmt.Sprintf(
			"This model's maximum context length is %d tokens. However, your prompt contains %s%d input tokens, "+
				"which exceeds this limit even without any output tokens. Please reduce the length of the input prompt.",
			s.cfg.MaxModelLen, contains, n))
	}
	return nil
}

// limit is how many tokens an answer may have. More than the model has room
// for is cut down, as vLLM does.
func (s *Server) limit(a *ask, asked int, set bool) int {
	room := s.cfg.MaxModelLen
	for _, p := range a.prompts {
		room = min(room, s.cfg.MaxModelLen-p.tokens)
	}
	switch {
	case set:
	case a.chat:
		asked = defaultChatTokens
	default:
		asked = defaultCompletionTokens
	}
	return min(asked, room)
}

// plan decides how long the answer is and what of it is reasoning.
func (a *ask) plan(s *Server, number int64, ignoreEOS bool) {
	a.output = a.limit
	switch {
	case a.call != nil:
		a.output = min(a.limit, a.call.tokens())
	case s.cfg.Ends != nil && !ignoreEOS:
		a.output = min(a.limit, max(s.cfg.Ends(number), a.least, 1))
	}
	if a.chat && a.call == nil {
		a.reasoning = int(s.cfg.Reasoning * float64(a.output))
	}
	if a.reasoning > 0 || a.call != nil {
		a.stops = nil // they would have to be looked for in what is taken apart
	}
}

// prompts reads the forms that a completion's prompt has: a string, token
// ids, or a list of either.
func (s *Server) prompts(b *body) []prompt {
	raw := b.m["prompt"]
	var list []json.RawMessage
	if one, ok := b.text("prompt"); ok {
		return []prompt{s.textPrompt([]byte(one), 0)}
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		b.add("string_type", "body.prompt", "Input should be a valid string", raw)
		b.add("list_type", "body.prompt", "Input should be a valid list", raw)
		return nil
	}
	var ids []uint64
	if json.Unmarshal(raw, &ids) == nil && !bytes.Contains(raw, []byte("null")) {
		if len(ids) == 0 {
			return nil
		}
		return []prompt{s.idPrompt(ids)}
	}
	var many []prompt
	for i, one := range list {
		var text string
		var ids []uint64
		switch {
		case one[0] == '"' && json.Unmarshal(one, &text) == nil:
			many = append(many, s.textPrompt([]byte(text), 0))
		case one[0] == '[' && json.Unmarshal(one, &ids) == nil && !bytes.Contains(one, []byte("null")) && len(ids) > 0:
			many = append(many, s.idPrompt(ids))
		default:
			loc := fmt.Sprintf("body.prompt.%d", i)
			b.add("string_type", loc, "Input should be a valid string", one)
			b.add("list_type", loc, "Input should be a valid list", one)
			return nil
		}
	}
	return many
}

func isEmptyList(raw json.RawMessage) bool {
	var list []json.RawMessage
	return json.Unmarshal(raw, &list) == nil && len(list) == 0
}

func hasEmpty(texts []string) bool {
	for _, t := range texts {
		if t == "" {
			return true
		}
	}
	return false
}

// parameter is a 400 that names the parameter at fault and, where there is
// one, its value, in the message too.
func parameter(param, value, message string) *reply {
	tail := " (parameter=" + param
	if value != "" {
		tail += ", value=" + value
	}
	return rejection(param, "%s", message+tail+")")
}

// python is a float as Python writes it.
func python(f float64) string {
	text := fmt.Sprint(f)
	if !strings.ContainsAny(text, ".eN") {
		text += ".0"
	}
	return text
}

// stopAt looks for the first stop string in the answer whose text begins at a
// word: after how many tokens it is complete, what it is, and how long the
// text is that stays; 0 if there is none in the answer.
func (a *ask) stopAt(first int64) (tokens int, stop string, stays int) {
	longest := a.longestStop()
	if longest == 0 {
		return 0, "", 0
	}
	var text []byte
	// The text repeats itself: what is not found in two rounds is not there.
	for i, end := 0, min(a.output, a.least+2*len(pieces)+longest); i < end; i++ {
		before := len(text)
		text = append(text, piece(first, i)...)
		if i+1 < a.least {
			continue
		}
		from := max(before-longest+1, 0)
		for _, s := range a.stops {
			if at := bytes.Index(text[from:], []byte(s)); at >= 0 {
				stays = from + at
				if a.keepStop {
					stays += len(s)
				}
				return i + 1, s, stays
			}
		}
	}
	return 0, "", 0
}
