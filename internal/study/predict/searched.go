package predict

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"pitot/internal/data/metric"
	"pitot/internal/data/record"
	"pitot/internal/load"
	"pitot/internal/plan"
	"pitot/internal/run"
	"pitot/internal/say"
	"pitot/internal/slo"
	"pitot/internal/stat"
	"pitot/internal/twin/deploy"
	"pitot/internal/workload"
)

// Searched is a search under way in a run's directory, whose loads a twin is sent again.
type Searched struct {
	Rehearsal
	dir    string
	plan   *plan.Plan
	probed func() []run.Probed

	named     string               // the twin as the user named it
	of        []*deploy.Deployment // that the target may be, where nobody named it
	light     []LightLoad          // of the first steps
	schedules []*Schedule          // of the steps that were read
	served    []Asked              // requests that were answered, for their lengths
	template  []int                // of them, tokens of the prompt beyond those planned
	exact     int                  // of them, answers as long as planned
	cached    int64                // prompt tokens that the server had cached
}

// rehearsable are the metrics whose limits a rehearsal knows.
var rehearsable = []metric.Name{metric.TTFT, metric.TTFA, metric.TPOT, metric.E2E, metric.Generation, metric.Errors}

// NewSearched prepares the rehearsal of a search on the twin of a deployment. probed says
// which points its steps are, as far as it has come. Errors say why there is none, and are
// the user's where he asked for one.
func NewSearched(spec string, p *plan.Plan, claims []slo.Claim, dir string, probed func() []run.Probed) (*Searched, error) {
	d, err := deploy.Parse(spec)
	if err != nil {
		return nil, err
	}
	s, err := newSearched(p, claims, dir, probed)
	if err != nil {
		return nil, err
	}
	s.Deployment, s.named = d, spec
	return s, nil
}

// NewSearchedNearest prepares it on the one of some deployments that serves the search's
// light loads most as the target does: which that is is known when the twin is first asked.
// Where more than most has to be simulated in all it fails, see [Rehearsal.Most].
func NewSearchedNearest(of []*deploy.Deployment, most int64, p *plan.Plan, claims []slo.Claim, dir string, probed func() []run.Probed) (*Searched, error) {
	s, err := newSearched(p, claims, dir, probed)
	if err != nil {
		return nil, err
	}
	s.of, s.Most = of, most
	return s, nil
}

func newSearched(p *plan.Plan, claims []slo.Claim, dir string, probed func() []run.Probed) (*Searched, error) {
	for _, c := range claims {
		for _, name := range c.On() {
			if !slices.Contains(rehearsable, name) {
				return nil, say.Errorf("a replay does not know %s", name).WithHint("leave --twin out, or limit ttft, tpot or e2e")
			}
		}
	}
	switch {
	case p.Closed():
		return nil, say.Errorf("users who wait for their answers have no schedule to replay").WithHint("leave --twin out, or search over rates")
	case p.MaxInFlight > 0:
		return nil, say.Errorf("a replay does not hold requests back").WithHint("leave --twin or --max-in-flight out")
	}
	s := &Searched{dir: dir, plan: p, probed: probed}
	s.Rehearsal = Rehearsal{Claims: claims, Schedule: s.schedule, Law: s.law}
	return s, nil
}

// Named is the twin that was asked, "" before it is known which.
func (s *Searched) Named() string {
	if s.named == "" && s.Deployment != nil {
		return s.Deployment.Named()
	}
	return s.named
}

// Again implements [search.Twin].
func (s *Searched) Again(ctx context.Context, steps []int, k float64) ([][]int, error) {
	if err := s.choose(ctx); err != nil {
		return nil, err
	}
	return s.Rehearsal.Again(ctx, steps, k)
}

// Long implements [search.Twin].
func (s *Searched) Long(ctx context.Context, loads []float64, requests int) ([][][]float64, error) {
	if err := s.choose(ctx); err != nil {
		return nil, err
	}
	return s.Rehearsal.Long(ctx, loads, requests)
}

// choose finds out which deployment the twin is of, where nobody named it.
func (s *Searched) choose(ctx context.Context) (err error) {
	if s.Deployment != nil {
		return nil
	}
	if len(s.schedules) == 0 {
		if err := s.read(); err != nil {
			return err
		}
	}
	s.Deployment, err = Nearest(ctx, s.of, s.lightest())
	return err
}

// lightest are the light loads: the first, and those that followed it in which first tokens
// took no more than a few times as long.
func (s *Searched) lightest() (list []LightLoad) {
	first := 0.
	for _, l := range s.light {
		var ttft []float64
		for i := l.Schedule.From; i < l.Schedule.To; i++ {
			if x := l.TTFT[i]; !math.IsNaN(x) {
				ttft = append(ttft, x)
			}
		}
		if len(ttft) == 0 {
			continue
		}
		stat.SortFloat64(ttft)
		middle := stat.Percentile(ttft, 0.5)
		if len(list) > 0 && middle > lightUpTo*first {
			continue
		}
		if len(list) == 0 {
			first = middle
		}
		list = append(list, l)
	}
	return list
}

// schedule of a step, from the records.
func (s *Searched) schedule(step int) (*Schedule, error) {
	if step >= len(s.schedules) {
		if err := s.read(); err != nil {
			return nil, err
		}
	}
	if step >= len(s.schedules) || len(s.schedules[step].Asked) == 0 {
		return nil, fmt.Errorf("load %d has no records", step+1)
	}
	return s.schedules[step], nil
}

// read takes in the steps that are new.
func (s *Searched) read() error {
	steps := s.probed()
	rows := map[int32][]record.Row{}
	for _, p := range steps[len(s.schedules):] {
		rows[p.Point] = nil
		if p.Follows > 0 {
			rows[p.Point-1] = nil
		}
	}
	for f, err := range record.Frames(s.dir) {
		if err != nil {
			return fmt.Errorf("read records: %w", err)
		}
		if of, wanted := rows[f.Point]; wanted {
			rows[f.Point] = append(of, f.Rows...)
		}
	}
	for _, p := range steps[len(s.schedules):] {
		x, err := s.scheduleOf(p, rows[p.Point])
		if err == nil && p.Follows > 0 {
			x, err = s.led(x, p, rows[p.Point-1])
		}
		if err != nil {
			return err
		}
		s.schedules = append(s.schedules, x)
	}
	return nil
}

// scheduleOf is what was sent of a point.
func (s *Searched) scheduleOf(p run.Probed, rows []record.Row) (*Schedule, error) {
	var src workload.Source
	if s.plan.Prefix > 0 || s.plan.Tree != nil { // else nothing is shared
		from, done, err := run.Workload(&s.plan.Ask, p.Point)
		if err != nil {
			return nil, err
		}
		defer done()
		src = from
	}
	slices.SortStableFunc(rows, func(a, b record.Row) int { return int(min(1, max(-1, a.Due-b.Due))) })
	x := &Schedule{From: -1}
	lightly := len(s.light) < lightSteps
	var l LightLoad
	for i := range rows {
		r := &rows[i]
		q, ok := recorded(r, timing{sent: float64(r.Sent) / 1e9}, nil, p.T0, p.T1)
		if !ok {
			continue
		}
		a := Asked{At: r.Due, Input: int32(q.Input), Output: int32(q.Output)}
		if src != nil {
			asked, err := src.At(r.ID)
			if err != nil {
				return nil, err
			}
			a.Content = load.Content(&asked, q.Input)
		}
		if r.Due >= p.T0 && r.Due < p.T1 {
			if x.From < 0 {
				x.From = len(x.Asked)
			}
			x.To = len(x.Asked) + 1
		}
		x.Asked = append(x.Asked, a)
		if one := Judged(r); lightly {
			l.TTFT, l.TPOT = append(l.TTFT, one.Value(metric.TTFT)), append(l.TPOT, one.Value(metric.TPOT))
		}
		if r.Outcome == record.OK && r.CompletionTokens > 0 {
			s.serve(r, a)
		}
	}
	x.From = max(x.From, 0)
	if l.Schedule = x; lightly && len(x.Asked) > 0 {
		s.light = append(s.light, l)
	}
	return x, nil
}

// leadIn is how many warm-ups of a load that took over from another are sent before it: of the
// load before, whose requests it found.
const leadIn = 3

// led is a schedule with what was sent last of the load that it took over from in front of it.
func (s *Searched) led(x *Schedule, p run.Probed, rows []record.Row) (*Schedule, error) {
	var src workload.Source
	if s.plan.Prefix > 0 || s.plan.Tree != nil {
		from, done, err := run.Workload(&s.plan.Ask, p.Point-1)
		if err != nil {
			return nil, err
		}
		defer done()
		src = from
	}
	slices.SortStableFunc(rows, func(a, b record.Row) int { return cmp.Compare(a.Due, b.Due) })
	before := leadIn * p.T0 // so long before the load's time 0 the schedule begins
	var first []Asked
	for i := range rows {
		r := &rows[i]
		at := r.Due - p.Follows + before
		q, ok := recorded(r, timing{}, nil, 0, 0)
		if !ok || at < 0 {
			continue
		}
		a := Asked{At: at, Input: int32(q.Input), Output: int32(q.Output)}
		if src != nil {
			asked, err := src.At(r.ID)
			if err != nil {
				return nil, err
			}
			a.Content = load.Content(&asked, q.Input)
		}
		first = append(first, a)
	}
	for _, a := range x.Asked {
		a.At += before
		first = append(first, a)
	}
	n := len(first) - len(x.Asked)
	return &Schedule{Asked: first, From: x.From + n, To: x.To + n}, nil
}

// serve notes how long an answered request was.
func (s *Searched) serve(r *record.Row, a Asked) {
	a.Content = nil
	s.served = append(s.served, a)
	if r.InputPlanned > 0 {
		s.template = append(s.template, int(a.Input-r.InputPlanned))
	}
	if a.Output == r.OutputPlanned {
		s.exact++
	}
	s.cached += int64(max(r.CachedTokens, 0))
}

// law is what a long run asks: what the plan does, with answers as long as the server's.
func (s *Searched) law(rate float64, seed uint64) (interface{ Next() int64 }, func(int64) Asked, error) {
	law, err := s.plan.Law()
	if err != nil {
		return nil, nil, err
	}
	arrivals, err := law.Process(rate, seed, 0)
	switch {
	case err != nil:
		return nil, nil, err
	case len(s.served) == 0:
		return nil, nil, fmt.Errorf("no request was answered")
	}
	rng := rand.New(rand.NewPCG(seed, 0x6c656e67746873))
	drawn := func() Asked { return s.served[rng.IntN(len(s.served))] }
	if !s.plan.Generated() {
		var prompts int64
		for _, a := range s.served {
			prompts += int64(a.Input)
		}
		if s.cached > prompts/20 {
			return nil, nil, fmt.Errorf("prompts of a file share what the server had cached")
		}
		return arrivals, func(int64) Asked { return drawn() }, nil
	}
	src, _, err := run.Workload(&s.plan.Ask, int32(seed%(1<<30))+1<<30)
	if err != nil {
		return nil, nil, err
	}
	beyond := 0
	if len(s.template) > 0 {
		slices.Sort(s.template)
		beyond = s.template[len(s.template)/2]
	}
	asPlanned := float64(s.exact) >= 0.99*float64(len(s.served))
	return arrivals, func(i int64) Asked {
		q, err := src.At(i)
		if err != nil {
			return drawn()
		}
		a := Asked{Input: int32(max(1, q.Input+beyond)), Output: int32(max(1, q.Output))}
		if !asPlanned {
			a.Output = drawn().Output
		}
		if s.plan.Prefix > 0 || s.plan.Tree != nil {
			a.Content = load.Content(&q, int(a.Input))
		}
		return a
	}, nil
}
