package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"pitot/bench/stat/queue"
	"pitot/internal/metrics"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/slo"
	"pitot/internal/stats"
)

// beginning is how a server starts out.
type beginning struct {
	name   string
	closed float64 // it serves nothing before this time, seconds
	cold   float64 // what it serves takes longer at first, up to twice, for about so many seconds
}

// settling is what the automatic warm-up leaves of a transient.
func settling() table {
	return table{
		name: "warmup",
		about: "What the automatic warm-up makes of loads of 300 s on M/G/32 from empty, a mean service being a second and the window planned from 5 s on. Stationary: no other transient. Cold: a service takes twice as long at first, which decays within 20 s. Autotune: nothing is served for the first 10 s. " +
			"Refused: not settled, so nothing is claimed of a steady state. Discarded: of the load, mean over the others. Bias: of the mean TTFT and of the share of TTFTs above their true 99th percentile, against a long run without a transient; in brackets that of the window as planned.",
		header: []string{"start", "utilisation", "refused", "discarded", "bias of TTFT", "(planned)", "bias of violations", "(planned)"},
		reps:   200,
		rows: func(reps int, seed uint64) (rows [][]string) {
			for _, b := range []beginning{{name: "stationary"}, {name: "cold", cold: 20}, {name: "autotune", closed: 10}} {
				for _, u := range []float64{0.5, 0.7, 0.8} {
					rows = append(rows, settlingRow(b, u, reps, seed))
				}
			}
			return rows
		},
	}
}

func settlingRow(b beginning, utilisation float64, reps int, seed uint64) []string {
	const seconds = 300
	long := queue.New(32, utilisation, seed)
	long.Warm(warmup)
	ttfts := long.TTFTs(enough(2_000_000, reps))
	mean, _ := stats.Moments(ttfts)
	stats.SortFloat64(ttfts)
	limit := stats.Percentile(ttfts, 0.99)
	objective, err := slo.Parse(fmt.Sprintf("p99 ttft<%.0fus", limit*1e6))
	if err != nil {
		panic(err)
	}
	type kept struct {
		refused                 bool
		discarded               float64
		found, planned          float64 // mean TTFT ÷ truth
		violations, violations0 float64 // share ÷ truth
	}
	all := make([]kept, reps)
	together(reps, func(r int) {
		q := queue.New(32, utilisation, seed+uint64(r)+1)
		q.Closed = b.closed
		if b.cold > 0 {
			q.Slower = func(start float64) float64 { return 1 + math.Exp(-start/b.cold) }
		}
		rows := recorded(q, seconds)
		againstTruth := func(from int64) (m, over float64) {
			var xs []float64
			for i := range rows {
				if rows[i].Due >= from {
					xs = append(xs, float64(rows[i].FirstToken-rows[i].Due)/1e9)
				}
			}
			m, _ = stats.Moments(xs)
			over, _ = stats.Moments(stats.MarkExceeding(xs, limit))
			return m / mean, over / 0.01
		}
		ended := slices.Clone(rows)
		slices.SortFunc(ended, func(a, b record.Row) int { return cmp.Compare(a.Done, b.Done) }) // as they are recorded
		setups := map[int32]metrics.Setup{0: {T0: 5e9, T1: seconds * 1e9, AutoWarmup: true, SLO: objective, Load: result.Load{Loop: "open"}}}
		metrics.SettleWindows(setups, func(yield func(record.Frame, error) bool) { yield(record.Frame{Rows: ended}, nil) })
		s := setups[0]
		k := kept{refused: s.Settling.Why != "", discarded: float64(s.T0) / float64(s.T1)}
		k.found, k.violations = againstTruth(s.T0)
		k.planned, k.violations0 = againstTruth(5e9)
		all[r] = k
	})
	var refused tally
	var discarded, found, planned, violations, violations0 []float64
	for _, k := range all {
		refused.count(k.refused)
		planned, violations0 = append(planned, k.planned), append(violations0, k.violations0)
		if !k.refused {
			discarded, found, violations = append(discarded, k.discarded), append(found, k.found), append(violations, k.violations)
		}
	}
	bias := func(xs []float64) string {
		m, _ := stats.Moments(xs)
		return fmt.Sprintf("%+.1f %%", 100*(m-1))
	}
	share, _ := stats.Moments(discarded)
	return []string{b.name, number(utilisation), refused.String(), fmt.Sprintf("%.1f %%", 100*share), bias(found), bias(planned), bias(violations), bias(violations0)}
}
