package vllm

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pitot/internal/sim"
)

// TestCruise: an engine that counts what cruises takes the same steps at the same times, has as
// much of its cache in use in each, and begins and ends each answer as one that visits all.
func TestCruise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		s.set.Priority, s.set.NumSpeculativeTokens, s.set.SpeculativeSchedule = false, 0, nil
		s.set.StreamInterval, s.set.LongPrefillTokenThreshold = 1, 0
		if rapid.IntRange(0, 3).Draw(t, "the front end lags behind") > 0 {
			s.set.Frontend.PerChunk /= 10
		}
		s.set.MaxModelLen += 300
		s.set.NumGPUBlocks = s.set.BlocksBeside(s.set.MaxModelLen) + s.set.MaxModelLen/s.set.BlockSize + 2 + rapid.IntRange(0, 200).Draw(t, "more blocks")
		if !s.set.EnableChunkedPrefill {
			s.set.MaxNumBatchedTokens += 300
		}
		if err := s.set.Check(); err != nil {
			t.Fatal(err)
		}
		alone := rapid.Bool().Draw(t, "nothing is shared")
		stretch := rapid.IntRange(1, 20).Draw(t, "times as long") // answers
		for i := range s.events {
			j := &s.events[i].job
			if alone {
				j.Content = nil
			}
			j.Output = min(j.Output*stretch, s.set.MaxModelLen)
			if rapid.IntRange(0, 3).Draw(t, "to its end") > 0 {
				j.Limit = 0
			}
		}
		visits := s.playBriefly(t, false)
		brief := s.playBriefly(t, true)
		steps, briefSteps := visits.steps, brief.steps
		if !slices.Equal(steps, briefSteps) {
			for i := range steps {
				if i == len(briefSteps) || steps[i] != briefSteps[i] {
					t.Fatalf("step %d of %d and %d:\n%+v\n%+v", i, len(steps), len(briefSteps), steps[i], briefSteps[min(i, len(briefSteps)-1)])
				}
			}
			t.Fatalf("%d steps, %d in brief", len(steps), len(briefSteps))
		}
		for id, g := range visits.jobs {
			b := brief.jobs[id]
			if g.finish == "" { // its client went: how far it came is not told
				continue
			}
			if b == nil || *b != *g {
				t.Fatalf("job %d:\n%+v\n%+v", id, g, b)
			}
		}
		if a, b := visits.stats, brief.stats; a.Steps != b.Steps || a.Preemptions != b.Preemptions || a.PrefixHits != b.PrefixHits || a.GenerationTokens != b.GenerationTokens || a.KVCacheUsage != b.KVCacheUsage {
			t.Fatalf("%+v\n%+v", a, b)
		}
	})
}

// TestCruisersAreCounted: of long answers that nothing disturbs, most tokens are counted.
func TestCruisersAreCounted(t *testing.T) {
	s := scene{cost: Flat{1000, 10}, set: rules()}
	s.set.MaxModelLen, s.set.NumGPUBlocks = 300, 400
	for id := range int64(3) {
		s.events = append(s.events, event{at: 20_000 * id, job: sim.Job{ID: id, Prompt: 10, Output: 200}})
	}
	p := s.playBriefly(t, true)
	t.Logf("%d tokens counted, %d visited", p.counted, p.visited)
	if p.counted < 2*p.visited {
		t.Errorf("%d tokens were counted, %d were visited: nothing cruises", p.counted, p.visited)
	}
}

// played is what was seen of a scene.
type played struct {
	steps            []sim.StepInfo
	jobs             map[int64]*ended
	stats            sim.Stats
	counted, visited int // tokens, of those that cruise and of others
}

// ended is how one answer began and ended.
type ended struct {
	first, last int64
	tokens      int
	finish      string
	trace       sim.Trace
}

// playBriefly plays a scene with an engine that counts what cruises, if brief, or visits all.
func (s scene) playBriefly(t rapid.TB, brief bool) played {
	p := played{jobs: map[int64]*ended{}}
	begun := false
	e, out := s.play(func(e *Engine, i sim.StepInfo) {
		p.steps = append(p.steps, i)
		plan := e.flight[len(e.flight)-1]
		if brief {
			p.counted, p.visited = p.counted+plan.cruisers, p.visited+len(plan.items)
			if plan.cruisers == 0 {
				checkPlan(t, e, i)
			}
		}
	}, func(e *Engine, now, to int64) []sim.Emission {
		if brief && !begun {
			e.Brief()
			begun = true
		}
		return onTime(e, now, to)
	})
	for _, o := range out {
		g := p.jobs[o.ID]
		if g == nil {
			g = &ended{first: o.At}
			p.jobs[o.ID] = g
		}
		g.tokens += o.Tokens
		if o.Finish != "" {
			g.last, g.finish, g.trace = o.At, o.Finish, *o.Trace
		}
	}
	p.stats = e.Stats()
	return p
}

// alone is content that no other job has.
type alone uint64

func (a alone) Tokens(from, to int) uint64 { return sim.Mix(sim.Mix(uint64(a)) ^ uint64(from+1)) }

// TestPrivate: an engine that keeps the blocks of jobs that share nothing apart does with them
// what it does with those of jobs that might.
func TestPrivate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkPrivate(t, drawScene(t)) })
	// Two answers of which the cache holds one and a half.
	s := scene{cost: Flat{1000, 10}, set: rules()}
	s.set.NumGPUBlocks = 1 + s.set.MaxModelLen*3/2/s.set.BlockSize
	for id := range int64(2) {
		s.events = append(s.events, event{job: sim.Job{ID: id, Prompt: 1, Output: s.set.MaxModelLen - 1}})
	}
	if checkPrivate(t, s) == 0 {
		t.Error("nobody was preempted")
	}
}

// checkPrivate plays a scene both ways, and says how often a job was preempted.
func checkPrivate(t rapid.TB, s scene) int64 {
	play := func(content func(id int64) sim.Content) (steps []sim.StepInfo, out []sim.Emission, e *Engine) {
		s := s
		s.events = slices.Clone(s.events)
		for i := range s.events {
			s.events[i].job.Content = content(s.events[i].job.ID)
		}
		e, out = s.play(func(e *Engine, i sim.StepInfo) {
			steps = append(steps, i)
			checkBlocks(t, e)
		}, onTime)
		return steps, out, e
	}
	listed, listedOut, a := play(func(id int64) sim.Content { return alone(id) })
	kept, keptOut, b := play(func(int64) sim.Content { return nil })
	if !slices.Equal(listed, kept) {
		t.Fatalf("steps differ:\n%+v\n%+v", listed, kept)
	}
	for i, x := range listedOut {
		y := keptOut[i]
		if x.Trace != nil && *x.Trace == *y.Trace {
			x.Trace, y.Trace = nil, nil
		}
		if x != y {
			t.Fatalf("emission %d: %+v, %+v", i, x, y)
		}
	}
	if x, y := a.Stats(), b.Stats(); x.PrefixHits != y.PrefixHits || x.Preemptions != y.Preemptions {
		t.Fatalf("%+v\n%+v", x, y)
	}
	return b.Stats().Preemptions
}
