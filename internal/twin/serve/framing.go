package serve

import "strconv"

// framing puts the answers to a connection's requests, one at a time, into bytes and writes
// them. A head is that of HTTP/1.1, its empty line included.
type framing interface {
	// whole writes an answer whose length its head announces.
	whole(head, body []byte)
	// open begins an answer that is streamed.
	open(head []byte)
	// chunk writes a stretch of its body, which follows the frameSpace free bytes of b.
	chunk(b []byte)
	// end ends it.
	end()
}

// frameSpace is what is left free before an event for what its framing puts before it.
const frameSpace = 10

// http1 is HTTP/1.1: a stream's body is chunked, unless the answer says that it is of
// HTTP/1.0.
type http1 struct{ out *outbox }

func (h http1) whole(head, body []byte) { h.out.write(append(head, body...)) }
func (h http1) open(head []byte)        { h.out.write(head) }
func (h http1) chunk(b []byte)          { h.out.write(frame(append(b, "\r\n"...))) }
func (h http1) end()                    { h.out.write([]byte("0\r\n\r\n")) }

// frame makes a chunk of b: frameSpace free bytes, the data, and a final CRLF.
// It writes the size into the free bytes and gives what is to be sent.
func frame(b []byte) []byte {
	var size [16]byte
	line := strconv.AppendInt(size[:0], int64(len(b)-frameSpace-2), 16)
	line = append(line, "\r\n"...)
	at := frameSpace - len(line)
	copy(b[at:], line)
	return b[at:]
}
