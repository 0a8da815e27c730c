package stats

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// SortStable orders every list as package slices does.
func TestSortStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type pair struct{ Key, Place int }
		var list []pair
		for i, key := range rapid.SliceOf(rapid.IntRange(0, 5)).Draw(t, "keys") {
			list = append(list, pair{key, i})
		}
		byKey := func(a, b pair) int { return cmp.Compare(a.Key, b.Key) }
		want := slices.Clone(list)
		slices.SortStableFunc(want, byKey)
		if SortStable(list, byKey); !slices.Equal(list, want) {
			t.Fatalf("%v, want %v", list, want)
		}
	})
}
