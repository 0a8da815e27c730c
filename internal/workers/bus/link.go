package bus

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// frameKind says what a frame is.
type frameKind byte

const (
	kindHello   frameKind = iota // a client's token, or that it is accepted
	kindRefuse                   // the token is wrong
	kindAsk                      // a request on a subject
	kindAnswer                   // the answer to the request of a number
	kindNobody                   // nobody answers the request of a number
	kindTell                     // a message on a subject
	kindAnswers                  // the sender answers on a subject
	kindCount
)

// frame is one message between a hub and a worker.
type frame struct {
	kind    frameKind
	number  uint64 // of a request and of its answer
	subject string
	body    []byte
}

const (
	mostFrame = 16 << 20 // bytes of a frame
	mostHello = 1 << 10  // and of one before the token is known to be right
)

// check returns an error where a frame is too large to send.
func (f *frame) check() error {
	if size := len(f.subject) + len(f.body); size > mostFrame-2*binary.MaxVarintLen64 {
		return fmt.Errorf("a message of %d bytes is too large", size)
	}
	return nil
}

// appendTo appends a frame: the length of what follows in four bytes, kind, number, length of the
// subject, subject, body.
func (f *frame) appendTo(b []byte) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0, byte(f.kind))
	b = binary.AppendUvarint(b, f.number)
	b = binary.AppendUvarint(b, uint64(len(f.subject)))
	b = append(append(b, f.subject...), f.body...)
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

// errFrame says that bytes are no frame.
var errFrame = errors.New("not a frame")

// readFrame reads one frame of at most some bytes.
func readFrame(r io.Reader, most uint32) (f frame, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return f, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size == 0 || size > most {
		return f, fmt.Errorf("%w: it has %d bytes", errFrame, size)
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(r, b); err != nil {
		return f, err
	}
	f.kind, b = frameKind(b[0]), b[1:]
	number, n := binary.Uvarint(b)
	if n <= 0 || f.kind >= kindCount {
		return f, errFrame
	}
	f.number, b = number, b[n:]
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b)-n) {
		return f, errFrame
	}
	f.subject, f.body = string(b[n:n+int(length)]), b[n+int(length):]
	return f, nil
}

// link sends and reads the frames of one connection. Sending never waits: a goroutine writes what
// is queued.
type link struct {
	conn    net.Conn
	reader  *bufio.Reader
	more    chan struct{} // something is queued
	ending  chan struct{} // closed when no more is queued
	written chan struct{} // closed when the writer has ended

	mu      sync.Mutex
	queued  []byte
	ended   bool
	number  uint64                  // of the last request
	waiting map[uint64]chan<- frame // requests without an answer
}

// newLink starts to write what is queued for a connection.
func newLink(conn net.Conn) *link {
	l := &link{
		conn: conn, reader: bufio.NewReader(conn), more: make(chan struct{}, 1), ending: make(chan struct{}), written: make(chan struct{}),
		waiting: map[uint64]chan<- frame{},
	}
	go l.writeAll()
	return l
}

// send queues a frame. A connection that has ended drops it. One whose process reads nothing for
// long ends.
func (l *link) send(f frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	if l.queued = f.appendTo(l.queued); len(l.queued) > mostQueued {
		l.queued = nil
		l.failWaiting()
		_ = l.conn.Close()
		return
	}
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// writeAll writes what is queued until the connection ends, and closes it.
func (l *link) writeAll() {
	defer close(l.written)
	defer l.conn.Close()
	for open := true; open; {
		select {
		case <-l.more:
		case <-l.ending:
			_ = l.conn.SetWriteDeadline(time.Now().Add(flushTime))
			open = false
		}
		l.mu.Lock()
		b := l.queued
		l.queued = nil
		l.mu.Unlock()
		if _, err := l.conn.Write(b); err != nil {
			return // readAll ends too
		}
	}
}

// readAll calls a function with each frame until the connection ends.
func (l *link) readAll(handle func(frame)) {
	for {
		f, err := readFrame(l.reader, mostFrame)
		if err != nil {
			return
		}
		handle(f)
	}
}

// close ends the connection once what is queued is sent, or after a moment.
func (l *link) close() {
	l.mu.Lock()
	l.failWaiting()
	l.mu.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(flushTime)) // of a write that waits already
	<-l.written
}

// failWaiting fails the requests that wait for an answer. The caller holds l.mu.
func (l *link) failWaiting() {
	if l.ended {
		return
	}
	l.ended = true
	close(l.ending)
	for _, answer := range l.waiting {
		close(answer)
	}
	l.waiting = nil
}

// sendRequest sends a request and waits for its answer.
func (l *link) sendRequest(ctx context.Context, subject string, question []byte) ([]byte, error) {
	answer := make(chan frame, 1)
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return nil, ErrClosed
	}
	l.number++
	f := frame{kind: kindAsk, number: l.number, subject: subject, body: question}
	l.waiting[f.number] = answer
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.waiting, f.number)
		l.mu.Unlock()
	}()
	if err := f.check(); err != nil {
		return nil, err
	}
	l.send(f)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case got, open := <-answer:
		if !open {
			return nil, ErrClosed
		}
		if got.kind == kindNobody {
			return nil, ErrNobody
		}
		return got.body, nil
	}
}

// deliverAnswer hands an answer to the request that waits for it.
func (l *link) deliverAnswer(f frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if answer := l.waiting[f.number]; answer != nil {
		delete(l.waiting, f.number)
		answer <- f
	}
}
