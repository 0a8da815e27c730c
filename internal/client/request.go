package client

import (
	"context"
	"fmt"
	"io"
	"pitot/internal/client/api"
	"strconv"
)

// AppendHead appends the head of a request whose body has size bytes.
func AppendHead(dst []byte, method, host, path string, headers []api.Header, size int) []byte {
	dst = appendTexts(dst, method, " ", path, " HTTP/1.1\r\nHost: ", host, "\r\n")
	for _, h := range headers {
		dst = appendTexts(dst, h.Name, ": ", h.Value, "\r\n")
	}
	if size > 0 || method == "POST" {
		dst = strconv.AppendInt(append(dst, "Content-Length: "...), int64(size), 10)
		dst = append(dst, "\r\n"...)
	}
	return append(dst, "\r\n"...)
}

func appendTexts(dst []byte, texts ...string) []byte {
	for _, text := range texts {
		dst = append(dst, text...)
	}
	return dst
}

// Answer is the whole of a response, for questions outside the measurement.
type Answer struct {
	Status   int
	Body     []byte
	Redirect string // where it leads, "" where it does not redirect

	RetryAfter int32 // seconds, [record.Unset] if it does not say

	secret string // what must not be shown of it, one a line
}

// ErrorText gives what an error answer says, in one line, without the secret that
// was sent.
func (a Answer) ErrorText() string {
	return oneLine(bodyText(api.FaultOf(a.Body), a.Body), a.secret, maxDetail)
}

// Fetch asks one question on a connection of its own and waits for the
// answer: what a server can do and what it is, never what is measured. secret
// is what the answer's text must not repeat, one a line.
func (d *Dialer) Fetch(ctx context.Context, method, path string, headers []api.Header, body []byte, secret string) (Answer, error) {
	c, err := d.Connect(ctx)
	if err != nil {
		return Answer{}, err
	}
	defer c.Abort()
	a, _, err := d.exchangeOnce(ctx, c, method, path, headers, body, secret, maxFetch)
	return a, err
}

// exchangeOnce sends one request on a connection and reads its answer, of at most so many bytes.
// keep says that the connection can carry another.
func (d *Dialer) exchangeOnce(ctx context.Context, c *Conn, method, path string, headers []api.Header, body []byte, secret string, most int64) (a Answer, keep bool, err error) {
	stop := context.AfterFunc(ctx, c.Abort)
	defer stop()
	a = Answer{secret: secret}
	req := append(AppendHead(nil, method, d.Endpoint.Host, path, headers, len(body)), body...)
	if _, err := c.conn.Write(req); err != nil {
		if ctx.Err() != nil { // the reason why the connection was closed
			err = ctx.Err()
		}
		return a, false, fmt.Errorf("send request: %w", err)
	}
	var r response
	var z gunzip
	defer z.close()
	r.secret = a.secret
	r.reset()
	plain := func(b []byte) error {
		if int64(len(a.Body)+len(b)) > most {
			return oversizedError("bytes", most)
		}
		a.Body = append(a.Body, b...)
		return nil
	}
	feedBody := func(b []byte) error {
		if r.gzip {
			return z.feed(b, plain)
		}
		return plain(b)
	}
	buf := make([]byte, readSize)
	for {
		n, _, err := c.src.read(buf)
		used := 0
		if n > 0 {
			var malformed error
			used, malformed = r.feed(buf[:n], feedBody)
			a.Status = r.status
			if malformed != nil {
				return a, false, malformed
			}
		}
		if r.state != ended && err != nil && !r.connectionClosed(err == io.EOF) {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return a, false, fmt.Errorf("read answer: %w", err)
		}
		if r.state == ended {
			a.Redirect, a.RetryAfter = d.redirectTarget(&r, path), r.retryAfter
			return a, err == nil && !r.close && used == n, nil
		}
	}
}

// redirectTarget says where the response to a request for a path leads, "" where it does not
// redirect.
func (d *Dialer) redirectTarget(r *response, path string) string {
	if !d.Endpoint.Unix {
		path = d.Endpoint.URL(path)
	}
	return oneLine(redirectText(r.status, path, r.location), r.secret, maxDetail)
}
