package stats

import "slices"

// Holm gives p-values adjusted for their number, in the order given: those
// below α are significant, with a probability of at most α that any of them is
// false (Holm, Scandinavian Journal of Statistics 6, 1979).
func Holm(ps []float64) []float64 {
	order := make([]int, len(ps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case ps[i] < ps[j]:
			return -1
		case ps[i] > ps[j]:
			return 1
		}
		return 0
	})
	out := make([]float64, len(ps))
	largest := 0.0
	for rank, i := range order {
		largest = max(largest, min(1, float64(len(ps)-rank)*ps[i]))
		out[i] = largest
	}
	return out
}
