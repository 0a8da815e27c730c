package serve

import (
	"net/http"
	"strconv"
	"time"

	"pitot/internal/clock"
	"pitot/internal/sim"
	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/prom"
)

// stream is the state of the answer to one request, streamed or not. The connection's goroutine
// makes and begins it; from then on the engine's goroutine owns it.
type stream struct {
	s       *Server
	conn    *conn
	writer  dialect.Writer
	choices []choice
	left    int // choices that have not ended
	truth   Truth
	arrived int64         // for the engine: when it came, not when it was read; 0 for when the engine hears of it
	done    chan struct{} // closed when the answer has ended

	streamed bool
	kind     string // content type of the stream
	comment  string // an event that says nothing
	opening  int    // events before the first token
	early    int    // so many of these come at once
	waits    bool   // the head has not been sent, and is with the first event

	// what goes wrong with it
	faults      []Fault
	refused     *dialect.Reply // the answer is this instead
	delay       time.Duration  // before the engine hears of it
	hang        bool           // the engine never hears of it
	noDone      bool
	noUsage     bool
	finishClose bool
	distort     *distortion // how events look on the wire; nil: as they should

	limits    string // headers that tell of rate limits
	asked     int64  // length of the request, bytes
	announced int64  // announced length of the answer
	last      bool   // the connection closes after it
	sent      int    // tokens the engine gave, of all choices
	due       []due  // chunks that are not written yet
	role      bool   // the role chunk is written
	past      bool   // the faults inside the answer have had their turn
	holding   bool
	ended     bool
}

// due is a chunk that waits to be written.
type due struct {
	at     int64 // when the engine wanted it, on the real clock
	tokens int
	choice int
}

func newStream(c *conn, call *dialect.Call, t Truth) *stream {
	s := c.s
	st := &stream{
		s: s, conn: c, writer: call.Writer, streamed: call.Stream, kind: call.Type, comment: call.Comment, opening: call.Opening, early: call.Early,
		waits: call.Stream && call.Waits,
		truth: t, arrived: max(t.ArrivalNS, c.free), done: make(chan struct{}),
	}
	st.truth.ID = call.ID
	st.choices = newChoices(st, call)
	st.left = len(st.choices)
	st.faults, st.truth.Drawn = s.cfg.Faults.drawFaults(s.cfg.Seed, t.N, time.Duration(clock.Now()-s.start))
	return st
}

// begin sends the header of a stream, unless that waits for the first token, and tells
// the engine.
func (st *stream) begin() {
	st.s.stats.begun.Add(1)
	st.tookFromTheStart()
	if st.streamed {
		if !st.waits {
			st.conn.out.write(st.streamHead())
		}
		if st.distort != nil && st.distort.comment != "" {
			st.writeEvent(append(make([]byte, frameSpace, 64), st.comment...))
		}
	}
	if st.streamed {
		for i := range st.early {
			st.writeEvent(st.writer.Open(make([]byte, frameSpace, 1024), i))
		}
	}
	inbox := &st.s.inbox
	switch {
	case st.hang:
		inbox.post(message{kind: admit, st: st})
	case st.delay > 0:
		st.arrived = 0
		inbox.post(message{kind: admit, st: st})
		time.AfterFunc(st.delay, func() { inbox.post(message{kind: add, st: st}) })
	default:
		inbox.post(message{kind: admit, st: st}, message{kind: add, st: st})
	}
}

// sendHeldHead sends the head of a stream that waited for this event.
func (st *stream) sendHeldHead() {
	if st.waits {
		st.waits = false
		st.conn.out.write(st.streamHead())
	}
}

func (st *stream) streamHead() []byte {
	version, framing := "HTTP/1.1", "transfer-encoding: chunked\r\n"
	if st.distort != nil && st.distort.bare {
		version, framing = "HTTP/1.0", ""
	}
	b := appendHead(nil, version, http.StatusOK)
	b = append(append(b, "content-type: "...), st.kind...)
	b = append(append(b, "\r\n"...), framing...)
	if st.distort != nil && st.distort.gz != nil {
		b = append(b, "content-encoding: gzip\r\n"...)
	}
	return append(st.headEnd(b), "\r\n"...)
}

// headEnd appends the header lines that streams and whole answers share.
func (st *stream) headEnd(b []byte) []byte {
	b = append(append(b, st.s.dialect.Header()...), st.limits...)
	if st.last {
		b = append(b, "connection: close\r\n"...)
	}
	return b
}

// writeEmission does what an emission of the engine asks for.
func (st *stream) writeEmission(c *choice, e sim.Emission) {
	if e.Role || !st.role {
		st.emitRole()
	}
	if e.Role {
		return
	}
	from := c.sent
	c.sent += e.Tokens
	st.sent += e.Tokens
	c.unseen += e.Tokens
	c.finish = st.writer.Finish(c.index, e.Finish)
	c.trace = e.Trace
	if w, ok := st.writer.(dialect.Cached); ok && e.Trace != nil {
		w.Cached(e.Trace.Cached)
	}
	shown := true
	if st.streamed {
		st.s.buf, shown = st.writer.Tokens(st.s.eventBuffer(), c.index, from, c.sent, c.finish)
	}
	if shown {
		st.due = append(st.due, due{st.s.scale.realTime(e.At), c.unseen, c.index})
		c.unseen = 0
		if st.streamed {
			st.writeEvent(st.s.buf)
		} else {
			st.stampChunks(clock.Now())
		}
	}
	if c.finish != "" {
		st.truth.OutputTokens += c.unseen // the last had no event
		delete(st.s.jobs, c.job.ID)
		if st.left--; st.left == 0 {
			st.finish()
		}
	}
}

// emitRole writes what comes before the first token of a stream: the role chunks
// of a chat, one for each choice. An engine that has none of its own gets them
// right before the first token, as in vLLM.
func (st *stream) emitRole() {
	if st.role || st.opening == st.early || !st.streamed {
		return
	}
	st.role = true
	st.truth.RoleNS = clock.Now()
	for i := range st.opening - st.early {
		st.s.buf = st.writer.Open(st.s.eventBuffer(), st.early+i)
		st.writeEvent(st.s.buf)
	}
}

// stampChunks stamps the chunks that are about to be written.
func (st *stream) stampChunks(now int64) {
	if len(st.due) == 0 {
		return
	}
	st.s.stats.late.observe(now - st.due[len(st.due)-1].at)
	t := &st.truth
	for _, d := range st.due {
		t.OutputTokens += d.tokens
		if st.s.truth == nil {
			continue
		}
		t.EmitNS = append(t.EmitNS, now)
		t.Tokens = append(t.Tokens, d.tokens)
		if len(st.choices) > 1 {
			t.Choice = append(t.Choice, d.choice)
		}
	}
	st.due = st.due[:0]
}

// writeEvent writes the event that follows the frameSpace free bytes of b.
func (st *stream) writeEvent(b []byte) {
	if len(b) == frameSpace { // an empty chunk would end the body
		return
	}
	st.sendHeldHead()
	d := st.distort
	if d == nil {
		b = append(b, "\r\n"...)
		st.stampChunks(clock.Now())
		st.conn.out.write(frameChunk(b))
		return
	}
	for _, p := range d.writesForEvent(b[frameSpace:]) {
		st.send(p)
	}
}

// send writes bytes of the body in a form that a fault has given them.
func (st *stream) send(p []byte) {
	if len(p) == 0 {
		return
	}
	if !st.distort.bare {
		b := append(make([]byte, frameSpace, frameSpace+len(p)+2), p...)
		p = frameChunk(append(b, "\r\n"...))
	}
	st.stampChunks(clock.Now())
	st.conn.out.write(p)
}

// finish writes what comes after the last token.
func (st *stream) finish() {
	switch {
	case !st.streamed:
		whole := st.wholeResponse()
		st.truth.DoneNS = clock.Now()
		st.conn.out.write(whole)
	case st.finishClose:
		st.noteFault("finish-close")
		if st.distort != nil {
			st.send(st.distort.flush())
		}
		st.last = true
	default:
		st.finishStream()
	}
	st.end(false)
}

// finishStream writes usage, end mark and the end of the body, each as vLLM
// does in a write of its own.
func (st *stream) finishStream() {
	uncounted, inEnd := st.writer.(dialect.Uncounted)
	if inEnd && st.noUsage {
		uncounted.WithoutUsage()
		st.noteFault("no-usage")
	}
	usage := st.writer.Usage(st.s.eventBuffer(), st.tokenCounts())
	switch {
	case len(usage) == frameSpace: // not asked for
	case st.noUsage && !inEnd:
		st.noteFault("no-usage")
	default:
		st.s.buf = usage
		st.writeEvent(st.s.buf)
	}
	if st.noDone {
		st.noteFault("no-done")
	} else {
		st.s.buf = st.writer.Done(st.s.eventBuffer())
		st.writeEvent(st.s.buf)
	}
	st.close()
}

// tokenCounts are the tokens that the end of the answer tells of. Like vLLM's, those
// of the prompt are of the choice that ended last.
func (st *stream) tokenCounts() dialect.Counts {
	n := dialect.Counts{Output: st.sent}
	for i := range st.choices {
		if c := &st.choices[i]; c.trace != nil {
			n.Cached = c.trace.Cached
			if b := st.s.blockSize; b > 0 {
				n.Stored = max(c.job.Prompt/b*b-n.Cached, 0)
			}
		}
	}
	return n
}

// close ends the body of a stream.
func (st *stream) close() {
	st.sendHeldHead()
	if d := st.distort; d != nil {
		st.send(d.flush())
	}
	st.truth.DoneNS = clock.Now()
	if st.distort == nil || !st.distort.bare {
		st.conn.out.write([]byte("0\r\n\r\n"))
	}
}

// wholeResponse is the answer of a request that does not stream.
func (st *stream) wholeResponse() []byte {
	parts := make([]dialect.Part, len(st.choices))
	for i := range st.choices {
		parts[i] = dialect.Part{Tokens: st.choices[i].sent, Finish: st.choices[i].finish}
	}
	body := st.writer.Whole(nil, parts, st.tokenCounts())
	version, d := "HTTP/1.1", st.distort
	if d != nil && d.bare {
		version = "HTTP/1.0"
	}
	b := append(appendHead(nil, version, http.StatusOK), "content-type: "+jsonType+"\r\n"...)
	if d != nil && d.gz != nil {
		body = append([]byte(nil), d.compress(body)...)
		body = append(body, d.flush()...)
		b = append(b, "content-encoding: gzip\r\n"...)
	}
	if d == nil || !d.bare {
		st.announced = int64(len(body))
		b = append(b, "content-length: "...)
		b = strconv.AppendInt(b, st.announced, 10)
		b = append(b, "\r\n"...)
	}
	b = append(st.headEnd(b), "\r\n"...)
	return append(b, body...)
}

// end takes the stream out of the server, and out of the engine what has not
// ended there. It may be called again.
func (st *stream) end(aborted bool) {
	if st.ended {
		return
	}
	st.ended = true
	t := &st.truth
	for i := range st.choices {
		c := &st.choices[i]
		delete(st.s.jobs, c.job.ID)
		if c.got < c.job.Output {
			st.s.cfg.Engine.Abort(c.job.ID)
		}
		if st.s.truth != nil && c.trace != nil {
			t.Engine = append(t.Engine, st.s.engineTruth(c))
		}
	}
	t.Aborted = aborted
	if aborted {
		st.s.stats.aborted.Add(1)
	}
	if t.DoneNS == 0 {
		t.DoneNS = clock.Now()
	}
	st.s.countExchange(prom.Exchange{Begun: true, Route: t.Path, Method: http.MethodPost, Status: t.Status, In: st.asked, Out: st.announced, Took: t.DoneNS - t.ArrivalNS})
	st.s.stats.ended.Add(1)
	st.s.stats.tokens.Add(int64(t.OutputTokens))
	st.s.log(st.truth)
	st.conn.busy.Store(false)
	if st.last || st.s.closing.Load() {
		st.conn.out.closeConn(false)
	}
	close(st.done)
}
