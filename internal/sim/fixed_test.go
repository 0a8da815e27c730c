package sim

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
)

const ms = int64(time.Millisecond)

// arrivalAt is a job of a test and when it comes.
type arrivalAt struct {
	at int64
	Job
}

// play runs an engine in virtual time until nothing is left to happen, and
// gives what it emitted. late is added to every time at which the engine
// asked to be called.
func play(t interface{ Fatalf(string, ...any) }, e Engine, jobs []arrivalAt, late int64) []Emission {
	var out []Emission
	now := int64(0)
	for range 10_000_000 {
		for len(jobs) > 0 && jobs[0].at <= now {
			e.Add(now, jobs[0].Job)
			jobs = jobs[1:]
		}
		s := e.Step(now)
		for _, em := range s.Out {
			if em.At > now {
				t.Fatalf("emission due at %d came at %d", em.At, now)
			}
		}
		out = append(out, s.Out...)
		if !s.Idle {
			now = max(now, s.End)
			continue
		}
		next := s.End
		if next < math.MaxInt64 {
			next += late
		}
		if len(jobs) > 0 {
			next = min(next, jobs[0].at)
		}
		if next == math.MaxInt64 {
			return out
		}
		now = max(now, next)
	}
	t.Fatalf("the engine never came to rest")
	return nil
}

func TestFixedTimes(t *testing.T) {
	e := NewFixed(FixedConfig{TTFT: 50 * time.Millisecond, ITL: 10 * time.Millisecond, RoleChunk: true})
	got := play(t, e, []arrivalAt{{7 * ms, Job{ID: 3, Prompt: 9, Output: 3}}}, 0)
	want := []Emission{
		{ID: 3, At: 7 * ms, Role: true},
		{ID: 3, At: 57 * ms, Tokens: 1},
		{ID: 3, At: 67 * ms, Tokens: 1},
		{ID: 3, At: 77 * ms, Tokens: 1, Finish: "length"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestFixedChunks(t *testing.T) {
	e := NewFixed(FixedConfig{TTFT: time.Millisecond, ITL: time.Millisecond, TokensPerChunk: 4})
	var tokens []int
	for _, em := range play(t, e, []arrivalAt{{0, Job{ID: 1, Output: 10}}}, 0) {
		tokens = append(tokens, em.Tokens)
	}
	if !slices.Equal(tokens, []int{4, 4, 2}) {
		t.Errorf("tokens per emission %v", tokens)
	}
}

// A caller that always looks late sees the same due times: nothing drifts.
func TestFixedThousandJobsWithoutDrift(t *testing.T) {
	cfg := FixedConfig{TTFT: 50 * time.Millisecond, ITL: 10 * time.Millisecond}
	var jobs []arrivalAt
	for i := range int64(1000) {
		jobs = append(jobs, arrivalAt{i * 100_000, Job{ID: i, Output: 100}})
	}
	for _, late := range []int64{0, 3*ms + 7} {
		got := play(t, NewFixed(cfg), jobs, late)
		if len(got) != 100_000 {
			t.Fatalf("late %d: %d emissions, want 100000", late, len(got))
		}
		seen := make([]int64, len(jobs))
		for _, em := range got {
			k := seen[em.ID]
			seen[em.ID]++
			// a caller that is late may also add late, by less than one call
			due := jobs[em.ID].at + 50*ms + k*10*ms
			if em.At < due || em.At > due+late {
				t.Fatalf("late %d: job %d emission %d at %d, due %d", late, em.ID, k, em.At, due)
			}
			if (em.Finish == "length") != (k == 99) {
				t.Fatalf("job %d emission %d has finish %q", em.ID, k, em.Finish)
			}
		}
	}
}

func TestFixedSlotsAreFIFO(t *testing.T) {
	e := NewFixed(FixedConfig{TTFT: 10 * time.Millisecond, ITL: time.Millisecond, Slots: 1})
	jobs := []arrivalAt{{0, Job{ID: 9, Output: 2}}, {ms, Job{ID: 5, Output: 2}}, {2 * ms, Job{ID: 7, Output: 1}}}
	got := play(t, e, jobs, 0)
	want := []Emission{
		{ID: 9, At: 10 * ms, Tokens: 1}, {ID: 9, At: 11 * ms, Tokens: 1, Finish: "length"},
		{ID: 5, At: 21 * ms, Tokens: 1}, {ID: 5, At: 22 * ms, Tokens: 1, Finish: "length"},
		{ID: 7, At: 32 * ms, Tokens: 1, Finish: "length"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// Who waits for a slot does not run.
func TestFixedQueue(t *testing.T) {
	f := NewFixed(FixedConfig{TTFT: 10, ITL: 10, Slots: 2})
	for i := range 5 {
		f.Add(0, Job{ID: int64(i), Output: 3})
	}
	f.Abort(3) // it waits
	if running, waiting := f.Queue(); running != 2 || waiting != 2 {
		t.Errorf("%d run, %d wait", running, waiting)
	}
	for now := int64(0); now < 1000; now += 10 {
		f.Step(now)
	}
	if running, waiting := f.Queue(); running != 0 || waiting != 0 {
		t.Errorf("at the end %d run, %d wait", running, waiting)
	}
}

func TestFixedAbort(t *testing.T) {
	e := NewFixed(FixedConfig{TTFT: 10 * time.Millisecond, ITL: time.Millisecond, Slots: 1})
	for id := range int64(3) {
		e.Add(0, Job{ID: id, Output: 5})
	}
	e.Abort(1) // waiting
	e.Abort(0) // running
	e.Abort(42)
	if s := e.Step(4 * ms); !s.Idle || s.End != 14*ms {
		t.Fatalf("job 2 should start at 4 ms: %+v", s)
	}
	s := e.Step(14 * ms)
	if len(s.Out) != 1 || s.Out[0].ID != 2 {
		t.Errorf("got %v", s.Out)
	}
	e.Abort(2)
	if s := e.Step(15 * ms); !s.Idle || s.End != math.MaxInt64 {
		t.Errorf("an empty engine says %+v", s)
	}
}

// The jitter has the mean and the CV it was asked for and does not depend on
// who else is there.
func TestFixedJitter(t *testing.T) {
	cfg := FixedConfig{TTFT: 20 * time.Millisecond, ITL: 10 * time.Millisecond, JitterCV: 0.3, Seed: 1}
	alone := play(t, NewFixed(cfg), []arrivalAt{{0, Job{ID: 1, Output: 20_000}}}, 0)
	crowd := play(t, NewFixed(cfg), []arrivalAt{{0, Job{ID: 0, Output: 50}}, {0, Job{ID: 1, Output: 20_000}}}, 0)
	crowd = slices.DeleteFunc(crowd, func(e Emission) bool { return e.ID == 0 })
	if !slices.Equal(alone, crowd) {
		t.Error("another job changed the jitter of job 1")
	}
	var sum, sq float64
	for i := 1; i < len(alone); i++ {
		g := float64(alone[i].At - alone[i-1].At)
		sum, sq = sum+g, sq+g*g
	}
	n := float64(len(alone) - 1)
	mean := sum / n
	cv := math.Sqrt(sq/n-mean*mean) / mean
	if math.Abs(mean/1e7-1) > 0.01 || math.Abs(cv-0.3) > 0.01 {
		t.Errorf("gaps have mean %.0f ns and CV %.3f", mean, cv)
	}
}

// Whatever comes, every job gets its tokens, in order of time, never more than
// Slots at once, and the finish exactly once.
func TestFixedProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := FixedConfig{
			TTFT:           time.Duration(rapid.Int64Range(0, 100*ms).Draw(t, "ttft")),
			ITL:            time.Duration(rapid.Int64Range(0, 20*ms).Draw(t, "itl")),
			JitterCV:       rapid.SampledFrom([]float64{0, 0.2, 1}).Draw(t, "cv"),
			Slots:          rapid.IntRange(0, 4).Draw(t, "slots"),
			TokensPerChunk: rapid.IntRange(0, 5).Draw(t, "k"),
			RoleChunk:      rapid.Bool().Draw(t, "role"),
			Seed:           rapid.Uint64().Draw(t, "seed"),
		}
		gaps := rapid.SliceOfN(rapid.Int64Range(0, 30*ms), 1, 20).Draw(t, "gaps")
		var jobs []arrivalAt
		at := int64(0)
		for i, g := range gaps {
			at += g
			jobs = append(jobs, arrivalAt{at, Job{ID: int64(i), Output: rapid.IntRange(1, 30).Draw(t, "output")}})
		}
		tokens, done := make([]int, len(jobs)), make([]bool, len(jobs))
		last := int64(0)
		for _, em := range play(t, NewFixed(cfg), jobs, 0) {
			if em.At < last {
				t.Fatalf("emission at %d after one at %d", em.At, last)
			}
			last = em.At
			if done[em.ID] {
				t.Fatalf("job %d emits after its end", em.ID)
			}
			tokens[em.ID] += em.Tokens
			done[em.ID] = em.Finish != ""
		}
		for i, j := range jobs {
			if tokens[i] != j.Output || !done[i] {
				t.Fatalf("job %d got %d of %d tokens, done %v", i, tokens[i], j.Output, done[i])
			}
		}
	})
}

func BenchmarkFixedEmission(b *testing.B) {
	e := NewFixed(FixedConfig{TTFT: time.Millisecond, ITL: 10 * time.Millisecond})
	for id := range int64(1000) {
		e.Add(id*10_000, Job{ID: id, Output: math.MaxInt})
	}
	now, n := int64(0), 0
	for b.Loop() {
		if n > 0 {
			n--
			continue
		}
		s := e.Step(now)
		now, n = max(now, s.End), max(len(s.Out)-1, 0)
	}
}

// An answer ends by itself below its limit, and at it by length.
func TestFixedLimit(t *testing.T) {
	f := NewFixed(FixedConfig{TTFT: time.Millisecond, ITL: time.Millisecond})
	jobs := []Job{{ID: 1, Output: 5}, {ID: 2, Output: 5, Limit: 9}, {ID: 3, Output: 5, Limit: 5}, {ID: 4, Output: 5, Limit: 2}}
	for _, j := range jobs {
		f.Add(0, j)
	}
	tokens, finish := map[int64]int{}, map[int64]string{}
	for _, e := range f.Step(int64(time.Second)).Out {
		tokens[e.ID] += e.Tokens
		finish[e.ID] += e.Finish
	}
	want := map[int64]string{1: "length", 2: "stop", 3: "length", 4: "length"}
	if !maps.Equal(finish, want) || !maps.Equal(tokens, map[int64]int{1: 5, 2: 5, 3: 5, 4: 2}) {
		t.Errorf("%v, %v", finish, tokens)
	}
}
