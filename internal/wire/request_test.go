package wire

import (
	"strings"
	"testing"

	"pitot/internal/wire/api"
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
