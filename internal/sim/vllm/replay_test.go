package vllm

import (
	"cmp"
	"encoding/json"
	"math"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"pitot/internal/sim"
)

// recording is one line of testdata/scheduler.jsonl: a random trace, and what
// vLLM's own scheduler did with it. testdata/README.md says how it was made.
type recording struct {
	Settings struct {
		Name                      string  `json:"name"`
		MaxNumSeqs                int     `json:"max_num_seqs"`
		MaxNumBatchedTokens       int     `json:"max_num_batched_tokens"`
		MaxModelLen               int     `json:"max_model_len"`
		BlockSize                 int     `json:"block_size"`
		NumGPUBlocks              int     `json:"num_gpu_blocks"`
		EnablePrefixCaching       bool    `json:"enable_prefix_caching"`
		EnableChunkedPrefill      bool    `json:"enable_chunked_prefill"`
		LongPrefillTokenThreshold int     `json:"long_prefill_token_threshold"`
		SchedulerReserveFullISL   bool    `json:"scheduler_reserve_full_isl"`
		Watermark                 float64 `json:"watermark"`
		Priority                  bool    `json:"priority"`
		AsyncScheduling           bool    `json:"async_scheduling"`
		NumSpeculativeTokens      int     `json:"num_speculative_tokens"`
		AcceptanceRate            float64 `json:"acceptance_rate"`
		Seed                      uint64  `json:"seed"`
		PerStep                   int64   `json:"per_step"`
		PerToken                  int64   `json:"per_token"`
	} `json:"settings"`
	Jobs []struct {
		ID       int64 `json:"id"`
		At       int64 `json:"at"`
		Prompt   int   `json:"prompt"`
		Output   int   `json:"output"`
		Limit    int   `json:"limit"`
		Priority int   `json:"priority"`
		Group    int   `json:"group"`  // whose tokens its first ones are
		Shared   int   `json:"shared"` // how many
		Abort    int64 `json:"abort"`  // when its client goes away, 0 never
	} `json:"jobs"`
	Steps []recordedStep `json:"steps"`
	Out   []recordedOut  `json:"out"`
}

// recordedStep is a step when it has been planned. The counts are all so far.
type recordedStep struct {
	End                        int64
	Free, Running, Waiting     int // blocks, requests
	Preemptions, Queries, Hits int64
	Batch                      []int64 // id, tokens, id, tokens, ...
}

func (s *recordedStep) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&s.End, &s.Free, &s.Running, &s.Waiting, &s.Preemptions, &s.Queries, &s.Hits, &s.Batch})
}

// recordedOut is what one job was given.
type recordedOut struct {
	ID, First, Last int64
	Tokens, Chunks  int
	Finish          string
}

func (o *recordedOut) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&o.ID, &o.First, &o.Last, &o.Tokens, &o.Chunks, &o.Finish})
}

func (r *recording) settings() Settings {
	c := r.Settings
	return Settings{
		sim.Settings{
			MaxNumSeqs: c.MaxNumSeqs, MaxNumBatchedTokens: c.MaxNumBatchedTokens, MaxModelLen: c.MaxModelLen, BlockSize: c.BlockSize, NumGPUBlocks: c.NumGPUBlocks,
			EnablePrefixCaching: c.EnablePrefixCaching, AsyncScheduling: c.AsyncScheduling, NumSpeculativeTokens: c.NumSpeculativeTokens, AcceptanceRate: c.AcceptanceRate, Seed: c.Seed,
			StreamInterval: 1,
		},
		Own{
			EnableChunkedPrefill: c.EnableChunkedPrefill, LongPrefillTokenThreshold: c.LongPrefillTokenThreshold, SchedulerReserveFullISL: c.SchedulerReserveFullISL,
			Watermark: c.Watermark, Priority: c.Priority,
		},
	}
}

// replay gives the engine a recorded trace and tells what it did.
func (r *recording) replay() (steps []recordedStep, out []recordedOut) {
	e := New(r.settings(), Flat{time.Duration(r.Settings.PerStep), time.Duration(r.Settings.PerToken)})
	e.Watch(func(s sim.StepInfo) {
		step := recordedStep{
			End: s.End, Free: e.pool.free, Running: s.Running, Waiting: s.Waiting,
			Preemptions: e.stats.Preemptions, Queries: e.stats.PrefixQueries, Hits: e.stats.PrefixHits,
		}
		for _, it := range e.flight[len(e.flight)-1].items {
			step.Batch = append(step.Batch, it.r.job.ID, int64(it.tokens))
		}
		steps = append(steps, step)
	})
	type event struct {
		at  int64
		add *sim.Job
		id  int64
	}
	var events []event
	for _, j := range r.Jobs {
		events = append(events, event{at: j.At, id: j.ID, add: &sim.Job{
			ID: j.ID, Prompt: j.Prompt, Output: j.Output, Limit: j.Limit, Priority: j.Priority,
			Content: prefix{whole: 1000 + uint64(j.ID), group: uint64(j.Group), shared: j.Shared},
		}})
		if j.Abort > 0 {
			events = append(events, event{at: j.Abort, id: j.ID})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	now := int64(0)
	for {
		for len(events) > 0 && events[0].at <= now {
			if ev := events[0]; ev.add != nil {
				e.Add(now, *ev.add)
			} else {
				e.Abort(ev.id)
			}
			events = events[1:]
		}
		s := e.Step(now)
		for _, o := range s.Out {
			i, known := slices.BinarySearchFunc(out, o.ID, func(r recordedOut, id int64) int { return cmp.Compare(r.ID, id) })
			if !known {
				out = slices.Insert(out, i, recordedOut{ID: o.ID, First: o.At})
			}
			out[i].Last, out[i].Finish = o.At, o.Finish
			out[i].Tokens += o.Tokens
			out[i].Chunks++
		}
		next := s.End
		if len(events) > 0 {
			next = min(next, events[0].at)
		}
		if next == math.MaxInt64 {
			return steps, out
		}
		now = next
	}
}

// prefix is a content whose first tokens are those of a group.
type prefix struct {
	whole, group uint64
	shared       int
}

func (p prefix) Tokens(from, to int) uint64 {
	h := uint64(0)
	for i := from; i < to; i++ {
		who := p.whole
		if i < p.shared {
			who = p.group
		}
		h = sim.Mix(h ^ sim.Mix(who*1_000_003+uint64(i)))
	}
	return h
}

// TestReplay lays every step beside what vLLM's scheduler planned for the same
// trace: which requests, how many tokens each, when, free blocks, queue
// lengths, preemptions and prefix hits; and what each job was given.
func TestReplay(t *testing.T) {
	f, err := os.Open("testdata/scheduler.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	traces := 0
	for in := json.NewDecoder(f); in.More(); traces++ {
		var r recording
		if err := in.Decode(&r); err != nil {
			t.Fatal(err)
		}
		t.Run(r.Settings.Name, func(t *testing.T) {
			s := r.settings()
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
			steps, out := r.replay()
			for i := range min(len(steps), len(r.Steps)) {
				if !reflect.DeepEqual(steps[i], r.Steps[i]) {
					t.Fatalf("step %d:\n got %+v\nwant %+v\nafter %+v", i+1, steps[i], r.Steps[i], r.Steps[max(0, i-2):i])
				}
			}
			number(t, "steps", len(steps), len(r.Steps))
			if !reflect.DeepEqual(out, r.Out) {
				t.Fatalf("given out:\n got %+v\nwant %+v", out, r.Out)
			}
		})
	}
	number(t, "traces", traces, 31)
}
