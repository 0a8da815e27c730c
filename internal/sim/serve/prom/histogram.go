package prom

// MaxBuckets is the maximum number of bucket limits in a histogram.
const MaxBuckets = 48

// Histogram counts values in buckets; which limits they have is known to who
// adds and shows them. It is copied as a whole.
type Histogram struct {
	counts [MaxBuckets + 1]int64 // the last that is used: over all limits
	n      int64
	sum    float64
}

// Observe counts a value. limits are the same on every call.
func (h *Histogram) Observe(limits []float64, v float64) { h.ObserveN(limits, v, 1) }

// ObserveN counts a value that came n times.
func (h *Histogram) ObserveN(limits []float64, v float64, n int64) {
	i := 0
	for i < len(limits) && v > limits[i] {
		i++
	}
	h.counts[i] += n
	h.n += n
	h.sum += v * float64(n)
}

// N returns the number of values counted.
func (h *Histogram) N() int64 { return h.n }

// Add adds what another counted in the same buckets.
func (h *Histogram) Add(o *Histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.n += o.n
	h.sum += o.sum
}
