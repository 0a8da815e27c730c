package mock

import (
	"net/http"
	"strconv"
	"time"

	"pitot/internal/clock"
	"pitot/internal/twin"
)

// stream is one answer under way, streamed or not. The connection's goroutine
// makes and begins it; from then on the engine's goroutine owns it.
type stream struct {
	s     *Server
	conn  *conn
	id    int64 // of its job: the request's number
	ask   ask
	tpl   template
	truth Truth
	done  chan struct{} // closed when the answer has ended

	// what goes wrong with it
	faults      []Fault
	refused     *reply        // the answer is this instead
	delay       time.Duration // before the engine hears of it
	hang        bool          // the engine never hears of it
	noDone      bool
	noUsage     bool
	finishClose bool
	dress       *dress // how events look on the wire; nil: as they should

	last    bool  // the connection closes after it
	sent    int   // tokens the engine gave
	due     int   // emissions that are not written yet
	at      int64 // when the engine wanted the last of them
	role    bool  // the role chunk is written
	past    bool  // the faults inside the answer have had their turn
	holding bool
	held    []twin.Emission
	ended   bool
}

func newStream(c *conn, a ask, t Truth) *stream {
	s := c.s
	st := &stream{s: s, conn: c, id: t.N, ask: a, truth: t, done: make(chan struct{})}
	name := "cmpl-"
	if a.chat {
		name = "chatcmpl-"
	}
	if t.ID != "" {
		name += t.ID
	} else {
		name += strconv.FormatInt(t.N, 10)
	}
	st.tpl = newTemplate(a, name, s.cfg.Model, time.Now().Unix())
	st.faults, st.truth.Fault = s.cfg.Faults.draw(s.cfg.Seed, t.N)
	// Output lengths are a client's to choose: do not reserve what it claims.
	reserve := min(a.output, 4096)
	st.truth.EmitNS = make([]int64, 0, reserve)
	st.truth.Tokens = make([]int, 0, reserve)
	return st
}

// begin sends the header of a stream, which like vLLM's does not wait for the
// first token, and tells the engine.
func (st *stream) begin() {
	st.s.stats.begun.Add(1)
	if st.ask.stream {
		st.conn.out.write(st.streamHead())
		if st.dress != nil && st.dress.ping {
			st.put(append(make([]byte, frameSpace, 64), pingComment...))
		}
	}
	inbox := &st.s.inbox
	switch {
	case st.hang:
		inbox.put(message{admit, st})
	case st.delay > 0:
		inbox.put(message{admit, st})
		time.AfterFunc(st.delay, func() { inbox.put(message{add, st}) })
	default:
		inbox.put(message{admit, st}, message{add, st})
	}
}

func (st *stream) streamHead() []byte {
	version, framing := "HTTP/1.1", "transfer-encoding: chunked\r\n"
	if st.dress != nil && st.dress.bare {
		version, framing = "HTTP/1.0", ""
	}
	b := appendHead(nil, version, http.StatusOK)
	b = append(append(b, "content-type: text/event-stream; charset=utf-8\r\n"...), framing...)
	if st.dress != nil && st.dress.gz != nil {
		b = append(b, "content-encoding: gzip\r\n"...)
	}
	return append(st.headEnd(b), "\r\n"...)
}

// headEnd appends the header lines that streams and whole answers share.
func (st *stream) headEnd(b []byte) []byte {
	if st.truth.ID != "" {
		b = append(append(append(b, "x-request-id: "...), st.truth.ID...), "\r\n"...)
	}
	if st.last {
		b = append(b, "connection: close\r\n"...)
	}
	return b
}

// emit does what an emission of the engine asks for.
func (st *stream) emit(e twin.Emission) {
	if e.Role || (st.ask.chat && st.ask.stream && !st.role) {
		st.emitRole()
	}
	if e.Role {
		return
	}
	from := st.sent
	st.sent += e.Tokens
	st.due++
	st.at = e.At
	st.truth.Tokens = append(st.truth.Tokens, e.Tokens)
	if st.ask.stream {
		st.s.buf = st.tpl.token(st.s.room(), st.ask, st.id, from, st.sent, e.Finish)
		st.put(st.s.buf)
	} else {
		st.mark(clock.Now())
	}
	if e.Finish != "" {
		st.finish(e.Finish)
	}
}

// emitRole writes the role chunk of a streamed chat. An engine that has none
// of its own gets it right before the first token, as in vLLM.
func (st *stream) emitRole() {
	if st.role || !st.ask.chat || !st.ask.stream {
		return
	}
	st.role = true
	st.truth.RoleNS = clock.Now()
	st.s.buf = st.tpl.role(st.s.room(), st.ask)
	st.put(st.s.buf)
}

// mark stamps the emissions that are about to be written.
func (st *stream) mark(now int64) {
	if st.due == 0 {
		return
	}
	st.s.stats.late.add(now - st.at)
	for ; st.due > 0; st.due-- {
		st.truth.EmitNS = append(st.truth.EmitNS, now)
	}
}

// put writes the event that follows the frameSpace free bytes of b.
func (st *stream) put(b []byte) {
	d := st.dress
	if d == nil {
		b = append(b, "\r\n"...)
		st.mark(clock.Now())
		st.conn.out.write(frame(b))
		return
	}
	for _, p := range d.event(b[frameSpace:]) {
		st.write(p)
	}
}

// write sends bytes of the body in a form that a fault has given them.
func (st *stream) write(p []byte) {
	if len(p) == 0 {
		return
	}
	if !st.dress.bare {
		b := append(make([]byte, frameSpace, frameSpace+len(p)+2), p...)
		p = frame(append(b, "\r\n"...))
	}
	st.mark(clock.Now())
	st.conn.out.write(p)
}

// finish writes what comes after the last token.
func (st *stream) finish(finish string) {
	switch {
	case !st.ask.stream:
		st.truth.DoneNS = clock.Now()
		st.conn.out.write(st.wholeResponse(finish))
	case st.finishClose:
		if st.dress != nil {
			st.write(st.dress.flush())
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
	if st.ask.usage && !st.noUsage {
		st.s.buf = st.tpl.usage(st.s.room(), st.ask, st.sent)
		st.put(st.s.buf)
	}
	if !st.noDone {
		st.s.buf = append(st.s.room(), doneEvent...)
		st.put(st.s.buf)
	}
	st.close()
}

// close ends the body of a stream.
func (st *stream) close() {
	if d := st.dress; d != nil {
		st.write(d.flush())
	}
	st.truth.DoneNS = clock.Now()
	if st.dress == nil || !st.dress.bare {
		st.conn.out.write([]byte("0\r\n\r\n"))
	}
}

// wholeResponse is the answer of a request that does not stream.
func (st *stream) wholeResponse(finish string) []byte {
	var text []byte
	for i := range st.sent {
		text = append(text, piece(st.id, i)...)
	}
	body := st.tpl.whole(st.ask, text, st.sent, finish)
	version, d := "HTTP/1.1", st.dress
	if d != nil && d.bare {
		version = "HTTP/1.0"
	}
	b := append(appendHead(nil, version, http.StatusOK), "content-type: application/json\r\n"...)
	if d != nil && d.gz != nil {
		body = append([]byte(nil), d.compress(body)...)
		body = append(body, d.flush()...)
		b = append(b, "content-encoding: gzip\r\n"...)
	}
	if d == nil || !d.bare {
		b = append(b, "content-length: "...)
		b = strconv.AppendInt(b, int64(len(body)), 10)
		b = append(b, "\r\n"...)
	}
	b = append(st.headEnd(b), "\r\n"...)
	return append(b, body...)
}

// end takes the stream out of the server. It may be called again.
func (st *stream) end(aborted bool) {
	if st.ended {
		return
	}
	st.ended = true
	delete(st.s.jobs, st.id)
	if st.sent < st.ask.output {
		st.s.cfg.Engine.Abort(st.id)
	}
	t := &st.truth
	t.Aborted = aborted
	if aborted {
		st.s.stats.aborted.Add(1)
	}
	if t.DoneNS == 0 {
		t.DoneNS = clock.Now()
	}
	t.Tokens = t.Tokens[:len(t.EmitNS)]
	for _, n := range t.Tokens {
		t.OutputTokens += n
	}
	st.s.stats.ended.Add(1)
	st.s.stats.tokens.Add(int64(t.OutputTokens))
	st.s.log(st.truth)
	st.conn.busy.Store(false)
	if st.last || st.s.closing.Load() {
		st.conn.out.shut(false)
	}
	close(st.done)
}
