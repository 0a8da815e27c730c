package stats

// BinomialCDF is P(B ≤ k) for B ~ Bin(n, p), as the incomplete beta function
// I_{1−p}(n−k, k+1).
func BinomialCDF(k, n int64, p float64) float64 {
	switch {
	case k < 0:
		return 0
	case k >= n:
		return 1
	}
	return IncompleteBeta(1-p, float64(n-k), float64(k+1))
}

// BinomialTail is P(B > k) for B ~ Bin(n, p), exact where 1 − BinomialCDF
// cancels.
func BinomialTail(k, n int64, p float64) float64 {
	switch {
	case k < 0:
		return 1
	case k >= n:
		return 0
	}
	return IncompleteBeta(p, float64(k+1), float64(n-k))
}
