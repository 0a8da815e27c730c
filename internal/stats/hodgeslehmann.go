package stats

import (
	"math"
	"slices"
)

// Shift is by how much one sample lies above another, whatever the shape of
// both.
type Shift struct {
	Estimate float64
	Interval
	Reason string // why there is no interval; empty if there is one
}

// HodgesLehmann is the median of the differences b − a over all pairs, with the
// interval that inverts the Mann-Whitney test (Hodges and Lehmann, Annals of
// Mathematical Statistics 34, 1963; Hollander, Wolfe and Chicken,
// "Nonparametric Statistical Methods", 2014, section 4.3). One outlier does not
// move it. Ties make the interval a little too wide.
func HodgesLehmann(a, b []float64, level float64) Shift {
	if len(a) == 0 || len(b) == 0 {
		return Shift{Reason: "a sample is empty"}
	}
	deltas := make([]float64, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			deltas = append(deltas, y-x)
		}
	}
	slices.Sort(deltas)
	s := Shift{Estimate: median(deltas)}
	k := 0 // the largest with P(U < k) ≤ (1−level)/2
	for k < len(deltas)/2 && mannWhitneyCDF(k, len(a), len(b)) <= tailProbability(level) {
		k++
	}
	if k == 0 {
		s.Reason = "too few values for an interval at this level"
		return s
	}
	s.Interval = Interval{deltas[k-1], deltas[len(deltas)-k]}
	return s
}

// mannWhitneyCDF is P(U ≤ u) for samples of m and n values of one
// distribution without ties: exact while the counts fit a float64, else by the
// normal approximation.
func mannWhitneyCDF(u, m, n int) float64 {
	if m+n > 50 {
		mean := float64(m) * float64(n) / 2
		sd := math.Sqrt(mean * float64(m+n+1) / 6)
		return NormalCDF((float64(u) + 0.5 - mean) / sd)
	}
	// The counts are the coefficients of Π (1−q^{n+i})/(1−q^i), i = 1…m.
	counts := make([]float64, m*n+1)
	counts[0] = 1
	for i := 1; i <= m; i++ {
		for j := m * n; j >= n+i; j-- {
			counts[j] -= counts[j-n-i]
		}
		for j := i; j <= m*n; j++ {
			counts[j] += counts[j-i]
		}
	}
	var below, all float64
	for j, c := range counts {
		if j <= u {
			below += c
		}
		all += c
	}
	return below / all
}
