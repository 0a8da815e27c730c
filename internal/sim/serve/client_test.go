package serve

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pitot/internal/sim"
)

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

// rig is a server on loopback with its truth.
type rig struct {
	*Server
	t     testing.TB
	addr  string
	truth lockedBuffer
}

// fast has latencies that keep tests short.
var fast = sim.FixedConfig{TTFT: 2 * time.Millisecond, ITL: time.Millisecond}

func start(t testing.TB, engine sim.FixedConfig, c Config) *rig {
	t.Helper()
	return startWith(t, sim.NewFixed(engine), c)
}

func startWith(t testing.TB, engine sim.Engine, c Config) *rig {
	t.Helper()
	r := &rig{t: t}
	c.Engine = engine
	if c.Model == "" {
		c.Model = "m"
	}
	c.Truth = &r.truth
	r.Server = New(c)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- r.Serve(l) }()
	t.Cleanup(func() {
		r.stop()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return r
}

// stop shuts the server down, by force if it must, and gives its truth.
func (r *rig) stop() []Truth {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_ = r.Shutdown(ctx)
	return r.read()
}

func (r *rig) read() []Truth {
	r.t.Helper()
	r.truth.mu.Lock()
	defer r.truth.mu.Unlock()
	var all []Truth
	for t, err := range ReadTruth(bytes.NewReader(r.truth.b.Bytes())) {
		if err != nil {
			r.t.Fatal(err)
		}
		all = append(all, t)
	}
	return all
}

func (r *rig) dial() net.Conn {
	r.t.Helper()
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

func post(path, body string, header ...string) string {
	h := ""
	for _, line := range header {
		h += line + "\r\n"
	}
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		path, h, len(body), body)
}

func closing(request string) string {
	return strings.Replace(request, "\r\n", "\r\nConnection: close\r\n", 1)
}

// raw sends a request and gives everything that comes until the connection
// ends, and the error it ended with.
func (r *rig) raw(request string) (string, error) {
	r.t.Helper()
	c := r.dial()
	if _, err := io.WriteString(c, request); err != nil {
		r.t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	return string(b), err
}

// do sends a request and gives the response and its body as HTTP has them.
func (r *rig) do(request string) (*http.Response, string) {
	r.t.Helper()
	c := r.dial()
	if _, err := io.WriteString(c, request); err != nil {
		r.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp, string(b)
}

func newReaderOf(r io.Reader) *bufio.Reader { return bufio.NewReader(r) }

// header and body of a raw response.
func cutHead(t *testing.T, raw string) (head, body string) {
	t.Helper()
	head, body, ok := strings.Cut(raw, "\r\n\r\n")
	if !ok {
		t.Fatalf("no header in %q", raw)
	}
	return head, body
}

// chunks are the chunks of a chunked body, by hand; whole says that the last
// one is there.
func chunks(t *testing.T, body string) (got []string, whole bool) {
	t.Helper()
	for body != "" {
		var n int
		line, rest, _ := strings.Cut(body, "\r\n")
		if _, err := fmt.Sscanf(line, "%x", &n); err != nil {
			t.Fatalf("chunk size %q: %v", line, err)
		}
		if n == 0 {
			return got, rest == "\r\n"
		}
		if len(rest) < n+2 || rest[n:n+2] != "\r\n" {
			t.Fatalf("chunk of %d bytes in %q", n, rest)
		}
		got = append(got, rest[:n])
		body = rest[n+2:]
	}
	return got, false
}

func equalLines(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// values are the series of a page of metrics.
func values(t *testing.T, page string) map[string]float64 {
	t.Helper()
	v := map[string]float64{}
	for line := range strings.Lines(page) {
		if line = strings.TrimSuffix(line, "\n"); strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		f, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		v[line[:at]] = f
	}
	return v
}
