package sglang

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"pitot/internal/twin"
)

// spelled is content of tokens that are numbers.
type spelled []int

func (s spelled) Tokens(from, to int) (h uint64) {
	for _, t := range s[from:to] {
		h = twin.Mix(h ^ uint64(t))
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
			r := &request{job: twin.Job{ID: int64(id), Prompt: prompt, Output: most}, limit: most}
			if !ignoreEOS {
				r.job.Limit = most
			}
			return r
		}
		for k, x := range s.Running {
			r := job(1000+k, 1, number(x[0]), x[2].(bool))
			r.output = number(x[1])
			e.running = append(e.running, r)
		}
		for k, x := range s.Waiting {
			of := []int{number(x[0]), number(x[1]), number(x[2]), number(x[3])}
			r := job(k, of[3], number(x[4]), x[5].(bool))
			r.job.Content, r.queued, r.trace.Queued = spell(of), true, int64(k)
			e.waiting = append(e.waiting, r)
		}
		p := e.prefill()
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
