package serve

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

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

func TestSplitWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-zé \n\t]*`).Draw(t, "text")
		var got []string
		splitWords([]byte(text), func(b []byte) { got = append(got, strings.TrimPrefix(string(b), " ")) })
		if want := strings.Fields(text); !slices.Equal(got, want) {
			t.Fatalf("%q has words %q, want %q", text, got, want)
		}
	})
}

// Every event of the templates is JSON, whatever the names in it.
func TestTemplatesAreJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := streaming(60)
		a.chat, a.continuous, a.usage = rapid.Bool().Draw(t, "chat"), rapid.Bool().Draw(t, "continuous"), rapid.Bool().Draw(t, "usage")
		a.logprobs = rapid.IntRange(-1, 3).Draw(t, "logprobs")
		a.prompts[0].text = []byte(rapid.String().Draw(t, "prompt"))
		a.echo = !a.chat && rapid.Bool().Draw(t, "echo")
		if a.chat {
			a.hideReasoning = rapid.Bool().Draw(t, "hide")
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 1:
				a.reasoning = 20
			case 2:
				a.call = &toolCall{name: "f\"", args: `{"a": "some\u00e9"}`}
			}
		}
		c := lone(a)
		tpl := newTemplate(a, rapid.String().Draw(t, "id"), rapid.String().Draw(t, "model"), 1)
		tpl.details, tpl.reasons = rapid.Bool().Draw(t, "details"), rapid.Bool().Draw(t, "reasons")
		c.st.tpl = tpl
		cut := rapid.IntRange(1, 59).Draw(t, "cut")
		one, shown := tpl.token(nil, c, 0, cut, "")
		last, _ := tpl.token(nil, c, cut, 60, "stop")
		events := [][]byte{tpl.role(nil, c), last, tpl.usageEvent(nil, 2, 1, 3, 4)}
		if shown {
			events = append(events, one)
		}
		for _, ev := range events {
			data, ok := bytes.CutPrefix(ev, []byte("data: "))
			if !ok || !json.Valid(data) || bytes.Count(ev, []byte("\n")) != 2 {
				t.Fatalf("event %q", ev)
			}
		}
		c.sent, c.finish = cut, "length"
		if b := tpl.whole([]*choice{c, c}, 2, 1, 3, 4); !json.Valid(b) {
			t.Fatalf("whole answer %q", b)
		}
	})
}

// Bodies of any kind are answered or refused, with a count that makes sense.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"messages":[{"role":"user","content":"a b"}],"max_tokens":3}`, `{"prompt":"a"}`, `{"prompt":[1,2]}`,
		`{"prompt":[["a"]]}`, `{"prompt":[[[1]]]}`, `{"prompt":[null]}`, `{"prompt":null}`, `{"prompt":[]}`, `{"prompt":[{}]}`, `null`, `[]`,
		`{"messages":[{"content":[{"text":"x"}]},{"content":null}]}`, `{"messages":[{"content":3}]}`, `{"max_tokens":-1,"prompt":""}`,
		`{"stream":true,"stream_options":{"continuous_usage_stats":true},"prompt":"x"}`,
		`{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{"a":{"type":"array"}}}}}],"tool_choice":"required"}`,
		`{"prompt":["a",[1,2]],"n":2,"stop":["air"],"echo":true,"logprobs":2,"min_tokens":1}`, `{"tokens":[281612415729763,5]}`,
	} {
		f.Add([]byte(s))
	}
	s := New(Config{MaxModelLen: 100})
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, chat := range []bool{true, false} {
			a, refused := s.parse(body, chat, 1)
			if refused != nil {
				if refused.status < 400 || !json.Valid(refused.body) {
					t.Errorf("refused with %d %s", refused.status, refused.body)
				}
				continue
			}
			for _, p := range a.prompts {
				if a.output < 1 || a.output > a.limit || p.tokens+a.limit > 100 {
					t.Errorf("%q asks %+v", body, a)
				}
			}
			if n := len(a.prompts) * a.n; n < 1 || n > maxChoices {
				t.Errorf("%q asks for %d choices", body, n)
			}
		}
		for _, r := range []reply{s.tokenize(body), s.detokenize(body)} {
			if !json.Valid(r.body) {
				t.Errorf("answer %s", r.body)
			}
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
