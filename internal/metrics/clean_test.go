package metrics_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pitot/internal/loadgen"
	"pitot/internal/metrics"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/sim"
	"pitot/internal/workload"
	"pitot/internal/workload/arrival"
)

// answers is a workload of short prompts and answers of 8 to 24 tokens.
type answers struct{ seed uint64 }

func (a answers) At(i int64) (workload.Request, error) {
	rng := rand.New(rand.NewPCG(a.seed, uint64(i)))
	return workload.Request{ID: i, Input: 100, Output: 8 + rng.IntN(17), Exact: true, Session: workload.Unknown}, nil
}

// shelf keeps what a load records, as one frame.
type shelf struct{ record.Frame }

func (s *shelf) Chunk(c record.Chunk) { s.Chunks = append(s.Chunks, c) }
func (s *shelf) Done(r *record.Row)   { s.Rows = append(s.Rows, *r) }

// virtual is a load on the twin of fixed latencies in virtual time, and what
// it comes out as. rate 0 is a closed loop of ten users.
func virtual(t testing.TB, rate float64, seconds int64, engine sim.FixedConfig, seed uint64, edit func(*loadgen.Config, *metrics.Setup)) result.Point {
	t.Helper()
	cfg := loadgen.Config{Warmup: 2e9, Window: seconds * 1e9, Timeout: 600e9}
	s := metrics.Setup{T0: cfg.Warmup, T1: cfg.Warmup + cfg.Window, Stamps: "virtual", Exact: true, AutoWarmup: true}
	if rate > 0 {
		a, err := arrival.NewPoisson(rate, seed)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Arrivals = a
		s.Load = result.Load{Loop: "open", Rate: &rate, Arrival: "poisson"}
	} else {
		users := 10
		cfg.Users, cfg.Stagger = users, 4e8
		s.Load = result.Load{Loop: "closed", Concurrency: &users}
	}
	if edit != nil {
		edit(&cfg, &s)
	}
	engine.Seed = seed
	var out shelf
	core := loadgen.NewCore(cfg)
	loadgen.Run(context.Background(), core, loadgen.NewVirtual(loadgen.VirtualConfig{Engine: sim.NewFixed(engine), Source: answers{seed}, Sink: &out}))
	setups := map[int32]metrics.Setup{0: s}
	metrics.SettleWindows(setups, func(yield func(record.Frame, error) bool) { yield(out.Frame, nil) })
	f := metrics.NewFold(setups[0])
	f.Add(out.Frame)
	return f.Point()
}

// serving takes about 0.4 s a request, whatever the load.
func serving() sim.FixedConfig {
	return sim.FixedConfig{TTFT: 80 * time.Millisecond, ITL: 20 * time.Millisecond, JitterCV: .2}
}

// A clean run is plainly valid: what flags it now and then by chance is rare.
// Light loads and one at 0.8 of its slots, open and closed, of 50 residence
// times and more, of 200 requests and more.
func TestCleanRunsAreValid(t *testing.T) {
	if testing.Short() {
		t.Skip("simulations on one goroutine are slow under the race detector")
	}
	t.Parallel()
	const runs = 60
	cases := []struct {
		rate  float64 // 0 is a closed loop
		slots int
	}{{0, 0}, {2, 0}, {6, 0}, {20, 0}, {50, 0}, {32, 16}}
	flags, valid := map[string]int{}, 0
	for i := range runs {
		c := cases[i%len(cases)]
		seconds := int64(20 + 10*(i/len(cases)%3))
		if c.rate > 0 {
			seconds = max(seconds, int64(200/c.rate))
		}
		engine := serving()
		engine.Slots = c.slots
		p := virtual(t, c.rate, seconds, engine, uint64(i), nil)
		if p.Verdict == result.Valid {
			valid++
		}
		for _, check := range p.Checks {
			if check.Status != "pass" {
				flags[fmt.Sprintf("%s at %g/s", check.Name, c.rate)]++
				t.Logf("run %d at %g/s: %+v", i, c.rate, check)
			}
		}
	}
	t.Logf("%d of %d valid, flags %v", valid, runs, flags)
	if valid < runs*95/100 {
		t.Errorf("%d of %d clean runs are valid: %v", valid, runs, flags)
	}
}
