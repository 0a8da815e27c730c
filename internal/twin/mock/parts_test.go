package mock

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPreset(t *testing.T) {
	c, ok := Preset("Llama-3.1-8B@H100")
	if !ok || c.TTFT != 35*time.Millisecond || c.ITL != 8*time.Millisecond {
		t.Errorf("%+v, %v", c, ok)
	}
	if _, ok := Preset("gpt@abacus"); ok {
		t.Error("an unknown preset is known")
	}
}

// A histogram's quantile is the exact order statistic or up to 1/16 more.
func TestHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Int64Range(0, 1<<rapid.IntRange(1, 62).Draw(t, "bits")), 1, 50).Draw(t, "xs")
		var h histogram
		most := int64(0)
		for _, x := range xs {
			h.add(x)
			most = max(most, x)
			if u := upper(bucket(x)); u < x || float64(u-x) > float64(x)/16 {
				t.Fatalf("%d is in a bucket up to %d", x, u)
			}
		}
		if q := int64(h.quantile(1)); q != most {
			t.Fatalf("quantile 1 is %d, want %d", q, most)
		}
		if h.quantile(0.5) > h.quantile(0.99) {
			t.Fatal("quantiles fall")
		}
	})
}

func TestCountWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-zé \n\t]*`).Draw(t, "text")
		if got, want := countWords([]byte(text)), len(strings.Fields(text)); got != want {
			t.Fatalf("%q has %d words, want %d", text, got, want)
		}
	})
}

// Every event of the templates is JSON, whatever the names in it.
func TestTemplatesAreJSON(t *testing.T) {
	for _, chat := range []bool{true, false} {
		for _, continuous := range []bool{true, false} {
			a := ask{chat: chat, stream: true, prompt: 3, output: 2, continuous: continuous}
			tpl := newTemplate(a, "id\"\\\n\x00é", "mo\"del", 1)
			for _, ev := range [][]byte{
				tpl.role(nil, a), tpl.token(nil, a, 5, 0, 40, ""), tpl.token(nil, a, 5, 40, 41, "stop"), tpl.usage(nil, a, 2),
			} {
				data, ok := bytes.CutPrefix(ev, []byte("data: "))
				if !ok || !json.Valid(data) || bytes.Count(ev, []byte("\n")) != 2 {
					t.Errorf("event %q", ev)
				}
			}
			if b := tpl.whole(a, []byte(" x"), 1, "stop"); !json.Valid(b) {
				t.Errorf("whole answer %q", b)
			}
		}
	}
}

// Bodies of any kind are answered or refused, with a count that makes sense.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"messages":[{"role":"user","content":"a b"}],"max_tokens":3}`, `{"prompt":"a"}`, `{"prompt":[1,2]}`,
		`{"prompt":[["a"]]}`, `{"prompt":[[[1]]]}`, `{"prompt":[null]}`, `{"prompt":null}`, `{"prompt":[]}`, `{"prompt":[{}]}`, `null`, `[]`,
		`{"messages":[{"content":[{"text":"x"}]},{"content":null}]}`, `{"messages":[{"content":3}]}`, `{"max_tokens":-1,"prompt":""}`,
		`{"stream":true,"stream_options":{"continuous_usage_stats":true},"prompt":"x"}`,
	} {
		f.Add([]byte(s))
	}
	s := New(Config{MaxModelLen: 100})
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, chat := range []bool{true, false} {
			a, refused := s.parse(body, chat)
			if refused != nil {
				if refused.status < 400 || !json.Valid(refused.body) {
					t.Errorf("refused with %d %s", refused.status, refused.body)
				}
				continue
			}
			if a.output < 1 || a.prompt < 0 || a.prompt+a.output > 100 {
				t.Errorf("%q asks %+v", body, a)
			}
		}
		if r := s.tokenize(body); !json.Valid(r.body) {
			t.Errorf("tokenize answers %s", r.body)
		}
	})
}

// Bytes of any kind on a connection end in an answer or a closed connection,
// never in a panic.
func FuzzConnection(f *testing.F) {
	f.Add([]byte(post("/v1/completions", `{"prompt":"x","max_tokens":1,"stream":true}`)))
	f.Add([]byte("GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.0\r\n\r\n"))
	f.Add([]byte("POST /tokenize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n3\r\n{}x\r\n0\r\n\r\n"))
	s := New(Config{})
	f.Fuzz(func(t *testing.T, in []byte) {
		client, server := net.Pipe()
		done := make(chan struct{})
		go func() { s.ServeConn(server); close(done) }()
		go func() {
			buf := make([]byte, 4096)
			for {
				if _, err := client.Read(buf); err != nil {
					return
				}
			}
		}()
		_ = client.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = client.Write(in)
		client.Close()
		<-done
	})
}

func TestFailureTypes(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusBadRequest: "BadRequestError", http.StatusNotFound: "NotFoundError", http.StatusBadGateway: "InternalServerError",
	} {
		if got := failureType(status); got != want {
			t.Errorf("%d is %s", status, got)
		}
	}
}
