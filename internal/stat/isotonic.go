package stat

// Isotonic gives the non-decreasing values nearest to ys in weighted least
// squares, by pooling adjacent violators (Barlow et al., "Statistical Inference
// under Order Restrictions", 1972). weights must be positive; nil weighs all
// alike.
func Isotonic(ys, weights []float64) []float64 {
	type pool struct {
		value, weight float64
		n             int
	}
	var pools []pool
	for i, y := range ys {
		next := pool{y, 1, 1}
		if weights != nil {
			next.weight = weights[i]
		}
		for len(pools) > 0 && pools[len(pools)-1].value >= next.value {
			last := pools[len(pools)-1]
			pools = pools[:len(pools)-1]
			w := last.weight + next.weight
			next = pool{(last.value*last.weight + next.value*next.weight) / w, w, last.n + next.n}
		}
		pools = append(pools, next)
	}
	out := make([]float64, 0, len(ys))
	for _, p := range pools {
		for range p.n {
			out = append(out, p.value)
		}
	}
	return out
}
