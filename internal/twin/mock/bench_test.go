package mock

import (
	"io"
	"net"
	"testing"

	"pitot/internal/clock"
	"pitot/internal/twin"
)

// pairs gives the server's ends of n loopback connections whose other ends are
// read and thrown away.
func pairs(b *testing.B, n int) []net.Conn {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	conns := make([]net.Conn, n)
	for i := range conns {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			b.Skip(err) // too few descriptors
		}
		go func() { _, _ = io.Copy(io.Discard, c) }()
		if conns[i], err = l.Accept(); err != nil {
			b.Skip(err)
		}
		b.Cleanup(func() { conns[i].Close(); c.Close() })
	}
	return conns
}

const benchStreams = 1000

// BenchmarkToken is what one token of one of 1,000 streams costs: from the
// engine's emission to the socket, readers included.
func BenchmarkToken(b *testing.B) {
	s := New(Config{})
	defer s.alarm.Close()
	for i, nc := range pairs(b, benchStreams) {
		st := newStream(newConn(s, nc), ask{chat: true, stream: true, prompt: 10, output: 1 << 40}, Truth{N: int64(i)})
		s.jobs[st.id] = st
		s.deliver(twin.Emission{ID: st.id, Role: true})
	}
	i := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		s.deliver(twin.Emission{ID: i % benchStreams, At: clock.Now(), Tokens: 1})
		i++
	}
}

// BenchmarkTokenBare is the floor under [BenchmarkToken]: the same bytes to
// the same number of sockets, and nothing else.
func BenchmarkTokenBare(b *testing.B) {
	conns := pairs(b, benchStreams)
	a := ask{chat: true, stream: true}
	tpl := newTemplate(a, "chatcmpl-0", "mock", 1700000000)
	event := frame(append(tpl.token(make([]byte, frameSpace), a, 0, 0, 1, ""), "\r\n"...))
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		if _, err := conns[i%benchStreams].Write(event); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

// BenchmarkEvent is the same without sockets: building one event.
func BenchmarkEvent(b *testing.B) {
	a := ask{chat: true, stream: true}
	tpl := newTemplate(a, "chatcmpl-0", "mock", 1700000000)
	buf := make([]byte, frameSpace, 1<<10)
	b.ReportAllocs()
	for b.Loop() {
		buf = tpl.token(buf[:frameSpace], a, 0, 0, 1, "")
		_ = frame(append(buf, "\r\n"...))
	}
}
