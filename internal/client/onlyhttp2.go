package client

import (
	"bytes"
	"errors"
	"strings"
)

// errOnlyHTTP2 is the error of a server that does not speak HTTP/1.1.
var errOnlyHTTP2 = errors.New("the server speaks only HTTP/2; pitot measures over HTTP/1.1")

// isHTTP2Frame reports whether an answer starts with the SETTINGS or GOAWAY frame that a
// server of HTTP/2 sends first, on a connection that it may have to close (RFC 9113 3.4, 4.1).
func isHTTP2Frame(b []byte) bool {
	const settings, goAway = 4, 7
	return len(b) >= 9 && b[0] == 0 && b[1] == 0 && (b[3] == settings || b[3] == goAway) &&
		bytes.Equal(b[4:9], make([]byte, 5)) // flags, stream 0
}

// refusesHTTP1 reports whether a TLS handshake failed because the server takes another
// protocol than HTTP/1.1 (ALPN, RFC 7301 3.2). Over TCP crypto/tls wraps the alert in a type
// that it does not export, so the text of the error decides.
func refusesHTTP1(handshake error) bool {
	text := handshake.Error()
	return strings.HasSuffix(text, "tls: no application protocol") ||
		strings.HasSuffix(text, "tls: server selected unadvertised ALPN protocol")
}
