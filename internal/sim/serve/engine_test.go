package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"pitot/internal/clock"
	"pitot/internal/sim"
	"pitot/internal/sim/fleet"
	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/vllm"
)

// steady is a cost of ten milliseconds a step.
type steady struct{}

func (steady) Step(*sim.Batch) time.Duration { return 10 * time.Millisecond }

// continuous is a small engine of ten milliseconds a step.
func continuous(t *testing.T, change func(*vllm.Settings)) *vllm.Engine {
	t.Helper()
	s := vllm.Default()
	s.MaxNumSeqs, s.MaxModelLen, s.NumGPUBlocks, s.AsyncScheduling = 4, 1000, 200, false
	if change != nil {
		change(&s)
	}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	return vllm.New(s, steady{})
}

// inVirtual runs f with a server over any engine in virtual time, and gives
// the truth.
func inVirtual(t *testing.T, c Config, f func(t *testing.T, s *Server)) (truths []Truth) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c.Alarm, c.Grain, c.Truth = clock.TimerAlarm{}, -1, &log
		s := New(c)
		f(t, s)
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		for tr, err := range ReadTruth(&log) {
			if err != nil {
				t.Error(err)
			}
			truths = append(truths, tr)
		}
	})
	return truths
}

// over sends a request over a connection of its own and gives the body.
func over(t *testing.T, s *Server, request string) string {
	t.Helper()
	client, server := net.Pipe()
	go s.ServeConn(server)
	defer client.Close()
	go func() { _, _ = io.WriteString(client, request) }()
	resp, err := http.ReadResponse(newReaderOf(client), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// A conversation's next turn finds in the cache what the turn before left
// there: its prompt, and its answer as it was sent.
func TestNextTurnHits(t *testing.T) {
	engine := continuous(t, nil)
	user := strings.TrimSpace(strings.Repeat("word ", 60))
	truths := inVirtual(t, Config{Engine: engine, Model: "m", PromptTokensDetails: true, PromptOverhead: 8}, func(t *testing.T, s *Server) {
		type message map[string]string
		ask := func(messages ...message) (content string, prompt, cached int) {
			body := over(t, s, post("/v1/chat/completions", string(dialect.Marshal(map[string]any{"messages": messages, "max_tokens": 40}))))
			var a struct {
				Choices []struct{ Message struct{ Content string } }
				Usage   struct {
					Prompt  int `json:"prompt_tokens"`
					Details struct {
						Cached int `json:"cached_tokens"`
					} `json:"prompt_tokens_details"`
				}
			}
			if err := json.Unmarshal([]byte(body), &a); err != nil {
				t.Fatal(err)
			}
			return a.Choices[0].Message.Content, a.Usage.Prompt, a.Usage.Details.Cached
		}
		first := message{"role": "user", "content": user}
		answer, prompt, cached := ask(first)
		if prompt != 68 || cached != 0 {
			t.Errorf("first turn: %d tokens, %d cached", prompt, cached)
		}
		_, prompt, cached = ask(first, message{"role": "assistant", "content": answer}, message{"role": "user", "content": "more"})
		// 68 + 40 tokens were there, the last of which was never computed: six
		// whole blocks of 16.
		if prompt != 109 || cached != 96 {
			t.Errorf("second turn: %d tokens, %d cached", prompt, cached)
		}
		_, _, cached = ask(message{"role": "user", "content": "other " + user})
		if cached != 0 {
			t.Errorf("another prompt: %d cached", cached)
		}
	})
	for i, want := range []int{0, 96, 0} {
		e := truths[i].Engine
		if len(e) != 1 || e[0].Cached != want || e[0].Steps == 0 || e[0].FirstStep == 0 || e[0].LastStep < e[0].FirstStep {
			t.Errorf("truth %d: %+v", i, e)
			continue
		}
		times := []int64{truths[i].ArrivalNS, e[0].ArrivedNS, e[0].QueuedNS, e[0].ScheduledNS, e[0].FirstNS, e[0].LastNS, truths[i].DoneNS}
		if !slices.IsSorted(times) {
			t.Errorf("truth %d: times %v", i, times)
		}
	}
}

// The engine's clock runs faster, and everything that is told of it is on the
// real one.
func TestSpeed(t *testing.T) {
	truths := inVirtual(t, Config{Engine: continuous(t, nil), Speed: 10}, func(t *testing.T, s *Server) {
		begin := time.Now()
		over(t, s, post("/v1/completions", `{"prompt":"a b","max_tokens":5,"stream":true}`))
		if took := time.Since(begin); took != 5*time.Millisecond {
			t.Errorf("five steps of 10 ms took %v", took)
		}
		page := over(t, s, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
		for _, want := range []string{
			`vllm:time_to_first_token_seconds_sum{engine="0",model_name="mock"} 0.001`,
			`vllm:inter_token_latency_seconds_sum{engine="0",model_name="mock"} 0.004`,
			`vllm:e2e_request_latency_seconds_sum{engine="0",model_name="mock"} 0.005`,
			`vllm:request_decode_time_seconds_sum{engine="0",model_name="mock"} 0.004`,
			`vllm:request_time_per_output_token_seconds_sum{engine="0",model_name="mock"} 0.001`,
		} {
			if !strings.Contains(page, want+"\n") {
				name, _, _ := strings.Cut(want, "{")
				at := strings.Index(page, name)
				t.Errorf("want %s\ngot  %s", want, page[at:at+100])
			}
		}
	})
	if e := truths[0].Engine[0]; e.LastNS-truths[0].ArrivalNS != int64(5*time.Millisecond) || e.Steps != 5 {
		t.Errorf("truth %+v", e)
	}
}

func TestScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := scale{rapid.Int64Range(0, 1e15).Draw(t, "start"), rapid.Float64Range(0.01, 1000).Draw(t, "factor")}
		at := rapid.Int64Range(0, 1e15).Draw(t, "at")
		real := c.realTime(at)
		if c.engineTime(real) < at {
			t.Fatalf("at %d the engine's clock is at %d, not yet %d", real, c.engineTime(real), at)
		}
		if early := c.engineTime(real - 3); early > at {
			t.Fatalf("three nanoseconds before it is already at %d, after %d", early, at)
		}
	})
}

// Waiting, running and their times, exactly: one slot for two requests.
func TestMetricsInVirtualTime(t *testing.T) {
	engine := continuous(t, func(s *vllm.Settings) { s.MaxNumSeqs = 1 })
	inVirtual(t, Config{Engine: engine}, func(t *testing.T, s *Server) {
		page := func() map[string]float64 {
			return values(t, over(t, s, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"))
		}
		var ends []chan string
		for range 2 {
			end := make(chan string, 1)
			ends = append(ends, end)
			go func() { end <- over(t, s, post("/v1/completions", `{"prompt":"a b c","max_tokens":10}`)) }()
		}
		time.Sleep(55 * time.Millisecond)
		const labels = `{engine="0",model_name="mock"}`
		during := page()
		for name, want := range map[string]float64{
			"num_requests_running": 1, "num_requests_waiting": 1, "kv_cache_usage_perc": 1 / 199.0,
			"generation_tokens_total": 5, "prompt_tokens_total": 3, "request_params_n_count": 0,
		} {
			if got := during["vllm:"+name+labels]; fmt.Sprintf("%.6f", got) != fmt.Sprintf("%.6f", want) {
				t.Errorf("meanwhile %s is %v, want %v", name, got, want)
			}
		}
		for _, end := range ends {
			<-end
		}
		after := page()
		for name, want := range map[string]float64{
			"num_requests_running": 0, "num_requests_waiting": 0, "kv_cache_usage_perc": 0,
			"generation_tokens_total": 20, "prompt_tokens_total": 6,
			"time_to_first_token_seconds_sum": 0.01 + 0.11, "time_to_first_token_seconds_count": 2,
			"request_queue_time_seconds_sum": 0.1, "request_prefill_time_seconds_sum": 0.02,
			"request_decode_time_seconds_sum": 0.18, "request_inference_time_seconds_sum": 0.2,
			"e2e_request_latency_seconds_sum": 0.1 + 0.2, "inter_token_latency_seconds_count": 18,
			"iteration_tokens_total_sum":                26,
			"request_time_per_output_token_seconds_sum": 0.02,
		} {
			if got := after["vllm:"+name+labels]; fmt.Sprintf("%.6f", got) != fmt.Sprintf("%.6f", want) {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
	})
}

// Preemptions and speculative decoding show in the metrics as the engine has
// them.
func TestMetricsOfTheEngine(t *testing.T) {
	engine := continuous(t, func(s *vllm.Settings) {
		s.NumGPUBlocks, s.MaxModelLen = 65, 1000
		s.NumSpeculativeTokens, s.AcceptanceRate = 3, 0.7
	})
	const page = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
	var before, got map[string]float64
	truths := inVirtual(t, Config{Engine: engine, MaxModelLen: 1000}, func(t *testing.T, s *Server) {
		before = values(t, over(t, s, page))
		ends := make(chan string, 4)
		for i := range 4 {
			go func() {
				ends <- over(t, s, post("/v1/completions", fmt.Sprintf(`{"prompt":"p%d x y z","max_tokens":400}`, i)))
			}()
		}
		for range 4 {
			<-ends
		}
		got = values(t, over(t, s, page))
	})
	st := engine.Stats()
	if len(st.AcceptedPerPosition) != 3 {
		t.Fatalf("%d positions, want 3", len(st.AcceptedPerPosition))
	}
	const labels = `{engine="0",model_name="mock"}`
	for name, want := range map[string]float64{
		"num_preemptions_total": float64(st.Preemptions), "spec_decode_num_drafts_total": float64(st.Drafts),
		"spec_decode_num_draft_tokens_total": float64(st.DraftTokens), "spec_decode_num_accepted_tokens_total": float64(st.AcceptedTokens),
		"request_num_preemptions_sum": float64(st.Preemptions), "generation_tokens_total": 1600,
	} {
		if v, ok := got["vllm:"+name+labels]; !ok || v != want {
			t.Errorf("%s is %v, want %v", name, v, want)
		}
		if v, ok := before["vllm:"+name+labels]; !ok || v != 0 { // who takes a difference needs it
			t.Errorf("%s is %v, %v at the start, want 0", name, v, ok)
		}
	}
	if st.Preemptions == 0 || st.AcceptedTokens == 0 {
		t.Errorf("nothing happened: %+v", st)
	}
	for i, n := range st.AcceptedPerPosition {
		name := fmt.Sprintf(`vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="mock",position="%d"}`, i)
		if v := got[name]; v != float64(n) {
			t.Errorf("position %d: %v, want %d", i, v, n)
		}
		if v, ok := before[name]; !ok || v != 0 {
			t.Errorf("position %d: %v, %v at the start, want 0", i, v, ok)
		}
	}
	preempted := 0
	for _, tr := range truths {
		preempted += tr.Engine[0].Preemptions
	}
	if preempted == 0 {
		t.Error("the truth log has no preemption")
	}
}

// A client that goes away takes all its jobs out of the engine, the waiting
// ones too, and counts as nothing that was finished.
func TestAbortEmptiesTheEngine(t *testing.T) {
	engine := continuous(t, func(s *vllm.Settings) { s.MaxNumSeqs = 2 })
	truths := inVirtual(t, Config{Engine: engine}, func(t *testing.T, s *Server) {
		client, server := net.Pipe()
		go s.ServeConn(server)
		_, _ = io.WriteString(client, post("/v1/completions", `{"prompt":["a","b"],"n":2,"max_tokens":500,"stream":true}`))
		go func() { _, _ = io.Copy(io.Discard, client) }()
		time.Sleep(time.Second)
		const labels = `{engine="0",model_name="mock"}`
		page := values(t, over(t, s, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"))
		if running, waiting := page["vllm:num_requests_running"+labels], page["vllm:num_requests_waiting"+labels]; running != 2 || waiting != 2 {
			t.Errorf("before: %v running, %v waiting", running, waiting)
		}
		client.Close()
		time.Sleep(time.Second)
		page = values(t, over(t, s, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"))
		for _, name := range []string{"num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "e2e_request_latency_seconds_count"} {
			if v := page["vllm:"+name+labels]; v != 0 {
				t.Errorf("%s is %v after the client left", name, v)
			}
		}
	})
	tr := truths[0]
	if !tr.Aborted || len(tr.Choice) != len(tr.EmitNS) || !slices.Contains(tr.Choice, 1) || slices.Contains(tr.Choice, 3) {
		t.Errorf("truth: aborted %v, choices %v", tr.Aborted, tr.Choice)
	}
}

// Until the model is loaded the server answers 503.
func TestStartup(t *testing.T) {
	inVirtual(t, Config{Startup: time.Minute}, func(t *testing.T, s *Server) {
		status := func(request string) int {
			client, server := net.Pipe()
			go s.ServeConn(server)
			defer client.Close()
			go func() { _, _ = io.WriteString(client, request) }()
			resp, err := http.ReadResponse(newReaderOf(client), nil)
			if err != nil {
				t.Fatal(err)
			}
			return resp.StatusCode
		}
		const health = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
		if got := []int{status(health), status(post("/v1/completions", `{"prompt":"x"}`))}; !slices.Equal(got, []int{503, 503}) {
			t.Errorf("while it starts: %v", got)
		}
		time.Sleep(time.Minute)
		if got := []int{status(health), status(post("/v1/completions", `{"prompt":"x"}`))}; !slices.Equal(got, []int{200, 200}) {
			t.Errorf("after it: %v", got)
		}
	})
}

// The engine hangs for good, and the server goes on answering.
func TestWedge(t *testing.T) {
	fs, err := ParseFaults("wedge:after 100ms")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Engine: sim.NewFixed(sim.FixedConfig{ITL: 20 * time.Millisecond}), Alarm: clock.TimerAlarm{}, Grain: -1, Faults: fs})
		client, server := net.Pipe()
		go s.ServeConn(server)
		_, _ = io.WriteString(client, post("/v1/completions", `{"prompt":"x","max_tokens":50,"stream":true}`))
		var got bytes.Buffer
		go func() { _, _ = io.Copy(&got, client) }()
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := strings.Count(got.String(), `"text"`); n != 5 {
			t.Errorf("%d tokens", n)
		}
		if body := over(t, s, "GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.Contains(body, "mock") {
			t.Errorf("models: %s", body)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_ = s.Shutdown(ctx)
	})
}

// A new connection is not looked at for a while.
func TestSlowAccept(t *testing.T) {
	fs, err := ParseFaults("slow-accept:100%:3s")
	if err != nil {
		t.Fatal(err)
	}
	inVirtual(t, Config{Faults: fs}, func(t *testing.T, s *Server) {
		begin := time.Now()
		over(t, s, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
		if took := time.Since(begin); took != 3*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// Faults of a time span happen only then.
func TestFaultSpans(t *testing.T) {
	fs, err := ParseFaults("429:100%@10s-20s/1m, 503:100%@90s-")
	if err != nil {
		t.Fatal(err)
	}
	want := Faults{{Name: "429", Rate: 1, For: time.Second, From: 10 * time.Second, Until: 20 * time.Second, Every: time.Minute}, {Name: "503", Rate: 1, For: time.Second, From: 90 * time.Second}}
	if !slices.Equal(fs, want) {
		t.Errorf("%+v", fs)
	}
	for at, want := range map[time.Duration]string{0: "", 10: "429", 19: "429", 20: "", 70: "429", 80: "", 90: "503", 130: "429", 140: "503"} {
		if _, names := fs.drawFaults(1, 1, at*time.Second); names != want {
			t.Errorf("after %d s: %q, want %q", at, names, want)
		}
	}
	for _, text := range []string{"429:1%@10s", "429:1%@x-y", "429:1%@20s-10s", "freeze:every 20s:2s@1s-2s", "429:1%@1s-2s/0s", "wedge:30s", "wedge:after 1s:2s", "429:1%@-1s-2s"} {
		if _, err := ParseFaults(text); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

// idle gives n streams that wait for their next token, and what each costs in
// memory on the server's side and the client's end of a pipe.
func idle(t testing.TB, n int) (s *Server, each uint64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s = New(Config{Engine: sim.NewFixed(sim.FixedConfig{ITL: time.Hour})})
	request := post("/v1/chat/completions", `{"messages":[{"role":"user","content":"`+strings.Repeat("word ", 1000)+`"}],"max_tokens":4096,"stream":true}`)
	for range n {
		client, server := net.Pipe()
		go s.ServeConn(server)
		if _, err := io.WriteString(client, request); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 1024)
		for got := ""; !strings.Contains(got, `" `); { // the first token
			k, err := client.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			got += string(buf[:k])
		}
		t.Cleanup(func() { client.Close() })
	}
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return s, (after.HeapInuse + after.StackInuse - before.HeapInuse - before.StackInuse) / uint64(n)
}

// Twenty thousand idle streams fit into 500 MB: 25 kB each.
func TestIdleStreamsAreSmall(t *testing.T) {
	const n = 1000
	s, each := idle(t, n)
	if active := s.Stats().Active; active != n {
		t.Errorf("%d streams", active)
	}
	if each > 25_000 {
		t.Errorf("%d bytes a stream", each)
	}
	t.Logf("%d bytes a stream", each)
}

// Of several engines each has its own series, and what they tell adds up.
func TestMetricsOfSeveralEngines(t *testing.T) {
	c := fleet.Defaults(1)
	c.Router = "round_robin"
	one := func() sim.Model { return continuous(t, nil) }
	inVirtual(t, Config{Engine: fleet.New(c, []sim.Model{one(), one(), one()})}, func(t *testing.T, s *Server) {
		for range 4 {
			over(t, s, post("/v1/completions", `{"prompt":"a b c","max_tokens":10}`))
		}
		page := values(t, over(t, s, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"))
		for name, want := range map[string][3]float64{
			"generation_tokens_total": {20, 10, 10}, "time_to_first_token_seconds_count": {2, 1, 1}, "num_requests_running": {},
			"iteration_tokens_total_sum": {26, 13, 13}, "request_queue_time_seconds_count": {2, 1, 1}, "prompt_tokens_total": {6, 3, 3},
		} {
			for i, want := range want {
				series := fmt.Sprintf(`vllm:%s{engine="%d",model_name="mock"}`, name, i)
				if got, there := page[series]; !there || got != want {
					t.Errorf("%s is %v, want %v (%v)", series, got, want, there)
				}
			}
		}
	})
}

// An engine that dies breaks its streams off; where none is left requests are refused.
func TestEnginesThatDie(t *testing.T) {
	c := fleet.Defaults(1)
	c.Router = "round_robin"
	var err error
	if c.Changes, err = fleet.ParseChanges("55ms:die:0,65ms:die:1", 2); err != nil {
		t.Fatal(err)
	}
	inVirtual(t, Config{Engine: fleet.New(c, []sim.Model{continuous(t, nil), continuous(t, nil)})}, func(t *testing.T, s *Server) {
		bytes := func(request string) string { // as they are, to where they end
			client, server := net.Pipe()
			go s.ServeConn(server)
			defer client.Close()
			go func() { _, _ = io.WriteString(client, request) }()
			b, _ := io.ReadAll(client)
			return string(b)
		}
		broken, whole := make(chan string, 1), make(chan string, 1)
		go func() {
			broken <- bytes(post("/v1/completions", `{"prompt":"a b c","max_tokens":10,"stream":true}`))
		}()
		time.Sleep(time.Millisecond)
		go func() { whole <- bytes(post("/v1/completions", `{"prompt":"a b c","max_tokens":10}`)) }()
		if got := <-broken; strings.Count(got, "data: ") != 5 || strings.Contains(got, "[DONE]") {
			t.Errorf("the stream is\n%s", got)
		}
		if got := <-whole; !strings.HasPrefix(got, "HTTP/1.1 503") {
			t.Errorf("the answer is\n%s", got)
		}
		time.Sleep(20 * time.Millisecond)
		got := over(t, s, post("/v1/completions", `{"prompt":"a b c","max_tokens":10,"stream":true}`))
		if !strings.Contains(got, "No engine is available.") {
			t.Errorf("afterwards the answer is\n%s", got)
		}
	})
}
