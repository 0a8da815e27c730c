package wire

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/net/http2/hpack"
)

// http2 is what HTTP/2 (RFC 9113) adds to a connection that carries one request at a time:
// requests become frames, and the frames that arrive become the same [response] as with
// HTTP/1.1. Reading is push-style, does no I/O but for acknowledgements, and hands on the
// body in place, so that what arrives keeps the stamp of its read.
type http2 struct {
	w      io.Writer
	scheme string // "http" or "https"

	writing sync.Mutex // held while frames are written

	telling  sync.Mutex
	untold   []byte // frames of [http2.tell] that wait to be written
	flushing bool   // by a goroutine that writes them

	mu      sync.Mutex // guards what the peer allows to be sent
	changed sync.Cond
	conn    int64 // bytes of DATA that may be sent: on the connection,
	stream  int64 // and on the stream
	initial int64 // of a new stream
	most    int   // bytes of a frame

	answered error // the request is, to its end
	closed   error // why the connection has ended

	id atomic.Uint32 // of the last request's stream, 0 before the first; changed under mu, with what is of the stream

	frames http2Frames // of the reading goroutine
}

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// newHTTP2 begins HTTP/2 on a connection, without waiting for what the server says.
func newHTTP2(w io.Writer, scheme string) (*http2, error) {
	h := &http2{w: w, scheme: scheme, conn: windowUsual, initial: windowUsual, most: frameMost}
	h.changed.L = &h.mu
	h.frames.grantAt = windowMost / 2
	h.frames.fields = hpack.NewDecoder(tableUsual, nil)
	h.frames.fields.SetMaxStringLength(maxHeader)
	b := []byte(preface)
	b = appendFrame(b, frameSettings, 0, 0, 12)
	b = appendSetting(b, settingPush, 0)
	b = appendSetting(b, settingWindow, windowMost)
	b = appendFrame(b, frameWindow, 0, 0, 4)
	b = binary.BigEndian.AppendUint32(b, windowMost-windowUsual)
	_, err := w.Write(b)
	return h, err
}

func appendFrame(b []byte, kind, flags byte, stream uint32, size int) []byte {
	b = append(b, byte(size>>16), byte(size>>8), byte(size), kind, flags)
	return binary.BigEndian.AppendUint32(b, stream)
}

func appendSetting(b []byte, name uint16, value uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, name), value)
}

// fits says whether a request of so many bytes can be written without waiting for the
// server.
func (h *http2) fits(size int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return int64(size) <= min(h.conn, h.initial)
}

// outgoing is a request on its way: the frames that can be written at once, and the body
// that waits for the server to have room.
type outgoing struct {
	frames, body []byte
	id           uint32
}

// request makes frames of a request, on a new stream. It is a whole one as HTTP/1.1 has it:
// requests are rendered before it is known on which connection they will go.
func (h *http2) request(request []byte) (o outgoing, err error) {
	block, body, err := headerBlock(request, h.scheme)
	if err != nil {
		return o, fmt.Errorf("write header fields: %w", err)
	}
	o = outgoing{body: body, id: h.open()}
	o.frames = headerFrames(block, o.id, len(body) == 0)
	err = h.fill(&o)
	return o, err
}

// open takes the next stream. What the server still says of the one before it is of no
// matter from then on.
func (h *http2) open() (id uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if id = h.id.Load() + 2; id == 2 {
		id = 1 // a client's streams are odd
	}
	h.stream, h.answered = h.initial, nil
	h.id.Store(id)
	return id
}

// fill appends as much of the body to the frames as the server has room for.
func (h *http2) fill(o *outgoing) error {
	for len(o.body) > 0 {
		n, err := h.take(len(o.body), len(o.frames) == 0)
		if err != nil || n == 0 {
			return err
		}
		flags := byte(0)
		if n == len(o.body) {
			flags = flagEndStream
		}
		o.frames = append(appendFrame(o.frames, frameData, flags, o.id, n), o.body[:n]...)
		o.body = o.body[n:]
	}
	return nil
}

// send writes a request, and waits where the server has no room for it yet.
func (h *http2) send(o outgoing) error {
	for {
		if err := h.write(o.frames); err != nil || len(o.body) == 0 {
			return err
		}
		o.frames = o.frames[:0]
		if err := h.fill(&o); err != nil {
			return err
		}
	}
}

// headerFrames are the frames of a block of header fields.
func headerFrames(block []byte, id uint32, last bool) (b []byte) {
	kind, flags := byte(frameHeaders), byte(0)
	if last {
		flags = flagEndStream
	}
	for ; len(block) > frameMost; block = block[frameMost:] {
		b = append(appendFrame(b, kind, flags, id, frameMost), block[:frameMost]...)
		kind, flags = frameContinuation, 0
	}
	return append(appendFrame(b, kind, flags|flagEndHeaders, id, len(block)), block...)
}

func (h *http2) write(b []byte) error {
	h.writing.Lock()
	defer h.writing.Unlock()
	_, err := h.w.Write(b)
	return err
}

// take takes room for DATA of up to size bytes. Where there is none it waits, if it may, and
// else gives 0.
func (h *http2) take(size int, wait bool) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for wait && h.answered == nil && h.closed == nil && min(h.conn, h.stream) <= 0 {
		h.changed.Wait()
	}
	if err := cmp.Or(h.closed, h.answered); err != nil {
		return 0, err
	}
	n := min(int64(size), int64(h.most), max(h.conn, 0), max(h.stream, 0))
	h.conn -= n
	h.stream -= n
	return int(n), nil
}

// errAnswered ends a request that was answered before all of it was sent. Its stream stays
// half open, so that the connection is of no further use.
var errAnswered = errors.New("the answer came before the end of the request")

// answerEnded says that nothing more of the request on a stream needs to be written. An
// earlier stream is passed over.
func (h *http2) answerEnded(stream uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if stream == h.id.Load() {
		h.answered = errAnswered
		h.changed.Broadcast()
	}
}

// close says why the connection is of no further use.
func (h *http2) close(err error) {
	h.mu.Lock()
	h.closed = cmp.Or(h.closed, err, net.ErrClosed)
	h.mu.Unlock()
	h.changed.Broadcast()
}

// MayWantHTTP2 says whether a server that answered a request of HTTP/1.1 so, with a status
// or an error, may speak HTTP/2 alone. passing says that it may as well be a failure of that
// one connection.
func MayWantHTTP2(status int, err error) (may, passing bool) {
	const noProtocol = 120 // TLS alert no_application_protocol (RFC 7301 3.2)
	var alert tls.AlertError
	switch {
	case err == nil:
		return status == http.StatusUpgradeRequired || status == http.StatusHTTPVersionNotSupported, false
	case errors.As(err, &alert):
		return alert == noProtocol, false
	}
	passing = errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
	return passing || errors.Is(err, errHTTP), passing
}

// maxUntold bounds the bytes of acknowledgements that wait for a server to read them, about
// 1,000 of them: it may ask for any number, and never read.
const maxUntold = 16 << 10

// tell writes frames from a goroutine, which may wait for the socket: the reader may not.
func (h *http2) tell(frames []byte) error {
	h.telling.Lock()
	defer h.telling.Unlock()
	if len(h.untold)+len(frames) > maxUntold {
		return badFrame("acknowledgements are asked for and not read")
	}
	h.untold = append(h.untold, frames...)
	if !h.flushing {
		h.flushing = true
		go h.flush()
	}
	return nil
}

// flush writes what is to be told until there is no more of it.
func (h *http2) flush() {
	for {
		h.telling.Lock()
		b := h.untold
		h.untold, h.flushing = nil, len(b) > 0
		h.telling.Unlock()
		if len(b) == 0 {
			return
		}
		_ = h.write(b) // the reader sees the same error
	}
}

// headerBlock takes a request as HTTP/1.1 has it apart: its head becomes a block of header
// fields (RFC 7541) that refers to none before it, so that requests need no state.
func headerBlock(request []byte, scheme string) (block, body []byte, err error) {
	head, body, _ := bytes.Cut(request, []byte("\r\n\r\n"))
	first, lines, _ := strings.Cut(string(head), "\r\n")
	method, rest, _ := strings.Cut(first, " ")
	path, _, _ := strings.Cut(rest, " ")
	var out bytes.Buffer
	e := hpack.NewEncoder(&out)
	e.SetMaxDynamicTableSize(0)
	put := func(name, value string, secret bool) {
		if err == nil {
			err = e.WriteField(hpack.HeaderField{Name: name, Value: value, Sensitive: secret})
		}
	}
	put(":method", method, false)
	put(":scheme", scheme, false)
	put(":path", path, false)
	var fields []hpack.HeaderField
	for line := range strings.SplitSeq(lines, "\r\n") {
		name, value, ok := strings.Cut(line, ":")
		name, value = strings.ToLower(name), strings.TrimSpace(value)
		switch {
		case !ok, name == "connection", name == "transfer-encoding", name == "upgrade": // RFC 9113 8.2.2
		case name == "host":
			put(":authority", value, false)
		default:
			fields = append(fields, hpack.HeaderField{Name: name, Value: value})
		}
	}
	for _, f := range fields {
		secret := f.Name == "authorization" || f.Name == "cookie" || strings.HasSuffix(f.Name, "-key")
		put(f.Name, f.Value, secret)
	}
	return out.Bytes(), body, err
}
