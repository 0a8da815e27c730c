package sglangapi

import (
	"fmt"
	"strconv"
	"time"

	"pitot/internal/sim"
	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/lm"
)

// weightVersion is the version name of weights that were never changed.
const weightVersion = "default"

// writer writes the answer to one request.
type writer struct {
	*ask
	lm      *lm.Model
	base    string // up to and with `"choices":[`
	cached  bool   // cached tokens are reported (enable_cache_report)
	choices []choice
	ended   int
}

// choice is one answer as it is written.
type choice struct {
	lm.Answer
	index  int
	number int64
	prompt *lm.Prompt
	finish string
}

// requestID returns the ID of a request: the client's own, or one made from its number.
func requestID(n int64, rid []byte) string {
	if own, ok := parseString(rid); ok && own != "" {
		return own
	}
	return fmt.Sprintf("%016x%016x", sim.Mix(uint64(n)), sim.Mix(uint64(n)+1<<62))
}

// beginChat and completion begin the answers of the two generation routes.
func (a *api) beginChat(req *dialect.Request) (*dialect.Call, *dialect.Reply) {
	return a.beginAnswer(req, true)
}

func (a *api) beginCompletion(req *dialect.Request) (*dialect.Call, *dialect.Reply) {
	return a.beginAnswer(req, false)
}

func (a *api) beginAnswer(req *dialect.Request, chat bool) (*dialect.Call, *dialect.Reply) {
	r, refused := a.read(req, chat)
	if refused != nil {
		return nil, refused
	}
	object := "text_completion"
	switch {
	case chat && r.Stream:
		object = "chat.completion.chunk"
	case chat:
		object = "chat.completion"
	}
	w := &writer{
		ask: r, lm: a.model, cached: a.PromptTokensDetails, choices: make([]choice, len(r.prompts)*r.n),
		base: fmt.Sprintf(`{"id":%s,"object":"%s","created":%d,"model":%s,"choices":[`, dialect.Marshal(r.id), object, time.Now().Unix(), dialect.Marshal(r.model)),
	}
	c := &dialect.Call{
		ID: r.id, Stream: r.Stream, Type: "text/event-stream; charset=utf-8", Comment: ": ping\n\n", Waits: true,
		Prompt: r.prompt, Batch: r.n, Jobs: make([]sim.Job, len(w.choices)), Writer: w,
	}
	if chat {
		c.Opening = len(w.choices)
	}
	for i := range w.choices {
		one := &w.choices[i]
		*one = choice{Answer: a.model.Begin(&w.plan, w.first+5*int64(i)), index: i, number: req.N + int64(i)<<40, prompt: &w.prompts[i/w.n]}
		c.Jobs[i] = sim.Job{Prompt: max(one.prompt.Tokens, 1), Output: one.Output, Limit: w.plan.Limit, Content: one.Content(one.prompt, w.salt)}
	}
	return c, nil
}

// Finish implements [dialect.Writer].
func (w *writer) Finish(choice int, finish string) string {
	return w.choices[choice].FinishReason(finish)
}

// beginEvent begins an event of a choice.
func (w *writer) beginEvent(b []byte, index int) []byte {
	return dialect.AppendInt(dialect.Append(b, "data: ", w.base), `{"index":`, index)
}

// Open implements [dialect.Writer].
func (w *writer) Open(b []byte, i int) []byte {
	return append(w.beginEvent(b, i), `,"delta":{"reasoning_content":null,"role":"assistant","content":""},"logprobs":null,"finish_reason":null,"matched_stop":null}]}`+"\n\n"...)
}

// Tokens implements [dialect.Writer]. Of a chat the reasons why the choices ended come in
// events of their own, when all have.
func (w *writer) Tokens(b []byte, index, from, to int, finish string) ([]byte, bool) {
	c := &w.choices[index]
	if finish != "" {
		c.finish = finish
		w.ended++
	}
	if !w.chat {
		return w.completionEvent(b, c, from, to, finish), true
	}
	before := len(b)
	if w.plan.Call != nil {
		b = w.callEvents(b, c, from, to)
	} else {
		b = w.contentEvents(b, c, from, to, finish != "")
	}
	if w.ended == len(w.choices) && finish != "" {
		for i := range w.choices {
			b = w.endEvent(b, &w.choices[i])
		}
	}
	return b, len(b) > before
}

// contentEvents appends the events of tokens that are words: first what is reasoning.
func (w *writer) contentEvents(b []byte, c *choice, from, to int, end bool) []byte {
	reasoning := w.plan.Reasoning
	whole := w.SeparateReasoning != nil && !*w.SeparateReasoning // it is part of the answer
	if until := min(to, reasoning); from < until && !whole {
		b = append(w.beginEvent(b, c.index), `,"delta":{"reasoning_content":"`...)
		b = append(c.Append(b, from, until, end), `"}`...)
		b = w.endDelta(b, c, from, until, to)
	}
	if !whole && reasoning > 0 {
		from = max(from, reasoning+1) // one token ends the reasoning and has no text
	}
	if from >= to {
		return b
	}
	event := len(b)
	b = append(w.beginEvent(b, c.index), `,"delta":{"reasoning_content":null,"content":"`...)
	text := len(b)
	b = c.Append(b, from, to, end)
	if len(b) == text { // held back, it may be the beginning of a stop string
		return b[:event]
	}
	return w.endDelta(append(b, `"}`...), c, from, to, to)
}

// endDelta ends an event with the tokens [from, to) of a choice that has got so many.
func (w *writer) endDelta(b []byte, c *choice, from, to, got int) []byte {
	b = w.appendLogprobs(append(b, `,"logprobs":`...), c, from, to)
	b = append(b, `,"finish_reason":null,"matched_stop":null}]`...)
	return w.endCounted(b, c, got, "")
}

// endCounted ends an event with the usage so far, where it is asked for, or with what stands in its
// place.
func (w *writer) endCounted(b []byte, c *choice, got int, uncounted string) []byte {
	if w.StreamOptions != nil && w.StreamOptions.ContinuousUsageStats {
		b = w.appendUsage(append(b, `,"usage":`...), c.prompt.Tokens, got, min(got, w.plan.Reasoning), -1)
	} else {
		b = append(b, uncounted...)
	}
	return append(b, "}\n\n"...)
}

// noUsage stands in place of a usage in events of calls and of completions.
const noUsage = `,"usage":null`

// callEvents appends the events of a call: its name, then piece by piece its arguments.
func (w *writer) callEvents(b []byte, c *choice, from, to int) []byte {
	call := w.plan.Call
	one := func(id, name, args string) {
		b = fmt.Appendf(w.beginEvent(b, c.index), `,"delta":{"role":null,"content":null,"reasoning_content":null,"tool_calls":[{"id":%s,"index":0,"type":"function","function":`+
			`{"name":%s,"arguments":%s}}]},"logprobs":null,"finish_reason":null,"matched_stop":null}]`, id, name, dialect.Marshal(args))
		b = w.endCounted(b, c, to, noUsage)
	}
	if call.NamedIn(from, to) {
		one(strconv.Quote(c.callID()), string(dialect.Marshal(call.Name)), "")
	}
	if args := call.ArgsIn(from, to); args != "" {
		one("null", "null", args)
	}
	return b
}

// callID is the id of the choice's call.
func (c *choice) callID() string {
	return fmt.Sprintf("call_%016x%08x", sim.Mix(uint64(c.number)), uint32(c.number))
}

// endEvent appends the event that says why a choice ended.
func (w *writer) endEvent(b []byte, c *choice) []byte {
	return fmt.Appendf(w.beginEvent(b, c.index), `,"delta":{"reasoning_content":null},"logprobs":null,"finish_reason":"%s","matched_stop":%s}]}`+"\n\n",
		w.finishReason(c.finish), w.matchedStop(c))
}

// finishReason returns the finish reason for the client.
func (w *writer) finishReason(finish string) string {
	if w.plan.Call != nil && finish == "stop" {
		return "tool_calls"
	}
	return finish
}

// matchedStop returns what stopped an answer: a string, or the token that ends one.
func (w *writer) matchedStop(c *choice) string {
	switch {
	case c.finish != "stop":
		return "null"
	case c.Stop != "":
		return string(dialect.Marshal(c.Stop))
	}
	return strconv.Itoa(w.lm.Size() - 1)
}

// completionEvent appends the event of tokens of a completion.
func (w *writer) completionEvent(b []byte, c *choice, from, to int, finish string) []byte {
	b = append(w.beginEvent(b, c.index), `,"text":"`...)
	if from == 0 {
		b = w.appendEcho(b, c)
	}
	b = append(c.Append(b, from, to, finish != ""), `","logprobs":`...)
	b = append(w.appendLogprobs(b, c, from, to), `,"finish_reason":`...)
	if finish == "" {
		b = append(b, `null,"matched_stop":null}]`...)
	} else {
		b = fmt.Appendf(b, `"%s","matched_stop":%s}]`, finish, w.matchedStop(c))
	}
	return w.endCounted(b, c, to, noUsage)
}

// appendEcho appends the prompt that a completion begins with, inside a JSON string.
func (w *writer) appendEcho(b []byte, c *choice) []byte {
	if !w.Echo || w.chat {
		return b
	}
	return lm.AppendQuoted(b, string(c.prompt.Text))
}

// Usage implements [dialect.Writer].
func (w *writer) Usage(b []byte, n dialect.Counts) []byte {
	if w.StreamOptions == nil || !w.StreamOptions.IncludeUsage {
		return b
	}
	b = dialect.Append(b, "data: ", w.base, `],"usage":`)
	if w.chat {
		b = w.appendUsage(b, w.prompt, n.Output, w.reasoningTokens(), w.reportedCached(n))
	} else { // without what is null
		b = appendCounts(b, w.prompt, n.Output)
		if cached := w.reportedCached(n); cached >= 0 {
			b = fmt.Appendf(b, `,"prompt_tokens_details":{"cached_tokens":%d}`, cached)
		}
		b = append(b, `,"reasoning_tokens":0}`...)
	}
	return append(b, "}\n\n"...)
}

// reportedCached returns the number of cached prompt tokens to report, or -1 where they are not
// reported.
func (w *writer) reportedCached(n dialect.Counts) int {
	if !w.cached {
		return -1
	}
	return n.Cached * len(w.prompts)
}

// reasoningTokens returns the number of reasoning tokens in all answers.
func (w *writer) reasoningTokens() int {
	return w.plan.Reasoning * len(w.choices)
}

// appendUsage appends counts of tokens; cached below 0 is not reported.
func (w *writer) appendUsage(b []byte, prompt, output, reasoning, cached int) []byte {
	b = append(appendCounts(b, prompt, output), `,"prompt_tokens_details":`...)
	if cached < 0 {
		b = append(b, "null"...)
	} else {
		b = append(dialect.AppendInt(b, `{"cached_tokens":`, cached), '}')
	}
	b = append(dialect.AppendInt(b, `,"reasoning_tokens":`, reasoning), `,"completion_tokens_details":`...)
	if reasoning == 0 {
		return append(b, "null}"...)
	}
	return append(dialect.AppendInt(b, `{"reasoning_tokens":`, reasoning), "}}"...)
}

// appendCounts appends what every usage begins with.
func appendCounts(b []byte, prompt, output int) []byte {
	b = dialect.AppendInt(b, `{"prompt_tokens":`, prompt)
	b = dialect.AppendInt(b, `,"total_tokens":`, prompt+output)
	return dialect.AppendInt(b, `,"completion_tokens":`, output)
}

// Done implements [dialect.Writer].
func (w *writer) Done(b []byte) []byte { return append(b, "data: [DONE]\n\n"...) }

// Error implements [dialect.Writer].
func (w *writer) Error(b []byte) []byte {
	f := failureBody{Object: "error", Message: engineFailed, Type: "INTERNAL_SERVER_ERROR", Code: 500}
	return dialect.Append(b, `data: {"error":`, string(dialect.Marshal(f)), "}\n\n")
}

// Malformed implements [dialect.Writer].
func (w *writer) Malformed(b []byte) []byte {
	return dialect.Append(b, "data: ", w.base, `{"index":0,"delta":{"con`+"\n\n")
}

// Whole implements [dialect.Writer].
func (w *writer) Whole(b []byte, parts []dialect.Part, n dialect.Counts) []byte {
	b = append(b, w.base...)
	for i, p := range parts {
		if i > 0 {
			b = append(b, ',')
		}
		c := &w.choices[i]
		c.finish = p.Finish
		b = dialect.AppendInt(b, `{"index":`, i)
		if w.chat {
			b = w.appendMessage(b, c, p.Tokens)
		} else {
			b = w.appendEcho(append(b, `,"text":"`...), c)
			b = append(c.Append(b, 0, p.Tokens, true), '"')
		}
		b = w.appendLogprobs(append(b, `,"logprobs":`...), c, 0, p.Tokens)
		b = fmt.Appendf(b, `,"finish_reason":"%s","matched_stop":%s}`, w.finishReason(p.Finish), w.matchedStop(c))
	}
	b = w.appendUsage(append(b, `],"usage":`...), w.prompt, n.Output, w.reasoningTokens(), w.reportedCached(n))
	return append(b, `,"metadata":{"weight_version":"`+weightVersion+`"}}`...)
}

// appendMessage appends the message of a whole chat answer.
func (w *writer) appendMessage(b []byte, c *choice, tokens int) []byte {
	call, reasoning := w.plan.Call, min(w.plan.Reasoning, tokens)
	b = append(b, `,"message":{"role":"assistant","content":"`...)
	switch {
	case call != nil && tokens >= call.Tokens():
		return fmt.Appendf(b, `","reasoning_content":null,"tool_calls":[{"id":"%s","index":0,"type":"function","function":{"name":%s,"arguments":%s}}]}`,
			c.callID(), dialect.Marshal(call.Name), dialect.Marshal(call.Args))
	case call != nil: // cut off: what there is of it
		return append(lm.AppendQuoted(b, call.TextOf(tokens)), `","reasoning_content":null}`...)
	case reasoning > 0 && (w.SeparateReasoning == nil || *w.SeparateReasoning):
		b = append(c.Append(b, min(reasoning+1, tokens), tokens, true), `","reasoning_content":"`...)
		return append(c.Append(b, 0, reasoning, true), `"}`...)
	}
	return append(c.Append(b, 0, tokens, true), `","reasoning_content":null}`...)
}
