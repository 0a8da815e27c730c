package serve

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"pitot/internal/clock"
	"pitot/internal/sim/serve/dialect"
)

// when is where in a request's life a fault has its turn.
type when uint8

const (
	before     when = iota // before the answer begins: it may be another one
	inside                 // in the middle of the answer, before an emission
	connecting             // when a connection is made
	clocked                // by the server's clock, for everyone
	once                   // the same, and for good
)

// fault is one row of the table.
type fault struct {
	name   string
	about  string
	when   when
	lasts  time.Duration // default of Fault.For; 0: it takes no duration
	k      int           // default of Fault.K; 0: it takes no number
	retry  bool          // Fault.For, in whole seconds, is sent as Retry-After; 0 is not
	ends   bool          // it ends the answer or stands in its place: a request has at most one such
	status int           // of the error that stands in place of an answer, 0: there is none
	apply  func(*stream, Fault)
}

// The names are also what the truth log and the flags say.
var faultTable = [...]fault{
	{name: "429", about: "too many requests, with Retry-After (1s unless given)", lasts: time.Second, retry: true, ends: true, status: http.StatusTooManyRequests, apply: tooMany},
	{name: "500", about: "internal server error, with Retry-After if given", retry: true, ends: true, status: http.StatusInternalServerError, apply: serverError},
	{name: "503", about: "service unavailable, with Retry-After (1s unless given)", lasts: time.Second, retry: true, ends: true, status: http.StatusServiceUnavailable, apply: unavailable},
	{name: "html", about: "a gateway's 502 page in HTML, with Retry-After if given", retry: true, ends: true, status: http.StatusBadGateway, apply: htmlPage},
	{name: "slow", about: "the engine gets the request late", lasts: 2 * time.Second, apply: slow},
	{name: "hang", about: "a header and then nothing, ever", ends: true, apply: hang},
	{name: "stall", about: "a pause in the middle, then all delayed tokens at once", when: inside, lasts: 2 * time.Second, apply: stall},
	{name: "cut", about: "the connection is closed in the middle", when: inside, ends: true, apply: cut},
	{name: "reset", about: "the connection is reset in the middle", when: inside, ends: true, apply: reset},
	{name: "malformed", about: "an additional event that is not JSON", when: inside, apply: malformed},
	{name: "error", about: "an error event in the middle, then [DONE]", when: inside, ends: true, apply: errorEvent},
	{name: "garble", about: "words are wrong; with a number, only if that many requests run", k: 1, apply: func(*stream, Fault) {}},
	{name: "no-done", about: "the body ends without [DONE]", apply: noDone},
	{name: "no-usage", about: "no usage event", apply: noUsage},
	{name: "finish-close", about: "the connection is closed after finish_reason", ends: true, apply: finishClose},
	{name: "crlf", about: "CRLF line ends", apply: crlf},
	{name: "ping", about: "comments between the events", apply: ping},
	{name: "coalesce", about: "several events per write", k: 4, apply: coalesce},
	{name: "split", about: "each event in two writes", apply: split},
	{name: "gzip", about: "the body is compressed, requested or not", apply: zip},
	{name: "http10", about: "HTTP/1.0, the body ends with the connection", apply: http10},
	{name: "slow-accept", about: "a new connection waits before it is accepted", when: connecting, lasts: time.Second},
	{name: "freeze", about: "the whole server stops for a while", when: clocked, lasts: time.Second},
	{name: "wedge", about: "the engine hangs for good; the server still responds", when: once},
}

// faultRow finds a row by name, nil if there is none.
func faultRow(name string) *fault {
	for i := range faultTable {
		if faultTable[i].name == name {
			return &faultTable[i]
		}
	}
	return nil
}

// FaultNames lists the faults there are.
func FaultNames() []string {
	names := make([]string, len(faultTable))
	for i, f := range faultTable {
		names[i] = f.name
	}
	return names
}

// FaultUsage has one line for each fault: how it is written for [ParseFaults],
// and what it does.
func FaultUsage() string {
	var b strings.Builder
	for _, f := range faultTable {
		fmt.Fprintf(&b, "%-22s %s\n", f.exampleForm(), f.about)
	}
	b.WriteString("429:1%@10s-20s/1m      any but the last two can have a time: here from 10 s to 20 s of each minute\n")
	return b.String()
}

// exampleForm is an example of how a fault is written.
func (f *fault) exampleForm() string {
	switch {
	case f.when == clocked:
		return f.name + ":every 20s:2s"
	case f.when == once:
		return f.name + ":after 30s"
	case f.retry:
		return f.name + ":1%:5s"
	case f.lasts > 0:
		return f.name + ":1%:" + f.lasts.String()
	case f.k > 0:
		return f.name + ":1%:4"
	}
	return f.name + ":1%"
}

// replaceAnswer answers with something else, and says when to retry if it is to
// say so.
func (st *stream) replaceAnswer(f Fault, r dialect.Reply) {
	if f.For > 0 {
		r.Header = "retry-after: " + strconv.Itoa(int(f.For/time.Second)) + "\r\n"
	}
	st.refused, st.truth.Fault = &r, f.Name
}

func tooMany(st *stream, f Fault) {
	st.replaceAnswer(f, st.s.dialect.Refuse(dialect.TooMany))
}

func serverError(st *stream, f Fault) {
	st.replaceAnswer(f, st.s.dialect.Refuse(dialect.EngineFailed))
}

func unavailable(st *stream, f Fault) {
	st.replaceAnswer(f, st.s.dialect.Refuse(dialect.Overloaded))
}

func htmlPage(st *stream, f Fault) {
	st.replaceAnswer(f, dialect.Reply{
		Status: http.StatusBadGateway,
		Type:   "text/html",
		Bare:   true,
		Body:   []byte("<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body><h1>502 Bad Gateway</h1></body>\r\n</html>\r\n"),
	})
}

// noteFault notes that a fault took effect.
func (st *stream) noteFault(name string) {
	if st.truth.Fault != "" {
		name = st.truth.Fault + "+" + name
	}
	st.truth.Fault = name
}

func slow(st *stream, f Fault) { st.delay += f.For }

func hang(st *stream, _ Fault) { st.hang = true }

// stall holds emissions back. They are then written one after the other
// without a pause, as after a blocked network.
func stall(st *stream, f Fault) {
	st.noteFault(f.Name)
	st.holding = true
	time.AfterFunc(f.For, func() { st.s.inbox.post(message{kind: release, st: st}) })
}

func cut(st *stream, f Fault) {
	st.noteFault(f.Name)
	st.last = true
	st.end(false)
}

func reset(st *stream, f Fault) {
	st.noteFault(f.Name)
	st.conn.out.reset()
	st.end(false)
}

func malformed(st *stream, f Fault) {
	if !st.streamed {
		return
	}
	st.noteFault(f.Name)
	st.writeEvent(st.writer.Malformed(make([]byte, frameSpace, 256)))
}

func errorEvent(st *stream, f Fault) {
	st.noteFault(f.Name)
	if !st.streamed || st.waits {
		r := st.s.dialect.Refuse(dialect.EngineFailed)
		st.truth.Status, st.truth.DoneNS = r.Status, clock.Now()
		st.conn.writeReply(&r, st.last, false)
		st.end(false)
		return
	}
	st.writeEvent(st.writer.Error(make([]byte, frameSpace, 256)))
	st.writeEvent(st.writer.Done(make([]byte, frameSpace, 64)))
	st.close()
	st.end(false)
}

func noDone(st *stream, _ Fault) { st.noDone = true }

func noUsage(st *stream, _ Fault) { st.noUsage = true }

func finishClose(st *stream, _ Fault) { st.finishClose = true }

// ensureDistortion is the stream's distortion, which it has from now on.
func (st *stream) ensureDistortion() *distortion {
	if st.distort == nil {
		st.distort = &distortion{}
	}
	return st.distort
}

func crlf(st *stream, _ Fault) { st.ensureDistortion().crlf = true }

func ping(st *stream, _ Fault) { st.ensureDistortion().comment = st.comment }

func coalesce(st *stream, f Fault) { st.ensureDistortion().coalesce = f.K }

func split(st *stream, _ Fault) { st.ensureDistortion().split = true }

func zip(st *stream, _ Fault) { st.ensureDistortion().useGzip() }

func http10(st *stream, _ Fault) {
	st.ensureDistortion().bare = true
	st.last = true
}

// tookFromTheStart notes the faults that an answer has from its beginning.
func (st *stream) tookFromTheStart() {
	for _, f := range st.faults {
		switch f.Name {
		case "slow", "hang", "gzip", "http10":
		case "crlf", "ping", "coalesce", "split":
			if !st.streamed || st.hang && f.Name != "ping" { // there are no events
				continue
			}
		default:
			continue
		}
		st.noteFault(f.Name)
	}
}

// garblesAnswer says whether a fault makes the answer to request n wrong. It is asked before the
// answer is made, unlike others; one with a number waits until so many answers are under
// way, this one among them.
func (s *Server) garblesAnswer(n int64) bool {
	got, _ := s.cfg.Faults.drawFaults(s.cfg.Seed, n, time.Duration(clock.Now()-s.start))
	for _, f := range got {
		if f.Name == "garble" && s.stats.active()+1 >= int64(f.K) {
			return true
		}
	}
	return false
}
