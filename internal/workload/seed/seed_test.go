package seed

import (
	"testing"

	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
)

// The first outputs of splitmix64 from state 1234567, as published with the
// reference implementation.
func TestRandReference(t *testing.T) {
	r := Rand(1234567)
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		if got := r.Uint64(); got != want {
			t.Errorf("draw %d = %d, want %d", i, got, want)
		}
	}
}

func TestAtGolden(t *testing.T) {
	for _, c := range []struct{ seed, stream, i, want uint64 }{
		{0, 0, 0, 0x33fe8bd4f9c57863},
		{1, 2, 3, 0x76e36d629cae6121},
	} {
		if got := At(c.seed, c.stream, c.i); got != c.want {
			t.Errorf("At(%d, %d, %d) = %#x, want %#x", c.seed, c.stream, c.i, got, c.want)
		}
	}
}

func TestStreamsAreApart(t *testing.T) {
	seen := map[uint64]bool{}
	for s := range uint64(10) {
		for stream := range uint64(10) {
			for i := range uint64(1000) {
				u := At(s, stream, i)
				if seen[u] {
					t.Fatalf("At(%d, %d, %d) repeats a number", s, stream, i)
				}
				seen[u] = true
			}
		}
	}
}

func TestFloatIsOpen(t *testing.T) {
	if lo, hi := Float(0), Float(^uint64(0)); lo <= 0 || hi >= 1 {
		t.Errorf("Float spans [%g, %g], want it inside (0, 1)", lo, hi)
	}
	rapid.Check(t, func(t *rapid.T) {
		u := rapid.Uint64().Draw(t, "u")
		if f := Float(u); f <= 0 || f >= 1 {
			t.Fatalf("Float(%d) = %g", u, f)
		}
	})
}
