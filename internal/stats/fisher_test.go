package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Tails of hypergeometric distributions that are counted by hand: of the 70 ways to lay four
// successes among eight trials of which four are the first group's, 1 has all four there and
// 16 have three (Fisher's tea).
func TestMoreOften(t *testing.T) {
	for _, c := range []struct {
		k, n, j, m int
		want       float64
	}{
		{4, 4, 0, 4, 1. / 70}, {3, 4, 1, 4, 17. / 70}, {0, 4, 0, 4, 1}, {0, 9, 5, 9, 1}, {1, 1, 0, 0, 1}, {10, 10, 0, 10, 1. / 184756},
	} {
		if got := MoreOften(c.k, c.n, c.j, c.m); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%d of %d, %d of %d: %g, want %g", c.k, c.n, c.j, c.m, got, c.want)
		}
	}
}

// One stratum is Fisher's test; strata that differ are no finding, however they are mixed, and
// one that has nothing to compare changes nothing.
func TestMoreOftenIn(t *testing.T) {
	one := Compared{3, 4, 1, 4}
	for _, c := range []struct {
		strata []Compared
		want   float64
	}{
		{nil, 1}, {[]Compared{one}, 17. / 70}, {[]Compared{one, {5, 9, 0, 0}}, 17. / 70},
		{[]Compared{{4, 4, 0, 4}, {4, 4, 0, 4}}, 1. / 4900},
		{[]Compared{one, one}, (16*16 + 2*1*16 + 1 + 2*1*36) / 4900.}, // 6 or more of 4+3, 3+3, 4+2
	} {
		if got := MoreOftenIn(c.strata); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v: %g, want %g", c.strata, got, c.want)
		}
	}
	mixed := []Compared{{400, 1000, 8, 20}, {0, 10, 0, 60}} // 40 % wrong in one kind, none in the other
	if p := MoreOftenIn(mixed); p < 0.2 {
		t.Errorf("kinds mixed otherwise: %g", p)
	}
	if p := MoreOften(400, 1010, 8, 80); p > 1e-6 {
		t.Errorf("pooled: %g", p)
	}
}

// DetectableShare is where the exact test's power reaches what is asked, by simulation of the test.
func TestDetectableShare(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ n, j, m int }{{120, 0, 80}, {40, 0, 48}, {300, 3, 80}, {89, 0, 24}} {
		chance, ok := DetectableShare(c.n, c.j, c.m, .01, .8)
		if !ok {
			t.Fatalf("%+v: never", c)
		}
		told, reps := 0, 3000
		for range reps {
			k := 0
			for range c.n {
				if r.Float64() < chance {
					k++
				}
			}
			if MoreOften(k, c.n, c.j, c.m) < .01 {
				told++
			}
		}
		if got := float64(told) / float64(reps); math.Abs(got-.8) > .03 {
			t.Errorf("%+v: a chance of %.3g is told in %.3g of loads", c, chance, got)
		}
	}
	if _, ok := DetectableShare(3, 0, 3, .01, .8); ok {
		t.Error("three answers tell")
	}
}
