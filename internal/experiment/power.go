package experiment

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"pitot/internal/experiment/decide"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/sim/deploy"
	"pitot/internal/stats"
	"pitot/internal/target"
)

// The power of a plan is what its launches can tell. On the twin each configuration is
// launched once, without the chance by which launches differ, and the baseline twice more:
// slower and faster by as much as launches differ. The first say what each knob is expected
// to do, the others by how much each metric of each row differs between launches.

// usualSpread is the assumed spread of a server's launches where nobody gives one. It is the
// coefficient of variation of their step times.
const usualSpread = 0.035

// Power is the expected statistical power of a plan's launches, if the twin is right.
type Power struct {
	Twin     string      `json:"twin"`                 // MODEL@GPU?settings
	Spread   float64     `json:"between_launches"`     // coefficient of variation of step times
	Stated   bool        `json:"stated"`               // by the plan
	Launches int         `json:"launches"`             // of each configuration: as many as the budget is enough for, those of the plan where that is fewer than two
	Budgeted int         `json:"launches_budgeted"`    // that the budget is enough for
	Carries  float64     `json:"baseline_carries"`     // requests per second within the limits
	AtLeast  bool        `json:"at_least,omitempty"`   // more than that was not looked for
	Lines    []PowerLine `json:"lines"`                //
	Knobs    []PowerKnob `json:"knobs"`                // values, in the order of the plan
	Unknown  []string    `json:"not_known,omitempty"`  // knobs that the twin does not have: why
	Idle     []string    `json:"rows_without_effects"` // that no knob moves by as much as is established

	plan *Plan
}

// PowerLine is a metric of a row.
type PowerLine struct {
	Row      string     `json:"row"`
	Metric   string     `json:"metric"`
	Unit     string     `json:"unit"`
	OfShare  bool       `json:"of_share"`
	Baseline float64    `json:"baseline"`
	Smallest *float64   `json:"smallest"` // change, ratio less 1 or difference of shares, that the launches would establish in four of five experiments; null: it does not differ between launches
	Most     *PowerKnob `json:"most"`     // the configuration that moves it most; null: none does
	Shows    bool       `json:"shows"`    // that a difference would be established

	sd float64
	f  Figure
}

// PowerKnob is a configuration and what is expected of it.
type PowerKnob struct {
	Configuration string        `json:"configuration"`
	Change        float64       `json:"change"`            // of the line, or of what is carried
	Effects       []PowerEffect `json:"effects,omitempty"` // that are expected to be established, largest first
	Carries       float64       `json:"carries,omitempty"` // requests per second within the limits
	Would         int           `json:"launches_that_would_tell,omitempty"`
}

// PowerEffect is the expected effect of a configuration on a line.
type PowerEffect struct {
	Row     string  `json:"row"`
	Metric  string  `json:"metric"`
	Change  float64 `json:"change"`
	OfShare bool    `json:"of_share"`
}

// Of says what it is an effect on.
func (e PowerEffect) Of() string {
	if e.Metric == string(metric.Capacity) {
		return "what " + e.Row + " carries"
	}
	return e.Metric + " of " + e.Row
}

// scaleKnob is the twin's factor on the duration of steps.
const scaleKnob = "scale"

// AssumeTwin gives the plan of a server a twin: MODEL@GPU, or a GPU, of which the server is
// asked for its model. Where the plan names one, that is left.
func (p *Plan) AssumeTwin(ctx context.Context, gpu string) error {
	switch {
	case p.Server == nil:
		return say.Errorf("--deployment %s: the target of %s is a twin already", gpu, p.Path).WithHint("leave --deployment out; what is simulated is target: " + p.Target)
	case p.Server.Twin != "":
		return say.Errorf("--deployment %s: %s names a twin already, sim:%s", gpu, p.Path, p.Server.Twin).WithHint("leave one of them out")
	}
	if !strings.Contains(gpu, "@") {
		told, err := target.IdentifyServer(ctx, (&Experiment{Plan: p}).wantedTarget())
		if err != nil || told.Model == "" {
			return say.Errorf("--deployment %s: the server does not report its model", gpu).WithHint("name it too: --deployment llama-3.1-8b@" + gpu)
		}
		gpu = told.Model + "@" + gpu
	}
	if _, err := deploy.Parse(gpu); err != nil {
		return say.Errorf("--deployment %s: %v", gpu, err).WithHint(say.HintOf(err))
	}
	p.Server.Twin = gpu
	return nil
}

// simulation is a plan that is carried out on the twin, with what is asked of it.
type simulation struct {
	plan    *Plan
	spread  float64  // of launches
	stated  bool     // by the plan
	power   bool     // all configurations are launched, and a slower and a faster baseline
	unknown []string // knobs that the twin does not have: why
	done    *Experiment
}

// newSimulation makes the plan of a simulation: one launch of each configuration, without the
// chance by which launches differ. For the power of the plan it has two more of the
// baseline, a slower and a faster one.
func (x *Experiment) newSimulation(power bool) (*simulation, error) {
	p := x.Plan
	s := &simulation{spread: usualSpread, power: power}
	spec, scaled := p.TwinSpec(), 1.0
	if d, err := deploy.Parse(spec); err == nil {
		scaled = d.Efficiency.Scale
		if d.LaunchCV > 0 {
			s.spread, s.stated = d.LaunchCV, true
		}
	} else if power {
		return nil, err
	}
	q := *p
	q.Server, q.Budget, q.left = nil, Budget{}, nil
	q.Launches, q.Stop.Early, q.simulated = 1, false, true
	q.Target = "sim:" + withoutSetting(spec, "launch_cv")
	q.Knobs = nil
	if power {
		s.setKnobs(p, &q, scaled)
	}
	reading := &reader{plan: &q, path: p.Path}
	rows := q.Rows
	q.Rows = nil
	for _, row := range rows {
		copied := *row
		copied.Hypotheses = nil
		q.Rows = append(q.Rows, &copied)
		if err := reading.planRow(&copied); err != nil {
			return nil, err
		}
	}
	s.plan = &q
	return s, nil
}

// setKnobs takes over the knobs of a plan as far as the twin has them, and adds the slower
// and the faster baseline. scaled is the deployment's factor on the duration of steps.
func (s *simulation) setKnobs(p, q *Plan, scaled float64) {
	for _, k := range p.Knobs {
		if k.Name == scaleKnob {
			s.unknown = append(s.unknown, "scale: a forecast sets it itself")
			continue
		}
		kept := Knob{Name: k.Name}
		for _, v := range k.Values {
			one := p.ContractRow().Plan
			one.Spec = q.Spec(Configuration{Knob: k.Name, Value: v})
			if err := target.Check(target.WantedBy(&one)); err != nil {
				s.unknown = append(s.unknown, k.Name+"="+v+": "+err.Error())
				continue
			}
			kept.Values = append(kept.Values, v)
		}
		if len(kept.Values) > 0 {
			q.Knobs = append(q.Knobs, kept)
		}
	}
	scale := func(x float64) string { return say.Exact(math.Round(scaled*x*1e6) / 1e6) }
	q.Knobs = append(q.Knobs, Knob{Name: scaleKnob, Values: []string{scale(1 - s.spread), scale(1 + s.spread)}})
}

// run carries it out in a directory that is removed. What its runs say is kept.
func (s *simulation) run(ctx context.Context, version result.Version, view View) error {
	dir, err := os.MkdirTemp("", "pitot-forecast-")
	if err != nil {
		return fmt.Errorf("forecast: %w", err)
	}
	defer os.RemoveAll(dir)
	os.Remove(dir) // an experiment makes its own
	x, err := Measure(ctx, s.plan, nil, dir, version, view)
	if err != nil {
		return err
	}
	for _, c := range s.plan.plannedConfigurations() {
		for _, part := range s.plan.launchParts(c, 1) {
			x.finishedRun(&part) // is read
		}
	}
	s.done = x
	return ctx.Err()
}

// powerOf works out what the launches of a plan would tell, that take so much.
func (s *simulation) powerOf(p *Plan, f *Forecast) *Power {
	r := &Power{Twin: p.TwinSpec(), Spread: s.spread, Stated: s.stated, Launches: p.Launches, Unknown: s.unknown, plan: p}
	r.setAffordable(f)
	r.read(s.done)
	return r
}

// setAffordable sets the number of launches that the budget covers.
func (r *Power) setAffordable(f *Forecast) {
	b, each := r.plan.Budget, 1/float64(r.plan.Launches)
	r.Budgeted = r.plan.Launches
	if b.Time > 0 && f.Seconds > 0 {
		r.Budgeted = min(r.Budgeted, int(b.Time.Seconds()/(f.Seconds*each)))
	}
	if b.USD > 0 && f.USD > 0 {
		r.Budgeted = min(r.Budgeted, int(b.USD/(f.USD*each)))
	}
	if r.Budgeted >= 2 {
		r.Launches = r.Budgeted
	}
}

// read takes it from the runs of the simulation.
func (r *Power) read(x *Experiment) {
	all := x.Plan.Configurations()
	knobs, slow := all[1:len(all)-2], all[len(all)-2:]
	capacity := capacityFigure()
	for _, row := range x.Plan.Rows {
		figures := x.Plan.figuresOf(row)
		if row.Name == x.Plan.Contract.Row {
			figures = slices.Insert(figures, 0, capacity)
		}
		for _, f := range figures {
			value := func(c Configuration) float64 {
				v := x.figureValue(f, row.Name, c.Name, 1)
				if !f.Share() {
					v = math.Log(v)
				}
				return v
			}
			base := value(all[0])
			a, b := value(slow[0])-base, value(slow[1])-base
			if math.IsNaN(base) || math.IsInf(base, 0) {
				continue
			}
			l := PowerLine{Row: row.Name, Metric: f.Name, Unit: string(f.Metric.Unit), OfShare: f.Share(), Baseline: base, sd: math.Sqrt((a*a + b*b) / 2), f: f}
			if !l.OfShare {
				l.Baseline = math.Exp(base)
			}
			if f.Name == "capacity" { // one step of the ladder may hide how it moves
				r.Carries, l.sd = l.Baseline, max(l.sd, r.Spread)
				if c, ok := readClimb(x.finishedRun(&Part{all[0], row, 1}), x.Plan.Contract.Capacity, x.Plan.Contract.Limits); ok {
					r.AtLeast = c.AtLeast
				}
			}
			r.Lines = append(r.Lines, l)
		}
	}
	for _, c := range knobs {
		r.Knobs = append(r.Knobs, PowerKnob{Configuration: c.Name})
	}
	for i := range r.Lines {
		l := &r.Lines[i]
		smallest := r.smallestEffect(l, r.Launches)
		if l.sd > 0 && !math.IsNaN(smallest) {
			s := l.shownChange(smallest)
			l.Smallest = &s
		}
		for n, c := range knobs {
			now := x.figureValue(l.f, l.Row, c.Name, 1)
			change := now - l.Baseline
			if !l.OfShare {
				change = math.Log(now / l.Baseline)
			}
			if math.IsNaN(change) || math.IsInf(change, 0) {
				continue
			}
			k := &r.Knobs[n]
			if l.f.Name == "capacity" {
				k.Carries, k.Change = now, l.shownChange(change)
			}
			const nothing = 1e-6
			if math.Abs(change) < nothing {
				continue
			}
			if l.Most == nil || math.Abs(l.shownChange(change)) > math.Abs(l.Most.Change) {
				l.Most = &PowerKnob{Configuration: c.Name, Change: l.shownChange(change)}
			}
			if l.sd == 0 || math.Abs(change) >= smallest {
				k.Effects = append(k.Effects, PowerEffect{l.Row, l.Metric, l.shownChange(change), l.OfShare})
				l.Shows = true
			} else if would := r.launchesFor(l, math.Abs(change)); would > 0 && (k.Would == 0 || would < k.Would) {
				k.Would = would
			}
		}
	}
	for i := range r.Knobs {
		k := &r.Knobs[i]
		stats.SortStable(k.Effects, func(a, b PowerEffect) int {
			return cmp.Compare(math.Abs(b.Change), math.Abs(a.Change))
		})
		if len(k.Effects) > 0 {
			k.Would = 0
		}
	}
	tells := func(row string) bool {
		return slices.ContainsFunc(r.Lines, func(l PowerLine) bool { return l.Row == row && l.Shows })
	}
	for _, row := range x.Plan.Rows {
		paired := slices.ContainsFunc(presets(), func(p preset) bool { return p.twin == row.Name && tells(p.name) })
		if row.Name != x.Plan.Contract.Row && !tells(row.Name) && !paired {
			r.Idle = append(r.Idle, row.Name)
		}
	}
	r.Lines = slices.DeleteFunc(r.Lines, func(l PowerLine) bool { return l.Smallest == nil && l.Most == nil })
}

// HasHypothesis reports whether a hypothesis is about a row.
func (p *Plan) HasHypothesis(row string) bool {
	for _, of := range p.Rows {
		for _, h := range of.Hypotheses {
			if h.Left.Row == row || h.Right.Row == row {
				return true
			}
		}
	}
	return false
}

// shownChange is a change as it is shown: ratio less 1, or a difference of shares.
func (l *PowerLine) shownChange(change float64) float64 {
	if l.OfShare {
		return change
	}
	return math.Expm1(change)
}

// smallestEffect is the least change of a line that so many launches would establish.
func (r *Power) smallestEffect(l *PowerLine, launches int) float64 {
	configurations := len(r.Knobs) + 1
	others := len(r.Knobs)
	if l.f.Metric.Name != metric.Capacity { // effects are corrected together
		others *= max(1, len(r.Lines)-1)
	}
	return decide.SmallestEffect(l.sd, others, configurations, launches, r.plan.Stop.Confidence, r.plan.Stop.Early)
}

// launchesFor returns the number of launches that would establish a change. It is 0 where that
// takes more than anyone would start.
func (r *Power) launchesFor(l *PowerLine, change float64) int {
	const most = 30
	for n := r.Launches + 1; n <= most; n++ {
		if change >= r.smallestEffect(l, n) {
			return n
		}
	}
	return 0
}
