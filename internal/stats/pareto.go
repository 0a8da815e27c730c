package stats

import (
	"cmp"
	"slices"
)

// Pareto gives the indices of the points that no other beats in both gain and
// cost, by falling gain. Of equal points the first stays.
func Pareto(gain, cost []float64) []int {
	order := make([]int, min(len(gain), len(cost)))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(gain[j], gain[i]), cmp.Compare(cost[i], cost[j]))
	})
	var front []int
	for _, i := range order {
		if len(front) == 0 || cost[i] < cost[front[len(front)-1]] {
			front = append(front, i)
		}
	}
	return front
}
