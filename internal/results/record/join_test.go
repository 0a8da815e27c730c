package record

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// key tells the requests of a run apart.
type key struct {
	point int32
	id    int64
}

// Whatever ids are in flight, in whatever order: each row comes with the chunks
// of its own request, and what has no row is open.
func TestJoinAgainstMaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		spread := rapid.SampledFrom([]int64{1, 1, 256, 1 << 20, 1 << 62}).Draw(t, "stride") // ids that share their last bits
		points := rapid.Int32Range(1, 3).Draw(t, "points")
		want, got, flying := map[key][]int64{}, map[key][]int64{}, map[key][]int64{}
		point := int32(0)
		join := Join[[]int64]{
			Chunk: func(s *[]int64, c *Chunk) { *s = append(*s, c.T) },
			Row:   func(r *Row, s *[]int64) { got[key{point, r.ID}] = append(got[key{point, r.ID}], *s...) },
			Reset: func(s *[]int64) { *s = (*s)[:0] },
		}
		for range rapid.IntRange(0, 40).Draw(t, "frames") {
			if rng.IntN(6) == 0 {
				point = rng.Int32N(points)
			}
			f := Frame{Point: point}
			for range rng.IntN(60) {
				c := Chunk{Request: (rng.Int64N(600) - 20) * spread, T: rng.Int64()}
				k := key{point, c.Request}
				f.Chunks, flying[k] = append(f.Chunks, c), append(flying[k], c.T)
			}
			for range rng.IntN(10) {
				r := Row{ID: (rng.Int64N(600) - 20) * spread}
				k := key{point, r.ID}
				want[k] = append(want[k], flying[k]...)
				delete(flying, k)
				f.Rows = append(f.Rows, r)
			}
			join.Add(&f)
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(key{}), equalEmpty()); d != "" {
			t.Fatal(d)
		}
		join.turnTo(part{point: point})
		open, left := map[key][]int64{}, map[key][]int64{}
		for id, s := range join.Open() {
			open[key{point, id}] = *s
		}
		for k, s := range flying {
			if k.point == point {
				left[k] = s
			}
		}
		if d := cmp.Diff(left, open, cmp.AllowUnexported(key{})); d != "" {
			t.Fatal(d)
		}
	})
}

func equalEmpty() cmp.Option {
	return cmp.Transformer("empty", func(s []int64) []int64 { return slices.Concat([]int64{0}, s) })
}

// A long run needs no more than what is in flight at once.
func TestJoinKeepsWhatIsInFlight(t *testing.T) {
	made := map[*int]bool{}
	join := Join[int]{
		Chunk: func(s *int, _ *Chunk) { made[s] = true },
		Row:   func(*Row, *int) {},
		Reset: func(*int) {},
	}
	const flying = 1000
	for id := range int64(200_000) {
		f := Frame{Chunks: []Chunk{{Request: id}}}
		if id >= flying {
			f.Rows = []Row{{ID: id - flying}}
		}
		join.Add(&f)
	}
	if n := len(made); n != flying+1 {
		t.Errorf("%d states for %d requests in flight", n, flying)
	}
	if n := len(join.flights.slots); n > 4*flying {
		t.Errorf("%d slots", n)
	}
	if n := len(maps.Collect(join.Open())); n != flying {
		t.Errorf("%d open", n)
	}
}

func BenchmarkJoin(b *testing.B) {
	const flying, each = 4096, 4
	var f Frame
	join := Join[int]{Chunk: func(s *int, _ *Chunk) { *s++ }, Row: func(*Row, *int) {}, Reset: func(s *int) { *s = 0 }}
	base := int64(0)
	for b.Loop() {
		f.Chunks, f.Rows = f.Chunks[:0], f.Rows[:0]
		for range each {
			for i := range int64(flying) {
				f.Chunks = append(f.Chunks, Chunk{Request: base + i})
			}
		}
		for i := range int64(flying) {
			f.Rows = append(f.Rows, Row{ID: base + i})
		}
		join.Add(&f)
		base += flying
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(flying*each), "ns/chunk")
}
