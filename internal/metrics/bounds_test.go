package metrics

import (
	"testing"

	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
)

// streamOf folds one answer whose chunks are given as (T, Earliest) in ms.
func streamOf(pairs ...[2]int64) *Fold {
	a := answer{usage: int32(len(pairs)), first: 1}
	for _, p := range pairs {
		a.stamps = append(a.stamps, p[0])
	}
	fr := a.frame()
	for i, p := range pairs {
		fr.Chunks[i].Earliest = p[1] * ms
	}
	return fold(window(10), fr)
}

func TestBoundsByHand(t *testing.T) {
	bounds := func(f *Fold) [2]float64 {
		return f.Point().Metrics.SummaryOf(metric.ICL).Bounds["p50"]
	}
	// Exact: nothing to bound.
	if b := streamOf([2]int64{10, 10}, [2]int64{20, 20}, [2]int64{40, 40}).Point().Metrics.SummaryOf(metric.ICL).Bounds; len(b) != 0 {
		t.Errorf("exact stamps have bounds %v", b)
	}
	// One event whose read also held the beginning of the next: it came in
	// (12, 20], so its own gap is 2 to 10 ms and the next 20 to 28.
	if b := bounds(streamOf([2]int64{10, 10}, [2]int64{20, 12}, [2]int64{40, 40})); b != [2]float64{2, 10} {
		t.Errorf("tail: %v", b)
	}
	// Three events in one read 30 ms after the first, then two of 1 ms. Five
	// token gaps for certain: at most {1, 1, 10, 15, 30}, at least {0, 0, 1, 1,
	// 10}. Chunk gaps: at least the same, at most {1, 1, 30} or {1, 1, 15, 15}
	// or {1, 1, 10, 10, 10}.
	m := streamOf([2]int64{10, 10}, [2]int64{40, 10}, [2]int64{40, 10}, [2]int64{40, 40}, [2]int64{41, 41}, [2]int64{42, 42}).Point().Metrics
	if b := m.SummaryOf(metric.ITL).Bounds["p50"]; b != [2]float64{1, 10} {
		t.Errorf("itl %v", b)
	}
	if b := m.SummaryOf(metric.ICL).Bounds["p50"]; b != [2]float64{1, 10} || *m.SummaryOf(metric.ICL).P50 != 1 {
		t.Errorf("icl %v", b)
	}
	// The largest of two gaps around an uncertain event.
	f := streamOf([2]int64{10, 10}, [2]int64{20, 12}, [2]int64{40, 40})
	c := f.buildPart(f.groups.list, nil)
	l := newLadder(c.sets, newGapView(c.sets, false, unknown, nil), nil)
	if lo, hi := l.boundsAt(.999, 0); lo != 20e6 || hi != 28e6 {
		t.Errorf("largest gap between %v and %v", lo, hi)
	}
}

// Gaps within a stream's first arrival, which merging hid, may be there or not
// and be as long as it was: percentiles are bounded for all of that.
func TestBoundsOfUnseenGaps(t *testing.T) {
	f := NewFold(window(10_000))
	for id := range int64(12) {
		a := answer{id: id, due: id * 100, stamps: []int64{id*100 + 10, id*100 + 20}, usage: 2, first: 1}
		fr := a.frame()
		if id < 2 { // both events in one read, 30 ms after the request was sent
			for i := range fr.Chunks {
				fr.Chunks[i].T, fr.Chunks[i].Earliest = (id*100+40)*ms, (id*100+10)*ms
			}
			fr.Chunks[1].Earliest = fr.Chunks[1].T
			fr.Rows[0].FirstToken, fr.Rows[0].LastToken = fr.Chunks[0].T, fr.Chunks[0].T
		}
		f.Add(fr)
	}
	m := f.Point().Metrics
	if m.SummaryOf(metric.Stall).N != 10 || *m.SummaryOf(metric.Stall).P90 != 10 || m.SummaryOf(metric.Stall).Bounds["p90"] != [2]float64{10, 30} {
		t.Errorf("stall of %d: %v in %v", m.SummaryOf(metric.Stall).N, *m.SummaryOf(metric.Stall).P90, m.SummaryOf(metric.Stall).Bounds)
	}
	if m.SummaryOf(metric.ITL).N != 10 || *m.SummaryOf(metric.ITL).P90 != 10 || m.SummaryOf(metric.ITL).Bounds["p90"] != [2]float64{10, 30} {
		t.Errorf("itl of %d: %v in %v", m.SummaryOf(metric.ITL).N, *m.SummaryOf(metric.ITL).P90, m.SummaryOf(metric.ITL).Bounds)
	}
}

// A clock that steps back and bounds after their stamps must not panic nor
// give negative gaps.
func TestImpossibleChunks(t *testing.T) {
	f := NewFold(window(1))
	f.Add(record.Frame{Chunks: []record.Chunk{
		{Request: -5, T: 50, Earliest: 900, Tokens: -3}, {Request: -5, T: 10, Earliest: -7, Choice: -1}, {Request: -5, T: 20, Choice: -1},
		{Request: -5, T: 5, Earliest: 5, Tokens: 1 << 30}, {Request: 1 << 60, T: -1, Earliest: -1},
	}})
	r := blankRow(-5, 0)
	r.FirstToken, r.LastToken, r.Done, r.Outcome, r.CompletionTokens = 50, 5, 5, 200, 1<<31-1
	f.Add(record.Frame{Rows: []record.Row{r, {}, {ID: 3, Outcome: record.Cut}}})
	p := f.Point()
	if p.Requests.Due != 3 || find(t, p.Checks, "accounting").Status != result.Fail {
		t.Errorf("%+v", p.Requests)
	}
}
