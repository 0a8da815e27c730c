package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"pitot/internal/results/record"
)

// errSpeaksTLS is the error of a server that answers plain HTTP with TLS.
var errSpeaksTLS = errors.New("the port speaks TLS, not plain HTTP")

// isTLSAlert reports whether an answer starts with a TLS alert (RFC 8446 5.1): type 21, version
// 3.x.
func isTLSAlert(b []byte) bool { return len(b) >= 2 && b[0] == 21 && b[1] == 3 }

// wantsTLS reports whether a refusal says that plain HTTP was sent to a port of TLS, in the words
// of Go, nginx (whose own status for it is 497) and Apache.
func wantsTLS(status int, body []byte) bool {
	if status != 400 && status != 497 {
		return false
	}
	low := bytes.ToLower(body[:min(len(body), 4<<10)])
	for _, words := range []string{"http request to an https server", "plain http request was sent to https port", "plain http to an ssl-enabled"} {
		if bytes.Contains(low, []byte(words)) {
			return true
		}
	}
	return false
}

// WantsTLS reports whether an answer refuses plain HTTP on a port of TLS.
func (a Answer) WantsTLS() bool { return wantsTLS(a.Status, a.Body) }

// otherTime bounds a try of the other scheme.
const otherTime = 2 * time.Second

// SpeaksTLS tries one TLS handshake with an endpoint, and reports whether the server took part
// in it.
func (d *Dialer) SpeaksTLS(ctx context.Context) bool {
	other := &Dialer{Endpoint: d.Endpoint, Timeout: otherTime, Dial: d.Dial, lookup: d.lookup}
	other.Endpoint.TLS, other.Endpoint.Config = true, &tls.Config{InsecureSkipVerify: true} // nothing is sent
	c, err := other.Connect(ctx)
	if err == nil {
		c.Abort()
		return true
	}
	dial, _ := errors.AsType[*DialError](err)
	op, _ := errors.AsType[*net.OpError](err)
	return dial != nil && dial.Class == record.ErrHTTP2 ||
		op != nil && op.Op == "remote error" // as crypto/tls calls alerts
}

// SpeaksPlain sends an endpoint one request of plain HTTP, without any header of the user's, and
// reports whether an HTTP response came.
func (d *Dialer) SpeaksPlain(ctx context.Context) bool {
	other := &Dialer{Endpoint: d.Endpoint, Timeout: otherTime, Dial: d.Dial, lookup: d.lookup}
	other.Endpoint.TLS = false
	ctx, cancel := context.WithTimeout(ctx, otherTime)
	defer cancel()
	a, err := other.Fetch(ctx, "GET", "/", nil, nil, "")
	return err == nil && !a.WantsTLS()
}
