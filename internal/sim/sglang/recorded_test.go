package sglang

import (
	"bufio"
	"encoding/json"
	"flag"
	"math"
	"os"
	"reflect"
	"slices"
	"testing"

	"pitot/internal/sim"
)

// spelled is content of tokens that are numbers.
type spelled []int

func (s spelled) Tokens(from, to int) (h uint64) {
	for _, t := range s[from:to] {
		h = sim.Mix(h ^ uint64(t))
	}
	return h
}

// spell gives the tokens of [group, shared, own, length].
func spell(x []int) spelled {
	s := make(spelled, x[3])
	for k := range s {
		if s[k] = x[2]*10000 + k; k < x[1] {
			s[k] = x[0]*1000 + k
		}
	}
	return s
}

// What SGLang's own policy and adder did with the same queues (testdata/record.py): who was
// admitted, in which order, with how much of the prompt, who was left, and whether the batch was
// full.
func TestAdmissionsAsRecorded(t *testing.T) {
	file, err := os.Open("testdata/admissions.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	decisions, line := 0, 0
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line++
		var s struct {
			Policy                           string
			Pool, Used, Seats, Inputs, Chunk int
			Cached                           [][]int
			Ratio                            float64
			Mixed, Full                      bool
			Running, Waiting                 [][]any
			Ran                              [][2]int64
			Left                             []int64
			Chunked                          int64
		}
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		number := func(x any) int { return int(x.(float64)) }
		e := New(Settings{
			MaxTotalTokens: s.Pool, MaxRunningRequests: s.Seats, MaxPrefillTokens: s.Inputs, ChunkedPrefillSize: s.Chunk,
			SchedulePolicy: s.Policy, ScheduleConservativeness: 1, EnableMixedChunk: s.Mixed, ContextLength: 1 << 20,
		}, flat{})
		e.used, e.ratio = s.Used, s.Ratio
		for _, c := range s.Cached {
			e.tree.insert(spell(c), c[3])
		}
		job := func(id, prompt, most int, ignoreEOS bool) *request {
			r := &request{job: sim.Job{ID: int64(id), Prompt: prompt, Output: most}, limit: most}
			if !ignoreEOS {
				r.job.Limit = most
			}
			return r
		}
		for k, x := range s.Running {
			r := job(1000+k, 1, number(x[0]), x[2].(bool))
			r.output, r.row = number(x[1]), true
			e.rows++
			e.running = append(e.running, r)
		}
		for k, x := range s.Waiting {
			of := []int{number(x[0]), number(x[1]), number(x[2]), number(x[3])}
			r := job(k, of[3], number(x[4]), x[5].(bool))
			r.job.Content, r.queued, r.trace.Queued = spell(of), true, int64(k)
			e.waiting = append(e.waiting, r)
		}
		p := e.planPrefill()
		var ran [][2]int64
		if p != nil {
			for i, it := range p.items {
				if !it.decode {
					ran = append(ran, [2]int64{it.r.job.ID, int64(p.batch.Prefills[i].New)})
				}
			}
		}
		var left []int64
		for _, r := range e.waiting {
			left = append(left, r.job.ID)
		}
		chunked := int64(-1)
		if e.chunked != nil {
			chunked = e.chunked.job.ID
		}
		decisions += len(s.Ran) + 1
		if !slices.Equal(ran, s.Ran) || s.Left != nil && !slices.Equal(left, s.Left) || chunked != s.Chunked || e.full != s.Full {
			t.Fatalf("line %d, %s: admitted %v, left %v, chunked %d, full %v; SGLang %v, %v, %d, %v", line, s.Policy, ran, left, chunked, e.full, s.Ran, s.Left, s.Chunked, s.Full)
		}
	}
	if decisions < 1000 {
		t.Errorf("%d decisions", decisions)
	}
}

var decisions = flag.String("decisions", "testdata/decisions.jsonl", "what SGLang's own scheduler decided (testdata/trace.py)")

// turn is what was decided in a turn of SGLang's loop, and what there was behind it.
type turn struct {
	Ran         [][2]int64 // which requests, with how many tokens of their prompts
	Taken, Lost []int64
	Waiting     []int64
	Full        bool
	Chunked     int64
	Ratio       float64
	Free        int
	Evictable   int
	Held        int
}

// UnmarshalJSON reads a turn that says what is other than in the one before.
func (t *turn) UnmarshalJSON(b []byte) error {
	var s struct {
		Budget      [6]float64 `json:"b"`
		Ran         json.RawMessage
		Taken, Lost []int64
		Waiting     *[]int64
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	if string(s.Ran) == "0" {
		t.Ran = nil
	} else if s.Ran != nil {
		t.Ran = nil
		if err := json.Unmarshal(s.Ran, &t.Ran); err != nil {
			return err
		}
	}
	if s.Waiting != nil {
		t.Waiting = *s.Waiting
	}
	t.Taken, t.Lost = s.Taken, s.Lost
	t.Full, t.Chunked, t.Ratio = s.Budget[0] == 1, int64(s.Budget[1]), s.Budget[2]
	t.Free, t.Evictable, t.Held = int(s.Budget[3]), int(s.Budget[4]), int(s.Budget[5])
	return nil
}

// decided is what the engine decides in a turn, and what there is when the step that ends in it
// has ended.
func (e *Engine) decided(all []*request) turn {
	lives, ended := make([]int, len(all)), make([]bool, len(all))
	for i, r := range all {
		lives[i], ended[i] = r.life, r.finished
	}
	p := e.runTurn()
	var t turn
	for i, r := range all {
		if r.finished && !ended[i] {
			t.Lost = append(t.Lost, int64(i))
		}
	}
	for _, r := range e.waiting {
		if r.life > lives[r.job.ID] {
			t.Taken = append(t.Taken, r.job.ID)
		}
	}
	if p != nil {
		prompts := p.batch.Prefills
		for _, it := range p.items {
			tokens := 0
			if !it.decode {
				tokens, prompts = prompts[0].New, prompts[1:]
			}
			t.Ran = append(t.Ran, [2]int64{it.r.job.ID, int64(tokens)})
		}
		e.flight = append(e.flight, p)
	}
	if len(e.flight) > 1 || len(e.flight) > 0 && (p == nil || e.set.DisableOverlapSchedule) {
		q := e.flight[0]
		e.flight = e.flight[1:]
		e.process(q)
	}
	t.Waiting, t.Chunked = []int64{}, -1
	for _, r := range e.waiting {
		t.Waiting = append(t.Waiting, r.job.ID)
	}
	if e.chunked != nil {
		t.Chunked = e.chunked.job.ID
	}
	t.Full, t.Ratio, t.Free, t.Evictable, t.Held = e.full, math.Round(e.ratio*1e9)/1e9, e.availableTokens(), e.tree.evictable(), e.tree.held
	return t
}

// What SGLang's own scheduler did turn by turn with loads that are more than the KV cache holds:
// what each step had, who was taken back and lost, who waits in which order, what of answers is
// promised, and what the cache holds.
func TestDecisionsAsRecorded(t *testing.T) {
	file, err := os.Open(*decisions)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<22)
	line, turns, steps, taken := 0, 0, 0, 0
	for lines.Scan() {
		line++
		var s struct {
			Policy                              string
			Conservativeness                    float64
			Pool, Context, Seats, Inputs, Chunk int
			Mixed, Overlap, Disabled            bool
			Load                                [][]any
			Turns                               []json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatalf("line %d: %v", line, err)
		}
		number := func(x any) int { return int(x.(float64)) }
		e := New(Settings{
			MaxRunningRequests: s.Seats, MaxTotalTokens: s.Pool, ContextLength: s.Context, ChunkedPrefillSize: s.Chunk, MaxPrefillTokens: s.Inputs,
			SchedulePolicy: s.Policy, ScheduleConservativeness: s.Conservativeness, EnableMixedChunk: s.Mixed, DisableOverlapSchedule: !s.Overlap,
			DisableRadixCache: s.Disabled, StreamInterval: 1,
		}, flat{})
		all := make([]*request, len(s.Load))
		for i, x := range s.Load {
			prompt, most, output := number(x[3]), number(x[4]), number(x[5])
			all[i] = &request{job: sim.Job{ID: int64(i), Prompt: prompt, Output: output, Content: spell([]int{number(x[1]), number(x[2]), 100 + i, prompt + most})}, limit: most}
			if !x[6].(bool) {
				all[i].job.Limit = most
			}
		}
		want := turn{Waiting: []int64{}}
		for n, raw := range s.Turns {
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatalf("line %d: %v", line, err)
			}
			for i, x := range s.Load {
				if number(x[0]) == n+1 {
					e.enqueueWaiting(all[i])
				}
			}
			got := e.decided(all)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("line %d (%s, overlap %v, mixed %v, no cache %v), turn %d:\n%+v\nSGLang\n%+v", line, s.Policy, s.Overlap, s.Mixed, s.Disabled, n+1, got, want)
			}
			if turns, taken = turns+1, taken+len(got.Taken); len(got.Ran) > 0 {
				steps++
			}
		}
	}
	t.Logf("%d loads, %d turns, %d steps, %d requests taken back", line, turns, steps, taken)
	if steps < 1000 || taken < 40 {
		t.Errorf("%d steps, %d taken back", steps, taken)
	}
}
