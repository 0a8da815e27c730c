package session_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pitot/internal/client"
	"pitot/internal/client/api"
	"pitot/internal/clock"
	"pitot/internal/loadgen"
	"pitot/internal/metrics"
	"pitot/internal/report"
	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/sim"
	"pitot/internal/sim/serve"
	"pitot/internal/slo"
	"pitot/internal/workload"
	"pitot/internal/workload/arrival"
	"pitot/internal/workload/token"
)

// Traps that a load generator walks into without a sound to be heard: its
// numbers look fine and are wrong. The whole way from the mock's bytes to the
// report, on a clock that a bubble of synctest moves.

// answersOf is a workload of answers of one length.
type answersOf int

func (n answersOf) At(i int64) (workload.Request, error) {
	return workload.Request{
		ID: i, Input: 16, Output: int(n), Session: workload.Unknown,
		Messages: []workload.Message{{Role: "user", Segments: []workload.Segment{{Seed: uint64(i), Words: 8}}}},
	}, nil
}

// shelf keeps what a load records, as one frame.
type shelf struct {
	mu sync.Mutex
	record.Frame
}

func (s *shelf) Chunk(c record.Chunk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Chunks = append(s.Chunks, c)
}

func (s *shelf) Done(r *record.Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Rows = append(s.Rows, *r)
}

// serverAge is how old the server is when the load begins.
const serverAge = time.Millisecond

// measured is the point that comes out of a load on a mock server. body is
// what the client asks for beside the usual.
func measured(t *testing.T, server serve.Config, cfg loadgen.Config, output answersOf, body string, s metrics.Setup) (p result.Point) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server.Alarm, server.Grain = clock.TimerAlarm{}, -1
		srv := serve.New(server)
		endpoint, route, err := client.ParseTarget("http://twin.test/v1/chat/completions")
		if err != nil {
			t.Fatal(err)
		}
		var over []byte
		if body != "" {
			over = []byte(body)
		}
		out := &shelf{}
		w := loadgen.NewWall(t.Context(), loadgen.WallConfig{
			Dialer: &client.Dialer{Endpoint: endpoint, Dial: func(context.Context, string, string) (net.Conn, error) {
				client, server := net.Pipe()
				go srv.ServeConn(server)
				return client, nil
			}},
			API: api.Chat, Route: route, Source: output, Sink: out, Ahead: 8, Nonce: "n", Alarm: clock.TimerAlarm{},
			Headers: []api.Header{{Name: "Content-Type", Value: "application/json"}},
			Options: api.Options{Model: "mock", Stream: true, Vocab: token.Universal(), MaxField: "max_tokens", Body: over},
		})
		core := loadgen.NewCore(cfg)
		w.Begin(serverAge)
		loadgen.Run(t.Context(), core, w)
		w.Close()
		if err := srv.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		s.T0, s.T1 = core.MeasuredWindow()
		s.Stamps = "virtual"
		f := metrics.NewFold(s)
		f.Add(out.Frame)
		p = f.Point()
	})
	return p
}

// Survivors only: of a thousand requests 2 % are refused at once and 1 % never
// answered, and the rest take 50 ms. Whoever takes percentiles of the answers
// alone reports 50 ms and an SLO that is met.
func TestTrapSurvivorsOnly(t *testing.T) {
	faults, err := serve.ParseFaults("429:2%,hang:1%")
	if err != nil {
		t.Fatal(err)
	}
	a, err := arrival.NewConstant(20)
	if err != nil {
		t.Fatal(err)
	}
	objective, err := slo.Parse("p99 ttft<200ms")
	if err != nil {
		t.Fatal(err)
	}
	rate := 20.
	const seed = 395 // at which the chances are exactly 20 and 10 of a thousand
	p := measured(t,
		serve.Config{Engine: sim.NewFixed(sim.FixedConfig{TTFT: 50 * time.Millisecond, ITL: 10 * time.Millisecond}), Faults: faults, Seed: seed},
		loadgen.Config{Arrivals: a, Requests: 1000, Timeout: 5e9}, 4, "",
		metrics.Setup{SLO: objective, Load: result.Load{Loop: "open", Rate: &rate, Arrival: "constant"}})
	r := p.Requests
	if r.Due != 1000 || r.Failed != 20 || r.Cut != 10 || r.Errors[record.ErrRateLimited] != 20 || r.Errors[record.ErrTimeout] != 10 {
		t.Fatalf("%+v", r)
	}
	if r.Due != r.OK+r.Failed+r.Cut+r.Unsent {
		t.Errorf("due is not what came of it: %+v", r)
	}
	if p.SLO.Attained == nil || *p.SLO.Attained != .97 || p.SLO.Met != "no" {
		t.Errorf("attained %v, met %s", p.SLO.Attained, p.SLO.Met)
	}
	ttft := p.Metrics.SummaryOf(metric.TTFT)
	if ttft.P99 != nil || ttft.Over["p99"] != 5000 || ttft.P99OK == nil || math.Abs(*ttft.P99OK-50) > 1 {
		t.Errorf("p99 %v, over %v, of the survivors %v", ttft.P99, ttft.Over, ttft.P99OK)
	}
	run := result.Run{Points: []result.Point{p}, Verdict: p.Verdict}
	var text bytes.Buffer
	if err := report.Build(&run, "").WriteTerminal(&text, report.Style{}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if strings.HasPrefix(line, "TTFT ") && strings.Contains(line, ">5,000") {
			return
		}
	}
	t.Errorf("the report does not say that p99 of TTFT is above the timeout:\n%s", text.String())
}

// paced is an engine that gives each job its first tokens after a time, and
// some more at every step: known times, for any number of tokens.
type paced struct {
	ttft, step  int64
	first, more int // tokens of the first emission, and of each after it
	jobs        []*pacedJob
	out         []sim.Emission
}

type pacedJob struct {
	sim.Job
	next int64
	sent int
}

func (e *paced) Add(now int64, j sim.Job) {
	e.jobs = append(e.jobs, &pacedJob{Job: j, next: now + e.ttft})
}

func (e *paced) Abort(id int64) {
	e.jobs = slices.DeleteFunc(e.jobs, func(j *pacedJob) bool { return j.ID == id })
}

func (e *paced) Step(now int64) sim.Step {
	e.out = e.out[:0]
	next := int64(math.MaxInt64)
	for _, j := range e.jobs {
		if j.next > now {
			next = min(next, j.next)
			continue
		}
		n := e.more
		if j.sent == 0 {
			n = e.first
		}
		n = min(n, j.Output-j.sent)
		j.sent += n
		m := sim.Emission{ID: j.ID, At: j.next, Tokens: n}
		if j.sent == j.Output {
			m.Finish = "length"
			if j.Limit > j.Output {
				m.Finish = "stop"
			}
		}
		e.out = append(e.out, m)
		// A step gives one token: an emission of n of them takes n steps.
		j.next += e.step * int64(min(e.more, max(j.Output-j.sent, 1)))
	}
	e.jobs = slices.DeleteFunc(e.jobs, func(j *pacedJob) bool { return j.sent == j.Output })
	if len(e.out) > 0 {
		return sim.Step{End: now, Out: e.out}
	}
	return sim.Step{End: next, Idle: true}
}

// Chunks taken for tokens: a server that makes a token every 10 ms, in all the
// ways in which servers pack tokens into events and events into writes. TPOT
// is 10 ms wherever the server tells the tokens, and else says what it assumes;
// gaps are never zero; and no gap is called one between tokens that is not.
func TestTrapChunksTakenForTokens(t *testing.T) {
	t.Parallel()
	const step = 10 * time.Millisecond
	shapes := []struct {
		name  string
		apply func(*serve.Config, *paced, map[string]string)
	}{
		{"EOS stop", func(c *serve.Config, _ *paced, _ map[string]string) {
			c.Ends = func(n int64) int { return 23 + int(n%5) }
		}},
		{"stream interval 4", func(_ *serve.Config, e *paced, _ map[string]string) { e.more, e.first = 4, max(e.first, 1) }},
		{"first of 3", func(_ *serve.Config, e *paced, _ map[string]string) { e.first = 3 }},
		{"hidden reasoning", func(c *serve.Config, _ *paced, body map[string]string) {
			c.Reasoning, body["include_reasoning"] = .5, "false"
		}},
		{"two events a read", func(c *serve.Config, _ *paced, _ map[string]string) {
			c.Faults = serve.Faults{{Name: "coalesce", Rate: 1, K: 2}}
		}},
		{"usage with every event", func(_ *serve.Config, _ *paced, body map[string]string) {
			body["stream_options"] = `{"include_usage":true,"continuous_usage_stats":true}`
		}},
	}
	exact, assumed := 0, 0
	for set := range 1 << len(shapes) {
		engine := &paced{ttft: int64(50 * time.Millisecond), step: int64(step), first: 1, more: 1}
		server, body := serve.Config{Engine: engine}, map[string]string{}
		var names []string
		for i, s := range shapes {
			if set>>i&1 == 1 {
				s.apply(&server, engine, body)
				names = append(names, s.name)
			}
		}
		over := "{"
		for k, v := range body {
			over += fmt.Sprintf(`%q:%s,`, k, v)
		}
		over = strings.TrimSuffix(over, ",") + "}"
		name := strings.Join(names, ", ")
		p := measured(t, server, loadgen.Config{Users: 4, Stagger: 13e6, Requests: 20, Timeout: 60e9}, 40, over,
			metrics.Setup{Load: result.Load{Loop: "closed"}})
		m := p.Metrics
		if p.Requests.OK != 20 {
			t.Fatalf("%s: %+v", name, p.Requests)
		}
		switch tpot := m.SummaryOf(metric.TPOT); {
		case tpot == nil:
			t.Errorf("%s: no TPOT: %v", name, m.Undefined["tpot_ms"])
		case tpot.Label != "": // who assumes one token in the first event divides by too many
			assumed++
			if *tpot.Max > 10.01 || !strings.HasPrefix(tpot.Label, "assumed") || strings.Contains(name, "usage") {
				t.Errorf("%s: TPOT up to %.4g ms, %s", name, *tpot.Max, tpot.Label)
			}
		default:
			exact++
			for _, x := range []*float64{tpot.Min, tpot.P50, tpot.Max} {
				if math.Abs(*x-10) > .01 {
					t.Errorf("%s: TPOT %.4g ms, from %.4g to %.4g", name, *tpot.P50, *tpot.Min, *tpot.Max)
					break
				}
			}
		}
		if m.SummaryOf(metric.ICL) == nil || m.SummaryOf(metric.ICL).P50 == nil || *m.SummaryOf(metric.ICL).P50 <= 0 {
			t.Errorf("%s: ICL %+v", name, m.SummaryOf(metric.ICL))
		}
		switch itl := m.SummaryOf(metric.ITL); {
		case itl == nil:
			if m.Undefined["itl_ms"].IsNone() {
				t.Errorf("%s: ITL is undefined for no reason", name)
			}
		case itl.Label == "":
			if *itl.Min < 9.99 || *itl.Max > 10.01 {
				t.Errorf("%s: ITL from %.4g to %.4g ms", name, *itl.Min, *itl.Max)
			}
		}
	}
	t.Logf("TPOT of %d servers: %d exact, %d assumed", 1<<len(shapes), exact, assumed)
}

// A server that freezes does so alike behind a socket and in virtual time.
func TestFreezeInBothWorlds(t *testing.T) {
	t.Parallel()
	faults, err := serve.ParseFaults("freeze:every 20s:2s")
	if err != nil {
		t.Fatal(err)
	}
	cfg := func() loadgen.Config {
		a, err := arrival.NewConstant(99)
		if err != nil {
			t.Fatal(err)
		}
		return loadgen.Config{Arrivals: a, Warmup: 10e9, Window: 20e9, Timeout: 60e9}
	}
	engine := sim.FixedConfig{TTFT: 30*time.Millisecond + 137, ITL: 10*time.Millisecond + 11}
	const output = answersOf(8)
	real := measured(t, serve.Config{Engine: sim.NewFixed(engine), Faults: faults}, cfg(), output, "", metrics.Setup{})

	out, core := &shelf{}, loadgen.NewCore(cfg())
	loadgen.Run(t.Context(), core, loadgen.NewVirtual(loadgen.VirtualConfig{Engine: sim.NewFixed(engine), Source: output, Sink: out,
		Thaw: func(at int64) int64 { return faults.ThawTime(at+int64(serverAge)) - int64(serverAge) }}))
	s := metrics.Setup{Stamps: "virtual"}
	s.T0, s.T1 = core.MeasuredWindow()
	f := metrics.NewFold(s)
	f.Add(out.Frame)
	virtual := f.Point()

	for name, of := range map[string]func(*result.Metrics) *result.Summary{
		"ttft":  func(m *result.Metrics) *result.Summary { return m.SummaryOf(metric.TTFT) },
		"e2e":   func(m *result.Metrics) *result.Summary { return m.SummaryOf(metric.E2E) },
		"stall": func(m *result.Metrics) *result.Summary { return m.SummaryOf(metric.Stall) },
	} {
		a, b := of(&real.Metrics), of(&virtual.Metrics)
		for _, x := range [][2]*float64{{a.P50, b.P50}, {a.P99, b.P99}, {a.Mean, b.Mean}, {a.Max, b.Max}} {
			if math.Abs(*x[0]-*x[1]) > 1e-3**x[0] {
				t.Errorf("%s: %g ms behind a socket, %g in virtual time", name, *x[0], *x[1])
			}
		}
	}
	if p99 := *virtual.Metrics.SummaryOf(metric.TTFT).P99; p99 < 1500 {
		t.Errorf("p99 of TTFT is %g ms with a freeze of 2 s", p99)
	}
}
