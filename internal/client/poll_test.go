package client

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pitot/internal/client/api"
	"pitot/internal/results/record"
)

// A poller keeps its connection while the server does, makes another where it was closed
// meanwhile, and takes no more than it is told to.
func TestPoller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connections := 0
		var closing atomic.Bool // the server closes behind each answer
		serve := func(c net.Conn) {
			defer c.Close()
			in := bufio.NewReader(c)
			for {
				r, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				if r.Header.Get("Authorization") != "Bearer k" {
					t.Errorf("headers %v", r.Header)
				}
				body := strings.Repeat("x", 100)
				if r.URL.Path == "/huge" {
					body = strings.Repeat("x", 300)
				}
				resp := http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Close: closing.Load()}
				if resp.Write(c) != nil || closing.Load() {
					return
				}
				time.Sleep(time.Second)
				if r.URL.Path == "/once" { // closed while idle, without a word
					return
				}
			}
		}
		p := &Poller{Most: 200, Headers: []api.Header{{Name: "Authorization", Value: "Bearer k"}}, Dialer: &Dialer{Endpoint: Endpoint{Host: "h", Addr: "h:80"},
			Dial: func(context.Context, string, string) (net.Conn, error) {
				connections++
				client, server := net.Pipe()
				go serve(server)
				return client, nil
			}}}
		get := func(path string, want int) {
			t.Helper()
			a, err := p.Get(t.Context(), path)
			if err != nil || a.Status != 200 || len(a.Body) != 100 || connections != want {
				t.Errorf("%s: %d, %d bytes, %v; %d connections, want %d", path, a.Status, len(a.Body), err, connections, want)
			}
		}
		get("/", 1)
		time.Sleep(1500 * time.Millisecond)
		get("/once", 1)
		time.Sleep(2 * time.Second)
		get("/", 2) // it was closed meanwhile
		time.Sleep(10 * time.Second)
		get("/", 3) // idle for so long it may be
		time.Sleep(1500 * time.Millisecond)
		closing.Store(true)
		get("/", 3)
		get("/", 4)
		closing.Store(false)
		var most *api.OversizedError
		if _, err := p.Get(t.Context(), "/huge"); !errors.As(err, &most) {
			t.Errorf("too much: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.Get(ctx, "/"); err == nil {
			t.Error("asked of nobody")
		}
		p.Dialer.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") }
		p.Close()
		if _, err := p.Get(t.Context(), "/"); err == nil {
			t.Error("no connection, and an answer")
		} else if class, _ := Classify(err); class != record.ErrConnect {
			t.Errorf("class %s", class)
		}
		p.Close()
		time.Sleep(time.Minute)
	})
}
