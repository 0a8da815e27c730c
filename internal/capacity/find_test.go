package capacity

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// truth is a target whose violations follow logistic curves of the load, with
// counts that come in bursts: each of them violates about a burst's length of
// requests in a row.
type truth struct {
	capacity  []float64 // of each limit, at 1 %
	slope     float64
	slopes    []float64 // of each limit, nil for slope
	burst     float64   // mean length
	residence float64   // seconds, alone; it doubles up to the first capacity
	closed    bool
	fails     float64 // share of the requests, whatever the load
	dies      float64 // load from which the target dies, 0 for none
	rng       *rand.Rand
}

func truthAt(capacity ...float64) *truth {
	return &truth{capacity: capacity, slope: 25, burst: 40, residence: 0.5, rng: rand.New(rand.NewPCG(1, 2))}
}

func (t *truth) share(limit int, load float64) float64 {
	slope := t.slope
	if t.slopes != nil {
		slope = t.slopes[limit]
	}
	return 1 / (1 + math.Exp(-(math.Log(0.01/0.99) + slope*math.Log(load/t.capacity[limit]))))
}

func (t *truth) probe(_ context.Context, p Probe) (Seen, error) {
	if t.dies > 0 && p.Load >= t.dies {
		return Seen{Load: p.Load, N: p.Requests, Failed: true}, nil
	}
	s := Seen{Load: p.Load, N: p.Requests, Violations: make([]int, len(t.capacity)), Blocks: make([][]int, len(t.capacity)), JointBlock: make([]int, p.Blocks), Stability: stats.Undecided}
	s.Residence = t.residence * (1 + min(1, p.Load/t.capacity[0]))
	rate := p.Load
	if t.closed {
		rate = p.Load / s.Residence
	}
	s.Seconds = (p.Residences+1)*s.Residence + float64(p.Requests)/rate
	violated := make([]uint8, p.Requests)
	for limit := range t.capacity {
		s.Blocks[limit] = make([]int, p.Blocks)
		// On and off in turn, with means in the proportion of the share.
		share := t.share(limit, p.Load)
		on := t.rng.Float64() < share
		for i := range violated {
			if on {
				violated[i] |= 1 << limit
				on = t.rng.Float64() >= 1/t.burst
			} else {
				on = t.rng.Float64() < share/(1-share)/t.burst
			}
		}
	}
	for i := range violated {
		if t.fails > 0 && t.rng.Float64() < t.fails {
			violated[i] = 1<<len(t.capacity) - 1
			s.Errors++
		}
	}
	for i, v := range violated {
		block := i * p.Blocks / p.Requests
		for limit := range t.capacity {
			s.Violations[limit] += int(v >> limit & 1)
			s.Blocks[limit][block] += int(v >> limit & 1)
		}
		if v != 0 {
			s.Joint++
			s.JointBlock[block]++
		}
	}
	return s, nil
}

func search80k() FindConfig {
	return FindConfig{Eps: []float64{0.01}, Residence: 0.5, Budget: Budget{Requests: 80_000}, Seed: 1}
}

// Where the truth is known, intervals hold it, quotes are below it, and the
// budget is kept.
func TestFindHoldsTheTruth(t *testing.T) {
	const reps, capacity = 60, 37.0
	answered, holds, quoted, high, bracket := 0, 0, 0, 0, 0
	for r := range reps {
		of := truthAt(capacity)
		of.rng = rand.New(rand.NewPCG(9, uint64(r)))
		c := search80k()
		c.Seed = uint64(r)
		got, err := Find(t.Context(), c, of.probe)
		if err != nil {
			t.Fatal(err)
		}
		if got.Requests > c.Budget.Requests {
			t.Errorf("%d requests of %d", got.Requests, c.Budget.Requests)
		}
		count(&bracket, got.AtLeast <= capacity && capacity <= got.AtMost)
		count(&answered, got.Estimate > 0)
		count(&holds, got.Interval.Contains(capacity))
		count(&quoted, got.Quote > 0)
		count(&high, got.Quote > 1.02*capacity)
		if got.Quote > 0 && !got.Verified.Passed || got.Estimate > 0 && got.Quote > got.Lower || (got.Estimate > 0 && got.Quote > 0) != got.Reason.IsNone() {
			t.Errorf("quote %v, lower %v, %v, %+v", got.Quote, got.Lower, got.Reason, got.Verified)
		}
	}
	of := func(share float64, n int) int { return int(share * float64(n)) }
	if answered < of(0.95, reps) || holds < of(0.88, answered) || quoted < of(0.8, reps) || high > of(0.06, quoted) || bracket < of(0.95, reps) {
		t.Errorf("of %d: %d answered, %d hold, %d quoted, %d over 2 %% too high, %d brackets hold", reps, answered, holds, quoted, high, bracket)
	}
}

func count(n *int, yes bool) {
	if yes {
		*n++
	}
}

// The loads that are fitted are 16, fixed before any of them was measured: the
// middle of each leg's is no probe's result but the centre's.
func TestFindTrail(t *testing.T) {
	got, err := Find(t.Context(), search80k(), truthAt(37).probe)
	if err != nil {
		t.Fatal(err)
	}
	stages, requests, seconds := map[string]int{}, 0, 0.0
	n := map[int]bool{}
	for _, s := range got.Trail {
		stages[s.Stage]++
		requests += s.Seen.N
		seconds += s.Seen.Seconds
		if s.Stage == Main {
			n[s.Requests] = true
		}
	}
	if stages[Light] != 1 || stages[Main] != mainLoads || stages[Centre]%stairs != 0 || stages[Verifying] < 1 || len(n) != 1 {
		t.Errorf("%v, %v", stages, n)
	}
	if requests != got.Requests || math.Abs(seconds-got.Seconds) > 1e-6 || got.Label != ThisLaunch {
		t.Errorf("%d requests in %v s, said are %d in %v s, %q", requests, seconds, got.Requests, got.Seconds, got.Label)
	}
}

func TestFindEnds(t *testing.T) {
	for name, c := range map[string]struct {
		config func(*FindConfig)
		target func(*truth)
		reason result.Reason
		open   bool // nothing is known to be above the capacity
	}{
		"never violates":    {func(*FindConfig) {}, func(x *truth) { x.capacity = []float64{1e12} }, result.Reason{Code: result.MetAtEveryLoad}, true},
		"up to a limit":     {func(c *FindConfig) { c.MaxLoad = 20 }, func(x *truth) {}, result.Reason{Code: result.MetAtMostLoad, Low: 20}, true},
		"always violates":   {func(*FindConfig) {}, func(x *truth) { x.capacity = []float64{0.01} }, result.Reason{Code: result.MissedAtAnyLoad}, true},
		"always fails":      {func(*FindConfig) {}, func(x *truth) { x.fails = 0.03 }, result.Reason{Code: result.MissedAtAnyLoad}, true},
		"dies":              {func(*FindConfig) {}, func(x *truth) { x.dies = 30 }, result.Reason{Code: result.TargetFailed, Low: 32}, true},
		"dies at once":      {func(*FindConfig) {}, func(x *truth) { x.dies = 0.1 }, result.Reason{Code: result.TargetFailed, Low: 2}, true},
		"tiny":              {func(c *FindConfig) { c.Budget.Requests = 10 }, func(x *truth) {}, result.Reason{Code: result.BudgetInBracket, Needed: 740}, true},
		"saturates in step": {func(*FindConfig) {}, func(x *truth) { x.capacity = []float64{1e12}; x.residence = -1 }, result.Reason{Code: result.CarriedUnknown}, false},
	} {
		t.Run(name, func(t *testing.T) {
			config, of := search80k(), truthAt(37)
			c.config(&config)
			c.target(of)
			probe := of.probe
			if of.residence < 0 { // a queue grows from 100/s on, and nobody claims TTFT
				of.residence = 0.5
				probe = func(ctx context.Context, p Probe) (Seen, error) {
					s, err := of.probe(ctx, p)
					if p.Load > 100 {
						s.Stability = stats.Unstable
					}
					return s, err
				}
			}
			got, err := Find(t.Context(), config, probe)
			if err != nil {
				t.Fatal(err)
			}
			if c.reason.Code == result.MissedAtAnyLoad { // by how many is chance
				got.Reason = result.Reason{Code: got.Reason.Code}
			}
			if got.Reason != c.reason || got.Estimate != 0 || (got.AtMost == 0) != c.open {
				t.Errorf("reason %+v, estimate %v, at least %v, at most %v", got.Reason, got.Estimate, got.AtLeast, got.AtMost)
			}
		})
	}
}

// What was known before the target died is not lost.
func TestFindDiesLate(t *testing.T) {
	of := truthAt(37)
	probes := 0
	got, err := Find(t.Context(), search80k(), func(ctx context.Context, p Probe) (Seen, error) {
		if p.Stage == Main {
			if probes++; probes > 12 {
				return Seen{Failed: true}, nil
			}
		}
		return of.probe(ctx, p)
	})
	if err != nil || got.Reason.Code != result.TargetFailed || got.AtMost < 37 || got.Quote != 0 {
		t.Errorf("%v, %+v", err, got.Reason)
	}
}

func TestFindIsInterrupted(t *testing.T) {
	of := truthAt(37)
	for _, after := range []int{0, 5, 20, 30} {
		ctx, cancel := context.WithCancel(t.Context())
		probes := 0
		got, err := Find(ctx, search80k(), func(ctx context.Context, p Probe) (Seen, error) {
			if probes++; probes > after {
				cancel()
				return Seen{}, ctx.Err()
			}
			return of.probe(ctx, p)
		})
		cancel()
		if !errors.Is(err, context.Canceled) || len(got.Trail) != after || got.Reason.Code != result.SearchInterrupted {
			t.Errorf("after %d: %v, %d probes, %v", after, err, len(got.Trail), got.Reason)
		}
	}
}

// Users are whole, also few of them.
func TestFindClosed(t *testing.T) {
	const searches = 5
	hold := 0
	for _, capacity := range []float64{3.4, 12.5, 180} {
		near := 0
		for seed := range uint64(searches) {
			of := truthAt(capacity)
			of.closed, of.slope, of.rng = true, 12, rand.New(rand.NewPCG(4, seed))
			c := search80k()
			c.Closed, c.Seed = true, seed
			got, err := Find(t.Context(), c, func(ctx context.Context, p Probe) (Seen, error) {
				if p.Load != math.Trunc(p.Load) || p.Load < 1 {
					t.Errorf("%v users", p.Load)
				}
				return of.probe(ctx, p)
			})
			if err != nil || got.Quote != math.Trunc(got.Quote) || got.Quote > capacity {
				t.Errorf("capacity %v: %v, quote %v, %v, at most %v, %v", capacity, err, got.Quote, got.Interval, got.AtMost, got.Reason)
			}
			count(&near, got.Quote >= 0.7*capacity-1)
			count(&hold, got.Interval.Contains(capacity))
		}
		if near <= searches/2 {
			t.Errorf("capacity %v: %d of %d quotes come near", capacity, near, searches)
		}
	}
	if all := 3 * searches; hold < all-2 {
		t.Errorf("%d of %d intervals hold", hold, all)
	}
}

// The limit that is reached first binds, alone or as part of a joint claim.
func TestFindBinds(t *testing.T) {
	c := search80k()
	c.Eps = []float64{0.01, 0.01}
	got, err := Find(t.Context(), c, truthAt(60, 37).probe)
	if err != nil || got.Binding != 1 || got.Dominant != 1 || !got.Interval.Contains(37) || len(got.Claims) != 2 {
		t.Errorf("%v, %+v", err, got.Claims)
	}
	c.Eps, c.Joint = []float64{0, 0}, 0.01
	got, err = Find(t.Context(), c, truthAt(37, 60).probe)
	if err != nil || got.Binding != Joint || got.Dominant != 0 || !got.Interval.Contains(37) || len(got.Claims) != 1 {
		t.Errorf("%v, %+v", err, got.Claims)
	}
}

// A second limit does not keep the first from having an estimate where windows are counted.
func TestFindBesideAnotherLimit(t *testing.T) {
	for name, c := range map[string]struct {
		capacity, slope, burst float64
		seed                   uint64
	}{
		// It is reached a little later and then at once, beyond the loads that are measured.
		"steep": {42.5, 150, 10, 3},
		// Its few violations come in long bursts, and rise so slowly that its own crossing is not
		// known: the windows together show that it holds beyond the first.
		"rare": {43, 12, 25, 4},
	} {
		t.Run(name, func(t *testing.T) {
			answered, holds := 0, 0
			for r := range uint64(20) {
				config := search80k()
				config.Eps, config.Count, config.Seed, config.Budget = []float64{0.01, 0.01}, true, r, Budget{Requests: 150_000}
				of := truthAt(37, c.capacity)
				of.slopes, of.burst, of.rng = []float64{25, c.slope}, c.burst, rand.New(rand.NewPCG(c.seed, r))
				got, err := Find(t.Context(), config, of.probe)
				if err != nil || !agrees(&got) {
					t.Fatalf("%v, %+v", err, got)
				}
				count(&answered, got.Estimate > 0 && got.Binding == 0)
				count(&holds, got.Interval.Contains(37))
			}
			if answered < 19 || holds < 17 {
				t.Errorf("of 20 searches %d have an estimate, and %d intervals hold", answered, holds)
			}
		})
	}
}

// Where windows are counted a load is known to be within by all of them together, wherever the
// curve lies. That is too high as seldom as is said, however slowly violations rise, and where
// they come in bursts that most windows do not meet.
func TestCountedWindowsTellUpToWhereALimitHolds(t *testing.T) {
	for _, of := range []struct {
		slope, burst float64
		mostly       int // of the bounds are over half of the capacity
	}{{4, 40, 8}, {150, 40, 18}, {100, 500, 18}, {25, 2000, 10}} {
		tooHigh, known := 0, 0
		for r := range 20 {
			c := search80k()
			c.Count, c.Seed, c.Budget = true, uint64(r), Budget{Requests: 150_000}
			system := truthAt(37)
			system.slope, system.burst, system.rng = of.slope, of.burst, rand.New(rand.NewPCG(5, uint64(r)))
			got, err := Find(t.Context(), c, system.probe)
			if err != nil {
				t.Fatal(err)
			}
			count(&tooHigh, got.AtLeast > 37)
			count(&known, got.AtLeast > 37/2)
		}
		if tooHigh > 2 || known < of.mostly { // 2.5 % of 20 is none
			t.Errorf("slope %v, bursts of %v: of 20 bounds %d are too high and %d over half of it", of.slope, of.burst, tooHigh, known)
		}
	}
}

// agrees says that what is published of a capacity does not contradict itself.
func agrees(c *Found) bool {
	if c.AtLeast > 0 && c.AtMost > 0 && c.AtLeast > c.AtMost {
		return false
	}
	return c.Estimate == 0 || c.Interval.Lo < c.Interval.Hi && c.Interval.Contains(c.Estimate) && c.Lower <= c.Estimate && c.Margin >= 0
}

// Where the windows alone say otherwise than the curve, one of them is taken back.
func TestCountedBoundsDoNotContradictEachOther(t *testing.T) {
	for _, slope := range []float64{8, 400} {
		for seed := range uint64(12) {
			c := search80k()
			c.Count, c.Seed, c.Budget = true, seed, Budget{Requests: 150_000}
			of := truthAt(37)
			of.slope, of.rng = slope, rand.New(rand.NewPCG(5, seed))
			got, err := Find(t.Context(), c, of.probe)
			if err != nil || !agrees(&got) {
				t.Errorf("slope %v, seed %d: %v, %v in %v from %v, at least %v, at most %v", slope, seed, err, got.Estimate, got.Interval, got.Lower, got.AtLeast, got.AtMost)
			}
		}
	}
}

// What the curve, windows alone and refuted loads say, of a search that measured nothing else:
// a contradiction ends in bounds that are sure, or in no estimate.
func TestWithinTakesBackWhatIsContradicted(t *testing.T) {
	for name, c := range map[string]struct {
		quote, refuted float64
		want           stats.Interval
	}{
		"within the curve's":      {35, 0, stats.Interval{Lo: 36, Hi: 38}},
		"above the curve's":       {39, 0, stats.Interval{}},
		"both beyond the curve's": {39, 45, stats.Interval{Lo: 39, Hi: 45}},
		"refuted below it":        {30, 34, stats.Interval{Lo: 30, Hi: 34}},
		"refuted alone":           {0, 34, stats.Interval{}},
		"no two agree":            {39, 38.5, stats.Interval{}},
	} {
		f := newSearch(t.Context(), search80k(), nil)
		f.cfg.Count = true
		f.cap.Estimate, f.cap.Interval, f.cap.Lower, f.cap.Quote = 37, stats.Interval{Lo: 36, Hi: 38}, 36.2, c.quote
		if c.refuted > 0 {
			blocks := []int{9, 10, 11, 10, 10, 9, 11, 10, 10, 10}
			f.cap.Trail = []Step{{Probe: Probe{Load: c.refuted}, Seen: Seen{Load: c.refuted, N: 1000, Violations: []int{100}, Blocks: [][]int{blocks}}}}
		}
		if got := f.concludeCapacity(); got.Interval != c.want || !agrees(&got) || (got.Estimate == 0) != !got.Reason.IsNone() {
			t.Errorf("%s: %v in %v from %v, at least %v, at most %v, %v", name, got.Estimate, got.Interval, got.Lower, got.AtLeast, got.AtMost, got.Reason)
		}
	}
}

// A window that was ended for what it showed is far beyond the limit, though more requests came
// due in it than were asked for, so that their share is smaller.
func TestBracketBelievesWhatEndedAWindow(t *testing.T) {
	c := search80k()
	c.Count, c.Budget = true, Budget{Work: EnoughWork}
	of, sent := truthAt(37), 0
	got, err := Find(t.Context(), c, func(ctx context.Context, p Probe) (s Seen, err error) {
		defer func() { sent += s.N }()
		s, err = of.probe(ctx, p)
		s.Sent, s.Work = p.Requests, 300*float64(p.Requests)
		if p.Counted {
			s.Work *= CountedWork
		}
		if p.Decided != nil && p.Stage == Bracket {
			far := int(scaleOdds(0.01, beyond)*float64(p.Requests)) + 2
			if s.Violations[0] >= far && p.Decided([]int{far}, -1) {
				s.Partial, s.N, s.Violations = true, p.Requests*11/10, []int{far}
			}
		}
		return s, err
	})
	if err != nil || !got.Interval.Contains(37) || got.Requests != sent {
		t.Errorf("%v, %+v, %d requests of %d", err, got.Claims, got.Requests, sent)
	}
	for _, s := range got.Trail {
		if s.Load > 2.5*37 {
			t.Errorf("%s at %.3g, though half of it was far beyond", s.Stage, s.Load)
		}
	}
}

// A budget of time is kept to about the length of a probe.
func TestFindKeepsTime(t *testing.T) {
	c := search80k()
	c.Budget = Budget{Seconds: 2700}
	got, err := Find(t.Context(), c, truthAt(37).probe)
	if err != nil || got.Seconds > 2750 || got.Seconds < 2000 || !(got.Quote > 0) {
		t.Errorf("%v, %v s, quote %v, %v", err, got.Seconds, got.Quote, got.Reason)
	}
}

// Nor is it overrun where loads take far longer than was forecast, as where a queue that grew is
// emptied: they end then, and what is known by then is kept.
func TestFindKeepsTimeOfSlowDrains(t *testing.T) {
	c := search80k()
	c.Budget = Budget{Seconds: 600}
	of, left := truthAt(37), 600.
	got, err := Find(t.Context(), c, func(ctx context.Context, p Probe) (Seen, error) {
		if p.WindowBy > left || p.EndBy > left+0.06*600 || p.WindowBy >= p.EndBy {
			t.Errorf("%s at %.3g is to end within %v and %v of %v s", p.Stage, p.Load, p.WindowBy, p.EndBy, left)
		}
		if p.WindowBy <= p.Residences*p.Residence {
			t.Errorf("%s at %.3g has no window: %+v", p.Stage, p.Load, p)
		}
		s, err := of.probe(ctx, p)
		s.Seconds = min(3*s.Seconds, p.EndBy)
		left -= s.Seconds
		return s, err
	})
	if err != nil || got.Seconds > 1.06*600 || !(got.Estimate > 0) {
		t.Errorf("%v, %v s, %+v", err, got.Seconds, got.Claims)
	}
}

// Whatever the target, the end is a capacity or a reason, in finite numbers.
func TestFindAlwaysEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := truthAt(math.Exp(rapid.Float64Range(-2, 7).Draw(t, "ln capacity")))
		of.slope = rapid.Float64Range(0, 60).Draw(t, "slope")
		of.burst = rapid.Float64Range(1, 500).Draw(t, "burst")
		of.residence = math.Exp(rapid.Float64Range(-3, 3).Draw(t, "ln residence"))
		of.closed = rapid.Bool().Draw(t, "closed")
		of.rng = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		c := search80k()
		c.Closed, c.Residence = of.closed, of.residence
		c.Budget = Budget{Requests: rapid.IntRange(1, 60_000).Draw(t, "requests"), Seconds: rapid.Float64Range(0, 1e5).Draw(t, "seconds")}
		got, err := Find(context.Background(), c, of.probe)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []float64{got.Estimate, got.Interval.Lo, got.Interval.Hi, got.Lower, got.Quote, got.Margin, got.AtLeast, got.AtMost, got.Floor.Lower, got.Verified.Upper} {
			if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
				t.Fatalf("%+v", got)
			}
		}
		if !agrees(&got) {
			t.Fatalf("%v in %v from %v, at least %v, at most %v", got.Estimate, got.Interval, got.Lower, got.AtLeast, got.AtMost)
		}
		if (got.Quote == 0 || got.Estimate == 0) == got.Reason.IsNone() || got.Requests > c.Budget.Requests {
			t.Fatalf("quote %v, reason %v, %d requests of %d", got.Quote, got.Reason, got.Requests, c.Budget.Requests)
		}
	})
}

func TestFindRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*FindConfig){
		"no claim": func(c *FindConfig) { c.Eps = []float64{0} }, "all may violate": func(c *FindConfig) { c.Eps[0] = 1 },
		"no residence": func(c *FindConfig) { c.Residence = 0 }, "budget": func(c *FindConfig) { c.Budget.Requests = -1 },
	} {
		c := search80k()
		spoil(&c)
		if _, err := Find(t.Context(), c, truthAt(37).probe); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestVerify(t *testing.T) {
	for _, c := range []struct {
		load            float64
		passed, refuted bool
	}{{20, true, false}, {31, true, false}, {37, false, false}, {50, false, true}} {
		config := search80k()
		got, err := Verify(t.Context(), config, c.load, truthAt(37).probe)
		if v := got.Verified; err != nil || v.Passed != c.passed || v.Refuted != c.refuted || v.Load != c.load || (got.Quote > 0) != c.passed || got.Reason.IsNone() != c.passed {
			t.Errorf("%v: %v, %+v, %v", c.load, err, v, got.Reason)
		}
	}
	config := search80k()
	config.Budget = Budget{Requests: 500}
	if got, err := Verify(t.Context(), config, 20, truthAt(37).probe); err != nil || got.Reason.Code != result.LookUnpaid {
		t.Errorf("%v, %v", err, got.Reason)
	}
}

// What an undecided load is said to take decides it.
func TestVerifyEnough(t *testing.T) {
	config := search80k()
	config.Budget = Budget{Seconds: 300}
	few, err := Verify(t.Context(), config, 20, truthAt(37).probe)
	if err != nil || few.Verified.Passed || few.Verified.Refuted || few.Enough < 600 || few.Reason.Needed < 14_000 || few.Reason.Needed >= 15_000 {
		t.Fatalf("%v, %v s are enough, %v", err, few.Enough, few.Reason)
	}
	config.Budget.Seconds = 1.02 * few.Enough
	if got, err := Verify(t.Context(), config, 20, truthAt(37).probe); err != nil || !got.Verified.Passed || got.Enough != 0 {
		t.Errorf("%v, %+v, %v", err, got.Verified, got.Reason)
	}
}

// Loads exactly at the capacity do not pass.
func TestVerifyAtCapacity(t *testing.T) {
	const reps = 200
	passed := 0
	for r := range reps {
		of := truthAt(37)
		of.rng = rand.New(rand.NewPCG(3, uint64(r)))
		got, err := Verify(t.Context(), FindConfig{Eps: []float64{0.01}, Residence: 0.5}, 37, of.probe)
		if err != nil {
			t.Fatal(err)
		}
		count(&passed, got.Verified.Passed)
	}
	if passed > 6*reps/100 {
		t.Errorf("%d of %d pass", passed, reps)
	}
}

func TestForecast(t *testing.T) {
	for _, c := range []struct {
		residence, rate float64
		budget          Budget
		traffic         Traffic
		want            string
	}{
		{2, 40, Budget{Seconds: 1200}, Traffic{}, "20 min: bounds of the capacity, no estimate; ±9 % takes about 74 min, ±6 % 2.1 h, ±4 % 4.5 h"},
		{2, 40, Budget{Seconds: 3600}, Traffic{}, "60 min: the capacity to about ±10 %; ±9 % takes about 74 min, ±6 % 2.1 h, ±4 % 4.5 h"},
		{2, 0, Budget{Seconds: 1200}, Traffic{}, "±9 % takes 55,000 requests, ±6 % 110,000, ±4 % 265,000"},
		{2, 0, Budget{Requests: 20_000}, Traffic{Allowed: .01, Lengths: 4, Gaps: 1}, "20,000 requests: the capacity to about ±25 %; ±9 % takes 115,000 requests, ±6 % 250,000, ±4 % 640,000"},
		{2, 0, Budget{Requests: 20_000}, Traffic{Allowed: .1, Lengths: 1, Gaps: 1}, "20,000 requests: the capacity to about ±6 %; ±4 % takes 40,000 requests"},
		{2, 0, Budget{Requests: 20_000}, Traffic{}, "20,000 requests: the capacity to about ±16 %; ±9 % takes 55,000 requests, ±6 % 110,000, ±4 % 265,000"},
	} {
		if got := Forecast(c.residence, c.rate, c.budget, c.traffic).String(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// Of a server with a request or two under way no number of requests tells the capacity to 4 %:
// that is not forecast, and with more under way the forecast comes near the usual one by and by.
func TestForecastNearOfASlowServer(t *testing.T) {
	// What turns of the arrivals leave open is forecast, by how many of them there are.
	for _, c := range []struct{ cycle, want float64 }{{1, 0}, {10, 2.2 * math.Sqrt(10./1250)}, {20, 2.2 * math.Sqrt(20./1250)}} {
		o := ForecastNear(2, 40, Budget{Requests: 50_000}, Traffic{Allowed: 0.01, Gaps: 2, Cycle: c.cycle})
		if plain := ForecastNear(2, 40, Budget{Requests: 50_000}, Traffic{Allowed: 0.01, Gaps: 2}); math.Abs(o.HalfWidth-max(plain.HalfWidth, c.want)) > 1e-9 {
			t.Errorf("turns of %v s: ±%.3f, want %.3f or %.3f", c.cycle, o.HalfWidth, plain.HalfWidth, c.want)
		}
	}
	usual := ForecastNear(2, 40, Budget{Requests: 50_000}, Traffic{})
	last := ForecastNear(2, 0.5, Budget{Requests: 50_000}, Traffic{})
	if len(usual.Precisions) != 3 || len(last.Precisions) != 2 || last.Precisions[1].HalfWidth != 0.06 {
		t.Errorf("usual %v, slow %v", usual, last)
	}
	for seats := 1.9; seats < 4.2; seats *= 1.02 {
		now := ForecastNear(2, seats/2, Budget{Requests: 50_000}, Traffic{})
		if now.HalfWidth > last.HalfWidth || now.HalfWidth < 0.97*last.HalfWidth {
			t.Errorf("%.3g under way: ±%v after ±%v", seats, now.HalfWidth, last.HalfWidth)
		}
		for _, p := range now.Precisions {
			if p.Requests > mostForecast {
				t.Errorf("%.3g under way: %+v", seats, p)
			}
		}
		last = now
	}
	if math.Abs(last.HalfWidth-usual.HalfWidth) > 1e-9 {
		t.Errorf("±%v beside the usual ±%v", last.HalfWidth, usual.HalfWidth)
	}
	if got := (Outlook{Budget: Budget{Requests: 900}, Requests: 900}).String(); got != "900 requests: bounds of the capacity, no estimate" {
		t.Error(got)
	}
}

// Users take longer among many than alone: the time is kept all the same.
func TestVerifyKeepsItsTime(t *testing.T) {
	for _, seconds := range []float64{600, 1200, 5000} {
		of := truthAt(60)
		of.closed, of.residence = true, 3 // what is known is 0.5
		c := FindConfig{Eps: []float64{0.01}, Residence: 0.5, Closed: true, Budget: Budget{Seconds: seconds}, Seed: 1}
		got, err := Verify(t.Context(), c, 50, of.probe)
		if err != nil || got.Verified.N == 0 || got.Seconds > 1.05*seconds || got.Seconds < 0.5*seconds {
			t.Errorf("%v s: took %v s, %v, %v", seconds, got.Seconds, err, got.Reason)
		}
	}
}

// From a small budget on there are bounds on both sides, and they hold; no bound names a
// load that was not measured.
func TestSmallBudgets(t *testing.T) {
	const capacity = 37.0
	for _, budget := range []int{3_000, 10_000} {
		least, most, wrong := 0, 0, 0
		const reps = 50
		for r := range reps {
			of := truthAt(capacity)
			of.rng = rand.New(rand.NewPCG(11, uint64(r)))
			c := search80k()
			c.Seed, c.Budget.Requests = uint64(r), budget
			got, err := Find(t.Context(), c, of.probe)
			if err != nil {
				t.Fatal(err)
			}
			count(&least, got.AtLeast > 0)
			count(&most, got.AtMost > 0)
			count(&wrong, got.AtLeast > capacity || got.AtMost > 0 && got.AtMost < capacity)
			measured := func(load float64) bool {
				return slices.ContainsFunc(got.Trail, func(s Step) bool { return s.Load == load })
			}
			if got.AtLeast > 0 && !measured(got.AtLeast) || got.Estimate == 0 && got.AtMost > 0 && !measured(got.AtMost) {
				t.Errorf("%v to %v: not measured", got.AtLeast, got.AtMost)
			}
		}
		if least < reps*80/100 || most < reps*95/100 || wrong > reps*8/100 {
			t.Errorf("%d requests: of %d %d have a lower bound, %d an upper one, %d are wrong", budget, reps, least, most, wrong)
		}
	}
}

// Where requests fail at any load, or are too long for the limit, the search says so
// and does not take a load for the capacity. Half of what may violate is no floor.
func TestFloor(t *testing.T) {
	for _, c := range []struct {
		fails       float64
		budget      int
		least, most int // of 12 searches
	}{{.02, 10_000, 11, 12}, {.03, 3_000, 11, 12}, {.005, 10_000, 0, 1}, {0, 3_000, 0, 0}} {
		named := 0
		for r := range 12 {
			of := truthAt(37)
			of.fails, of.rng = c.fails, rand.New(rand.NewPCG(13, uint64(r)))
			config := search80k()
			config.Seed, config.Budget.Requests = uint64(r), c.budget
			got, err := Find(t.Context(), config, of.probe)
			if err != nil {
				t.Fatal(err)
			}
			if got.Floor.Lower > 0 {
				named++
				if o := got.Floor; got.Quote != 0 || got.Estimate != 0 || o.Errors < o.Violations/2 || o.Lower <= .01 || o.N == 0 {
					t.Errorf("%+v, quote %v", o, got.Quote)
				}
			}
		}
		if named < c.least || named > c.most {
			t.Errorf("%v fail, %d requests: %d of 12 searches name a floor", c.fails, c.budget, named)
		}
	}
}

// Where light loads are slow for a spell, as after an overload or while a server drifts, and
// heavier ones are not, no floor is named: no search says that no load meets the SLO.
func TestNoFloorBesideHeavierLoadsThatMeetTheLimit(t *testing.T) {
	for name, slow := range map[string]func(step int, p Probe) bool{
		"after an overload": func(step int, p Probe) bool { return step >= 5 && p.Load < 12 },
		"at first":          func(step int, p Probe) bool { return step == 0 || p.Stage == Floor },
	} {
		floors, contradicted := 0, 0
		for r := range uint64(12) {
			of, step := truthAt(37), -1
			of.rng = rand.New(rand.NewPCG(17, r))
			config := search80k()
			config.Seed, config.Budget.Requests = r, 10_000
			got, err := Find(t.Context(), config, func(ctx context.Context, p Probe) (Seen, error) {
				step++
				s, err := of.probe(ctx, p)
				if slow(step, p) {
					s.Violations[0], s.Joint = s.N, s.N
					for b := range s.JointBlock {
						s.Blocks[0][b], s.JointBlock[b] = s.N/p.Blocks, s.N/p.Blocks
					}
				}
				return s, err
			})
			if err != nil {
				t.Fatal(err)
			}
			met := slices.ContainsFunc(got.Trail, func(s Step) bool { return s.Load > got.Floor.Load && s.Seen.N >= 50 && s.Seen.Violations[0] == 0 })
			count(&floors, got.Floor.Lower > 0 && met)
			count(&contradicted, got.Unmet.N > 0 && met)
		}
		if floors+contradicted > 0 {
			t.Errorf("%s: of 12 searches %d name a floor and %d say that none met, beside heavier loads that did", name, floors, contradicted)
		}
	}
}

// A window that was INVALID is measured again where it is to carry the claim, and is
// no evidence in any case.
func TestInvalidWindows(t *testing.T) {
	of := truthAt(37)
	spoil := rand.New(rand.NewPCG(5, 5))
	got, err := Find(t.Context(), search80k(), func(ctx context.Context, p Probe) (Seen, error) {
		s, err := of.probe(ctx, p)
		if spoil.Float64() < .2 { // what was seen then is worth nothing
			s.Invalid = true
			s.Violations[0], s.Joint = s.N, s.N
		}
		return s, err
	})
	if err != nil || !got.Interval.Contains(37) || got.Quote == 0 || got.Quote > 37 {
		t.Fatalf("%v, %v, quote %v, %v", err, got.Interval, got.Quote, got.Reason)
	}
	invalid, main := 0, 0
	for i, s := range got.Trail {
		count(&main, s.Stage == Main && !s.Seen.Invalid)
		if !s.Seen.Invalid {
			continue
		}
		invalid++
		if next := got.Trail[i+1]; next.Load != s.Load || next.Stage != s.Stage {
			t.Errorf("after %v at %v comes %v at %v", s.Stage, s.Load, next.Stage, next.Load)
		}
	}
	if invalid == 0 || main < mainLoads-1 {
		t.Errorf("%d windows were INVALID, %d of the main ones count", invalid, main)
	}

	// All of them: nothing is claimed.
	got, err = Find(t.Context(), search80k(), func(ctx context.Context, p Probe) (Seen, error) {
		s, err := of.probe(ctx, p)
		s.Invalid = true
		return s, err
	})
	if err != nil || got.Quote != 0 || got.Estimate != 0 || got.AtLeast != 0 || got.AtMost != 0 || got.Reason.IsNone() {
		t.Errorf("%v: %+v", err, got)
	}
}

// Where a few requests at the lightest loads violate more than may, and none of the search is
// known to hold, that no load met the limit so far is said, with how sure that is.
func TestFindSaysThatNoLoadMetSoFar(t *testing.T) {
	said, floors := 0, 0
	for seed := range uint64(30) {
		of := truthAt(40)
		of.fails, of.rng = 0.025, rand.New(rand.NewPCG(6, seed))
		c := FindConfig{Eps: []float64{0.01}, Residence: 0.5, Budget: Budget{Seconds: 60}, Seed: seed}
		got, err := Find(t.Context(), c, of.probe)
		if err != nil {
			t.Fatal(err)
		}
		switch u := got.Unmet; {
		case got.Floor.Lower > 0:
			floors++
			if u.N > 0 {
				t.Errorf("a floor, and none so far: %+v", u)
			}
		case u.N > 0:
			said++
			if !(u.Confidence >= 0.5 && u.Confidence < 0.975) || u.Violations*100 <= u.N || got.AtLeast > 0 || got.Estimate > 0 {
				t.Errorf("%+v with at least %v and %v", u, got.AtLeast, got.Estimate)
			}
		}
	}
	if said < 3 || said+floors < 12 {
		t.Errorf("of 30: %d say that none met so far, %d floors", said, floors)
	}

	// A load above the capacity says nothing of those below.
	got, err := Verify(t.Context(), search80k(), 44, truthAt(40).probe)
	if err != nil || got.Unmet.N > 0 || got.Floor.Lower > 0 {
		t.Errorf("%v: %+v and %+v by one load above the capacity", err, got.Unmet, got.Floor)
	}
}

// What was found rests on the windows that are fitted, looked at and refuted, and on those of
// the bracket only where they are among these.
func TestCarries(t *testing.T) {
	got, err := Find(t.Context(), search80k(), truthAt(37).probe)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range got.Trail {
		if fitted := slices.Contains([]string{Centre, Main, Verifying}, s.Stage); fitted != s.Carries && (fitted || s.Load < 37) {
			t.Errorf("%s at %v carries: %v", s.Stage, s.Load, s.Carries)
		}
	}
	of := truthAt(37)
	c := FindConfig{Eps: []float64{0.01}, Residence: 0.5, Budget: Budget{Seconds: 60}, Seed: 3}
	if got, err = Find(t.Context(), c, of.probe); err != nil {
		t.Fatal(err)
	}
	if got.Estimate == 0 && got.AtMost > 0 && !slices.ContainsFunc(got.Trail, func(s Step) bool { return s.Load == got.AtMost && s.Carries }) {
		t.Errorf("at most %v rests on nothing", got.AtMost)
	}
}

// Where violations begin all at once no curve is known of them; windows that are counted then
// tell up to near there, and never beyond.
func TestFindRaisesTheBoundOfASteepLimit(t *testing.T) {
	raised := 0
	for seed := range uint64(20) {
		of := truthAt(40)
		of.slope, of.rng = 400, rand.New(rand.NewPCG(8, seed))
		c := FindConfig{Eps: []float64{0.01}, Residence: 0.5, Budget: Budget{Requests: 20_000, Work: 2000}, Count: true, Seed: seed}
		got, err := Find(t.Context(), c, func(ctx context.Context, p Probe) (Seen, error) {
			s, err := of.probe(ctx, p)
			s.Sent = p.Requests + int((p.Residences+Drain)*p.Residence*p.Load)
			if s.Work = float64(s.Sent); p.Counted {
				s.Work *= CountedWork
			}
			return s, err
		})
		if err != nil {
			t.Fatal(err)
		}
		if got.AtLeast > 40 || got.AtMost > 0 && got.AtMost < 40 {
			t.Errorf("%v to %v of 40", got.AtLeast, got.AtMost)
		}
		if got.AtLeast > 26 { // half of where violations begin is below that
			raised++
		}
	}
	if raised < 15 {
		t.Errorf("%d of 20 bounds are near the limit", raised)
	}
}

// A window in which a class had no request tells nothing, and names no number of requests.
func TestTellingOfNone(t *testing.T) {
	f := newSearch(t.Context(), FindConfig{Eps: []float64{.01}, Residence: 1}, nil)
	if n := f.requestsToDecide(&Verification{}, 1); n != 0 {
		t.Errorf("%d requests", n)
	}
}
