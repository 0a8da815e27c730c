package vllmapi

import (
	"pitot/internal/sim"
	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/prom"
)

// Limits of the histograms.
var (
	latencyBuckets    = layout.Buckets["latency"]
	ttftBuckets       = layout.Buckets["ttft"]
	itlBuckets        = layout.Buckets["itl"]
	iterationBuckets  = layout.Buckets["iteration"]
	paramsNBuckets    = layout.Buckets["params_n"]
	preemptionBuckets = layout.Buckets["preemptions"]
)

// maxTokenBuckets bounds the limits of lengths: more than any model can have.
const maxTokenBuckets = 29

// tokenBuckets are 1, 2, 5, 10, … up to the longest a request can be.
func tokenBuckets(longest int) []float64 {
	var limits []float64
	for decade := 1; len(limits) < maxTokenBuckets; decade *= 10 {
		for _, m := range []int{1, 2, 5} {
			if m*decade > longest {
				return limits
			}
			limits = append(limits, float64(m*decade))
		}
	}
	return limits
}

// finishReasons are the labels of request_success.
var finishReasons = [...]string{"stop", "length", "abort", "error", "repetition"}

// metrics counts what vLLM's Prometheus logger counts (vllm/v1/metrics/stats.py,
// loggers.py), of each engine by itself.
type metrics struct {
	api     *api
	engines []counter
}

// counter is of one engine.
type counter struct {
	tokenLimits []float64
	tally
}

// tally holds the counts so far. It is copied as a whole.
type tally struct {
	promptTokens, cachedTokens, generationTokens int64
	success                                      [len(finishReasons)]int64

	promptLength, outputLength, iteration         prom.Histogram
	maxOutput, paramsN, paramsMaxTokens           prom.Histogram
	ttft, itl, tpot, e2e, queue, inference        prom.Histogram
	prefill, decode, preemptions, prefillComputed prom.Histogram
}

// Metrics implements [dialect.Dialect].
func (a *api) Metrics(engines int) dialect.Metrics {
	m := &metrics{api: a, engines: make([]counter, engines)}
	for i := range m.engines {
		m.engines[i].tokenLimits = tokenBuckets(a.MaxModelLen)
	}
	return m
}

// Of implements [dialect.Metrics].
func (m *metrics) Of(engine int) dialect.Counter { return &m.engines[engine] }

// FirstToken implements [dialect.Counter].
func (m *counter) FirstToken(ttft float64, prompt, cached int, _ bool) {
	m.ttft.Observe(ttftBuckets, ttft)
	m.promptTokens += int64(prompt)
	m.cachedTokens += int64(cached)
}

// Tokens implements [dialect.Counter].
func (m *counter) Tokens(n int) { m.generationTokens += int64(n) }

// NextTokens implements [dialect.Counter].
func (m *counter) NextTokens(gap float64) { m.itl.Observe(itlBuckets, gap) }

// Step implements [dialect.Counter].
func (m *counter) Step(tokens int) { m.iteration.Observe(iterationBuckets, float64(tokens)) }

// Finished implements [dialect.Counter]. Of those that were aborted vLLM counts
// nothing.
func (m *counter) Finished(f dialect.Finished) {
	for i, reason := range finishReasons {
		if reason == f.Reason {
			m.success[i]++
		}
	}
	m.e2e.Observe(latencyBuckets, f.E2E)
	m.queue.Observe(latencyBuckets, f.Queue)
	m.prefill.Observe(latencyBuckets, f.Prefill)
	m.inference.Observe(latencyBuckets, f.Inference)
	m.decode.Observe(latencyBuckets, f.Decode)
	m.tpot.Observe(itlBuckets, f.PerToken)
	m.preemptions.Observe(preemptionBuckets, float64(f.Preemptions))
	m.prefillComputed.Observe(m.tokenLimits, float64(f.Computed))
	m.promptLength.Observe(m.tokenLimits, float64(f.PromptTokens))
	m.outputLength.Observe(m.tokenLimits, float64(f.Output))
	m.paramsMaxTokens.Observe(m.tokenLimits, float64(f.Limit))
}

// BatchFinished implements [dialect.Counter].
func (m *counter) BatchFinished(n, longest int) {
	m.paramsN.Observe(paramsNBuckets, float64(n))
	m.maxOutput.Observe(m.tokenLimits, float64(longest))
}

// Page implements [dialect.Metrics].
func (m *metrics) Page(engines []dialect.Reading, web *prom.HTTP) func() []byte {
	all := make([]reading, len(engines))
	for i := range all {
		all[i] = reading{tally: m.engines[i].tally, engine: engines[i].Stats}
		if n := engines[i].InStep; n > 0 {
			all[i].iteration.Observe(iterationBuckets, float64(n))
		}
	}
	limits := m.engines[0].tokenLimits
	return func() []byte { return m.api.writeMetrics(all, limits, web) }
}

// reading is everything that /metrics shows of an engine.
type reading struct {
	tally
	engine sim.Stats
}
