package choose

import (
	"context"
	"slices"
	"testing"

	"pitot/internal/loadgen"
	"pitot/internal/results/record"
	"pitot/internal/sim"
	"pitot/internal/sim/deploy"
	"pitot/internal/workload"
	"pitot/internal/workload/arrival"
)

// TestBrief: an engine that hands on first and last tokens alone gives each request the
// same times, whatever its scheduler, with memory that runs out, drafts, a front end that
// lags behind, prompts that are shared, engines that die.
func TestBrief(t *testing.T) {
	for _, c := range []struct {
		spec string
		rate float64
	}{
		{"llama-3.1-8b@h100", 20},
		{"llama-3.1-8b@l40s?async_scheduling=false&num_gpu_blocks_override=900", 12},
		{"llama-3.1-8b@h100?num_speculative_tokens=3&acceptance_rate=0.6&speculative_method=ngram", 15},
		{"llama-3.1-8b@h100?frontend_chunk=700us&frontend_contention=0.3&frontend_jitter=0.4&step_jitter=0.2", 20},
		{"llama-3.1-8b@h100?stream_interval=5", 20},
		{"llama-3.1-8b@l40s?engine=sglang&max_total_tokens=12000", 12},
		{"llama-3.1-8b@4xl40s?data_parallel_size=4", 30},
		{"llama-3.1-8b@4xl40s?data_parallel_size=4&prefill=2&decode=2", 10},
		{"llama-3.1-8b@3xl40s?data_parallel_size=3&router=cache_aware&replica_events=3s:die:1,6s:add:1", 15},
		{"qwen3-30b-a3b@4xh100?data_parallel_size=4&enable_expert_parallel=true", 20},
	} {
		t.Run(c.spec, func(t *testing.T) {
			d, err := deploy.Parse(c.spec)
			if err != nil {
				t.Fatal(err)
			}
			serve := func(brief bool) (rows []record.Row) {
				p, err := arrival.NewPoisson(c.rate, 1)
				if err != nil {
					t.Fatal(err)
				}
				e := d.Engine(1)
				if brief {
					e.Brief()
				}
				core := loadgen.NewCore(loadgen.Config{Arrivals: p, Requests: 250, Total: 250})
				loadgen.Run(context.Background(), core, loadgen.NewVirtual(loadgen.VirtualConfig{Engine: e, Source: mixed{}, Sink: (*kept)(&rows), Content: shared}))
				for i := range rows {
					r := &rows[i]
					if r.Chunks, r.Arrivals = 0, 0; r.Outcome == record.Failed { // an engine died: how far it came is not told
						r.LastToken = 0
					}
				}
				return rows
			}
			whole, brief := serve(false), serve(true)
			if len(whole) != 250 || !slices.Equal(whole, brief) {
				t.Errorf("%d rows and %d in brief, or they differ", len(whole), len(brief))
			}
		})
	}
}

// mixed is requests of many lengths.
type mixed struct{}

func (mixed) At(i int64) (workload.Request, error) {
	return workload.Request{ID: i, Input: 200 + int(i*7919%1800), Output: 1 + int(i*104729%300), Exact: true, Session: workload.Unknown}, nil
}

// shared has half of them begin alike.
func shared(i int64, _ *workload.Request, _ int) sim.Content {
	if i%2 == 0 {
		return nil
	}
	return alikeBegun(i)
}

type alikeBegun int64

func (a alikeBegun) Tokens(from, to int) uint64 {
	if to <= 400 {
		return uint64(from) + 1
	}
	return uint64(a)<<32 + uint64(from) + 1
}

type kept []record.Row

func (*kept) Chunk(record.Chunk)   {}
func (k *kept) Done(r *record.Row) { *k = append(*k, *r) }
