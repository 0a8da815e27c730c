package spill

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
	"pitot/internal/stats"
)

// stores are budgets from none to endless, with pieces so small that a few
// hundred values fill several.
func stores(t *rapid.T, dir string) *Store {
	switch rapid.IntRange(0, 3).Draw(t, "store") {
	case 0:
		return nil
	case 1:
		return NewSized(dir, 0, 256)
	case 2:
		return NewSized(dir, 1500, 256)
	}
	return New(dir, 1<<20)
}

// sound fails if something was lost, or left behind.
func sound(t interface{ Fatal(...any) }, s *Store, dir string) {
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	if files, _ := os.ReadDir(dir); len(files) > 0 {
		t.Fatal("left in the directory:", files)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestColumn(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		s := stores(t, dir)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		// Two at once: what one gives back, the other takes.
		a, b := NewColumn[int64](s), NewColumn[struct{ x, y int32 }](s)
		var as []int64
		var bs []struct{ x, y int32 }
		for range rapid.IntRange(0, 2000).Draw(t, "steps") {
			switch rng.IntN(50) {
			case 0:
				a.Free()
				as = nil
			case 1:
				more := make([]int64, rng.IntN(100))
				for i := range more {
					more[i] = rng.Int64()
				}
				a.AppendAll(more)
				as = append(as, more...)
			}
			x := rng.Int64()
			a.Append(x)
			as = append(as, x)
			y := struct{ x, y int32 }{rng.Int32(), rng.Int32()}
			b.Append(y)
			bs = append(bs, y)
		}
		if got := slices.Collect(a.All()); !slices.Equal(got, as) || a.Len() != int64(len(as)) {
			t.Fatalf("%d values, want %d", len(got), len(as))
		}
		if got := slices.Collect(b.All()); !slices.Equal(got, bs) {
			t.Fatalf("%d pairs, want %d", len(got), len(bs))
		}
		if n := len(as); n > 0 {
			from := rng.IntN(n)
			some := make([]int64, rng.IntN(n-from+1))
			a.ReadAt(some, int64(from))
			if !slices.Equal(some, as[from:from+len(some)]) {
				t.Fatal("values from the middle are others")
			}
		}
		sound(t, s, dir)
	})
}

type pair struct {
	key, id int64
	text    string
}

func pairs() Codec[pair] {
	return Codec[pair]{
		Key: func(p *pair) (int64, int64) { return p.key, p.id },
		Append: func(to []byte, p *pair) []byte {
			to = binary.AppendVarint(to, p.key)
			to = binary.AppendVarint(to, p.id)
			return append(append(to, byte(len(p.text))), p.text...)
		},
		Decode: func(from []byte, p *pair) int {
			key, n := binary.Varint(from)
			id, m := binary.Varint(from[max(n, 0):])
			if n <= 0 || m <= 0 || len(from) <= n+m || len(from) < n+m+1+int(from[n+m]) {
				return 0
			}
			end := n + m + 1 + int(from[n+m])
			*p = pair{key, id, string(from[n+m+1 : end])}
			return end
		},
		Most: 2*binary.MaxVarintLen64 + 1 + 255,
	}
}

func TestSorted(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		s := stores(t, dir)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		disorder := rapid.SampledFrom([]int64{1, 30, 1 << 40}).Draw(t, "disorder")
		sorted := NewSorted(s, pairs())
		var want []pair
		check := func() {
			slices.SortFunc(want, func(a, b pair) int {
				if a.key != b.key {
					return int(min(max(a.key-b.key, -1), 1))
				}
				return int(a.id - b.id)
			})
			i := 0
			for p := range sorted.All() {
				if i >= len(want) || *p != want[i] {
					t.Fatalf("record %d of %d is %v", i, len(want), *p)
				}
				i++
			}
			if i != len(want) || sorted.Len() != int64(i) {
				t.Fatalf("%d records, want %d", i, len(want))
			}
		}
		for i := range rapid.Int64Range(0, 3000).Draw(t, "n") {
			p := pair{i + rng.Int64N(disorder), i, fmt.Sprint(rng.Uint64())[:rng.IntN(8)]}
			sorted.Add(&p)
			want = append(want, p)
			if i == 700 {
				check() // more may come after
			}
		}
		check()
		for range sorted.All() {
			break
		}
		sorted.Free()
		sound(t, s, dir)
	})
}

func TestNumbers(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		s := stores(t, dir)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		draw := map[string]func() float64{
			"apart":    func() float64 { return rng.NormFloat64() * 1e8 },
			"ties":     func() float64 { return float64(rng.IntN(3)) },
			"one":      func() float64 { return 1e8 },
			"mostly":   func() float64 { return 7 + float64(rng.IntN(20)/19)*rng.Float64() },
			"infinite": func() float64 { return []float64{math.Inf(1), rng.ExpFloat64()}[rng.IntN(2)] },
			"wide":     func() float64 { return math.Ldexp(rng.Float64()-.5, rng.IntN(1000)-500) },
			"zeros":    func() float64 { return math.Copysign(0, float64(rng.IntN(2))-.5) },
		}
		kinds := []string{"apart", "ties", "one", "mostly", "infinite", "wide", "zeros"}
		var sets []*Numbers
		var all []float64
		for range rapid.IntRange(1, 2).Draw(t, "sets") {
			next := draw[rapid.SampledFrom(kinds).Draw(t, "kind")]
			x := NewNumbers(s)
			var own []float64
			for range rapid.IntRange(0, 3000).Draw(t, "n") {
				v := next()
				x.Add(v)
				own = append(own, v)
			}
			if got := slices.Collect(x.All()); !slices.Equal(got, own) {
				t.Fatal("the order is another")
			}
			finite := slices.DeleteFunc(slices.Clone(own), func(v float64) bool { return math.IsInf(v, 1) })
			if x.Len() != int64(len(own)) || x.FiniteCount() != int64(len(finite)) {
				t.Fatalf("%d numbers, %d finite", x.Len(), x.FiniteCount())
			}
			var total stats.Total
			for _, v := range finite {
				total.Add(v)
			}
			if total.Sum() != x.FiniteTotal().Sum() {
				t.Fatal("another sum")
			}
			checkRanks(t, rng, own, x)
			sets, all = append(sets, x), append(all, own...)
		}
		checkRanks(t, rng, all, sets...)
		for _, x := range sets {
			x.Free()
		}
		sound(t, s, dir)
	})
}

// checkRanks asks for the same twice: what was found out is used again.
func checkRanks(t *rapid.T, rng *rand.Rand, values []float64, sets ...*Numbers) {
	sorted := slices.Sorted(slices.Values(values))
	for range 2 {
		var ranks []int64
		for range min(len(values), 1+rng.IntN(20)) {
			ranks = append(ranks, 1+rng.Int64N(int64(len(values))))
		}
		slices.Sort(ranks)
		for i, x := range OrderStatistics(ranks, sets...) {
			if want := sorted[ranks[i]-1]; x != want {
				t.Fatalf("rank %d of %d is %g, want %g", ranks[i], len(sorted), x, want)
			}
		}
		if len(sets) == 1 && len(ranks) > 0 {
			sets[0].Seek(ranks[1:]...)
			for _, r := range ranks {
				if x := sets[0].OrderStatistic(r); x != sorted[r-1] {
					t.Fatalf("rank %d of %d is %g, want %g", r, len(sorted), x, sorted[r-1])
				}
			}
		}
	}
}

func TestBag(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		s := stores(t, dir)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		checkBag(t, NewBag[uint32](s), rng, func() uint32 { return rng.Uint32() >> rng.IntN(32) })
		checkBag(t, NewBag[int64](s), rng, func() int64 { return rng.Int64() >> (12 + rng.IntN(50)) })
		sound(t, s, dir)
	})
}

func checkBag[T uint32 | int64](t *rapid.T, b *Bag[T], rng *rand.Rand, draw func() T) {
	var want []T
	var sum, squares big.Int
	for i := range rapid.IntRange(0, 3000).Draw(t, "n") {
		x := draw()
		b.Add(x)
		want = append(want, x)
		sum.Add(&sum, big.NewInt(int64(x)))
		if i == 500 {
			b.AtMost(x) // more may come after
		}
	}
	for range 20 {
		x := draw()
		n := int64(0)
		for _, v := range want {
			if v <= x {
				n++
			}
		}
		if got := b.AtMost(x); got != n {
			t.Fatalf("%d of %d at most %d, want %d", got, len(want), x, n)
		}
	}
	center := uint64(rng.Uint32())
	for _, v := range want {
		d := big.NewInt(int64(v) - int64(center))
		squares.Add(&squares, d.Mul(d, d))
	}
	high, low := b.SquaredDeviations(center)
	got := new(big.Int).Or(new(big.Int).Lsh(new(big.Int).SetUint64(high), 64), new(big.Int).SetUint64(low))
	if b.Len() != int64(len(want)) || b.Sum() != sum.Uint64() || got.Cmp(&squares) != 0 {
		t.Fatalf("n %d, sum %d want %v, squares %v want %v", b.Len(), b.Sum(), &sum, got, &squares)
	}
	var all []T
	for values := range b.All {
		all = append(all, values...)
	}
	slices.Sort(all)
	slices.Sort(want)
	if !slices.Equal(all, want) || len(want) > 0 && b.Max() != max(0, want[len(want)-1]) {
		t.Fatal("others came back")
	}
	b.Free()
}

// What cannot be written stays in memory, and nothing is lost.
func TestNowhereToWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", file)
	t.Setenv("TMP", file)
	s := NewSized(file, 0, 256)
	c, b := NewColumn[int64](s), NewBag[int64](s)
	sorted := NewSorted(s, pairs())
	for i := range int64(10_000) {
		c.Append(i)
		b.Add(i)
		sorted.Add(&pair{key: -i})
	}
	i := int64(0)
	for x := range c.All() {
		if x != i {
			t.Fatalf("value %d is %d", i, x)
		}
		i++
	}
	for p := range sorted.All() {
		if i--; p.key != -i {
			t.Fatalf("record %d is %v", i, p)
		}
	}
	if i != 0 || b.AtMost(99) != 100 {
		t.Errorf("%d records, %d numbers", i, b.AtMost(99))
	}
	if err := s.Err(); err != nil {
		t.Error(err)
	}
}

// What cannot be read again is an error, and no panic.
func TestUnreadable(t *testing.T) {
	s := NewSized(t.TempDir(), 0, 256)
	x, b := NewNumbers(s), NewBag[uint32](s)
	sorted := NewSorted(s, pairs())
	for i := range 10_000 {
		x.Add(float64(i))
		b.Add(uint32(i))
		sorted.Add(&pair{key: int64(i), id: 5, text: "text"})
	}
	if s.file == nil || s.Err() != nil {
		t.Fatal("nothing was written")
	}
	s.file.Close()
	x.Seek(1, 5000, 10_000)
	b.AtMost(5000)
	for range sorted.All() {
	}
	if s.Err() == nil {
		t.Error("no error")
	}
}

// The file is used again where it can be.
func TestFileDoesNotGrow(t *testing.T) {
	s := NewSized(t.TempDir(), 0, 1024)
	for range 100 {
		c := NewColumn[int64](s)
		for i := range int64(10_000) {
			c.Append(i)
		}
		c.Free()
	}
	if s.end > 80_000 || s.kept != 0 {
		t.Errorf("a file of %d bytes for 80,000, %d kept", s.end, s.kept)
	}
}

func BenchmarkRanks(b *testing.B) {
	const n = 1_000_000
	for _, limit := range []int64{0, 1 << 30} {
		b.Run(fmt.Sprint(limit), func(b *testing.B) {
			s := New(b.TempDir(), limit)
			for b.Loop() {
				rng := rand.New(rand.NewPCG(1, 1))
				x := NewNumbers(s)
				for range n {
					x.Add(math.Floor(1e8 + rng.ExpFloat64()*4e7))
				}
				x.Seek(1, n/2, n*9/10, n*99/100, n*999/1000, n)
				x.Free()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/number")
		})
	}
	b.Run("sorted", func(b *testing.B) {
		for b.Loop() {
			rng := rand.New(rand.NewPCG(1, 1))
			var x []float64
			for range n {
				x = append(x, math.Floor(1e8+rng.ExpFloat64()*4e7))
			}
			stats.SortFloat64(x)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/number")
	})
}

func BenchmarkSorted(b *testing.B) {
	const n = 1_000_000
	for _, limit := range []int64{0, 1 << 30} {
		b.Run(fmt.Sprint(limit), func(b *testing.B) {
			s := New(b.TempDir(), limit)
			for b.Loop() {
				rng := rand.New(rand.NewPCG(1, 1))
				x := NewSorted(s, pairs())
				for i := range int64(n) {
					x.Add(&pair{key: i + rng.Int64N(1000), id: i})
				}
				for range x.All() {
				}
				x.Free()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
		})
	}
}
