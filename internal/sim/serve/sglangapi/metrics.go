package sglangapi

import (
	"pitot/internal/sim"
	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/prom"
)

// Limits of the histograms.
var (
	ttftBuckets  = layout.Buckets["ttft"]
	e2eBuckets   = layout.Buckets["e2e"]
	itlBuckets   = layout.Buckets["itl"]
	evictBuckets = layout.Buckets["evict"]
	queueBuckets = layout.Buckets["queue"]
	tokenBuckets = layout.Buckets["token"]
	stageBuckets = layout.Buckets["stage"]
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

func (w *way) add(o *way) {
	w.requests += o.requests
	w.prompt += o.prompt
	w.output += o.output
	w.ttft.Add(&o.ttft)
	w.tpot.Add(&o.tpot)
	w.e2e.Add(&o.e2e)
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
	engine sim.Stats
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
