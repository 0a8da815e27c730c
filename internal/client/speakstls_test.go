package client

import (
	"io"
	"net"
	"testing"

	"pitot/internal/results/record"
)

// A server that answers plain HTTP with TLS, or says that it wants TLS, gives one class.
func TestSpeaksTLS(t *testing.T) {
	const refusal = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"
	for name, answer := range map[string]string{
		"alert":                    "\x15\x03\x01\x00\x02\x02\x46",
		"alert that ends as lines": "\x15\x03\x03\x00\x02\x02\x0a",
		"Go":                       "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n",
		"nginx":                    refusal + "<html>\r\n<head><title>400 The plain HTTP request was sent to HTTPS port</title></head>",
		"Apache":                   refusal + "<html><head><title>400 Bad Request</title></head><body>You're speaking plain HTTP to an SSL-enabled server port.</body>",
	} {
		addr := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
			_, _ = readHead(c)
			_, _ = io.WriteString(c, answer)
		})
		d := &Dialer{Endpoint: Endpoint{Addr: addr, Host: addr}}
		if row := exchange(t, d, nil); row.Error != record.ErrTLS || row.Detail != errSpeaksTLS.Error() {
			t.Errorf("%s: %s %q", name, row.Error, row.Detail)
		}
		a, err := d.Fetch(t.Context(), "GET", "/x", nil, nil, "")
		if err != nil {
			wantClass(t, err, record.ErrTLS)
		} else if !a.WantsTLS() {
			t.Errorf("%s: %d %s", name, a.Status, a.ErrorText())
		}
	}
}
