package wire

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"golang.org/x/net/http2/hpack"
)

const (
	frameHeader = 9         // bytes (RFC 9113 4.1)
	frameMost   = 16 << 10  // payload of a frame, as long as nobody asks for more (6.5.2)
	windowUsual = 1<<16 - 1 // 6.9.2
	windowMost  = 1<<31 - 1 // 6.9.1
	tableUsual  = 4096      // bytes of the table of header fields (6.5.2)
)

// Types and flags of frames (RFC 9113 6).
const (
	frameData         = 0
	frameHeaders      = 1
	frameReset        = 3
	frameSettings     = 4
	framePush         = 5
	framePing         = 6
	frameGoAway       = 7
	frameWindow       = 8
	frameContinuation = 9

	flagEndStream  = 1
	flagAck        = 1
	flagEndHeaders = 4
	flagPadded     = 8
	flagPriority   = 32
)

// Settings (RFC 9113 6.5.2).
const (
	settingPush   = 2
	settingWindow = 4
	settingFrame  = 5
)

// http2Frames takes what a server sends apart.
type http2Frames struct {
	greeted bool // the server's first SETTINGS have come
	leaving bool // the server takes no further streams
	fields  *hpack.Decoder

	// the frame under way
	head    [frameHeader]byte
	headed  int    // bytes of head that have come
	left    int    // bytes of its payload that have not
	padding int    // bytes at the end of DATA that mean nothing
	unknown bool   // how many is the next byte
	payload []byte // so far, but of DATA

	block    []byte // of header fields, while more of it is to come
	blockEnd bool   // the stream ends with it
	open     bool   // the block goes on in the next frame

	body bool // what came last is the end of a frame of the answer's body
	got  int  // bytes of the last feed that are of the answer

	grantAt int64  // bytes of DATA after which the server is told that it may send as many more
	owing   int64  // that came since it was last told so: on the connection,
	owingOn int64  // and on the stream
	counted uint32 // which stream that is
}

func (f *http2Frames) kind() byte         { return f.head[3] }
func (f *http2Frames) has(flag byte) bool { return f.head[4]&flag != 0 }
func (f *http2Frames) size() int          { return int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2]) }
func (f *http2Frames) stream() uint32     { return binary.BigEndian.Uint32(f.head[5:]) & windowMost }
func badFrame(what string, args ...any) error {
	return fmt.Errorf("%w: HTTP/2 "+what, append([]any{errHTTP}, args...)...)
}

// feed takes what arrived and hands stretches of the answer's body to body. r is the
// answer that is awaited, nil for none.
func (h *http2) feed(b []byte, r *response, body func([]byte) error) (used int, err error) {
	n, f := len(b), &h.frames
	f.got = 0
	for len(b) > 0 {
		var k int
		if f.headed < frameHeader {
			k = copy(f.head[f.headed:], b)
			f.body = false
			if f.headed += k; f.headed == frameHeader {
				err = h.frameBegins()
			}
		} else {
			k = min(len(b), f.left)
			f.left -= k
			err = h.payload(b[:k], r, body)
		}
		b = b[k:]
		if h.isOwn(r) && f.headed == frameHeader {
			f.got += k
		}
		if err == nil && f.headed == frameHeader && f.left == 0 {
			err = h.frameEnds(r)
			f.headed = 0
		}
		if err != nil {
			h.close(err)
			if r != nil && r.state == ended { // that it came in the same read takes nothing from the answer
				r.close, err = true, nil
			}
			return n - len(b), err
		}
	}
	if r != nil {
		r.behind = !f.body || f.headed > 0
	}
	return n, nil
}

// isOwn says whether the frame under way is of the answer that is awaited.
func (h *http2) isOwn(r *response) bool {
	return r != nil && r.state != ended && h.frames.stream() == h.id.Load()
}

// frameBegins takes the head of a frame.
func (h *http2) frameBegins() error {
	f := &h.frames
	f.left = f.size()
	f.payload, f.padding = f.payload[:0], 0
	f.unknown = f.kind() == frameData && f.has(flagPadded)
	switch {
	case !f.greeted && (f.kind() != frameSettings || f.has(flagAck)):
		return badFrame("does not begin with SETTINGS")
	case f.left > frameMost:
		return badFrame("frame of %d bytes", f.left)
	case f.open && f.kind() != frameContinuation, !f.open && f.kind() == frameContinuation:
		return badFrame("frame of type %d among header fields", f.kind())
	case f.kind() == framePush:
		return badFrame("PUSH_PROMISE, which was forbidden")
	case f.stream() == 0 && (f.kind() <= frameReset || f.kind() == frameContinuation):
		return badFrame("frame of type %d without a stream", f.kind())
	case f.unknown && f.left == 0:
		return badFrame("padding beyond its frame")
	}
	f.greeted = true
	return nil
}

// payload takes a stretch of a frame's payload.
func (h *http2) payload(b []byte, r *response, body func([]byte) error) error {
	f := &h.frames
	if f.kind() != frameData {
		f.payload = append(f.payload, b...)
		return nil
	}
	if f.unknown {
		f.unknown = false
		if f.padding = int(b[0]); f.padding > f.left+len(b)-1 {
			return badFrame("padding beyond its frame")
		}
		b = b[1:]
	}
	b = b[:len(b)-max(0, min(len(b), f.padding-f.left))]
	if len(b) == 0 || !h.isOwn(r) {
		return nil
	}
	if r.state != inBody {
		return badFrame("DATA before the header fields")
	}
	f.body = true
	r.left += int64(len(b)) // counted up: an announced length is checked at the end
	return body(b)
}

// frameEnds acts on a frame that is complete.
func (h *http2) frameEnds(r *response) error {
	f := &h.frames
	p := f.payload
	switch f.kind() {
	case frameData:
		ends := f.has(flagEndStream)
		if err := h.grant(h.isOwn(r) && !ends); err != nil {
			return err
		}
		if ends && h.isOwn(r) {
			return h.answerEnds(r)
		}
		return nil
	case frameHeaders:
		if f.has(flagPadded) {
			if len(p) == 0 || int(p[0]) >= len(p) {
				return badFrame("padding beyond its frame")
			}
			p = p[1 : len(p)-int(p[0])]
		}
		if f.has(flagPriority) {
			if len(p) < 5 {
				return badFrame("HEADERS of %d bytes", len(p))
			}
			p = p[5:]
		}
		f.block, f.blockEnd = f.block[:0], f.has(flagEndStream)
		return h.fieldBlock(p, r)
	case frameContinuation:
		return h.fieldBlock(p, r)
	case frameReset:
		if len(p) != 4 {
			return badFrame("RST_STREAM of %d bytes", len(p))
		}
		if h.isOwn(r) {
			return &resetError{"the stream", binary.BigEndian.Uint32(p)}
		}
		h.answerEnded(f.stream()) // what is left of the request is not wanted
	case frameSettings:
		return h.settings(p)
	case framePing:
		if len(p) != 8 {
			return badFrame("PING of %d bytes", len(p))
		}
		if !f.has(flagAck) {
			return h.tell(append(appendFrame(nil, framePing, flagAck, 0, len(p)), p...))
		}
	case frameWindow:
		return h.window(p)
	case frameGoAway:
		if len(p) < 8 {
			return badFrame("GOAWAY of %d bytes", len(p))
		}
		f.leaving = true
		if r == nil {
			return nil
		}
		r.close = true
		if last := binary.BigEndian.Uint32(p) & windowMost; last < h.id.Load() {
			return &resetError{"the connection", binary.BigEndian.Uint32(p[4:])}
		}
	}
	return nil
}

// fieldBlock takes a part of a block of header fields.
func (h *http2) fieldBlock(p []byte, r *response) error {
	f := &h.frames
	f.block = append(f.block, p...)
	if len(f.block) > maxHeader {
		return oversized("bytes of headers", maxHeader)
	}
	if f.open = !f.has(flagEndHeaders); f.open {
		return nil
	}
	own := h.isOwn(r)
	var wrong error
	f.fields.SetEmitFunc(func(field hpack.HeaderField) {
		if wrong == nil && own {
			wrong = r.takeHTTP2(field.Name, field.Value)
		}
	})
	_, err := f.fields.Write(f.block)
	if err == nil {
		err = f.fields.Close()
	}
	switch {
	case err != nil:
		return badFrame("header fields: %v", err)
	case wrong != nil:
		return wrong
	case !own:
		return nil
	case r.state == inBody && !f.blockEnd:
		return badFrame("header fields within the body")
	case r.state != inBody && r.status == 0:
		return badFrame("header fields without a status")
	case r.state != inBody && r.status < 200 && !f.blockEnd: // an interim answer: the real one follows
		head := r.head
		r.reset()
		r.head = head
		return nil
	case r.state != inBody:
		r.headEnds()
		r.state = inBody
		r.close = r.close || f.leaving
	}
	if f.blockEnd {
		return h.answerEnds(r)
	}
	return nil
}

// takeHTTP2 takes one header field, or one behind the body.
func (r *response) takeHTTP2(name, value string) error {
	if r.head += len(name) + len(value) + 32; r.head > maxHeader { // as RFC 9113 6.5.2 counts
		return oversized("bytes of headers", maxHeader)
	}
	switch {
	case r.state == inBody:
		return nil
	case name == ":status":
		n, err := strconv.Atoi(value)
		if err != nil || n < 100 || len(value) != 3 {
			return badFrame("status %q", r.quoteLine(value, 30))
		}
		r.status = n
		return nil
	}
	return r.takeField(name, value)
}

// answerEnds ends the answer with its stream.
func (h *http2) answerEnds(r *response) error {
	if r.length >= 0 && r.left != r.length && (r.left > 0 || r.status != 304) {
		return badFrame("body of %d bytes, where %d were announced", r.left, r.length)
	}
	r.state = ended
	r.close = r.close || h.frames.leaving
	h.answerEnded(h.frames.stream())
	return nil
}

// settings takes what the server asks for.
func (h *http2) settings(p []byte) error {
	f := &h.frames
	switch {
	case f.has(flagAck):
		return nil
	case len(p)%6 != 0:
		return badFrame("SETTINGS of %d bytes", len(p))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for ; len(p) > 0; p = p[6:] {
		switch value := int64(binary.BigEndian.Uint32(p[2:])); binary.BigEndian.Uint16(p) {
		case settingWindow:
			if value > windowMost {
				return badFrame("window of %d bytes", value)
			}
			h.stream += value - h.initial
			h.initial = value
		case settingFrame:
			if value < frameMost || value >= 1<<24 {
				return badFrame("frames of %d bytes", value)
			}
			h.most = int(value)
		}
	}
	h.changed.Broadcast()
	return h.tell(appendFrame(nil, frameSettings, flagAck, 0, 0))
}

// window takes the news of room for what is sent.
func (h *http2) window(p []byte) error {
	if len(p) != 4 {
		return badFrame("WINDOW_UPDATE of %d bytes", len(p))
	}
	more := int64(binary.BigEndian.Uint32(p) & windowMost)
	h.mu.Lock()
	defer h.mu.Unlock()
	at := &h.conn
	switch h.frames.stream() {
	case 0:
	case h.id.Load():
		at = &h.stream
	default: // of an earlier request
		return nil
	}
	if *at += more; more == 0 || *at > windowMost {
		return badFrame("window of %d bytes more", more)
	}
	h.changed.Broadcast()
	return nil
}

// grant counts a frame of DATA, and tells the server from time to time that it may send as
// much again: on the connection, and, if the frame's stream goes on, on that, each by what
// came on it (RFC 9113 6.9.1: a window beyond 2^31-1 is an error).
func (h *http2) grant(goesOn bool) error {
	f := &h.frames
	if f.counted != f.stream() {
		f.counted, f.owingOn = f.stream(), 0
	}
	f.owing += int64(f.size())
	f.owingOn += int64(f.size())
	var b []byte
	if f.owing > f.grantAt {
		b = binary.BigEndian.AppendUint32(appendFrame(b, frameWindow, 0, 0, 4), uint32(f.owing))
		f.owing = 0
	}
	if goesOn && f.owingOn > f.grantAt {
		b = binary.BigEndian.AppendUint32(appendFrame(b, frameWindow, 0, f.counted, 4), uint32(f.owingOn))
		f.owingOn = 0
	}
	if b == nil {
		return nil
	}
	return h.tell(b)
}

// resetError says that the server ended a stream, or takes it no more.
type resetError struct {
	what string
	code uint32
}

func (e *resetError) Error() string {
	return fmt.Sprintf("the server reset %s (HTTP/2 error %s)", e.what, http2Code(e.code))
}

// http2Code names an error code (RFC 9113 7).
func http2Code(code uint32) string {
	names := [...]string{"NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
		"FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
		"INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED"}
	if int(code) < len(names) {
		return names[code]
	}
	return strconv.FormatUint(uint64(code), 10)
}
