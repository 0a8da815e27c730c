package client

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"

	"pitot/internal/client/stamp"
	"pitot/internal/results/record"
)

// reset closes a connection with a reset in place of an end.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	c.Close()
}

// exchange sends one request on a connection of its own and gives its row.
func exchange(t *testing.T, d *Dialer, change func(*Exchange)) record.Row {
	t.Helper()
	x := asked("/x", 0)
	x.Asked = testAsked
	if change != nil {
		change(x)
	}
	c, err := d.Connect(t.Context())
	if err != nil {
		x.Refuse(0, err)
		return x.Row
	}
	ended := make(chan struct{})
	c.StartReading(func(*Conn, *Exchange, bool) { close(ended) })
	c.Send(x)
	<-ended
	c.Abort()
	return x.Row
}

// A reset is a reset wherever it comes. Before the first token the scout looks
// at the socket, and the kernel tells of a reset only once.
func TestReset(t *testing.T) {
	whole := streamed(textEvent("a"), finish("stop"), done)
	part, _, _ := strings.Cut(whole, chunk(event(finish("stop"))))
	stages := []struct{ name, answer, class string }{
		{"after it was accepted", "", record.ErrReset},
		{"after the headers", streamHead, record.ErrReset},
		{"in the stream", part, record.ErrReset},
		{"after the last token", whole[:len(whole)-len(lastChunk)], ""},
	}
	readers := stamp.NewReaders()
	defer readers.Close()
	for _, s := range stages {
		for how, r := range map[string]*stamp.Readers{"readers": readers, "a goroutine": nil} {
			addr := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
				if _, err := readHead(c); err == nil {
					_, _ = io.WriteString(c, s.answer)
					reset(c)
				}
			})
			d := &Dialer{Endpoint: Endpoint{Addr: addr, Host: addr}, Stamps: true, Readers: r}
			for range 20 {
				if row := exchange(t, d, nil); row.Error != s.class || s.class == "" && row.Outcome != record.OK {
					t.Errorf("%s, read by %s: %v %s %q", s.name, how, row.Outcome, row.Error, row.Detail)
					break
				}
			}
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	d := &Dialer{Endpoint: Endpoint{Addr: addr, Host: addr}}
	if row := exchange(t, d, nil); row.Error != record.ErrConnect || !strings.Contains(row.Detail, "refused") {
		t.Errorf("while connecting: %s %q", row.Error, row.Detail)
	}
}

// An alert is TLS's, whenever it comes: with TLS 1.3 a server that wants a
// certificate says so after the client's handshake has ended.
func TestTLSAlert(t *testing.T) {
	cert, pool := selfSigned(t)
	for version, want := range map[uint16]string{tls.VersionTLS12: "handshake failure", tls.VersionTLS13: "certificate required"} {
		addr := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
			s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAnyClientCert, MaxVersion: version})
			_ = s.Handshake()
			_, _ = io.Copy(io.Discard, c) // what was sent with it, so that no reset takes the alert back
		})
		d := &Dialer{Endpoint: Endpoint{TLS: true, Addr: addr, Host: addr, Config: &tls.Config{RootCAs: pool}}, Stamps: true}
		row := exchange(t, d, nil)
		if row.Error != record.ErrTLS || !strings.Contains(row.Detail, "tls: ") {
			t.Errorf("%#x: %s %q, want %s", version, row.Error, row.Detail, want)
		}
		if version == tls.VersionTLS13 && !strings.Contains(row.Detail, want) {
			t.Errorf("%q, want %s", row.Detail, want)
		}
	}
}
