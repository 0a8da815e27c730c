package predict

import (
	"math"
	"time"

	"pitot/internal/twin"
	"pitot/internal/twin/deploy"
	"pitot/internal/twin/vllm"
)

// Asked is what requests ask for: the lengths of the i-th in tokens, and what
// of the prompt it shares with others.
type Asked func(i int) (input, output int, shared twin.Content)

// Fixed asks for the same lengths always, with nothing shared.
func Fixed(input, output int) Asked {
	return func(int) (int, int, twin.Content) { return input, output, nil }
}

// Expected is what the twin does under a load.
type Expected struct {
	Users int     `json:"concurrency,omitempty"` // closed loop
	Rate  float64 `json:"rate,omitempty"`        // open loop, requests/s

	TTFT           Quantities `json:"ttft_ms"`
	TPOT           Quantities `json:"tpot_ms"`
	E2E            Quantities `json:"e2e_ms"`
	RequestsPerS   float64    `json:"requests_per_s"`
	OutputTokens   float64    `json:"output_tokens_per_s"`
	Running        float64    `json:"mean_running"`     // requests
	KVUsage        float64    `json:"mean_kv_usage"`    // 0 to 1
	CacheHits      float64    `json:"prefix_hit_share"` // of prompt tokens looked up
	Preemptions    int64      `json:"preemptions"`      //
	Waiting        float64    `json:"mean_waiting"`     // requests
	USDPerMOutput  float64    `json:"usd_per_m_output"` // 0 if no price is known
	BoundTPOT      float64    `json:"bound_tpot_ms"`    // no engine is faster
	BoundRequests  float64    `json:"bound_requests_per_s"`
	Limit          string     `json:"limit"` // what limits
	MeanStep       float64    `json:"mean_step_ms"`
	MeanStepTokens float64    `json:"mean_step_tokens"`
}

// Load is what the twin is put under: so many users, each of which waits for
// its answer, or so many requests/s at random times.
type Load struct {
	Users int
	Rate  float64
	Seed  uint64
}

// Run puts a deployment's engine under a load in virtual time and measures
// count requests, after a warm-up.
func Run(d *deploy.Deployment, l Load, asked Asked, count int) Expected {
	e := d.Engine(l.Seed)
	s := simulation{d: d, e: e, asked: asked, count: count}
	s.watch()
	s.run(l)
	return s.expected(l)
}

// simulation is one Run.
type simulation struct {
	d     *deploy.Deployment
	e     *vllm.Engine
	asked Asked
	count int // measured requests
	warm  int // requests before them

	sent, done int
	begin, end int64
	traces     []measured
	outputs    int64 // tokens of measured requests

	steps                          int64
	busy                           int64 // ns
	weight, running, waiting, kv   float64
	tokens, decodes, requests, ctx float64
	before                         twin.Stats
}

// measured is one request that counts.
type measured struct {
	trace  *twin.Trace
	at     int64 // its last chunk
	first  int64 // its first
	tokens int
}

// watch adds up the steps, weighted by how long they take.
func (s *simulation) watch() {
	s.e.Watch(func(i twin.StepInfo) {
		if s.done < s.warm || s.done >= s.warm+s.count {
			return
		}
		w := float64(i.End - i.Start)
		s.steps++
		s.busy += i.End - i.Start
		s.weight += w
		s.running += w * float64(i.Running)
		s.waiting += w * float64(i.Waiting)
		s.kv += w * i.KVCacheUsage
		s.tokens += float64(i.Tokens)
		s.requests += float64(i.Requests)
	})
}

func (s *simulation) add(now int64) {
	in, out, content := s.asked(s.sent)
	most := s.d.Settings.MaxModelLen
	in = min(max(in, 1), most-1)
	s.e.Add(now, twin.Job{ID: int64(s.sent), Prompt: in, Output: min(max(out, 1), most-in), Content: content})
	s.sent++
}

func (s *simulation) run(l Load) {
	s.warm = max(s.count/5, 2*l.Users)
	if l.Users == 0 {
		s.warm = s.count / 5
	}
	firsts := map[int64]int64{}
	arrive := int64(math.MaxInt64)
	gap := func(i int) int64 { // exponential gaps by inversion
		u := (float64(twin.Mix(twin.Mix(l.Seed)^uint64(i))>>12) + 0.5) / (1 << 52)
		return int64(-math.Log(u) / l.Rate * 1e9)
	}
	var now int64
	if l.Users > 0 {
		for range l.Users {
			s.add(0)
		}
	} else {
		arrive = gap(0)
	}
	for s.done < s.warm+s.count {
		step := s.e.Step(now)
		for _, o := range step.Out {
			if _, ok := firsts[o.ID]; !ok {
				firsts[o.ID] = o.At
			}
			if o.Finish == "" {
				continue
			}
			if s.done == s.warm {
				s.begin, s.before = o.At, s.e.Stats()
			}
			if s.done >= s.warm && s.done < s.warm+s.count {
				_, out, _ := s.asked(int(o.ID))
				s.traces = append(s.traces, measured{o.Trace, o.At, firsts[o.ID], out})
				if s.done > s.warm {
					s.outputs += int64(out)
				}
				s.end = o.At
			}
			delete(firsts, o.ID)
			s.done++
			if l.Users > 0 {
				s.add(step.End)
			}
		}
		at := min(step.End, arrive)
		now = max(now, at)
		if arrive <= now {
			s.add(now)
			arrive += gap(s.sent)
		}
	}
}

func (s *simulation) expected(l Load) Expected {
	x := Expected{Users: l.Users, Rate: l.Rate}
	var ttft, tpot, e2e []float64
	for _, m := range s.traces {
		ttft = append(ttft, float64(m.first-m.trace.Arrived)/1e6)
		e2e = append(e2e, float64(m.at-m.trace.Arrived)/1e6)
		if m.tokens > 1 {
			tpot = append(tpot, float64(m.at-m.first)/1e6/float64(m.tokens-1))
		}
	}
	x.TTFT, x.TPOT, x.E2E = quantities(ttft), quantities(tpot), quantities(e2e)
	if seconds := float64(s.end-s.begin) / 1e9; seconds > 0 {
		x.RequestsPerS = float64(len(s.traces)-1) / seconds
		x.OutputTokens = float64(s.outputs) / seconds
	}
	if s.weight > 0 {
		x.Running, x.Waiting, x.KVUsage = s.running/s.weight, s.waiting/s.weight, s.kv/s.weight
		x.MeanStep = float64(s.busy) / float64(s.steps) / 1e6
		x.MeanStepTokens = s.tokens / float64(s.steps)
	}
	st := s.e.Stats()
	if q := st.PrefixQueries - s.before.PrefixQueries; q > 0 {
		x.CacheHits = float64(st.PrefixHits-s.before.PrefixHits) / float64(q)
	}
	x.Preemptions = st.Preemptions - s.before.Preemptions
	if x.OutputTokens > 0 {
		x.USDPerMOutput = s.d.USDPerHour * float64(s.d.TensorParallel) / 3600 / x.OutputTokens * 1e6
	}
	s.limit(&x)
	return x
}

// limit says what holds the deployment back under the load, and what no
// engine could do better.
func (s *simulation) limit(x *Expected) {
	in, out := s.means()
	b := s.d.Bounds()
	n := int(math.Round(max(x.Running, 1)))
	context := in + out/2
	x.BoundTPOT = b.Decode(s.d, n, context) * 1e3
	// A request costs computing for its prompt and its answer, and its share
	// of what the steps of its answer read. The two may overlap, so the
	// longer of them is what no engine can avoid.
	users := float64(max(x.Users, n))
	compute := (in*(1-x.CacheHits) + out) * b.PrefillToken
	read := out * (b.FullFloor/users + context*b.KVPerToken/b.Bandwidth)
	if s.d.Model.Experts > 0 {
		read = out * b.Decode(s.d, int(users), context) / users
	}
	if per := max(compute, read); per > 0 {
		x.BoundRequests = 1 / per
	}
	rows := int(math.Round(s.requests / max(float64(s.steps), 1)))
	prompt := int(math.Round(x.MeanStepTokens)) - rows
	batch := vllm.Batch{Requests: rows, Tokens: int(math.Round(x.MeanStepTokens)), Logits: rows, Decodes: rows, DecodeContext: int64(float64(rows) * context)}
	if prompt > 0 {
		batch.Prefills = []vllm.Chunk{{New: prompt}}
	}
	switch {
	case x.Waiting >= 1 && x.Running > 0.97*float64(s.d.Settings.MaxNumSeqs):
		x.Limit = string(deploy.Seats)
	case x.Waiting >= 1 && x.KVUsage > 0.85 || x.Preemptions > int64(s.count/50):
		x.Limit = string(deploy.KVCapacity)
	case s.frontendBusy(x) > 0.9:
		x.Limit = string(deploy.Frontend)
	default:
		x.Limit = string(s.d.Bound(&batch))
	}
}

// frontendBusy is the share of its time that the API server works.
func (s *simulation) frontendBusy(x *Expected) float64 {
	f := s.d.Settings.Frontend
	in, _ := s.means()
	perRequest := f.PerRequest + time.Duration(in)*f.PerPromptToken
	steps := 0.0
	if x.MeanStep > 0 {
		steps = 1e3 / x.MeanStep
	}
	return x.RequestsPerS*perRequest.Seconds() + x.OutputTokens*f.PerChunk.Seconds() + steps*f.PerStep.Seconds()
}

func (s *simulation) means() (in, out float64) {
	n := min(max(s.sent, 1), 1000)
	for i := range n {
		a, b, _ := s.asked(i)
		in, out = in+float64(a), out+float64(b)
	}
	return in / float64(n), out / float64(n)
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

// Curve is the twin's expectation at each concurrency.
func Curve(d *deploy.Deployment, asked Asked, users []int) []Expected {
	list := make([]Expected, len(users))
	for i, n := range users {
		list[i] = Run(d, Load{Users: n, Seed: 1}, asked, max(4*n, 40))
	}
	return list
}
