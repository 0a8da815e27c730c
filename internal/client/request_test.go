package client

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"pitot/internal/client/api"
)

func TestAppendHead(t *testing.T) {
	headers := []api.Header{{Name: "Authorization", Value: "Bearer k"}, {Name: "Accept", Value: "*/*"}}
	want := "POST /v1/x HTTP/1.1\r\nHost: h:1\r\nAuthorization: Bearer k\r\nAccept: */*\r\nContent-Length: 0\r\n\r\n"
	if got := string(AppendHead(nil, "POST", "h:1", "/v1/x", headers, 0)); got != want {
		t.Errorf("%q", got)
	}
	if got := string(AppendHead([]byte("a"), "GET", "h", "/", nil, 0)); got != "aGET / HTTP/1.1\r\nHost: h\r\n\r\n" {
		t.Errorf("%q", got)
	}
	if got := string(AppendHead(nil, "GET", "h", "/", nil, 7)); !strings.Contains(got, "Content-Length: 7\r\n") {
		t.Errorf("%q", got)
	}
}

// A refusal says when to come back, whether its length is known or the connection's end is its.
func TestFetchTellsRetryAfter(t *testing.T) {
	for _, head := range []string{"Content-Length: 2\r\n\r\n{}", "\r\n{}"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = http.ReadRequest(bufio.NewReader(c))
			_, _ = io.WriteString(c, "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 30\r\n"+head)
			c.Close()
		}()
		addr := l.Addr().String()
		d := &Dialer{Endpoint: Endpoint{Addr: addr, Host: addr}}
		if a, err := d.Fetch(t.Context(), "GET", "/", nil, nil, ""); err != nil || a.Status != 429 || a.RetryAfter != 30 {
			t.Errorf("%q: %+v, %v", head, a, err)
		}
		l.Close()
	}
}
