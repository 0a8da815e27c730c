package sglang

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
	"pitot/internal/sim"
)

// flat is a cost of a microsecond for each step and so much for each token.
type flat struct{ token time.Duration }

func (f flat) Step(b *sim.Batch) time.Duration {
	return time.Microsecond + time.Duration(b.Tokens)*f.token
}

// whole is content that groups of jobs share at the beginning.
type whole struct {
	own, group uint64
	shared     int
}

func (w whole) Tokens(from, to int) uint64 {
	h := sim.Mix(uint64(from)<<20 | uint64(to))
	if from < w.shared {
		h = sim.Mix(h ^ w.group<<8 ^ uint64(min(to, w.shared)))
	}
	if to > w.shared {
		h = sim.Mix(h ^ w.own<<9 ^ uint64(max(from, w.shared)))
	}
	return h
}

type event struct {
	at    int64
	job   sim.Job
	abort bool
}

type scene struct {
	set    Settings
	cost   flat
	events []event
}

func draw(t *rapid.T) (s scene) {
	in := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
	some := func(name string) bool { return rapid.Bool().Draw(t, name) }
	s.set = Settings{
		MaxRunningRequests: in("max_running_requests", 1, 8), ContextLength: in("context_length", 4, 120), ChunkedPrefillSize: in("chunked_prefill_size", 1, 60),
		MaxPrefillTokens: in("max_prefill_tokens", 1, 100), SchedulePolicy: Policies()[in("policy", 0, len(Policies())-1)],
		ScheduleConservativeness: float64(in("conservativeness", 1, 8)) / 4, EnableMixedChunk: some("mixed"), DisableOverlapSchedule: some("no overlap"), DisableRadixCache: some("no radix cache"),
		StreamInterval: in("stream interval", 1, 3), StepJitter: float64(in("jitter", 0, 1)) / 4, Seed: uint64(in("seed", 0, 9)),
		Frontend: sim.Frontend{PerRequest: time.Duration(in("per request", 0, 500)), PerChunk: time.Duration(in("per chunk", 0, 400))},
	}
	if s.set.SchedulePolicy == "shortest-prefill-first" {
		s.set.DisableRadixCache = false
	}
	s.set.MaxTotalTokens = s.set.ContextLength + 2 + in("spare tokens", 0, 150)
	s.cost = flat{time.Duration(in("per token", 0, 30))}
	at := int64(0)
	for id := range in("jobs", 1, 25) {
		at += int64(in("gap", 0, 3000))
		s.events = append(s.events, event{at: at, job: sim.Job{
			ID: int64(id), Prompt: in("prompt", 1, 120), Output: in("output", 1, 40), Limit: in("limit", 0, 60),
			Content: whole{uint64(id) + 10, uint64(in("group", 0, 1)), in("shared", 0, 100)},
		}})
		if in("client", 0, 5) == 0 {
			s.events = append(s.events, event{at: at + int64(in("patience", 0, 20_000)), job: sim.Job{ID: int64(id)}, abort: true})
		}
	}
	slices.SortStableFunc(s.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return s
}

// play steps an engine when it says so, or only when something arrives.
func (s scene) play(watch func(*Engine, sim.StepInfo), late bool) (*Engine, []sim.Emission) {
	e := New(s.set, s.cost)
	if watch != nil {
		e.Watch(func(i sim.StepInfo) { watch(e, i) })
	}
	var out []sim.Emission
	now := int64(0)
	advance := func(to int64) {
		if late {
			out = append(out, e.Step(to).Out...)
			return
		}
		for turn := 0; ; turn++ {
			if turn > 1_000_000 {
				panic("it never ends")
			}
			step := e.Step(now)
			out = append(out, step.Out...)
			if step.End > to {
				return
			}
			now = max(now, step.End)
		}
	}
	for _, ev := range s.events {
		advance(ev.at)
		if now = ev.at; ev.abort {
			e.Abort(ev.job.ID)
		} else {
			e.Add(now, ev.job)
		}
	}
	advance(math.MaxInt64 - 1)
	return e, out
}

func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t)
		if err := s.set.Check(); err != nil {
			t.Fatal(err)
		}
		end := int64(0)
		e, out := s.play(func(e *Engine, i sim.StepInfo) {
			if i.Start < end || i.End <= i.Start || i.Requests < 1 || i.Running > s.set.MaxRunningRequests+1 {
				t.Fatalf("step %+v after one that ends at %d", i, end)
			}
			end = i.End
			check(t, e)
		}, false)
		check(t, e)
		gone, want := map[int64]int64{}, map[int64]sim.Job{}
		for _, ev := range s.events {
			if ev.abort {
				gone[ev.job.ID] = ev.at
			} else {
				want[ev.job.ID] = ev.job
			}
		}
		at, got, ended := int64(0), map[int64]int{}, map[int64]string{}
		for _, o := range out {
			if o.At < at || ended[o.ID] != "" || (o.Finish == "stop" || o.Finish == "length") != (o.Trace != nil) {
				t.Fatalf("%+v after %d, ended %q", o, at, ended[o.ID])
			}
			at = o.At
			got[o.ID] += o.Tokens
			ended[o.ID] = o.Finish
			if tr := o.Trace; tr != nil && !slices.IsSorted([]int64{tr.Arrived, tr.Queued, tr.Scheduled, tr.First, tr.Last, o.At}) {
				t.Fatalf("%+v", *tr)
			}
		}
		for id, j := range want {
			if _, aborted := gone[id]; aborted || ended[id] == sim.Lost {
				continue
			}
			n := j.Output
			if j.Limit > 0 {
				n = min(n, j.Limit)
			}
			if n = max(min(n, s.set.ContextLength-2-min(j.Prompt, s.set.ContextLength-3)), 1); got[id] != n || ended[id] == "" {
				t.Fatalf("job %+v got %d tokens, not %d, and ended with %q", j, got[id], n, ended[id])
			}
		}
		if len(e.byID) != 0 || e.used != 0 || e.tree.held != 0 || len(e.running)+len(e.waiting) != 0 || e.chunked != nil {
			t.Fatalf("at the end %d jobs are known, %d tokens used, %d held", len(e.byID), e.used, e.tree.held)
		}
	})
}

// check counts the tokens of the KV cache.
func check(t *rapid.T, e *Engine) {
	tokens, held, leaves := 0, 0, 0
	var walk func(n *node)
	walk = func(n *node) {
		if n != e.tree.root {
			tokens += n.to - n.from
			if n.holders > 0 {
				held += n.to - n.from
			}
			if n.to <= n.from || n.parent.holders < n.holders && n.parent != e.tree.root {
				t.Fatalf("node %+v", n)
			}
			if !n.listed && n.holders == 0 && len(n.children) == 0 {
				t.Fatalf("node %+v is not listed as a leaf", n)
			} else if n.listed {
				leaves++
			}
		}
		for _, c := range n.children {
			if c.parent != n || c.from != n.to {
				t.Fatalf("node %+v below %+v", c, n)
			}
			walk(c)
		}
	}
	walk(e.tree.root)
	// A prompt that is computed in parts goes on where too much is promised, as in SGLang, which
	// gives up where its allocator has nothing left; here so much of one prompt is lent.
	most := e.set.ContextLength
	if tokens != e.tree.tokens || held != e.tree.held || leaves != len(e.tree.old) || e.used < 0 || e.availableTokens() < -most {
		t.Fatalf("%d tokens in the tree, said %d; %d held, said %d; %d used, %d available", tokens, e.tree.tokens, held, e.tree.held, e.used, e.availableTokens())
	}
}

// What is evicted is the leaf that was used longest ago of all that nobody holds, however
// the tree was used in between.
func TestOldestLeafIsEvicted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := newTree()
		var held []*node
		for range rapid.IntRange(1, 60).Draw(t, "operations") {
			c := words(rapid.StringMatching("[ab]{1,8}").Draw(t, "text"))
			switch rapid.SampledFrom([]string{"insert", "match", "hold", "free", "evict"}).Draw(t, "does") {
			case "insert":
				tr.insert(c, len(c))
			case "match":
				tr.match(c, len(c))
			case "hold":
				n, _ := tr.match(c, len(c))
				tr.hold(n)
				held = append(held, n)
			case "free":
				if len(held) > 0 {
					tr.releaseNode(held[0])
					held = held[1:]
				}
			case "evict":
				var first *node
				var walk func(n *node)
				walk = func(n *node) {
					for _, c := range n.children {
						walk(c)
					}
					if n != tr.root && n.holders == 0 && len(n.children) == 0 && (first == nil || n.used < first.used || n.used == first.used && n.born < first.born) {
						first = n
					}
				}
				walk(tr.root)
				want := 0
				if first != nil {
					want = first.to - first.from
				}
				if got := tr.evict(1); got != want || first != nil && first.parent.children[first.content.Tokens(first.from, first.from+1)] == first {
					t.Fatalf("evicted %d tokens, want %d", got, want)
				}
			}
		}
	})
}

// words is content with a token for each letter.
type words string

func (w words) Tokens(from, to int) uint64 {
	h := uint64(from)
	for _, b := range []byte(w[from:min(to, len(w))]) {
		h = sim.Mix(h ^ uint64(b))
	}
	return h
}

func TestSameWhateverTheCaller(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t)
		text := func(out []sim.Emission) (s string) {
			for _, o := range out {
				s += fmt.Sprint(o.ID, o.At, o.Tokens, o.Finish, "\n")
			}
			return s
		}
		_, a := s.play(nil, false)
		_, b := s.play(nil, true)
		if text(a) != text(b) {
			t.Fatalf("on time\n%slate\n%s", text(a), text(b))
		}
	})
}
