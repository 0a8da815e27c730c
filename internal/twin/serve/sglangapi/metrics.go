package sglangapi

import (
	"pitot/internal/twin"
	"pitot/internal/twin/serve/dialect"
	"pitot/internal/twin/serve/prom"
)

// Bucket limits of SGLang's histograms, as it has them by default.
var (
	ttftBuckets    = []float64{.1, .2, .4, .6, .8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400}
	e2eBuckets     = append(ttftBuckets[:len(ttftBuckets):len(ttftBuckets)], 600, 1200, 1800, 2400)
	itlBuckets     = []float64{.002, .004, .006, .008, .01, .015, .02, .025, .03, .035, .04, .06, .08, .1, .2, .4, .6, .8, 1, 2, 4, 6, 8}
	evictBuckets   = []float64{.001, .002, .003, .004, .005, .006, .007, .008, .009, .01, .02, .03, .04, .05, .1, .2, .5, 1}
	balanceBuckets = []float64{1, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10, 15, 20, 30, 45, 60}
	waitBuckets    = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1}
	queueBuckets   = []float64{0, .001, .005, .01, .05, .1, .2, .5, 1, 2, 3, 4, 5, 10, 15, 20, 30, 40, 50, 60, 70, 80, 90, 100,
		200, 300, 400, 500, 600, 700, 800, 900, 1000, 1200, 1400, 1600, 1800, 2000, 2500, 3000}
	tokenBuckets = []float64{100, 300, 500, 700, 1000, 1500, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10000, 12500, 15000, 17500,
		20000, 22500, 25000, 27500, 30000, 35000, 40000, 60000, 80000, 100000, 200000, 300000, 400000, 600000, 800000, 1e6, 1.1e6}
	stageBuckets = []float64{ // 0.001 times the powers of 1.62, as Python reckons them
		0.001, 0.0016200000000000001, 0.0026244000000000007, 0.004251528, 0.006887475360000002, 0.011157710083200004,
		0.018075490334784006, 0.029282294342350097, 0.047437316834607154, 0.07684845327206359, 0.12449449430074302,
		0.20168108076720373, 0.3267233508428701, 0.5292918283654495, 0.8574527619520282, 1.389073474362286,
		2.2502990284669036, 3.6454844261163837, 5.905684770308542, 9.567209327899839, 15.49887911119774, 25.10818416014034,
		40.67525833942735, 65.89391850987231, 106.74814798599316, 172.93199973730896, 280.1498395744405,
		453.84274011059364, 735.2252389791618, 1191.064887146242,
	}
)

// metrics counts what SGLang's collectors do: one for each engine's scheduler, and one in
// the process that takes requests, for all.
type metrics struct {
	api     *api
	engines []counter
}

// counter is of one engine.
type counter struct {
	tally
	given int // tokens of the last output
}

// tally holds the counts so far. It is copied as a whole.
type tally struct {
	streamed, whole way // by whether the answer is streamed
	cached          int64
	itl, prompt     prom.Histogram
	uncached, reply prom.Histogram
	queue, prefill  prom.Histogram
	received        prom.Histogram
}

// way holds the metrics that streams and other answers have separately.
type way struct {
	requests, prompt, output int64
	ttft, tpot, e2e          prom.Histogram
}

func (t *tally) tallyFor(stream bool) *way {
	if stream {
		return &t.streamed
	}
	return &t.whole
}

// Metrics implements [dialect.Dialect].
func (a *api) Metrics(engines int) dialect.Metrics {
	return &metrics{api: a, engines: make([]counter, engines)}
}

// Of implements [dialect.Metrics].
func (m *metrics) Of(engine int) dialect.Counter { return &m.engines[engine] }

// FirstToken implements [dialect.Counter].
func (m *counter) FirstToken(ttft float64, _, _ int, stream bool) {
	m.tallyFor(stream).ttft.Observe(ttftBuckets, ttft)
}

// Tokens implements [dialect.Counter].
func (m *counter) Tokens(n int) { m.given = n }

// NextTokens implements [dialect.Counter]: SGLang counts a gap for each token of an output.
func (m *counter) NextTokens(gap float64) {
	m.itl.ObserveN(itlBuckets, gap/float64(m.given), int64(m.given))
}

// Step implements [dialect.Counter].
func (m *counter) Step(int) {}

// Finished implements [dialect.Counter].
func (m *counter) Finished(f dialect.Finished) {
	w := m.tallyFor(f.Stream)
	w.requests++
	w.prompt += int64(f.PromptTokens)
	w.output += int64(f.Output)
	w.e2e.Observe(e2eBuckets, f.E2E)
	if f.Output > 1 {
		w.tpot.Observe(itlBuckets, f.PerToken)
	}
	m.cached += int64(f.PromptTokens - f.Computed)
	m.prompt.Observe(tokenBuckets, float64(f.PromptTokens))
	m.uncached.Observe(tokenBuckets, float64(f.Computed))
	m.reply.Observe(tokenBuckets, float64(f.Output))
	m.queue.Observe(queueBuckets, f.Queue)
	m.prefill.Observe(stageBuckets, f.Prefill)
	m.received.Observe(stageBuckets, 0) // the twin's engine queues a request when it hears of it
}

// BatchFinished implements [dialect.Counter].
func (m *counter) BatchFinished(int, int) {}

// reading is everything that /metrics shows of an engine.
type reading struct {
	tally
	engine twin.Stats
}

// Page implements [dialect.Metrics].
func (m *metrics) Page(engines []dialect.Reading, web *prom.HTTP) func() []byte {
	all := make([]reading, len(engines))
	for i := range all {
		all[i] = reading{tally: m.engines[i].tally, engine: engines[i].Stats}
		if s := &all[i].engine; s.Radix.Tokens == 0 { // another engine behind SGLang's face
			s.Radix.Computed, s.Radix.Found = s.PrefixQueries-s.PrefixHits, s.PrefixHits
		}
	}
	return func() []byte { return m.api.writeMetrics(all, web) }
}
