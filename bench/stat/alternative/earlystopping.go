package alternative

import (
	"sort"

	"pitot/internal/stats"
)

// EarlyStopping is how many requests it takes to say, at the given confidence,
// that the p-quantile meets its limit when `over` of them exceeded it: the
// bound of MLPerf Inference, h + over with the smallest h for which
// P(Bin(h+over, 1−p) ≤ over) ≤ 1 − confidence (MLCommons, "Inference Rules",
// section "Early Stopping Criterion"). It holds for independent requests and
// for one look. ok is false where no number is enough: p or confidence of 1.
func EarlyStopping(over int, p, confidence float64) (n int, ok bool) {
	if over < 0 || !(p < 1 && confidence < 1) {
		return 0, false
	}
	met := func(h int) bool {
		return stats.BinomialCDF(int64(over), int64(h+over), 1-p) <= 1-confidence
	}
	most := 1
	for !met(most) {
		most *= 2
	}
	return over + sort.Search(most, met), true
}
