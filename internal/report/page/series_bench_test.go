package page

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"pitot/internal/results/record"
	"pitot/internal/results/result"
)

// BenchmarkReadSeries reads the run in PITOT_BENCH_RUN, beside what it takes
// only to read its records.
func BenchmarkReadSeries(b *testing.B) {
	dir := os.Getenv("PITOT_BENCH_RUN")
	if dir == "" {
		b.Skip("PITOT_BENCH_RUN names no run directory")
	}
	data, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err != nil {
		b.Fatal(err)
	}
	var run result.Run
	if err := json.Unmarshal(data, &run); err != nil {
		b.Fatal(err)
	}
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			for _, err := range record.FrameTimes(dir) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("series", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := ReadSeries(dir, &run); err != nil {
				b.Fatal(err)
			}
		}
	})
}
