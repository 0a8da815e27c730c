package serve

import (
	"io"
	"net"
	"net/http"
	"testing"

	"pitot/internal/clock"
	"pitot/internal/sim"
	"pitot/internal/sim/serve/dialect"
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

// streaming is a streamed chat of a server, answer number n.
func streaming(b *testing.B, s *Server, n int64) *dialect.Call {
	b.Helper()
	body := `{"messages":[{"role":"user","content":"x"}],"stream":true,"ignore_eos":true,"max_tokens":100000}`
	route := s.routes["/v1/chat/completions"]
	call, refused := route.Generate(&dialect.Request{Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body), N: n})
	if refused != nil {
		b.Fatal(string(refused.Body))
	}
	return call
}

// BenchmarkToken is what one token of one of 1,000 streams costs: from the
// engine's emission to the socket, readers included.
func BenchmarkToken(b *testing.B) {
	s := New(Config{})
	defer s.alarm.Close()
	for i, nc := range pairs(b, benchStreams) {
		st := newStream(newConn(s, nc), streaming(b, s, int64(i)), Truth{N: int64(i)})
		s.handle(0, message{kind: admit, st: st})
		s.deliver(&st.choices[0], sim.Emission{ID: int64(i), Role: true})
	}
	i := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		now := clock.Now()
		e := sim.Emission{ID: i % benchStreams, At: s.scale.engineTime(now), Tokens: 1}
		c := s.jobs[e.ID]
		s.meter.countEmission(s, c, e, now)
		s.deliver(c, e)
		i++
	}
}

// BenchmarkTokenBare is the floor under [BenchmarkToken]: the same bytes to
// the same number of sockets, and nothing else.
func BenchmarkTokenBare(b *testing.B) {
	conns := pairs(b, benchStreams)
	s := New(Config{})
	defer s.alarm.Close()
	event, _ := streaming(b, s, 0).Writer.Tokens(make([]byte, frameSpace), 0, 0, 1, "")
	event = frameChunk(append(event, "\r\n"...))
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		if _, err := conns[i%benchStreams].Write(event); err != nil {
			b.Fatal(err)
		}
		i++
	}
}
