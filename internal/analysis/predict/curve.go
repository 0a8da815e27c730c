package predict

import (
	"context"
	"math"
	"time"

	"pitot/internal/cost"
	"pitot/internal/loadgen"
	"pitot/internal/metrics"
	"pitot/internal/results/record"
	"pitot/internal/sim"
	"pitot/internal/sim/deploy"
	"pitot/internal/workload"
)

// Expected holds what the twin does under a number of users. Each user waits for the answer before
// the next request.
type Expected struct {
	Users int `json:"concurrency"`

	TTFT           Quantities   `json:"ttft_ms"`
	TPOT           Quantities   `json:"tpot_ms"`
	E2E            Quantities   `json:"e2e_ms"`
	RequestsPerS   float64      `json:"requests_per_s"`
	OutputTokens   float64      `json:"output_tokens_per_s"`
	Running        float64      `json:"mean_running"`  // requests
	Waiting        float64      `json:"mean_waiting"`  // requests
	KVUsage        float64      `json:"mean_kv_usage"` // 0 to 1
	Preemptions    int64        `json:"preemptions"`
	USDPerMOutput  float64      `json:"usd_per_m_output"` // 0 if no price is known
	BoundTPOT      float64      `json:"bound_tpot_ms"`    // no engine is faster
	BoundRequests  float64      `json:"bound_requests_per_s"`
	Limit          deploy.Limit `json:"limit"`
	MeanStep       float64      `json:"mean_step_ms"`
	MeanStepTokens float64      `json:"mean_step_tokens"`
	// Error is the error to expect of it, of a fitted deployment.
	Error *deploy.ExpectedError `json:"error_to_expect,omitempty"`
}

// ConcurrencyLadder is the concurrencies of a curve: 1, 2, 4, … up to one beyond what
// the deployment runs at once.
func ConcurrencyLadder(d *deploy.Deployment, input, output int) []int {
	_, run := d.CountSequences(input + output)
	var l []int
	for n := 1; n <= 1<<12; n *= 2 {
		l = append(l, n)
		if n >= run*d.DataParallel {
			break
		}
	}
	return l
}

// Curve is the twin's expectation at each concurrency, for requests that share
// nothing.
func Curve(d *deploy.Deployment, input, output workload.Lengths, users []int) []Expected {
	list := make([]Expected, len(users))
	for i, n := range users {
		s := simulation{d: d, asked: [2]workload.Lengths{input, output}, input: meanLength(input), output: meanLength(output), users: n, count: max(10*n, 500)}
		if d.Settings.SlowCV > 0 { // many phases, for a mean of few is their own
			phases := 50 * d.Settings.SlowTime.Seconds() / d.Residence(s.input, s.output, n).Seconds()
			s.count = max(s.count, int(min(phases*float64(n), 10_000)))
		}
		list[i] = s.run()
	}
	return list
}

// meanLength is the mean of lengths in tokens.
func meanLength(l workload.Lengths) int { return max(int(math.Round(l.Mean())), 1) }

// simulation is one closed loop on the engine in virtual time: the load is that
// of a run, decided by the same core.
type simulation struct {
	d             *deploy.Deployment
	asked         [2]workload.Lengths // of prompts and of answers
	input, output int                 // their means
	users         int
	count         int // requests that are due in the window

	core     *loadgen.Core
	gatherer *metrics.Gatherer
	ended    []answer // requests that ended well

	preempt          func() int64 // how often the engine has preempted so far
	earlier, latest  int64        // the same when the window began, and at its latest step
	steps            int64
	busy             float64 // ns
	running, waiting float64 // these three weighted by the steps' durations
	kv               float64
	through, served  float64 // tokens and requests of all steps
}

// step adds up a step of the window.
func (s *simulation) step(i sim.StepInfo) {
	if t0, t1 := s.core.MeasuredWindow(); i.Start < t0 || i.Start >= t1 {
		return
	}
	if s.steps == 0 {
		s.earlier = s.preempt()
	}
	w := float64(i.End - i.Start)
	s.latest = s.preempt()
	s.steps++
	s.busy += w
	s.running += w * float64(i.Running)
	s.waiting += w * float64(i.Waiting)
	s.kv += w * i.KVCacheUsage
	s.through += float64(i.Tokens)
	s.served += float64(i.Requests)
}

// requestLengths are those of a request; they end with the model's context. They
// cover their distributions evenly, so that a few hundred have their means: the
// additive recurrence of the plastic number (Roberts, "The unreasonable
// effectiveness of quasirandom sequences", 2018).
func (s *simulation) requestLengths(id int64) (input, output int) {
	steps := [2]uint64{0xc13fa9a902a6328f, 0x91e10da5c79e7b1c} // 2⁶⁴ ÷ 1.3247…, and once more
	draw := func(k int) int { return s.asked[k].Draw(uint64(id+1) * steps[k]) }
	most := s.d.Settings.MaxModelLen
	input = min(draw(0), most-1)
	return input, min(draw(1), most-input)
}

// At implements [workload.Source].
func (s *simulation) At(id int64) (workload.Request, error) {
	input, output := s.requestLengths(id)
	return workload.Request{ID: id, Input: input, Output: output, Exact: true, Session: workload.Unknown}, nil
}

// answer is a request that ended well: when it was due and had its last token, in
// nanoseconds, its tokens, and what is measured of it.
type answer struct {
	due, last int64
	tokens    float64
	timing
}

// Chunk implements [record.Sink].
func (*simulation) Chunk(record.Chunk) {}

// Done implements [record.Sink].
func (s *simulation) Done(r *record.Row) {
	if r.Outcome == record.OK {
		q := s.gatherer.Request(new(metrics.Stream), r) // its gaps are not used
		s.ended = append(s.ended, answer{r.Due, r.LastToken, float64(q.OutputTokens()), timingOf(&q, r.Sent)})
	}
}

func (s *simulation) run() Expected {
	e := s.d.Engine(1)
	e.Watch(s.step)
	s.preempt = func() int64 { return e.Stats().Preemptions }
	alone := int64(s.d.Residence(s.input, s.output, 1))
	s.gatherer = metrics.NewGatherer(nil)
	s.core = loadgen.NewCore(loadgen.Config{Users: s.users, Stagger: alone, Warmup: alone, Settle: true, Requests: int64(s.count)})
	loadgen.Run(context.Background(), s.core, loadgen.NewVirtual(loadgen.VirtualConfig{Engine: e, Source: s, Sink: s}))
	return s.expectedValues()
}

func (s *simulation) expectedValues() Expected {
	x := Expected{Users: s.users, Preemptions: s.latest - s.earlier}
	t0, t1 := s.core.MeasuredWindow()
	var ttft, tpot, e2e []float64
	var shares, tokens float64
	for _, a := range s.ended {
		if a.due >= t1 || a.last <= t0 {
			continue
		}
		// One counts with the share of its time that lies in the window, so that
		// none is cut by an end of it: the requests per second are then those of
		// whole answers, and Little's law holds.
		share := float64(min(a.last, t1)-max(a.due, t0)) / float64(a.last-a.due)
		shares += share
		tokens += share * a.tokens
		if a.due < t0 {
			continue
		}
		ttft, e2e = append(ttft, a.ttft*ms), append(e2e, a.e2e*ms)
		if a.tpot >= 0 {
			tpot = append(tpot, a.tpot*ms)
		}
	}
	x.TTFT, x.TPOT, x.E2E = quantities(ttft), quantities(tpot), quantities(e2e)
	if seconds := float64(t1-t0) / 1e9; seconds > 0 {
		x.RequestsPerS, x.OutputTokens = shares/seconds, tokens/seconds
		price := cost.Price{GPU: cost.GPU{Hour: s.d.USDPerHour}}
		if bill, ok := price.Bill(s.d.GPUs(), nil, cost.Rates{Output: &x.OutputTokens}); ok && bill.MOutput != nil {
			x.USDPerMOutput = *bill.MOutput
		}
	}
	if s.steps > 0 {
		while := s.busy
		if s.d.IsReplicated() { // of all engines together, over all the time
			while = float64(t1 - t0)
		}
		x.Running, x.Waiting, x.KVUsage = s.running/while, s.waiting/while, s.kv/s.busy
		x.MeanStep, x.MeanStepTokens = s.busy/float64(s.steps)/1e6, s.through/float64(s.steps)
	}
	s.setBounds(&x)
	x.Limit = s.findLimit(&x)
	return x
}

// meanContext returns the number of tokens that a request looks back on in the middle of its
// answer.
func (s *simulation) meanContext() float64 { return float64(s.input) + float64(s.output)/2 }

// setBounds sets the values that no engine could improve on with as many requests at once.
func (s *simulation) setBounds(x *Expected) {
	engines := float64(min(s.d.DataParallel, s.users)) // that have something to do at best
	each := int(math.Round(max(x.Running/engines, 1)))
	x.BoundTPOT = s.d.DecodeFloor(each, s.meanContext()) * 1e3
	// A request costs computing for its prompt and its answer, and its share
	// of what the steps of its answer read; the first token comes of the prompt.
	// The two may overlap, so the longer of them is what no engine can avoid.
	compute := float64(s.input+s.output-1) * s.d.Bounds().PrefillToken
	users := float64(s.users) / engines
	read := float64(s.output-1) * s.d.DecodeFloor(int(math.Round(users)), s.meanContext()) / users
	x.BoundRequests = engines / max(compute, read)
}

// findLimit says what holds the deployment back.
func (s *simulation) findLimit(x *Expected) deploy.Limit {
	switch {
	case x.Waiting >= 1 && x.Running > 0.97*float64(s.d.DataParallel*s.d.Settings.MaxNumSeqs):
		return s.d.SeatsLimit()
	case x.Waiting >= 1 && x.KVUsage > 0.85 || x.Preemptions > int64(s.count/50):
		return deploy.KVCapacity
	case s.frontendShare(x) > 0.9:
		return deploy.Frontend
	}
	rows := int(math.Round(s.served / max(float64(s.steps), 1)))
	tokens := int(math.Round(x.MeanStepTokens))
	batch := sim.Batch{Requests: rows, Tokens: tokens, Logits: rows, Decodes: rows, DecodeContext: int64(float64(rows) * s.meanContext()), Drafts: s.d.Settings.DraftsFor(rows)}
	if tokens > rows {
		batch.Prefills = []sim.Chunk{{New: tokens - rows}}
	}
	return s.d.Bound(&batch)
}

// frontendShare is the share of its time that the API server works, of several engines that of
// each.
func (s *simulation) frontendShare(x *Expected) float64 {
	f := s.d.Settings.Frontend
	request := f.PerRequest + time.Duration(s.input)*f.PerPromptToken + time.Duration(s.output)*f.PerChunk
	steps := 0.0
	if x.MeanStep > 0 {
		steps = 1e3 / x.MeanStep
	}
	return x.RequestsPerS/float64(s.d.DataParallel)*request.Seconds() + steps*f.PerStep.Seconds()
}
