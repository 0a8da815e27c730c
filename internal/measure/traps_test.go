package measure

import (
	"slices"
	"testing"

	"pitot/internal/data/metric"
	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/stat"
)

// The trap of intervals that are shown where they look good: a run that met no
// slow period has little spread, passes such a gate, and is the one that is
// wrong. What Pitot asks for (balance, and many residence times) must not pick
// runs by their luck: of the intervals that it prints, about as many hold the
// truth as of all. M/G/32 at 0.9, 5,000 requests a run; with 20,000, and 400
// runs: go run ./bench/stat -only gate.
func TestTrapIntervalsGatedOnLuck(t *testing.T) {
	if testing.Short() {
		t.Skip("a simulation on one goroutine, which the race detector only slows down")
	}
	t.Parallel()
	const utilisation, requests, runs = .9, 5_000, 40
	const begin = 50.
	const enough = 100 // independent samples: what the trap asks of a run
	seconds := begin + requests/(32*utilisation)
	setup := Setup{T0: begin * 1e9, T1: int64(seconds * 1e9), Residence: 1e9, Load: result.Load{Loop: "open"}}

	type interval struct {
		all, printed [2]float64
		shown, looks bool // printed by Pitot; looks good by its own spread
	}
	seen := map[string][]interval{}
	var took []float64
	for i := range runs {
		rows := queued(utilisation, seconds, 0, uint64(i))
		var ttft []float64
		for _, r := range rows {
			if r.Due >= setup.T0 && r.Due < setup.T1 {
				ttft = append(ttft, float64(r.FirstToken-r.Due)/1e6)
			}
		}
		took = append(took, ttft...)
		_, sd := stat.Moments(ttft)
		own, _ := stat.BatchMeans(ttft, batches, level)
		f := fold(setup, record.Frame{Rows: rows})
		printed := f.Point().Metrics.Of(metric.TTFT)
		f.conf = confidence{} // ask for nothing
		all := metricsOf([]*part{f.part(f.groups.list, nil)})[0].Of(metric.TTFT)
		for _, key := range []string{"mean", "p50"} {
			in := interval{all: all.CI95[key], looks: sd*sd >= enough*own.SE*own.SE}
			in.printed, in.shown = printed.CI95[key]
			seen[key] = append(seen[key], in)
		}
		if printed.NoInterval["p99"] == "" {
			t.Errorf("run %d: an interval of p99 from one load", i)
		}
	}
	truth := map[string]float64{}
	truth["mean"], _ = stat.Moments(took)
	slices.Sort(took)
	truth["p50"] = stat.Percentile(took, .5)
	for key, list := range seen {
		var all, printed, lucky, shown, looked float64
		for _, in := range list {
			count := func(v [2]float64, of bool, holds, n *float64) {
				if of {
					*n++
					if v[0] <= truth[key] && truth[key] <= v[1] {
						*holds++
					}
				}
			}
			var every float64
			count(in.all, true, &all, &every)
			count(in.printed, in.shown, &printed, &shown)
			count(in.all, in.looks, &lucky, &looked)
		}
		all, printed, lucky = all/runs, printed/max(shown, 1), lucky/max(looked, 1)
		t.Logf("%s: of all intervals %.0f %% hold the truth; Pitot prints %.0f %%, of which %.0f %% hold it; %.0f %% look good, of which %.0f %% do",
			key, 100*all, 100*shown/runs, 100*printed, 100*looked/runs, 100*lucky)
		if printed < all-.02 || shown < .9*runs {
			t.Errorf("%s: %.1f %% of all intervals hold the truth, %.1f %% of those printed, which are %.0f %%", key, 100*all, 100*printed, 100*shown/runs)
		}
		if looked == 0 || lucky > all-.1 {
			t.Errorf("%s: the trap is none here: of those that look good %.0f %% hold the truth, of all %.0f %%", key, 100*lucky, 100*all)
		}
	}
}
