package metric

import "pitot/internal/stats"

// Percentile is one of those that are reported of every distribution.
type Percentile struct {
	Key  string  // in run.json: "p99_9"
	Name string  // as users write it: "p99.9"
	P    float64 // as a fraction
}

// Percentiles lists them.
func Percentiles() []Percentile {
	return []Percentile{{"p50", "p50", .5}, {"p90", "p90", .9}, {"p95", "p95", .95}, {"p99", "p99", .99}, {"p99_9", "p99.9", .999}}
}

// SamplesNeeded returns the numbers of samples that the percentile needs. It is withheld below few
// and marked below firm.
func (p Percentile) SamplesNeeded() (few, firm int64) { return stats.SamplesNeeded(p.P) }

// PercentileOf gives the one of a key or a name.
func PercentileOf(word string) (p Percentile, ok bool) {
	for _, p := range Percentiles() {
		if p.Key == word || p.Name == word {
			return p, true
		}
	}
	return p, false
}

// Statistics that are no percentiles.
const (
	Mean  = "mean"  // of a distribution
	Value = "value" // of what has one value in a window
)
