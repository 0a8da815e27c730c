package stats

import "slices"

// SortStable sorts a list as [slices.SortStableFunc] does, by way of its indices. It compiles to a
// tenth of the code for each type, and takes memory: it is for lists of no great length.
func SortStable[T any](list []T, compare func(a, b T) int) {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return compare(list[i], list[j]) })
	before := append([]T(nil), list...)
	for i, from := range order {
		list[i] = before[from]
	}
}
