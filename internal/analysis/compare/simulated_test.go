package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"pitot/bench/stat/queue"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// simulated is a side of five launches of a system that queues, near its
// limit, each of which differs by 3 % in speed.
func simulated(name string, factor float64, rng *rand.Rand) Side {
	s := Side{Name: name}
	for i := range 5 {
		q := queue.New(32, 0.8, rng.Uint64())
		q.Warm(20)
		speed := factor * math.Exp(0.03*rng.NormFloat64())
		const n = 1000
		first, whole := make([]float64, n), make([]float64, n)
		for k := range first {
			j := q.Next()
			first[k], whole[k] = speed*j.TTFT, speed*(j.TTFT+j.End-j.Start)
		}
		p := pointAt(25.6, 100)
		p.Metrics = result.MetricsOf(map[metric.Name]*result.Summary{metric.TTFT: ranked(first), metric.E2E: ranked(whole), metric.TPOT: ranked(whole), metric.Stall: ranked(first)})
		p.Throughput.OutputTokensPerS = ptr(1000 * math.Exp(0.03*rng.NormFloat64()))
		s.Runs = append(s.Runs, Source{fmt.Sprintf("%s/%d", name, i), runOf(fmt.Sprint(i), p)})
	}
	return s
}

func ranked(xs []float64) *result.Summary {
	slices.Sort(xs)
	return &result.Summary{N: int64(len(xs)), P50: ptr(stats.Percentile(xs, 0.5)), P99: ptr(stats.Percentile(xs, 0.99))}
}
