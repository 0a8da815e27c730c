package vllm

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pitot/internal/sim"
)

// scene is a random engine and what happens to it.
type scene struct {
	set    Settings
	cost   Flat
	events []event
}

// event is a job that arrives, or one whose client goes away.
type event struct {
	at    int64
	job   sim.Job
	abort bool
}

func drawScene(t *rapid.T) scene {
	in := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
	some := func(name string) bool { return rapid.Bool().Draw(t, name) }
	var s scene
	s.set = Settings{
		sim.Settings{
			MaxNumSeqs: in("max_num_seqs", 1, 8), MaxModelLen: in("max_model_len", 2, 80), BlockSize: in("block_size", 1, 9), EnablePrefixCaching: some("prefix caching"), AsyncScheduling: some("async"),
			NumSpeculativeTokens: in("drafts", 0, 4), AcceptanceRate: float64(in("acceptance", 0, 4)) / 4, StreamInterval: in("stream interval", 1, 4), Seed: uint64(in("seed", 0, 99)), StepJitter: float64(in("jitter", 0, 2)) / 4,
			SlowCV: float64(in("slow", 0, 2)) / 4, SlowTime: 5 * time.Microsecond,
		},
		Own{
			EnableChunkedPrefill: some("chunked prefill"), LongPrefillTokenThreshold: in("threshold", 0, 9), SchedulerReserveFullISL: some("reserve"),
			Watermark: float64(in("watermark", 0, 9)) / 10, Priority: some("priority"),
		},
	}
	if s.set.Drafter = sim.Drafter(in("drafter", 0, 2)); some("drafts by batch size") {
		s.set.SpeculativeSchedule = ranges(1, in("few", 1, 3), in("drafts of few", 0, 4), 4, in("many", 4, 6), in("drafts of many", 0, 4))
	}
	s.set.LongPrefillTokenThreshold = min(s.set.LongPrefillTokenThreshold, s.set.MaxModelLen)
	s.set.MaxNumBatchedTokens = s.set.MaxNumSeqs + in("budget", 0, 40) + s.set.draftSlots()
	if !s.set.EnableChunkedPrefill {
		s.set.MaxNumBatchedTokens += s.set.MaxModelLen
	}
	if some("layers of other kinds") {
		s.set.Window, s.set.WindowShare, s.set.StateBlocks = in("window", 1, 30), float64(in("share", 0, 12))/4, in("state", 0, 3)
	}
	s.set.NumGPUBlocks = s.set.BlocksBeside(s.set.MaxModelLen) + (s.set.MaxModelLen+s.set.BlockSize-1)/s.set.BlockSize + 1 + in("spare blocks", 0, 20)
	s.set.Frontend = sim.Frontend{
		PerRequest: time.Duration(in("per request", 0, 500)), PerPromptToken: time.Duration(in("per prompt token", 0, 20)),
		PerStep: time.Duration(in("per step", 0, 200)), PerChunk: time.Duration(in("per chunk", 0, 400)),
	}
	s.cost = Flat{1000, time.Duration(in("per token", 0, 30))}
	at := int64(0)
	for id := range in("jobs", 1, 25) {
		at += int64(in("gap", 0, 3000))
		s.events = append(s.events, event{at: at, job: sim.Job{
			ID: int64(id), Prompt: in("prompt", 1, 80), Output: in("output", 1, 40), Limit: in("limit", 0, 40), Priority: in("urgency", 0, 2),
			Content: prefix{whole: uint64(id) + 1000, group: uint64(in("group", 0, 1)), shared: in("shared", 0, 60)},
		}})
		if in("client", 0, 5) == 0 {
			s.events = append(s.events, event{at: at + int64(in("patience", 0, 20_000)), job: sim.Job{ID: int64(id)}, abort: true})
		}
	}
	slices.SortStableFunc(s.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return s
}

// play runs a scene. The engine is stepped by advance up to a time.
func (s scene) play(watch func(*Engine, sim.StepInfo), advance func(e *Engine, now, to int64) []sim.Emission) (*Engine, []sim.Emission) {
	e := New(s.set, s.cost)
	if watch != nil {
		e.Watch(func(i sim.StepInfo) { watch(e, i) })
	}
	var out []sim.Emission
	now := int64(0)
	for _, ev := range s.events {
		out = append(out, advance(e, now, ev.at)...)
		if now = ev.at; ev.abort {
			e.Abort(ev.job.ID)
		} else {
			e.Add(now, ev.job)
		}
	}
	return e, append(out, advance(e, now, forever)...)
}

const forever = int64(math.MaxInt64 - 1)

// onTime calls Step when the engine says so.
func onTime(e *Engine, now, to int64) (out []sim.Emission) {
	for {
		s := e.Step(now)
		out = append(out, s.Out...)
		if s.End > to {
			return out
		}
		now = max(now, s.End)
	}
}

// late calls Step only when something arrives.
func late(e *Engine, _, to int64) []sim.Emission { return slices.Clone(e.Step(to).Out) }

// often calls Step at other times too.
func often(e *Engine, now, to int64) (out []sim.Emission) {
	for {
		s := e.Step(now)
		out = append(out, s.Out...)
		if s.End > to {
			return out
		}
		for between := now + 1; between < s.End; between += 1 + (s.End-now)/3 {
			if s := e.Step(between); len(s.Out) > 0 {
				panic("something came out before its time")
			}
		}
		now = max(now, s.End)
	}
}

func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		if err := s.set.Check(); err != nil {
			t.Fatal(err)
		}
		var last sim.StepInfo
		var batched int64
		e, out := s.play(func(e *Engine, i sim.StepInfo) {
			if i.Start < last.End || i.End <= i.Start || i.Number != last.Number+1 {
				t.Fatalf("step %+v after %+v", i, last)
			}
			last = i
			batched += int64(i.Tokens)
			checkPlan(t, e, i)
			checkBlocks(t, e)
		}, onTime)
		checkOut(t, s, e, out)

		if e.pool.free != e.pool.size() || len(e.running) != 0 || e.waiting.len() != 0 || len(e.flight) != 0 || len(e.byID) != 0 {
			t.Fatalf("at the end %d of %d blocks are free, %d run, %d wait, %d steps fly, %d jobs are known",
				e.pool.free, e.pool.size(), len(e.running), e.waiting.len(), len(e.flight), len(e.byID))
		}
		if st := e.Stats(); st.Steps != last.Number || batched < st.GenerationTokens {
			t.Fatalf("%+v after %d steps of %d tokens in all", st, last.Number, batched)
		}
	})
}

// checkPlan holds the bounds of one step.
func checkPlan(t rapid.TB, e *Engine, i sim.StepInfo) {
	tokens := 0
	seen := map[*request]bool{}
	for _, it := range e.flight[len(e.flight)-1].items {
		if it.tokens < 1 || seen[it.r] || it.r.status != running || it.r.stale > 0 {
			t.Fatalf("step %d: job %d has %d tokens, status %d, %d stale steps", i.Number, it.r.job.ID, it.tokens, it.r.status, it.r.stale)
		}
		seen[it.r] = true
		tokens += it.tokens
	}
	if tokens != i.Tokens || tokens+len(seen)*e.set.draftSlots() > e.set.MaxNumBatchedTokens || i.Requests != len(seen) || i.Running > e.set.MaxNumSeqs {
		t.Fatalf("step %+v has %d tokens of %d requests", i, tokens, len(seen))
	}
}

// checkBlocks counts every block: those in the free queue and those that
// requests hold are all there are.
func checkBlocks(t rapid.TB, e *Engine) {
	p := e.pool
	held, others := make([]int32, len(p.runs)), 0
	for _, r := range e.running {
		if r.blocks*e.set.BlockSize < r.computed {
			t.Fatalf("job %d has %d blocks for %d tokens", r.job.ID, r.blocks, r.computed)
		}
		if r.beside < e.set.BlocksBeside(r.computed) {
			t.Fatalf("job %d has %d blocks besides for %d tokens", r.job.ID, r.beside, r.computed)
		}
		if r.listed != countBlocks(r.parts) || r.listed > r.blocks {
			t.Fatalf("job %d has %d blocks, of which %d are cached and %d said to be", r.job.ID, r.blocks, countBlocks(r.parts), r.listed)
		}
		others += r.blocks - r.listed + r.beside
		for _, x := range r.parts {
			i, n := x.run, x.n
			for ; n > 0; i = p.runs[i].before {
				held[i]++
				n -= len(p.runs[i].hashes)
			}
			if n != 0 {
				t.Fatalf("job %d holds %d blocks that are no whole runs", r.job.ID, x.n)
			}
		}
	}
	free, before := p.empty, int32(none)
	for i := p.runs[none].next; i != none; i = p.runs[i].next {
		if p.runs[i].ref != 0 || p.runs[i].prev != before {
			t.Fatalf("free run %d has %d references, %d before it, not %d", i, p.runs[i].ref, p.runs[i].prev, before)
		}
		before = i
		free += len(p.runs[i].hashes)
	}
	used, found := others, map[int32]bool{}
	for i := range p.head {
		for k := p.head[i]; k != none; k = p.runs[k].behind {
			r := &p.runs[k]
			if found[k] || len(r.hashes) == 0 || r.first != r.hashes[0] || p.chainSlot(r.first) != &p.head[i] || r.single && len(r.hashes) > 1 {
				t.Fatalf("run %d of %d blocks is listed under another content", k, len(r.hashes))
			}
			if found[k] = true; r.ref != held[k] {
				t.Fatalf("run %d has %d references and %d holders", k, r.ref, held[k])
			}
			if r.ref > 0 {
				used += len(r.hashes)
			}
		}
	}
	if free != p.free || free+used != p.size() {
		t.Fatalf("%d blocks are free, %d are said to be, %d are used, there are %d", free, p.free, used, p.size())
	}
	if len(found) != p.listed || len(found)+len(p.spare)+1 != len(p.runs) {
		t.Fatalf("%d of %d runs are listed, %d said to be", len(found), len(p.runs)-len(p.spare)-1, p.listed)
	}
}

// checkOut holds what came out against what was asked.
func checkOut(t *rapid.T, s scene, e *Engine, out []sim.Emission) {
	type got struct {
		tokens int
		at     int64
		trace  *sim.Trace
	}
	jobs := map[int64]*got{}
	at := int64(0)
	for _, o := range out {
		g := jobs[o.ID]
		if g == nil {
			g = &got{}
			jobs[o.ID] = g
		}
		if o.Tokens < 1 || o.At < at || g.trace != nil || (o.Finish != "") != (o.Trace != nil) {
			t.Fatalf("emission %+v after %d and %+v", o, at, g)
		}
		at = o.At
		g.tokens += o.Tokens
		g.at, g.trace = o.At, o.Trace
	}
	aborted := map[int64]int64{}
	for _, ev := range s.events {
		if ev.abort {
			aborted[ev.job.ID] = ev.at
		}
	}
	given := 0
	var first int64 // step in which the job before was in a step first
	for _, ev := range s.events {
		if ev.abort {
			continue
		}
		j, g := ev.job, jobs[ev.job.ID]
		if g != nil {
			given += g.tokens
		}
		if gone, ok := aborted[j.ID]; ok && (g == nil || g.trace == nil) {
			if g != nil && g.at > gone {
				t.Fatalf("job %d got something at %d, its client went at %d", j.ID, g.at, gone)
			}
			continue
		}
		if g == nil || g.trace == nil {
			t.Fatalf("job %d is lost", j.ID)
		}
		want := j.Output
		if j.Limit > 0 {
			want = min(want, j.Limit)
		}
		if want = min(want, s.set.MaxModelLen-min(j.Prompt, s.set.MaxModelLen-1)); g.tokens != want {
			t.Fatalf("job %+v got %d tokens, not %d", j, g.tokens, want)
		}
		tr := g.trace
		times := []int64{ev.at, tr.Arrived, tr.Queued, tr.Scheduled, tr.First, tr.Last, g.at}
		if !slices.IsSorted(times) || tr.Arrived != ev.at || tr.FirstStep < 1 || tr.LastStep < tr.FirstStep || tr.Cached >= j.Prompt ||
			int64(tr.Steps) > tr.LastStep-tr.FirstStep+1 {
			t.Fatalf("job %+v of %d ended at %d with trace %+v", j, ev.at, g.at, *tr)
		}
		if !s.set.Priority {
			if tr.FirstStep < first {
				t.Fatalf("job %d was first in step %d, one that came before it in step %d", j.ID, tr.FirstStep, first)
			}
			first = tr.FirstStep
		}
	}
	if n := e.Stats().GenerationTokens; int64(given) > n || len(aborted) == 0 && int64(given) != n {
		t.Fatalf("%d tokens came out, the engine counts %d", given, n)
	}
}

func TestSameWhateverTheCaller(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		text := func(out []sim.Emission) (s string) {
			for _, o := range out {
				s += fmt.Sprint(o.ID, o.At, o.Tokens, o.Finish)
				if o.Trace != nil {
					s += fmt.Sprint(*o.Trace)
				}
				s += "\n"
			}
			return s
		}
		_, out := s.play(nil, onTime)
		want := text(out)
		for name, advance := range map[string]func(*Engine, int64, int64) []sim.Emission{"on time again": onTime, "late": late, "often": often} {
			if _, out := s.play(nil, advance); text(out) != want {
				t.Fatalf("stepped %s:\n%swant\n%s", name, text(out), want)
			}
		}
	})
}

// A heap and the FIFO against a sorted list.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := queue{byPriority: rapid.Bool().Draw(t, "by priority")}
		var model []*request
		order := func() {
			if q.byPriority {
				slices.SortStableFunc(model, func(a, b *request) int {
					if isMoreUrgent(a, b) {
						return -1
					}
					return 1
				})
			}
		}
		for id := range int64(rapid.IntRange(1, 300).Draw(t, "operations")) {
			switch op := rapid.IntRange(0, 5).Draw(t, "operation"); {
			case op < 3 || len(model) == 0:
				r := &request{job: sim.Job{ID: id, Priority: rapid.IntRange(0, 3).Draw(t, "priority")}, arrived: id / 4}
				if op == 0 {
					q.prepend(r)
					model = slices.Insert(model, 0, r)
				} else {
					q.push(r)
					model = append(model, r)
				}
				order()
			case op == 3:
				i := rapid.IntRange(0, len(model)-1).Draw(t, "who")
				q.remove(model[i])
				model = slices.Delete(model, i, i+1)
			default:
				if p := q.peek(); p != model[0] || q.pop() != p {
					t.Fatalf("first is %d, want %d", p.job.ID, model[0].job.ID)
				}
				model = model[1:]
			}
			if q.len() != len(model) {
				t.Fatalf("%d wait, want %d", q.len(), len(model))
			}
		}
	})
}

// FuzzEngine: settings are refused or they work; whatever is asked comes to an
// end.
func FuzzEngine(f *testing.F) {
	f.Add(4, 32, 64, 4, 20, 3, uint8(0xff), 0.1, 0.5, 0.2, 2, []byte("a few jobs, each of four bytes"))
	f.Add(1, 1, 2, 1, 3, 0, uint8(0), 0.0, 0.0, 0.0, 1, []byte{1, 2, 3, 4})
	f.Add(8, 8, 40, 16, 4, 0, uint8(0x0f), 0.9, 1.0, 0.0, 1, []byte("\x00\xff\x00\x00\xff\x00\xff\xff"))
	f.Fuzz(func(t *testing.T, seqs, budget, longest, block, blocks, drafts int, flags uint8, watermark, acceptance, jitter float64, interval int, jobs []byte) {
		const most = 1 << 12 // memory is not what is tested
		s := Settings{
			sim.Settings{
				MaxNumSeqs: seqs % most, MaxNumBatchedTokens: budget % most, MaxModelLen: longest % most, BlockSize: block % most, NumGPUBlocks: blocks % most,
				NumSpeculativeTokens: drafts % 64, EnablePrefixCaching: flags&1 > 0, AsyncScheduling: flags&16 > 0, AcceptanceRate: acceptance, StepJitter: jitter,
				StreamInterval: interval, Seed: uint64(flags),
			},
			Own{
				LongPrefillTokenThreshold: drafts % 100, EnableChunkedPrefill: flags&2 > 0, SchedulerReserveFullISL: flags&4 > 0,
				Priority: flags&8 > 0, Watermark: watermark,
			},
		}
		s.Frontend.PerChunk = time.Duration(flags) * 10
		if s.Check() != nil {
			return
		}
		sc := scene{set: s, cost: Flat{PerStep: 1000}}
		for i := 0; i+4 <= min(len(jobs), 64); i += 4 {
			j := jobs[i : i+4]
			sc.events = append(sc.events, event{at: int64(i) * int64(flags) * 20, abort: j[3] > 250, job: sim.Job{
				ID: int64(j[3] % 16), Prompt: int(j[0])*4 - 8, Output: int(j[1]) - 4, Limit: int(j[2]) - 4, Priority: int(int8(j[3])),
				Content: prefix{whole: uint64(i) + 1000, shared: int(j[2])},
			}})
		}
		e, out := sc.play(nil, onTime)
		if len(e.byID) != 0 || e.pool.free != e.pool.size() {
			t.Fatalf("%d jobs never ended, %d of %d blocks are free, %d chunks came out", len(e.byID), e.pool.free, e.pool.size(), len(out))
		}
	})
}
