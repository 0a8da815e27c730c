package client

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pitot/internal/client/api"
	"pitot/internal/results/record"
)

func TestParseTarget(t *testing.T) {
	const chat, completions = "/v1/chat/completions", "/v1/completions"
	for _, c := range []struct{ spec, addr, host, base, route, url string }{
		{"http://h:1", "h:1", "h:1", "", "", "http://h:1"},
		{"h:1", "h:1", "h:1", "", "", "http://h:1"},
		{"h", "h:80", "h", "", "", "http://h"},
		{"h:", "h:80", "h", "", "", "http://h"},
		{"https://h", "h:443", "h", "", "", "https://h"},
		{"HTTP://h:1/", "h:1", "h:1", "", "", "http://h:1"},
		{"http://h:1/v1", "h:1", "h:1", "", "", "http://h:1"},
		{"http://h:1/v1/", "h:1", "h:1", "", "", "http://h:1"},
		{"http://h:1/v1/chat/completions", "h:1", "h:1", "", chat, "http://h:1"},
		{"http://h:1/v1/completions/", "h:1", "h:1", "", completions, "http://h:1"},
		{"http://h/openai/v1", "h:80", "h", "/openai", "", "http://h"},
		{"http://h/openai/v1/chat/completions", "h:80", "h", "/openai", "/openai/v1/chat/completions", "http://h"},
		{"http://h/openai/v1/models", "h:80", "h", "/openai", "", "http://h"},
		{"http://h/chat/completions", "h:80", "h", "", "/chat/completions", "http://h"},
		{"http://h/openai/deployments/d/chat/completions?api-version=2024-10-21", "h:80", "h", "/openai/deployments/d", "/openai/deployments/d/chat/completions?api-version=2024-10-21", "http://h"},
		{"http://[::1]:8000/v1", "[::1]:8000", "[::1]:8000", "", "", "http://[::1]:8000"},
		{"https://[::1]", "[::1]:443", "[::1]", "", "", "https://[::1]"},
		{"http://h/a%20b/v1", "h:80", "h", "/a%20b", "", "http://h"},
		{"unix:///run/s.sock", "/run/s.sock", "localhost", "", "", "unix:///run/s.sock:"},
		{"unix:///run/s.sock:/v1/completions", "/run/s.sock", "localhost", "", completions, "unix:///run/s.sock:"},
		{"unix:///run/s.sock:/x/v1", "/run/s.sock", "localhost", "/x", "", "unix:///run/s.sock:"},
	} {
		e, route, err := ParseTarget(c.spec)
		if err != nil {
			t.Errorf("%s: %v", c.spec, err)
			continue
		}
		if e.Addr != c.addr || e.Host != c.host || e.Base != c.base || route != c.route || e.URL("") != c.url ||
			e.TLS != strings.HasPrefix(c.spec, "https") || e.Unix != strings.HasPrefix(c.spec, "unix") {
			t.Errorf("%s: %+v, route %q, URL %s", c.spec, e, route, e.URL(""))
		}
	}
	for _, spec := range []string{
		"", "http://", "http:///v1", "ftp://h", "ws://h:1", "http://h:port", "http://h:0", "http://h:65536", "http://[::1", "http://h h",
		"http://h/\x00", "http://h/%zz", "http://user:secret@h:1", "user@h:1", "unix://", "unix://relative", "unix:///s:v1", "unix:///s:/v1\r\nx",
		"h/v1/completions? ", "h/v1/completions?a=b c",
	} {
		if e, route, err := ParseTarget(spec); err == nil {
			t.Errorf("%q is taken as %+v, route %q", spec, e, route)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error repeats the password: %v", spec, err)
		}
	}
}

func FuzzParseTarget(f *testing.F) {
	for _, s := range []string{"http://h:1/v1", "h:1", "unix:///s:/v1", "https://[::1]:2/a/v1/chat/completions?x=y", "user:pw@h"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		e, route, err := ParseTarget(spec)
		if err != nil {
			return
		}
		if e.Addr == "" || e.Host == "" || strings.HasSuffix(e.Base, "/") || strings.ContainsAny(e.Host+e.Base+route, "\r\n \x00") {
			t.Fatalf("%q: %+v, route %q", spec, e, route)
		}
		if _, ok := api.ByPath(route); ok != (route != "") {
			t.Fatalf("%q: route %q", spec, route)
		}
	})
}

// listen serves connections on loopback until the test ends.
func listen(t *testing.T, network, addr string, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
	return l.Addr().String()
}

// readHead reads the head of one request.
func readHead(c net.Conn) (string, error) {
	var head []byte
	one := make([]byte, 1)
	for !strings.HasSuffix(string(head), "\r\n\r\n") {
		if _, err := io.ReadFull(c, one); err != nil {
			return string(head), err
		}
		head = append(head, one[0])
	}
	return string(head), nil
}

// ok answers every request of a connection, which must have no body.
func ok(c net.Conn) {
	for {
		head, err := readHead(c)
		if err != nil {
			return
		}
		path := strings.Fields(head)[1]
		_, _ = io.WriteString(c, answered("200 OK", "text/plain", "you asked for "+path))
	}
}

func fetch(d *Dialer) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	a, err := d.Fetch(ctx, "GET", "/x", nil, nil, "")
	return string(a.Body), err
}

func wantClass(t *testing.T, err error, want string) {
	t.Helper()
	if class, detail := Classify(err); err == nil || class != want {
		t.Errorf("error %v is of class %q (%s), want %q", err, class, detail, want)
	}
}

func TestFetch(t *testing.T) {
	addr := listen(t, "tcp", "127.0.0.1:0", ok)
	for _, stamps := range []bool{false, true} {
		body, err := fetch(&Dialer{Endpoint: Endpoint{Addr: addr, Host: addr}, Stamps: stamps, Timeout: time.Minute})
		if err != nil || body != "you asked for /x" {
			t.Errorf("%q, %v", body, err)
		}
	}
	sock := filepath.Join(t.TempDir(), "s")
	listen(t, "unix", sock, ok)
	if body, err := fetch(&Dialer{Endpoint: Endpoint{Addr: sock, Host: "localhost", Unix: true}, Stamps: true}); err != nil || body != "you asked for /x" {
		t.Errorf("unix socket: %q, %v", body, err)
	}
}

func TestFetchHasADeadline(t *testing.T) {
	addr := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	d := &Dialer{Endpoint: Endpoint{Addr: addr, Host: addr}}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := d.Fetch(ctx, "GET", "/", nil, nil, "")
	wantClass(t, err, record.ErrTimeout)
}

func TestAnswerTextKeepsTheKey(t *testing.T) {
	key := "sk-0123456789abcdef0123456789abcdef"
	addr := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		_, _ = readHead(c)
		_, _ = io.WriteString(c, answered("401 No", "text/plain", strings.Repeat("x", 280)+key))
	})
	d := &Dialer{Endpoint: Endpoint{Addr: addr, Host: addr}}
	a, err := d.Fetch(context.Background(), "GET", "/", []api.Header{{Name: "Authorization", Value: "Bearer " + key}}, nil, key)
	if err != nil || strings.Contains(a.ErrorText(), "sk-0") || a.Status != 401 {
		t.Errorf("%q, %v", a.ErrorText(), err)
	}
}

func TestDialErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close() // nobody listens there now
	_, err = fetch(&Dialer{Endpoint: Endpoint{Addr: addr}})
	wantClass(t, err, record.ErrConnect)
	if !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), addr) {
		t.Error(err)
	}
	_, err = fetch(&Dialer{Endpoint: Endpoint{Addr: filepath.Join(t.TempDir(), "none"), Unix: true}})
	wantClass(t, err, record.ErrConnect)
	for want, cause := range map[string]error{
		record.ErrDNS:     &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "nohost.invalid", IsNotFound: true}},
		record.ErrConnect: syscall.EHOSTUNREACH,
		record.ErrTimeout: &net.DNSError{Err: "timeout", IsTimeout: true},
	} {
		d := &Dialer{Endpoint: Endpoint{Addr: "nohost.invalid:80"}, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, cause }}
		_, err = fetch(d)
		wantClass(t, err, want)
	}
	d := &Dialer{Endpoint: Endpoint{Addr: "h:1"}, Timeout: time.Millisecond, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	_, err = fetch(d)
	wantClass(t, err, record.ErrTimeout)
}

func TestProxy(t *testing.T) {
	target := listen(t, "tcp", "127.0.0.1:0", ok)
	heads := make(chan string, 10)
	proxy := func(reply string, tunnel bool) *url.URL {
		return &url.URL{Scheme: "http", Host: listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
			head, err := readHead(c)
			if err != nil {
				return
			}
			heads <- head
			_, _ = io.WriteString(c, reply)
			if !tunnel {
				_, _ = io.Copy(io.Discard, c)
				return
			}
			to, err := net.Dial("tcp", target)
			if err != nil {
				return
			}
			defer to.Close()
			go func() { _, _ = io.Copy(to, c) }()
			_, _ = io.Copy(c, to)
		}), User: url.UserPassword("me", "pw")}
	}
	d := &Dialer{Endpoint: Endpoint{Addr: "far.invalid:8000", Host: "far.invalid:8000", Proxy: proxy("HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n", true)}, Stamps: true}
	if body, err := fetch(d); err != nil || body != "you asked for /x" {
		t.Errorf("%q, %v", body, err)
	}
	if head := <-heads; !strings.HasPrefix(head, "CONNECT far.invalid:8000 HTTP/1.1\r\nHost: far.invalid:8000\r\n") || !strings.Contains(head, "Proxy-Authorization: Basic bWU6cHc=\r\n") {
		t.Errorf("asked %q", head)
	}
	for _, reply := range []string{"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n", "SSH-2.0\r\n", "HTTP/1.1 200 OK\r\n\r\nhello"} {
		d.Endpoint.Proxy = proxy(reply, false)
		_, err := fetch(d)
		wantClass(t, err, record.ErrProxy)
		if strings.Contains(err.Error(), "pw") {
			t.Error(err)
		}
	}
	d.Endpoint.Proxy, d.Timeout = proxy("HTTP/1.1 200 OK\r\n", false), 20*time.Millisecond
	_, err := fetch(d)
	wantClass(t, err, record.ErrProxy)
	if want := "no answer to CONNECT in time"; !strings.Contains(err.Error(), want) {
		t.Errorf("%v does not say %q", err, want)
	}

	// A proxy that is not there is not the target's fault.
	d.Timeout = time.Minute
	for _, host := range []string{"127.0.0.1:1", "nobody.invalid:3128"} {
		d.Endpoint.Proxy = &url.URL{Scheme: "http", Host: host}
		d.lookup = func(context.Context, string) ([]netip.Addr, error) {
			return nil, &net.DNSError{Err: "no such host", Name: "nobody.invalid", IsNotFound: true}
		}
		_, err = fetch(d)
		wantClass(t, err, record.ErrProxy)
		if name, _, _ := strings.Cut(host, ":"); !strings.Contains(err.Error(), "proxy "+name) {
			t.Errorf("%v does not name %s", err, host)
		}
	}
}

// What this machine lacks is no fault of whoever is connected to.
func TestOwnLimits(t *testing.T) {
	for _, c := range []struct {
		err     error
		reached bool
		want    string
	}{
		{syscall.EMFILE, false, record.ErrOwnFiles},
		{syscall.ENFILE, true, record.ErrOwnFiles},
		{&net.DNSError{Err: "dial udp 127.0.0.53:53: socket: too many open files"}, false, record.ErrOwnFiles},
		{syscall.EADDRNOTAVAIL, true, record.ErrOwnPorts},
		{syscall.EADDRNOTAVAIL, false, record.ErrConnect},
		{syscall.ENOBUFS, false, record.ErrOwnMemory},
		{syscall.ECONNREFUSED, true, record.ErrConnect},
		{&net.DNSError{Err: "no such host", IsNotFound: true}, true, record.ErrDNS},
	} {
		for _, proxy := range []*url.URL{nil, {Scheme: "http", Host: "proxy.test:3128"}} {
			d := &Dialer{Endpoint: Endpoint{Addr: "x.test:80", Proxy: proxy}, Dial: func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", c.err)}
			}}
			if errors.As(c.err, new(*net.DNSError)) {
				d.lookup = func(context.Context, string) ([]netip.Addr, error) { return nil, c.err }
			}
			d.reached.Store(c.reached)
			want := c.want
			if proxy != nil && !record.IsOwn(want) {
				want = record.ErrProxy
			}
			_, err := d.Connect(t.Context())
			wantClass(t, err, want)
		}
	}
}

// selfSigned gives a certificate for 127.0.0.1 and the pool that trusts it.
func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestTLS(t *testing.T) {
	cert, pool := selfSigned(t)
	addr := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) { ok(tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})) })
	d := &Dialer{Endpoint: Endpoint{TLS: true, Addr: addr, Host: addr, Config: &tls.Config{RootCAs: pool}}, Stamps: true}
	if body, err := fetch(d); err != nil || body != "you asked for /x" {
		t.Errorf("%q, %v", body, err)
	}
	d.Endpoint.Config = nil
	_, err := fetch(d)
	wantClass(t, err, record.ErrTLS)
	d.Endpoint.Addr = listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") })
	_, err = fetch(d)
	wantClass(t, err, record.ErrTLS)
}
