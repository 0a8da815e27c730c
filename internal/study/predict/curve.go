package predict

import (
	"math"
	"time"

	"pitot/internal/twin"
	"pitot/internal/twin/deploy"
	"pitot/internal/workload"
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

// Curve is the twin's expectation at each concurrency, for requests that share
// nothing.
func Curve(d *deploy.Deployment, input, output workload.Lengths, users []int) []Expected {
	list := make([]Expected, len(users))
	for i, n := range users {
		s := simulation{d: d, asked: [2]workload.Lengths{input, output}, input: typical(input), output: typical(output), users: n, count: max(10*n, 500)}
		if d.Settings.SlowCV > 0 { // many phases, for a mean of few is their own
			phases := 50 * d.Settings.SlowTime.Seconds() / d.Residence(s.input, s.output, n).Seconds()
			s.count = max(s.count, int(min(phases*float64(n), 10_000)))
		}
		list[i] = s.run()
	}
	return list
}

// typical is the mean of lengths in tokens.
func typical(l workload.Lengths) int { return max(int(math.Round(l.Mean())), 1) }

// simulation is one closed loop on the engine in virtual time. The users begin
// as those of a run do, spread over the time of one answer: users who begin
// together stay together, and their prompts queue behind each other.
type simulation struct {
	d             *deploy.Deployment
	asked         [2]workload.Lengths // of prompts and of answers
	input, output int                 // their means
	users         int
	count         int // requests that end in the window, at least

	at        []asking     // by request
	t0, t1    int64        // the window, never while it is not known
	done      int          // requests that ended: until the window opens, then since
	left      int          // requests under way that were sent before the window ends
	preempt   func() int64 // how often the engine has preempted so far
	preempted int64        // in the window, before it while it is not over

	ttft, tpot, e2e  []float64 // of the requests sent in the window, each followed to its end
	shares, tokens   float64   // requests and output tokens, by the share of their time that is in it
	steps            int64
	busy             float64 // ns
	running, waiting float64 // these three weighted by the steps' durations
	kv               float64
	through, rows    float64 // tokens and requests of all steps
}

const never = math.MaxInt64

// asking is when a request was sent and its first token came, and how long its
// answer is.
type asking struct {
	sent, first int64
	output      int
}

// settling is how many requests each user has had before the window opens.
const settling = 5

// open says that the window is.
func (s *simulation) open() bool { return s.t0 != never && s.t1 == never }

// step adds up a step.
func (s *simulation) step(i twin.StepInfo) {
	if !s.open() {
		return
	}
	w := float64(i.End - i.Start)
	s.steps++
	s.busy += w
	s.running += w * float64(i.Running)
	s.waiting += w * float64(i.Waiting)
	s.kv += w * i.KVCacheUsage
	s.through += float64(i.Tokens)
	s.rows += float64(i.Requests)
}

// lengths are those of a request; they end with the model's context. They
// cover their distributions evenly, so that a few hundred have their means: the
// additive recurrence of the plastic number (Roberts, "The unreasonable
// effectiveness of quasirandom sequences", 2018).
func (s *simulation) lengths(id int) (input, output int) {
	steps := [2]uint64{0xc13fa9a902a6328f, 0x91e10da5c79e7b1c} // 2⁶⁴ ÷ 1.3247…, and once more
	draw := func(k int) int { return s.asked[k].At(uint64(id+1) * steps[k]) }
	most := s.d.Settings.MaxModelLen
	input = min(draw(0), most-1)
	return input, min(draw(1), most-input)
}

func (s *simulation) run() Expected {
	e := s.d.Engine(1)
	e.Watch(s.step)
	s.t0, s.t1 = never, never
	s.preempt = func() int64 { return e.Stats().Preemptions }
	ask := func(now int64) {
		input, output := s.lengths(len(s.at))
		e.Add(now, twin.Job{ID: int64(len(s.at)), Prompt: input, Output: output})
		s.at = append(s.at, asking{sent: now, output: output})
		if now < s.t1 {
			s.left++
		}
	}
	spread := s.d.Residence(s.input, s.output, s.users)
	begins := func(user int) int64 {
		if user == s.users {
			return never
		}
		return int64(float64(spread) * float64(user) / float64(s.users))
	}
	now := int64(0)
	for user := 0; s.t1 == never || s.left > 0; {
		for ; begins(user) <= now; user++ {
			ask(now)
		}
		step := e.Step(now)
		for _, o := range step.Out {
			a := &s.at[o.ID]
			if a.first == 0 {
				a.first = o.At
			}
			if o.Trace != nil {
				s.ended(a, o.At)
				ask(o.At)
			}
		}
		now = max(now, min(step.End, begins(user)))
	}
	return s.expected()
}

// ended takes a request whose answer is complete. It counts with the share of
// its time that lies in the window, so that no request is cut by an end of it:
// the requests per second are then those of whole answers, and Little's law
// holds.
func (s *simulation) ended(a *asking, at int64) {
	if a.sent >= s.t1 {
		return
	}
	s.left--
	s.done++
	if s.t0 == never {
		if s.done >= settling*s.users {
			s.t0, s.done, s.preempted = at, 0, s.preempt()
		}
		return
	}
	share := float64(min(at, s.t1)-max(a.sent, s.t0)) / float64(at-a.sent)
	s.shares += share
	s.tokens += share * float64(a.output)
	if a.sent >= s.t0 {
		s.ttft = append(s.ttft, float64(a.first-a.sent)/1e6)
		s.e2e = append(s.e2e, float64(at-a.sent)/1e6)
		if a.output > 1 {
			s.tpot = append(s.tpot, float64(at-a.first)/1e6/float64(a.output-1))
		}
	}
	if s.t1 == never && s.done >= s.count {
		s.t1, s.preempted = at, s.preempt()-s.preempted
	}
}

func (s *simulation) expected() Expected {
	x := Expected{
		Users: s.users, Preemptions: s.preempted,
		TTFT: quantities(s.ttft), TPOT: quantities(s.tpot), E2E: quantities(s.e2e),
	}
	if seconds := float64(s.t1-s.t0) / 1e9; seconds > 0 {
		x.RequestsPerS, x.OutputTokens = s.shares/seconds, s.tokens/seconds
		x.USDPerMOutput = s.d.USDPerHour * float64(s.d.TensorParallel) / 3600 / x.OutputTokens * 1e6
	}
	if s.steps > 0 {
		x.Running, x.Waiting, x.KVUsage = s.running/s.busy, s.waiting/s.busy, s.kv/s.busy
		x.MeanStep, x.MeanStepTokens = s.busy/float64(s.steps)/1e6, s.through/float64(s.steps)
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
	// of what the steps of its answer read; the first token comes of the prompt.
	// The two may overlap, so the longer of them is what no engine can avoid.
	compute := float64(s.input+s.output-1) * s.d.Bounds().PrefillToken
	read := float64(s.output-1) * s.d.DecodeFloor(s.users, s.context()) / float64(s.users)
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
	rows := int(math.Round(s.rows / max(float64(s.steps), 1)))
	tokens := int(math.Round(x.MeanStepTokens))
	batch := twin.Batch{Requests: rows, Tokens: tokens, Logits: rows, Decodes: rows, DecodeContext: int64(float64(rows) * s.context())}
	if tokens > rows {
		batch.Prefills = []twin.Chunk{{New: tokens - rows}}
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
