package serve

import (
	"net/http"
	"strings"

	"pitot/internal/sim"
	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/prom"
)

// meter makes of the engine's emissions what the metrics count, of several engines by
// itself for each. It belongs to the engine's goroutine.
type meter struct {
	to      dialect.Metrics
	engines []gauge
}

// gauge is of one engine.
type gauge struct {
	to        dialect.Counter
	look      sim.Observable // nil: the engine tells nothing
	ends      []int64        // of the steps whose tokens have not come yet
	iterating int            // tokens of the last step that gave any
	cached    int64          // tokens of prompts that were found in the prefix cache
}

// observableEngines are the engines that tell of themselves: those of several, or the one; nil
// for one that tells nothing.
func observableEngines(e sim.Engine) []sim.Observable {
	if several, ok := e.(sim.Replicated); ok {
		return several.Replicas()
	}
	look, _ := e.(sim.Observable)
	return []sim.Observable{look}
}

// mostEnds is the maximum number of steps whose tokens have not come.
const mostEnds = 1 << 10

// newMeter watches engines, as far as they let themselves be watched.
func newMeter(to dialect.Metrics, engines []sim.Observable) *meter {
	m := &meter{to: to, engines: make([]gauge, len(engines))}
	for i, look := range engines {
		g := &m.engines[i]
		g.to, g.look = to.Of(i), look
		if look != nil {
			look.Watch(func(step sim.StepInfo) {
				if len(g.ends) == mostEnds { // of an engine that gives no tokens, as one that prefills for others
					g.ends = g.ends[:0]
				}
				g.ends = append(g.ends, step.End)
			})
		}
	}
	return m
}

// endIteration ends the count of a step's tokens: those computed of prompts that
// got their first token, and those generated.
func (m *gauge) endIteration() {
	if m.iterating > 0 {
		m.to.Step(m.iterating)
		m.iterating = 0
	}
}

// endStep is called after what an engine gave at once: of an engine without
// steps to watch that is a step.
func (m *meter) endStep() {
	for i := range m.engines {
		if g := &m.engines[i]; g.look == nil {
			g.endIteration()
		}
	}
}

// countEmission counts what an engine gave a choice. now is the real time.
func (m *meter) countEmission(s *Server, c *choice, e sim.Emission, now int64) {
	m.engines[e.Engine].countEmission(s, c, e, now)
}

func (m *gauge) countEmission(s *Server, c *choice, e sim.Emission, now int64) {
	if e.Role {
		return
	}
	passed := 0
	for passed < len(m.ends) && m.ends[passed] <= e.At {
		passed++
	}
	if passed > 0 { // this is of a later step
		m.ends = m.ends[:copy(m.ends, m.ends[passed:])]
		m.endIteration()
	}
	first := c.got == 0
	c.got += e.Tokens
	m.to.Tokens(e.Tokens)
	m.iterating += e.Tokens
	if first {
		c.began = e.At
		m.firstToken(c, now)
	} else {
		m.to.NextTokens(seconds(s.scale.realTime(e.At) - s.scale.realTime(c.at)))
	}
	c.at = e.At
	if e.Finish != "" {
		m.countFinished(s, c, e, now)
	}
}

// firstToken counts a prompt that is done with. An engine tells of the tokens
// it found cached when it admits a request; they are set off against the
// prompts in the order in which these are done, so that the counts agree.
func (m *gauge) firstToken(c *choice, now int64) {
	cached := 0
	if m.look != nil {
		cached = int(min(m.look.Stats().PrefixHits-m.cached, int64(c.job.Prompt)))
	}
	m.cached += int64(cached)
	m.iterating += c.job.Prompt - cached
	m.to.FirstToken(seconds(now-c.st.truth.ArrivalNS), c.job.Prompt, cached, c.st.streamed)
}

// countFinished counts a choice that has run to its end.
func (m *gauge) countFinished(s *Server, c *choice, e sim.Emission, now int64) {
	t := sim.Trace{Arrived: s.scale.engineTime(c.st.truth.ArrivalNS), First: c.began, Last: e.At}
	t.Queued, t.Scheduled = t.Arrived, t.Arrived
	if e.Trace != nil {
		t = *e.Trace
	}
	took := func(from, to int64) float64 { return seconds(s.scale.realTime(to) - s.scale.realTime(from)) }
	f := dialect.Finished{
		Reason: c.st.writer.Finish(c.index, e.Finish), Stream: c.st.streamed,
		E2E: seconds(now - c.st.truth.ArrivalNS), Queue: took(t.Queued, t.Scheduled), Prefill: took(t.Scheduled, t.First),
		Inference: took(t.Scheduled, t.Last), Decode: took(t.First, t.Last),
		PromptTokens: c.job.Prompt, Computed: c.job.Prompt - t.Cached, Output: c.got, Limit: c.job.Limit, Preemptions: t.Preemptions,
	}
	if c.got > 1 {
		f.PerToken = f.Decode / float64(c.got-1)
	}
	m.to.Finished(f)
	b := c.batch
	b.most = max(b.most, c.got)
	if b.left--; b.left == 0 {
		m.to.BatchFinished(b.n, b.most)
	}
}

func seconds(ns int64) float64 { return float64(max(ns, 0)) / 1e9 }

// metricsPage gives what writes the page of metrics of now. It is asked for by the
// engine's goroutine, between two steps.
func (s *Server) metricsPage() func() []byte {
	readings := make([]dialect.Reading, len(s.meter.engines))
	for i := range readings {
		g := &s.meter.engines[i]
		readings[i] = dialect.Reading{Stats: sim.Stats{Running: len(s.jobs)}, InStep: g.iterating}
		if q, ok := s.cfg.Engine.(sim.Queueing); ok {
			readings[i].Running, readings[i].Waiting = q.Queue()
		}
		if g.look != nil {
			readings[i].Stats = g.look.Stats()
		}
	}
	return s.meter.to.Page(readings, &s.web)
}

// answerMetrics answers /metrics.
func (s *Server) answerMetrics() dialect.Reply {
	s.startGoroutines()
	page := make(chan func() []byte, 1)
	s.inbox.post(message{kind: observe, page: page})
	select {
	case write := <-page:
		return dialect.Reply{Status: http.StatusOK, Type: "text/plain; version=1.0.0; charset=utf-8", Body: write()}
	case <-s.stopped:
		return s.dialect.Refuse(dialect.ShuttingDown)
	}
}

// countExchange counts an exchange, unless it only looked after the server or had no
// key: that is turned away before anything counts. It is of no route where the
// method is not one of it; one that is sent on is of the path that was asked, if
// that has no more than one slash too many.
func (s *Server) countExchange(x prom.Exchange) {
	r, known := s.routes[strings.TrimRight(x.Route, "/")]
	switch moved := x.Status == http.StatusTemporaryRedirect; {
	case !known || x.Status == http.StatusMethodNotAllowed,
		strings.HasSuffix(x.Route, "/") && (!moved || strings.HasSuffix(x.Route, "//")):
		x.Route = ""
	}
	if x.Status != http.StatusUnauthorized && !r.Uncounted {
		s.web.Count(x)
	}
}
