package serve

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"pitot/internal/clock"
)

// Before anyone knows whose a request is, it takes a bounded amount of memory: a
// line without an end is refused, and what is still let in takes little.
func TestMockHeadIsBounded(t *testing.T) {
	r := start(t, fast, Config{APIKey: "k"})
	endless := map[string]string{
		"a line":         strings.Repeat("G", 65536),
		"a header":       "GET / HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 65536),
		"many headers":   "GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("A: b\r\n", 300),
		"a continuation": "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n" + strings.Repeat(" c\r\n", 300),
		"no line ends":   "GET / HTTP/1.1\rHost: x\r" + strings.Repeat("\r", 65536),
	}
	for name, text := range endless {
		got, err := r.raw(text)
		if !strings.HasPrefix(got, "HTTP/1.1 400 ") || !strings.Contains(got, "Invalid HTTP request") || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if resp, _ := r.do(post("/v1/completions", `{"prompt":"x","max_tokens":1}`, "Authorization: Bearer k", "Cookie: "+strings.Repeat("c", 12_000))); resp.StatusCode != 200 {
		t.Errorf("a long header that is allowed: %s", resp.Status)
	}

	for name, text := range map[string]string{
		"a line":       strings.Repeat("G", maxHead-1),
		"many headers": "GET / HTTP/1.1\r\n" + manyHeaders(),
	} {
		const n, most = 300, 96 << 10
		each := heldBy(n, func() {
			for range n {
				c := r.dial()
				_, _ = io.WriteString(c, text)
			}
			time.Sleep(50 * time.Millisecond) // for the server to read them
		})
		t.Logf("%s: %d bytes a connection", name, each)
		if each > most {
			t.Errorf("%s: %d bytes a connection, at most %d", name, each, most)
		}
	}
}

// manyHeaders are as many and as long headers as there may be, but for their end.
func manyHeaders() string {
	var b strings.Builder
	for i := range maxLines - 2 {
		fmt.Fprintf(&b, "A%d: %s\r\n", i, strings.Repeat("b", maxHead/maxLines-16))
	}
	return b.String()
}

// heldBy is how much memory more is in use after f, for each of n.
func heldBy(n int, f func()) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return (int64(after.HeapInuse+after.StackInuse) - int64(before.HeapInuse+before.StackInuse)) / int64(n)
}

// A head that does not come to its end is waited for five seconds, however it
// trickles in; a body for a minute. A connection on which nothing has begun may
// stay.
func TestMockSlowHeadIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Alarm: clock.TimerAlarm{}, Grain: -1})
		const body = "POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
		for _, c := range []struct {
			name    string
			first   string
			trickle string // a byte a second
			after   time.Duration
		}{
			{"nothing more", "GET /hea", "", headTimeout},
			{"a byte a second", "GET ", strings.Repeat("a", 1000), headTimeout},
			{"a header a second", "GET /health HTTP/1.1\r\n", strings.Repeat("A:b\n", 1000), headTimeout},
			{"a second request", "GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET ", "", headTimeout},
			{"half a body", body, "", bodyTimeout},
			{"a body, byte by byte", body, strings.Repeat(" ", 1000), bodyTimeout},
		} {
			client, server := net.Pipe()
			go s.ServeConn(server)
			begin := time.Now()
			go func() {
				_, _ = io.WriteString(client, c.first)
				for i := range len(c.trickle) {
					time.Sleep(time.Second)
					if _, err := io.WriteString(client, c.trickle[i:i+1]); err != nil {
						return
					}
				}
			}()
			_, _ = io.Copy(io.Discard, client)
			if took := time.Since(begin); took != c.after {
				t.Errorf("%s: closed after %v, want %v", c.name, took, c.after)
			}
			client.Close()
			synctest.Wait()
		}
		idle, server := net.Pipe()
		go s.ServeConn(server)
		time.Sleep(time.Hour)
		go func() { _, _ = io.WriteString(idle, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n") }()
		if resp, err := http.ReadResponse(bufio.NewReader(idle), nil); err != nil || resp.StatusCode != 200 {
			t.Errorf("after an idle hour: %v, %v", resp, err)
		}
		idle.Close()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// Who has no key is refused before the body is read, and the connection goes on
// behind a body that is sent nevertheless.
func TestBodyWithoutKeyIsNotKept(t *testing.T) {
	r := start(t, fast, Config{APIKey: "k"})
	c := r.dial()
	br := bufio.NewReader(c)
	status := func() int {
		t.Helper()
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	const length = 8 << 20
	_, _ = fmt.Fprintf(c, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", length)
	if got := status(); got != 401 { // before any of the body
		t.Errorf("without a key: %d", got)
	}
	each := heldBy(1, func() { _, _ = c.Write(bytes.Repeat([]byte("x"), length)) })
	if each > length/2 {
		t.Errorf("%d bytes are kept of a body of %d", each, length)
	}
	_, _ = io.WriteString(c, post("/v1/completions", `{"prompt":"x","max_tokens":1}`, "Authorization: Bearer k"))
	if got := status(); got != 200 {
		t.Errorf("the next request: %d", got)
	}

	for name, text := range map[string]string{
		"asked for first": "POST /v1/completions HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n",
		"far too long":    fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", maxBody+1),
		"the last":        "POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 10\r\n\r\n",
	} {
		if got, _ := r.raw(text); !strings.HasPrefix(got, "HTTP/1.1 401 ") || !strings.Contains(got, "connection: close") {
			t.Errorf("%s: %q", name, got)
		}
	}
	tooLong := fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k\r\nContent-Length: %d\r\n\r\n", maxBody+1)
	if got, _ := r.raw(tooLong); !strings.HasPrefix(got, "HTTP/1.1 413 ") {
		t.Errorf("too long, with a key: %q", got)
	}
}

// A server that shuts down still reads and answers the requests that have begun,
// and nothing after them.
func TestShutdownAnswersWhatHasBegun(t *testing.T) {
	for range 20 {
		shutdownWhile(t)
	}
}

func shutdownWhile(t *testing.T) {
	inVirtual(t, Config{}, func(t *testing.T, s *Server) {
		request := post("/v1/completions", `{"prompt":"x","max_tokens":2}`)
		cut := strings.Index(request, "prompt")
		client, server := net.Pipe()
		go s.ServeConn(server)
		idle, other := net.Pipe()
		go s.ServeConn(other)
		_, _ = io.WriteString(client, request[:cut])
		ended := make(chan error, 1)
		go func() { ended <- s.Shutdown(context.Background()) }()
		if _, err := idle.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("an idle connection: %v", err)
		}
		time.Sleep(time.Second)
		_, _ = io.WriteString(client, request[cut:])
		all, err := io.ReadAll(client)
		if err != nil || !strings.Contains(string(all), `"completion_tokens":2,`) || !strings.Contains(string(all), "connection: close") {
			t.Errorf("%v %s", err, all)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// The guard sees the same end of a head as the parser does, however it is cut.
func TestHeadGuard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		head := "GET /x HTTP/1.1" + rapid.SampledFrom([]string{"\r\n", "\n"}).Draw(t, "end of line") +
			strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"A: b\r\n", "C: d\n", "E:\r\n"}), 0, 5).Draw(t, "header"), "") +
			rapid.SampledFrom([]string{"\r\n", "\n"}).Draw(t, "end")
		body := strings.Repeat("\n\n", rapid.IntRange(0, 300).Draw(t, "body")) // would be too many lines of a head
		all := []byte(head + body)
		g := headGuard{on: true}
		for at := 0; at < len(all); {
			n := min(rapid.IntRange(1, 40).Draw(t, "piece"), len(all)-at)
			if err := g.countBytes(all[at : at+n]); err != nil {
				t.Fatal(err)
			}
			at += n
		}
		if g.on || g.size != len(head) {
			t.Fatalf("the guard saw %d of %d bytes", g.size, len(head))
		}
	})
}
