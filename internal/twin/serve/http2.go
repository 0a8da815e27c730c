package serve

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"pitot/internal/twin/serve/dialect"
)

// http2Conn is what HTTP/2 adds to a connection: frames, and how much the client takes.
type http2Conn struct {
	c      *conn
	frames *http2.Framer // of the connection's goroutine
	asked  *http.Request // whose body is being read, nil for none
	latest uint32        // stream that the client began
	size   int64         // of the body, as it was announced; -1 if it was not

	mu      sync.Mutex // guards what is written of answers
	answers *http2.Framer
	block   bytes.Buffer
	fields  *hpack.Encoder
	stream  uint32 // that is being answered, 0 for none
	initial int64  // window of a new stream
	window  int64  // bytes that the client takes on the stream
	room    int64  // and on the connection
	waiting []piece
}

// piece is a stretch of an answer's body that waits to be written.
type piece struct {
	data []byte
	last bool
}

// bytesOut writes frames to an outbox.
type bytesOut struct{ out *outbox }

func (w bytesOut) Write(p []byte) (int, error) {
	w.out.write(p)
	return len(p), nil
}

// framePayload is the most that all take in a frame (RFC 9113 4.2), windowBytes what is
// sent before anybody allows more (6.9.2).
const (
	framePayload = 16 << 10
	windowBytes  = 1<<16 - 1
)

// serveHTTP2 answers requests in HTTP/2 until the connection ends. It says whether the
// client has gone.
func (c *conn) serveHTTP2() (gone bool) {
	h := &http2Conn{c: c, initial: windowBytes, room: windowBytes}
	h.frames = http2.NewFramer(bytesOut{c.out}, c.br)
	h.frames.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	h.frames.MaxHeaderListSize = maxHead
	h.answers = http2.NewFramer(bytesOut{c.out}, nil)
	h.fields = hpack.NewEncoder(&h.block)
	c.answers = h

	c.in.within(headTimeout)
	begins := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c.br, begins); err != nil && !bytes.Equal(begins[:3], []byte("GET")) {
		return true
	}
	_ = h.frames.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
	if string(begins) != http2.ClientPreface {
		_ = h.frames.WriteGoAway(0, http2.ErrCodeProtocol, []byte("this server speaks HTTP/2"))
		return false
	}
	c.in.within(0)
	for {
		f, err := h.frames.ReadFrame()
		var stream http2.StreamError
		switch {
		case errors.As(err, &stream):
			_ = h.frames.WriteRSTStream(stream.StreamID, stream.Code)
			continue
		case errors.Is(err, os.ErrDeadlineExceeded): // that is how a shutdown ends idle connections
			_ = h.frames.WriteGoAway(0, http2.ErrCodeNo, nil)
			return false
		case err != nil:
			return true
		}
		if code := h.take(f); code != http2.ErrCodeNo {
			_ = h.frames.WriteGoAway(0, code, nil)
			return false
		}
		if c.s.closing.Load() && c.now == nil && h.asked == nil {
			return false
		}
	}
}

// take acts on one frame. It gives what is wrong with it.
func (h *http2Conn) take(f http2.Frame) http2.ErrCode {
	switch f := f.(type) {
	case *http2.SettingsFrame:
		return h.settings(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			_ = h.frames.WritePing(true, f.Data)
		}
	case *http2.WindowUpdateFrame:
		h.mu.Lock()
		defer h.mu.Unlock()
		switch f.StreamID {
		case 0:
			h.room += int64(f.Increment)
		case h.stream:
			h.window += int64(f.Increment)
		}
		if max(h.room, h.window) > math.MaxInt32 {
			return http2.ErrCodeFlowControl
		}
		h.release()
	case *http2.RSTStreamFrame:
		h.drop(f.StreamID)
	case *http2.MetaHeadersFrame:
		return h.headers(f)
	case *http2.DataFrame:
		return h.data(f)
	}
	return http2.ErrCodeNo
}

func (h *http2Conn) settings(f *http2.SettingsFrame) http2.ErrCode {
	if f.IsAck() {
		return http2.ErrCodeNo
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if size, ok := f.Value(http2.SettingInitialWindowSize); ok {
		h.window += int64(size) - h.initial
		h.initial = int64(size)
	}
	if size, ok := f.Value(http2.SettingHeaderTableSize); ok {
		h.fields.SetMaxDynamicTableSizeLimit(min(size, 4096))
	}
	_ = h.frames.WriteSettingsAck()
	h.release()
	return http2.ErrCodeNo
}

// drop ends an answer that the client does not want any more.
func (h *http2Conn) drop(id uint32) {
	h.mu.Lock()
	current := id == h.stream
	if current {
		h.stream, h.waiting = 0, nil
	}
	h.mu.Unlock()
	if !current {
		return
	}
	if h.passOver(); h.c.now != nil {
		h.c.s.inbox.post(message{kind: abort, st: h.c.now})
		<-h.c.now.done
		h.c.now = nil
	}
	h.c.busy.Store(false)
}

// headers begins a request, or follows the body of one. Streams have ever higher numbers (RFC 9113
// 5.1.1), so what comes of an earlier one belongs to a request that was refused or taken back.
func (h *http2Conn) headers(f *http2.MetaHeadersFrame) http2.ErrCode {
	begins := f.StreamID > h.latest
	h.latest = max(h.latest, f.StreamID)
	h.mu.Lock()
	current := h.stream
	if begins && current == 0 {
		h.stream, h.window = f.StreamID, h.initial
	}
	h.mu.Unlock()
	switch {
	case !begins && current == f.StreamID:
		return h.bodyEnds(f.StreamEnded())
	case !begins:
		return http2.ErrCodeNo
	case current != 0:
		_ = h.frames.WriteRSTStream(f.StreamID, http2.ErrCodeRefusedStream)
		return http2.ErrCodeNo
	}
	c := h.c
	if c.now != nil { // its last frame has been written
		<-c.now.done
		c.now = nil
	}
	c.begin()
	c.body.Reset()
	req := &http.Request{Method: f.PseudoValue("method"), Host: f.PseudoValue("authority"), Header: http.Header{}, Proto: "HTTP/2.0", ProtoMajor: 2, Body: http.NoBody}
	for _, field := range f.RegularFields() {
		req.Header.Add(field.Name, field.Value)
	}
	var err error
	if req.URL, err = url.ParseRequestURI(f.PseudoValue("path")); err != nil || f.Truncated {
		h.refuse(dialect.NotHTTP)
		return http2.ErrCodeNo
	}
	h.size = -1
	if n, err := strconv.ParseInt(req.Header.Get("Content-Length"), 10, 64); err == nil {
		h.size = n
	}
	switch {
	case !c.s.admits(req):
		c.thaw()
		h.refuse(dialect.NoKey)
		return http2.ErrCodeNo
	case h.size > maxBody:
		h.refuse(dialect.TooLarge)
		return http2.ErrCodeNo
	}
	h.asked = req
	c.in.within(bodyTimeout)
	return h.bodyEnds(f.StreamEnded())
}

// refuse answers a request that is not read to its end. What still comes of it is passed
// over.
func (h *http2Conn) refuse(p dialect.Problem) {
	h.passOver()
	r := h.c.s.dialect.Refuse(p)
	h.c.answer(&r, false, false)
	h.c.busy.Store(false)
}

// passOver waits for no more of a request's body: the next request may be a long time in
// coming. That lifts a shutdown's deadline too, which is of no matter: behind each frame it is
// asked whether there is one.
func (h *http2Conn) passOver() {
	h.asked = nil
	h.c.in.within(0)
}

// data takes a stretch of a request's body, and lets as much more come.
func (h *http2Conn) data(f *http2.DataFrame) http2.ErrCode {
	if n := f.Length; n > 0 {
		_ = h.frames.WriteWindowUpdate(0, n)
		if !f.StreamEnded() {
			_ = h.frames.WriteWindowUpdate(f.StreamID, n)
		}
	}
	if h.asked == nil || f.StreamID != h.stream {
		return http2.ErrCodeNo
	}
	h.c.body.Write(f.Data())
	if h.c.body.Len() > maxBody {
		h.refuse(dialect.TooLarge)
		return http2.ErrCodeNo
	}
	return h.bodyEnds(f.StreamEnded())
}

// bodyEnds answers the request if all of it has come.
func (h *http2Conn) bodyEnds(ended bool) http2.ErrCode {
	req := h.asked
	if !ended || req == nil {
		return http2.ErrCodeNo
	}
	h.passOver()
	size := int64(h.c.body.Len())
	if h.size >= 0 && h.size != size {
		return http2.ErrCodeProtocol
	}
	req.ContentLength = size
	h.c.respond(req)
	if h.c.now == nil {
		h.c.busy.Store(false)
	}
	return http2.ErrCodeNo
}

// whole implements framing.
func (h *http2Conn) whole(head, body []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writeHead(head, len(body) == 0)
	if len(body) > 0 {
		h.write(body, true)
	}
}

// open implements framing.
func (h *http2Conn) open(head []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writeHead(head, false)
}

// chunk implements framing.
func (h *http2Conn) chunk(b []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.write(b[frameSpace:], false)
}

// end implements framing.
func (h *http2Conn) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.write(nil, true)
}

// writeHead writes a head's fields. What HTTP/2 has no place for is left out.
func (h *http2Conn) writeHead(head []byte, last bool) {
	if h.stream == 0 {
		return
	}
	lines := strings.Split(strings.TrimSuffix(string(head), "\r\n\r\n"), "\r\n")
	h.block.Reset()
	_ = h.fields.WriteField(hpack.HeaderField{Name: ":status", Value: strings.Fields(lines[0])[1]})
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ":")
		if name = strings.ToLower(name); name == "connection" || name == "transfer-encoding" {
			continue
		}
		_ = h.fields.WriteField(hpack.HeaderField{Name: name, Value: strings.TrimSpace(value)})
	}
	_ = h.answers.WriteHeaders(http2.HeadersFrameParam{StreamID: h.stream, BlockFragment: h.block.Bytes(), EndHeaders: true, EndStream: last})
	if last {
		h.stream = 0
	}
}

// write writes a stretch of the body, as soon as the client takes it.
func (h *http2Conn) write(data []byte, last bool) {
	if h.stream == 0 {
		return
	}
	h.waiting = append(h.waiting, piece{data, last})
	h.release()
	if n := len(h.waiting); n > 0 { // data is the caller's
		h.waiting[n-1].data = slices.Clone(h.waiting[n-1].data)
	}
}

// release writes what the client takes of what waits.
func (h *http2Conn) release() {
	for len(h.waiting) > 0 {
		p := &h.waiting[0]
		n := int(max(min(int64(len(p.data)), h.window, h.room, framePayload), 0))
		if n == 0 && len(p.data) > 0 {
			return
		}
		last := p.last && n == len(p.data)
		_ = h.answers.WriteData(h.stream, last, p.data[:n])
		h.window -= int64(n)
		h.room -= int64(n)
		if p.data = p.data[n:]; len(p.data) > 0 {
			continue
		}
		h.waiting = slices.Delete(h.waiting, 0, 1)
		if last {
			h.stream, h.waiting = 0, h.waiting[:0]
		}
	}
}
