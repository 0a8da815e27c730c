package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"pitot/internal/loadgen"
	"pitot/internal/metrics"
	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/sim/deploy"
)

// lockstep is what comes of how the users of a closed loop begin.
func lockstep() table {
	return table{
		name: "lockstep",
		about: "Closed loops on the twin, by how their users begin. At once: as with --warmup 0s. Alone: spread over the time that one request takes alone. Pitot: as the load lets them. Random: as Pitot, and answers of half to one and a half times the length, which keeps users apart by itself. " +
			"TTFT in ms: mean over the repetitions of the run's p50 and p99, and the smallest and largest p50. Flagged: by the check lock-step.",
		header: []string{"deployment", "input/output", "users", "begin", "p50", "of all runs", "p99", "flagged"},
		reps:   10,
		rows: func(reps int, seed uint64) (rows [][]string) {
			for _, c := range crowds() {
				for _, begin := range []string{"at once", "alone", "Pitot", "random"} {
					rows = append(rows, c.row(begin, reps, seed))
				}
			}
			return rows
		},
	}
}

// crowd is a closed loop on the twin.
type crowd struct {
	spec                 string
	input, output, users int
}

func crowds() []crowd {
	return []crowd{
		{"llama-3.1-8b@h100", 512, 64, 128},
		{"llama-3.1-8b@h100", 512, 64, 32},
		{"llama-3.1-8b@h100", 512, 64, 8},
		{"llama-3.1-8b@h100", 1024, 128, 256},
		{"llama-3.1-8b@h100", 4096, 128, 32},
		{"llama-3.1-8b@h100?max_num_seqs=16", 512, 64, 32},
		{"llama-3.1-70b@4xh100", 1000, 300, 64},
	}
}

func (c crowd) row(begin string, reps int, seed uint64) []string {
	p50s, p99s := make([]float64, reps), make([]float64, reps)
	flags := make([]bool, reps)
	together(reps, func(r int) {
		p := c.run(begin, seed+uint64(r))
		p50s[r], p99s[r] = *p.Metrics.SummaryOf(metric.TTFT).P50, *p.Metrics.SummaryOf(metric.TTFT).P99
		for _, check := range p.Checks {
			flags[r] = flags[r] || check.Name == "lock-step" && check.Status != "pass"
		}
	})
	var flagged tally
	for _, is := range flags {
		flagged.count(is)
	}
	return []string{c.spec, fmt.Sprintf("%d/%d", c.input, c.output), fmt.Sprint(c.users), begin, fmt.Sprintf("%.0f", average(p50s)),
		fmt.Sprintf("%.0f–%.0f", slices.Min(p50s), slices.Max(p50s)), fmt.Sprintf("%.0f", average(p99s)), flagged.String()}
}

// run measures twenty cycles of a closed loop.
func (c crowd) run(begin string, seed uint64) result.Point {
	d, err := deploy.Parse(c.spec)
	if err != nil {
		panic(err)
	}
	alone := int64(d.Residence(c.input, c.output, 1))
	cycle := int64(d.Residence(c.input, c.output, c.users)) * int64(max(1, c.users/d.Settings.MaxNumSeqs))
	cfg := loadgen.Config{Users: c.users, Warmup: 12 * cycle, Window: 20 * cycle, Stagger: alone}
	switch begin {
	case "at once":
		cfg.Stagger = 0
	case "alone":
		cfg.Begun = alone
	}
	vary := 0.
	if begin == "random" {
		vary = .5
	}
	source := &asked{rng: rand.New(rand.NewPCG(seed, 1)), input: func(*rand.Rand) int { return c.input },
		output: func(rng *rand.Rand) int { return max(1, int(float64(c.output)*(1+vary*(2*rng.Float64()-1))+.5)) }}
	var out rowsOnly
	loadgen.Run(context.Background(), loadgen.NewCore(cfg), loadgen.NewVirtual(loadgen.VirtualConfig{Engine: d.Engine(seed), Source: source, Sink: &out}))
	f := metrics.NewFold(metrics.Setup{T0: cfg.Warmup, T1: cfg.Warmup + cfg.Window, Residence: alone, Stamps: "virtual",
		Load: result.Load{Loop: "closed", Concurrency: &c.users}})
	f.Add(record.Frame{Rows: out.rows})
	return f.Point()
}

// rowsOnly keeps the requests of a load without their chunks.
type rowsOnly struct{ rows []record.Row }

// Chunk implements [record.Sink].
func (*rowsOnly) Chunk(record.Chunk) {}

// Done implements [record.Sink].
func (r *rowsOnly) Done(row *record.Row) { r.rows = append(r.rows, *row) }
