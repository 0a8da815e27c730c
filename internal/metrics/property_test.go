package metrics

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// crowd draws requests of every kind, the same for the same seed.
func crowd(rng *rand.Rand, n int) []record.Frame {
	var out []record.Frame
	for i := range int64(n) {
		due := i * 7
		switch rng.IntN(12) {
		case 0:
			out = append(out, failed(i, due, rng.Int64N(50), record.ServerError(500)))
			continue
		case 1:
			out = append(out, cut(i, due, rng.Int64N(5000)))
			continue
		case 2:
			out = append(out, unsent(i, due))
			continue
		}
		a := answer{id: i, due: due, usage: Unset, first: Unset, hidden: int32(rng.IntN(2) * 3)}
		at, total := due+rng.Int64N(300), int32(0)
		counted := rng.IntN(2) == 0
		for range 1 + rng.IntN(12) {
			a.stamps = append(a.stamps, at)
			at += rng.Int64N(40)
			k := 1 + rng.Int32N(3)
			total += k
			if counted {
				a.tokens = append(a.tokens, k)
			}
		}
		if rng.IntN(4) > 0 {
			a.usage = total + a.hidden
		}
		if rng.IntN(8) == 0 {
			a.stamps[len(a.stamps)-1] += 6000 // a gap that four bytes do not hold
		}
		fr := a.frame()
		if rng.IntN(10) == 0 {
			fr.Rows[0].Outcome, fr.Rows[0].Error = record.Cut, record.ErrTimeout
			fr.Rows[0].Done += 100 * ms
		}
		fr.Rows[0].InputPlanned = rng.Int32N(5000)
		for j := range fr.Chunks {
			if rng.IntN(4) == 0 {
				fr.Chunks[j].Earliest -= rng.Int64N(10 * ms)
			}
		}
		out = append(out, fr)
	}
	return out
}

// The result must not depend on which request was recorded first, nor on how
// records were cut into frames.
func TestOrderDoesNotMatter(t *testing.T) {
	objective := spec(t, "p90 ttft<200ms, stall<30ms, e2e<1s @50%, p90 icl<30ms, p90 itl<30ms")
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		frames := crowd(rng, rapid.IntRange(0, 100).Draw(t, "n"))
		s := Setup{T0: 100 * ms, T1: 900 * ms, Stamps: "kernel", SLO: objective}
		want := fold(s, frames...).Point()
		if _, err := json.Marshal(want); err != nil { // NaN or infinity
			t.Fatal(err)
		}

		rng.Shuffle(len(frames), func(i, j int) { frames[i], frames[j] = frames[j], frames[i] })
		var split []record.Frame
		for _, fr := range frames {
			for _, c := range fr.Chunks {
				split = append(split, record.Frame{Chunks: []record.Chunk{c}})
			}
			split = append(split, record.Frame{Rows: fr.Rows})
		}
		f := NewFold(s)
		for i, fr := range split {
			f.Add(fr)
			if i%211 == 0 {
				f.Point() // looking changes nothing
			}
		}
		if d := cmp.Diff(want, f.Point()); d != "" {
			t.Fatal(d)
		}
	})
}

// An id counts once, in whatever order ids come, and memory is for those that are
// out of order.
func TestIDsCountOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		ids := idSet{}
		seen := map[int64]bool{}
		for i := range int64(2000) {
			id := max(0, i-rng.Int64N(200))
			if ids.seenBefore(id) != seen[id] {
				t.Fatal(id)
			}
			seen[id] = true
		}
	})
	ids := idSet{}
	for i := range int64(1_000_000) {
		ids.seenBefore(i ^ 63)
	}
	if len(ids.bits) > 2 || cap(ids.bits) > 64 {
		t.Errorf("%d of %d words for ids that all came", len(ids.bits), cap(ids.bits))
	}
}

// Percentiles of pooled gaps and of requests against a plain sorted list.
func TestPercentilesAgainstSorting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		var ttft, icl, itl []int64
		f := NewFold(window(10_000))
		n := rapid.IntRange(2, 400).Draw(t, "n")
		for i := range int64(n) {
			at := i + 1 + rng.Int64N(900)
			a := answer{id: i, due: i, stamps: []int64{at}, tokens: []int32{1}, usage: 1, first: 1}
			ttft = append(ttft, at-i)
			for range 1 + rng.IntN(10) {
				k := 1 + rng.Int64N(3)
				gap := k * (1 + rng.Int64N(60))
				if rng.IntN(50) == 0 {
					gap *= 200
				}
				at += gap
				a.stamps, a.tokens, a.usage = append(a.stamps, at), append(a.tokens, int32(k)), a.usage+int32(k)
				icl = append(icl, gap)
				for range k {
					itl = append(itl, gap/k)
				}
			}
			f.Add(a.frame())
		}
		m := f.Point().Metrics
		for _, c := range []struct {
			name string
			got  *result.Summary
			want []int64
		}{{"ttft", m.SummaryOf(metric.TTFT), ttft}, {"icl", m.SummaryOf(metric.ICL), icl}, {"itl", m.SummaryOf(metric.ITL), itl}} {
			slices.Sort(c.want)
			mean, sd := stats.Moments(c.want)
			for name, pair := range map[string]struct {
				got  *float64
				want float64
			}{
				"p50": {c.got.P50, float64(stats.Percentile(c.want, .5))}, "p90": {c.got.P90, float64(stats.Percentile(c.want, .9))},
				"p99": {c.got.P99, float64(stats.Percentile(c.want, .99))}, "p99.9": {c.got.P999, float64(stats.Percentile(c.want, .999))},
				"min": {c.got.Min, float64(c.want[0])}, "max": {c.got.Max, float64(c.want[len(c.want)-1])},
				"numpy": {c.got.P99Numpy, linear(c.want, .99)}, "mean": {c.got.Mean, mean}, "sd": {c.got.SD, sd},
			} {
				if pair.got == nil {
					continue // too few
				}
				if d := *pair.got - pair.want; d > 1e-9*pair.want || d < -1e-9*pair.want {
					t.Fatalf("%s %s = %v, want %v", c.name, name, *pair.got, pair.want)
				}
			}
			if c.got.N != int64(len(c.want)) {
				t.Fatalf("%s: n = %d, want %d", c.name, c.got.N, len(c.want))
			}
		}
	})
}

// True event times are merged at random as the kernel would: a read takes
// several segments and has the last one's stamp. Whatever is meant, the gaps
// between events or between arrivals, its percentile lies in the bounds.
func TestBoundsHoldTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		share := rapid.Float64Range(0, .9).Draw(t, "merged")
		together := rapid.SampledFrom([]float64{0, .3}).Draw(t, "together")
		var events, arrivals, ttfts, stalls []int64
		f := NewFold(window(10_000))
		for i := range int64(60) {
			var at []int64
			now := i*1000 + rng.Int64N(300)
			for range 2 + rng.IntN(30) {
				at = append(at, now)
				if rng.Float64() >= together {
					now += 1 + rng.Int64N(40)
				}
			}
			a := answer{id: i, due: i * 1000, stamps: at, usage: int32(len(at)), first: 1}
			fr := a.frame()
			var longest int64
			for j := 1; j < len(at); j++ {
				gap := at[j] - at[j-1]
				events = append(events, gap)
				longest = max(longest, gap)
				if gap > 0 {
					arrivals = append(arrivals, gap)
				}
			}
			ttfts, stalls = append(ttfts, at[0]-i*1000), append(stalls, longest)
			blur(rng, fr.Chunks, i*1000*ms, share)
			first := &fr.Chunks[0]
			fr.Rows[0].FirstToken = first.T
			f.Add(fr)
		}
		m := f.Point().Metrics
		within := func(name string, s *result.Summary, truth []int64) {
			perRequest := name == "ttft" || name == "stall"
			slices.Sort(truth)
			for _, q := range quantiles() {
				b, ok := s.Bounds[q.name]
				if !ok {
					if got := value(s, q.name); perRequest && got != nil && math.Abs(*got-float64(stats.Percentile(truth, q.p))) > 1e-9 {
						t.Fatalf("%s %s: %v without bounds is not %v", name, q.name, *got, stats.Percentile(truth, q.p))
					}
					continue
				}
				if x := float64(stats.Percentile(truth, q.p)); x < b[0]-1e-5 || x > b[1]+1e-5 {
					t.Fatalf("%s %s: %v is not in %v", name, q.name, x, b)
				}
			}
		}
		if m.SummaryOf(metric.ITL) == nil {
			t.Fatal("no itl")
		}
		within("itl of events", m.SummaryOf(metric.ITL), events)
		within("ttft", m.SummaryOf(metric.TTFT), ttfts)
		if together == 0 {
			within("stall", m.SummaryOf(metric.Stall), stalls)
			within("icl of arrivals", m.SummaryOf(metric.ICL), arrivals)
		}
		within("icl of events", m.SummaryOf(metric.ICL), events)
		if b := m.SummaryOf(metric.ICL).Bounds["p50"]; share > .2 && (m.SummaryOf(metric.ICL).P50 == nil || b[0] > *m.SummaryOf(metric.ICL).P50 || b[1] < *m.SummaryOf(metric.ICL).P50) {
			t.Fatalf("p50 %v outside %v", m.SummaryOf(metric.ICL).P50, b)
		}
	})
}

func value(s *result.Summary, name string) *float64 {
	return map[string]*float64{"p50": s.P50, "p90": s.P90, "p95": s.P95, "p99": s.P99, "p99_9": s.P999}[name]
}

// Lists of many blocks, added to between looks.
func TestManyBlocks(t *testing.T) {
	const blockSize = 1 << 16
	rng := rand.New(rand.NewPCG(5, 5))
	g := newGapSet(nil)
	var all []int64
	for range 3 {
		for range blockSize + 1234 {
			ns := rng.Uint32() >> (rng.Uint32() % 20)
			g.findRun(1, counted).gaps.Add(ns)
			all = append(all, int64(ns))
		}
		slices.Sort(all)
		v := newGapView([]*gapSet{g}, false, unknown, nil)
		if v.size() != int64(len(all)) {
			t.Fatalf("%d of %d gaps", v.size(), len(all))
		}
		for _, rank := range []int64{1, 2, blockSize, v.size() / 2, v.size() - 1, v.size()} {
			if got := int64(v.orderStatistic(rank)); got != all[rank-1] {
				t.Errorf("rank %d of %d: %d, want %d", rank, v.size(), got, all[rank-1])
			}
		}
		sum, squares := v.moments()
		mean, sd := stats.Moments(all)
		n := float64(len(all))
		if math.Abs(sum/n/mean-1) > 1e-12 || math.Abs(math.Sqrt(squares/(n-1))/sd-1) > 1e-12 {
			t.Errorf("mean %v, sd %v; want %v, %v", sum/n, math.Sqrt(squares/(n-1)), mean, sd)
		}
	}
}

// blur turns exact chunks into what a lagging reader sees: reads that take
// what has come, sometimes with the last event's tail still missing.
func blur(rng *rand.Rand, chunks []record.Chunk, start int64, share float64) {
	earlier := start // stamp of the previous read
	for i := 0; i < len(chunks); {
		j := i
		for j+1 < len(chunks) && rng.Float64() < share {
			j++
		}
		// An event that came with the stamp of the read is in it.
		for j+1 < len(chunks) && chunks[j+1].T == chunks[j].T {
			j++
		}
		stamp := chunks[j].T
		tail := rng.Float64() < share/4
		if tail { // part of the next event came too, later than this one
			limit := int64(5 * ms)
			if j+1 < len(chunks) {
				limit = min(limit, chunks[j+1].T-stamp)
			}
			stamp += limit / 2
		}
		for k := i; k <= j; k++ {
			exact := !tail && chunks[k].T == stamp && k == j
			chunks[k].T, chunks[k].Earliest = stamp, earlier
			if exact {
				chunks[k].Earliest = stamp
			}
		}
		earlier = stamp
		i = j + 1
	}
}

// linear is numpy.percentile of sorted values.
func linear(xs []int64, p float64) float64 {
	h := float64(len(xs)-1) * p
	i := int(h)
	if i+1 >= len(xs) {
		return float64(xs[len(xs)-1])
	}
	return float64(xs[i]) + (h-float64(i))*float64(xs[i+1]-xs[i])
}
