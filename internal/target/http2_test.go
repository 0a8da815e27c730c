package target

import (
	"context"
	"net"
	"strings"
	"testing"

	"pitot/internal/data/record"
	"pitot/internal/twin/serve"
)

// A server that speaks HTTP/2 alone is found out, and asked so from then on, by whoever
// measures it with this process too.
func TestHTTP2(t *testing.T) {
	srv := serve.New(serve.Config{HTTP2: true})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go srv.Serve(l)
	t.Cleanup(func() { l.Close() })
	p := planned(t, "http://"+l.Addr().String(), "--input", "8", "--output", "2")
	target, err := Open(context.Background(), p, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	if !target.Dialer.Endpoint.HTTP2 || target.Server["http"] != "HTTP/2" || !strings.Contains(strings.Join(target.Notes, "\n"), "HTTP/2") {
		t.Errorf("%+v %v %v", target.Dialer.Endpoint, target.Server, target.Notes)
	}
	if row := target.askOnce(context.Background(), someWords(20), 3); row.Outcome != record.OK || row.CompletionTokens != 3 {
		t.Errorf("%+v", row)
	}
	found, err := target.Found()
	if err != nil {
		t.Fatal(err)
	}
	other, err := Rejoin(context.Background(), p, &found)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if row := other.askOnce(context.Background(), someWords(20), 3); row.Outcome != record.OK {
		t.Errorf("%+v", row)
	}
}
