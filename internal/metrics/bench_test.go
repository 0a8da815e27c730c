package metrics

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"pitot/internal/results/metric"
	"pitot/internal/results/record"
)

// load is a synthetic point: streams of 100 chunks, 1,000 at a time.
func load(f *Fold, requests int, frame *record.Frame, rng *rand.Rand) {
	const flying, length = 1000, 100
	for base := 0; base < requests; base += flying {
		for j := range length {
			frame.Chunks, frame.Rows = frame.Chunks[:0], frame.Rows[:0]
			for i := range flying {
				at := int64(base+i)*ms + 50*ms + int64(j)*10*ms + int64(rng.Uint32()>>12)
				frame.Chunks = append(frame.Chunks, record.Chunk{Request: int64(base + i), T: at, Earliest: at, Tokens: 1})
			}
			f.Add(*frame)
		}
		frame.Chunks = frame.Chunks[:0]
		for i := range flying {
			r := blankRow(int64(base+i), int64(base+i))
			r.FirstToken, r.FirstAnswer, r.LastToken = r.Due+50*ms, r.Due+50*ms, r.Due+1050*ms
			r.Done, r.CompletionTokens, r.PromptTokens, r.Chunks = r.LastToken, length, 1000, length
			frame.Rows = append(frame.Rows, r)
		}
		f.Add(*frame)
	}
}

// What a chunk costs: added, pooled, sorted and summarised, with the memory
// that stays per chunk.
func BenchmarkFold(b *testing.B) {
	const requests = 100_000
	var frame record.Frame
	for b.Loop() {
		rng := rand.New(rand.NewPCG(1, 1))
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		f := NewFold(Setup{T1: requests * ms, Stamps: "kernel"})
		load(f, requests, &frame, rng)
		if p := f.Point(); p.Metrics.SummaryOf(metric.ICL).N != requests*99 {
			b.Fatal(p.Metrics.SummaryOf(metric.ICL).N)
		}
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapSys>>20), "MB-heap")
		b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/(requests*100), "B/chunk")
		runtime.KeepAlive(f)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(requests*100), "ns/chunk")
}

// Chunks of requests under way take no allocation of their own.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	f := NewFold(window(1_000_000))
	var frame record.Frame
	rng := rand.New(rand.NewPCG(1, 1))
	load(f, 3_000, &frame, rng)
	var chunks []record.Chunk
	for j := range int64(100) {
		chunks = append(chunks, record.Chunk{Request: 1 << 20, T: j * 10 * ms, Earliest: j * 10 * ms, Tokens: 1})
	}
	row := blankRow(1<<20, 1)
	row.Outcome = record.Failed // its gaps are not pooled, so nothing grows
	row.Due = -1                // nor is it in the cohort
	f.Add(record.Frame{Chunks: chunks, Rows: []record.Row{row}})
	allocs := testing.AllocsPerRun(100, func() {
		row.ID++
		for i := range chunks {
			chunks[i].Request = row.ID
		}
		f.Add(record.Frame{Chunks: chunks, Rows: []record.Row{row}})
	})
	if allocs > 1 { // the frame's one-row slice
		t.Errorf("%v allocations for 100 chunks", allocs)
	}
}
