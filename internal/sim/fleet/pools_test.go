package fleet

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pitot/internal/sim"
)

// alone is what one engine gives one job that comes at a time.
func alone(s *scene, seed int, at int64, j sim.Job) []sim.Emission {
	one := *s
	one.events = []event{{at: at, job: j}}
	return slices.Clone(one.play(one.engine(seed)))
}

// One request takes what computing its prompt takes an engine alone, then exactly what its
// KV cache takes over the link, then what an engine takes that has it: whatever the link,
// the parts are those of engines known by themselves.
func TestPoolsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t, 1)
		s.blocks = false
		j := s.events[0].job
		way := rapid.SampledFrom([]int64{0, 1, 977}).Draw(t, "ns per token")
		link := func(prompt int) int64 { return int64(prompt) * way }
		prompt := j
		prompt.Output, prompt.Limit = 1, 1
		computed := alone(&s, 0, 5, prompt)
		received := j
		received.Received = j.Prompt
		there := computed[0].At + int64(j.Prompt)*way
		want := alone(&s, 1, there, received)
		s.events = []event{{at: 5, job: j}}
		got := s.play(NewPools(s.config, []sim.Model{s.engine(0)}, []sim.Model{s.engine(1)}, link))
		if len(got) != len(want) {
			t.Fatalf("%d emissions, want %d", len(got), len(want))
		}
		for i := range got {
			if got[i].At != want[i].At || got[i].Tokens != want[i].Tokens || got[i].Engine != 1 {
				t.Fatalf("emission %d is %+v, want %+v", i, got[i], want[i])
			}
		}
		tr := got[len(got)-1].Trace
		if first := computed[0].Trace; tr.Arrived != 5 || tr.Scheduled != first.Scheduled || tr.First < there || tr.Cached != first.Cached {
			t.Fatalf("%+v, of the prompt %+v", tr, first)
		}
	})
}

// A received prompt costs the second engine one token of it, and the rest of the answer.
func TestReceivedIsNotComputed(t *testing.T) {
	s := scene{config: Defaults(1), n: 1, cost: flat{1000}}
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t, 1)
		s.set = d.set
		s.set.StepJitter = 0
	})
	tokens := 0
	e := s.engine(0)
	e.Watch(func(i sim.StepInfo) { tokens += i.Tokens })
	s.events = []event{{job: sim.Job{ID: 1, Prompt: 100, Received: 100, Output: 7}}}
	s.play(e)
	if tokens != 7 {
		t.Errorf("%d tokens went through the model, want 7", tokens)
	}
}

// A link carries one prompt after the other: of two that are computed in one step the second
// waits for the first.
func TestLinkIsShared(t *testing.T) {
	var s scene
	rapid.Check(t, func(t *rapid.T) { s = draw(t, 1) })
	s.blocks, s.set.StepJitter, s.set.MaxNumSeqs, s.set.MaxNumBatchedTokens = false, 0, 4, 400
	s.set.Frontend.PerRequest, s.set.Frontend.PerChunk = 0, 0
	const way = int64(1e6)
	for _, links := range []int{1, 2} {
		s.events = []event{{job: sim.Job{ID: 1, Prompt: 50, Output: 1}}, {job: sim.Job{ID: 2, Prompt: 50, Output: 1}}}
		var first []sim.Model
		for i := range links {
			first = append(first, s.engine(i))
		}
		s.config.Router = "round_robin"
		p := NewPools(s.config, first, []sim.Model{s.engine(3)}, func(int) int64 { return way })
		out := s.play(p)
		apart := out[1].At - out[0].At
		if links == 1 && apart != way || links == 2 && apart >= way/2 {
			t.Errorf("with %d links the answers are %d ns apart", links, apart)
		}
	}
}

// Every job ends once with all its tokens, or its client went; nothing stays in the books,
// and it does not matter when the caller comes.
func TestPoolsConserve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t, 3)
		n := rapid.IntRange(1, 3).Draw(t, "decode")
		way := rapid.SampledFrom([]int64{0, 3, 500}).Draw(t, "ns per token")
		make := func() *Pools {
			var first, then []sim.Model
			for i := range s.n {
				first = append(first, s.engine(i))
			}
			for i := range n {
				then = append(then, s.engine(10+i))
			}
			return NewPools(s.config, first, then, func(prompt int) int64 { return int64(prompt) * way })
		}
		p := make()
		out := s.play(p)
		gone, got, ended, at := map[int64]bool{}, map[int64]int{}, map[int64]bool{}, int64(0)
		for _, e := range s.events {
			gone[e.job.ID] = gone[e.job.ID] || e.abort
		}
		for _, o := range out {
			if o.At < at || ended[o.ID] || o.Engine < s.n || o.Engine >= s.n+n {
				t.Fatalf("%+v after %d", o, at)
			}
			at = o.At
			got[o.ID] += o.Tokens
			ended[o.ID] = o.Finish != ""
		}
		for _, e := range s.events {
			if id := e.job.ID; !e.abort && !gone[id] && (!ended[id] || got[id] != e.job.Output) {
				t.Fatalf("job %d has %d of %d tokens and ended: %v", id, got[id], e.job.Output, ended[id])
			}
		}
		if st := p.Stats(); len(p.jobs)+len(p.moving)+len(p.first.where)+len(p.then.where) != 0 || st.Running+st.Waiting != 0 {
			t.Fatalf("jobs are left: %+v, %+v", p.jobs, st)
		}
		if again := text(s.play(make())); again != text(out) {
			t.Fatal("the same again is not the same")
		}
	})
}
