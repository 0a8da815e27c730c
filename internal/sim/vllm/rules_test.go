package vllm

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pitot/internal/sim"
)

// rules are settings for cases made by hand: a step takes a microsecond and
// has room for 8 tokens, a block holds 4, and nothing else is on.
func rules() Settings {
	return Settings{
		sim.Settings{
			MaxNumSeqs: 4, MaxNumBatchedTokens: 8, MaxModelLen: 64, BlockSize: 4, NumGPUBlocks: 100,
			StreamInterval: 1,
		},
		Own{
			EnableChunkedPrefill: true, SchedulerReserveFullISL: true,
		},
	}
}

const step = int64(time.Microsecond)

// ranges makes ranges of their numbers: from, to, tokens, and again.
func ranges(numbers ...int) (list []sim.DraftRange) {
	for i := 0; i+2 < len(numbers); i += 3 {
		list = append(list, sim.DraftRange{From: numbers[i], To: numbers[i+1], Tokens: numbers[i+2]})
	}
	return list
}

// bench runs jobs through an engine and keeps what it did.
type bench struct {
	*Engine
	steps []string // "id:tokens id:tokens" of each step
	infos []sim.StepInfo
	out   []sim.Emission
	now   int64
}

func newBench(s Settings) *bench {
	if err := s.Check(); err != nil {
		panic(err)
	}
	b := &bench{Engine: New(s, Flat{PerStep: time.Duration(step)})}
	b.Watch(func(i sim.StepInfo) {
		var parts []string
		for _, it := range b.flight[len(b.flight)-1].items {
			parts = append(parts, fmt.Sprintf("%d:%d", it.r.job.ID, it.tokens))
		}
		b.steps = append(b.steps, strings.Join(parts, " "))
		b.infos = append(b.infos, i)
	})
	return b
}

// until runs the engine up to a time, all that is due then included.
func (b *bench) until(at int64) {
	for {
		s := b.Step(b.now)
		b.out = append(b.out, s.Out...)
		if s.End > at || s.End == math.MaxInt64 {
			if at != math.MaxInt64 {
				b.now = at
			}
			return
		}
		b.now = s.End
	}
}

func (b *bench) add(at int64, j sim.Job) {
	if at > b.now {
		b.until(at)
	}
	b.Engine.Add(at, j)
}

func (b *bench) finish() { b.until(math.MaxInt64) }

// emissions are the times, in steps, and the tokens of one job's chunks.
func (b *bench) emissions(id int64) (s string) {
	for _, o := range b.out {
		if o.ID == id {
			s += fmt.Sprintf(" %v+%d%s", float64(o.At)/float64(step), o.Tokens, o.Finish)
		}
	}
	return strings.TrimSpace(s)
}

// trace is what the engine told with a job's last chunk.
func (b *bench) trace(t *testing.T, id int64) sim.Trace {
	t.Helper()
	for _, o := range b.out {
		if o.ID == id && o.Trace != nil {
			return *o.Trace
		}
	}
	t.Fatalf("job %d has no trace", id)
	return sim.Trace{}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func number(t *testing.T, what string, got, want int) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %d, want %d", what, got, want)
	}
}

func TestRunningFirstWithinOneBudget(t *testing.T) {
	b := newBench(rules())
	b.add(0, sim.Job{ID: 0, Prompt: 4, Output: 7})
	b.add(1, sim.Job{ID: 1, Prompt: 20, Output: 2})
	b.finish()
	same(t, "steps", b.steps, []string{"0:4", "0:1 1:7", "0:1 1:7", "0:1 1:6", "0:1 1:1", "0:1", "0:1"})
	same(t, "parts of a prompt give nothing", b.emissions(1), "4+1 5+1length")
	same(t, "trace", b.trace(t, 1), sim.Trace{
		Arrived: 1, Queued: 1, Scheduled: step, First: 4 * step, Last: 5 * step, Steps: 4, FirstStep: 2, LastStep: 5,
	})
	number(t, "tokens in step 2", b.infos[1].Tokens, 8)
}

func TestLongPrefillThreshold(t *testing.T) {
	s := rules()
	s.LongPrefillTokenThreshold = 3
	b := newBench(s)
	b.add(0, sim.Job{ID: 0, Prompt: 12, Output: 1})
	b.add(0, sim.Job{ID: 1, Prompt: 5, Output: 1})
	b.finish()
	same(t, "steps", b.steps, []string{"0:3 1:3", "0:3 1:2", "0:6"}) // the last is alone
}

func TestMaxNumSeqs(t *testing.T) {
	s := rules()
	s.MaxNumSeqs = 2
	b := newBench(s)
	for id := range int64(3) {
		b.add(0, sim.Job{ID: id, Prompt: 2, Output: 2})
	}
	b.finish()
	same(t, "steps", b.steps, []string{"0:2 1:2", "0:1 1:1", "2:2", "2:1"})
	number(t, "waiting in step 1", b.infos[0].Waiting, 1)
}

func TestWithoutChunkedPrefill(t *testing.T) {
	s := rules()
	s.EnableChunkedPrefill, s.MaxModelLen = false, 8
	b := newBench(s)
	b.add(0, sim.Job{ID: 0, Prompt: 5, Output: 2})
	b.add(0, sim.Job{ID: 1, Prompt: 4, Output: 1})
	b.add(0, sim.Job{ID: 2, Prompt: 1, Output: 1})
	b.finish()
	same(t, "steps", b.steps, []string{"0:5", "0:1 1:4 2:1"}) // 1 does not fit and holds up 2
}

func TestWholePromptMustFit(t *testing.T) {
	s := rules()
	s.NumGPUBlocks, s.MaxModelLen = 9, 32
	jobs := func(b *bench) {
		b.add(0, sim.Job{ID: 0, Prompt: 16, Output: 4})
		b.add(1, sim.Job{ID: 1, Prompt: 20, Output: 1}) // 5 blocks, 4 are free
		b.add(1, sim.Job{ID: 2, Prompt: 4, Output: 1})  // would fit
		b.finish()
	}
	b := newBench(s)
	jobs(b)
	same(t, "with the gate", b.steps, []string{"0:8", "0:8", "0:1", "0:1", "0:1", "1:8", "1:8", "1:4 2:4"})

	s.SchedulerReserveFullISL = false
	b = newBench(s)
	jobs(b)
	same(t, "without", b.steps[:3], []string{"0:8", "0:8", "0:1 1:7"})
}

func TestWatermark(t *testing.T) {
	s := rules()
	s.NumGPUBlocks, s.MaxModelLen = 9, 32
	for _, c := range []struct {
		watermark float64
		first     int64
	}{{0, 2}, {0.2, 2}, {0.25, 4}} { // 0, 1 and 2 of 9 blocks
		s.Watermark = c.watermark
		b := newBench(s)
		b.add(0, sim.Job{ID: 0, Prompt: 2, Output: 3})
		b.add(1, sim.Job{ID: 1, Prompt: 24, Output: 1}) // leaves 1 of 7
		b.finish()
		number(t, fmt.Sprintf("first step with watermark %v", c.watermark), int(b.trace(t, 1).FirstStep), int(c.first))
	}
}

func TestPreemptTheLastAdmitted(t *testing.T) {
	s := rules()
	s.NumGPUBlocks, s.MaxModelLen, s.MaxNumBatchedTokens, s.EnablePrefixCaching = 5, 16, 16, true
	b := newBench(s)
	b.add(0, sim.Job{ID: 0, Prompt: 7, Output: 6})
	b.add(0, sim.Job{ID: 1, Prompt: 7, Output: 6})
	b.add(step+1, sim.Job{ID: 2, Prompt: 1, Output: 1})
	b.finish()
	same(t, "steps", b.steps, []string{
		"0:7 1:7", "0:1 1:1",
		"0:1",               // 0 takes a block of 1; 2 would fit, but nobody is admitted in this step
		"0:1", "0:1", "0:1", // 1 is first in line, needs 2 blocks, and holds up 2
		"1:5 2:1", // prompt and answer again, but for the block that 0 did not take
		"1:1", "1:1", "1:1",
	})
	same(t, "chunks of 1", b.emissions(1), "1+1 2+1 7+1 8+1 9+1 10+1length")
	tr := b.trace(t, 1)
	number(t, "preemptions of 1", tr.Preemptions, 1)
	number(t, "preemptions", int(b.Stats().Preemptions), 1)
	number(t, "prompt tokens of 1 cached at first", tr.Cached, 0)
	number(t, "hits counted", int(b.Stats().PrefixHits), 0)
	number(t, "tokens looked up", int(b.Stats().PrefixQueries), 15)
}

func TestPreemptTheLeastUrgent(t *testing.T) {
	s := rules()
	s.NumGPUBlocks, s.MaxModelLen, s.Priority = 5, 16, true
	b := newBench(s)
	b.add(0, sim.Job{ID: 0, Prompt: 5, Output: 6, Priority: 5})
	b.add(1, sim.Job{ID: 1, Prompt: 7, Output: 6})
	b.finish()
	// In step 4 job 0 was already in the plan when 1 needed its block.
	same(t, "steps", b.steps[:4], []string{"0:5", "0:1 1:7", "0:1 1:1", "1:1"})
	number(t, "preemptions of 0", b.trace(t, 0).Preemptions, 1)
	number(t, "tokens in step 4", b.infos[3].Tokens, 1)
	number(t, "tokens given", int(b.Stats().GenerationTokens), 12)
}

// Of equals who came last is preempted, and of those that came at once who was
// admitted first.
func TestPreemptTheYoungestOfEquals(t *testing.T) {
	for at, want := range map[int64]string{0: "1:1 2:1", 1: "0:1 2:1"} {
		s := rules()
		s.NumGPUBlocks, s.MaxModelLen, s.Priority = 7, 24, true
		b := newBench(s)
		b.add(0, sim.Job{ID: 0, Prompt: 4, Output: 9, Priority: 1})
		b.add(at, sim.Job{ID: 1, Prompt: 4, Output: 9, Priority: 1})
		b.add(1, sim.Job{ID: 2, Prompt: 4, Output: 9}) // admitted last
		b.finish()
		if !slices.Contains(b.steps[:6], want) {
			t.Errorf("job 1 came at %d: steps %q, want %q", at, b.steps[:6], want)
		}
	}
}

// The tokens of a victim that was in the plan already go to those behind it.
func TestPreemptionRefundsTheBudget(t *testing.T) {
	s := rules()
	s.NumGPUBlocks, s.MaxModelLen, s.Priority, s.SchedulerReserveFullISL = 9, 32, true, false
	b := newBench(s)
	b.add(0, sim.Job{ID: 0, Prompt: 4, Output: 9, Priority: 5})
	b.add(1, sim.Job{ID: 1, Prompt: 6, Output: 9})
	b.add(1, sim.Job{ID: 2, Prompt: 20, Output: 1, Priority: 1})
	b.finish()
	same(t, "steps", b.steps[:5], []string{"0:4", "0:1 1:6 2:1", "0:1 1:1 2:6", "0:1 1:1 2:6", "1:1 2:7"})
}

// Whoever is first in the batch and least urgent preempts itself. That plan is
// empty; the engine asks again at once.
func TestPreemptItself(t *testing.T) {
	for _, async := range []bool{false, true} {
		s := rules()
		s.NumGPUBlocks, s.MaxModelLen, s.Priority, s.AsyncScheduling = 5, 16, true, async
		b := newBench(s)
		b.add(0, sim.Job{ID: 0, Prompt: 6, Output: 6, Priority: 5})
		b.add(1, sim.Job{ID: 1, Prompt: 7, Output: 6})
		b.finish()
		number(t, "tokens given", int(b.Stats().GenerationTokens), 12)
		number(t, "preemptions", int(b.Stats().Preemptions), 1)
		if !async {
			same(t, "steps", b.steps[:5], []string{"0:6", "0:1 1:7", "0:1 1:1", "1:1", "1:1"})
		}
		for i, in := range b.infos[1:] {
			if in.Start != b.infos[i].End {
				t.Errorf("async %v: step %d starts at %d, the one before ended at %d", async, in.Number, in.Start, b.infos[i].End)
			}
		}
	}
}

func TestPriorityQueue(t *testing.T) {
	s := rules()
	s.MaxNumSeqs, s.Priority = 1, true
	b := newBench(s)
	b.add(0, sim.Job{ID: 0, Prompt: 1, Output: 2, Priority: 9})
	for i, p := range []int{3, 1, 2, 1} {
		b.add(int64(i)+1, sim.Job{ID: 9 - int64(i), Prompt: 1, Output: 1, Priority: p})
	}
	b.finish()
	// By priority, among equals by arrival, whatever the id.
	same(t, "steps", b.steps, []string{"0:1", "0:1", "8:1", "6:1", "7:1", "9:1"})
}

// shared is a content that all jobs have in common, the answers included.
var shared = prefix{shared: math.MaxInt}

func TestPrefixHits(t *testing.T) {
	s := rules()
	s.MaxNumBatchedTokens, s.EnablePrefixCaching = 16, true
	b := newBench(s)
	for i, prompt := range []int{8, 7, 8, 9, 12} {
		b.add(int64(i)*10*step, sim.Job{ID: int64(i), Prompt: prompt, Output: 1, Content: shared})
	}
	b.finish()
	// Full blocks only, and never the last token of the prompt.
	same(t, "steps", b.steps, []string{"0:8", "1:3", "2:4", "3:1", "4:4"})
	for id, want := range []int{0, 4, 4, 8, 8} {
		number(t, fmt.Sprintf("cached tokens of %d", id), b.trace(t, int64(id)).Cached, want)
	}
	number(t, "tokens looked up", int(b.Stats().PrefixQueries), 44)
	number(t, "hits", int(b.Stats().PrefixHits), 24)
	number(t, "blocks free at the end", b.pool.free, b.pool.size())
}

func TestPrefixHitInTheSameStep(t *testing.T) {
	s := rules()
	s.MaxNumBatchedTokens, s.EnablePrefixCaching = 16, true
	b := newBench(s)
	for id := range int64(3) {
		b.Engine.Add(0, sim.Job{ID: id, Prompt: 9, Output: 2, Content: shared})
	}
	b.until(0)
	same(t, "steps", b.steps, []string{"0:9 1:1 2:1"})
	number(t, "blocks in use", b.pool.size()-b.pool.free, 2+3)
	r := b.byID[0]
	number(t, "references to the blocks of all", int(b.pool.runs[r.parts[0].run].ref), 3)
	number(t, "blocks of its own", r.blocks-countBlocks(r.parts), 1)
}

// A conversation's next turn finds the answer of the last one. The block that
// the last step filled counts too, which with asynchronous scheduling is known
// only when the step is done.
func TestAnswersAreCached(t *testing.T) {
	for _, async := range []bool{false, true} {
		s := rules()
		s.EnablePrefixCaching, s.AsyncScheduling, s.MaxNumBatchedTokens = true, async, 16
		b := newBench(s)
		b.add(0, sim.Job{ID: 0, Prompt: 4, Output: 5, Content: shared}) // 8 tokens in the KV cache
		b.add(20*step, sim.Job{ID: 1, Prompt: 13, Output: 1, Content: shared})
		b.finish()
		number(t, fmt.Sprintf("cached tokens, async %v", async), b.trace(t, 1).Cached, 8)
	}
}

func TestEvictionOrder(t *testing.T) {
	p := newPool(6, true)
	found := func() int { return countBlocks(p.find([]uint64{11, 12}, nil)) }
	p.takeBlocks(3)
	p.release(p.cacheBlocks(nil, []uint64{11, 12}, 0), 1)
	head := p.holdPart(p.find([]uint64{11}, nil)[0]) // a hit protects it
	p.release([]part{head}, 0)
	// The block without content, those never used, the tail, the head.
	for i, want := range []int{2, 2, 2, 1, 0} {
		p.takeBlocks(1)
		number(t, fmt.Sprintf("blocks found after %d are taken", i+1), found(), want)
	}
	number(t, "blocks ever used", p.usedBlocks(), 5)

	p = newPool(5, false)
	p.takeBlocks(2)
	p.release(nil, 2)
	p.takeBlocks(2)
	number(t, "blocks ever used, those that are free again taken first", p.usedBlocks(), 2)
}

func TestDuplicateBlocks(t *testing.T) {
	p := newPool(5, true)
	p.takeBlocks(3)
	var runs []int32
	for range 3 {
		runs = append(runs, p.cacheBlocks(nil, []uint64{7}, 0)[0].run)
	}
	a, b, c := runs[0], runs[1], runs[2]
	p.takeBlocks(1)
	for _, evict := range []struct{ run, left int32 }{{b, a}, {a, c}, {c, none}} {
		p.release([]part{{evict.run, 1}}, 0)
		p.takeBlocks(1)
		number(t, "run that is found", int(p.firstRun(7)), int(evict.left))
	}
	if i := *p.chainSlot(7); i != none {
		t.Errorf("index still holds run %d", i)
	}
}

func TestReferencesKeepABlock(t *testing.T) {
	p := newPool(3, true)
	p.takeBlocks(1)
	a := p.cacheBlocks(nil, []uint64{7}, 0)
	p.holdPart(a[0])
	p.release(a, 0)
	number(t, "free", p.free, 1)
	p.release(a, 0)
	number(t, "free", p.free, 2)
	if p.usage() != 0 || p.firstRun(7) != a[0].run {
		t.Error("a cached block that nobody uses counts as free and is found")
	}
}

func TestAbort(t *testing.T) {
	for _, async := range []bool{false, true} {
		s := rules()
		s.AsyncScheduling, s.MaxNumSeqs = async, 1
		b := newBench(s)
		b.add(0, sim.Job{ID: 0, Prompt: 8, Output: 10})
		b.add(0, sim.Job{ID: 1, Prompt: 8, Output: 2})
		b.add(0, sim.Job{ID: 2, Prompt: 8, Output: 2})
		b.until(step + step/2)
		b.Abort(0) // while step 2 runs
		b.Abort(1) // while it waits
		b.Abort(77)
		if b.pool.free == b.pool.size() {
			t.Error("blocks came free within a step")
		}
		b.until(2 * step)
		same(t, "chunks of 0", b.emissions(0), "1+1")
		same(t, "chunks of 1", b.emissions(1), "")
		b.finish()
		same(t, "chunks of 0", b.emissions(0), "1+1")
		want := "3+1 4+1length"
		if async {
			want = "4+1 5+1length" // step 3 was planned with 0 in it
		}
		same(t, "chunks of 2", b.emissions(2), want)
		number(t, "free blocks", b.pool.free, b.pool.size())
		number(t, "tokens given", int(b.Stats().GenerationTokens), 3)
		number(t, "known jobs", len(b.byID), 0)
	}
}

func TestAbortOnTheWayOut(t *testing.T) {
	s := rules()
	s.Frontend.PerChunk = 5 * time.Microsecond
	b := newBench(s)
	b.add(0, sim.Job{ID: 0, Prompt: 1, Output: 2})
	b.until(3 * step) // done, and nothing has come through yet
	b.Abort(0)
	b.add(4*step, sim.Job{ID: 0, Prompt: 1, Output: 1}) // another client, the same id
	b.finish()
	same(t, "chunks", b.emissions(0), "12+1length") // the thread is busy until 6
}

func TestAbortOnTheWayIn(t *testing.T) {
	s := rules()
	s.Frontend.PerRequest = 5 * time.Microsecond
	b := newBench(s)
	b.add(0, sim.Job{ID: 0, Prompt: 1, Output: 2})
	b.until(step)
	b.Abort(0)
	b.finish()
	number(t, "steps", len(b.steps), 0)
	number(t, "known jobs", len(b.byID), 0)
}

func TestEnds(t *testing.T) {
	s := rules()
	s.MaxModelLen = 16
	for _, c := range []struct {
		job    sim.Job
		tokens int
		finish string
	}{
		{sim.Job{Prompt: 4, Output: 3, Limit: 5}, 3, "stop"},
		{sim.Job{Prompt: 4, Output: 5, Limit: 3}, 3, "length"},
		{sim.Job{Prompt: 4, Output: 3, Limit: 3}, 3, "length"},
		{sim.Job{Prompt: 4, Output: 3}, 3, "length"},
		{sim.Job{Prompt: 12, Output: 9}, 4, "length"},             // max_model_len
		{sim.Job{Prompt: 12, Output: 4, Limit: 9}, 4, "stop"},     // the model's end comes before
		{sim.Job{Prompt: 99, Output: 9}, 1, "length"},             // cut
		{sim.Job{Prompt: -1, Output: -1, Limit: -1}, 1, "length"}, // and the least there is
	} {
		for _, async := range []bool{false, true} {
			for _, k := range []int{0, 3} {
				s.AsyncScheduling, s.NumSpeculativeTokens, s.AcceptanceRate = async, k, 1
				b := newBench(s)
				b.add(0, c.job)
				b.finish()
				n := 0
				for _, o := range b.out {
					n += o.Tokens
				}
				if last := b.out[len(b.out)-1]; n != c.tokens || last.Finish != c.finish {
					t.Errorf("%+v, async %v, %d drafts: %d tokens and %q, want %d and %q", c.job, async, k, n, last.Finish, c.tokens, c.finish)
				}
			}
		}
	}
}

func TestStopWastesAStepWithAsyncScheduling(t *testing.T) {
	for _, c := range []struct {
		async         bool
		output, limit int
		steps         int
	}{{false, 3, 9, 3}, {false, 9, 3, 3}, {true, 3, 9, 4}, {true, 9, 3, 3}} {
		s := rules()
		s.AsyncScheduling = c.async
		b := newBench(s)
		b.add(0, sim.Job{ID: 0, Prompt: 4, Output: c.output, Limit: c.limit})
		b.finish()
		number(t, fmt.Sprintf("steps of %+v", c), len(b.steps), c.steps)
		number(t, "tokens given", int(b.Stats().GenerationTokens), 3)
	}
}

func TestArrivalWaits(t *testing.T) {
	for _, c := range []struct {
		async bool
		step  int64 // the first one it is part of
	}{{false, 4}, {true, 5}} {
		s := rules()
		s.AsyncScheduling = c.async
		b := newBench(s)
		b.add(0, sim.Job{ID: 0, Prompt: 4, Output: 20})
		b.add(2*step+step/2, sim.Job{ID: 1, Prompt: 4, Output: 1}) // in step 3
		b.finish()
		tr := b.trace(t, 1)
		same(t, fmt.Sprintf("async %v", c.async), []int64{tr.FirstStep, tr.Scheduled, tr.First}, []int64{c.step, 3 * step, c.step * step})
	}
}

func TestSpeculative(t *testing.T) {
	for _, async := range []bool{false, true} {
		s := rules()
		s.AsyncScheduling, s.NumSpeculativeTokens, s.AcceptanceRate = async, 3, 1
		b := newBench(s)
		b.add(0, sim.Job{ID: 0, Prompt: 4, Output: 9})
		b.finish()
		same(t, "all accepted", b.emissions(0), "1+1 2+4 3+4length")

		s.AcceptanceRate = 0
		b = newBench(s)
		b.add(0, sim.Job{ID: 0, Prompt: 4, Output: 5})
		b.until(3 * step)
		r := b.byID[0]
		if computed := r.computed - r.placeholders; !async && computed != 6 || async && computed != r.numTokens()-1 {
			t.Errorf("async %v: %d tokens computed, %d there are", async, computed, r.numTokens())
		}
		b.finish()
		same(t, "none accepted", b.emissions(0), "1+1 2+1 3+1 4+1 5+1length")
		st := b.Stats()
		same(t, "counts", []int64{st.Drafts, st.DraftTokens, st.AcceptedTokens}, []int64{4, 12, 0})
	}
}

// Each draft is accepted with probability p if those before it were: a step
// gives 1 + p + ... + p^k tokens in the mean (Leviathan et al., 2023, eq. 1).
func TestSpeculativeAcceptance(t *testing.T) {
	const p, k = 0.7, 3
	for _, async := range []bool{false, true} {
		s := rules()
		s.MaxModelLen, s.NumGPUBlocks = 50_000, 20_000
		s.AsyncScheduling, s.NumSpeculativeTokens, s.AcceptanceRate, s.Seed = async, k, p, 5
		b := newBench(s)
		b.add(0, sim.Job{ID: 0, Prompt: 1, Output: 40_000})
		b.finish()
		st := b.Stats()
		n := float64(st.Drafts)
		near := func(what string, got, want, sd float64) {
			t.Helper()
			if math.Abs(got-want) > 4*sd/math.Sqrt(n) {
				t.Errorf("async %v: %s is %.4f, want %.4f", async, what, got, want)
			}
		}
		near("tokens a step", float64(st.GenerationTokens-1)/n, (1-math.Pow(p, k+1))/(1-p), 1.3)
		for i := range k {
			q := math.Pow(p, float64(i+1))
			near(fmt.Sprintf("acceptance at position %d", i), float64(st.AcceptedPerPosition[i])/n, q, math.Sqrt(q*(1-q)))
		}
		number(t, "draft tokens", int(st.DraftTokens), k*int(st.Drafts))
	}
}

// A request of which all but the last token is cached starts with as many rows as those
// that verify drafts, so that all are equally long; they are no drafts, and none is
// accepted (Scheduler.schedule, pad_spec_decode).
func TestSpeculativePadding(t *testing.T) {
	settings := func(change func(*Settings)) Settings {
		s := rules()
		s.MaxNumBatchedTokens, s.EnablePrefixCaching = 16, true
		s.Drafter, s.NumSpeculativeTokens, s.AcceptanceRate = sim.NGram, 3, 1
		change(&s)
		return s
	}
	run := func(change func(*Settings), second sim.Job) []string {
		b := newBench(settings(change))
		b.add(0, sim.Job{ID: 0, Prompt: 5, Output: 20, Content: shared})
		b.add(3*step/2, second)
		b.finish()
		return b.steps
	}
	late := sim.Job{ID: 1, Prompt: 5, Output: 2, Content: shared}
	none := func(*Settings) {}
	// Both had their prompts' first block cached; job 1 gets one token of its four rows,
	// and the last with its drafts.
	same(t, "padded", run(none, late)[:4], []string{"0:5", "0:4", "0:4 1:4", "0:4 1:4"})
	same(t, "two tokens to compute", run(none, sim.Job{ID: 1, Prompt: 6, Output: 2, Content: shared})[2], "0:4 1:2")
	same(t, "no room in the budget", run(func(s *Settings) { s.MaxNumBatchedTokens = 7 }, late)[:7],
		[]string{"0:5", "0:4", "0:4", "0:4", "0:4", "0:4", "1:4"})
	same(t, "drafts by batch size", run(func(s *Settings) { s.SpeculativeSchedule = ranges(1, 4, 3) }, late)[2], "0:4 1:1")
	same(t, "no room in the context", run(func(s *Settings) { s.MaxModelLen = 8 }, late)[2], "1:1")
	b := newBench(settings(none))
	b.add(0, sim.Job{ID: 0, Prompt: 5, Output: 1, Content: shared})
	b.add(2*step, sim.Job{ID: 2, Prompt: 40, Output: 1})
	b.add(5*step/2, late)
	b.finish()
	same(t, "beside a prompt that goes on", b.steps[:4], []string{"0:5", "2:16", "2:16", "2:8 1:1"})
}

// All drafts in one pass take a slot of the budget each but the first, for every request
// of a step (SpeculativeConfig.max_num_new_slots_for_drafting).
func TestDraftSlots(t *testing.T) {
	s := rules()
	s.MaxNumBatchedTokens, s.NumSpeculativeTokens, s.Drafter = 10, 3, sim.Parallel
	b := newBench(s)
	b.add(0, sim.Job{ID: 0, Prompt: 6, Output: 2})
	b.add(0, sim.Job{ID: 1, Prompt: 2, Output: 2})
	b.finish()
	// 10 − (6+2) leaves the second no token beside its slots; 10 − (4+2) leaves it two.
	same(t, "steps", b.steps, []string{"0:6", "0:4 1:2", "1:4"})
}

// How many are drafted follows the requests of the step before, whose end drafts them
// (num_speculative_tokens_per_batch_size).
func TestDraftsByBatchSize(t *testing.T) {
	schedule := ranges(1, 1, 3, 3, 4, 1)
	for _, async := range []bool{false, true} {
		s := rules()
		s.MaxNumBatchedTokens, s.AsyncScheduling = 20, async
		s.NumSpeculativeTokens, s.SpeculativeSchedule = 2, append(schedule, ranges(6, 8, 0)...)
		b := newBench(s)
		b.add(0, sim.Job{ID: 0, Prompt: 2, Output: 6})
		b.add(step/2, sim.Job{ID: 1, Prompt: 2, Output: 3})
		b.add(step/2, sim.Job{ID: 2, Prompt: 2, Output: 3})
		b.finish()
		if !async {
			// At most 2; three requests have 1 each from the step on that follows theirs.
			same(t, "steps", b.steps, []string{"0:2", "0:3 1:2 2:2", "0:2 1:2 2:2", "0:2 1:2 2:2", "0:2", "0:3"})
		}
		for n, want := range []int{0, 2, 2, 1, 1, 1, 0, 0, 0, 0} {
			if n > 0 {
				number(t, fmt.Sprintf("drafts of %d requests", n), s.DraftsFor(n), want)
			}
		}
	}
	for _, wrong := range [][]sim.DraftRange{ranges(2, 3, 1), ranges(1, 3, 1, 3, 4, 1), ranges(1, 0, 1), ranges(1, 2, -1)} {
		s := rules()
		if s.SpeculativeSchedule = wrong; s.Check() == nil {
			t.Errorf("%v is taken", wrong)
		}
	}
}

// N-grams have no drafter: none of its slots is reserved, and no block is computed
// again for its sake.
func TestNGramPrefixHit(t *testing.T) {
	s := rules()
	s.MaxNumBatchedTokens, s.EnablePrefixCaching, s.NumSpeculativeTokens, s.Drafter = 16, true, 2, sim.NGram
	b := newBench(s)
	b.add(0, sim.Job{ID: 0, Prompt: 12, Output: 1, Content: shared})
	b.add(10*step, sim.Job{ID: 1, Prompt: 13, Output: 1, Content: shared})
	b.finish()
	number(t, "cached tokens", b.trace(t, 1).Cached, 12)
}

// The last block that hits is computed again for a drafter's sake.
func TestSpeculativePrefixHit(t *testing.T) {
	s := rules()
	s.MaxNumBatchedTokens, s.EnablePrefixCaching, s.NumSpeculativeTokens = 16, true, 2
	b := newBench(s)
	b.add(0, sim.Job{ID: 0, Prompt: 12, Output: 1, Content: shared})
	b.add(10*step, sim.Job{ID: 1, Prompt: 13, Output: 1, Content: shared})
	b.finish()
	number(t, "cached tokens", b.trace(t, 1).Cached, 8)
}

func TestStreamInterval(t *testing.T) {
	s := rules()
	s.StreamInterval = 3
	b := newBench(s)
	b.add(0, sim.Job{ID: 0, Prompt: 4, Output: 9})
	b.finish()
	same(t, "chunks", b.emissions(0), "1+1 4+3 7+3 9+2length")
}

func TestFrontendTakesInTurn(t *testing.T) {
	s := rules()
	s.Frontend = sim.Frontend{PerRequest: 100, PerPromptToken: 10, PerStep: 30, PerChunk: 7}
	b := newBench(s)
	b.Engine.Add(0, sim.Job{ID: 0, Prompt: 4, Output: 1})
	b.Engine.Add(0, sim.Job{ID: 1, Prompt: 6, Output: 1})
	b.finish()
	same(t, "queued", []int64{b.trace(t, 0).Queued, b.trace(t, 1).Queued}, []int64{140, 300})
	// Job 0 is alone in step 1, from 140 on.
	same(t, "chunks of 0", b.emissions(0), "1.177+1length")
	same(t, "chunks of 1", b.emissions(1), "2.177+1length")
}

func TestFrontendLags(t *testing.T) {
	s := rules()
	s.Frontend.PerChunk = 2500
	b := newBench(s)
	b.add(0, sim.Job{ID: 0, Prompt: 4, Output: 5})
	b.finish()
	// The tokens of steps 2 and 3 join the chunk that is on its way.
	same(t, "chunks", b.emissions(0), "3.5+3 6.5+2length")
	if !slices.IsSortedFunc(b.out, func(a, b sim.Emission) int { return int(a.At - b.At) }) {
		t.Error("chunks out of order")
	}
}

// Where they share a core, the front end takes time from a step that runs, and its own
// work takes longer meanwhile.
func TestFrontendSharesACore(t *testing.T) {
	s := rules()
	s.Frontend = sim.Frontend{PerRequest: 100, PerChunk: 10, Contention: 0.5}
	b := newBench(s)
	b.add(0, sim.Job{ID: 0, Prompt: 4, Output: 2})
	b.add(200, sim.Job{ID: 1, Prompt: 4, Output: 1})
	b.finish()
	// Job 0 comes to an idle engine. Job 1 takes half as long again, and so much of step 1.
	same(t, "queued", []int64{b.trace(t, 0).Queued, b.trace(t, 1).Queued}, []int64{100, 350})
	// Step 1 is from 100 to 1150, step 2 to 2150. When job 0 ends, job 1 is not yet taken out.
	same(t, "chunks of 0", b.emissions(0), "1.165+1 2.165+1length")
	same(t, "chunks of 1", b.emissions(1), "2.18+1length")
}

func TestStepJitter(t *testing.T) {
	s := rules()
	s.StepJitter, s.Seed, s.MaxModelLen, s.NumGPUBlocks = 0.2, 3, 20_000, 6_000
	b := newBench(s)
	b.add(0, sim.Job{ID: 0, Prompt: 1, Output: 10_000})
	b.finish()
	var sum, squares float64
	for _, i := range b.infos {
		d := float64(i.End-i.Start) / float64(step)
		sum, squares = sum+d, squares+d*d
	}
	n := float64(len(b.infos))
	mean := sum / n
	if cv := math.Sqrt(squares/n-mean*mean) / mean; math.Abs(mean-1) > 0.01 || math.Abs(cv-0.2) > 0.01 {
		t.Errorf("mean %.3f and cv %.3f, want 1 and 0.2", mean, cv)
	}
}

// slowSteps runs one long answer and gives when each step started and how much
// longer it took than it should, and what came out.
func slowSteps(s Settings, every time.Duration, tokens int) (at, factor []float64, out []sim.Emission) {
	s.Seed, s.MaxModelLen, s.NumGPUBlocks = 5, tokens+100, tokens
	e := New(s, Flat{PerStep: every})
	e.Watch(func(i sim.StepInfo) {
		at = append(at, float64(i.Start))
		factor = append(factor, float64(i.End-i.Start)/float64(every))
	})
	e.Add(0, sim.Job{ID: 0, Prompt: 1, Output: tokens})
	for now := int64(0); now != math.MaxInt64; {
		st := e.Step(now)
		out, now = append(out, st.Out...), st.End
	}
	return at, factor, out
}

// Slow phases are a process in time: mean, spread and correlation are the same
// however many steps there are.
func TestSlowPhases(t *testing.T) {
	const cv, phase = 0.2, 10 * time.Millisecond
	for _, every := range []time.Duration{100 * time.Microsecond, 500 * time.Microsecond} {
		s := rules()
		s.SlowCV, s.SlowTime = cv, phase
		at, factor, _ := slowSteps(s, every, int(20*time.Second/every))
		// Sampled at equal times, as the steps would be if they took no time.
		var x []float64
		for i, k := 0, 0; k < len(at); i++ {
			for k < len(at) && at[k] <= float64(i)*float64(phase) {
				k++
			}
			x = append(x, factor[k-1])
		}
		mean, logs, n := 0.0, 0.0, float64(len(x))
		for _, f := range x {
			mean, logs = mean+f/n, logs+math.Log(f)/n
		}
		variance, lag := 0.0, 0.0
		for i, f := range x {
			variance += (math.Log(f) - logs) * (math.Log(f) - logs) / n
			if i > 0 {
				lag += (math.Log(f) - logs) * (math.Log(x[i-1]) - logs) / (n - 1)
			}
		}
		if math.Abs(mean-1) > 0.03 || math.Abs(math.Sqrt(variance)-cv) > 0.02 || math.Abs(lag/variance-1/math.E) > 0.06 {
			t.Errorf("steps of %v: mean %.3f, spread %.3f, correlation %.3f after one slow_time; want 1, %v, %.3f",
				every, mean, math.Sqrt(variance), lag/variance, cv, 1/math.E)
		}
	}
}

// Equal seeds are equal phases, and without them their length is nothing.
func TestSlowPhasesAreOfTheSeed(t *testing.T) {
	s := rules()
	s.StepJitter, s.SlowCV, s.SlowTime = 0.1, 0.3, time.Millisecond
	_, _, a := slowSteps(s, time.Millisecond, 500)
	_, _, b := slowSteps(s, time.Millisecond, 500)
	s.SlowCV = 0
	_, _, c := slowSteps(s, time.Millisecond, 500)
	s.SlowTime = 0
	_, _, d := slowSteps(s, time.Millisecond, 500)
	for i := range a {
		a[i].Trace, b[i].Trace, c[i].Trace, d[i].Trace = nil, nil, nil, nil
	}
	if !slices.Equal(a, b) || !slices.Equal(c, d) || slices.Equal(a, c) {
		t.Error("phases of one seed differ, or those of spread 0 do something")
	}
}

// A pace from outside is a factor on the steps that start then.
func TestPace(t *testing.T) {
	b := newBench(rules())
	b.Pace(func(at int64) float64 { return 1 + float64(at/(4*step)) })
	b.add(0, sim.Job{ID: 0, Prompt: 4, Output: 6})
	b.finish()
	var ends []int64
	for _, i := range b.infos {
		ends = append(ends, i.End/step)
	}
	if !slices.Equal(ends, []int64{1, 2, 3, 4, 6, 8}) {
		t.Errorf("steps end at %v µs", ends)
	}
}
