package bus

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// LocalScheme begins the URL of a hub.
const LocalScheme = "local"

const (
	// helloTime is the time that a client and a hub have to accept each other.
	helloTime = 5 * time.Second
	// flushTime is the time that a connection that closes may take to send its queue.
	flushTime = time.Second
	// mostQueued is the maximum number of bytes queued for a process that reads nothing. Beyond it
	// the connection ends.
	mostQueued = 32 << 20
)

// hub is the coordinator's end of the connections of local workers: a socket on the loopback
// interface. It implements [Server], and [Conn] for the coordinator. Workers exchange messages
// with the coordinator, and none with each other.
type hub struct {
	handlers
	listener net.Listener
	token    string

	mu     sync.Mutex
	links  map[*link]bool   // whether its token was right
	owners map[string]*link // by the subject on which they answer
	closed bool
	served sync.WaitGroup
}

var (
	_ Server = (*hub)(nil)
	_ Conn   = (*hub)(nil)
)

// ListenLocal starts a hub, with a new token.
func ListenLocal() (Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for local workers: %w", err)
	}
	h := &hub{listener: listener, token: rand.Text(), links: map[*link]bool{}, owners: map[string]*link{}}
	h.served.Go(h.acceptAll)
	return h, nil
}

// URL implements [Server].
func (h *hub) URL() string { return LocalScheme + "://" + h.listener.Addr().String() }

// Token implements [Server].
func (h *hub) Token() string { return h.token }

// Dial implements [Server].
func (h *hub) Dial() (Conn, error) { return h, nil }

// acceptAll serves each connection in its own goroutine, until the hub closes.
func (h *hub) acceptAll() {
	for {
		conn, err := h.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many open files, for example
			time.Sleep(10 * time.Millisecond)
			continue
		}
		h.served.Go(func() { h.serve(conn) })
	}
}

// serve handles the frames of one connection until it ends.
func (h *hub) serve(conn net.Conn) {
	l := newLink(conn)
	defer l.close()
	if !h.addLink(l, false) {
		return
	}
	defer h.removeLink(l)
	_ = conn.SetReadDeadline(time.Now().Add(helloTime))
	hello, err := readFrame(l.reader, mostHello)
	if err != nil || hello.kind != kindHello {
		return
	}
	if subtle.ConstantTimeCompare(hello.body, []byte(h.token)) != 1 {
		l.send(frame{kind: kindRefuse})
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	l.send(frame{kind: kindHello})
	h.addLink(l, true)
	l.readAll(func(f frame) {
		if f.kind == kindAnswers {
			h.mu.Lock()
			h.owners[f.subject] = l
			h.mu.Unlock()
			return
		}
		h.handle(l, f)
	})
}

// addLink remembers a connection, and whether its token was right. It reports whether the hub is
// open.
func (h *hub) addLink(l *link, trusted bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.links[l] = trusted
	}
	return !h.closed
}

// removeLink forgets a connection that has ended.
func (h *hub) removeLink(l *link) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.links, l)
	for subject, owner := range h.owners {
		if owner == l {
			delete(h.owners, subject)
		}
	}
}

// Ask implements [Conn]. A worker whose connection ends before it answers is [ErrNobody].
func (h *hub) Ask(ctx context.Context, subject string, question []byte) ([]byte, error) {
	h.mu.Lock()
	owner := h.owners[subject]
	h.mu.Unlock()
	if owner == nil {
		return nil, fmt.Errorf("ask %s: %w", subject, ErrNobody)
	}
	answer, err := owner.sendRequest(ctx, subject, question)
	if errors.Is(err, ErrClosed) {
		err = ErrNobody
	}
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", subject, err)
	}
	return answer, nil
}

// Answer implements [Conn].
func (h *hub) Answer(subject string, answer func(question []byte) []byte) error {
	h.setAnswer(subject, answer)
	return nil
}

// Tell implements [Conn].
func (h *hub) Tell(subject string, message []byte) error {
	f := frame{kind: kindTell, subject: subject, body: message}
	if err := f.check(); err != nil {
		return fmt.Errorf("send %s: %w", subject, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for l, trusted := range h.links {
		if trusted {
			l.send(f)
		}
	}
	return nil
}

// Hear implements [Conn].
func (h *hub) Hear(subject string, hear func(message []byte)) error {
	h.setHear(subject, hear)
	return nil
}

// Close ends all connections once their queued messages are sent, or after a moment.
func (h *hub) Close() {
	h.mu.Lock()
	h.closed = true
	var all []*link
	for l := range h.links {
		all = append(all, l)
	}
	h.mu.Unlock()
	_ = h.listener.Close()
	var closing sync.WaitGroup
	for _, l := range all {
		closing.Go(l.close)
	}
	closing.Wait()
	h.served.Wait()
}

// localConn is a worker's connection to a hub. It implements [Conn].
type localConn struct {
	handlers
	*link
	done chan struct{}
}

var _ Conn = (*localConn)(nil)

// dialHub connects to a hub.
func dialHub(address, token string) (Conn, error) {
	conn, err := net.DialTimeout("tcp", address, helloTime)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrClosed, err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(helloTime))
	c := &localConn{link: newLink(conn), done: make(chan struct{})}
	c.send(frame{kind: kindHello, body: []byte(token)})
	hello, err := readFrame(c.reader, mostHello)
	switch {
	case err != nil:
		c.close()
		return nil, fmt.Errorf("%w: %w", ErrClosed, err)
	case hello.kind != kindHello:
		c.close()
		return nil, fmt.Errorf("%w: the coordinator at %s does not accept the token", ErrRefused, address)
	}
	_ = conn.SetReadDeadline(time.Time{})
	go func() {
		defer close(c.done)
		c.readAll(func(f frame) { c.handle(c.link, f) })
		c.close()
	}()
	return c, nil
}

// Ask implements [Conn].
func (c *localConn) Ask(ctx context.Context, subject string, question []byte) ([]byte, error) {
	answer, err := c.sendRequest(ctx, subject, question)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", subject, err)
	}
	return answer, nil
}

// Answer implements [Conn].
func (c *localConn) Answer(subject string, answer func(question []byte) []byte) error {
	c.setAnswer(subject, answer)
	c.send(frame{kind: kindAnswers, subject: subject})
	return nil
}

// Tell implements [Conn].
func (c *localConn) Tell(subject string, message []byte) error {
	f := frame{kind: kindTell, subject: subject, body: message}
	if err := f.check(); err != nil {
		return fmt.Errorf("send %s: %w", subject, err)
	}
	c.send(f)
	return nil
}

// Hear implements [Conn].
func (c *localConn) Hear(subject string, hear func(message []byte)) error {
	c.setHear(subject, hear)
	return nil
}

// Close implements [Conn].
func (c *localConn) Close() {
	c.close()
	<-c.done
}

// handlers are the functions that a process has for subjects.
type handlers struct {
	mu      sync.Mutex
	answers map[string]func([]byte) []byte
	hears   map[string]func([]byte)
}

func (h *handlers) setAnswer(subject string, answer func([]byte) []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.answers == nil {
		h.answers = map[string]func([]byte) []byte{}
	}
	h.answers[subject] = answer
}

func (h *handlers) setHear(subject string, hear func([]byte)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hears == nil {
		h.hears = map[string]func([]byte){}
	}
	h.hears[subject] = hear
}

// handle calls the function that a frame is for. Requests have their own goroutines.
func (h *handlers) handle(l *link, f frame) {
	h.mu.Lock()
	answer, hear := h.answers[f.subject], h.hears[f.subject]
	h.mu.Unlock()
	switch {
	case f.kind == kindTell && hear != nil:
		hear(f.body)
	case f.kind == kindAsk && answer == nil:
		l.send(frame{kind: kindNobody, number: f.number})
	case f.kind == kindAsk:
		go func() {
			if a := answer(f.body); a != nil {
				l.send(frame{kind: kindAnswer, number: f.number, body: a})
			}
		}()
	case f.kind == kindAnswer, f.kind == kindNobody:
		l.deliverAnswer(f)
	}
}
