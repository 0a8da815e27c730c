package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"

	"pitot/internal/twin"
)

// maxChoices bounds the answers of one request: prompts times n.
const maxChoices = 1024

// ask is what a request comes to. Fields that are not read are accepted and have
// no effect.
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
	script            *script // what the answer says, if that is given
	lead              int     // tokens before the script
	first             int64   // where the words of the answer begin
	tokenIDs          bool    // return_token_ids
	promptLogprobs    int     // how many alternatives to each token of the prompt, -1 for none
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
	a := ask{chat: chat, logprobs: -1, promptLogprobs: -1}
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
	a.tokenIDs = b.boolean("return_token_ids")
	ignoreEOS := b.boolean("ignore_eos")
	limit := b.integer("max_tokens", -1)
	limited := b.has("max_tokens")
	if chat && b.has("max_completion_tokens") {
		limit, limited = b.integer("max_completion_tokens", -1), true
	}
	if salt, ok := b.text("cache_salt"); ok {
		a.salt = uint64(key([]byte(salt)))
	}
	tops := b.integer("top_logprobs", 0)
	switch {
	case chat && b.boolean("logprobs"):
		a.logprobs = tops
	case !chat && b.has("logprobs"):
		a.logprobs = b.integer("logprobs", 0)
	}
	sampling, refusedSampling := b.readSampling(a.stream)
	constraint, refusedFormat := b.constrained(chat)
	cut := b.truncation()
	var auto []tool
	var refusedCall *reply
	var said conversation
	if chat {
		a.call, auto, refusedCall = b.toolCall()
		if b.m["messages"] == nil {
			b.missing("messages")
		} else {
			said = b.chat(b.m["messages"])
		}
		if b.has("tools") && len(b.faults) == 0 {
			said.text = append(append(append([]byte(nil), b.m["tools"]...), '\n'), said.text...)
		}
	}
	refusedOptions := a.options(b)
	var tooHigh *reply
	if !chat && b.has("prompt") {
		a.prompts, tooHigh = s.prompts(b)
	}
	if refused := b.refused(); refused != nil {
		return a, refused
	}
	if chat {
		a.prompts = []prompt{s.textPrompt(said.text, s.cfg.PromptOverhead)}
	}

	for _, refused := range []*reply{refusedFormat, refusedOptions, a.refuseLogprobs(b, tops), refusedSampling, refusedCall} {
		if refused != nil {
			return a, refused
		}
	}
	if one, ok := b.text("prompt"); !chat && (!b.has("prompt") || ok && one == "") {
		return a, parameter("prompt", "", "Either prompt or prompt_embeds must be provided and non-empty.")
	}
	if model, ok := b.text("model"); ok && model != "" && model != s.cfg.Model {
		r := reply{status: http.StatusNotFound, body: failureJSON(http.StatusNotFound,
			fmt.Sprintf("The model `%s` does not exist. Valid aliases: %s.", model, s.cfg.Model), "model")}
		return a, &r
	}
	if said.media {
		return a, rejection("", "%s is not a multimodal model", s.cfg.Model)
	}
	if chat && isEmptyList(b.m["messages"]) {
		return a, rejection("", "Cannot apply chat template to an empty conversation. Provide at least one message.")
	}
	if tooHigh != nil {
		return a, tooHigh
	}
	if len(a.prompts) == 0 {
		return a, rejection("", "You must pass at least one prompt")
	}
	if refused := s.truncate(&a, &cut); refused != nil {
		return a, refused
	}
	if refused := s.fits(&a); refused != nil {
		return a, refused
	}
	a.limit = s.limit(&a, limit, limited)
	if refused := sampling.refuseSampling(&a, int(s.vocab.size)); refused != nil {
		return a, refused
	}
	if a.logprobs == -1 && b.has("logprobs") && (!chat || b.boolean("logprobs")) {
		a.logprobs = maxLogprobs // all there are
	}
	a.promptLogprobs = sampling.promptLogprobs

	a.first = number
	if sampling.temperature == 0 || sampling.seeded { // the same prompt has the same answer
		a.first = a.fixed(sampling.seed)
	}
	if a.call == nil && said.last != "tool" {
		a.call = s.chosenCall(auto, a.first)
	}
	if constraint != nil && a.call == nil {
		text, refused := constraint.text(uint64(a.first))
		if refused != nil {
			return a, refused
		}
		a.script = s.newScript(text)
	}
	a.plan(s, ignoreEOS)
	s.keep(&a, cut)
	return a, nil
}

// fixed is where the words begin of an answer that follows from prompts and
// seed.
func (a *ask) fixed(seed int64) int64 {
	h := uint64(seed)
	for _, p := range a.prompts {
		h = twin.Mix(h ^ p.hash)
	}
	return int64(h >> 2)
}

// chosenCall is the call that the model makes of itself, nil for words.
func (s *Server) chosenCall(tools []tool, first int64) *toolCall {
	draw := twin.Mix(s.cfg.Seed ^ twin.Mix(uint64(first)))
	if len(tools) == 0 || float64(draw>>11)/(1<<53) >= s.cfg.ToolCalls {
		return nil
	}
	return tools[draw%uint64(len(tools))].call()
}

// keep leaves of the prompts what the answer tells of them: a stream lives
// longer than they are needed.
func (s *Server) keep(a *ask, cut truncation) {
	told := a.echo || a.tokenIDs || a.promptLogprobs >= 0
	for i := range a.prompts {
		p := &a.prompts[i]
		switch {
		case !told:
			p.ids = nil
		case p.ids == nil:
			overhead := 0
			if a.chat {
				overhead = s.cfg.PromptOverhead
			}
			p.ids = cut.of(s.encode(p.text, overhead))
		}
		if !a.echo {
			p.text = nil
		}
	}
}

// truncation is which tokens of a prompt are kept.
type truncation struct {
	set  bool
	keep int  // -1: as many as fit
	left bool // the last ones
}

// truncation reads truncate_prompt_tokens and truncation_side. Like most
// tokenizers that of the mock keeps the first tokens unless told otherwise.
func (b *body) truncation() (t truncation) {
	const field, side = "truncate_prompt_tokens", "truncation_side"
	if b.has(field) {
		t.set = true
		if t.keep = b.integer(field, -1); t.keep < -1 {
			b.atLeast(field, -1, b.m[field])
		}
	}
	if b.has(side) {
		where, _ := b.text(side)
		if t.left = where == "left"; !t.left && where != "right" {
			const words = "'left' or 'right'"
			b.addContext("literal_error", "body."+side, "Input should be "+words, b.m[side], "'expected': "+quoted(words))
		}
	}
	return t
}

// of is what is kept of a prompt's ids.
func (t truncation) of(ids []uint32) []uint32 {
	switch {
	case !t.set || len(ids) <= t.keep:
		return ids
	case t.left:
		return ids[len(ids)-t.keep:]
	}
	return ids[:t.keep]
}

// truncate cuts the prompts as the client asks.
func (s *Server) truncate(a *ask, t *truncation) *reply {
	if !t.set {
		return nil
	}
	if t.keep > s.cfg.MaxModelLen {
		return parameter("truncate_prompt_tokens", fmt.Sprint(t.keep), fmt.Sprintf(
			"truncate_prompt_tokens=%d cannot be greater than max_model_len = %d. Please request a smaller truncation size.", t.keep, s.cfg.MaxModelLen))
	}
	if t.keep < 0 {
		t.keep = s.cfg.MaxModelLen - 1 // room for a token of the answer
	}
	for i := range a.prompts {
		p := &a.prompts[i]
		p.tokens = min(p.tokens, t.keep)
		p.keys, p.ids = t.of(p.keys), t.of(p.ids)
	}
	return nil
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
func (a *ask) plan(s *Server, ignoreEOS bool) {
	a.output = a.limit
	switch {
	case a.call != nil:
		a.output = min(a.limit, a.call.tokens())
	case a.script != nil:
		a.planScript(s)
		return
	case s.cfg.Ends != nil && !ignoreEOS:
		a.output = min(a.limit, max(s.cfg.Ends(a.first), a.least, 1))
	}
	if a.chat && a.call == nil {
		a.reasoning = int(s.cfg.Reasoning * float64(a.output))
	}
	if a.reasoning > 0 || a.call != nil {
		a.stops = nil // they would have to be looked for in what is taken apart
	}
}

// planScript puts the reasoning before an answer whose words are given, in the
// share of the whole that it has otherwise.
func (a *ask) planScript(s *Server) {
	if r := s.cfg.Reasoning; a.chat && r > 0 {
		a.reasoning = a.limit
		if before := r / (1 - r) * float64(a.script.tokens()); before < float64(a.limit) {
			a.reasoning = int(before)
		}
	}
	if a.reasoning > 0 {
		a.lead, a.stops = a.reasoning+1, nil
	}
	a.output = min(a.limit, a.lead+a.script.tokens())
}

// scripted says whether a token of the answer, and all after it, say what is
// given.
func (a *ask) scripted(token int) bool { return a.script != nil && token >= a.lead }

// tokenText is the text of token i of an answer whose words begin at first.
func (a *ask) tokenText(first int64, i int) string {
	if a.scripted(i) {
		return a.script.slice(i-a.lead, i-a.lead+1)
	}
	return piece(first, i)
}

// prompts reads the forms that a completion's prompt has: a string, token
// ids, or a list of either. What it refuses is an id beyond the vocabulary.
func (s *Server) prompts(b *body) ([]prompt, *reply) {
	raw := b.m["prompt"]
	var list []json.RawMessage
	if one, ok := b.text("prompt"); ok {
		return []prompt{s.textPrompt([]byte(one), 0)}, nil
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		b.add("string_type", "body.prompt", "Input should be a valid string", raw)
		b.add("list_type", "body.prompt", "Input should be a valid list", raw)
		return nil, nil
	}
	if ids, ok := tokenIDs(raw); ok {
		if len(ids) == 0 {
			return nil, nil
		}
		if slices.Min(ids) < 0 {
			b.negative(list, ids)
			return nil, nil
		}
		p, refused := s.knownIDs(ids)
		return []prompt{p}, refused
	}
	var many []prompt
	for i, one := range list {
		var text string
		ids, ok := tokenIDs(one)
		switch {
		case one[0] == '"' && json.Unmarshal(one, &text) == nil:
			many = append(many, s.textPrompt([]byte(text), 0))
		case one[0] == '[' && ok && len(ids) > 0:
			p, refused := s.knownIDs(ids)
			if refused != nil {
				return nil, refused
			}
			many = append(many, p)
		default:
			loc := fmt.Sprintf("body.prompt.%d", i)
			b.add("string_type", loc, "Input should be a valid string", one)
			b.add("list_type", loc, "Input should be a valid list", one)
			return nil, nil
		}
	}
	return many, nil
}

// tokenIDs reads a list of integers; false if it is none.
func tokenIDs(raw json.RawMessage) (ids []int64, ok bool) {
	return ids, json.Unmarshal(raw, &ids) == nil && !bytes.Contains(raw, []byte("null"))
}

// negative notes ids below zero, and that the list is nothing else that a
// prompt may be.
func (b *body) negative(list []json.RawMessage, ids []int64) {
	loc := func(i int) string { return fmt.Sprintf("prompt.%d", i) }
	for i, id := range ids {
		if id < 0 {
			b.atLeast(loc(i), 0, list[i])
		}
	}
	for i, one := range list {
		b.add("list_type", "body."+loc(i), "Input should be a valid list", one)
	}
	b.add("string_type", "body.prompt", "Input should be a valid string", b.m["prompt"])
	for i, one := range list {
		b.add("string_type", "body."+loc(i), "Input should be a valid string", one)
	}
}

// knownIDs is a prompt of token ids; ids that the vocabulary does not have are
// refused.
func (s *Server) knownIDs(ids []int64) (prompt, *reply) {
	for _, id := range []int64{slices.Min(ids), slices.Max(ids)} {
		if id < 0 || id >= int64(s.vocab.size) {
			return prompt{}, rejection("", "Token id %d is out of vocabulary", id)
		}
	}
	known := make([]uint32, len(ids))
	for i, id := range ids {
		known[i] = uint32(id)
	}
	return s.idPrompt(known), nil
}

func isEmptyList(raw json.RawMessage) bool {
	var list []json.RawMessage
	return json.Unmarshal(raw, &list) == nil && len(list) == 0
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

// stopAt looks for the first stop string in the answer whose text begins at a
// word: after how many tokens it is complete, what it is, and how long the
// text is that stays; 0 if there is none in the answer.
func (a *ask) stopAt(first int64) (tokens int, stop string, stays int) {
	longest := a.longestStop()
	if longest == 0 {
		return 0, "", 0
	}
	var text []byte
	end := a.output
	if a.script == nil { // it repeats itself: what is not found in two rounds is not there
		end = min(end, a.least+2*len(pieces)+longest)
	}
	for i := range end {
		before := len(text)
		text = append(text, a.tokenText(first, i)...)
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
