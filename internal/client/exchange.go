package client

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"unicode"
	"unsafe"

	"pitot/internal/client/api"
	"pitot/internal/client/stamp"
	"pitot/internal/results/record"
)

// maxDetail is the number of bytes kept of a server's error text.
const maxDetail = 300

// maxReason is the number of bytes kept of a finish reason.
const maxReason = 40

// Exchange is one request and its answer: it takes the bytes of the answer
// as they arrive and turns them into chunks and a row. It does no I/O.
type Exchange struct {
	Row record.Row // stamps relative to Origin

	Origin  int64       // what clock reading the row's stamps count from
	Sink    record.Sink // takes the chunks
	Kernel  bool        // kernel stamps are expected
	Request []byte      // the request as it goes on the wire
	Secret  string      // what must not be in any record, one secret a line
	Asked   api.Asked   // bounds the answer
	Named   bool        // the model that the response names is wanted: see [Exchange.NamedModel]
	Keep    bool        // what the answer says is wanted: see [Exchange.Text]
	Spell   bool        // chunks are kept, and the text of all of them: see [Exchange.TakeSpelt]
	Memory  *Memory     // what all exchanges together may hold, nil for no end of it
	Owner   any         // of the caller

	// The fields that each event touches are adjacent: with a thousand streams in
	// turn none of them is in the first-level cache.
	dec        api.Decoder
	onBody     func([]byte) error
	onPlain    func([]byte) error
	onAhead    func(data []byte) (int, error)
	onEvent    func(name, data []byte) error
	last, prev int64 // stamps of this read and of the one before it with another stamp
	at         int64 // = last, relative
	lastToken  int64 // stamp of the last arrival with tokens
	bounds     bounds
	events     int64
	unpacked   int64  // bytes of the body, decompressed
	choices    uint64 // that have come, those below 64
	visible    int64  // tokens that the chunks have by their own counts
	completion int32  // visible tokens by the usage so far
	more       bool   // the last read left bytes of its arrival behind
	perEvent   bool   // usage comes with every event
	reasoning  bool   // reasoning was streamed, not only its summary
	answered   bool   // [DONE] has come
	done       bool
	fresh      []record.Chunk
	kept       []record.Chunk
	passed     int // how many of them other events have followed in the read
	delta      api.Delta
	frames     api.Frames
	http       response

	api       api.API
	pooling   bool // nothing is generated: a choice is the result for one input
	gunzip    gunzip
	whole     []byte    // body of an error or of an answer that is not streamed
	others    []int32   // choices from 64 on that have come
	held      int64     // bytes of Memory
	doubt     string    // why the usage is not believed, "" if it is
	latest    api.Usage // of the counts that came
	broken    string    // the finish reason that says failure or a content filter, "" if none does
	model     string    // see Model
	opaque    bool      // content came that is no text
	aside     []byte    // the first event that is no part of a response as the API has it, cut
	err       error
	fault     *api.Fault
	abandoned atomic.Pointer[string] // why it is no longer followed
}

// NewExchange gives an exchange that can be used again and again.
func NewExchange(a api.API) *Exchange {
	x := &Exchange{api: a, dec: a.Decoder(), pooling: !api.GeneratesTokens(a)}
	x.onBody, x.onPlain, x.onAhead, x.onEvent = x.takeBody, x.takePlain, x.takeAhead, x.takeEvent
	return x
}

// prefetch reads a byte of each cache line that an event touches: the fields before
// api, and what the decoder remembers.
func (x *Exchange) prefetch() (sum byte) {
	const line = 64
	hot := (*[unsafe.Offsetof(x.api)]byte)(unsafe.Pointer(x))
	for i := 0; i < len(hot); i += line {
		sum += hot[i]
	}
	remembered := x.dec.Remembered()
	for i := 0; i < len(remembered); i += line {
		sum += remembered[i]
	}
	return sum
}

// Begin prepares for a request. row is a [record.BlankRow] with what is known
// of it beforehand.
func (x *Exchange) Begin(row record.Row) {
	x.Row = row
	x.abandoned.Store(nil)
	x.resetAnswer()
}

// resetAnswer clears the state of the answer, before its first byte and before the
// request is sent again.
func (x *Exchange) resetAnswer() {
	x.http.secret = x.Secret
	x.http.reset()
	x.frames.Reset(x.api.Framing())
	x.dec.Reset()
	x.gunzip.close()
	x.whole, x.fresh, x.others, x.bounds = x.whole[:0], x.fresh[:0], x.others[:0], bounds{}
	x.passed = 0
	x.events, x.unpacked, x.visible, x.doubt = 0, 0, 0, ""
	x.last, x.prev, x.lastToken, x.more = 0, 0, record.Unset, false
	x.perEvent, x.completion, x.reasoning, x.choices = false, 0, false, 0
	x.answered, x.err, x.fault, x.done = false, nil, nil, false
	x.model = ""
	x.broken, x.opaque, x.aside, x.latest = "", false, x.aside[:0], api.Unsaid
	for _, c := range x.kept { // of an attempt that failed
		x.Sink.Chunk(c)
	}
	x.Release()
	x.delta.Spell, x.delta.Keep = x.Spell, x.Keep
}

// Release gives back what is left of an answer that has ended, once its text and its
// chunks have been taken: until then they are in the budget.
func (x *Exchange) Release() {
	x.kept, x.delta.Spelt, x.delta.Text = x.kept[:0], x.delta.Spelt[:0], x.delta.Text[:0]
	trimSlice(&x.kept, api.MaxKept/chunkBytes)
	trimSlice(&x.delta.Spelt, api.MaxKept)
	trimSlice(&x.delta.Text, api.MaxKept)
	x.releaseTo(0)
}

// trimSlice gives a large slice back.
func trimSlice[T any](s *[]T, most int) {
	if cap(*s) > most {
		*s = nil
	}
}

// releaseTo gives back what is held of the budget but for some bytes.
func (x *Exchange) releaseTo(bytes int64) {
	if x.held > bytes {
		x.Memory.release(x.held - bytes)
		x.held = bytes
	}
}

// Text returns the text of the answer, without reasoning, refusals and calls. A client returns this
// text with the next turn. It is valid until the exchange begins again.
func (x *Exchange) Text() []byte { return x.delta.Text }

// TakeSpelt gives what an exchange that spells kept in place of handing it to its
// sink: the chunks, and the text of all of them in turn. Whoever takes them hands
// the chunks on. They are valid until the exchange begins again.
func (x *Exchange) TakeSpelt() (chunks []record.Chunk, text []byte) {
	chunks, x.kept = x.kept, x.kept[:0]
	return chunks, x.delta.Spelt
}

// TextPieces are the stretches of text of an answer that came whole, as chunks without times: they
// say how long each is and of what kind. Like the text of [Exchange.TakeSpelt] they are there until
// the next request begins.
func (x *Exchange) TextPieces() (list []record.Chunk) {
	if x.Row.Stream || x.Row.Outcome != record.OK {
		return nil
	}
	for _, p := range x.delta.Parts {
		list = append(list, record.Chunk{Request: x.Row.ID, Bytes: p.Bytes, Choice: p.Choice, Kind: p.Kind})
	}
	return list
}

// MarkSent stamps the request as sent at a clock reading.
func (x *Exchange) MarkSent(at int64) {
	x.Row.Sent = at - x.Origin
	x.Row.BytesOut = int64(len(x.Request))
	x.bounds = boundsOf(x.Asked, x.Row.BytesOut)
	x.delta.Most = int(x.bounds.choices) * kinds
	x.last, x.prev = at, at
}

// Feed takes the bytes of one read and when they arrived. It says whether the
// answer is complete.
//
// A stamp belongs to the last segment of a read. So only an event that ends where the
// read ends has an exact time; the others arrived after the previous read and by this
// one.
func (x *Exchange) Feed(b []byte, a stamp.Arrival) (done bool) {
	if x.done {
		return true
	}
	if a.Time > x.last {
		if !x.more { // what the last read left behind arrived by its stamp, not after
			x.prev = x.last
		}
		x.last = a.Time
	}
	x.more = a.More
	x.at = x.last - x.Origin // a stamp from another clock never goes back
	if x.Kernel && !a.Kernel {
		x.Row.UserStamps++
	}
	used, err := x.http.feed(b, x.onBody)
	x.Row.BytesIn += int64(len(b))
	if err == nil && x.Row.BytesIn > x.bounds.bytes && x.http.state != ended {
		err = oversizedError("bytes", x.bounds.bytes)
	}
	x.flushChunks(a.More)
	if x.Row.Headers < 0 && x.http.headersDone() {
		x.Row.Headers = x.at
	}
	switch {
	case err == errAbandoned:
		x.finishAbandoned(*x.abandoned.Load())
	case err != nil:
		x.err = err
		x.finish()
	case x.http.state == ended:
		if used < len(b) {
			x.http.close = true // bytes behind the answer: never reuse
		}
		x.finish()
	}
	return x.done
}

// flushChunks hands on the chunks of this read with what is known of their times.
func (x *Exchange) flushChunks(more bool) {
	if len(x.fresh) == 0 {
		return
	}
	// Bytes after the last event in this read may have arrived later than it: only
	// the line end that closes its chunk surely belongs to it. In a compressed
	// stream the end of an event cannot be located.
	h := &x.http
	trailing := more || x.frames.HasPending() || h.gzip || h.state == inChunk ||
		h.state == inChunkSize && len(h.line) > 0 || h.chunked && h.state >= inTrailers
	earliest := x.prev - x.Origin
	end, round := len(x.fresh)-1, lastRound(x.fresh)
	together := x.fresh[end].Earliest != record.Unset // the round has the stamp of its last chunk
	for i := range x.fresh {
		c := &x.fresh[i]
		exact := !trailing && (c.Earliest != record.Unset || i >= round && together)
		c.T, c.Earliest = x.at, x.at
		if !exact {
			c.Earliest = earliest
			// See Merged of [record.Row] for the last chunk of a stream.
			if i < min(round, end) || !x.dec.Ended() {
				x.Row.Merged++
			}
		}
		if x.Spell {
			x.kept = append(x.kept, *c)
			continue
		}
		x.Sink.Chunk(*c)
	}
	x.Row.Chunks += int32(len(x.fresh))
	if x.at != x.lastToken {
		x.Row.Arrivals++
		x.lastToken = x.at
	}
	x.fresh, x.passed = x.fresh[:0], 0
}

// lastRound is from where on the chunks of a read are of different choices: those of one
// step, which a server writes at once, in place of some that the kernel merged.
func lastRound(chunks []record.Chunk) int {
	seen := uint64(0)
	for i := len(chunks) - 1; i >= 0; i-- {
		bit := uint64(1) << uint32(chunks[i].Choice) // 0 from 64 on: of those none is taken for written at once
		if bit == 0 || seen&bit != 0 {
			return i + 1
		}
		seen |= bit
	}
	return 0
}

// takeBody takes a stretch of the body, still compressed if it is.
func (x *Exchange) takeBody(b []byte) error {
	if x.Row.Headers < 0 {
		x.Row.Headers = x.at
	}
	if x.http.gzip {
		return x.gunzip.feed(b, x.onPlain)
	}
	return x.takePlain(b)
}

// takePlain takes a stretch of the decompressed body.
func (x *Exchange) takePlain(b []byte) error {
	if x.http.gzip && x.abandoned.Load() != nil { // one read may hold very much, compressed
		return errAbandoned
	}
	if x.unpacked += int64(len(b)); x.unpacked > x.bounds.bytes {
		return oversizedError("bytes", x.bounds.bytes)
	}
	if x.http.document && x.Row.Stream && len(x.whole) == 0 && beginsStream(b) {
		x.http.document = false
	}
	if x.isStream() {
		err := x.frames.Feed(b, x.onAhead, x.onEvent)
		if x.frames.PartialBytes()+x.decoderBytes()+len(x.fresh)+len(x.kept)*chunkBytes+len(x.delta.Text)+len(x.delta.Spelt) > unaccounted && err == nil {
			err = x.accountMemory()
		}
		return err
	}
	if x.http.status != 200 {
		x.whole = append(x.whole, b[:min(len(b), maxErrorBody-len(x.whole))]...)
		return nil
	}
	if len(x.whole)+len(b) > maxWhole {
		return oversizedError("bytes in one answer", maxWhole)
	}
	x.whole = append(x.whole, b...)
	if len(x.whole) > unaccounted {
		return x.accountMemory()
	}
	return nil
}

// errAbandoned ends the decompression of a response that is no longer followed.
var errAbandoned = errors.New("no longer followed")

// unaccounted is the number of bytes that an exchange may hold without using the budget. Most never
// hold more.
const unaccounted = 8 << 10

// accountMemory takes what the exchange holds out of the budget.
func (x *Exchange) accountMemory() error {
	held := x.bufferBytes()
	if held > x.held {
		if !x.Memory.reserve(held - x.held) {
			return &memoryError{x.Memory.limit}
		}
		x.held = held
	}
	return nil
}

// bufferBytes returns the number of bytes of its buffers.
func (x *Exchange) bufferBytes() int64 {
	return int64(cap(x.whole)+x.frames.Held()+x.decoderBytes()+cap(x.fresh)*chunkBytes) + x.takenBytes()
}

// chunkBytes is the size of a chunk.
const chunkBytes = int(unsafe.Sizeof(record.Chunk{}))

// takenBytes returns the number of those bytes that the reader of the answer has yet to take.
func (x *Exchange) takenBytes() int64 {
	return int64(cap(x.kept)*chunkBytes + cap(x.delta.Spelt) + cap(x.delta.Text))
}

// decoderBytes returns the number of bytes of text that the decoder holds.
func (x *Exchange) decoderBytes() int {
	if h, ok := x.dec.(api.Holder); ok {
		return h.Held()
	}
	return 0
}

// shrinkBuffers gives large buffers back when the answer has ended.
func (x *Exchange) shrinkBuffers() {
	x.gunzip.close()
	x.frames.Trim()
	trimSlice(&x.whole, api.MaxKept)
	trimSlice(&x.fresh, api.MaxKept>>6)
	trimSlice(&x.delta.Parts, api.MaxKept>>6)
	if h, ok := x.dec.(api.Holder); ok {
		h.Trim()
	}
	x.releaseTo(x.takenBytes())
}

// isStream says whether the answer is a stream of events. Not every server sets the
// content type, so what is not known to be a document counts as a stream.
func (x *Exchange) isStream() bool {
	return x.http.status == 200 && x.Row.Stream && !x.http.document
}

// beginsStream reports whether a body begins as a stream of events does, whatever its type
// says: with a field's name or a comment, where a document has a bracket.
func beginsStream(b []byte) bool { return len(b) > 0 && bytes.IndexByte([]byte("dei:"), b[0]) >= 0 }

// takeAhead takes the event that data begins with where it is like those before it.
func (x *Exchange) takeAhead(data []byte) (n int, err error) {
	if x.answered { // [Exchange.takeEvent] passes over it
		return 0, nil
	}
	d := &x.delta
	d.Clear()
	if n = x.dec.Ahead(data, d); n == 0 {
		return 0, nil
	}
	if err = x.countEvent(); err == nil {
		err = x.countDelta(d)
	}
	return n, err
}

// takeEvent takes one event of the stream.
func (x *Exchange) takeEvent(name, data []byte) error {
	first := x.Row.FirstEvent < 0
	if err := x.countEvent(); err != nil {
		return err
	}
	d := &x.delta
	d.Clear()
	switch {
	case x.answered:
		x.skipAfterEnd(data)
		return nil
	case len(data) == 0 && string(name) != "error":
		d.Nothing = true // the commonest heartbeat
	default:
		if err := x.dec.Event(name, data, d); err != nil {
			if d.Excess {
				return x.tooManyChoices()
			}
			return &malformedError{what: "event", data: oneLine(string(data), x.Secret, 120)}
		}
	}
	if d.Nothing {
		x.Row.Skipped++
		if first {
			x.Row.FirstEvent = record.Unset
		}
		return nil
	}
	if d.Fault != nil {
		x.fault = d.Fault
	}
	x.opaque = x.opaque || d.Opaque
	x.noteModel(data)
	if len(x.aside) == 0 && isAside(d) {
		x.aside = append(x.aside, data[:min(len(data), maxDetail)]...)
	}
	err := x.countDelta(d)
	if d.Done {
		x.answered = true
	}
	return err
}

// isAside reports whether an event has nothing of a response in it.
func isAside(d *api.Delta) bool {
	return len(d.Parts) == 0 && !d.Empty && !d.Opaque && !d.Ended && !d.Done && d.Usage == api.Unsaid && d.Fault == nil
}

// skipAfterEnd passes over an event after the end mark: the response has ended. That it has
// a usage is noted, for some servers send theirs so.
func (x *Exchange) skipAfterEnd(data []byte) {
	x.Row.Skipped++
	if bytes.Contains(data, []byte("usage")) {
		x.ignoreUsage("it came after the end mark")
	}
}

// countEvent counts an event, and what it means for the chunks before it in its read.
func (x *Exchange) countEvent() error {
	if x.Row.FirstEvent < 0 {
		x.Row.FirstEvent = x.at
	}
	if x.events++; x.events > x.bounds.events {
		return oversizedError("events", x.bounds.events)
	}
	// Of several events in a read only the last has the read's stamp.
	for ; x.passed < len(x.fresh); x.passed++ {
		x.fresh[x.passed].Earliest = record.Unset
	}
	return nil
}

func (x *Exchange) tooManyChoices() error { return oversizedError("choices", x.bounds.choices) }

// countDelta adds what an event or a whole answer reports to the row.
func (x *Exchange) countDelta(d *api.Delta) error {
	r := &x.Row
	if d.Usage != api.Unsaid {
		x.takeUsage(&d.Usage)
	}
	if d.Ended {
		r.LastToken = max(r.LastToken, x.at)
		x.noteFinish(d)
	}
	if len(d.Parts) == 0 {
		return nil
	}
	for _, p := range d.Parts {
		r.TextBytes += int64(p.Bytes)
		if x.takeChoice(p.Choice) {
			return x.tooManyChoices()
		}
	}
	x.countTokens(d)
	if r.FirstToken < 0 {
		r.FirstToken = x.at
		if tokens := d.Parts[0].Tokens; tokens > 0 {
			r.FirstTokens = tokens
		}
	}
	r.LastToken = max(r.LastToken, x.at)
	first := len(x.fresh)
	for _, p := range d.Parts {
		if p.Kind != record.Reasoning && r.FirstAnswer < 0 {
			r.FirstAnswer = x.at
		}
		if n := len(x.fresh); n > first && x.fresh[n-1].Choice == p.Choice { // reasoning and answer in one event
			c := &x.fresh[n-1]
			c.Bytes, c.Kind = c.Bytes+p.Bytes, p.Kind
			continue
		}
		c := record.Chunk{Request: r.ID, Tokens: p.Tokens, Bytes: p.Bytes, Choice: p.Choice, Kind: p.Kind}
		x.fresh = append(x.fresh, c)
	}
	return nil
}

// Answered says that the answer's end mark has come; at most the end of the HTTP body
// is missing.
func (x *Exchange) Answered() bool { return x.answered && !x.done }

// HasFirstToken says whether the first token has come.
func (x *Exchange) HasFirstToken() bool { return x.Row.FirstToken >= 0 }

// HasStarted says whether any byte of an answer has come.
func (x *Exchange) HasStarted() bool { return x.Row.BytesIn > 0 }

// Close ends the exchange because its connection did, or because it is no
// longer followed. A nil or io.EOF error is a clean close.
func (x *Exchange) Close(at int64, err error) {
	if x.done {
		return
	}
	x.at = max(at, x.last) - x.Origin
	if class := x.abandoned.Load(); class != nil {
		x.finishAbandoned(*class)
		return
	}
	complete := x.http.connectionClosed(err == nil || err == io.EOF)
	x.http.close = true
	if !complete {
		if err == nil {
			err = io.EOF
		}
		x.err = err
	}
	x.finish()
}

// Refuse ends an exchange that could not be sent.
func (x *Exchange) Refuse(at int64, err error) {
	x.http.reset()
	x.Close(at, err)
}

// IsStale says that the exchange failed only because a reused connection turned out to
// be closed: no byte of an answer came, so sending it again repeats nothing that the
// server did.
func (x *Exchange) IsStale() bool {
	r := &x.Row
	return r.Outcome == record.Failed && r.Reused && r.Retried == 0 && r.BytesIn == 0 &&
		(r.Error == record.ErrClosed || r.Error == record.ErrReset)
}

// ResetForResend prepares a stale exchange for a second try.
func (x *Exchange) ResetForResend() {
	r := &x.Row
	r.Retried++
	r.Outcome, r.Error, r.Detail, r.Done, r.Sent = record.OK, "", "", record.Unset, record.Unset
	x.resetAnswer()
}

// PrepareRetry prepares for a further attempt at a request that failed, after so many
// nanoseconds of waiting.
func (x *Exchange) PrepareRetry(waited int64) {
	x.Row.NextAttempt(waited)
	x.resetAnswer()
}

// RetryHints returns the server's hints on trying again. after is the wait in nanoseconds
// (Retry-After and Retry-After-Ms), 0 if the server gave none. hint says by X-Should-Retry whether
// to retry at all, nil if the server did not say.
func (x *Exchange) RetryHints() (after int64, hint *bool) {
	h := &x.http
	switch {
	case !h.headersDone():
		return 0, nil
	case h.retryAfterMS > 0:
		after = h.retryAfterMS * 1e6
	case h.retryAfter > 0:
		after = int64(h.retryAfter) * 1e9
	}
	return after, h.shouldRetry
}

// RequestAbandon says that the exchange is no longer followed, by our own decision:
// timeout or interruption. Its connection must then be aborted; Close does
// the rest. It is the only method that another goroutine may call.
func (x *Exchange) RequestAbandon(class string) { x.abandoned.CompareAndSwap(nil, &class) }

func (x *Exchange) finishAbandoned(class string) {
	x.done = true
	x.http.close = true
	x.Row.Done = x.at
	x.copyCounts()
	if x.answered {
		x.judge() // the answer was complete: only the connection lingered
	} else {
		x.fail(class, x.timeoutProgress(class))
		x.Row.Outcome = record.Cut
	}
	x.noteUsageDoubt()
	x.shrinkBuffers()
}

// timeoutProgress says how far a response came that timed out, "" where none began.
func (x *Exchange) timeoutProgress(class string) string {
	switch r := &x.Row; {
	case class != record.ErrTimeout || r.BytesIn == 0:
		return ""
	case !x.http.headersDone():
		return "the headers of the response did not end"
	case x.dec.Ended():
		return fmt.Sprintf("the finish reason %q came, and then neither an end mark nor the end of the response", r.Finish)
	case r.Chunks > 0:
		return fmt.Sprintf("the response began, and did not end: events with text: %d", r.Chunks)
	}
	return fmt.Sprintf("the response began, with HTTP %d, and no text came", x.http.status)
}

// finish judges the answer and completes the row.
func (x *Exchange) finish() {
	x.done = true
	r := &x.Row
	r.Done = x.at
	if x.isStream() && x.err == nil {
		x.at = x.last - x.Origin // an event that was left open came with the last bytes
		if err := x.frames.FlushEvent(x.onEvent); err != nil {
			x.err = err
		}
		x.flushChunks(false)
	}
	x.copyCounts()
	x.judge()
	x.noteUsageDoubt()
	x.shrinkBuffers()
}

// copyCounts copies what was counted on the way.
func (x *Exchange) copyCounts() {
	r := &x.Row
	if x.http.headersDone() {
		h := &x.http
		r.Status, r.RetryAfter = int32(h.status), h.retryAfter
		r.LimitRequests, r.LeftRequests, r.LimitTokens, r.LeftTokens = h.requests.limit, h.requests.left, h.tokens.limit, h.tokens.left
		r.ResetRequests, r.ResetTokens = h.requests.reset, h.tokens.reset
	}
	x.checkUsage()
	if r.ReasoningTokens > 0 && !x.reasoning {
		r.HiddenTokens = r.ReasoningTokens
	}
	if x.http.headersDone() && x.http.status == 200 && !x.isStream() {
		r.Stream = false
	}
}

// judge gives the row its outcome and error class.
func (x *Exchange) judge() {
	switch {
	case x.http.headersDone() && x.http.status != 200 && x.http.status != 0:
		x.failStatus()
	case x.broken != "":
		x.failFinish()
	case x.fault != nil:
		x.fail(record.ErrStream, x.fault.Message)
	case x.err != nil && !x.isComplete():
		class, detail := Classify(x.err)
		if class == record.ErrClosed || class == record.ErrReset {
			x.failUnfinished(class, detail)
			return
		}
		x.fail(class, detail)
	case !x.Row.Stream:
		x.judgeWhole()
	case !x.dec.Ended():
		x.failUnfinished(record.ErrUnfinished, "the stream ended without a finish reason or an end mark")
	case x.Row.Chunks == 0:
		x.judgeTextless()
	}
}

// isComplete reports whether a stream that was cut has all of its answer: after the end mark only
// the end of the HTTP body is missing.
func (x *Exchange) isComplete() bool {
	_, unmarked := x.dec.(api.Unmarked)
	return x.answered || !unmarked && x.dec.Ended() && errors.Is(x.err, io.EOF)
}

// failStatus fails a response by its status.
func (x *Exchange) failStatus() {
	text := x.refusalText()
	if to := redirectText(x.http.status, x.path(), x.http.location); to != "" {
		text = to
	}
	if text == "" && x.http.status < 300 {
		text = fmt.Sprintf("the response has no content, and HTTP status %d in place of 200", x.http.status)
	}
	if wantsTLS(x.http.status, x.whole) {
		x.fail(record.ErrTLS, errSpeaksTLS.Error())
		return
	}
	x.fail(statusClass(x.http.status, text), text)
}

// path is the path of the request.
func (x *Exchange) path() string {
	head, _, _ := bytes.Cut(x.Request, []byte("\r\n"))
	if parts := bytes.Fields(head); len(parts) > 1 {
		return string(parts[1])
	}
	return ""
}

// mostTextless is the number of tokens of a choice that may have no text. One ends the choice, and
// others open reasoning or a call in the formats of some models.
const mostTextless = 4

// judgeTextless fails a response without text, unless it has other content, or the server
// counted no more than a few tokens that show no text, or reasoning that it does not show.
func (x *Exchange) judgeTextless() {
	r := &x.Row
	switch {
	case record.KindOfFinish(r.Finish) == record.FinishUnknown:
		x.fail(record.ErrEmpty, "the response has no text, and its finish reason is "+strconv.Quote(r.Finish))
	case x.opaque:
	case r.CompletionTokens <= 0:
		x.failUnfinished(record.ErrEmpty, "the response has no tokens")
	case r.Finish == "":
		x.failUnfinished(record.ErrEmpty, "the response has no text and no finish reason")
	default:
		shown := int64(r.CompletionTokens - max(r.ReasoningTokens, 0))
		if shown > mostTextless*max(x.Asked.Choices, 1) {
			x.failUnfinished(record.ErrEmpty, fmt.Sprintf("the response has no text, and its usage counts %d tokens", r.CompletionTokens))
		}
	}
}

// failFinish fails a response by its finish reason, in the server's words where there are any.
func (x *Exchange) failFinish() {
	detail := "the server ended the response with finish reason " + strconv.Quote(x.broken)
	if x.fault != nil && x.fault.Message != "" {
		detail = x.fault.Message
	}
	x.fail(record.FinishError(x.broken), detail)
}

// failUnfinished fails a response that broke off, with what the server wrote besides its
// events: the reason is often there.
func (x *Exchange) failUnfinished(class, detail string) {
	words := bytes.TrimSpace(x.frames.Stray())
	if len(words) == 0 {
		words = x.aside
	}
	if len(words) > 0 {
		if message := x.api.Fault(words); message != "" {
			x.fail(record.ErrStream, message)
			return
		}
		detail = "the server wrote: " + bodyText("", words) + "; " + detail
	}
	x.fail(class, detail)
}

// judgeWhole reads an answer that came in one piece.
func (x *Exchange) judgeWhole() {
	r := &x.Row
	d := &x.delta
	d.Clear()
	if err := x.dec.Whole(x.whole, d); err != nil {
		if d.Excess {
			x.fail(record.ErrOversized, x.tooManyChoices().Error())
			return
		}
		x.fail(record.ErrMalformed, "not JSON: "+oneLine(string(x.whole), x.Secret, 120))
		return
	}
	x.fault, x.opaque = d.Fault, d.Opaque
	x.noteModel(x.whole)
	x.noteFinish(d)
	if x.broken != "" {
		x.failFinish()
		return
	}
	if d.Fault != nil {
		x.fail(record.ErrStream, d.Fault.Message)
		return
	}
	for _, p := range d.Parts {
		r.TextBytes += int64(p.Bytes)
		if x.takeChoice(p.Choice) {
			x.fail(record.ErrOversized, x.tooManyChoices().Error())
			return
		}
	}
	x.takeUsage(&d.Usage)
	x.checkUsage()
	switch {
	case x.pooling && d.Ended:
		if short := api.ResultShortage(int64(r.Choices), x.Asked.Choices); short != "" {
			x.fail(record.ErrMalformed, short)
		}
	case !d.Ended && len(d.Parts) == 0:
		x.fail(record.ErrMalformed, "no answer in "+oneLine(string(x.whole), x.Secret, 120))
	case len(d.Parts) == 0:
		x.judgeTextless()
	}
}

// NamedModel is the model that the response names, "" where it names none, or where
// [Exchange.Named] is not set.
func (x *Exchange) NamedModel() string { return x.model }

func (x *Exchange) noteModel(data []byte) {
	if x.Named && x.model == "" {
		x.model = oneLine(api.ModelIn(data), x.Secret, maxDetail)
	}
}

// noteFinish records the finish reason of a choice.
func (x *Exchange) noteFinish(d *api.Delta) {
	if d.Finish != "" {
		x.Row.Finish = x.finishReason(d.Finish)
	}
	if x.broken == "" {
		x.broken = x.finishReason(d.Broken)
	}
}

// finishReason gives a finish reason as it may be recorded.
func (x *Exchange) finishReason(reason string) string {
	switch reason {
	case "stop", "length", "":
		return reason
	}
	return oneLine(reason, x.Secret, maxReason)
}

func (x *Exchange) fail(class, detail string) {
	x.Row.Outcome, x.Row.Error = record.Failed, class
	x.Row.Detail = oneLine(detail, x.Secret, maxDetail)
}

// oneLine makes one printable line of at most n bytes of a server's text. The secret is
// removed before the text is cut, so that no piece of it remains.
func oneLine(s, secret string, n int) string {
	s = Redact(s, secret)
	s = strings.ToValidUTF8(s[:min(len(s), 16*n)], "\uFFFD") // an answer may be huge
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	return cutBytes(strings.Join(strings.Fields(s), " "), n)
}

// IsReusable says whether the connection can carry another request.
func (x *Exchange) IsReusable() bool {
	return x.done && x.http.state == ended && !x.http.close && x.err == nil
}

var htmlTitle = regexp.MustCompile(`(?is)<title>\s*(.*?)\s*</title>`)

// refusalText returns the text of an error answer: its message, the title of an HTML page, or the
// body.
func (x *Exchange) refusalText() string { return bodyText(x.api.Fault(x.whole), x.whole) }

func bodyText(message string, body []byte) string {
	if message != "" {
		return message
	}
	if m := htmlTitle.FindSubmatch(body); m != nil {
		return "HTML page: " + string(m[1])
	}
	return string(body)
}

// tooLong matches how servers say that a request does not fit the model's context:
// OpenAI, vLLM and SGLang; llama.cpp; TGI. max_tokens alone does not mean that: newer
// models do not take the name.
var tooLong = regexp.MustCompile("context[ _](length|size|window)|maximum model length|too long|" +
	"max_new_tokens` must be|must have less than \\d+ tokens")

// statusClass names an HTTP status.
func statusClass(status int, text string) string {
	low := strings.ToLower(text)
	switch {
	case status == 401 || status == 403:
		return record.ErrAuth
	case status == 404:
		return record.ErrNotFound
	case status == 429:
		return record.ErrRateLimited
	case (status == 400 || status == 413 || status == 422) &&
		tooLong.MatchString(low):
		return record.ErrContextLength
	case status >= 500:
		return record.ServerError(status)
	case status >= 400:
		return record.ErrBadRequest
	case status >= 300:
		return record.ErrRedirect
	}
	return record.ErrMalformed
}

// malformedError is content that cannot be read.
type malformedError struct{ what, data string }

func (e *malformedError) Error() string { return "cannot read " + e.what + " " + e.data }

// noteUsageDoubt writes into the row of a successful answer why its usage was
// ignored.
func (x *Exchange) noteUsageDoubt() {
	if x.doubt != "" && x.Row.Outcome == record.OK {
		x.Row.Detail = record.UsageDoubt + x.doubt
	}
}

// isError reports whether there is an error of a type in a chain.
func isError[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// Classify gives the error class of a transport's error, and what it says.
func Classify(err error) (class, detail string) {
	dial, _ := errors.AsType[*DialError](err)
	network, _ := errors.AsType[net.Error](err)
	op, _ := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, errOnlyHTTP2):
		return record.ErrHTTP2, errOnlyHTTP2.Error()
	case errors.Is(err, errSpeaksTLS):
		return record.ErrTLS, errSpeaksTLS.Error()
	case dial != nil:
		return dial.Class, dial.Error()
	case isError[*api.OversizedError](err), errors.Is(err, errHeaders):
		return record.ErrOversized, err.Error()
	case isError[*memoryError](err):
		return record.ErrOwnMemory, err.Error()
	case isError[*malformedError](err), errors.Is(err, errHTTP):
		return record.ErrMalformed, err.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return record.ErrClosed, "the connection was closed before the answer's end"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNABORTED):
		return record.ErrReset, "connection reset by the server"
	case errors.Is(err, os.ErrDeadlineExceeded), network != nil && network.Timeout():
		return record.ErrTimeout, err.Error()
	case isError[tls.AlertError](err), isError[tls.RecordHeaderError](err),
		op != nil && (op.Op == "remote error" || op.Op == "local error"): // as crypto/tls calls alerts
		return record.ErrTLS, err.Error()
	case isError[syscall.Errno](err):
		return record.ErrConnect, err.Error()
	}
	return record.ErrMalformed, err.Error()
}
