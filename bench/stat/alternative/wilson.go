// Package alternative holds the methods that Pitot's own are measured against:
// what others use for shares, means and stopping. The product calls none of
// them.
package alternative

import (
	"math"

	"pitot/internal/stats"
)

// Wilson is the score interval of a share of hits among n (Wilson, JASA 22,
// 1927), with n taken as n/phi for over-dispersed counts; phi below 1 counts
// as 1. For a one-sided limit, see [stats.OneSided]. No samples give [0, 1].
func Wilson(hits, n int, phi, level float64) stats.Interval {
	if n < 1 {
		return stats.Interval{Hi: 1}
	}
	m := float64(n) / max(phi, 1)
	p := float64(hits) / float64(n)
	z := stats.NormalQuantile(1 - (1-level)/2)
	centre := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	v := stats.Interval{Lo: max(0, centre-half), Hi: min(1, centre+half)}
	if hits == 0 {
		v.Lo = 0 // exactly, not but for rounding
	}
	if hits == n {
		v.Hi = 1
	}
	return v
}
