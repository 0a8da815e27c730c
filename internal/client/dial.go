package client

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"pitot/internal/client/api"
	"pitot/internal/client/stamp"
	"pitot/internal/results/record"
)

// Endpoint is where a target listens and how it is reached.
type Endpoint struct {
	TLS    bool
	Host   string // what the Host header says: host or host:port
	Addr   string // host:port to connect to; a path for a unix socket
	Unix   bool
	Base   string      // path before the API's route, without a trailing slash: "" or "/openai"
	Config *tls.Config // nil for the defaults
	Proxy  *url.URL    // CONNECT proxy, nil for none
}

// ParseTarget understands http(s)://host[:port][/path] and
// unix:///path/to/socket[:/path]. route is the path as given when it already
// names an API's route, "" otherwise.
func ParseTarget(spec string) (e Endpoint, route string, err error) {
	if rest, ok := strings.CutPrefix(spec, "unix://"); ok {
		sock, path, _ := strings.Cut(rest, ":")
		if !strings.HasPrefix(sock, "/") {
			return e, "", fmt.Errorf("unix socket %q is not an absolute path", spec)
		}
		if path != "" && path[0] != '/' || strings.ContainsFunc(path, notOfURL) {
			return e, "", fmt.Errorf("path %q behind the unix socket is not a URL's path", path)
		}
		e = Endpoint{Unix: true, Addr: sock, Host: "localhost"}
		e.Base, route = splitRoute(path)
		return e, route, nil
	}
	if !strings.Contains(spec, "://") {
		spec = "http://" + spec
	}
	u, err := url.Parse(spec)
	if err != nil {
		if in, ok := errors.AsType[*url.Error](err); ok {
			err = in.Err
		}
		return e, "", fmt.Errorf("malformed URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return e, "", fmt.Errorf("unknown scheme %q", u.Scheme)
	}
	if u.Hostname() == "" {
		return e, "", errors.New("the URL has no host")
	}
	if u.User != nil {
		return e, "", errors.New("the URL holds a user or password; give a key with --key-env or --key-file, or a header with --header")
	}
	if strings.ContainsFunc(u.RawQuery, notOfURL) {
		return e, "", errors.New("malformed URL: a space or a control character behind the question mark")
	}
	e.TLS = u.Scheme == "https"
	e.Host = strings.TrimSuffix(u.Host, ":")
	port := u.Port()
	switch n, err := strconv.Atoi(port); {
	case port == "" && e.TLS:
		port = "443"
	case port == "":
		port = "80"
	case err != nil || n < 1 || n > 65535:
		return e, "", fmt.Errorf("malformed URL: port %q is not between 1 and 65535", port)
	}
	e.Addr = net.JoinHostPort(u.Hostname(), port)
	e.Base, route = splitRoute(u.EscapedPath())
	if route != "" && u.RawQuery != "" {
		route += "?" + u.RawQuery
	}
	return e, route, nil
}

// notOfURL says whether a character would end a request's target or its line.
func notOfURL(r rune) bool { return r <= ' ' || r == 0x7f }

// splitRoute takes a URL's path apart: "/v1", "/" and "" are a base, a path
// that ends in an API's route is that route.
func splitRoute(path string) (base, route string) {
	path = strings.TrimRight(path, "/")
	if list, ok := strings.CutSuffix(path, "/v1/models"); ok { // as pasted from curl, or from a redirect
		path = list
	}
	front := path
	if m, ok := api.ByPath(path); ok {
		front, route = m.Base, path
	}
	return strings.TrimRight(strings.TrimSuffix(front, "/v1"), "/"), route
}

func (e Endpoint) scheme() string {
	if e.TLS {
		return "https"
	}
	return "http"
}

// URL gives the address of a route for messages.
func (e Endpoint) URL(route string) string {
	if e.Unix {
		return "unix://" + e.Addr + ":" + route
	}
	return e.scheme() + "://" + e.Host + route
}

// DialError is a connection that could not be made.
type DialError struct {
	Class string // record.ErrDNS, ErrConnect, ErrTLS, ErrHTTP2, ErrProxy or ErrTimeout
	Addr  string
	Err   error
}

func (e *DialError) Error() string {
	if e.Class == record.ErrProxy {
		return fmt.Sprintf("proxy %s: %v", e.Addr, e.Err)
	}
	return fmt.Sprintf("connect to %s: %v", e.Addr, e.Err)
}

// Unwrap gives the cause.
func (e *DialError) Unwrap() error { return e.Err }

// Times holds the durations of the parts of making a connection, in nanoseconds. A part that did
// not occur is Unset. Connect is from the first attempt at any address to the one that succeeded.
type Times struct{ DNS, Connect, TLS int64 }

// Dialer makes connections to one endpoint.
type Dialer struct {
	Endpoint Endpoint
	Timeout  time.Duration  // for the whole of a connection, 0 for none
	Stamps   bool           // ask for kernel receive stamps
	Readers  *stamp.Readers // read with the kernel's stamps; nil: a goroutine for each connection does

	// Dial replaces the network in tests. It is given names as they are, unless
	// lookup resolves them.
	Dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	lookup func(ctx context.Context, host string) ([]netip.Addr, error)

	reached atomic.Bool // some connection was made
}

// Connect makes one connection.
func (d *Dialer) Connect(ctx context.Context) (*Conn, error) {
	if d.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.Timeout)
		defer cancel()
	}
	e := d.Endpoint
	t := Times{record.Unset, record.Unset, record.Unset}
	raw, err := d.openSocket(ctx, &t)
	if err != nil {
		return nil, d.wrapDialError(ctx, err, "the connection attempt")
	}
	d.reached.Store(true)
	c := &Conn{conn: raw, raw: raw, src: &plainSource{c: raw}, Times: t}
	if d.Stamps {
		c.src = newSource(raw)
	}
	if e.Proxy != nil {
		if err := d.connectProxy(ctx, raw); err != nil {
			raw.Close()
			return nil, d.wrapDialError(ctx, &DialError{record.ErrProxy, e.Proxy.Host, err}, "CONNECT")
		}
	}
	if !e.TLS {
		c.readers = d.Readers
	} else if err := c.startTLS(ctx, e, raw); err != nil {
		raw.Close()
		if refusesHTTP1(err) {
			return nil, &DialError{record.ErrHTTP2, e.Addr, errOnlyHTTP2}
		}
		return nil, d.wrapDialError(ctx, &DialError{record.ErrTLS, e.Addr, err}, "the TLS handshake")
	}
	return c, nil
}

// silence is the error of a step of connecting that got no answer in time.
type silence struct{ step string }

func (e *silence) Error() string { return "no answer to " + e.step + " in time" }

// Unwrap gives the cause.
func (e *silence) Unwrap() error { return context.DeadlineExceeded }

// wrapDialError gives an error its address and class, and for a timeout the step that
// got no answer.
func (d *Dialer) wrapDialError(ctx context.Context, err error, step string) error {
	de, ok := errors.AsType[*DialError](err)
	if !ok {
		de = &DialError{record.ErrConnect, d.Endpoint.Addr, err}
		if isError[*net.DNSError](err) {
			de.Class = record.ErrDNS
		}
	}
	network, _ := errors.AsType[net.Error](de.Err)
	if own := d.ownErrorClass(err); own != "" {
		de.Class = own
	} else if errors.Is(ctx.Err(), context.DeadlineExceeded) || network != nil && network.Timeout() {
		if ctx.Err() != nil { // what closed the connection says nothing more
			if de.Class == record.ErrDNS {
				step = "the look-up of the name"
			}
			de.Err = &silence{step}
		}
		if de.Class != record.ErrProxy { // whose fault it is tells more
			de.Class = record.ErrTimeout
		}
	}
	return de
}

// ownErrorClass gives the class of an error that is this client's or its machine's own,
// "" for any other.
func (d *Dialer) ownErrorClass(err error) string {
	dns, _ := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE),
		dns != nil && strings.HasSuffix(dns.Err, syscall.EMFILE.Error()): // which it does not wrap
		return record.ErrOwnFiles
	case errors.Is(err, syscall.EADDRNOTAVAIL) && d.reached.Load(): // else the address itself may be of no use here
		return record.ErrOwnPorts
	case errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.ENOMEM):
		return record.ErrOwnMemory
	}
	return ""
}

// openSocket resolves and connects, to the proxy where there is one.
func (d *Dialer) openSocket(ctx context.Context, t *Times) (net.Conn, error) {
	e := d.Endpoint
	network, addr := "tcp", e.Addr
	unresolved, unreached := record.ErrDNS, record.ErrConnect
	if e.Unix {
		network = "unix"
	}
	if e.Proxy != nil {
		unresolved, unreached = record.ErrProxy, record.ErrProxy
		addr = e.Proxy.Host
		if e.Proxy.Port() == "" {
			addr = net.JoinHostPort(e.Proxy.Hostname(), "80")
		}
	}
	begin := time.Now()
	dial, lookup := d.Dial, d.lookup
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	if e.Unix || d.Dial != nil && lookup == nil {
		c, err := dial(ctx, network, addr)
		t.Connect = int64(time.Since(begin))
		if err != nil && e.Proxy != nil {
			return nil, &DialError{unreached, addr, rootCause(err)}
		}
		return c, rootCause(err)
	}
	if lookup == nil {
		lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	var addrs []netip.Addr
	if ip, err := netip.ParseAddr(host); err == nil {
		addrs = []netip.Addr{ip}
	} else {
		addrs, err = lookup(ctx, host)
		t.DNS = int64(time.Since(begin))
		if err != nil {
			return nil, &DialError{unresolved, host, rootCause(err)}
		}
	}
	begin = time.Now()
	c, err := raceConnect(ctx, addrs, func(ctx context.Context, ip netip.Addr) (net.Conn, error) {
		return dial(ctx, network, net.JoinHostPort(ip.String(), port))
	})
	t.Connect = int64(time.Since(begin))
	if err != nil {
		return nil, &DialError{unreached, addr, rootCause(err)}
	}
	return c, nil
}

// rootCause unwraps a network error to its cause: a user needs "connection refused",
// not the chain of calls.
func rootCause(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

// connectProxy asks the proxy for a tunnel.
func (d *Dialer) connectProxy(ctx context.Context, c net.Conn) error {
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	req := "CONNECT " + d.Endpoint.Addr + " HTTP/1.1\r\nHost: " + d.Endpoint.Addr + "\r\n"
	if u := d.Endpoint.Proxy.User; u != nil {
		pass, _ := u.Password()
		req += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+pass)) + "\r\n"
	}
	if _, err := io.WriteString(c, req+"\r\n"); err != nil {
		return err
	}
	// Bytes after the headers would belong to the tunnel, in which the server must
	// not send first.
	var r response
	r.reset()
	one := bufio.NewReaderSize(c, 16)
	for {
		b, err := one.ReadByte()
		if err != nil {
			return err
		}
		if _, err := r.feed([]byte{b}, func([]byte) error { return nil }); err != nil {
			return err
		}
		if r.headersDone() {
			break
		}
	}
	if r.status/100 != 2 {
		return fmt.Errorf("the proxy answered %d", r.status)
	}
	if one.Buffered() > 0 {
		return errors.New("the proxy sent more than its answer")
	}
	return nil
}
