package validity

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// What is in flight by blocks, against a count at every nanosecond.
func TestInFlightAgainstCounting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.Int64Range(0, 50).Draw(t, "from")
		to := from + rapid.Int64Range(10, 100).Draw(t, "length")
		until := to + rapid.Int64Range(0, 50).Draw(t, "until")
		blocks := rapid.IntRange(1, 10).Draw(t, "blocks")
		var visits []visit
		f := newInFlight(from, to, blocks)
		for range rapid.IntRange(0, 20).Draw(t, "n") {
			v := visit{due: rapid.Int64Range(0, 200).Draw(t, "due"), done: record.Unset}
			if rapid.Bool().Draw(t, "ended") {
				v.done = v.due + rapid.Int64Range(0, 150).Draw(t, "took")
			}
			visits = append(visits, v)
			f.addVisit(&v)
		}
		edge := func(i int) int64 { return from + int64(float64(to-from)*float64(i)/float64(blocks)) }
		for i, got := range f.blockMeans(until) {
			var sum float64
			for at := edge(i); at < edge(i+1); at++ {
				for _, v := range visits {
					if v.due <= at && (at < v.done || v.done < 0 && at < until) {
						sum++
					}
				}
			}
			if want := sum / float64(edge(i+1)-edge(i)); math.Abs(got-want) > 1e-12 {
				t.Fatalf("block %d: %v, want %v", i, got, want)
			}
		}
	})
}

// Sums that 63 bits do not hold.
func TestStaysOfVeryMany(t *testing.T) {
	s := stays{from: 0, to: math.MaxInt64}
	for range 10 {
		s.addVisit(&visit{due: 0, done: math.MaxInt64 - 1})
		s.addVisit(&visit{due: 1, done: record.Unset})
	}
	if got := s.totalTime(math.MaxInt64 - 1); got != 20*float64(math.MaxInt64) {
		t.Errorf("%g", got)
	}
}

// The first answers are those that were due first, whichever came first.
func TestLightResidence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := NewQueue(&Conditions{T1: 10e9})
		var well []visit
		for range rapid.IntRange(0, 60).Draw(t, "n") {
			v := visit{due: rapid.Int64Range(0, 30).Draw(t, "due"), end: record.Unset}
			if rapid.IntRange(0, 3).Draw(t, "ended") > 0 {
				v.end = v.due + rapid.Int64Range(0, 30).Draw(t, "took")
				well = append(well, v)
			}
			w.keepFirstVisit(&v)
		}
		slices.SortFunc(well, func(a, b visit) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.end, b.end)) })
		var took []int64
		for _, v := range well[:min(len(well), firstVisits)] {
			took = append(took, v.end-v.due)
		}
		slices.Sort(took)
		if want := float64(stats.Percentile(took, .5)); w.lightResidence() != want {
			t.Fatalf("%g, want %g", w.lightResidence(), want)
		}
	})
}

func TestAsk(t *testing.T) {
	for seconds, want := range map[float64]time.Duration{
		7.2: 8 * time.Second, 60: time.Minute, 61: 70 * time.Second, 299: 5 * time.Minute, 301: 6 * time.Minute, 3600: time.Hour, 9000.5: 160 * time.Minute,
	} {
		c := Conditions{T1: 10e9}
		if got := c.longerWindow(seconds); got != (result.Longer{Seconds: want.Seconds()}) || got.Seconds < seconds {
			t.Errorf("%g s: %v, want %s", seconds, got, want)
		}
	}
	c := Conditions{T1: 10e9, Requests: 130}
	if got := c.longerWindow(34); got != (result.Longer{Requests: 450}) {
		t.Error(got)
	}
}
