package vllmapi_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"pitot/internal/sim"
	"pitot/internal/sim/serve"
	"pitot/internal/workload/token"
)

// rig is a server that speaks the dialect, on loopback.
type rig struct {
	*serve.Server
	t     testing.TB
	url   string
	truth lockedBuffer
}

// lockedBuffer is a truth log's writer that a test can read meanwhile.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// fast has latencies that keep tests short.
var fast = sim.FixedConfig{TTFT: 2 * time.Millisecond, ITL: time.Millisecond}

func start(t testing.TB, engine sim.FixedConfig, c serve.Config) *rig {
	t.Helper()
	return startWith(t, sim.NewFixed(engine), c)
}

func startWith(t testing.TB, engine sim.Engine, c serve.Config) *rig {
	t.Helper()
	r := &rig{t: t}
	c.Engine, c.Truth = engine, &r.truth
	if c.Model == "" {
		c.Model = "m"
	}
	r.Server = serve.New(c)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.url = "http://" + l.Addr().String()
	go func() { _ = r.Serve(l) }()
	t.Cleanup(func() { r.stop() })
	return r
}

// stop shuts the server down, by force if it must, and gives its truth.
func (r *rig) stop() (all []serve.Truth) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_ = r.Shutdown(ctx)
	r.truth.mu.Lock()
	defer r.truth.mu.Unlock()
	for t, err := range serve.ReadTruth(bytes.NewReader(r.truth.b.Bytes())) {
		if err != nil {
			r.t.Fatal(err)
		}
		all = append(all, t)
	}
	return all
}

// request is what a test asks.
type request struct {
	method, path, body string
	header             http.Header
}

func get(path string) request { return request{method: http.MethodGet, path: path} }

// post is a request with a body of JSON and further header lines.
func post(path, body string, header ...string) request {
	r := request{http.MethodPost, path, body, http.Header{"Content-Type": {"application/json"}}}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.header.Set(name, value)
	}
	return r
}

// client keeps no connection, so that servers stop at once, and follows nowhere.
var client = &http.Client{
	Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}, Timeout: 20 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// do sends a request and gives the response and its body.
func (r *rig) do(q request) (*http.Response, string) {
	r.t.Helper()
	req, err := http.NewRequest(q.method, r.url+q.path, strings.NewReader(q.body))
	if err != nil {
		r.t.Fatal(err)
	}
	if q.header != nil {
		req.Header = q.header
	}
	resp, err := client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp, string(b)
}

// tokenizer is the one that the embedded targets have.
func tokenizer(c serve.Config) serve.Config {
	c.Tokenize, c.Words = token.Universal().Split, token.Universal()
	return c
}

// waitFor polls until ok; the limit only ends a test that fails.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 30_000 {
		if ok() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("timed out waiting for %s", what)
}
