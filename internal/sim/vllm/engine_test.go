package vllm

import (
	"testing"
	"time"

	"pitot/internal/sim"
)

func small() Settings {
	s := Default()
	s.MaxNumSeqs, s.MaxNumBatchedTokens, s.MaxModelLen, s.NumGPUBlocks = 256, 2048, 4096, 10_000
	return s
}

// BenchmarkDecode256 is one token of 256 long answers; those that end are
// replaced, so that the cache never runs out of blocks.
func BenchmarkDecode256(b *testing.B) {
	s := small()
	s.MaxModelLen, s.NumGPUBlocks = 1<<14, 1<<17
	e := New(s, Flat{PerStep: 10 * time.Millisecond})
	now, tokens, id := int64(0), 0, int64(0)
	add := func() {
		e.Add(now, sim.Job{ID: id, Prompt: 8, Output: 4096})
		id++
	}
	for range 256 {
		add()
	}
	b.ResetTimer()
	for tokens < b.N {
		st := e.Step(now)
		now = st.End
		for _, o := range st.Out {
			tokens += o.Tokens
			if o.Finish != "" {
				add()
			}
		}
	}
	b.ReportMetric(float64(tokens)/b.Elapsed().Seconds()/1e6, "Mtok/s")
}

func BenchmarkShort256(b *testing.B) {
	e := New(small(), Flat{PerStep: 10 * time.Millisecond})
	now, tokens, id := int64(0), 0, int64(0)
	for range 256 {
		e.Add(0, sim.Job{ID: id, Prompt: 200, Output: 128})
		id++
	}
	b.ResetTimer()
	for tokens < b.N {
		st := e.Step(now)
		now = st.End
		for _, o := range st.Out {
			tokens += o.Tokens
			if o.Finish != "" {
				e.Add(now, sim.Job{ID: id, Prompt: 200, Output: 128})
				id++
			}
		}
	}
	b.ReportMetric(float64(tokens)/b.Elapsed().Seconds()/1e6, "Mtok/s")
}
