package bus

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

// listenLocal returns a hub and a function that connects to it.
func listenLocal(t *testing.T) (h *hub, dial func() Conn) {
	t.Helper()
	s, err := ListenLocal()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s.(*hub), func() Conn {
		t.Helper()
		c, err := Dial(Access{URL: s.URL(), Token: s.Token()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
}

// bounded returns a context that ends before the test does.
func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// Requests are answered in both directions, and messages reach all workers in order.
func TestLocal(t *testing.T) {
	h, dial := listenLocal(t)
	a, b := dial(), dial()
	ctx := bounded(t)
	if _, err := h.Ask(ctx, "sum", nil); !errors.Is(err, ErrNobody) {
		t.Errorf("before a worker answers: %v", err)
	}
	if _, err := a.Ask(ctx, "report", nil); !errors.Is(err, ErrNobody) {
		t.Errorf("before the coordinator answers: %v", err)
	}
	_ = h.Answer("report", func(q []byte) []byte { return append(q, '?') })
	_ = a.Answer("sum.a", func(q []byte) []byte { return append(q, 'a') })
	_ = b.Answer("sum.b", func(q []byte) []byte { return append(q, 'b') })
	for _, c := range []Conn{a, b} { // the hub knows the subjects of a worker before its next request
		if got, err := c.Ask(ctx, "report", []byte("1")); err != nil || string(got) != "1?" {
			t.Errorf("a worker is answered %q, %v", got, err)
		}
	}
	for _, name := range []string{"a", "b"} {
		if got, err := h.Ask(ctx, "sum."+name, []byte("2")); err != nil || string(got) != "2"+name {
			t.Errorf("the coordinator is answered %q, %v", got, err)
		}
	}
	heard := make(chan string, 100)
	_ = a.Hear("end", func(m []byte) { heard <- "a" + string(m) })
	_ = b.Hear("end", func(m []byte) { heard <- "b" + string(m) })
	_ = h.Tell("other", []byte("9"))
	for _, m := range []string{"1", "2", "3"} {
		_ = h.Tell("end", []byte(m))
	}
	var all []string
	for range 6 {
		all = append(all, <-heard)
	}
	of := func(name string) (got string) {
		for _, m := range all {
			if rest, ok := strings.CutPrefix(m, name); ok {
				got += rest
			}
		}
		return got
	}
	if of("a") != "123" || of("b") != "123" {
		t.Errorf("heard %v", all)
	}
	told := make(chan string, 1)
	_ = h.Hear("note", func(m []byte) { told <- string(m) })
	_ = a.Tell("note", []byte("done"))
	if m := <-told; m != "done" {
		t.Errorf("the coordinator heard %q", m)
	}
	large := make([]byte, mostFrame)
	if _, err := a.Ask(ctx, "report", large); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("a message that is too large: %v", err)
	}
	if err := h.Tell("end", large); err == nil {
		t.Error("the hub sends a message that is too large")
	}
}

// An answer that is nil is not sent: the request ends with its context.
func TestLocalNoAnswer(t *testing.T) {
	h, dial := listenLocal(t)
	ctx, cancel := context.WithCancel(t.Context())
	_ = h.Answer("join", func([]byte) []byte { cancel(); return nil })
	if _, err := dial().Ask(ctx, "join", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}

// A client needs the token, and a hub that is gone is no server to wait for.
func TestLocalRefused(t *testing.T) {
	h, dial := listenLocal(t)
	if _, err := Dial(Access{URL: h.URL(), Token: "wrong-token"}); !errors.Is(err, ErrRefused) || strings.Contains(err.Error(), "wrong-token") {
		t.Errorf("with a wrong token: %v", err)
	}
	silent, err := net.Dial("tcp", strings.TrimPrefix(h.URL(), LocalScheme+"://"))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c, asked := dial(), make(chan struct{})
	_ = h.Answer("wait", func([]byte) []byte { close(asked); return nil })
	ended := make(chan error, 1)
	go func() {
		_, err := c.Ask(context.Background(), "wait", nil)
		ended <- err
	}()
	<-asked
	heard := make(chan string, 1)
	_ = c.Hear("end", func(m []byte) { heard <- string(m) })
	_ = h.Tell("end", []byte("bye"))
	begin := time.Now()
	h.Close() // the last message is sent, and a client that is silent does not delay the end
	if took := time.Since(begin); took > helloTime/2 {
		t.Errorf("closing took %v", took)
	}
	if m := <-heard; m != "bye" {
		t.Errorf("heard %q", m)
	}
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Errorf("a request under way: %v", err)
	}
	if _, err := c.Ask(t.Context(), "wait", nil); !errors.Is(err, ErrClosed) {
		t.Errorf("a request afterwards: %v", err)
	}
	if _, err := Dial(Access{URL: h.URL(), Token: h.Token()}); !errors.Is(err, ErrClosed) {
		t.Errorf("a new client: %v", err)
	}
}

// A worker that dies while it is asked, or before, answers nothing.
func TestLocalWorkerDies(t *testing.T) {
	h, dial := listenLocal(t)
	_ = h.Answer("report", func([]byte) []byte { return []byte{} })
	c, asked := dial(), make(chan struct{})
	_ = c.Answer("prepare", func([]byte) []byte { close(asked); return nil })
	if _, err := c.Ask(bounded(t), "report", nil); err != nil {
		t.Fatal(err)
	}
	go func() {
		<-asked
		_ = c.(*localConn).conn.Close()
	}()
	for range 2 {
		if _, err := h.Ask(bounded(t), "prepare", nil); !errors.Is(err, ErrNobody) {
			t.Errorf("it ends with %v", err)
		}
	}
}

// Nothing waits for a worker that reads nothing: messages are queued, up to a limit at which its
// connection ends.
func TestLocalStalled(t *testing.T) {
	h, dial := listenLocal(t)
	_ = h.Answer("report", func([]byte) []byte { return []byte{} })
	c, stop := dial(), make(chan struct{})
	stalled, other := make(chan struct{}), dial()
	_ = c.Hear("word", func([]byte) {
		select {
		case <-stalled:
		default:
			close(stalled)
		}
		<-stop
	})
	defer close(stop)
	heard := make(chan struct{}, 1000)
	_ = other.Hear("word", func([]byte) { heard <- struct{}{} })
	_ = h.Tell("word", nil)
	<-stalled
	message, sent := make([]byte, 1<<20), 1
	open := func() int {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.links)
	}
	for ; open() == 2; sent++ {
		_ = h.Tell("word", message)
		if _, err := other.Ask(bounded(t), "report", nil); err != nil {
			t.Fatal(err)
		}
		if sent > 500 {
			t.Fatal("the connection of a worker that reads nothing goes on")
		}
	}
	for range sent {
		<-heard
	}
}

func FuzzReadFrame(f *testing.F) {
	for kind := range kindCount {
		x := frame{kind: kind, number: 7, subject: "a.b", body: []byte("body")}
		f.Add(x.appendTo(nil))
	}
	f.Add([]byte{0, 0, 0, 3, 2, 0, 9})
	f.Add([]byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := readFrame(bytes.NewReader(b), mostHello)
		if err != nil {
			return
		}
		again, err := readFrame(bytes.NewReader(got.appendTo(nil)), 2*mostHello)
		if err != nil || again.kind != got.kind || again.number != got.number || again.subject != got.subject || !bytes.Equal(again.body, got.body) {
			t.Errorf("%+v is read again as %+v, %v", got, again, err)
		}
	})
}
