package client

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// reply is what a response came to.
type reply struct {
	status     int
	body       string
	ended      bool // complete
	close      bool
	bad        bool // malformed
	used       int  // bytes taken
	retryAfter int32
	document   bool
}

func (r reply) String() string {
	r.body = cutBytes(r.body, 100)
	type plain reply
	return fmt.Sprintf("%+v", plain(r))
}

// respond reads a response that comes in the given reads and is closed then.
func respond(t interface{ Fatal(...any) }, reads ...string) (got reply) {
	var r response
	r.reset()
	var body strings.Builder
	for _, b := range reads {
		n, err := r.feed([]byte(b), func(p []byte) error { body.Write(p); return nil })
		if n > len(b) || n < 0 {
			t.Fatal("used more than it was given", n, len(b))
		}
		if err != nil {
			var encoding *encodingError
			if !errors.Is(err, errHTTP) && !errors.As(err, &encoding) && err != errHeaders && err != errSpeaksTLS && err != errOnlyHTTP2 {
				t.Fatal(err)
			}
			got.bad = true
			break
		}
		got.used += n
		if r.state == ended {
			break
		}
	}
	got.ended = !got.bad && r.connectionClosed(true)
	if r.headersDone() {
		got.status, got.close, got.retryAfter, got.document = r.status, r.close, r.retryAfter, r.document
	}
	got.body = body.String()
	if got.bad { // how far a malformed answer is read may depend on the reads
		return reply{bad: true}
	}
	return got
}

const okLine = "HTTP/1.1 200 OK\r\n"

var http1Cases = []struct {
	name, bytes string
	want        reply
}{
	{"length", okLine + "Content-Length: 5\r\n\r\nhello", reply{status: 200, body: "hello", ended: true}},
	{"no body", okLine + "content-length:0\r\n\r\n", reply{status: 200, ended: true}},
	{"length twice, equal", okLine + "Content-Length: 1\r\nContent-Length: 1\r\n\r\na", reply{status: 200, body: "a", ended: true}},
	{"length twice, different", okLine + "Content-Length: 1\r\nContent-Length: 2\r\n\r\na", reply{bad: true}},
	{"length signed", okLine + "Content-Length: +1\r\n\r\na", reply{bad: true}},
	{"length negative", okLine + "Content-Length: -1\r\n\r\na", reply{bad: true}},
	{"length huge", okLine + "Content-Length: 99999999999999999999\r\n\r\na", reply{bad: true}},
	{"length cut", okLine + "Content-Length: 5\r\n\r\nhel", reply{status: 200, body: "hel"}},
	{"chunked", okLine + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n", reply{status: 200, body: "hello!", ended: true}},
	{"chunked, upper case", okLine + "TRANSFER-ENCODING: Chunked\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n", reply{status: 200, body: "0123456789", ended: true}},
	{"chunked beats length", okLine + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", reply{status: 200, body: "a", ended: true}},
	{"chunk extensions and trailers", okLine + "Transfer-Encoding: chunked\r\n\r\n5;a=b;c=\"d\"\r\nhello\r\n0;last\r\nX-A: b\r\nX-C: d\r\n\r\n", reply{status: 200, body: "hello", ended: true}},
	{"chunk size with zeros and spaces", okLine + "Transfer-Encoding: chunked\r\n\r\n0005 \r\nhello\r\n000\r\n\r\n", reply{status: 200, body: "hello", ended: true}},
	{"bare LF", "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\nhello\n0\n\n", reply{status: 200, body: "hello", ended: true}},
	{"chunk size of junk", okLine + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", reply{bad: true}},
	{"chunk size empty", okLine + "Transfer-Encoding: chunked\r\n\r\n\r\n", reply{bad: true}},
	{"chunk size negative", okLine + "Transfer-Encoding: chunked\r\n\r\n-5\r\n", reply{bad: true}},
	{"chunk size too large", okLine + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", reply{bad: true}},
	{"chunk longer than it says", okLine + "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", reply{bad: true}},
	{"chunked, cut", okLine + "Transfer-Encoding: chunked\r\n\r\n5\r\nhel", reply{status: 200, body: "hel"}},
	{"chunked, last chunk missing", okLine + "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n", reply{status: 200, body: "a"}},
	{"until close", okLine + "\r\nhello", reply{status: 200, body: "hello", ended: true, close: true}},
	{"until close, empty", okLine + "\r\n", reply{status: 200, ended: true, close: true}},
	{"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", reply{status: 200, body: "a", ended: true, close: true}},
	{"HTTP/1.0 kept", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na", reply{status: 200, body: "a", ended: true}},
	{"connection close", okLine + "Connection: foo, CLOSE\r\nContent-Length: 1\r\n\r\na", reply{status: 200, body: "a", ended: true, close: true}},
	{"no reason", "HTTP/1.1 200\r\nContent-Length: 1\r\n\r\na", reply{status: 200, body: "a", ended: true}},
	{"204", "HTTP/1.1 204 No Content\r\n\r\n", reply{status: 204, ended: true}},
	{"304 has no body", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", reply{status: 304, ended: true}},
	{"100 first", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\nContent-Length: 7\r\n\r\n" + okLine + "Content-Length: 1\r\n\r\na", reply{status: 200, body: "a", ended: true}},
	{"100 alone", "HTTP/1.1 100 Continue\r\n\r\n", reply{}},
	{"empty line before", "\r\n" + okLine + "Content-Length: 1\r\n\r\na", reply{status: 200, body: "a", ended: true}},
	{"folded header", okLine + "X-A: b\r\n  folded\r\n\tContent-Length: 9\r\nContent-Length: 1\r\n\r\na", reply{status: 200, body: "a", ended: true}},
	{"event stream", okLine + "Content-Type: Text/Event-Stream; charset=utf-8\r\nContent-Length: 1\r\n\r\na", reply{status: 200, body: "a", ended: true}},
	{"document", okLine + "Content-Type: Application/JSON; charset=utf-8\r\nContent-Length: 1\r\n\r\na", reply{status: 200, body: "a", ended: true, document: true}},
	{"retry-after", "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n", reply{status: 429, ended: true, retryAfter: 7}},
	{"retry-after as a date to come", "HTTP/1.1 429 Too Many Requests\r\nRetry-After: Wed, 21 Oct 2015 07:28:30 GMT\r\nDate: Wed, 21 Oct 2015 07:28:00 GMT\r\nContent-Length: 0\r\n\r\n", reply{status: 429, ended: true, retryAfter: 30}},
	{"retry-after as a date", "HTTP/1.1 429 Too Many Requests\r\nRetry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\nContent-Length: 0\r\n\r\n", reply{status: 429, ended: true}},
	{"identity", okLine + "Transfer-Encoding: identity\r\nContent-Encoding: identity\r\nContent-Length: 1\r\n\r\na", reply{status: 200, body: "a", ended: true}},
	{"no colon", okLine + "junk\r\n\r\n", reply{bad: true}},
	{"no name", okLine + ": junk\r\n\r\n", reply{bad: true}},
	{"space before the colon", okLine + "Content-Length : 1\r\n\r\na", reply{bad: true}},
	{"other coding", okLine + "Content-Encoding: br\r\n\r\n", reply{bad: true}},
	{"other transfer", okLine + "Transfer-Encoding: gzip, chunked\r\n\r\n", reply{bad: true}},
	{"HTTP/2", "HTTP/2 200\r\n\r\n", reply{bad: true}},
	{"HTTP/1.x", "HTTP/1.x 200 OK\r\n\r\n", reply{bad: true}},
	{"ICY", "ICY 200 OK\r\n\r\n", reply{bad: true}},
	{"two digits", "HTTP/1.1 20 OK\r\n\r\n", reply{bad: true}},
	{"signed status", "HTTP/1.1 +20 OK\r\n\r\n", reply{bad: true}},
	{"status of letters", "HTTP/1.1 abc OK\r\n\r\n", reply{bad: true}},
	{"TLS alert", "\x15\x03\x01\x00\x02\x02\x46\n", reply{bad: true}},
	{"HTML", "<html><body>no</body></html>\n", reply{bad: true}},
	{"nothing", "", reply{}},
	{"half a status line", "HTTP/1.1 20", reply{}},
	{"half the headers", okLine + "Content-Le", reply{}},
	{"endless status line", strings.Repeat("a", maxHeader+1), reply{bad: true}},
	{"endless header line", okLine + "X: " + strings.Repeat("a", maxHeader), reply{bad: true}},
	{"endless headers", okLine + strings.Repeat("X: y\r\n", maxHeader/6+1), reply{bad: true}},
	{"endless interim answers", strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", maxHeader/27+1) + okLine, reply{bad: true}},
	{"endless trailers", okLine + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("X: y\r\n", maxHeader/6+1), reply{bad: true}},
	{"endless chunk extension", okLine + "Transfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("x", maxHeader), reply{bad: true}},
	{"many chunks", okLine + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1\r\na\r\n", maxHeader/3) + "0\r\n\r\n", reply{status: 200, body: strings.Repeat("a", maxHeader/3), ended: true}},
	{"bytes behind", okLine + "Content-Length: 1\r\n\r\nabc", reply{status: 200, body: "a", ended: true, used: len(okLine) + len("Content-Length: 1\r\n\r\na")}},
}

func TestResponse(t *testing.T) {
	for _, c := range http1Cases {
		want := c.want
		if want.used == 0 && !want.bad {
			want.used = len(c.bytes)
		}
		if want.retryAfter == 0 && (want.status > 0 || want.bad) && !want.bad {
			want.retryAfter = -1
		}
		if got := respond(t, c.bytes); got != want {
			t.Errorf("%s: %s, want %s", c.name, got, want)
		}
		if got := respond(t, strings.Split(c.bytes, "")...); got != want {
			t.Errorf("%s, byte by byte: %s, want %s", c.name, got, want)
		}
		for i := range c.bytes {
			if len(c.bytes) > 1000 {
				break
			}
			if got := respond(t, c.bytes[:i], c.bytes[i:]); got != want {
				t.Errorf("%s, split at %d: %s, want %s", c.name, i, got, want)
			}
		}
	}
}

// A reset is no end of a body that lasts until the connection closes.
func TestResponseNotClosedCleanly(t *testing.T) {
	var r response
	r.reset()
	if _, err := r.feed([]byte(okLine+"\r\nhello"), func([]byte) error { return nil }); err != nil || r.connectionClosed(false) {
		t.Errorf("complete: %v", err)
	}
}

// Bodies come out as net/http reads them, however they are cut into chunks
// and reads.
func TestResponseAgreesWithNetHTTP(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var raw strings.Builder
		raw.WriteString(okLine)
		parts := rapid.SliceOfN(rapid.StringN(1, 20, 60), 0, 10).Draw(t, "chunks")
		switch rapid.IntRange(0, 2).Draw(t, "framing") {
		case 0:
			fmt.Fprintf(&raw, "Content-Length: %d\r\n\r\n%s", len(strings.Join(parts, "")), strings.Join(parts, ""))
		case 1:
			raw.WriteString("Transfer-Encoding: chunked\r\n\r\n")
			for _, p := range parts {
				fmt.Fprintf(&raw, "%x\r\n%s\r\n", len(p), p)
			}
			raw.WriteString("0\r\n\r\n")
		default:
			raw.WriteString("Connection: close\r\n\r\n" + strings.Join(parts, ""))
		}
		want, err := http.ReadResponse(bufio.NewReader(strings.NewReader(raw.String())), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(want.Body)
		if err != nil {
			t.Fatal(err)
		}
		got := respond(t, split(t, raw.String())...)
		if !got.ended || got.body != string(body) || got.close != want.Close {
			t.Fatalf("%+v, net/http has %q, close %v", got, body, want.Close)
		}
	})
}

// What a malformed line says of the key is not repeated.
func TestMalformedLinesKeepTheSecret(t *testing.T) {
	r := response{secret: "sk-0123456789abcdefghijklmnopqrstuvwxyz"}
	r.reset()
	_, err := r.feed([]byte("you sent, among other things, the key "+r.secret+"\n"), func([]byte) error { return nil })
	if err == nil || strings.Contains(err.Error(), "sk-0") || !strings.Contains(err.Error(), "[redacted]") {
		t.Error(err)
	}
}

func FuzzResponse(f *testing.F) {
	for _, c := range http1Cases {
		if len(c.bytes) < 1000 {
			f.Add([]byte(c.bytes), uint8(1))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, every uint8) {
		whole := respond(t, string(text))
		var reads []string
		for b := range slices.Chunk(text, max(int(every), 1)) {
			reads = append(reads, string(b))
		}
		if got := respond(t, reads...); got != whole {
			t.Fatalf("in reads of %d: %s, whole: %s", every, got, whole)
		}
	})
}

// typicalEvent is what vLLM's chat sends for one token.
const typicalEvent = `{"id":"chatcmpl-7f3a9b1c2d4e4f5a8b6c7d8e9f0a1b2c","object":"chat.completion.chunk","created":1763670000,"model":"meta-llama/Llama-3.1-8B-Instruct","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null,"token_ids":null}]}`

// split cuts a text into reads.
func split(t *rapid.T, text string) (reads []string) {
	for len(text) > 0 {
		n := rapid.IntRange(1, max(1, min(len(text), 40))).Draw(t, "read")
		reads, text = append(reads, text[:n]), text[n:]
	}
	return reads
}
