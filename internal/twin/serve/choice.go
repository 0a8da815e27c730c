package serve

import (
	"strconv"

	"pitot/internal/twin"
)

// choice is one answer of a stream: a job of the engine.
type choice struct {
	st     *stream
	id     int64 // of its job
	index  int
	prompt prompt
	batch  *batch
	first  int64  // where its text begins in the pieces
	output int    // tokens after which it ends
	stop   string // that ends it
	stays  int    // of its text, which that cuts off
	echo   []byte // the prompt, inside a JSON string

	got    int             // tokens that the engine gave
	sent   int             // of these, handed on
	began  int64           // engine's time of the first
	at     int64           // and of the last
	held   []twin.Emission // waits for a stall to end
	unseen int             // tokens handed on that had no event of their own
	tail   []byte          // text that may be the beginning of a stop string
	told   int             // length of the text before it
	offset int             // of the next token's text, for logprobs
	finish string
	trace  *twin.Trace
}

// batch is the answers to one prompt: one request of vLLM's engine client.
type batch struct {
	left, n int
	most    int // tokens of the longest
}

// newChoices gives the answers that a request asks for, prompt by prompt.
func newChoices(st *stream) []*choice {
	a := &st.tpl.ask
	all := make([]choice, len(a.prompts)*a.n)
	choices := make([]*choice, len(all))
	for i, p := range a.prompts {
		group := &batch{left: a.n, n: a.n}
		for k := range a.n {
			at := i*a.n + k
			c := &all[at]
			*c = choice{
				st: st, index: at, prompt: p, batch: group, output: a.output,
				id:    st.truth.N + int64(at)<<40,
				first: a.first + 5*int64(at), // so that they differ
			}
			if n, stop, stays := a.stopAt(c.first); n > 0 {
				c.output, c.stop, c.stays = n, stop, stays
			}
			if a.echo {
				c.echo = st.s.echoed(p)
				c.offset = len(c.echo)
			}
			choices[at] = c
		}
	}
	return choices
}

// echoed is a prompt as it stands in a JSON string.
func (s *Server) echoed(p prompt) []byte {
	text := p.text
	if text == nil {
		text = s.decode(nil, p.ids)
	}
	return appendQuoted(nil, string(text))
}

// job is the choice as the engine gets it.
func (c *choice) job() twin.Job {
	a := &c.st.tpl.ask
	j := twin.Job{ID: c.id, Prompt: max(c.prompt.tokens, 1), Output: c.output, Limit: a.limit, Priority: a.priority}
	if c.prompt.keys != nil {
		j.Content = &content{salt: a.salt, keys: c.prompt.keys, c: c}
	}
	return j
}

// answerKey is what the prefix cache knows token i of the answer by: that of
// the text it is sent as.
func (c *choice) answerKey(i int) uint32 {
	a := &c.st.tpl.ask
	switch {
	case a.call != nil:
		return fold(uint64(i)) ^ key([]byte(a.call.args))
	case a.scripted(i):
		return a.script.key(i - a.lead)
	}
	return c.st.s.pieceKeys[pieceAt(c.first, i)]
}

// answerID is the id of token i of the answer.
func (c *choice) answerID(i int) uint32 {
	a, v := &c.st.tpl.ask, &c.st.s.vocab
	switch {
	case a.call != nil:
		if text := a.call.argsIn(i, i+1); text != "" {
			return v.id([]byte(text))
		}
		return v.special(i)
	case a.scripted(i):
		return a.script.id(v, i-a.lead)
	case a.reasoning > 0 && i == a.reasoning:
		return v.special(1) // what ends the reasoning
	}
	return c.st.s.pieceIDs[pieceAt(c.first, i)]
}

// ends is how the answer ends, given that the engine says it does.
func (c *choice) ends(finish string) string {
	a := &c.st.tpl.ask
	whole := a.call != nil && c.output == a.call.tokens() || a.script != nil && c.output == a.lead+a.script.tokens()
	if finish != "" && (c.stop != "" || c.output < a.limit || whole) {
		return "stop"
	}
	return finish
}

// finishReason is what the client is told: a call that it did not name is a
// reason of its own.
func (c *choice) finishReason(finish string) string {
	if call := c.st.tpl.call; call != nil && !call.named && finish == "stop" {
		return "tool_calls"
	}
	return finish
}

// callID is the id of the choice's call.
func (c *choice) callID() string {
	return "chatcmpl-tool-" + strconv.FormatUint(twin.Mix(uint64(c.id)), 16)
}

// text appends the text of the tokens [from, to), without what may be the
// beginning of a stop string (vLLM's IncrementalDetokenizer): that is held
// back until it is known. end says that nothing follows.
func (c *choice) text(b []byte, from, to int, end bool) []byte {
	a := &c.st.tpl.ask
	if len(a.stops) == 0 {
		if a.scripted(from) {
			return appendQuoted(b, a.script.slice(from-a.lead, to-a.lead))
		}
		for i := from; i < to; i++ {
			b = append(b, piece(c.first, i)...)
		}
		return b
	}
	for i := from; i < to; i++ {
		c.tail = append(c.tail, a.tokenText(c.first, i)...)
	}
	n := len(c.tail)
	switch {
	case end && c.stop != "":
		n = min(max(c.stays-c.told, 0), n)
	case !end && !a.keepStop:
		n = characterAt(string(c.tail), max(n-a.longestStop()+1, 0))
	}
	c.told += n
	b = appendQuoted(b, string(c.tail[:n]))
	c.tail = c.tail[:copy(c.tail, c.tail[n:])]
	return b
}

// longestStop is the length of the longest stop string.
func (a *ask) longestStop() int {
	n := 0
	for _, s := range a.stops {
		n = max(n, len(s))
	}
	return n
}
