package loadgen

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/client"
	"pitot/internal/client/api"
	"pitot/internal/clock"
	"pitot/internal/results/record"
	"pitot/internal/sim"
	"pitot/internal/sim/serve"
	"pitot/internal/workload"
	"pitot/internal/workload/arrival"
	"pitot/internal/workload/token"
)

// asks is a workload whose answers are between 1 and most tokens long.
type asks struct{ most int }

func (a asks) At(i int64) (workload.Request, error) {
	return workload.Request{
		ID: i, Input: 16, Output: 1 + int(uint64(i)*2654435761%uint64(a.most)), Exact: true, Session: workload.Unknown,
		Messages: []workload.Message{{Role: "user", Segments: []workload.Segment{{Seed: uint64(i), Words: 8}}}},
	}, nil
}

// talks is a workload of conversations of three turns, with a pause before each that
// depends on the session.
type talks struct{ asks }

func (a talks) At(item int64) (workload.Request, error) {
	s, turn := workload.SplitItem(item)
	r, err := a.asks.At(s)
	r.ID, r.Session, r.Turn = item, s, turn
	return r, err
}

func (talks) Follow(item int64, answered bool) []workload.Next {
	s, turn := workload.SplitItem(item)
	if turn == 2 || !answered {
		return nil
	}
	return []workload.Next{{Item: workload.TurnItem(s, turn+1), After: time.Duration(2_000_003 + s*1009)}}
}

// fans is a workload of agents: each asks, lets two others do a part of the work, one of
// them in two steps, and asks again when both are done.
type fans struct{ talks }

func (fans) Follow(item int64, answered bool) []workload.Next {
	s, turn := workload.SplitItem(item)
	next := func(turn int32, join int) workload.Next {
		return workload.Next{Item: workload.TurnItem(s, turn), After: time.Duration(1_000_003*int64(turn) + s*1009), Join: join}
	}
	switch {
	case !answered || turn == 4:
		return nil
	case turn == 0:
		return []workload.Next{next(1, 0), next(2, 1)}
	case turn == 2:
		return []workload.Next{next(3, 0)}
	}
	return []workload.Next{next(4, 2)}
}

// shelf is a sink that keeps everything.
type shelf struct {
	mu     sync.Mutex
	rows   map[int64]record.Row
	order  []int64 // in which rows came
	chunks map[int64][]record.Chunk
	on     func(rows int) // if not nil, called for what comes, with how many rows there are
}

func newShelf() *shelf {
	return &shelf{rows: map[int64]record.Row{}, chunks: map[int64][]record.Chunk{}}
}

func (s *shelf) Chunk(c record.Chunk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chunks[c.Request] = append(s.chunks[c.Request], c)
	if s.on != nil {
		s.on(len(s.rows))
	}
}

func (s *shelf) Done(r *record.Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, twice := s.rows[r.ID]; twice {
		panic("a row twice")
	}
	s.rows[r.ID] = *r
	s.order = append(s.order, r.ID)
	if s.on != nil {
		s.on(len(s.rows))
	}
}

// diary writes down what a world is told to do, and when.
type diary struct {
	World
	acts []Action
	when []int64
}

func (d *diary) Do(a Action) {
	d.acts, d.when = append(d.acts, a), append(d.when, d.Now())
	d.World.Do(a)
}

// seen is all that one world says of a plan.
type seen struct {
	Acts   []Action
	When   []int64
	T0, T1 int64
	Rows   map[int64]times5
}

// times5 are the facts of a row that both worlds know.
type times5 struct {
	Due, Eligible, TTFT, E2E, Done int64
	Outcome                        record.Outcome
	Error, Finish                  string
	Output                         int32

	Earlier       int32
	EarlierErrors string
	Backoff       int64
}

func saw(d *diary, c *Core, s *shelf) seen {
	out := seen{Acts: d.acts, When: d.when, Rows: map[int64]times5{}}
	out.T0, out.T1 = c.MeasuredWindow()
	for id, r := range s.rows {
		f := times5{Due: r.Due, Eligible: r.Eligible, TTFT: -1, E2E: -1, Done: r.Done, Outcome: r.Outcome, Error: r.Error, Finish: r.Finish, Output: r.CompletionTokens,
			Earlier: r.Earlier, EarlierErrors: r.EarlierErrors, Backoff: r.Backoff}
		if r.FirstToken >= 0 {
			f.TTFT = r.FirstToken - r.Due
		}
		if r.LastToken >= 0 && r.Outcome == record.OK {
			f.E2E = r.LastToken - r.Due
		}
		if r.Outcome == record.Unsent {
			f.Done = -1
		}
		out.Rows[id] = f
	}
	return out
}

// failing is what both servers answer with errors.
var failing = serve.Faults{{Name: "503", Rate: .3}, {Name: "429", Rate: .15, For: time.Second}, {Name: "500", Rate: .1}}

// virtually carries a load out in the virtual world.
func virtually(cfg Config, engine sim.FixedConfig, src workload.Source) seen {
	s, c := newShelf(), NewCore(cfg)
	world := VirtualConfig{Engine: sim.NewFixed(engine), Source: src, Sink: s}
	if cfg.Retry != nil {
		world.Retry = true
		world.Refuse = func(n, at int64) (int, int64) {
			status, after := failing.RefusalStatus(0, n, time.Duration(at))
			return status, int64(after)
		}
	}
	d := &diary{World: NewVirtual(world)}
	Run(context.Background(), c, d)
	return saw(d, c, s)
}

// really carries a load out in the wall world, on a clock that a bubble of
// synctest moves, over pipes to the mock server with the same engine.
func really(t *testing.T, cfg Config, engine sim.FixedConfig, src workload.Source, conns int) (out seen) {
	synctest.Test(t, func(t *testing.T) {
		var faults serve.Faults
		if cfg.Retry != nil {
			faults = failing
		}
		srv := serve.New(serve.Config{Engine: sim.NewFixed(engine), Alarm: clock.TimerAlarm{}, Grain: -1, Faults: faults})
		e, route, err := client.ParseTarget("http://twin.test/v1/chat/completions")
		if err != nil {
			t.Fatal(err)
		}
		dialer := &client.Dialer{Endpoint: e, Dial: func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go srv.ServeConn(server)
			return client, nil
		}}
		s, c := newShelf(), NewCore(cfg)
		w := NewWall(t.Context(), WallConfig{
			Dialer: dialer, API: api.Chat, Route: route, Source: src, Sink: s, Ahead: 8, Nonce: "n", Alarm: clock.TimerAlarm{}, Retry: cfg.Retry != nil,
			Headers: []api.Header{{Name: "Content-Type", Value: "application/json"}},
			Options: api.Options{Model: "mock", Stream: true, Vocab: token.Universal(), IgnoreEOS: true, MaxField: "max_tokens"},
		})
		if conns > 0 {
			if err := w.Open(t.Context(), conns); err != nil {
				t.Fatal(err)
			}
		}
		w.WaitPrepared(t.Context(), 8)
		w.Begin(time.Millisecond)
		d := &diary{World: w}
		Run(t.Context(), c, d)
		w.Close()
		if err := srv.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		out = saw(d, c, s)
		for id, r := range s.rows {
			between := r.Outcome == record.Cut && r.Earlier > 0 && r.Sent < 0
			if r.Outcome != record.Unsent && !between && (r.Due > r.Eligible || r.Eligible > r.Ready || r.Ready > r.Sent) {
				t.Errorf("request %d: due %d, eligible %d, ready %d, sent %d", id, r.Due, r.Eligible, r.Ready, r.Sent)
			}
		}
	})
	return out
}

// doubling sends a request again twice at most, after times that no two share.
func doubling(id int64, earlier int, e Event) (int64, bool) {
	return int64(20*time.Millisecond)<<earlier + id*1009 + e.RetryAfter/10, earlier < 2
}

// The guard of the architecture: one plan in both worlds takes the same
// decisions at the same time, and gives the same latencies to the nanosecond.
func TestBothWorldsDecideAlike(t *testing.T) {
	const ms = int64(time.Millisecond)
	poisson := func(rate float64) func() Config {
		return func() Config {
			a, err := arrival.NewPoisson(rate, 7)
			if err != nil {
				t.Fatal(err)
			}
			return Config{Arrivals: a, Warmup: 200 * ms, Window: 1000 * ms, Timeout: 60_000 * ms}
		}
	}
	with := func(base func() Config, change func(*Config)) func() Config {
		return func() Config { c := base(); change(&c); return c }
	}
	closed := func(users int) func() Config {
		return func() Config {
			return Config{Users: users, Warmup: 100 * ms, Window: 900 * ms, Timeout: 60_000 * ms}
		}
	}
	engine := sim.FixedConfig{TTFT: 50*time.Millisecond + 137, ITL: 7*time.Millisecond + 11}
	slots := engine
	slots.Slots = 3
	chunks := engine
	chunks.TokensPerChunk, chunks.RoleChunk = 3, true
	for _, c := range []struct {
		name   string
		cfg    func() Config
		engine sim.FixedConfig
		conns  int
	}{
		{"open", poisson(60), engine, 16},
		{"open, cold connections", poisson(60), engine, 0},
		{"open, capped", with(poisson(60), func(c *Config) { c.Cap = 4 }), engine, 4},
		{"open, far beyond the cap", with(poisson(200), func(c *Config) { c.Cap = 4; c.Timeout = 400*ms + 13 }), engine, 4},
		{"open, requests", with(poisson(60), func(c *Config) { c.Window, c.Requests = 0, 40 }), engine, 16},
		{"open, slots", poisson(25), slots, 16},
		{"open, slots and timeout", with(poisson(60), func(c *Config) { c.Timeout = 300*ms + 7 }), slots, 16},
		{"open, timeout between tokens", with(poisson(60), func(c *Config) { c.Timeout = 90*ms + 7 }), engine, 16},
		{"open, some tokens at a time", poisson(60), chunks, 16},
		{"closed", closed(5), engine, 5},
		{"open, retries", with(poisson(60), func(c *Config) { c.Retry = doubling }), engine, 16},
		// The window ends where the request that has the last one's place is not refused: what
		// comes first, that or the end, has no answer in a real world.
		{"open, retries, capped", with(poisson(60), func(c *Config) { c.Retry, c.Cap, c.Window = doubling, 4, 1050*ms }), engine, 4},
		{"open, retries, timeout", with(poisson(60), func(c *Config) { c.Retry, c.Timeout = doubling, 150*ms+7 }), engine, 16},
		// Users begin one after the other: which of requests that come in one nanosecond a
		// fault meets has no answer in a real world.
		{"closed, retries", with(closed(5), func(c *Config) {
			c.Stagger, c.Retry, c.Think = 53*ms, doubling, func(id int64) int64 { return id * 1009 }
		}), engine, 5},
		{"open, conversations, retries", with(poisson(25), func(c *Config) { c.Follow, c.Retry = FollowOf(talks{}), doubling }), engine, 16},
		{"closed, think", with(closed(5), func(c *Config) { c.Think = func(id int64) int64 { return 3*ms + id*1009 } }), engine, 5},
		{"closed, requests", with(closed(5), func(c *Config) { c.Window, c.Requests = 0, 33 }), engine, 5},
		{"closed, capped", with(closed(6), func(c *Config) { c.Cap = 2 }), engine, 2},
		// The pauses keep an answer and a timeout from falling into the same
		// nanosecond: which of the two is first has no answer in a real world.
		{"closed, timeout", with(closed(5), func(c *Config) {
			c.Timeout, c.Think = 80*ms+7, func(id int64) int64 { return id * 1009 }
		}), engine, 5},
		{"open, conversations", with(poisson(25), func(c *Config) { c.Follow = FollowOf(talks{}) }), engine, 16},
		{"open, conversations, capped", with(poisson(25), func(c *Config) { c.Follow, c.Cap = FollowOf(talks{}), 4 }), engine, 4},
		{"open, conversations, requests", with(poisson(25), func(c *Config) { c.Follow, c.Window, c.Requests = FollowOf(talks{}), 0, 40 }), engine, 16},
		{"open, conversations, timeout", with(poisson(25), func(c *Config) { c.Follow, c.Timeout = FollowOf(talks{}), 150*ms+7 }), engine, 16},
		{"closed, conversations", with(closed(5), func(c *Config) { c.Follow = FollowOf(talks{}) }), engine, 5},
		{"open, agents", with(poisson(15), func(c *Config) { c.Follow = FollowOf(fans{}) }), engine, 24},
		{"open, agents, capped", with(poisson(15), func(c *Config) { c.Follow, c.Cap = FollowOf(fans{}), 4 }), engine, 4},
		{"closed, agents", with(closed(5), func(c *Config) { c.Follow = FollowOf(fans{}) }), engine, 10},
		{"closed, agents, timeout", with(closed(5), func(c *Config) {
			c.Follow, c.Timeout, c.Think = FollowOf(fans{}), 150*ms+7, func(id int64) int64 { return id * 1009 }
		}), engine, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := talks{asks{most: 20}}
			v := virtually(c.cfg(), c.engine, src)
			w := really(t, c.cfg(), c.engine, src, c.conns)
			if len(v.Acts) < 30 {
				t.Errorf("only %d actions", len(v.Acts))
			}
			if d := cmp.Diff(v, w); d != "" {
				t.Errorf("the virtual world (-) and the real one (+):\n%s", d)
			}
		})
	}
}

func TestVirtualTwice(t *testing.T) {
	once := func() (seen, *shelf) {
		a, err := arrival.NewPoisson(80, 3)
		if err != nil {
			t.Fatal(err)
		}
		s, c := newShelf(), NewCore(Config{Arrivals: a, Warmup: 1e8, Window: 2e9, Timeout: 6e10, Cap: 6})
		engine := sim.FixedConfig{TTFT: 20 * time.Millisecond, ITL: 5 * time.Millisecond, JitterCV: .5, Slots: 8, Seed: 9}
		d := &diary{World: NewVirtual(VirtualConfig{Engine: sim.NewFixed(engine), Source: asks{30}, Sink: s})}
		Run(context.Background(), c, d)
		return saw(d, c, s), s
	}
	a, as := once()
	b, bs := once()
	if d := cmp.Diff(a, b); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(as.rows, bs.rows) + cmp.Diff(as.chunks, bs.chunks) + cmp.Diff(as.order, bs.order); d != "" {
		t.Error(d)
	}
	if len(as.rows) < 150 {
		t.Errorf("%d rows", len(as.rows))
	}
}

// The turns of a conversation are asked one after the other's answer, each once,
// and a user begins another when one is over.
func TestConversations(t *testing.T) {
	for _, users := range []int{0, 4} {
		a, err := arrival.NewPoisson(20, 5)
		if err != nil {
			t.Fatal(err)
		}
		cfg := Config{Arrivals: a, Window: 3e9, Timeout: 6e10, Follow: FollowOf(talks{})}
		if users > 0 {
			cfg.Arrivals, cfg.Users = nil, users
		}
		s := newShelf()
		Run(context.Background(), NewCore(cfg), NewVirtual(VirtualConfig{
			Engine: sim.NewFixed(sim.FixedConfig{TTFT: 20 * time.Millisecond, ITL: 5 * time.Millisecond}), Source: talks{asks{20}}, Sink: s,
		}))
		type place struct {
			session int64
			turn    int32
		}
		rows := map[place]record.Row{}
		for _, r := range s.rows {
			at := place{r.Session, r.Turn}
			if _, twice := rows[at]; twice {
				t.Errorf("%d users: session %d, turn %d was asked twice", users, r.Session, r.Turn)
			}
			rows[at] = r
		}
		later := 0
		for at, r := range rows {
			if at.turn == 0 {
				continue
			}
			later++
			if before, ok := rows[place{at.session, at.turn - 1}]; !ok || r.Due != before.Done+2_000_003+at.session*1009 {
				t.Errorf("%d users: session %d, turn %d was due at %d, the one before ended at %d", users, at.session, at.turn, r.Due, before.Done)
			}
		}
		if later < 60 {
			t.Errorf("%d users: %d turns", users, later)
		}
	}
}

// An agent goes on when all have ended whom it waits for, a pause after the last.
func TestJoin(t *testing.T) {
	for _, users := range []int{0, 4} {
		a, err := arrival.NewPoisson(10, 5)
		if err != nil {
			t.Fatal(err)
		}
		cfg := Config{Arrivals: a, Window: 3e9, Timeout: 6e10, Follow: FollowOf(fans{})}
		if users > 0 {
			cfg.Arrivals, cfg.Users = nil, users
		}
		s := newShelf()
		Run(context.Background(), NewCore(cfg), NewVirtual(VirtualConfig{
			Engine: sim.NewFixed(sim.FixedConfig{TTFT: 20 * time.Millisecond, ITL: 5 * time.Millisecond}), Source: fans{talks{asks{20}}}, Sink: s,
		}))
		type place struct {
			session int64
			turn    int32
		}
		rows := map[place]record.Row{}
		for _, r := range s.rows {
			rows[place{r.Session, r.Turn}] = r
		}
		joins := 0
		for at, r := range rows {
			if at.turn != 4 {
				continue
			}
			joins++
			one, other := rows[place{at.session, 1}], rows[place{at.session, 3}]
			if other.Done > one.Done {
				one = other
			}
			if want := one.Done + 4*1_000_003 + at.session*1009; r.Due != want {
				t.Errorf("%d users: session %d goes on at %d, want %d after request %d", users, at.session, r.Due, want, one.ID)
			}
		}
		if joins < 10 {
			t.Errorf("%d users: %d joins", users, joins)
		}
	}
}
