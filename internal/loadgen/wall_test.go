package loadgen

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"pitot/internal/client"
	"pitot/internal/client/api"
	"pitot/internal/results/record"
	"pitot/internal/sim"
	"pitot/internal/sim/serve"
	"pitot/internal/workload"
	"pitot/internal/workload/token"
)

// network counts the connections that are made to one address, and can refuse
// or hold them.
type network struct {
	addr    string
	dials   atomic.Int64
	refuse  atomic.Bool
	holding atomic.Bool
}

func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	n.dials.Add(1)
	switch {
	case n.refuse.Load():
		return nil, syscall.ECONNREFUSED
	case n.holding.Load():
		<-ctx.Done()
		return nil, ctx.Err()
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", n.addr)
}

// serve runs a mock server on loopback until the test ends.
func serveOn(t testing.TB, engine sim.FixedConfig) (*serve.Server, *network) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := serve.New(serve.Config{Engine: sim.NewFixed(engine)})
	go srv.Serve(l)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		_ = srv.Shutdown(ctx)
	})
	return srv, &network{addr: l.Addr().String()}
}

func wall(t testing.TB, n *network, change func(*WallConfig)) (*Wall, *shelf) {
	t.Helper()
	e, route, err := client.ParseTarget("http://twin.test/v1/chat/completions")
	if err != nil {
		t.Fatal(err)
	}
	s := newShelf()
	cfg := WallConfig{
		Dialer: &client.Dialer{Endpoint: e, Dial: n.dial, Stamps: true, Timeout: 10 * time.Second},
		API:    api.Chat, Route: route, Source: asks{most: 3}, Sink: s, Ahead: 16, Nonce: "n",
		Options: api.Options{Model: "mock", Stream: true, Vocab: token.Universal(), IgnoreEOS: true, MaxField: "max_tokens"},
		Headers: []api.Header{{Name: "Content-Type", Value: "application/json"}},
	}
	if change != nil {
		change(&cfg)
	}
	w := NewWall(t.Context(), cfg)
	t.Cleanup(w.Close)
	return w, s
}

const millisecond = int64(time.Millisecond)

func brisk() sim.FixedConfig {
	return sim.FixedConfig{TTFT: 3 * time.Millisecond, ITL: time.Millisecond}
}

// ordered looks at the stamps of rows that were answered.
func ordered(t *testing.T, s *shelf) (ok int) {
	t.Helper()
	for id, r := range s.rows {
		if r.Outcome != record.OK {
			continue
		}
		ok++
		stamps := []int64{r.Due, r.Eligible, r.Ready, r.Sent, r.Headers, r.FirstToken, r.LastToken, r.Done}
		for i := 1; i < len(stamps); i++ {
			if stamps[i] < stamps[i-1] {
				t.Errorf("request %d: stamps go back: %v", id, stamps)
				break
			}
		}
		if n := int32(len(s.chunks[id])); n != r.Chunks || n != r.OutputPlanned {
			t.Errorf("request %d: %d chunks, row says %d, planned %d", id, n, r.Chunks, r.OutputPlanned)
		}
		if r.CompletionTokens != r.OutputPlanned {
			t.Errorf("request %d: %d tokens, planned %d", id, r.CompletionTokens, r.OutputPlanned)
		}
	}
	return ok
}

func TestWallReusesConnections(t *testing.T) {
	_, n := serveOn(t, brisk())
	before := runtime.NumGoroutine()
	w, s := wall(t, n, nil)
	if err := w.Open(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	w.WaitPrepared(t.Context(), 8)
	w.Begin(2 * time.Millisecond)
	Run(t.Context(), NewCore(Config{Users: 4, Requests: 60, Timeout: 5000 * millisecond}), w)
	w.Close()
	if got := n.dials.Load(); got != 4 {
		t.Errorf("%d connections for 4 users", got)
	}
	if ok := ordered(t, s); ok < 60 {
		t.Errorf("%d answered", ok)
	}
	fresh := 0
	for id, r := range s.rows {
		if r.Outcome == record.OK && !r.Reused {
			if fresh++; r.Connect < 0 || r.TLS != record.Unset {
				t.Errorf("request %d: connect %d, TLS %d", id, r.Connect, r.TLS)
			}
		}
	}
	if fresh != 4 {
		t.Errorf("%d requests on fresh connections", fresh)
	}
	settle(t, before+4) // the server may still be at its four
}

// settle waits until no more goroutines are left than there were.
func settle(t *testing.T, most int) {
	t.Helper()
	for range 6000 {
		if runtime.NumGoroutine() <= most {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	buf := make([]byte, 1<<16)
	t.Errorf("%d goroutines, want %d at most:\n%s", runtime.NumGoroutine(), most, buf[:runtime.Stack(buf, true)])
}

// In an open loop spare connections are made before they are needed.
func TestWallKeepsSpareConnections(t *testing.T) {
	_, n := serveOn(t, sim.FixedConfig{TTFT: 40 * time.Millisecond})
	w, s := wall(t, n, func(c *WallConfig) { c.Spare = 3 })
	if err := w.Open(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	w.Begin(2 * time.Millisecond)
	Run(t.Context(), NewCore(Config{Arrivals: &every{gap: 8 * millisecond}, Requests: 20, Timeout: 5000 * millisecond}), w)
	ordered(t, s)
	waited := 0
	for _, r := range s.rows {
		if r.Ready > r.Eligible {
			waited++
		}
	}
	// None has to, unless the machine is busy. Without spares each connection beyond the
	// first three was made for one that waited.
	made := int(n.dials.Load())
	if made < 6 || waited >= made-3 {
		t.Errorf("%d of %d requests had to wait for a connection, %d were made", waited, len(s.rows), made)
	}
}

// forgetful is a server that answers one request on each connection and
// closes it when the next one comes: what a client meets who is slower than
// the server's keep-alive timeout.
func forgetful(t *testing.T) *network {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	const body = `data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":8,"completion_tokens":1}}` + "\n\ndata: [DONE]\n\n"
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				br := bufio.NewReader(c)
				req, err := http.ReadRequest(br)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, req.Body)
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
				_, _ = io.WriteString(c, chunk(body)+"0\r\n\r\n")
				if req, err := http.ReadRequest(br); err == nil {
					_, _ = io.Copy(io.Discard, req.Body)
				}
			}()
		}
	}()
	return &network{addr: l.Addr().String()}
}

func chunk(s string) string {
	const hex = "0123456789abcdef"
	n := ""
	for x := len(s); x > 0; x /= 16 {
		n = string(hex[x%16]) + n
	}
	return n + "\r\n" + s + "\r\n"
}

func TestWallSendsAgainOnAStaleConnection(t *testing.T) {
	w, s := wall(t, forgetful(t), nil)
	w.Begin(time.Millisecond)
	Run(t.Context(), NewCore(Config{Users: 1, Requests: 6, Timeout: 5000 * millisecond}), w)
	retried := 0
	for id := int64(0); id < 6; id++ {
		r := s.rows[id]
		if r.Outcome != record.OK {
			t.Errorf("request %d: %v %s %s", id, r.Outcome, r.Error, r.Detail)
		}
		if retried += int(r.Retried); r.Retried > 0 && (r.Reused || r.Ready <= r.Eligible) {
			t.Errorf("request %d was sent again, but reused is %v, ready %d, eligible %d", id, r.Reused, r.Ready, r.Eligible)
		}
	}
	if retried != 5 { // every connection answers once
		t.Errorf("%d sent again", retried)
	}
}

// A server that goes away in mid-run: the rest fails, and all is recorded.
func TestWallRefusedInMidRun(t *testing.T) {
	srv, n := serveOn(t, brisk())
	w, s := wall(t, n, nil)
	if err := w.Open(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	w.Begin(time.Millisecond)
	// However late things happen, at most ten are under way when it goes.
	c := NewCore(Config{Arrivals: &every{gap: 2 * millisecond}, Cap: 10, Window: 200 * millisecond, Timeout: 5000 * millisecond})
	s.on = func(rows int) {
		if rows < 30 || n.refuse.Swap(true) {
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = srv.Shutdown(ctx)
	}
	Run(t.Context(), c, w)
	ok, refused := ordered(t, s), 0
	for id, r := range s.rows {
		if r.Outcome == record.Failed && r.Error == record.ErrConnect {
			if refused++; r.Sent != record.Unset || r.Done < r.Due || !strings.Contains(r.Detail, "refused") && !strings.Contains(r.Detail, "reset") { // one that began before the server went is reset
				t.Errorf("request %d: sent %d, done %d, %s", id, r.Sent, r.Done, r.Detail)
			}
		}
	}
	if ok < 20 || refused < 30 || len(s.rows) < 100 {
		t.Errorf("%d answered, %d refused of %d", ok, refused, len(s.rows))
	}
}

func TestWallTimeoutWhileConnecting(t *testing.T) {
	n := &network{}
	n.holding.Store(true)
	w, s := wall(t, n, nil)
	w.Begin(time.Millisecond)
	Run(t.Context(), NewCore(Config{Arrivals: dueAt(0, millisecond), Window: 5 * millisecond, Timeout: 20 * millisecond}), w)
	for id := int64(0); id < 2; id++ {
		r := s.rows[id]
		if r.Outcome != record.Cut || r.Error != record.ErrTimeout || r.Sent != record.Unset || r.Done < r.Due+20*millisecond {
			t.Errorf("request %d: %v %s, sent %d, done %d", id, r.Outcome, r.Error, r.Sent, r.Done)
		}
	}
	if len(s.rows) != 2 {
		t.Errorf("%d rows", len(s.rows))
	}
}

func TestWallInterrupted(t *testing.T) {
	_, n := serveOn(t, sim.FixedConfig{TTFT: 5 * time.Millisecond, ITL: time.Second})
	before := runtime.NumGoroutine()
	w, s := wall(t, n, nil)
	w.Begin(time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.on = func(int) { cancel() } // with the first token
	c := NewCore(Config{Users: 8, Cap: 5, Window: 60_000 * millisecond, Timeout: 600_000 * millisecond})
	begin := time.Now()
	Run(ctx, c, w)
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %v to stop", took)
	}
	w.Close()
	cut, unsent := 0, 0
	for id, r := range s.rows {
		switch {
		case r.Outcome == record.Cut && r.Error == record.ErrInterrupted:
			cut++
		case r.Outcome == record.Unsent && r.Error == record.ErrInterrupted:
			unsent++
		case r.Outcome != record.OK:
			t.Errorf("request %d: %v %s", id, r.Outcome, r.Error)
		}
	}
	if cut > 5 || cut < 1 || unsent < 3 {
		t.Errorf("%d cut, %d unsent of %d", cut, unsent, len(s.rows))
	}
	if _, t1 := c.MeasuredWindow(); t1 > 5000*millisecond {
		t.Errorf("the window ends at %d", t1)
	}
	settle(t, before+6)
}

// broken cannot make its second request.
type broken struct{ asks }

func (b broken) At(i int64) (workload.Request, error) {
	if i == 1 {
		return workload.Request{}, errors.New("read workload: a bad line")
	}
	return b.asks.At(i)
}

// A request that cannot be made is our failure, in both worlds.
func TestRequestThatCannotBeMade(t *testing.T) {
	_, n := serveOn(t, brisk())
	w, s := wall(t, n, func(c *WallConfig) { c.Source = broken{asks{3}} })
	w.Begin(time.Millisecond)
	load := func() *Core {
		return NewCore(Config{Arrivals: dueAt(0, 1, 2, millisecond), Requests: 3, Timeout: 5000 * millisecond})
	}
	Run(t.Context(), load(), w)
	v := newShelf()
	Run(t.Context(), load(), NewVirtual(VirtualConfig{Engine: sim.NewFixed(brisk()), Source: broken{asks{3}}, Sink: v}))
	for world, s := range map[string]*shelf{"wall": s, "virtual": v} {
		r := s.rows[1]
		if r.Outcome != record.Failed || r.Error != record.ErrBug || !strings.Contains(r.Detail, "a bad line") || r.Session != record.Unset {
			t.Errorf("%s: %v %s %q, session %d", world, r.Outcome, r.Error, r.Detail, r.Session)
		}
		if s.rows[0].Outcome != record.OK || s.rows[2].Outcome != record.OK {
			t.Errorf("%s: %v, %v", world, s.rows[0].Outcome, s.rows[2].Outcome)
		}
	}
}

func TestOpen(t *testing.T) {
	n := &network{}
	n.refuse.Store(true)
	w, _ := wall(t, n, nil)
	var de *client.DialError
	if err := w.Open(t.Context(), 500); !errors.As(err, &de) || de.Class != record.ErrConnect {
		t.Errorf("error %v", err)
	}
	if n.dials.Load() != 1 {
		t.Errorf("%d tries", n.dials.Load())
	}

	n = &network{}
	n.holding.Store(true)
	w, _ = wall(t, n, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := w.Open(ctx, 500); err == nil || ctx.Err() == nil {
		t.Errorf("error %v", err)
	}

	begin := time.Now()
	time.AfterFunc(10*time.Millisecond, w.Close)
	if err := w.Open(t.Context(), 3); err == nil || time.Since(begin) > 5*time.Second {
		t.Errorf("closed while it opens: %v after %v", err, time.Since(begin))
	}
}

// A server that is not there any more ends the load; what was still to come due
// has rows all the same.
func TestWallGone(t *testing.T) {
	_, n := serveOn(t, brisk())
	n.refuse.Store(true)
	w, s := wall(t, n, nil)
	w.WaitPrepared(t.Context(), 8)
	w.Begin(2 * time.Millisecond)
	core := NewCore(Config{Arrivals: &every{0, 2 * millisecond}, Window: 60_000 * millisecond, Gone: 50 * millisecond})
	Run(t.Context(), core, w)
	w.Close()
	if _, gone := core.TargetGone(); !gone || len(s.rows) != 30_000 {
		t.Fatalf("gone %v, %d rows", gone, len(s.rows))
	}
	unsent := 0
	for id, r := range s.rows {
		if r.Error != record.ErrConnect || r.Done < r.Due {
			t.Fatalf("request %d: %+v", id, r)
		}
		if r.Outcome == record.Unsent {
			unsent++
		}
	}
	if unsent < 20_000 {
		t.Errorf("%d were not sent", unsent)
	}
}
