package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pitot/internal/clock"
	"pitot/internal/sim"
)

var created = regexp.MustCompile(`"created":\d{10}`)

// still makes what depends on the wall clock constant.
func still(chunks []string) []string {
	for i, c := range chunks {
		chunks[i] = created.ReplaceAllString(c, `"created":1`)
	}
	return chunks
}

func TestChatStreamBytes(t *testing.T) {
	r := start(t, fast, Config{PromptOverhead: 5})
	raw, err := r.raw(closing(post("/v1/chat/completions",
		`{"model":"m","messages":[{"role":"user","content":"hello there world"}],"max_tokens":3,"stream":true,"stream_options":{"include_usage":true}}`,
		"X-Request-Id: q-1")))
	if err != nil {
		t.Fatal(err)
	}
	head, body := cutHead(t, raw)
	for _, want := range []string{
		"HTTP/1.1 200 OK\r\n", "content-type: text/event-stream; charset=utf-8",
		"transfer-encoding: chunked", "vary: Origin", "connection: close",
	} {
		if !strings.Contains(head, want) {
			t.Errorf("header lacks %q:\n%s", want, head)
		}
	}
	got, whole := chunks(t, body)
	if !whole {
		t.Error("the body has no end")
	}
	const base = `data: {"id":"chatcmpl-q-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[`
	equalLines(t, still(got), []string{
		base + `{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null,"prompt_text":null}` + "\n\n",
		base + `{"index":0,"delta":{"content":" the"},"logprobs":null,"finish_reason":null,"token_ids":null}]}` + "\n\n",
		base + `{"index":0,"delta":{"content":" air"},"logprobs":null,"finish_reason":null,"token_ids":null}]}` + "\n\n",
		base + `{"index":0,"delta":{"content":" of"},"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null}]}` + "\n\n",
		base + `],"usage":{"prompt_tokens":8,"total_tokens":11,"completion_tokens":3},"system_fingerprint":"pitot-mock"}` + "\n\n",
		"data: [DONE]\n\n",
	})
}

func TestChatContinuousUsage(t *testing.T) {
	r := start(t, sim.FixedConfig{TokensPerChunk: 2}, Config{})
	_, body := r.do(post("/v1/chat/completions",
		`{"messages":[{"role":"user","content":[{"type":"text","text":"a b"}]}],"max_completion_tokens":3,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`))
	var got []string
	for _, ev := range strings.Split(body, "\n\n") {
		if _, usage, ok := strings.Cut(ev, `"usage":`); ok {
			got = append(got, usage)
		}
	}
	equalLines(t, got, []string{
		`{"prompt_tokens":2,"total_tokens":2,"completion_tokens":0,"completion_tokens_details":null},"prompt_token_ids":null,"prompt_text":null}`,
		`{"prompt_tokens":2,"total_tokens":4,"completion_tokens":2,"completion_tokens_details":null}}`,
		`{"prompt_tokens":2,"total_tokens":5,"completion_tokens":3,"completion_tokens_details":null}}`,
		`{"prompt_tokens":2,"total_tokens":5,"completion_tokens":3},"system_fingerprint":"pitot-mock"}`,
	})
	tr := r.stop()
	if len(tr) != 1 || !slices.Equal(tr[0].Tokens, []int{2, 1}) || tr[0].OutputTokens != 3 {
		t.Errorf("truth %+v", tr)
	}
}

func TestCompletionStreamBytes(t *testing.T) {
	r := start(t, fast, Config{})
	raw, err := r.raw(closing(post("/v1/completions", `{"model":"m","prompt":[5,6,7],"max_tokens":2,"stream":true}`)))
	if err != nil {
		t.Fatal(err)
	}
	_, body := cutHead(t, raw)
	got, whole := chunks(t, body)
	if !whole {
		t.Error("the body has no end")
	}
	const base = `data: {"id":"cmpl-0","object":"text_completion","created":1,"model":"m","choices":[`
	equalLines(t, still(got), []string{
		base + `{"index":0,"text":" the","logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]}` + "\n\n",
		base + `{"index":0,"text":" air","logprobs":null,"finish_reason":"length","stop_reason":null,"prompt_token_ids":null,"token_ids":null}],"system_fingerprint":"pitot-mock"}` + "\n\n",
		"data: [DONE]\n\n",
	})
}

// Whole answers, on one connection that stays open.
func TestWholeAnswersKeepAlive(t *testing.T) {
	r := start(t, fast, Config{})
	c := r.dial()
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return c, nil },
	}}
	ask := func(path, body string) string {
		t.Helper()
		resp, err := client.Post("http://mock"+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp.Status, err, string(b))
		}
		return created.ReplaceAllString(string(b), `"created":1`)
	}
	got := []string{
		ask("/v1/chat/completions", `{"messages":[{"role":"user","content":"one two"}],"max_tokens":2}`),
		ask("/v1/completions", `{"prompt":"one two three","max_tokens":1,"ignore_eos":true,"min_tokens":1}`),
		ask("/tokenize", `{"model":"m","prompt":"one two three"}`),
	}
	equalLines(t, got, []string{
		`{"id":"chatcmpl-0","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":" the air","refusal":null,"annotations":null,"audio":null,"function_call":null,"reasoning":null},"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null,"routed_experts":null}],"service_tier":null,"system_fingerprint":"pitot-mock","usage":{"prompt_tokens":2,"total_tokens":4,"completion_tokens":2,"prompt_tokens_details":null,"completion_tokens_details":null},"prompt_logprobs":null,"prompt_token_ids":null,"prompt_text":null,"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}`,
		`{"id":"cmpl-1","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":" a","logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null,"prompt_logprobs":null,"prompt_token_ids":null,"routed_experts":null}],"service_tier":null,"system_fingerprint":"pitot-mock","usage":{"prompt_tokens":3,"total_tokens":4,"completion_tokens":1,"prompt_tokens_details":null,"completion_tokens_details":null},"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}`,
		`{"count":3,"max_model_len":131072,"tokens":[108296,41664,61471],"token_strs":null}`,
	})
}

func TestDefaultLengths(t *testing.T) {
	r := start(t, sim.FixedConfig{}, Config{MaxModelLen: 130})
	for body, want := range map[string]int{
		`{"messages":[{"role":"user","content":"one"}]}`:                  128,
		`{"messages":[{"role":"user","content":"one two three four x"}]}`: 125,
	} {
		_, got := r.do(post("/v1/chat/completions", body))
		if !strings.Contains(got, fmt.Sprintf(`"completion_tokens":%d,`, want)) {
			t.Errorf("want %d tokens, got %s", want, got)
		}
	}
	if _, got := r.do(post("/v1/completions", `{"prompt":"x"}`)); !strings.Contains(got, `"completion_tokens":16,`) {
		t.Errorf("want 16 tokens, got %s", got)
	}
}

// Many streams at once: each client sees what the truth log says, and no event
// before the server says that it was written.
func TestManyStreamsAgreeWithTruth(t *testing.T) {
	const streams, tokens = 200, 20
	r := start(t, sim.FixedConfig{TTFT: 20 * time.Millisecond, ITL: 5 * time.Millisecond, JitterCV: 0.2}, Config{})
	type seen struct{ sent, first, last int64 }
	got := make([]seen, streams)
	var wg sync.WaitGroup
	for i := range streams {
		wg.Go(func() {
			c, err := net.Dial("tcp", r.addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			got[i].sent = clock.Now()
			body := fmt.Sprintf(`{"prompt":"a b","max_tokens":%d,"stream":true}`, tokens)
			_, _ = io.WriteString(c, closing(post("/v1/completions", body, fmt.Sprintf("X-Request-Id: %d", i))))
			var all []byte
			buf := make([]byte, 16<<10)
			for {
				n, err := c.Read(buf)
				if n > 0 {
					got[i].last = clock.Now()
				}
				all = append(all, buf[:n]...)
				if got[i].first == 0 && strings.Contains(string(all), `"text"`) {
					got[i].first = got[i].last
				}
				if err != nil {
					break
				}
			}
			if n := strings.Count(string(all), `"text":`); n != tokens {
				t.Errorf("stream %d has %d tokens", i, n)
			}
			if !strings.HasSuffix(string(all), "data: [DONE]\n\n\r\n0\r\n\r\n") {
				t.Errorf("stream %d has no end", i)
			}
		})
	}
	wg.Wait()
	truths := r.stop()
	if len(truths) != streams {
		t.Fatalf("%d truths", len(truths))
	}
	for _, tr := range truths {
		var i int
		if _, err := fmt.Sscan(tr.RequestID, &i); err != nil {
			t.Fatal(err)
		}
		c := got[i]
		if len(tr.EmitNS) != tokens || tr.OutputTokens != tokens || tr.PromptTokens != 2 || tr.Tokens != nil || tr.Aborted {
			t.Errorf("truth %+v", tr)
			continue
		}
		if !slices.IsSorted(tr.EmitNS) {
			t.Error("emissions are not in order")
		}
		times := []int64{c.sent, tr.ArrivalNS, tr.EmitNS[0], c.first}
		// the kernel's stamp is mapped from the wall clock: allow it 100 µs
		if times[0]-1e5 > times[1] || times[1] > times[2] || times[2] > times[3] {
			t.Errorf("stream %d: sent, arrived, emitted, seen = %v", i, times)
		}
		if tr.DoneNS < tr.EmitNS[tokens-1] || c.last < tr.DoneNS {
			t.Errorf("stream %d: done %d, last token %d, seen %d", i, tr.DoneNS, tr.EmitNS[tokens-1], c.last)
		}
	}
	st := r.Stats()
	if st.Requests != streams || st.Active != 0 || st.Tokens != streams*tokens || st.Events != streams*tokens || st.Late.P50 > st.Late.P99 || st.Late.P99 > st.Late.Max {
		t.Errorf("stats %+v", st)
	}
	t.Log(st)
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

func TestDisconnectAborts(t *testing.T) {
	r := start(t, sim.FixedConfig{TTFT: time.Millisecond, ITL: time.Millisecond, Slots: 1}, Config{})
	c := r.dial()
	_, _ = io.WriteString(c, post("/v1/completions", `{"prompt":"x","max_tokens":100000,"stream":true}`))
	if _, err := io.ReadFull(c, make([]byte, 600)); err != nil {
		t.Fatal(err)
	}
	c.Close()
	waitFor(t, "the abort", func() bool { return r.Stats().Aborted == 1 })
	// the only slot is free again
	if _, body := r.do(post("/v1/completions", `{"prompt":"x","max_tokens":1}`)); !strings.Contains(body, `"completion_tokens":1,`) {
		t.Errorf("after the abort: %s", body)
	}
	tr := r.stop()
	if len(tr) != 2 || !tr[0].Aborted || tr[0].OutputTokens == 0 || tr[0].OutputTokens != len(tr[0].EmitNS) || tr[1].Aborted {
		t.Errorf("truth %+v", tr)
	}
}

// A client that does not read gets everything in the end and delays nobody.
func TestSlowClientIsNotWaitedFor(t *testing.T) {
	const tokens = 40_000
	r := start(t, sim.FixedConfig{TokensPerChunk: 1}, Config{})
	slow := r.dial()
	_ = slow.(*net.TCPConn).SetReadBuffer(64 << 10)
	_, _ = io.WriteString(slow, closing(post("/v1/completions", fmt.Sprintf(`{"prompt":"x","max_tokens":%d,"stream":true}`, tokens))))
	waitFor(t, "a full socket", func() bool { return r.Stats().Short > 0 })
	if _, body := r.do(post("/v1/completions", `{"prompt":"x","max_tokens":2}`)); !strings.Contains(body, `"completion_tokens":2,`) {
		t.Errorf("beside a slow client: %s", body)
	}
	all, err := io.ReadAll(slow)
	if err != nil {
		t.Fatal(err)
	}
	_, body := cutHead(t, string(all))
	if got, whole := chunks(t, body); len(got) != tokens+1 || !whole {
		t.Errorf("%d events, whole %v", len(got), whole)
	}
}

func TestShutdownWaitsAndThenCuts(t *testing.T) {
	r := start(t, sim.FixedConfig{TTFT: 50 * time.Millisecond}, Config{})
	idle, c := r.dial(), r.dial()
	_, _ = io.WriteString(c, post("/v1/completions", `{"prompt":"x","max_tokens":2}`))
	waitFor(t, "the request", func() bool { return r.Stats().Active == 1 })
	if err := r.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	if err != nil || !strings.Contains(string(b), `"completion_tokens":2,`) {
		t.Errorf("%v: %s", err, b)
	}
	if n, err := idle.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("idle connection: %d, %v", n, err)
	}
	if tr := r.read(); len(tr) != 1 || tr[0].OutputTokens != 2 || tr[0].Aborted {
		t.Errorf("truth %+v", tr)
	}

	r = start(t, sim.FixedConfig{TTFT: time.Hour}, Config{})
	c = r.dial()
	_, _ = io.WriteString(c, post("/v1/completions", `{"prompt":"x"}`))
	waitFor(t, "the request", func() bool { return r.Stats().Active == 1 })
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := r.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("shutdown says %v", err)
	}
	if tr := r.read(); len(tr) != 1 || !tr[0].Aborted {
		t.Errorf("truth %+v", tr)
	}
}
