package serve

import (
	"pitot/internal/twin"
	"pitot/internal/twin/serve/prom"
)

// Bucket limits of vLLM 0.32's histograms (vllm/v1/metrics/buckets.py).
var (
	latencyBuckets    = []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	ttftBuckets       = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	itlBuckets        = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	iterationBuckets  = []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
	paramsNBuckets    = []float64{1, 2, 5, 10, 20}
	preemptionBuckets = []float64{1, 2, 3, 4, 5, 10, 20}
)

// tokenBuckets are 1, 2, 5, 10, … up to the longest a request can be.
func tokenBuckets(longest int) []float64 {
	var limits []float64
	for decade := 1; len(limits) < prom.MaxBuckets-3; decade *= 10 {
		for _, m := range []int{1, 2, 5} {
			if m*decade > longest {
				return limits
			}
			limits = append(limits, float64(m*decade))
		}
	}
	return limits
}

// tally is what the meter has counted so far.
type tally struct {
	promptTokens, cachedTokens, generationTokens int64
	success                                      [len(finishReasons)]int64

	promptLength, outputLength, iteration         prom.Histogram
	maxOutput, paramsN, paramsMaxTokens           prom.Histogram
	ttft, itl, tpot, e2e, queue, inference        prom.Histogram
	prefill, decode, preemptions, prefillComputed prom.Histogram
}

// finishReasons are the labels of request_success.
var finishReasons = [...]string{"stop", "length", "abort", "error", "repetition"}

// meter counts what vLLM's Prometheus logger counts (vllm/v1/metrics/stats.py,
// loggers.py), from the engine's emissions. It belongs to the engine's
// goroutine.
type meter struct {
	tally
	tokenLimits []float64
	look        twin.Observable // nil: the engine tells nothing
	ends        []int64         // of the steps whose tokens have not come yet
	iterating   int             // tokens of the last step that gave any
}

// newMeter watches an engine, if it lets itself be watched.
func newMeter(engine twin.Engine, maxModelLen int) *meter {
	m := &meter{tokenLimits: tokenBuckets(maxModelLen)}
	if m.look, _ = engine.(twin.Observable); m.look != nil {
		m.look.Watch(func(step twin.StepInfo) { m.ends = append(m.ends, step.End) })
	}
	return m
}

// iteration ends the count of a step's tokens: those computed of prompts that
// got their first token, and those generated.
func (m *meter) iteration() {
	if m.iterating > 0 {
		m.tally.iteration.Add(iterationBuckets, float64(m.iterating))
		m.iterating = 0
	}
}

// stepped is called after what an engine gave at once: of an engine without
// steps to watch that is a step.
func (m *meter) stepped() {
	if m.look == nil {
		m.iteration()
	}
}

// emission counts what the engine gave a choice. now is the real time.
func (m *meter) emission(s *Server, c *choice, e twin.Emission, now int64) {
	if e.Role {
		return
	}
	passed := 0
	for passed < len(m.ends) && m.ends[passed] <= e.At {
		passed++
	}
	if passed > 0 { // this is of a later step
		m.ends = m.ends[:copy(m.ends, m.ends[passed:])]
		m.iteration()
	}
	first := c.got == 0
	c.got += e.Tokens
	m.generationTokens += int64(e.Tokens)
	m.iterating += e.Tokens
	if first {
		c.began = e.At
		m.firstToken(c, now)
	} else {
		m.itl.Add(itlBuckets, seconds(s.scale.real(e.At)-s.scale.real(c.at)))
	}
	c.at = e.At
	if e.Finish != "" {
		m.finished(s, c, e, now)
	}
}

// firstToken counts a prompt that is done with. An engine tells of the tokens
// it found cached when it admits a request; they are set off against the
// prompts in the order in which these are done, so that the counts agree.
func (m *meter) firstToken(c *choice, now int64) {
	m.ttft.Add(ttftBuckets, seconds(now-c.st.truth.ArrivalNS))
	cached := 0
	if m.look != nil {
		cached = int(min(m.look.Stats().PrefixHits-m.cachedTokens, int64(c.prompt.tokens)))
	}
	m.promptTokens += int64(c.prompt.tokens)
	m.cachedTokens += int64(cached)
	m.iterating += c.prompt.tokens - cached
}

// finished counts a request that has run to its end. Of those that were
// aborted vLLM counts nothing.
func (m *meter) finished(s *Server, c *choice, e twin.Emission, now int64) {
	t := twin.Trace{Arrived: s.scale.engine(c.st.truth.ArrivalNS), First: c.began, Last: e.At}
	t.Queued, t.Scheduled = t.Arrived, t.Arrived
	if e.Trace != nil {
		t = *e.Trace
	}
	took := func(from, to int64) float64 { return seconds(s.scale.real(to) - s.scale.real(from)) }
	decode := took(t.First, t.Last)
	for i, reason := range finishReasons {
		if reason == c.ends(e.Finish) {
			m.success[i]++
		}
	}
	m.e2e.Add(latencyBuckets, seconds(now-c.st.truth.ArrivalNS))
	m.queue.Add(latencyBuckets, took(t.Queued, t.Scheduled))
	m.prefill.Add(latencyBuckets, took(t.Scheduled, t.First))
	m.inference.Add(latencyBuckets, took(t.Scheduled, t.Last))
	m.decode.Add(latencyBuckets, decode)
	perToken := 0.0
	if c.got > 1 {
		perToken = decode / float64(c.got-1)
	}
	m.tpot.Add(itlBuckets, perToken)
	m.preemptions.Add(preemptionBuckets, float64(t.Preemptions))
	m.prefillComputed.Add(m.tokenLimits, float64(c.prompt.tokens-t.Cached))
	m.promptLength.Add(m.tokenLimits, float64(c.prompt.tokens))
	m.outputLength.Add(m.tokenLimits, float64(c.got))
	m.paramsMaxTokens.Add(m.tokenLimits, float64(c.st.tpl.limit))
	b := c.batch
	b.most = max(b.most, c.got)
	if b.left--; b.left == 0 {
		m.paramsN.Add(paramsNBuckets, float64(b.n))
		m.maxOutput.Add(m.tokenLimits, float64(b.most))
	}
}

func seconds(ns int64) float64 { return float64(max(ns, 0)) / 1e9 }

// reading is everything that /metrics shows.
type reading struct {
	tally
	engine twin.Stats
}

// reading is taken by the engine's goroutine, between two steps.
func (s *Server) reading() reading {
	m := s.meter
	r := reading{tally: m.tally}
	if m.look != nil {
		r.engine = m.look.Stats()
	} else {
		r.engine.Running = len(s.jobs)
	}
	if m.iterating > 0 { // of the last step
		r.tally.iteration.Add(iterationBuckets, float64(m.iterating))
	}
	return r
}

// metrics answers /metrics.
func (s *Server) metrics() reply {
	s.run()
	look := make(chan reading, 1)
	s.inbox.put(message{kind: observe, look: look})
	select {
	case r := <-look:
		return reply{status: 200, kind: "text/plain; version=1.0.0; charset=utf-8", body: s.expose(r)}
	case <-s.stopped:
		return failure(503, "The server is shutting down.")
	}
}
