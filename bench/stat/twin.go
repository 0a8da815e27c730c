package main

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"pitot/internal/loadgen"
	"pitot/internal/results/record"
	"pitot/internal/sim/deploy"
	"pitot/internal/workload"
)

// served is a deployment of the twin under one workload with limits: a system
// that batches, has a cache to fill and slows down in bursts, in virtual time.
type served struct {
	spec          string  // MODEL@GPU?settings
	input, output float64 // mean tokens, lognormal
	spread        float64 // coefficient of variation of the lengths, 0 for 0.5
	longest       int     // tokens of a prompt, 0 for no bound
	burst         float64 // squared coefficient of variation of the gaps between arrivals
	ttft, tpot    time.Duration
}

// run puts a rate, in requests a second, on the deployment: a warm-up, a
// window of n requests, and the load goes on until they have been answered.
func (s served) run(rate float64, n int, warmup float64, seed uint64) counted {
	d, err := deploy.Parse(s.spec)
	if err != nil {
		panic(err)
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	spread := cmp.Or(s.spread, 0.5)
	input, most := lognormal(s.input, spread), cmp.Or(s.longest, math.MaxInt)
	asked := &asked{rng: rng, input: func(r *rand.Rand) int { return min(input(r), most) }, output: lognormal(s.output, spread)}
	tap := &tap{served: s, from: int64(warmup * 1e9)}
	core := loadgen.NewCore(loadgen.Config{
		Arrivals: &gaps{rng: rand.New(rand.NewPCG(seed, 2)), rate: rate, shape: 1 / s.burst}, Warmup: tap.from, Requests: int64(n),
	})
	loadgen.Run(context.Background(), core, loadgen.NewVirtual(loadgen.VirtualConfig{Engine: d.Engine(seed), Source: asked, Sink: tap}))
	slices.SortFunc(tap.rows, func(a, b outcome) int { return cmp.Compare(a.id, b.id) })
	_, end := core.MeasuredWindow()
	c := counted{violations: make([]uint8, n), seconds: float64(end) / 1e9}
	for i, r := range tap.rows[:n] {
		c.violations[i] = r.violated
		c.residence += r.residence / float64(n)
	}
	return c
}

// lognormal draws token counts.
func lognormal(mean, cv float64) func(*rand.Rand) int {
	variance := math.Log1p(cv * cv)
	mu, sigma := math.Log(mean)-variance/2, math.Sqrt(variance)
	return func(rng *rand.Rand) int { return max(1, int(math.Exp(mu+sigma*rng.NormFloat64())+0.5)) }
}

// asked is a workload of lengths alone, each prompt new.
type asked struct {
	rng           *rand.Rand
	input, output func(*rand.Rand) int
}

// At implements [workload.Source]; it is asked in order.
func (a *asked) At(i int64) (workload.Request, error) {
	return workload.Request{ID: i, Input: a.input(a.rng), Output: a.output(a.rng), Exact: true, Session: workload.Unknown}, nil
}

// gaps are arrivals with gamma-distributed gaps.
type gaps struct {
	rng         *rand.Rand
	rate, shape float64
	now         float64 // seconds
}

// Next implements arrival.Process.
func (g *gaps) Next() int64 {
	gap := g.rng.ExpFloat64()
	if g.shape != 1 {
		gap = gamma(g.rng, g.shape) / g.shape
	}
	g.now += gap / g.rate
	return int64(g.now * 1e9)
}

// gamma draws from the gamma distribution of scale 1 (Marsaglia and Tsang, ACM
// Transactions on Mathematical Software 26, 2000).
func gamma(rng *rand.Rand, shape float64) float64 {
	if shape < 1 {
		return gamma(rng, shape+1) * math.Pow(rng.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := rng.NormFloat64()
		v := 1 + c*x
		if v = v * v * v; v > 0 && math.Log(rng.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}

// tap is a sink that keeps of each request which limits it violated.
type tap struct {
	served
	from int64 // begin of the window
	rows []outcome
}

type outcome struct {
	id        int64
	violated  uint8
	residence float64
}

// Chunk implements [record.Sink].
func (*tap) Chunk(record.Chunk) {}

// Done implements [record.Sink].
func (t *tap) Done(r *record.Row) {
	if r.Due < t.from {
		return
	}
	o := outcome{id: r.ID, residence: float64(r.LastToken-r.Due) / 1e9}
	if r.Outcome != record.OK || t.ttft > 0 && r.FirstToken-r.Due >= int64(t.ttft) {
		o.violated |= 1
	}
	if n := int64(r.CompletionTokens - r.FirstTokens); t.tpot > 0 && n > 0 && (r.LastToken-r.FirstToken)/n >= int64(t.tpot) {
		o.violated |= 2
	}
	t.rows = append(t.rows, o)
}
