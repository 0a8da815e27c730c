package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"pitot/internal/loadgen"
	"pitot/internal/metrics"
	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/sim/deploy"
	"pitot/internal/stats"
)

// intervals are those that one run prints, over systems that are drawn.
func intervals() table {
	return table{
		name: "intervals",
		about: fmt.Sprintf("The intervals of one run, by the code that measures, of %d systems drawn by the seed: deployments of the twin and servers of seats, "+
			"with 4 to 64 seats or more, lengths of coefficients of variation from 0.3 to 1.5, Poisson arrivals and arrivals in bursts (gamma(0.25) and gamma(0.5)). "+
			"A window has 300 to 6,000 requests and lasts at least 100 times what a request takes alone; it begins after 20 of these times. "+
			"Truth: all of 5 (of the twin) or 15 runs of 20,000 requests. Shown: the share of runs that have an interval. Holds: of these, how many hold the truth. "+
			"Half-width: the median over the truth. Spread: the median of the half-width over that of a perfect interval, 1.96 standard deviations of the value over the runs of its system. "+
			"The two constants, how many memories a window has to have and how far a mean wait reaches upwards, were chosen on 24 other systems.", drawnSeats+drawnTwins),
		header: []string{"of", "utilisation", "shown", "holds", "half-width", "÷ spread"},
		reps:   30,
		slow:   true,
		rows:   intervalRows,
	}
}

// How many systems of each kind are drawn.
const drawnSeats, drawnTwins = 18, 6

// runSystem gives rows of so many requests due after a warm-up, in seconds.
type runSystem func(rate, warmup float64, n int, seed uint64) []record.Row

// intervalCase counts one value at one utilisation.
type intervalCase struct {
	Shown, Holds   tally
	Below, Above   tally // that the interval lies wholly below the truth, or above
	Widths, Spread []float64
}

var (
	intervalMetrics      = []metric.Name{metric.TTFT, metric.TPOT, metric.E2E}
	intervalKeys         = []string{metric.Mean, "p50", "p95", "p99"}
	intervalUtilisations = []float64{0.5, 0.7, 0.85, 0.95}
)

func intervalRows(reps int, seed uint64) (rows [][]string) {
	found := make([]map[string]*intervalCase, drawnSeats+drawnTwins)
	together(len(found), func(i int) {
		found[i] = piece(fmt.Sprintf("intervals of one run %d %d %d", i, reps, seed), func() map[string]*intervalCase { return drawnIntervals(i, reps, seed) })
	})
	for _, name := range intervalMetrics {
		for _, key := range intervalKeys {
			for _, u := range intervalUtilisations {
				var all intervalCase
				for _, cases := range found {
					if c := cases[intervalKey(name, key, u)]; c != nil {
						all.Shown.Held, all.Shown.Of = all.Shown.Held+c.Shown.Held, all.Shown.Of+c.Shown.Of
						all.Holds.Held, all.Holds.Of = all.Holds.Held+c.Holds.Held, all.Holds.Of+c.Holds.Of
						all.Widths, all.Spread = append(all.Widths, c.Widths...), append(all.Spread, c.Spread...)
					}
				}
				row := []string{string(name) + " " + key, number(u), all.Shown.String(), all.Holds.String(), percent(all.Widths), "none"}
				if len(all.Spread) > 0 {
					row[5] = fmt.Sprintf("%.2f", median(all.Spread))
				}
				rows = append(rows, row)
			}
		}
	}
	return rows
}

func intervalKey(name metric.Name, key string, utilisation float64) string {
	return fmt.Sprintf("%s %s %g", name, key, utilisation)
}

// drawnIntervals measures one system at each utilisation.
func drawnIntervals(i, reps int, seed uint64) map[string]*intervalCase {
	rng := rand.New(rand.NewPCG(seed*1000+uint64(i), 0x72756e73))
	run, long := drawRunSystem(rng, i >= drawnSeats)
	capacity := saturatedRate(run)
	alone := 0.0
	for _, r := range run(capacity/200, 0, 300, 5) {
		alone += float64(r.LastToken-r.Due) / 1e9 / 300
	}
	least := int(300 * math.Pow(20, rng.Float64()))
	cases := map[string]*intervalCase{}
	for _, u := range intervalUtilisations {
		n := max(least, int(100*alone*u*capacity)+1)
		if n > 12_000 { // too many to repeat
			continue
		}
		measureIntervals(run, u, u*capacity, alone, n, long, reps, cases)
	}
	return cases
}

// longRun is how many requests a long run has.
const longRun = 20_000

// drawRunSystem draws a server of seats or a deployment, and says how many long runs tell the truth
// of it.
func drawRunSystem(rng *rand.Rand, twin bool) (run runSystem, long int) {
	one := func(list ...float64) float64 { return list[rng.IntN(len(list))] }
	within := func(lo, hi float64) float64 { return lo + (hi-lo)*rng.Float64() }
	spread, shape := one(0.3, 0.5, 1, 1.5), one(0.25, 0.5, 1, 1, 1, 1)
	if twin {
		specs := []string{"mistral-7b@a10g", "llama-3.1-8b@l40s", "llama-3.1-8b@h100", "qwen3-14b@a100", "qwen3-32b@h100", "llama-3.1-8b@l4"}
		s := served{spec: fmt.Sprintf("%s?max_num_seqs=%g", specs[rng.IntN(len(specs))], one(8, 12, 16, 32, 64, 256)), spread: spread, burst: 1 / shape,
			input: one(100, 300, 1000, 2000), output: one(20, 40, 100, 200)}
		return s.records, 5
	}
	input, output := one(200, 500, 1000, 2000), one(20, 60, 150)
	r := &seatServer{Server: drawSeats(rng, input, output), Input: input, Output: output, Spread: spread, Shape: shape}
	r.Server.Many, r.Server.Jitter = int(one(4, 8, 16, 32, 64)), within(0.02, 0.3)
	hold := output * (r.Server.Alone + r.Server.Busy*float64(r.Server.Many))
	r.Server.Prompt = within(0.2, 1.3) * hold / float64(r.Server.Many) / input
	return r.records, 15
}

// saturatedRate is what a system serves, in requests a second, of a load that is too much for it.
func saturatedRate(run runSystem) (rate float64) {
	for _, load := range []struct {
		times float64
		n     int
	}{{400, 600}, {1.4, 3000}} {
		asked := load.times
		if rate > 0 {
			asked *= rate
		}
		var ends []int64
		for _, r := range run(asked, 0, load.n, 9) {
			ends = append(ends, r.LastToken)
		}
		slices.Sort(ends)
		from, to := len(ends)/4, len(ends)*3/4
		rate = float64(to-from) / (float64(ends[to]-ends[from]) / 1e9)
	}
	return rate
}

// measureIntervals counts the intervals of runs at one rate.
func measureIntervals(run runSystem, utilisation, rate, alone float64, n, long, reps int, cases map[string]*intervalCase) {
	truth, samples := map[string]float64{}, map[metric.Name][]float64{}
	for k := range long {
		rows := run(rate, 100*alone, longRun, 1_000_003+uint64(k))
		for i := range rows {
			q := metrics.OfRow(&rows[i])
			for _, name := range intervalMetrics {
				if x := q.Value(name); !math.IsNaN(x) {
					samples[name] = append(samples[name], x/1e6)
				}
			}
		}
	}
	for _, name := range intervalMetrics {
		xs := samples[name]
		stats.SortFloat64(xs)
		mean, _ := stats.Moments(xs)
		for i, key := range intervalKeys {
			truth[intervalKey(name, key, utilisation)] = []float64{mean, stats.Percentile(xs, 0.5), stats.Percentile(xs, 0.95), stats.Percentile(xs, 0.99)}[i]
		}
	}
	values := map[string][]float64{}
	halves := map[string][]float64{}
	for rep := range reps {
		rows := run(rate, 20*alone, n, uint64(rep)+uint64(1000*utilisation)<<20)
		f := metrics.NewFold(metrics.Setup{T0: int64(20 * alone * 1e9), T1: rows[n-1].Due + 1, Residence: int64(alone * 1e9), Stamps: "virtual", Load: result.Load{Loop: "open", Rate: &rate}})
		f.Add(record.Frame{Rows: rows})
		p := f.Point()
		for _, name := range intervalMetrics {
			summary := p.Metrics.SummaryOf(name)
			for _, at := range intervalKeys {
				key := intervalKey(name, at, utilisation)
				c := cases[key]
				if c == nil {
					c = &intervalCase{}
					cases[key] = c
				}
				if x := summary.Value(at); x != nil {
					values[key] = append(values[key], *x)
				}
				v, shown := summary.CI95[at]
				c.Shown.count(shown)
				if shown {
					c.Holds.count(v[0] <= truth[key] && truth[key] <= v[1])
					halves[key] = append(halves[key], (v[1]-v[0])/2)
				}
			}
		}
	}
	for key, list := range halves {
		_, sd := stats.Moments(values[key])
		for _, half := range list {
			cases[key].Widths = append(cases[key].Widths, half/truth[key])
			cases[key].Spread = append(cases[key].Spread, half/(1.96*sd))
		}
	}
}

// records are the rows of a server of seats.
func (r *seatServer) records(rate, warmup float64, n int, seed uint64) []record.Row {
	l, from := r.draw(rate, warmup, n, seed)
	rows := make([]record.Row, n)
	for i, t := range r.Server.serve(l, seed)[from:] {
		q := record.BlankRow()
		q.ID, q.Stream, q.Outcome, q.Status = int64(i), true, record.OK, 200
		q.Due = int64(l.due[from+i] * 1e9)
		q.Eligible, q.Ready, q.Sent = q.Due, q.Due, q.Due
		q.FirstToken, q.LastToken = q.Due+int64(t.ttft*1e9), q.Due+int64(t.e2e*1e9)
		q.FirstAnswer, q.Headers, q.Done = q.FirstToken, q.FirstToken, q.LastToken
		q.CompletionTokens, q.FirstTokens = int32(l.answer[from+i])+1, 1
		rows[i] = q
	}
	return rows
}

// rowSink keeps the rows of requests that come due in a window.
type rowSink struct {
	from int64
	rows []record.Row
}

// Chunk implements [record.Sink].
func (*rowSink) Chunk(record.Chunk) {}

// Done implements [record.Sink].
func (s *rowSink) Done(r *record.Row) {
	if r.Due >= s.from {
		s.rows = append(s.rows, *r)
	}
}

// records are the rows of a deployment.
func (s served) records(rate, warmup float64, n int, seed uint64) []record.Row {
	d, err := deploy.Parse(s.spec)
	if err != nil {
		panic(err)
	}
	sink := &rowSink{from: int64(warmup * 1e9)}
	source := &asked{rng: rand.New(rand.NewPCG(seed, 1)), input: lognormal(s.input, s.spread), output: lognormal(s.output, s.spread)}
	core := loadgen.NewCore(loadgen.Config{
		Arrivals: &gaps{rng: rand.New(rand.NewPCG(seed, 2)), rate: rate, shape: 1 / s.burst}, Warmup: sink.from, Requests: int64(n),
	})
	loadgen.Run(context.Background(), core, loadgen.NewVirtual(loadgen.VirtualConfig{Engine: d.Engine(seed), Source: source, Sink: sink}))
	slices.SortFunc(sink.rows, func(a, b record.Row) int { return int(a.Due - b.Due) })
	return sink.rows[:n]
}
