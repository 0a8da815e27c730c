package fleet

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"pitot/internal/sim"
	"pitot/internal/sim/vllm"
)

// together puts the engines of a scene into lock step. A step takes a microsecond and so
// much for each token of all.
func (s *scene) together() (*Fleet, []*vllm.Engine) {
	s.blocks = false
	var list []*vllm.Engine
	var engines []sim.Model
	for i := range s.n {
		engines = append(engines, s.engine(i))
		list = append(list, engines[i].(*vllm.Engine))
	}
	c := s.config
	c.Steps = vllm.NewLockstep(list, func(batches []*sim.Batch) time.Duration {
		n := 0
		for _, b := range batches {
			n += b.Tokens
		}
		return time.Microsecond + time.Duration(n)*s.cost.token
	}).Steps
	return New(c, engines), list
}

// In lock step each job ends once, and the steps of all engines begin and end together, one
// behind the other.
func TestLockstep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t, 4)
		f, _ := s.together()
		began, ends := int64(-1), int64(0)
		f.Watch(func(i sim.StepInfo) {
			switch {
			case i.Start == began && i.End == ends:
			case i.Start < ends || i.End <= i.Start:
				t.Fatalf("step %+v while one runs from %d to %d", i, began, ends)
			}
			began, ends = i.Start, i.End
		})
		ended, gone := map[int64]int{}, map[int64]bool{}
		for _, o := range s.play(f) {
			if o.Finish != "" {
				ended[o.ID]++
			}
		}
		for _, e := range s.events {
			gone[e.job.ID] = gone[e.job.ID] || e.abort
		}
		for id, aborted := range gone {
			if n := ended[id]; n > 1 || n == 0 && !aborted {
				t.Fatalf("job %d ended %d times", id, n)
			}
		}
		if st := f.Stats(); len(f.where) != 0 || st.Running+st.Waiting != 0 {
			t.Fatalf("%+v, %v are left", st, f.where)
		}
	})
}

// One engine in lock step with itself is that engine.
func TestLockstepOfOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t, 1)
		f, _ := s.together()
		if got, want := text(s.play(f)), text(s.play(s.engine(0))); got != want {
			t.Fatalf("in lock step\n%salone\n%s", got, want)
		}
	})
}

// An engine without work computes dummy batches: a request that comes to it waits for the
// end of the others' step.
func TestDummyBatches(t *testing.T) {
	s := scene{n: 2, config: Defaults(1), set: vllm.Default(), cost: flat{time.Microsecond}}
	s.config.Router = "round_robin"
	s.set.MaxModelLen, s.set.NumGPUBlocks, s.set.AsyncScheduling = 4096, 1000, false
	s.events = []event{{0, sim.Job{ID: 0, Prompt: 99, Output: 3}, false}, {50_000, sim.Job{ID: 1, Prompt: 10, Output: 1}, false}}
	f, _ := s.together()
	var at []int64
	for _, o := range s.play(f) {
		at = append(at, o.At)
	}
	// 99 tokens and a dummy's; then one token and the other prompt of ten; then one and a dummy's.
	want := []int64{101_000, 101_000 + 12_000, 101_000 + 12_000, 101_000 + 12_000 + 3000}
	if len(at) != 4 || at[0] != want[0] || at[1] != want[1] || at[2] != want[2] || at[3] != want[3] {
		t.Errorf("%v, want %v", at, want)
	}
}
