package metrics

import (
	"testing"

	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// The trap of intervals that are shown where they look good: a run that met no
// slow period has little spread, passes such a gate, and is the one that is
// wrong. Pitot prints none of a window that is short beside what the queue remembers.
// M/G/32 at 0.9, 5,000 requests a run; with 20,000, and 400 runs:
// go run ./bench/stat -only gate.
func TestTrapIntervalsGatedOnLuck(t *testing.T) {
	if testing.Short() {
		t.Skip("a simulation on one goroutine, which the race detector only slows down")
	}
	t.Parallel()
	const utilisation, requests, runs = .9, 5_000, 25
	const begin = 50.
	const enough = 100 // independent samples: what the trap asks of a run
	seconds := begin + requests/(32*utilisation)
	setup := Setup{T0: begin * 1e9, T1: int64(seconds * 1e9), Residence: 1e9, Load: result.Load{Loop: "open"}}

	type interval struct {
		own, printed [2]float64
		shown, looks bool // printed by Pitot; looks good by its own spread
	}
	var seen []interval
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
		_, sd := stats.Moments(ttft)
		own, _ := stats.BatchMeans(ttft, batches, level)
		f := fold(setup, record.Frame{Rows: rows})
		printed := f.Point().Metrics.SummaryOf(metric.TTFT)
		in := interval{own: [2]float64{own.Lo, own.Hi}, looks: sd*sd >= enough*own.SE*own.SE}
		in.printed, in.shown = printed.CI95[metric.Mean]
		seen = append(seen, in)
	}
	truth, _ := stats.Moments(took)
	var all, printed, lucky, shown, looked float64
	for _, in := range seen {
		holds := func(v [2]float64) float64 {
			if v[0] <= truth && truth <= v[1] {
				return 1
			}
			return 0
		}
		all += holds(in.own) / runs
		if in.shown {
			shown++
			printed += holds(in.printed)
		}
		if in.looks {
			looked++
			lucky += holds(in.own)
		}
	}
	printed, lucky = printed/max(shown, 1), lucky/max(looked, 1)
	t.Logf("of all intervals of ten batches %.0f %% hold the truth, of the %.0f %% that look good %.0f %%; Pitot prints %.0f %%, of which %.0f %% hold it",
		100*all, 100*looked/runs, 100*lucky, 100*shown/runs, 100*printed)
	if shown > .1*runs {
		t.Errorf("Pitot prints %.0f of %d intervals", shown, runs)
	}
	if looked == 0 || lucky > all-.1 {
		t.Errorf("the trap is none here: of those that look good %.0f %% hold the truth, of all %.0f %%", 100*lucky, 100*all)
	}
}
