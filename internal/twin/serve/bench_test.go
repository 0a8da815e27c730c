package serve

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

// streaming is a streamed chat's request for so many tokens.
func streaming(tokens int) ask {
	return ask{chat: true, stream: true, n: 1, prompts: []prompt{{tokens: 10}}, prompt: 10, output: tokens, limit: tokens, logprobs: -1}
}

// lone is the first choice of an answer without a connection.
func lone(a ask) *choice {
	s := New(Config{})
	s.alarm.Close()
	st := &stream{s: s, tpl: newTemplate(a, "chatcmpl-0", "mock", 1700000000)}
	st.choices = newChoices(st)
	return st.choices[0]
}

// BenchmarkToken is what one token of one of 1,000 streams costs: from the
// engine's emission to the socket, readers included.
func BenchmarkToken(b *testing.B) {
	s := New(Config{})
	defer s.alarm.Close()
	for i, nc := range pairs(b, benchStreams) {
		st := newStream(newConn(s, nc), streaming(1<<40), Truth{N: int64(i)})
		s.handle(0, message{kind: admit, st: st})
		s.deliver(st.choices[0], twin.Emission{ID: int64(i), Role: true})
	}
	i := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		now := clock.Now()
		e := twin.Emission{ID: i % benchStreams, At: s.scale.engine(now), Tokens: 1}
		c := s.jobs[e.ID]
		s.meter.emission(s, c, e, now)
		s.deliver(c, e)
		i++
	}
}

// BenchmarkTokenBare is the floor under [BenchmarkToken]: the same bytes to
// the same number of sockets, and nothing else.
func BenchmarkTokenBare(b *testing.B) {
	conns := pairs(b, benchStreams)
	c := lone(streaming(2))
	event, _ := c.st.tpl.token(make([]byte, frameSpace), c, 0, 1, "")
	event = frame(append(event, "\r\n"...))
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
	c := lone(streaming(2))
	buf := make([]byte, frameSpace, 1<<10)
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = c.st.tpl.token(buf[:frameSpace], c, 0, 1, "")
		_ = frame(append(buf, "\r\n"...))
	}
}
