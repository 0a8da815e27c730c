package prom

// MaxBuckets is how many limits a histogram can have.
const MaxBuckets = 32

// Histogram counts values in buckets; which limits they have is known to who
// adds and shows them. It is copied as a whole.
type Histogram struct {
	counts [MaxBuckets + 1]int64 // the last that is used: over all limits
	n      int64
	sum    float64
}

// Observe counts a value. limits are the same on every call.
func (h *Histogram) Observe(limits []float64, v float64) {
	i := 0
	for i < len(limits) && v > limits[i] {
		i++
	}
	h.counts[i]++
	h.n++
	h.sum += v
}
