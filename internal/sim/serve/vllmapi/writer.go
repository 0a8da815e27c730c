package vllmapi

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"pitot/internal/sim"
	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/lm"
)

// fingerprint stands for the build of the engine (system_fingerprint).
const fingerprint = `,"system_fingerprint":"pitot-mock"`

// writer has the parts of an answer that stay the same. Fields and their order
// are those of vLLM 0.32; testdata has what it sent.
type writer struct {
	ask
	model   *lm.Model
	served  string // name of the model
	base    string // up to and with `"choices":[`
	details bool   // cached tokens are reported
	reasons bool   // reasoning tokens are reported
	choices []choice
	parsing *parsing
}

// choice is one answer as it is written.
type choice struct {
	lm.Answer
	index  int
	number int64 // of its own among all answers, for ids
	prompt *lm.Prompt
	sent   int    // tokens that were written, of a stream
	echo   string // what it begins with, inside a JSON string
	offset int    // of the next token's text in characters, for logprobs
}

// beginChat and completion begin the answers of the two generation routes.
func (a *api) beginChat(req *dialect.Request) (*dialect.Call, *dialect.Reply) {
	return a.beginAnswer(req, true, "chatcmpl-", "chat.completion", "chat.completion.chunk")
}

func (a *api) beginCompletion(req *dialect.Request) (*dialect.Call, *dialect.Reply) {
	return a.beginAnswer(req, false, "cmpl-", "text_completion", "text_completion")
}

// beginAnswer reads a request and makes what writes its answer, whose object is
// called whole, or event in a stream.
func (a *api) beginAnswer(req *dialect.Request, chat bool, prefix, whole, event string) (*dialect.Call, *dialect.Reply) {
	r, refused := a.read(req, chat)
	if refused != nil {
		return nil, refused
	}
	id := req.Header.Get("X-Request-Id")
	if id == "" {
		id = strconv.FormatInt(req.N, 10)
	}
	object := whole
	if r.stream {
		object = event
	}
	w := a.newWriter(r.ask, prefix+id, object, req.N)
	c := &dialect.Call{
		ID: prefix + id, Stream: r.stream, Type: "text/event-stream; charset=utf-8", Comment: ": ping\n\n",
		Opening: r.openingEvents(), Prompt: r.prompt, Batch: r.n, Jobs: make([]sim.Job, len(w.choices)), Writer: w,
	}
	for i := range w.choices {
		one := &w.choices[i]
		c.Jobs[i] = sim.Job{
			Prompt: max(one.prompt.Tokens, 1), Output: one.Output, Limit: r.plan.Limit, Priority: r.priority,
			Content: one.Content(one.prompt, r.salt),
		}
	}
	return c, nil
}

// newWriter encodes what the events of answer number n share.
func (a *api) newWriter(asked ask, id, object string, n int64) *writer {
	w := &writer{
		ask: asked, model: a.model, served: a.Name, parsing: &a.parsing, details: a.PromptTokensDetails, reasons: a.model.IsReasoning(),
		base: fmt.Sprintf(`{"id":%s,"object":"%s","created":%d,"model":%s,"choices":[`,
			dialect.Marshal(id), object, time.Now().Unix(), dialect.Marshal(a.Name)),
		choices: make([]choice, len(asked.prompts)*asked.n),
	}
	for i := range w.choices {
		c := &w.choices[i]
		*c = choice{Answer: a.model.Begin(&w.plan, w.first+5*int64(i)), index: i, number: n + int64(i)<<40, prompt: &w.prompts[i/w.n]}
		if w.echo && !w.tokenIDs { // or its ids stand in its place
			c.echo = a.promptText(c.prompt)
		} else if w.chat {
			c.echo = string(lm.AppendQuoted(nil, w.echoed))
		}
	}
	return w
}

// openingEvents returns the number of events at the start of a stream. Of a chat these are the role
// of each choice, and the parts of the last message that it repeats.
func (a *ask) openingEvents() int {
	choices := len(a.prompts) * a.n
	switch {
	case !a.chat:
		return 0
	case a.echoed != "":
		return 2 * choices
	}
	return choices
}

// promptText is a prompt as it stands in a JSON string.
func (a *api) promptText(p *lm.Prompt) string {
	text := p.Text
	if text == nil {
		text = a.model.Decode(nil, p.IDs...)
	}
	return string(lm.AppendQuoted(nil, string(text)))
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
	if n := len(w.choices); i >= n {
		return w.openEcho(b, i-n)
	}
	b = w.openDelta(b, i, `"role":`+nameJSON(w.role)+`,"content":"`)
	return dialect.Append(b, `,"prompt_token_ids":`, w.promptIDs(&w.choices[i], w.tokenIDs), `,"prompt_text":null}`+"\n\n")
}

// openEcho appends the event with what a choice repeats of the last message.
func (w *writer) openEcho(b []byte, index int) []byte {
	return append(w.openDelta(b, index, `"content":"`+w.choices[index].echo), "}\n\n"...)
}

// openDelta appends an event before the first token up to its usage; the delta ends in a string.
func (w *writer) openDelta(b []byte, index int, delta string) []byte {
	b = dialect.Append(w.beginEvent(b, index), `,"delta":{`, delta, `"},"logprobs":null,"finish_reason":null}]`)
	if w.continuous {
		b = w.countUsage(b, w.prompt, 0, 0)
	}
	return b
}

// Tokens implements [dialect.Writer]: vLLM writes nothing for what its parsers
// take away.
func (w *writer) Tokens(b []byte, index, from, to int, finish string) ([]byte, bool) {
	c := &w.choices[index]
	c.sent = to
	b = w.beginEvent(b, index)
	shown := true
	if w.chat {
		b, shown = w.appendDelta(append(b, `,"delta":{`...), c, from, to, finish != "")
		b = append(b, '}')
	} else {
		b = append(w.completionText(append(b, `,"text":"`...), c, from, to, finish != ""), '"')
	}
	if w.parsed {
		w.parsing.streamed.count(w.plan.Call != nil && shown)
	}
	if !shown && finish == "" {
		return b, false
	}
	b = w.appendLogprobs(append(b, `,"logprobs":`...), c, from, to)
	b = dialect.Append(b, `,"finish_reason":`, nameJSON(w.finishReason(finish)))
	if !w.chat || finish != "" {
		b = dialect.Append(b, `,"stop_reason":`, c.stopJSON(finish))
	}
	if !w.chat {
		b = dialect.Append(b, `,"prompt_token_ids":`, w.promptIDs(c, (w.echo || w.tokenIDs) && from == 0))
	}
	b = append(w.answerIDs(append(b, `,"token_ids":`...), c, from, to), "}]"...)
	switch {
	case w.continuous:
		b = w.countUsage(b, c.prompt.Tokens, to, min(to, w.plan.Reasoning))
	case finish != "" && !w.usage:
		b = append(b, fingerprint...)
	}
	return append(b, "}\n\n"...), true
}

// completionText appends the text of the tokens [from, to) of a completion, with
// its prompt before it if it is echoed.
func (w *writer) completionText(b []byte, c *choice, from, to int, end bool) []byte {
	if from == 0 {
		b = append(b, c.echo...)
	}
	if w.echoOnly {
		return b
	}
	return c.Append(b, from, to, end)
}

// Done implements [dialect.Writer].
func (w *writer) Done(b []byte) []byte { return append(b, "data: [DONE]\n\n"...) }

// Error implements [dialect.Writer].
func (w *writer) Error(b []byte) []byte {
	return dialect.Append(b, "data: ", string(failureJSON(500, engineFailed, "")), "\n\n")
}

// Malformed implements [dialect.Writer].
func (w *writer) Malformed(b []byte) []byte {
	return dialect.Append(b, "data: ", w.base, `{"index":0,"delta":{"con`+"\n\n")
}

// appendDelta appends the fields of a chat's delta, and says whether there are any.
func (w *writer) appendDelta(b []byte, c *choice, from, to int, end bool) ([]byte, bool) {
	reasoning := w.plan.Reasoning
	switch {
	case w.plan.Call != nil:
		return w.callDelta(b, c, from, to)
	case reasoning == 0:
		b = append(b, `"content":"`...)
		return append(c.Append(b, from, to, end), '"'), true
	}
	before := len(b)
	if until := min(to, reasoning); from < until && !w.hideReasoning {
		b = append(b, `"reasoning":"`...)
		b = append(c.Append(b, from, until, end), '"')
	}
	// One token ends the reasoning and has no text.
	if from = max(from, reasoning+1); from < to {
		if len(b) > before {
			b = append(b, ',')
		}
		b = append(b, `"content":"`...)
		b = append(c.Append(b, from, to, end), '"')
	}
	return b, len(b) > before
}

// callDelta appends what the tokens [from, to) give of a call: first its name,
// then piece by piece its arguments.
func (w *writer) callDelta(b []byte, c *choice, from, to int) ([]byte, bool) {
	call := w.plan.Call
	named := call.NamedIn(from, to)
	args := call.ArgsIn(from, to)
	if !named && args == "" {
		return b, false
	}
	b = append(b, `"content":null,"tool_calls":[{`...)
	var function []string
	if named {
		b = dialect.Append(b, `"id":"`, c.callID(), `","type":"function",`)
		function = append(function, `"name":`+string(dialect.Marshal(call.Name)))
	}
	if args != "" {
		function = append(function, `"arguments":`+string(dialect.Marshal(args)))
	}
	return dialect.Append(b, `"index":0,"function":{`, strings.Join(function, ","), "}}]"), true
}

// callID is the id of the choice's call.
func (c *choice) callID() string {
	return "chatcmpl-tool-" + strconv.FormatUint(sim.Mix(uint64(c.number)), 16)
}

// finishReason returns the finish reason for the client. A call that the client did not name has a
// reason of its own.
func (w *writer) finishReason(finish string) string {
	if call := w.plan.Call; call != nil && !call.Named && finish == "stop" {
		return "tool_calls"
	}
	return finish
}

// promptIDs are the ids of a choice's prompt if they are wanted, or null.
func (w *writer) promptIDs(c *choice, wanted bool) string {
	if !wanted || len(c.prompt.IDs) == 0 {
		return "null"
	}
	return string(dialect.Marshal(c.prompt.IDs))
}

// answerIDs appends the ids of the tokens [from, to) if the client asked for
// them, or null.
func (w *writer) answerIDs(b []byte, c *choice, from, to int) []byte {
	if !w.tokenIDs {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i := from; i < to; i++ {
		if i > from {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, uint64(c.ID(i)), 10)
	}
	return append(b, ']')
}

// nameJSON is a name in quotes, null for none.
func nameJSON(name string) string {
	if name == "" {
		return "null"
	}
	return `"` + name + `"`
}

// stopJSON is the stop string that ended an answer, or null.
func (c *choice) stopJSON(finish string) string {
	if finish == "" || c.Stop == "" {
		return "null"
	}
	return string(dialect.Marshal(c.Stop))
}
