package stat

import (
	"math"
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
