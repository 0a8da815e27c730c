package vllmapi

import (
	"encoding/json"
	"fmt"
	"net/http"

	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/lm"
)

// maxChoices bounds the answers of one request: prompts times n.
const maxChoices = 1024

// Output lengths of requests that name none.
const (
	defaultChatTokens       = 128
	defaultCompletionTokens = 16
)

// ask is the parsed form of a request. Fields that are not read are accepted and have no effect.
type ask struct {
	chat, stream      bool
	usage, continuous bool // usage at the end of a stream, and with each event
	prompts           []lm.Prompt
	prompt            int // tokens of all prompts
	n                 int // answers to each
	plan              lm.Plan
	first             int64  // where the words of the first answer begin
	logprobs          int    // how many alternatives to each token, -1 for no logprobs
	promptLogprobs    int    // how many alternatives to each token of the prompt, -1 for none
	echo              bool   // a completion begins with its prompt
	echoOnly          bool   // and is nothing else, though a token was generated
	role              string // of a chat's answer
	echoed            string // that a chat's answer begins with
	hideReasoning     bool
	tokenIDs          bool // return_token_ids
	parsed            bool // for calls of tools
	salt              uint64
	priority          int
}

// reader reads one request to a generation route.
type reader struct {
	api *api
	*body
	ask
	number int64
	garble bool // the answer is wrong

	// what was read and has yet to be looked at
	limit      int    // tokens that an answer may have, if limited
	limitField string // the field that says so, "" for none
	noHeader   bool   // add_generation_prompt is false
	goOn       bool   // continue_final_message
	ignoreEOS  bool
	sampling   sampling
	tops       int // top_logprobs
	constraint *constraint
	tools      []tool // that the model may call
	messages   conversation
	cut        lm.Truncation
	misfits    []*dialect.Reply // what the fields' values do not go with, in vLLM's order
	unknownID  *dialect.Reply
}

// read takes a request to the answer that is to be generated. Checks come in
// vLLM's order.
func (a *api) read(req *dialect.Request, chat bool) (*reader, *dialect.Reply) {
	b, refused := readBody(req)
	if refused != nil {
		return nil, refused
	}
	r := &reader{api: a, body: b, number: req.N, garble: req.Garble, ask: ask{chat: chat, logprobs: -1, promptLogprobs: -1}}
	for _, check := range []func() *dialect.Reply{
		r.readFields, r.checkCombinations, r.servedModel, r.refuseSuffix, r.checkLimits, r.checkContent, r.truncate, r.checkContext, r.checkValues,
	} {
		if refused := check(); refused != nil {
			return nil, refused
		}
	}
	return r, r.settleAnswer()
}

// readFields reads all fields. What has not the type of its field is refused
// together.
func (r *reader) readFields() *dialect.Reply {
	b, p := r.body, &r.plan
	r.stream = b.boolField("stream")
	r.n = b.intField("n", 1)
	r.echo = b.boolField("echo")
	p.KeepStop = b.boolField("include_stop_str_in_output")
	p.Stops = b.stringsField("stop")
	p.Least = b.intField("min_tokens", 0)
	r.priority = b.intField("priority", 0)
	r.hideReasoning = b.hasField("include_reasoning") && !b.boolField("include_reasoning")
	r.tokenIDs = b.boolField("return_token_ids")
	r.ignoreEOS = b.boolField("ignore_eos")
	r.readLimit()
	if salt, ok := b.stringField("cache_salt"); ok {
		r.salt = lm.HashSalt(salt)
	}
	r.readLogprobs()
	var sampling, format, call, options *dialect.Reply
	r.sampling, sampling = b.readSampling(r.stream)
	r.constraint, format = b.parseConstraint(r.chat)
	r.cut = b.parseTruncation()
	if r.chat {
		p.Call, r.tools, call = b.toolCall()
		r.parsed = p.Call != nil || len(r.tools) > 0
		r.noHeader = b.hasField("add_generation_prompt") && !b.boolField("add_generation_prompt")
		r.goOn = b.boolField("continue_final_message")
		r.readMessages()
	}
	options = r.readStreamOptions()
	if !r.chat {
		if _, ok := b.stringField("suffix"); b.hasField("suffix") && !ok {
			b.noteFault("string_type", "suffix", b.m["suffix"])
		}
		if b.hasField("prompt") {
			r.prompts, r.unknownID = r.api.parsePrompts(b)
		}
	}
	r.misfits = []*dialect.Reply{format, options, r.refuseLogprobs(), sampling, call, r.refuseHeader()}
	return b.faultReply()
}

// readLimit reads how many tokens an answer may have.
func (r *reader) readLimit() {
	fields := []string{"max_tokens"}
	if r.chat {
		fields = []string{"max_completion_tokens", "max_tokens"} // the first rules
	}
	for _, field := range fields {
		if n := r.intField(field, -1); r.hasField(field) && r.limitField == "" {
			r.limit, r.limitField = n, field
		}
	}
	r.echoOnly = r.echo && !r.chat && r.limitField != "" && r.limit == 0
}

// readMessages reads the messages of a chat, with its tools before them.
func (r *reader) readMessages() {
	b := r.body
	if b.m["messages"] == nil {
		b.noteMissing("messages")
	} else {
		r.messages = b.parseConversation(b.m["messages"])
	}
	if b.hasField("tools") && len(b.faults) == 0 {
		r.messages.text = append(append(append([]byte(nil), b.m["tools"]...), '\n'), r.messages.text...)
	}
}

// refuseHeader refuses what contradicts itself in how a chat goes on.
func (r *reader) refuseHeader() *dialect.Reply {
	if r.goOn && r.hasField("add_generation_prompt") && !r.noHeader {
		return rejectionReply("", "Cannot set both `continue_final_message` and `add_generation_prompt` to True.")
	}
	return nil
}

// readLogprobs reads which logprobs are asked for.
func (r *reader) readLogprobs() {
	r.tops = r.intField("top_logprobs", 0)
	switch {
	case r.chat && r.boolField("logprobs"):
		r.logprobs = r.tops
	case !r.chat && r.hasField("logprobs"):
		r.logprobs = r.intField("logprobs", 0)
	}
}

// refuseLogprobs says what is wrong with what is asked of logprobs.
func (r *reader) refuseLogprobs() *dialect.Reply {
	if r.chat && r.hasField("top_logprobs") && r.tops != 0 {
		switch {
		case r.tops < -1:
			return parameterReply("top_logprobs", r.tops, "`top_logprobs` must be a positive value or -1.")
		case r.logprobs < 0 && !r.boolField("logprobs"):
			return parameterReply("top_logprobs", "", "when using `top_logprobs`, `logprobs` must be set to true.")
		}
	}
	if !r.chat && r.hasField("logprobs") && r.logprobs < -1 {
		return parameterReply("logprobs", r.logprobs, "`logprobs` must be a positive value or -1.")
	}
	return nil
}

// readStreamOptions reads stream_options.
func (r *reader) readStreamOptions() *dialect.Reply {
	if !r.hasField("stream_options") {
		return nil
	}
	var o struct {
		IncludeUsage         bool `json:"include_usage"`
		ContinuousUsageStats bool `json:"continuous_usage_stats"`
	}
	if err := json.Unmarshal(r.m["stream_options"], &o); err != nil {
		r.notObject("stream_options", r.m["stream_options"])
		return nil
	}
	if !r.stream {
		return parameterReply("stream_options", "", "Stream options can only be defined when `stream=True`.")
	}
	r.usage = o.IncludeUsage
	r.continuous = o.IncludeUsage && o.ContinuousUsageStats
	return nil
}

// checkCombinations refuses values that do not go together.
func (r *reader) checkCombinations() *dialect.Reply {
	for _, refused := range r.misfits {
		if refused != nil {
			return refused
		}
	}
	if one, ok := r.stringField("prompt"); !r.chat && (!r.hasField("prompt") || ok && one == "") {
		return parameterReply("prompt", "", "Either prompt or prompt_embeds must be provided and non-empty.")
	}
	return nil
}

// servedModel refuses a model that is not served.
func (r *reader) servedModel() *dialect.Reply {
	model, ok := r.stringField("model")
	if !ok || model == "" || model == r.api.Name {
		return nil
	}
	return &dialect.Reply{Status: http.StatusNotFound, Body: failureJSON(http.StatusNotFound,
		fmt.Sprintf("The model `%s` does not exist. Valid aliases: %s.", model, r.api.Name), "model")}
}

// checkLimits refuses lengths that no prompt leaves room for.
func (r *reader) checkLimits() *dialect.Reply {
	longest := r.api.MaxModelLen
	if r.limitField != "" && r.limit > longest {
		return parameterReply(r.limitField, r.limit,
			"%s=%d cannot be greater than max_model_len=%d. Please request fewer output tokens.", r.limitField, r.limit, longest)
	}
	if t := r.cut; t.Set && t.Keep > longest {
		return parameterReply("truncate_prompt_tokens", t.Keep,
			"truncate_prompt_tokens=%d cannot be greater than max_model_len = %d. Please request a smaller truncation size.", t.Keep, longest)
	}
	return nil
}

// checkContent refuses what is no prompt, and takes a chat for one.
func (r *reader) checkContent() *dialect.Reply {
	switch {
	case r.messages.media:
		return rejectionReply("", "%s is not a multimodal model", r.api.Name)
	case r.chat && isEmptyList(r.m["messages"]):
		return rejectionReply("", "Cannot apply chat template to an empty conversation. Provide at least one message.")
	case r.unknownID != nil:
		return r.unknownID
	case r.goOn && !r.noHeader:
		return rejectionReply("", "continue_final_message and add_generation_prompt are not compatible. Use continue_final_message when you "+
			"want the model to continue the final message, and add_generation_prompt when you want to add a header that will prompt it "+
			"to start a new assistant message instead.")
	case r.chat:
		if refused := r.checkTextLength(r.messages.text); refused != nil {
			return refused
		}
		r.prompts = []lm.Prompt{r.api.model.TextPrompt(r.messages.text, r.templateTokens())}
		r.readRole()
		return nil
	case len(r.prompts) == 0:
		return rejectionReply("", "You must pass at least one prompt")
	}
	for i := range r.prompts {
		if refused := r.checkTextLength(r.prompts[i].Text); refused != nil {
			return refused
		}
	}
	return nil
}

// readRole reads who a chat's answer is of, and what it begins with.
func (r *reader) readRole() {
	r.role = "assistant"
	if r.noHeader {
		r.role = r.messages.last
	}
	if r.echo && r.role == r.messages.last {
		r.echoed = r.messages.lastText
	}
	r.echo = false
}

// templateTokens returns the number of tokens that the chat template adds to the prompt.
func (r *reader) templateTokens() int {
	if r.chat {
		return r.api.model.TemplateTokens()
	}
	return 0
}

// checkValues works out how long an answer may be, and refuses values that are out
// of their range.
func (r *reader) checkValues() *dialect.Reply {
	room := r.api.MaxModelLen
	for _, p := range r.prompts {
		room = min(room, r.api.MaxModelLen-max(p.Tokens, 1))
	}
	switch {
	case r.echoOnly:
		if r.limit = 1; room < 1 {
			return rejectionReply("", "The decoder prompt (length %d) plus the number of requested output tokens (at least 1) is longer than the "+
				"maximum model length of %d. Make sure that `max_model_len` is no smaller than the number of text tokens (prompt + requested "+
				"output tokens).", r.api.MaxModelLen-room, r.api.MaxModelLen)
		}
	case r.limitField != "":
	case r.chat:
		r.limit = defaultChatTokens
	default:
		r.limit = defaultCompletionTokens
	}
	r.plan.Limit = min(r.limit, room) // more than the prompt leaves room for is cut down
	if refused := r.sampling.checkSampling(&r.ask, r.api.model.Size()); refused != nil {
		return refused
	}
	if r.logprobs == -1 && r.hasField("logprobs") && (!r.chat || r.boolField("logprobs")) {
		r.logprobs = maxLogprobs // all there are
	}
	r.promptLogprobs = r.sampling.promptLogprobs
	if r.promptLogprobs < 0 && r.boolField("echo") { // of what is echoed too
		r.promptLogprobs = r.logprobs
		if r.chat {
			r.promptLogprobs = max(r.tops, 0)
		}
	}
	return nil
}

// settleAnswer decides what the answer says. It refuses constraints that no answer
// can keep to.
func (r *reader) settleAnswer() *dialect.Reply {
	m, p := r.api.model, &r.plan
	r.first = r.number
	if r.sampling.temperature == 0 || r.sampling.seeded { // the same prompt has the same answer
		r.first = lm.FixedFirst(r.prompts, r.sampling.seed)
	}
	if p.Call == nil && r.messages.last != "tool" {
		if i, calls := m.CallsTool(len(r.tools), r.first); calls {
			p.Call = r.tools[i].Function.NewCall()
		}
	}
	if r.constraint != nil && p.Call == nil {
		text, refused := r.constraint.exampleAnswer(uint64(r.first))
		if refused != nil {
			return refused
		}
		p.Given = m.TokenizeGiven(text)
	}
	m.AnswerKnown(p, r.prompts, r.garble)
	m.SettleLengths(p, r.first, lm.Mode{Chat: r.chat, IgnoreEOS: r.ignoreEOS})
	r.trimPrompts()
	return nil
}

// trimPrompts leaves of the prompts what the answer tells of them: a stream lives
// longer than they are needed.
func (r *reader) trimPrompts() {
	wantsIDs := r.echo || r.tokenIDs || r.promptLogprobs >= 0
	for i := range r.prompts {
		p := &r.prompts[i]
		if wantsIDs {
			r.api.model.Tell(p, r.templateTokens(), r.cut)
		} else {
			p.IDs = nil
		}
		if !r.echo {
			p.Text = nil
		}
	}
}
