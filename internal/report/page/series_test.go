package page

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitot/internal/report/reporttest"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/spill"
	"pitot/internal/stats"
)

// gathered makes the series of one point from frames.
func gathered(p *result.Point, size detail, frames ...record.Frame) *Series {
	g := newGather(p, size, nil)
	for i := range frames {
		g.addFrame(&frames[i])
	}
	return g.buildSeries()
}

// served is a frame of n requests, evenly due, of so many chunks each.
func served(n, chunks int, second func(i int) (due, ttft, gap int64)) record.Frame {
	var f record.Frame
	for i := range n {
		due, ttft, gap := second(i)
		r := record.BlankRow()
		r.ID, r.Due, r.Sent, r.Stream = int64(i), due, due+1000, true
		r.CompletionTokens, r.OutputPlanned, r.InputPlanned, r.PromptTokens = int32(chunks), int32(chunks), 100, 100
		r.FirstToken = due + ttft
		for k := range chunks {
			f.Chunks = append(f.Chunks, record.Chunk{Request: r.ID, T: due + ttft + int64(k)*gap, Tokens: 1})
		}
		r.LastToken = due + ttft + int64(chunks-1)*gap
		r.Done = r.LastToken + 1000
		r.Finish = "length"
		f.Rows = append(f.Rows, r)
	}
	return f
}

func window(warmup, length, drain float64) *result.Point {
	return &result.Point{Load: result.Load{Loop: "open"}, Seconds: result.Seconds{Warmup: warmup, Window: length, Drain: drain}}
}

// What happened is counted once, and nothing of it is lost in bins.
func TestSeriesCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "requests")
		chunks := rapid.IntRange(1, 20).Draw(t, "chunks")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		var inFlight int64
		f := served(n, chunks, func(int) (int64, int64, int64) {
			due, ttft, gap := rng.Int64N(8e9), rng.Int64N(1e9), rng.Int64N(5e7)
			inFlight += ttft + int64(chunks-1)*gap + 1000
			return due, ttft, gap
		})
		s := gathered(window(0, 8, 3), detailOf(1), f)
		sum := func(rates []float64) (total float64) {
			for i, r := range rates {
				total += r * math.Min(s.Bin, s.End-float64(i)*s.Bin)
			}
			return total
		}
		near := func(name string, got, want float64) {
			if math.Abs(got-want) > .01*want+.5 {
				t.Fatalf("%s: %v, want %v", name, got, want)
			}
		}
		near("due", sum(s.Due), float64(n))
		near("served", sum(s.Served), float64(n))
		near("tokens", sum(s.Tokens), float64(n*chunks))
		near("in flight", sum(s.InFlight), float64(inFlight)/1e9)
		var cells int64
		for _, c := range s.Heat.Cells {
			cells += c
		}
		if cells != int64(n*chunks) {
			t.Fatalf("%d tokens in the heat, want %d", cells, n*chunks)
		}
		if got := s.Spread["ttft_ms"]; got.N != int64(n) || got.Share[len(got.Share)-1] != 1 {
			t.Fatalf("TTFT: %+v", got)
		}
	})
}

// Of very many dots those are drawn that would be, had all been kept.
func TestDotsAreThinnedAsTheyCome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		most := rapid.IntRange(4, 40).Draw(t, "most")
		some, all := dots{most: most}, dots{most: most}
		for i := range rapid.Int64Range(0, 3000).Draw(t, "n") {
			x := dot{i * 1e6, rng.Int64N(1e6) * 1e3}
			some.addDot(x)
			all.list, all.of = append(all.list, x), all.of+1
		}
		if d := cmp.Diff(all.thin(), some.thin()); d != "" {
			t.Fatal(d)
		}
		if len(some.list) > 8*most {
			t.Fatalf("%d dots kept", len(some.list))
		}
	})
}

// The usual percentiles are among the ranks that are kept, as order statistics.
func TestRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30_000).Draw(t, "n")
		values := spill.NewNumbers(nil)
		for i := range n {
			values.Add(float64(i+1) * 1e6)
		}
		s := thinRanks(values, int64(n), rapid.SampledFrom([]int{50, 200}).Draw(t, "ranks"))
		if len(s.Value) > 600 || !slices.IsSorted(s.Value) || !slices.IsSorted(s.Share) {
			t.Fatalf("%d values", len(s.Value))
		}
		for _, p := range []float64{.5, .9, .95, .99, .999} {
			if want := stats.Rank(int64(n), p); !slices.Contains(s.Value, float64(want)) {
				t.Fatalf("no X(⌈%v·%d⌉)", p, n)
			}
		}
	})
}

// Bins of gaps follow one another and are no wider than said.
func TestGapBins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := rapid.Int64Range(0, math.MaxInt64/4).Draw(t, "gap")
		bin := gapBin(ns)
		edge := gapEdge(bin)
		if edge < ns || gapBin(edge) != bin || gapBin(edge+1) != bin+1 {
			t.Fatalf("%d is in bin %d with edge %d", ns, bin, edge)
		}
		if edge-ns > max(1, ns/32) {
			t.Fatalf("the bin of %d reaches to %d", ns, edge)
		}
	})
}

// A point of a hundred thousand requests is as large as any.
func TestSeriesAreBounded(t *testing.T) {
	f := served(100_000, 3, func(i int) (int64, int64, int64) { return int64(i) * 1e6, int64(i%977) * 1e6, 2e6 })
	for name, size := range map[string]detail{"full": detailOf(1), "brief": detailOf(3)} {
		s := gathered(window(1, 99, 2), size, f)
		if len(s.First.X) > size.dots || s.First.Of != 100_000 {
			t.Errorf("%s: %d of %d dots", name, len(s.First.X), s.First.Of)
		}
		if len(s.Due) > size.bins+1 || len(s.Slow.Requests) > size.traces || len(s.Random.Requests) > size.traces {
			t.Errorf("%s: %d bins, %d and %d requests", name, len(s.Due), len(s.Slow.Requests), len(s.Random.Requests))
		}
		if got := s.Slow.Requests[0].duration(); got != 976e6+4e6+1000 {
			t.Errorf("%s: the slowest took %d", name, got)
		}
	}
}

// Requests that were not followed to their end count, and have no value.
func TestSeriesCensored(t *testing.T) {
	f := served(10, 2, func(i int) (int64, int64, int64) { return int64(i) * 1e8, 1e7, 1e7 })
	for i := range 3 {
		r := &f.Rows[i]
		r.Outcome, r.Error, r.FirstToken, r.LastToken = record.Cut, "timeout", record.Unset, record.Unset
	}
	s := gathered(window(0, 1, 1), detailOf(1), f)
	got := s.Spread["ttft_ms"]
	if got.N != 10 || got.Share[len(got.Share)-1] != .7 {
		t.Errorf("TTFT: %+v", got)
	}
	if d := s.Errors["timeout"]; d.Of != 3 {
		t.Errorf("errors: %+v", s.Errors)
	}
}

// Damaged records are drawn as whatever they say, without a panic.
func TestSeriesOfDamage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-1, 2e9))
		var f record.Frame
		for range rapid.IntRange(0, 12).Draw(t, "chunks") {
			f.Chunks = append(f.Chunks, record.Chunk{Request: rapid.OneOf(rapid.Int64Range(-2, 5), rapid.Int64()).Draw(t, "request"), T: number.Draw(t, "t"),
				Tokens: rapid.Int32Range(-1, 3).Draw(t, "tokens"), Choice: rapid.Int32Range(0, 2).Draw(t, "choice")})
		}
		for range rapid.IntRange(0, 6).Draw(t, "rows") {
			r := record.BlankRow()
			r.ID, r.Stream = rapid.Int64Range(-2, 5).Draw(t, "id"), rapid.Bool().Draw(t, "stream")
			for _, stamp := range []*int64{&r.Due, &r.Sent, &r.FirstToken, &r.FirstAnswer, &r.LastToken, &r.Done} {
				*stamp = number.Draw(t, "stamp")
			}
			for _, n := range []*int32{&r.InputPlanned, &r.OutputPlanned, &r.PromptTokens, &r.CompletionTokens, &r.HiddenTokens} {
				*n = rapid.Int32().Draw(t, "count")
			}
			r.Outcome = record.Outcome(rapid.IntRange(0, 3).Draw(t, "outcome"))
			f.Rows = append(f.Rows, r)
		}
		seconds := rapid.OneOf(rapid.Float64(), rapid.Just(math.NaN()), rapid.Just(math.Inf(1)), rapid.Float64Range(0, 3))
		p := window(seconds.Draw(t, "warmup"), seconds.Draw(t, "window"), seconds.Draw(t, "drain"))
		s := gathered(p, detailOf(3), f)
		charts := map[string]*chart{}
		p.Metrics = reporttest.ServerRun(2000).Points[0].Metrics
		for _, list := range [][]*chart{spreadCharts("", p, s), timeCharts("", s), rasterCharts("", s), lengthCharts("", s), viewCharts("", p, s)} {
			for _, c := range list {
				charts[c.ID] = c
			}
		}
		if _, err := chartData(charts); err != nil {
			t.Fatal(err)
		}
	})
}
