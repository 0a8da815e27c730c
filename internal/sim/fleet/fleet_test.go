package fleet

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pitot/internal/sim"
	"pitot/internal/sim/vllm"
)

// flat is a cost of a microsecond for each step and so much for each token.
type flat struct{ token time.Duration }

func (f flat) Step(b *sim.Batch) time.Duration {
	return time.Microsecond + time.Duration(b.Tokens)*f.token
}

// scene is engines behind a router, and what happens to them.
type scene struct {
	config Config
	n      int
	set    vllm.Settings
	cost   flat
	blocks bool // an engine's steps are handed out as ones that cannot be interrupted
	events []event
}

// event is a job that arrives, or one whose client goes away.
type event struct {
	at    int64
	job   sim.Job
	abort bool
}

// whole is content that two groups of jobs share at the beginning.
type whole struct {
	own, group uint64
	shared     int
}

func (w whole) Tokens(from, to int) uint64 {
	if to <= w.shared {
		return w.group<<40 | uint64(from)<<20 | uint64(to)
	}
	return w.own<<40 | uint64(from)<<20 | uint64(to)
}

func draw(t *rapid.T, most int) scene {
	in := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
	s := scene{n: in("engines", 1, most), cost: flat{time.Duration(in("per token", 0, 30))}, blocks: rapid.Bool().Draw(t, "blocks")}
	s.config = Defaults(in("front ends", 1, 3))
	s.config.Router = Routers()[in("router", 0, len(Routers())-1)]
	s.config.Seed, s.config.BalanceAbsThreshold = uint64(in("seed", 0, 9)), in("balance", 0, 4)
	s.set = vllm.Default()
	s.set.MaxNumSeqs, s.set.MaxNumBatchedTokens, s.set.MaxModelLen = in("seats", 1, 4), 40, 400
	s.set.NumGPUBlocks = 26 + in("spare blocks", 0, 30)
	s.set.StepJitter, s.set.AsyncScheduling = float64(in("jitter", 0, 1))/4, rapid.Bool().Draw(t, "async")
	s.set.Frontend = sim.Frontend{PerRequest: time.Duration(in("per request", 0, 500)), PerChunk: time.Duration(in("per chunk", 0, 400))}
	at := int64(0)
	for id := range in("jobs", 1, 40) {
		at += int64(in("gap", 0, 2000))
		s.events = append(s.events, event{at: at, job: sim.Job{
			ID: int64(id), Prompt: in("prompt", 1, 300), Output: in("output", 1, 20), Session: uint64(in("session", 0, 3)),
			Content: whole{uint64(id) + 10, uint64(in("group", 0, 1)), in("shared", 0, 300)},
		}})
		if in("client", 0, 5) == 0 {
			s.events = append(s.events, event{at: at + int64(in("patience", 0, 20_000)), job: sim.Job{ID: int64(id)}, abort: true})
		}
	}
	slices.SortStableFunc(s.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return s
}

func (s *scene) engine(i int) sim.Model {
	set := s.set
	set.Seed = uint64(i) + 1
	var e sim.Model = vllm.New(set, s.cost)
	if s.blocks {
		e = &ahead{Model: e}
	}
	return e
}

// ahead is an engine that says what a step will give when it begins, as one may: its
// steps cannot be interrupted.
type ahead struct{ sim.Model }

func (a *ahead) Step(now int64) sim.Step {
	s := a.Model.Step(now)
	if len(s.Out) == 0 {
		return s
	}
	end := now + 700
	for i := range s.Out {
		s.Out[i].At = end
	}
	return sim.Step{End: end, Out: s.Out}
}

// play steps an engine when it says so.
func (s *scene) play(e sim.Engine) (out []sim.Emission) {
	now := int64(0)
	busy := int64(-1)
	var held []sim.Emission
	gone := map[int64]bool{}
	take := func(list []sim.Emission) { // what is for those who went is thrown away
		for _, o := range list {
			if !gone[o.ID] {
				out = append(out, o)
			}
		}
	}
	next := int64(0) // as the last step said; every other scene does not ask before
	advance := func(to int64) {
		for {
			if busy >= 0 { // as the virtual world does
				if busy > to {
					return
				}
				now, busy = busy, -1
				take(held)
				continue
			}
			step := sim.Step{End: next, Idle: true}
			if next <= now || len(s.events)%2 == 0 {
				if step = e.Step(now); next > now && (!step.Idle || step.End != next) {
					panic(fmt.Sprintf("at %d the step before said that nothing happens until %d, and this one %+v", now, next, step))
				}
			}
			next = step.Next
			if !step.Idle && step.End > now {
				busy, held = step.End, slices.Clone(step.Out)
				continue
			}
			take(step.Out)
			if step.End > to {
				return
			}
			now = max(now, step.End)
		}
	}
	for _, ev := range s.events {
		advance(ev.at)
		next = 0
		if now = max(now, ev.at); ev.abort {
			e.Abort(ev.job.ID)
			gone[ev.job.ID] = true
		} else {
			e.Add(ev.at, ev.job)
		}
	}
	advance(math.MaxInt64 - 1)
	return out
}

func text(out []sim.Emission) (s string) {
	for _, o := range out {
		s += fmt.Sprint(o.ID, o.At, o.Tokens, o.Finish, o.Engine)
		if o.Trace != nil {
			s += fmt.Sprint(*o.Trace)
		}
		s += "\n"
	}
	return s
}

// Each job ends once, where it began, or its client went; time never goes back.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t, 4)
		var engines []sim.Model
		for i := range s.n {
			engines = append(engines, s.engine(i))
		}
		f := New(s.config, engines)
		steps := make([]int64, s.n)
		f.Watch(func(i sim.StepInfo) {
			if i.Number != steps[i.Engine]+1 {
				t.Fatalf("step %d of engine %d after %d", i.Number, i.Engine, steps[i.Engine])
			}
			steps[i.Engine] = i.Number
		})
		out := s.play(f)
		gone := map[int64]int64{}
		want := map[int64]sim.Job{}
		for _, e := range s.events {
			if e.abort {
				gone[e.job.ID] = e.at
			} else {
				want[e.job.ID] = e.job
			}
		}
		at, where, got, ended := int64(0), map[int64]int{}, map[int64]int{}, map[int64]bool{}
		for _, o := range out {
			engine, known := where[o.ID]
			switch {
			case o.At < at:
				t.Fatalf("%+v at %d, after %d", o, o.At, at)
			case known && engine != o.Engine:
				t.Fatalf("job %d was with engine %d, then with %d", o.ID, engine, o.Engine)
			case ended[o.ID]:
				t.Fatalf("job %d goes on behind its end", o.ID)
			}
			if left, aborted := gone[o.ID]; aborted && o.At > left {
				t.Fatalf("job %d got something at %d, its client went at %d", o.ID, o.At, left)
			}
			at, where[o.ID] = o.At, o.Engine
			got[o.ID] += o.Tokens
			ended[o.ID] = o.Finish != ""
		}
		for id, j := range want {
			if _, aborted := gone[id]; !aborted && (!ended[id] || got[id] != j.Output) {
				t.Fatalf("job %d has %d of %d tokens and ended: %v", id, got[id], j.Output, ended[id])
			}
		}
		if len(f.where) != 0 || slices.ContainsFunc(f.of, func(m member) bool { return m.jobs != 0 }) {
			t.Fatalf("jobs are left in the books: %v, %+v", f.where, f.of)
		}
		if st := f.Stats(); st.Steps != sum(steps) || st.Running+st.Waiting != 0 {
			t.Fatalf("%+v after %v steps", st, steps)
		}
	})
}

func sum(list []int64) (n int64) {
	for _, x := range list {
		n += x
	}
	return n
}

// A fleet of one is that engine, emission by emission.
func TestOneIsTheEngine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t, 1)
		want := text(s.play(s.engine(0)))
		if got := text(s.play(New(s.config, []sim.Model{s.engine(0)}))); got != want {
			t.Fatalf("behind %s:\n%swant\n%s", s.config.Router, got, want)
		}
	})
}

// Each engine of a fleet does what it would do alone with the jobs that it was sent: no
// step of one delays another.
func TestEachAsAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t, 4)
		var engines []sim.Model
		for i := range s.n {
			engines = append(engines, s.engine(i))
		}
		f := New(s.config, engines)
		where := map[int64]int{}
		spy := spying{f, where}
		out := s.play(spy)
		for i := range s.n {
			alone := s
			alone.events = slices.DeleteFunc(slices.Clone(s.events), func(e event) bool { return where[e.job.ID] != i })
			own := slices.DeleteFunc(slices.Clone(out), func(e sim.Emission) bool { return e.Engine != i })
			for k := range own {
				own[k].Engine = 0
			}
			if got, want := text(own), text(alone.play(s.engine(i))); got != want {
				t.Fatalf("engine %d of %d behind %s:\n%salone\n%s", i, s.n, s.config.Router, got, want)
			}
		}
	})
}

// spying notes where jobs were sent.
type spying struct {
	*Fleet
	where map[int64]int
}

func (s spying) Add(now int64, j sim.Job) {
	s.Fleet.Add(now, j)
	if i, sent := s.Fleet.where[j.ID]; sent {
		s.where[j.ID] = i
	}
}

func BenchmarkReplicas64(b *testing.B) {
	set := vllm.Default()
	set.MaxModelLen, set.NumGPUBlocks, set.MaxNumSeqs = 8192, 1<<14, 256
	set.Frontend = sim.Frontend{PerStep: 50 * time.Microsecond, PerChunk: 30 * time.Microsecond}
	var engines []sim.Model
	for range 64 {
		engines = append(engines, vllm.New(set, flat{}))
	}
	f := New(Defaults(64), engines)
	id := int64(0)
	add := func(now int64) {
		f.Add(now, sim.Job{ID: id, Prompt: 256, Output: 128 + int(id%257)})
		id++
	}
	for range 64 * 64 {
		add(0)
	}
	tokens, now := 0, int64(0)
	b.ResetTimer()
	for tokens < b.N {
		s := f.Step(now)
		now = s.End
		for _, o := range s.Out {
			tokens += o.Tokens
			if o.Finish != "" {
				add(now)
			}
		}
	}
	b.ReportMetric(float64(tokens)/b.Elapsed().Seconds(), "tokens/s")
}
