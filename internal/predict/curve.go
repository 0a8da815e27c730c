package predict

import (
	"math"
	"time"

	"pitot/internal/twin"
	"pitot/internal/twin/deploy"
	"pitot/internal/twin/vllm"
)

// Expected is what the twin does while so many users ask, each of whom waits
// for the answer before asking again.
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
}

// Ladder is the concurrencies of a curve: 1, 2, 4, … up to one beyond what
// the deployment runs at once.
func Ladder(d *deploy.Deployment, input, output int) []int {
	_, run := d.Sequences(input + output)
	var l []int
	for n := 1; n <= 1<<12; n *= 2 {
		l = append(l, n)
		if n >= run {
			break
		}
	}
	return l
}

// Curve is the twin's expectation at each concurrency, for requests of one
// length that share nothing.
func Curve(d *deploy.Deployment, input, output int, users []int) []Expected {
	list := make([]Expected, len(users))
	for i, n := range users {
		s := simulation{d: d, e: d.Engine(1), input: input, output: output, users: n, warm: 2 * n, count: max(4*n, 40)}
		if d.Settings.SlowCV > 0 { // many phases, for a mean of few is their own
			phases := 50 * d.Settings.SlowTime.Seconds() / d.Residence(input, output, n).Seconds()
			s.count = max(s.count, int(min(phases*float64(n), 10_000)))
		}
		list[i] = s.run()
	}
	return list
}

// simulation is one load on the engine in virtual time.
type simulation struct {
	d             *deploy.Deployment
	e             *vllm.Engine
	input, output int // tokens of each request
	users         int
	warm, count   int // requests before the measured ones, and these

	done             int
	begin, end       int64 // ends of the first and the last measured request
	ttft, tpot, e2e  []float64
	steps            int64
	busy             float64 // ns
	running, waiting float64 // these three weighted by the steps' durations
	kv               float64
	tokens, requests float64
}

// measuring says whether what happens now counts.
func (s *simulation) measuring() bool { return s.done >= s.warm && s.done < s.warm+s.count }

// step adds up a step.
func (s *simulation) step(i twin.StepInfo) {
	if !s.measuring() {
		return
	}
	w := float64(i.End - i.Start)
	s.steps++
	s.busy += w
	s.running += w * float64(i.Running)
	s.waiting += w * float64(i.Waiting)
	s.kv += w * i.KVCacheUsage
	s.tokens += float64(i.Tokens)
	s.requests += float64(i.Requests)
}

func (s *simulation) run() Expected {
	s.e.Watch(s.step)
	sent, now := int64(0), int64(0)
	ask := func(at int64) {
		s.e.Add(at, twin.Job{ID: sent, Prompt: s.input, Output: s.output})
		sent++
	}
	for range s.users {
		ask(0)
	}
	firsts := map[int64]int64{}
	preemptions := int64(0)
	for s.done < s.warm+s.count {
		step := s.e.Step(now)
		now = step.End
		for _, o := range step.Out {
			if _, ok := firsts[o.ID]; !ok {
				firsts[o.ID] = o.At
			}
			if o.Trace == nil {
				continue
			}
			if s.done == s.warm {
				s.begin, preemptions = o.At, s.e.Stats().Preemptions
			}
			if s.measuring() {
				s.end = o.At
				s.answer(o.Trace.Arrived, firsts[o.ID], o.At)
			}
			delete(firsts, o.ID)
			s.done++
			ask(now)
		}
	}
	return s.expected(s.e.Stats().Preemptions - preemptions)
}

// answer adds a measured request.
func (s *simulation) answer(arrived, first, last int64) {
	s.ttft = append(s.ttft, float64(first-arrived)/1e6)
	s.e2e = append(s.e2e, float64(last-arrived)/1e6)
	if s.output > 1 {
		s.tpot = append(s.tpot, float64(last-first)/1e6/float64(s.output-1))
	}
}

func (s *simulation) expected(preemptions int64) Expected {
	x := Expected{
		Users: s.users, Preemptions: preemptions,
		TTFT: quantities(s.ttft), TPOT: quantities(s.tpot), E2E: quantities(s.e2e),
	}
	if seconds := float64(s.end-s.begin) / 1e9; seconds > 0 {
		x.RequestsPerS = float64(s.count-1) / seconds
		x.OutputTokens = x.RequestsPerS * float64(s.output)
		x.USDPerMOutput = s.d.USDPerHour * float64(s.d.TensorParallel) / 3600 / x.OutputTokens * 1e6
	}
	if s.steps > 0 {
		x.Running, x.Waiting, x.KVUsage = s.running/s.busy, s.waiting/s.busy, s.kv/s.busy
		x.MeanStep, x.MeanStepTokens = s.busy/float64(s.steps)/1e6, s.tokens/float64(s.steps)
	}
	s.bound(&x)
	x.Limit = s.limit(&x)
	return x
}

// context is how many tokens a request looks back on in the middle of its
// answer.
func (s *simulation) context() float64 { return float64(s.input) + float64(s.output)/2 }

// bound is what no engine could do better with as many requests at once.
func (s *simulation) bound(x *Expected) {
	x.BoundTPOT = s.d.DecodeFloor(int(math.Round(max(x.Running, 1))), s.context()) * 1e3
	// A request costs computing for its prompt and its answer, and its share
	// of what the steps of its answer read. The two may overlap, so the
	// longer of them is what no engine can avoid.
	compute := float64(s.input+s.output) * s.d.Bounds().PrefillToken
	read := float64(s.output) * s.d.DecodeFloor(s.users, s.context()) / float64(s.users)
	x.BoundRequests = 1 / max(compute, read)
}

// limit says what holds the deployment back.
func (s *simulation) limit(x *Expected) deploy.Limit {
	switch {
	case x.Waiting >= 1 && x.Running > 0.97*float64(s.d.Settings.MaxNumSeqs):
		return deploy.Seats
	case x.Waiting >= 1 && x.KVUsage > 0.85 || x.Preemptions > int64(s.count/50):
		return deploy.KVCapacity
	case s.frontend(x) > 0.9:
		return deploy.Frontend
	}
	rows := int(math.Round(s.requests / max(float64(s.steps), 1)))
	tokens := int(math.Round(x.MeanStepTokens))
	batch := vllm.Batch{Requests: rows, Tokens: tokens, Logits: rows, Decodes: rows, DecodeContext: int64(float64(rows) * s.context())}
	if tokens > rows {
		batch.Prefills = []vllm.Chunk{{New: tokens - rows}}
	}
	return s.d.Bound(&batch)
}

// frontend is the share of its time that the API server works.
func (s *simulation) frontend(x *Expected) float64 {
	f := s.d.Settings.Frontend
	request := f.PerRequest + time.Duration(s.input)*f.PerPromptToken + time.Duration(s.output)*f.PerChunk
	steps := 0.0
	if x.MeanStep > 0 {
		steps = 1e3 / x.MeanStep
	}
	return x.RequestsPerS*request.Seconds() + steps*f.PerStep.Seconds()
}
