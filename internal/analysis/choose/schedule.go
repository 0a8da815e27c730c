package choose

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"pitot/internal/config"
	"pitot/internal/loadgen"
	"pitot/internal/metrics"
	"pitot/internal/results/record"
	"pitot/internal/session"
	"pitot/internal/sim"
	"pitot/internal/sim/deploy"
	"pitot/internal/slo"
	"pitot/internal/stats"
	"pitot/internal/workload"
	"pitot/internal/workload/arrival"
)

// schedule holds the requests that all candidates serve. They are the same requests, with the same
// random numbers for their times. So the difference between two candidates is not what was drawn.
type schedule struct {
	talks  *conversations // nil: requests stand alone
	asked  []drawnRequest // whose times are not used, by their prompts' length; of conversations Input is what no cache has
	most   int            // tokens of the longest request
	law    *arrival.Law
	seed   uint64
	input  float64 // tokens, means
	output float64
	own    float64 // of the input, tokens that surely no other request has: a bound is to hold for a warm cache
}

// drawnRequest is a request of the workload, by its tokens.
type drawnRequest struct {
	Input, Output int32
	Content       sim.Content // nil for one that shares nothing
}

// newSchedule draws n requests of a workload.
func newSchedule(ask *config.Ask, law *arrival.Law, n int) (*schedule, error) {
	src, done, err := session.OpenWorkload(ask, 0)
	if err != nil {
		return nil, err
	}
	defer done()
	s := &schedule{asked: make([]drawnRequest, n), law: law, seed: ask.Seed}
	for i := range s.asked {
		q, err := src.At(int64(i))
		if err != nil {
			return nil, err
		}
		a := &s.asked[i]
		a.Input, a.Output = int32(max(1, q.Input)), int32(max(1, q.Output))
		if ask.Prefix > 0 || ask.Tree != nil || !ask.IsGenerated() { // else nothing is shared
			a.Content = loadgen.PromptContent(&q, q.Input)
		}
		s.most = max(s.most, int(a.Input+a.Output))
		s.input += float64(a.Input) / float64(n)
		s.output += float64(a.Output) / float64(n)
	}
	switch {
	case ask.Tree != nil || !ask.IsGenerated():
	case ask.Prefix > 0:
		s.own = max(s.input-float64(ask.Prefix), 0)
	default:
		s.own = s.input
	}
	stats.SortStable(s.asked, func(a, b drawnRequest) int { return cmp.Compare(a.Input, b.Input) })
	return s, nil
}

// longestContext returns the number of tokens that a context must hold: the longest request, and a
// quarter more.
func (s *schedule) longestContext() int {
	const whole = 1024
	return (s.most*5/4 + whole - 1) / whole * whole
}

// sample is n requests of the schedule in a random order, one of each of n parts of equal
// size that have prompts of like length: so few of them have the tails of all.
func (s *schedule) sample(n int, stream uint64) []drawnRequest {
	rng := rand.New(rand.NewPCG(s.seed, stream))
	list := make([]drawnRequest, n)
	for i := range list {
		from, to := len(s.asked)*i/n, len(s.asked)*(i+1)/n
		list[i] = s.asked[from+rng.IntN(max(to-from, 1))]
	}
	rng.Shuffle(n, func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// effort holds how much is simulated of a candidate. It has the requests of a load and those before
// them that settle it. It also has the factor at which the search ends, between a load within the
// limits and one beyond them.
type effort struct {
	count            int            // requests of a load
	spans            float64        // of conversations: the window is so many times as long as one lasts, at least
	requests, before []drawnRequest // nil of conversations
	within           float64
	close            bool    // it begins at what is known of the candidate
	flanks           bool    // lighter loads than the capacity are looked at too
	longer           *effort // where within the limits the queue seems to grow; nil: that is believed
	whether          bool    // it is asked whether the limits hold, and not by how much they are missed
}

// endEarlyFactor is by how many times a claim's share is to be violated for a load to end early.
// Where it is asked whether claims hold alone, as many as may be are enough; of conversations a
// quarter more, for how many requests come is not known beforehand.
func (e *effort) endEarlyFactor() float64 {
	if e.whether {
		return 1.25
	}
	return beyondDoubt
}

func (s *schedule) effort(n int, within float64) effort {
	if s.talks != nil {
		spans := math.Sqrt(float64(n) / oneSpan)
		n = int(float64(n) * min(1, usualTokens/s.output))
		return effort{count: max(n, int(math.Ceil(leastTalks*s.talks.turns))), spans: spans, within: within}
	}
	n = int(float64(n) * min(1, math.Sqrt(manyTokens/s.output)))
	e := s.singleRequestEffort(n, within)
	longer := s.singleRequestEffort(int(longerBy*float64(n)), within)
	e.longer = &longer
	return e
}

// withOtherSeed is the same schedule with other chances.
func (s *schedule) withOtherSeed() *schedule {
	other := *s
	other.seed = rand.New(rand.NewPCG(s.seed, 0x616761696e)).Uint64()
	return &other
}

// singleRequestEffort is an effort of so many requests that stand alone.
func (s *schedule) singleRequestEffort(n int, within float64) effort {
	return effort{count: n, requests: s.sample(n, 1), before: s.sample(max(n, leastBefore), 2), within: within}
}

// refinedEffort is an effort that begins at what is known of a candidate.
func (s *schedule) refinedEffort(n int, within float64) effort {
	e := s.effort(n, within)
	e.close = true
	return e
}

// lightEffort returns the effort for an engine that has one request at a time.
func (s *schedule) lightEffort(e *effort) *effort {
	switch {
	case e.count <= fewLight:
		return e
	case s.talks != nil:
		return &effort{count: fewLight, within: e.within}
	}
	few := s.singleRequestEffort(fewLight, e.within)
	return &few
}

const (
	manyTokens  = 300 // of an answer: of longer ones fewer are asked for, more of them being under way at once
	longerBy    = 2.5 // times as many: a few waves of a full engine look like a queue that grows
	leastBefore = 400 // requests that there are to fill an engine
	fewLight    = 100 // requests of a load so light that none waits for another
)

// served holds what a deployment made of a load.
type served struct {
	Rate float64 `json:"rate"` // requests/s
	// Worst is, of each claim, by how many times what it allows the request took whose
	// rank the claim is about: at 1 and above the claim is violated.
	Worst []float64 `json:"times_the_limit"`
	// TPOT is the mean time of an output token, in seconds, and Tokens how many come in a
	// second.
	TPOT   float64 `json:"tpot_s"`
	Tokens float64 `json:"output_tokens_per_s"`
	// Grows says that the queue grew all through the window: the load is more than is
	// served, whatever the limits say of requests that were answered in time.
	Grows bool `json:"queue_grows,omitempty"`

	took   float64     // seconds of a request, mean
	times  [][]float64 // of each claim and request of the window
	within bool        // the limits, whether or not the queue grows
}

// worstClaim is the claim that is the nearest to being violated, or the most violated. All are
// where the queue grows.
func (s *served) worstClaim() (claim int, times float64) {
	for c, x := range s.Worst {
		if x > times || c == 0 {
			claim, times = c, x
		}
	}
	if s.Grows {
		times = math.Inf(1)
	}
	return claim, times
}

// isMet reports whether all claims hold.
func (s *served) isMet() bool {
	_, times := s.worstClaim()
	return times < 1
}

// serve puts a load to a deployment in virtual time: so many requests of the schedule, the
// first of which are a warm-up. It ends
// early where a claim is violated beyond doubt.
func (s *schedule) serve(ctx context.Context, d *deploy.Deployment, claims []slo.Claim, rate float64, warm int, e *effort) (*served, error) {
	arrivals, err := s.law.NewProcess(rate, s.seed, 0)
	if err != nil {
		return nil, err
	}
	n := len(e.requests)
	asked := warm
	warm = min(warm, len(e.before))
	t := &tally{claims: claims, from: int64(warm), begin: math.MaxInt64, left: make([]int, len(claims)), times: make([][]float64, len(claims))}
	for c := range claims {
		t.times[c] = make([]float64, n)
		for i := range t.times[c] {
			t.times[c][i] = math.NaN() // not asked, or not answered by the end
		}
		t.left[c] = int(e.endEarlyFactor()*claims[c].Share*float64(n)) + 10
	}
	total := int64(warm + n)
	t.spans = make([][2]int64, 0, total)
	core := loadgen.NewCore(loadgen.Config{Arrivals: &bounded{arrivals, t}, Requests: total, Total: total})
	asks := &asking{requests: slices.Concat(e.before[len(e.before)-warm:], e.requests)}
	loadgen.Run(ctx, core, loadgen.NewVirtual(loadgen.VirtualConfig{
		Engine: newBriefModel(d, s.seed), Source: asks, Sink: t, Content: asks.content,
	}))
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	x := s.loadOutcome(t, rate)
	if x.Grows && x.within && e.longer != nil {
		return s.serve(ctx, d, claims, rate, asked, e.longer)
	}
	return x, nil
}

// newBriefModel makes the engine of a deployment, of whose answers only begin and end are asked.
func newBriefModel(d *deploy.Deployment, seed uint64) sim.Model {
	e := d.Engine(seed)
	e.Brief()
	return e
}

// loadOutcome returns what was made of a load, by its tally.
func (s *schedule) loadOutcome(t *tally, rate float64) *served {
	x := &served{Rate: rate, times: t.times, Grows: t.isQueueGrowing(rate * s.perArrival()), within: true}
	for c := range t.claims {
		x.Worst = append(x.Worst, t.rankValue(c))
		x.within = x.within && x.Worst[c] < 1
		if x.Grows { // it would not hold for long
			x.Worst[c] = math.Inf(1)
		}
	}
	if t.tpots > 0 {
		x.TPOT = t.tpot / t.tpots
	}
	if t.answered > 0 {
		x.took = t.took / t.answered
	}
	if t.last > t.first && t.first > 0 {
		x.Tokens = t.tokens / (float64(t.last-t.first) / 1e9)
	}
	return x
}

// beyondDoubt is by how many times a claim's share is to be violated for a load to end
// early.
const beyondDoubt = 4

// bounded are arrivals that end where more of them are of no use.
type bounded struct {
	arrival.Process
	tally *tally
}

// Next gives the next due time.
func (b *bounded) Next() int64 {
	if b.tally.hopeless {
		return loadgen.Never
	}
	return b.Process.Next()
}

// asking is requests as a source of them.
type asking struct {
	requests []drawnRequest
	latest   sim.Content // of the request that was asked for last
}

// At implements [workload.Source]. The virtual world asks what it starts, and at once for
// the content of it.
func (a *asking) At(i int64) (workload.Request, error) {
	x := &a.requests[i]
	a.latest = x.Content
	return workload.Request{ID: i, Input: int(x.Input), Output: int(x.Output), Exact: true, Session: workload.Unknown}, nil
}

func (a *asking) content(int64, *workload.Request, int) sim.Content { return a.latest }

// tally is a sink that keeps what claims say of the requests behind a warm-up.
type tally struct {
	claims   []slo.Claim
	from     int64
	times    [][]float64 // of each claim, by the number of the request in the window
	left     []int       // violations of each claim until it is beyond doubt
	hopeless bool

	window [2]int64 // ns: of conversations, whose requests are judged by when they are due
	rows   []judged // of these
	enough func()   // ends the load of them

	spans [][2]int64 // when each request was due and ended, ns, the warm-up's too

	tpot, tpots, tokens float64 // s, requests, tokens
	took, answered      float64 // s, requests
	first, last         int64   // ns: the first is due, the last is done
	begin, end          int64   // ns: the window, from the first request that is due in it to the last
}

// Chunk implements [record.Sink].
func (*tally) Chunk(record.Chunk) {}

// Done implements [record.Sink].
func (t *tally) Done(r *record.Row) {
	t.spans = append(t.spans, [2]int64{r.Due, r.Done})
	if t.enough != nil {
		t.judgeTurn(r)
		return
	}
	if r.ID < t.from {
		return
	}
	t.begin, t.end = min(t.begin, r.Due), max(t.end, r.Due)
	one := metrics.OfRow(r)
	for c := range t.claims {
		t.times[c][r.ID-t.from] = t.judge(c, one)
	}
	t.add(r)
}

// judge returns by how many times what a claim allows a request took, and counts violations.
func (t *tally) judge(claim int, one slo.Request) float64 {
	times := t.claims[claim].Times(one)
	if times >= 1 {
		if t.left[claim]--; t.left[claim] < 0 {
			t.hopeless = true
		}
	}
	return times
}

// judgeTurn takes a request of a conversation.
func (t *tally) judgeTurn(r *record.Row) {
	if r.Due < t.window[0] || r.Due >= t.window[1] || t.hopeless {
		return
	}
	t.begin, t.end = min(t.begin, r.Due), max(t.end, r.Due)
	one := metrics.OfRow(r)
	row := judged{r.Due, r.ID, make([]float64, len(t.claims))}
	for c := range t.claims {
		row.times[c] = t.judge(c, one)
	}
	t.rows = append(t.rows, row)
	t.add(r)
	if t.hopeless {
		t.enough()
	}
}

// add adds up the tokens of a request that was answered.
func (t *tally) add(r *record.Row) {
	if r.Outcome != record.OK {
		return
	}
	if t.first == 0 || r.Due < t.first {
		t.first = r.Due
	}
	t.last = max(t.last, r.LastToken)
	t.tokens += float64(r.CompletionTokens)
	t.took += float64(r.LastToken-r.Due) / 1e9
	t.answered++
	of := metrics.LatencyOf(r, &metrics.Events{})
	if x, state := of.TPOT(0); state == metrics.Known {
		t.tpot += x / 1e9
		t.tpots++
	}
}

// isQueueGrowing says that ever more requests are under way in the course of the window.
func (t *tally) isQueueGrowing(rate float64) bool {
	window := float64(t.end-t.begin) / stats.BacklogBlocks // ns, of a block
	if window <= 0 {
		return false
	}
	inFlight := make([]float64, stats.BacklogBlocks)
	for _, s := range t.spans {
		from, to := float64(s[0]-t.begin)/window, float64(s[1]-t.begin)/window
		for b := max(int(from), 0); b < len(inFlight) && float64(b) < to; b++ {
			inFlight[b] += max(min(to, float64(b+1))-max(from, float64(b)), 0)
		}
	}
	return stats.JudgeBacklog(inFlight, window*stats.BacklogBlocks/1e9, rate, 0).Verdict == stats.Unstable
}

// rankValue is the value of a claim's rank: of n requests the ⌈(1 − share)·n⌉th.
func (t *tally) rankValue(c int) float64 { return rankOf(t.times[c], t.claims[c].Share) }

// rankOf is that of times, of which those are left out that are not known.
func rankOf(times []float64, share float64) float64 {
	sorted := slices.DeleteFunc(slices.Clone(times), math.IsNaN)
	if len(sorted) == 0 {
		return math.Inf(1)
	}
	slices.Sort(sorted)
	return sorted[min(max(int(math.Ceil((1-share)*float64(len(sorted)))), 1), len(sorted))-1]
}
