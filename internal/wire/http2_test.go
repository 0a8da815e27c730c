package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	xnet "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"pgregory.net/rapid"

	"pitot/internal/data/record"
	"pitot/internal/wire/api"
	"pitot/internal/wire/stamp"
)

// frames writes what a server sends, by another's implementation.
type frames struct {
	bytes.Buffer
	*xnet.Framer
}

func newFrames() *frames {
	f := &frames{}
	f.Framer = xnet.NewFramer(&f.Buffer, nil)
	f.AllowIllegalWrites = true
	_ = f.WriteSettings(xnet.Setting{ID: xnet.SettingMaxConcurrentStreams, Val: 1})
	return f
}

// fields writes a block of header fields: "name: value", in several frames where split.
func (f *frames) fields(stream uint32, end, split bool, lines ...string) *frames {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		_ = e.WriteField(hpack.HeaderField{Name: name, Value: value})
	}
	block := b.Bytes()
	cut := len(block)
	if split {
		cut /= 2
	}
	_ = f.WriteHeaders(xnet.HeadersFrameParam{StreamID: stream, BlockFragment: block[:cut], EndHeaders: !split, EndStream: end, PadLength: 3})
	if split {
		_ = f.WriteContinuation(stream, true, block[cut:])
	}
	return f
}

func (f *frames) data(stream uint32, end bool, text string) *frames {
	_ = f.WriteData(stream, end, []byte(text))
	return f
}

// answerHTTP2 is a whole answer in a stream, a frame for each event.
func answerHTTP2(stream uint32, events ...string) *frames {
	f := newFrames().fields(stream, false, false, ":status: 200", "content-type: text/event-stream")
	for _, e := range events {
		f.data(stream, false, event(e))
	}
	return f.data(stream, true, "")
}

// overHTTP2 plays what a server sends as the answer to the first request of a connection.
func overHTTP2(err error, reads ...read) (*Exchange, []record.Chunk) {
	h, _ := newHTTP2(io.Discard, "http")
	x := NewExchange(api.Chat{})
	var sink kept
	x.Sink, x.Origin, x.Kernel = &sink, 0, true
	x.Begin(blank(true, false))
	x.Request = append(AppendHead(nil, "POST", "h", "/", nil, 2), "{}"...)
	x.http.http2 = h
	x.Sent(0)
	o, _ := h.request(x.Request)
	_ = h.send(o)
	for _, r := range reads {
		if x.Feed([]byte(r.text), stamp.Arrival{Time: r.at, Kernel: true, More: r.more}) {
			return x, sink.chunks
		}
	}
	at := int64(1000)
	if n := len(reads); n > 0 {
		at += reads[n-1].at
	}
	x.Close(at, err)
	return x, sink.chunks
}

// behind marks what comes behind an answer: in a read of its own it meets an idle connection.
const behind = "behind: "

// What a server may send, and what it comes to.
func http2Answers() map[string]struct {
	sent *frames
	want string
} {
	type is = struct {
		sent *frames
		want string
	}
	said := []string{textEvent("a"), textEvent("b"), finish("stop"), usage(2), done}
	all := map[string]is{
		"plain": {answerHTTP2(1, said...), "ok 200 stop text=2 first=-1 chunks=0a,0a usage=9/-1/2/-1 HETALD reusable"},
	}
	f := newFrames().fields(1, false, true, ":status: 103", "link: </x>").fields(1, false, true, ":status: 200", "content-type: text/event-stream", "x-long: "+strings.Repeat("y", 5000))
	_ = f.WritePing(false, [8]byte{1})
	_ = f.WriteDataPadded(1, false, []byte(event(said[0])), []byte{0, 0, 0})
	_ = f.WriteWindowUpdate(0, 7)
	_ = f.WriteDataPadded(1, false, []byte(event(said[1])), nil)
	_ = f.WriteRawFrame(0xbe, 0, 0, []byte("not known"))
	f.data(1, false, event(said[2])).data(1, false, event(said[3])).data(1, false, event(said[4]))
	all["interim, padded, trailers"] = is{f.fields(1, true, false, "grpc-status: 0"), all["plain"].want}
	all["refused"] = is{newFrames().fields(1, false, false, ":status: 429", "retry-after: 7", "content-type: application/json").data(1, true, `{"error":{"message":"slow down"}}`),
		"failed rate_limited 429 text=0 retry=7 HD reusable | slow down"}
	all["no body"] = is{newFrames().fields(1, true, false, ":status: 503"), "failed http_503 503 text=0 HD reusable"}
	f = answerHTTP2(1, said[0])
	all["without an end"] = is{f, "failed unfinished 200 text=1 first=-1 chunks=0a HETALD reusable | the stream ended without a finish reason or an end mark"}
	f = newFrames().fields(1, false, false, ":status: 200", "content-type: text/event-stream").data(1, false, event(said[0]))
	_ = f.WriteRSTStream(1, xnet.ErrCodeEnhanceYourCalm)
	all["reset"] = is{f, "failed reset 200 text=1 first=-1 chunks=0a HETALD | the server reset the stream (HTTP/2 error ENHANCE_YOUR_CALM)"}
	f = newFrames()
	_ = f.WriteGoAway(0, xnet.ErrCodeNo, nil)
	all["going away before"] = is{f, "failed reset -1 text=0 D | the server reset the connection (HTTP/2 error NO_ERROR)"}
	f = newFrames()
	_ = f.WriteGoAway(1, xnet.ErrCodeNo, nil)
	_, _ = f.Write(answerHTTP2(1, said...).Bytes()[len(newFrames().Bytes()):])
	all["going away after"] = is{f, strings.TrimSuffix(all["plain"].want, " reusable")}
	f = answerHTTP2(1, said...)
	_ = f.WriteGoAway(1, xnet.ErrCodeNo, nil)
	all[behind+"going away"] = is{f, all["going away after"].want}
	f = answerHTTP2(1, said...)
	_ = f.WriteGoAway(0, xnet.ErrCodeInternal, nil)
	all[behind+"going away before"] = is{f, all["going away after"].want}
	f = answerHTTP2(1, said...)
	_ = f.WriteRawFrame(xnet.FramePing, 0, 0, []byte("ab"))
	all[behind+"malformed"] = is{f, all["going away after"].want}
	return all
}

func TestHTTP2Answers(t *testing.T) {
	for name, c := range http2Answers() {
		x, chunks := overHTTP2(nil, read{c.sent.String(), 5, false})
		if got := digest(x, chunks); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
		var bytewise []read
		for i, b := range c.sent.Bytes() {
			bytewise = append(bytewise, read{string([]byte{b}), int64(i + 1), false})
		}
		y, split := overHTTP2(nil, bytewise...)
		if strings.HasPrefix(name, behind) {
			c.want += " reusable"
		}
		if got := digest(y, split); got != c.want {
			t.Errorf("%s, byte by byte:\n got %s\nwant %s", name, got, c.want)
		}
		checkTimes(t, &y.Row, split)
	}
}

// An event that ends where its frame ends has the stamp of its read, whatever came before;
// what follows it in the read may have come later.
func TestHTTP2ChunkTimes(t *testing.T) {
	head := newFrames().fields(1, false, false, ":status: 200", "content-type: text/event-stream").String()
	one := func(text string) string { return (&frames{Framer: nil}).frame(text) }
	a, b := one(event(textEvent("a"))), one(event(textEvent("b")))
	update := string([]byte{0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 9})
	_, chunks := overHTTP2(nil, read{head + a, 10, false}, read{b, 20, false}, read{a + b, 30, false}, read{a + update, 40, false}, read{update, 50, false}, read{a[:20], 60, false}, read{a[20:], 70, false})
	var got []string
	for _, c := range chunks {
		got = append(got, fmt.Sprintf("%d-%d", c.Earliest, c.T))
	}
	if want := "10-10 20-20 20-30 30-30 30-40 70-70"; strings.Join(got, " ") != want {
		t.Errorf("%s, want %s", strings.Join(got, " "), want)
	}
}

// frame is a DATA frame of the first stream.
func (*frames) frame(text string) string {
	return string(append(appendFrame(nil, frameData, 0, 1, len(text)), text...))
}

func TestHTTP2Malformed(t *testing.T) {
	hello := newFrames().String()
	raw := func(kind, flags byte, stream uint32, payload string) string {
		return hello + string(append(appendFrame(nil, kind, flags, stream, len(payload)), payload...))
	}
	for name, text := range map[string]string{
		"HTTP/1.1":            "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n",
		"no SETTINGS":         string(appendFrame(nil, framePing, 0, 0, 8)) + "12345678",
		"large frame":         hello + string(appendFrame(nil, frameData, 0, 1, frameMost+1)),
		"push":                raw(framePush, 0, 1, "1234"),
		"data of nothing":     raw(frameData, 0, 0, "x"),
		"data before fields":  raw(frameData, 0, 1, "x"),
		"bad fields":          raw(frameHeaders, flagEndHeaders, 1, "\xff\xff\xff\xff\xff\xff"),
		"no status":           raw(frameHeaders, flagEndHeaders, 1, ""),
		"padding":             raw(frameHeaders, flagEndHeaders|flagPadded, 1, "\x09ab"),
		"priority":            raw(frameHeaders, flagEndHeaders|flagPriority, 1, "ab"),
		"lone continuation":   raw(frameContinuation, flagEndHeaders, 1, "ab"),
		"reset":               raw(frameReset, 0, 1, "ab"),
		"settings":            raw(frameSettings, 0, 0, "ab"),
		"window in settings":  raw(frameSettings, 0, 0, "\x00\x04\xff\xff\xff\xff"),
		"frames in settings":  raw(frameSettings, 0, 0, "\x00\x05\x00\x00\x00\x01"),
		"ping":                raw(framePing, 0, 0, "ab"),
		"window":              raw(frameWindow, 0, 0, "ab"),
		"no more window":      raw(frameWindow, 0, 0, "\x00\x00\x00\x00"),
		"too much window":     raw(frameWindow, 0, 0, "\x7f\xff\xff\xff"),
		"goaway":              raw(frameGoAway, 0, 0, "ab"),
		"announced otherwise": newFrames().fields(1, false, false, ":status: 200", "content-length: 5").data(1, true, "{}").String(),
	} {
		x, _ := overHTTP2(nil, read{text, 5, false})
		if x.Row.Error != record.ErrMalformed || x.Reusable() {
			t.Errorf("%s: %s %s", name, x.Row.Error, x.Row.Detail)
		}
	}
	x, _ := overHTTP2(nil, read{newFrames().fields(1, true, false, ":status: 200", "x: "+strings.Repeat("~", maxHeader)).String(), 5, false})
	if x.Row.Error != record.ErrMalformed && x.Row.Error != record.ErrOversized {
		t.Errorf("endless fields: %s", x.Row.Error)
	}
}

// How the bytes of a connection come apart is no matter, whatever they are.
func FuzzHTTP2(f *testing.F) {
	for _, c := range http2Answers() {
		f.Add(c.sent.Bytes(), uint16(7))
	}
	f.Fuzz(func(t *testing.T, text []byte, every uint16) {
		var reads []read
		for b := range slices.Chunk(text, max(int(every), 1)) {
			reads = append(reads, read{string(b), int64(len(reads) + 1), false})
		}
		x, chunks := overHTTP2(nil, reads...)
		if r := x.Row; r.Done < 0 || (r.Outcome == record.OK) != (r.Error == "") {
			t.Fatalf("%+v", r)
		}
		checkTimes(t, &x.Row, chunks)
		checkDetail(t, &x.Row)
		whole, all := overHTTP2(nil, read{string(text), 1, false})
		whole.Row.Detail, x.Row.Detail = "", ""
		if got, want := digest(x, chunks), digest(whole, all); x.Row.Error == "" && strings.TrimSuffix(got, " reusable") != strings.TrimSuffix(want, " reusable") {
			t.Fatalf("in reads of %d:\n%s\nwhole:\n%s", every, got, want)
		}
	})
}

// A request is what another's implementation reads of it, whatever the server lets be sent
// at once.
func TestHTTP2Requests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{0, 1, 16 << 10, 70_000, 300_000}).Draw(t, "size")
		window := rapid.SampledFrom([]uint32{1, 1000, 1 << 20}).Draw(t, "window")
		if window == 1 {
			size = min(size, 100)
		}
		value := strings.Repeat("v", rapid.SampledFrom([]int{1, 20_000}).Draw(t, "value"))
		ours, theirs := net.Pipe()
		defer ours.Close()
		defer theirs.Close()
		request := AppendHead(nil, "POST", "host:1", "/v1/x?y=1", []api.Header{{Name: "X-Value", Value: value}, {Name: "Authorization", Value: "Bearer k"}, {Name: "Connection", Value: "close"}}, size)
		request = append(request, make([]byte, size)...)
		got := make(chan string, 1)
		go func() {
			begin := make([]byte, len(xnet.ClientPreface))
			_, _ = io.ReadFull(theirs, begin)
			fr := xnet.NewFramer(theirs, theirs)
			fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
			greeted := make(chan struct{})
			go func() {
				_ = xnet.NewFramer(theirs, nil).WriteSettings(xnet.Setting{ID: xnet.SettingInitialWindowSize, Val: window})
				close(greeted)
			}()
			said, n := string(begin[:3]), 0
			for {
				frame, err := fr.ReadFrame()
				if err != nil {
					got <- said + " " + err.Error()
					return
				}
				ended := false
				switch frame := frame.(type) {
				case *xnet.MetaHeadersFrame:
					said += fmt.Sprint(" ", frame.StreamID, frame.PseudoValue("method"), frame.PseudoValue("scheme"), frame.PseudoValue("authority"), frame.PseudoValue("path"))
					for _, field := range frame.RegularFields() {
						said += fmt.Sprintf(" %s=%d%v", field.Name, len(field.Value), field.Sensitive)
					}
					ended = frame.StreamEnded()
				case *xnet.DataFrame:
					n += len(frame.Data())
					if ended = frame.StreamEnded(); !ended {
						<-greeted
						_ = fr.WriteWindowUpdate(0, uint32(len(frame.Data())))
						_ = fr.WriteWindowUpdate(1, uint32(len(frame.Data())))
					}
				}
				if ended {
					got <- fmt.Sprint(said, " ", n)
					return
				}
			}
		}()
		h, err := newHTTP2(ours, "http")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			buf := make([]byte, 100)
			for {
				n, err := ours.Read(buf)
				if _, bad := h.feed(buf[:n], nil, nil); err != nil || bad != nil {
					return
				}
			}
		}()
		o, err := h.request(request)
		if err == nil {
			err = h.send(o)
		}
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("PRI 1POSThttphost:1/v1/x?y=1 x-value=%dfalse authorization=8true content-length=%dfalse %d", len(value), len(fmt.Sprint(size)), size)
		if s := <-got; s != want {
			t.Errorf("got  %.300s\nwant %.300s", s, want)
		}
	})
}

// A request that the server does not let be sent ends with its answer, and with the
// connection.
func TestHTTP2RequestIsCut(t *testing.T) {
	large := append(AppendHead(nil, "POST", "h", "/", nil, 1<<20), make([]byte, 1<<20)...)
	for name, end := range map[string]func(*http2, *response){
		"answered": func(h *http2, r *response) {
			_, _ = h.feed(newFrames().fields(1, true, false, ":status: 413").Bytes(), r, nil)
		},
		"closed": func(h *http2, _ *response) { h.close(io.EOF) },
	} {
		h, _ := newHTTP2(io.Discard, "http")
		r := response{http2: h}
		r.reset()
		cut := make(chan error)
		o, err := h.request(large)
		if err != nil {
			t.Fatal(err)
		}
		go func() { cut <- h.send(o) }()
		end(h, &r)
		if err := <-cut; err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := h.request(large); name == "closed" && !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The standard library's servers, in clear and over TLS: several requests on one
// connection, streamed and whole.
func TestHTTP2Servers(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			http.Error(w, "HTTP/2 only", http.StatusHTTPVersionNotSupported)
			return
		}
		n, _ := io.Copy(io.Discard, r.Body)
		if r.Method == "GET" {
			fmt.Fprint(w, r.Host, n)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range []string{textEvent(fmt.Sprint(n)), finish("stop"), done} {
			fmt.Fprint(w, event(e))
			w.(http.Flusher).Flush()
		}
	})
	for _, secure := range []bool{false, true} {
		s := httptest.NewUnstartedServer(handler)
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetUnencryptedHTTP2(!secure)
		s.Config.Protocols.SetHTTP2(secure)
		e := Endpoint{Host: "host", Addr: s.Listener.Addr().String(), TLS: secure, Config: &tls.Config{InsecureSkipVerify: true}}
		if secure {
			s.TLS = &tls.Config{NextProtos: []string{"h2"}}
			s.StartTLS()
		} else {
			s.Start()
		}
		t.Cleanup(s.Close)
		d := &Dialer{Endpoint: e, Stamps: true, Readers: stamp.NewReaders()}
		t.Cleanup(d.Readers.Close)
		ctx := context.Background()
		if a, err := d.Fetch(ctx, "GET", "/", nil, nil, ""); !mayWantHTTP2(a.Status, err) {
			t.Errorf("TLS %v: HTTP/1.1 is answered with %d, %v", secure, a.Status, err)
		}
		d.Endpoint.HTTP2 = true
		if a, err := d.Fetch(ctx, "GET", "/", nil, make([]byte, 200_000), ""); err != nil || a.Status != 200 || string(a.Body) != "host200000" {
			t.Errorf("TLS %v: %d %q %v", secure, a.Status, a.Body, err)
		}
		c, err := d.Connect(ctx)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan ending)
		c.Start(func(_ *Conn, x *Exchange, reusable bool) { ended <- ending{x, reusable} })
		for i, size := range []int{10, 200_000, 1000} {
			x := asked("/", size)
			c.Send(x)
			if got := <-ended; x.Row.Outcome != record.OK || x.Row.TextBytes != int64(len(fmt.Sprint(size))) || !got.reusable {
				t.Fatalf("TLS %v, request %d: %+v, reusable %v", secure, i, x.Row, got.reusable)
			}
		}
		c.Abort()
		select {
		case <-ended:
			t.Error("more ends than requests")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Idle connections answer pings and stay, until the server leaves.
func TestHTTP2Idle(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	acked := make(chan bool)
	go func() {
		defer close(acked)
		_, _ = io.CopyN(io.Discard, theirs, int64(len(preface)))
		for fr := xnet.NewFramer(nil, theirs); ; {
			f, err := fr.ReadFrame()
			if err != nil {
				return
			}
			if f, ok := f.(*xnet.PingFrame); ok {
				acked <- f.IsAck()
			}
		}
	}()
	h, err := newHTTP2(ours, "http")
	if err != nil {
		t.Fatal(err)
	}
	c := &Conn{conn: ours, raw: ours, src: newSource(ours), http2: h}
	c.Start(func(*Conn, *Exchange, bool) {})
	f := newFrames()
	_ = f.WritePing(false, [8]byte{})
	for i := range 2 { // the second is read once the first has been dealt with
		if _, err := theirs.Write(f.Bytes()); err != nil || !<-acked || !c.Alive() {
			t.Fatalf("ping %d ends an idle connection: %v", i, err)
		}
	}
	f = &frames{}
	f.Framer = xnet.NewFramer(&f.Buffer, nil)
	_ = f.WriteGoAway(0, xnet.ErrCodeNo, nil)
	_, _ = theirs.Write(f.Bytes())
	for c.Alive() {
		time.Sleep(time.Millisecond)
	}
}

func mayWantHTTP2(status int, err error) bool {
	may, _ := MayWantHTTP2(status, err)
	return may
}

// written keeps what is written to it, once it is open.
type written struct {
	mu     sync.Mutex
	open   chan struct{}
	bytes  bytes.Buffer
	writes int
}

func (w *written) Write(p []byte) (int, error) {
	<-w.open
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
	return w.bytes.Write(p)
}

// said are the WINDOW_UPDATE frames and the acknowledged pings in what was written behind the
// preface.
func (w *written) said(t *testing.T) (grants []string, pings int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for fr := xnet.NewFramer(nil, bytes.NewReader(w.bytes.Bytes())); ; {
		f, err := fr.ReadFrame()
		if err == io.EOF {
			return grants, pings
		}
		if err != nil {
			t.Fatal(err)
		}
		switch f := f.(type) {
		case *xnet.WindowUpdateFrame:
			grants = append(grants, fmt.Sprintf("%d:%d", f.StreamID, f.Increment))
		case *xnet.PingFrame:
			pings++
		}
	}
}

// Each stream is granted what came on it, and one that has ended nothing.
func TestHTTP2Grants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := newHTTP2(io.Discard, "http")
		w := &written{open: make(chan struct{})}
		close(w.open)
		h.w, h.frames.grantAt = w, 100
		request := AppendHead(nil, "GET", "h", "/", nil, 0)
		begun := newFrames().Bytes()
		for _, c := range []struct {
			sizes []int // of the frames of an answer
			want  string
		}{
			{[]int{60}, ""},
			{[]int{60, 50}, "0:120"}, // 60 of them of the stream before
			{[]int{40, 30, 30, 1}, "0:120"},
			{[]int{150, 1}, "0:181 7:150"},
		} {
			o, err := h.request(request)
			if err == nil {
				err = h.send(o)
			}
			if err != nil {
				t.Fatal(err)
			}
			w.bytes.Reset()
			f := &frames{}
			f.Framer = xnet.NewFramer(&f.Buffer, nil)
			f.fields(o.id, false, false, ":status: 200")
			for i, size := range c.sizes {
				f.data(o.id, i == len(c.sizes)-1, strings.Repeat("x", size))
			}
			r := response{http2: h}
			r.reset()
			if _, err := h.feed(append(begun, f.Bytes()...), &r, func([]byte) error { return nil }); err != nil || r.state != ended {
				t.Fatal(err, r.state)
			}
			begun = nil
			synctest.Wait()
			if got, _ := w.said(t); strings.Join(got, " ") != c.want {
				t.Errorf("stream %d, %v: granted %v, want %s", o.id, c.sizes, got, c.want)
			}
		}
	})
}

// What a server asks to have acknowledged waits in one place, with an end of it.
func TestHTTP2Acknowledges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := newHTTP2(io.Discard, "http")
		w := &written{open: make(chan struct{})}
		h.w = w
		f := newFrames()
		for range 500 {
			_ = f.WritePing(false, [8]byte{})
		}
		if _, err := h.feed(f.Bytes(), nil, nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		close(w.open)
		synctest.Wait()
		if _, pings := w.said(t); pings != 500 || w.writes > 2 {
			t.Errorf("%d pings acknowledged, in %d writes", pings, w.writes)
		}
		w.open = make(chan struct{})
		var err error
		n := 0
		for ; err == nil && n < 10_000; n++ {
			_, err = h.feed(f.Bytes()[len(newFrames().Bytes()):][:17], nil, nil)
		}
		if !errors.Is(err, errHTTP) || n < 500 || n > 2000 {
			t.Errorf("after %d pings: %v", n, err)
		}
		close(w.open)
	})
}

// What comes late of a stream is not taken for the next request's.
func TestHTTP2LateFrames(t *testing.T) {
	h, _ := newHTTP2(io.Discard, "http")
	request := append(AppendHead(nil, "POST", "h", "/", nil, 2), "{}"...)
	first, err := h.request(request)
	if err == nil {
		err = h.send(first)
	}
	if err != nil {
		t.Fatal(err)
	}
	next, err := h.request(request)
	if err != nil || next.id == first.id {
		t.Fatal(next.id, err)
	}
	room := h.stream
	late := newFrames()
	_ = late.WriteRSTStream(first.id, xnet.ErrCodeNo)
	_ = late.WriteWindowUpdate(first.id, 1000)
	if _, err := h.feed(late.Bytes(), nil, nil); err != nil || h.answered != nil || h.stream != room {
		t.Errorf("%v, answered %v, room for %d, want %d", err, h.answered, h.stream, room)
	}
}

// A question whose request cannot be made is not sent.
func TestHTTP2NotAsked(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	h, _ := newHTTP2(io.Discard, "http")
	h.w = ours // whoever writes to it waits
	h.close(io.ErrUnexpectedEOF)
	c := &Conn{conn: ours, raw: ours, src: newSource(ours), http2: h}
	if _, _, err := new(Dialer).ask(context.Background(), c, "POST", "/", nil, []byte("{}"), "", maxFetch); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}
