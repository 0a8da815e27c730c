package clock

import (
	"slices"
	"testing"
)

// report gives percentiles of a lateness in nanoseconds.
func report(b *testing.B, late []int64) {
	slices.Sort(late)
	n := len(late)
	b.ReportMetric(float64(late[n/2])/1e3, "p50-late-µs")
	b.ReportMetric(float64(late[min(n-1, n*99/100)])/1e3, "p99-late-µs")
}

func BenchmarkNow(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_ = Now()
	}
}
