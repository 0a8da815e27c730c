package serve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// clientOfHTTP2 is the standard library's, in clear.
func clientOfHTTP2(t *testing.T) *http.Client {
	tr := &http.Transport{Protocols: new(http.Protocols)}
	tr.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func TestHTTP2(t *testing.T) {
	r := start(t, fast, Config{HTTP2: true, APIKey: "k"})
	client := clientOfHTTP2(t)
	ask := func(ctx context.Context, key, path, body string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, "POST", "http://"+r.addr+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+key)
		a, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	all := func(a *http.Response) string {
		t.Helper()
		b, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		return string(b)
	}
	ctx := context.Background()
	const stream = `{"model":"m","prompt":"a b c","max_tokens":4,"stream":true}`
	for range 2 {
		a := ask(ctx, "k", "/v1/completions", stream)
		if text := all(a); a.Proto != "HTTP/2.0" || a.StatusCode != 200 || strings.Count(text, "data: ") != 5 || !strings.HasSuffix(text, "data: [DONE]\n\n") {
			t.Errorf("%s %d %q", a.Proto, a.StatusCode, text)
		}
	}
	// More than the windows hold, both ways.
	long := fmt.Sprintf(`{"model":"m","prompt":%q,"max_tokens":4,"echo":true}`, strings.Repeat("word ", 60_000))
	if text := all(ask(ctx, "k", "/v1/completions", long)); len(text) < 300_000 {
		t.Errorf("echoed %d bytes", len(text))
	}
	for key, want := range map[string]int{"wrong": 401, "k": 404} {
		if a := ask(ctx, key, "/v1/nothing", long); a.StatusCode != want {
			t.Errorf("key %q: %d, want %d", key, a.StatusCode, want)
		} else {
			all(a)
		}
	}
	// A client that leaves in the middle.
	ctx, leave := context.WithCancel(ctx)
	a := ask(ctx, "k", "/v1/completions", strings.Replace(stream, "4", "10000", 1))
	if _, err := bufio.NewReader(a.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	leave()
	if text := all(ask(context.Background(), "k", "/v1/completions", stream)); !strings.HasSuffix(text, "data: [DONE]\n\n") {
		t.Errorf("after one that left: %q", text)
	}
	aborted := 0
	for _, truth := range r.stop() {
		if truth.Aborted {
			aborted++
		}
	}
	if aborted != 1 {
		t.Errorf("%d answers aborted", aborted)
	}
}

// A second stream beside one that is being answered is refused, and no more is sent than
// the client takes.
func TestHTTP2OneStream(t *testing.T) {
	r := start(t, fast, Config{HTTP2: true})
	c := r.dial()
	_, _ = io.WriteString(c, http2.ClientPreface)
	fr := http2.NewFramer(c, c)
	fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
	var block strings.Builder
	e := hpack.NewEncoder(&block)
	for _, f := range []string{":method POST", ":scheme http", ":path /v1/completions", ":authority x", "content-type application/json"} {
		name, value, _ := strings.Cut(f, " ")
		_ = e.WriteField(hpack.HeaderField{Name: name, Value: value})
	}
	_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte(block.String()), EndHeaders: true})
	_ = fr.WriteData(1, true, []byte(`{"model":"m","prompt":"a","max_tokens":2,"stream":true}`))
	for size, refused, second := 0, false, false; ; {
		f, err := fr.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			if second = true; f.PseudoValue("status") != "200" {
				t.Fatal(f.PseudoValue("status"))
			}
			_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: []byte{0x83, 0x86, 0x84}, EndHeaders: true, EndStream: true})
		case *http2.RSTStreamFrame:
			if refused = true; f.StreamID != 3 || f.ErrCode != http2.ErrCodeRefusedStream || !second {
				t.Fatal(f)
			}
		case *http2.DataFrame:
			if size += len(f.Data()); len(f.Data()) > 10 {
				t.Fatalf("%d bytes at once", len(f.Data()))
			}
			if f.StreamEnded() {
				if size < 100 || !refused {
					t.Errorf("%d bytes, refused %v", size, refused)
				}
				return
			}
			_ = fr.WriteWindowUpdate(1, uint32(len(f.Data())))
		}
	}
}

// Who speaks HTTP/1.1 to it is told otherwise.
func TestHTTP2Alone(t *testing.T) {
	r := start(t, fast, Config{HTTP2: true})
	c := r.dial()
	_, _ = io.WriteString(c, "GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
	fr := http2.NewFramer(io.Discard, c)
	if f, err := fr.ReadFrame(); err != nil || f.Header().Type != http2.FrameSettings {
		t.Fatal(f, err)
	}
	if f, err := fr.ReadFrame(); err != nil || f.Header().Type != http2.FrameGoAway {
		t.Fatal(f, err)
	}
	if _, err := net.Dial("tcp", r.addr); err != nil {
		t.Fatal(err)
	}
}

// bounded is a connection that remembers until when its reads may take.
type bounded struct {
	net.Conn
	until atomic.Pointer[time.Time]
}

func (c *bounded) SetReadDeadline(t time.Time) error {
	c.until.Store(&t)
	return c.Conn.SetReadDeadline(t)
}

// Who begins a request and takes it back may be idle as long as anybody.
func TestHTTP2TakenBack(t *testing.T) {
	r := start(t, fast, Config{HTTP2: true})
	ours, theirs := net.Pipe()
	defer ours.Close()
	c := &bounded{Conn: theirs}
	go r.ServeConn(c)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.WriteString(ours, http2.ClientPreface)
		fr := http2.NewFramer(ours, nil)
		_ = fr.WriteSettings()
		_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x83, 0x86, 0x84}, EndHeaders: true})
		_ = fr.WritePing(false, [8]byte{1})
		_ = fr.WriteRSTStream(1, http2.ErrCodeCancel)
		_ = fr.WritePing(false, [8]byte{2})
	}()
	for fr := http2.NewFramer(nil, ours); ; {
		f, err := fr.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if f, ok := f.(*http2.PingFrame); ok && f.Data[0] == 2 {
			break
		}
	}
	<-sent
	if until := c.until.Load(); !until.IsZero() {
		t.Errorf("it is cut off at %v", until)
	}
}

// What comes of a request that was refused before it ended, its trailers too, is no new request.
func TestHTTP2TrailersOfRefused(t *testing.T) {
	r := start(t, fast, Config{HTTP2: true, APIKey: "k"})
	c := r.dial()
	_, _ = io.WriteString(c, http2.ClientPreface)
	fr := http2.NewFramer(c, c)
	fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = fr.WriteSettings()
	var block strings.Builder
	e := hpack.NewEncoder(&block)
	headers := func(stream uint32, last bool, fields ...string) {
		block.Reset()
		for _, f := range fields {
			name, value, _ := strings.Cut(f, " ")
			_ = e.WriteField(hpack.HeaderField{Name: name, Value: value})
		}
		_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: []byte(block.String()), EndHeaders: true, EndStream: last})
	}
	status := func(stream uint32) string {
		t.Helper()
		for {
			f, err := fr.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			if f, ok := f.(*http2.MetaHeadersFrame); ok {
				if f.StreamID != stream {
					t.Fatalf("an answer on stream %d, not %d", f.StreamID, stream)
				}
				return f.PseudoValue("status")
			}
		}
	}
	request := []string{":method POST", ":scheme http", ":path /v1/completions", ":authority x", "content-type application/json"}
	headers(1, false, request...) // without the key
	if s := status(1); s != "401" {
		t.Fatalf("without a key: %s", s)
	}
	_ = fr.WriteData(1, false, []byte("{}"))
	headers(1, true, "x-checksum 1")
	headers(3, false, append(request, "authorization Bearer k")...)
	_ = fr.WriteData(3, true, []byte(`{"model":"m","prompt":"a","max_tokens":1}`))
	if s := status(3); s != "200" {
		t.Errorf("the next request: %s", s)
	}
}
