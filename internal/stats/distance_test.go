package stats

import (
	"testing"
)

// The distance is where the shares differ most, ties counted once.
func TestDistance(t *testing.T) {
	for _, c := range []struct {
		x, y []int
		want float64
	}{
		{[]int{1, 2, 3, 4}, []int{1, 2, 3, 4}, 0},
		{[]int{1, 1, 1, 5}, []int{1, 5, 5, 5}, .5},
		{[]int{1, 2}, []int{3, 4, 5}, 1},
		{[]int{1, 2, 3, 4}, []int{3}, .5},
	} {
		if d, back := KSDistance(c.x, c.y), KSDistance(c.y, c.x); d != c.want || back != c.want {
			t.Errorf("%v and %v: %g, back %g, want %g", c.x, c.y, d, back, c.want)
		}
	}
}
