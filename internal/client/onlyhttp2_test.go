package client

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"

	"pitot/internal/results/record"
)

// A server that speaks only HTTP/2 gives one error, however it shows.
func TestOnlyHTTP2(t *testing.T) {
	const (
		settings = "\x00\x00\x06\x04\x00\x00\x00\x00\x00" + "\x00\x03\x00\x00\x00\x0a"
		goAway   = "\x00\x00\x08\x07\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x01"
	)
	after := func(answer string) func(net.Conn) {
		return func(c net.Conn) {
			_, _ = readHead(c)
			_, _ = io.WriteString(c, answer)
		}
	}
	cert, pool := selfSigned(t)
	over := func(version uint16, protocols []string, serve func(net.Conn)) func(net.Conn) {
		return func(c net.Conn) {
			s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: protocols, MaxVersion: version})
			if s.Handshake() == nil {
				serve(s)
			}
			_, _ = io.Copy(io.Discard, c) // no reset takes back what was sent
		}
	}
	for name, c := range map[string]struct {
		tls   bool
		serve func(net.Conn)
	}{
		"SETTINGS after the request": {false, after(settings)},
		"GOAWAY after the request":   {false, after(goAway)},
		"SETTINGS at once": {false, func(c net.Conn) {
			_, _ = io.WriteString(c, settings)
			_, _ = readHead(c)
		}},
		"TLS 1.2, alert":  {true, over(tls.VersionTLS12, []string{"another"}, ok)},
		"TLS 1.3, alert":  {true, over(tls.VersionTLS13, []string{"another"}, ok)},
		"ALPN only h2":    {true, over(tls.VersionTLS13, []string{"h2"}, after(settings))}, // Go's server then chooses none
		"ALPN chooses h2": {true, func(c net.Conn) { over(tls.VersionTLS12, []string{"http/1.1"}, ok)(choosesHTTP2{c}) }},
	} {
		addr := listen(t, "tcp", "127.0.0.1:0", c.serve)
		d := &Dialer{Endpoint: Endpoint{TLS: c.tls, Addr: addr, Host: addr, Config: &tls.Config{RootCAs: pool}}, Stamps: true}
		_, err := fetch(d)
		if class, detail := Classify(err); class != record.ErrHTTP2 || detail != errOnlyHTTP2.Error() {
			t.Errorf("%s: %s, %v", name, class, err)
		}
		if row := exchange(t, d, nil); row.Error != record.ErrHTTP2 || row.Detail != errOnlyHTTP2.Error() {
			t.Errorf("%s: of a request %s %q", name, row.Error, row.Detail)
		}
	}
	for _, answer := range []string{settings, goAway} { // byte by byte
		var r response
		var err error
		n := 0
		for r.reset(); err == nil && n < len(answer); n++ {
			_, err = r.feed([]byte{answer[n]}, nil)
		}
		if err != errOnlyHTTP2 || n != 9 {
			t.Errorf("%q: %v after %d bytes", answer, err, n)
		}
	}
	for name, answer := range map[string]string{
		"zeros":            strings.Repeat("\x00", 20),
		"another frame":    "\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x00\x00\x01",
		"within a stream":  "\x00\x00\x06\x04\x00\x00\x00\x00\x01\x00\x03\x00\x00\x00\x0a",
		"HTTP/2's version": "HTTP/2 200\r\n\r\n",
	} {
		addr := listen(t, "tcp", "127.0.0.1:0", after(answer))
		_, err := fetch(&Dialer{Endpoint: Endpoint{Addr: addr, Host: addr}})
		if class, _ := Classify(err); err == nil || class == record.ErrHTTP2 {
			t.Errorf("%s: %s, %v", name, class, err)
		}
	}
}

// choosesHTTP2 is the socket of a TLS 1.2 server that chooses h2, which was not offered: its
// ServerHello is rewritten.
type choosesHTTP2 struct{ net.Conn }

func (c choosesHTTP2) Write(b []byte) (int, error) {
	const offered, chosen = "\x00\x10\x00\x0b\x00\x09\x08http/1.1", "\x00\x10\x00\x05\x00\x03\x02h2"
	at := bytes.Index(b, []byte(offered))
	if at < 0 {
		return c.Conn.Write(b)
	}
	const (
		cut        = len(offered) - len(chosen)
		message    = 3 // where lengths are: of the TLS record,
		handshake  = 7 // of the ServerHello without its high byte,
		extensions = 5 + 4 + 2 + 32 + 1 + 2 + 1
	)
	changed := append(append(bytes.Clone(b[:at]), chosen...), b[at+len(offered):]...)
	session := int(b[5+4+2+32])
	for _, length := range [][]byte{changed[message:], changed[handshake:], changed[extensions+session:]} {
		binary.BigEndian.PutUint16(length, binary.BigEndian.Uint16(length)-uint16(cut))
	}
	_, err := c.Conn.Write(changed)
	return len(b), err
}
