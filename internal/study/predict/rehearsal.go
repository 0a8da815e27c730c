package predict

import (
	"context"
	"errors"
	"math"
	"sync/atomic"

	"pitot/internal/data/metric"
	"pitot/internal/data/record"
	"pitot/internal/load"
	"pitot/internal/measure"
	"pitot/internal/slo"
	"pitot/internal/twin"
	"pitot/internal/twin/deploy"
	"pitot/internal/workload"
)

// Asked is a request of a schedule: when it was sent, in nanoseconds since the load
// began, and its tokens.
type Asked struct {
	At            int64
	Input, Output int32
	Content       twin.Content // nil for one that shares nothing
}

// Schedule is all that was sent of a load, in the order of time. Those of its window are
// From to To, To left out.
type Schedule struct {
	Asked    []Asked
	From, To int
}

// Law is what requests an open loop sends at a rate, drawn anew for each seed: when they
// are due, and what the next one asks.
type Law func(rate float64, seed uint64) (arrivals interface{ Next() int64 }, next func(i int64) Asked, err error)

// Rehearsal is a search done again on a deployment's twin in virtual time. It is the
// [search.Twin] of what it is made of.
type Rehearsal struct {
	Deployment *deploy.Deployment
	Claims     []slo.Claim
	Schedule   func(step int) (*Schedule, error) // of the search's steps; it is asked by one at a time
	Law        Law
	Alone      bool // on one processor, as where many searches are done at once
	// Most is how much may be simulated in all, in the work of [rehearsed], 0 for any: a rehearsal
	// that takes more fails, on every machine alike.
	Most int64

	spent atomic.Int64
	ended context.CancelFunc // of what is under way
}

// A rehearsal's work is counted in what is simulated, and not in time, so that what comes of it
// hangs on no machine: a token of an answer counts as one, the rest of a request as requestWork
// of them, and promptWork tokens of a prompt as one. WorkPerSecond is what a core of 2023 does in a
// second (BenchmarkRehearsal).
const (
	requestWork, promptWork = 8, 64

	WorkPerSecond = 3_000_000
)

// errTooMuch is the error of a rehearsal that takes more than Most.
var errTooMuch = errors.New("it takes more to simulate than a twin that nobody named may (to have it whatever it takes: --twin MODEL@GPU)")

// Again implements [search.Twin]: a step to which all comes k times as fast, with limits k
// times as tight.
func (r *Rehearsal) Again(ctx context.Context, steps []int, k float64) ([][]int, error) {
	schedules := make([]*Schedule, len(steps))
	for i, step := range steps {
		var err error
		if schedules[i], err = r.Schedule(step); err != nil {
			return nil, err
		}
	}
	counts := make([][]int, len(steps))
	err := r.within(ctx, func(ctx context.Context) {
		r.each(len(steps), func(i int) { counts[i] = r.count(ctx, schedules[i], k) })
	})
	return counts, err
}

// within does something that ends as soon as more than Most was simulated.
func (r *Rehearsal) within(ctx context.Context, do func(context.Context)) error {
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	r.ended = cancel
	do(bounded)
	if r.Most > 0 && r.spent.Load() > r.Most {
		return errTooMuch
	}
	return ctx.Err()
}

// spend counts what was simulated.
func (r *Rehearsal) spend(a Asked) {
	work := int64(a.Output) + requestWork + int64(a.Input)/promptWork
	if spent := r.spent.Add(work); r.Most > 0 && spent > r.Most {
		r.ended()
	}
}

// count is how many requests of a window violate each claim, and any of them.
func (r *Rehearsal) count(ctx context.Context, s *Schedule, k float64) []int {
	to := newLonger(r.Claims, s.From, s.To)
	n := int64(len(s.Asked))
	core := load.NewCore(load.Config{Arrivals: &compressed{asked: s.Asked, by: k}, Requests: n, Total: n})
	r.put(ctx, core, func(i int64) Asked { return s.Asked[i] }, to)
	count := make([]int, len(r.Claims)+1)
	for j := range s.To - s.From {
		any := 0
		for c := range r.Claims {
			if to.times[c][j]*k >= 1 {
				count[c]++
				any = 1
			}
		}
		count[len(r.Claims)] += any
	}
	return count
}

// Long implements [search.Twin].
func (r *Rehearsal) Long(ctx context.Context, loads []float64, requests int) ([][][]float64, error) {
	all, errs := make([][][]float64, len(loads)), make([]error, len(loads))
	err := r.within(ctx, func(ctx context.Context) {
		r.each(len(loads), func(i int) { all[i], errs[i] = r.long(ctx, loads[i], requests) })
	})
	return all, errors.Join(append(errs, err)...)
}

func (r *Rehearsal) long(ctx context.Context, rate float64, requests int) ([][]float64, error) {
	arrivals, asked, err := r.Law(rate, math.Float64bits(rate)+uint64(requests))
	if err != nil {
		return nil, err
	}
	before := max(requests/8, 500) // a warm-up
	to := newLonger(r.Claims, before, before+requests)
	core := load.NewCore(load.Config{Arrivals: arrivals, Requests: to.to, Total: to.to})
	r.put(ctx, core, asked, to)
	return to.times, nil
}

// put carries a load out on the twin.
func (r *Rehearsal) put(ctx context.Context, core *load.Core, asked func(int64) Asked, to *longer) {
	source := &rehearsed{next: asked, spend: r.spend}
	load.Run(ctx, core, load.NewVirtual(load.VirtualConfig{
		Engine: unlimited{r.Deployment.Engine(rehearsalSeed)}, Source: source, Sink: to,
		Content: source.contentOf,
	}))
}

// each calls do for 0 to n−1, on all processors unless it is alone.
func (r *Rehearsal) each(n int, do func(i int)) {
	if r.Alone {
		inParallelOn(1, n, do)
		return
	}
	InParallel(n, do)
}

// rehearsalSeed decides the twin's chances. They are none of the server's.
const rehearsalSeed = 0x7265686561727365

// rehearsed is what is asked, as a source.
type rehearsed struct {
	next  func(i int64) Asked
	spend func(Asked) // nil: nobody counts
	last  Asked
}

// At implements [workload.Source]. The virtual world asks what it starts, and at once for
// the content of it.
func (s *rehearsed) At(i int64) (workload.Request, error) {
	if s.last = s.next(i); s.spend != nil {
		s.spend(s.last)
	}
	return workload.Request{ID: i, Input: int(s.last.Input), Output: int(s.last.Output), Exact: true, Session: workload.Unknown}, nil
}

func (s *rehearsed) contentOf(int64, *workload.Request, int) twin.Content { return s.last.Content }

// compressed are the times of a schedule, so many times as fast.
type compressed struct {
	asked []Asked
	by    float64
}

// Next gives the next of them.
func (c *compressed) Next() int64 {
	if len(c.asked) == 0 {
		return load.Never
	}
	at := c.asked[0].At
	c.asked = c.asked[1:]
	return int64(float64(at) / c.by)
}

// longer is a sink that keeps of the requests from one id to another by how many times
// the limit of each claim they took.
type longer struct {
	claims   []slo.Claim
	from, to int64
	times    [][]float64
}

func newLonger(claims []slo.Claim, from, to int) *longer {
	l := &longer{claims, int64(from), int64(to), make([][]float64, len(claims))}
	for c := range l.times {
		l.times[c] = make([]float64, to-from)
	}
	return l
}

// Chunk implements [record.Sink].
func (*longer) Chunk(record.Chunk) {}

// Done implements [record.Sink].
func (l *longer) Done(r *record.Row) {
	if r.ID < l.from || r.ID >= l.to {
		return
	}
	one := Judged(r)
	for c := range l.claims {
		l.times[c][r.ID-l.from] = l.claims[c].Times(one)
	}
}

// Judged is a request of the twin as claims judge it. Limits of classes know it as one of
// no class.
func Judged(r *record.Row) slo.Request {
	return &judgedRow{measure.LatencyOf(r, &measure.Events{}), r.Outcome == record.OK}
}

// Judges says whether a request of the twin has a value of a metric, for [Judged].
func Judges(of metric.Name) bool {
	switch of {
	case metric.TTFT, metric.TTFA, metric.E2E, metric.TPOT, metric.Generation:
		return true
	}
	return false
}

// judgedRow is a request of the twin for its limits.
type judgedRow struct {
	measure.Latency
	ok bool
}

// OK implements [slo.Request].
func (j *judgedRow) OK() bool { return j.ok }

// Class implements [slo.Request]: a search with limits of classes is not replayed.
func (j *judgedRow) Class() string { return "" }

// Value implements [slo.Request]. What the twin does not do is undefined.
func (j *judgedRow) Value(of metric.Name) float64 {
	x, state := 0.0, measure.Missing
	switch of {
	case metric.TTFT, metric.TTFA:
		x, state = j.TTFT(measure.Response, 0)
	case metric.E2E:
		x, state = j.E2E(measure.Response, 0)
	case metric.TPOT:
		x, state = j.TPOT(0)
	case metric.Generation:
		x, state = j.Generation(0)
	}
	if state != measure.Known {
		return math.NaN()
	}
	return x
}
