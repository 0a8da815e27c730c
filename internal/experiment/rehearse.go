package experiment

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"pitot/internal/data/metric"
	"pitot/internal/data/result"
	"pitot/internal/experiment/decide"
	"pitot/internal/say"
	"pitot/internal/target"
	"pitot/internal/twin/deploy"
)

// A rehearsal is one launch of each configuration on the twin, without the chance by which
// launches differ, and two more of the baseline, one that is slower and one that is faster
// by as much as launches differ. The first say what each knob is expected to do, the
// others by how much each metric of each row is expected to differ between launches; so
// what so many launches would establish.

// usualSpread is how far launches of a server are taken to differ where nobody says it:
// the coefficient of variation of their step times.
const usualSpread = 0.035

// Rehearsal is what a plan is expected to come to.
type Rehearsal struct {
	Plan     *Plan           `json:"-"`
	Forecast *Forecast       `json:"-"`
	Twin     string          `json:"twin"`                 // MODEL@GPU?settings
	Spread   float64         `json:"between_launches"`     // coefficient of variation of step times
	Stated   bool            `json:"stated"`               // by the plan
	Launches int             `json:"launches"`             // of each configuration: as many as the budget is enough for, those of the plan where that is fewer than two
	Budgeted int             `json:"launches_budgeted"`    // that the budget is enough for
	Carries  float64         `json:"baseline_carries"`     // requests per second within the limits
	AtLeast  bool            `json:"at_least,omitempty"`   // more than that was not looked for
	Lines    []RehearsedLine `json:"lines"`                //
	Knobs    []RehearsedKnob `json:"knobs"`                // values, in the order of the plan
	Unknown  []string        `json:"not_known,omitempty"`  // knobs that the twin does not have: why
	Seconds  float64         `json:"seconds"`              // that the plan is expected to take
	USD      float64         `json:"usd"`                  //
	Tokens   [2]float64      `json:"tokens"`               // in and out, of all launches
	Idle     []string        `json:"rows_without_effects"` // that no knob moves by as much as is established
}

// RehearsedLine is a metric of a row.
type RehearsedLine struct {
	Row      string         `json:"row"`
	Metric   string         `json:"metric"`
	Unit     string         `json:"unit"`
	OfShare  bool           `json:"of_share"`
	Baseline float64        `json:"baseline"`
	Smallest *float64       `json:"smallest"` // change, ratio less 1 or difference of shares, that the launches would establish in four of five experiments; null: it does not differ between launches
	Most     *RehearsedKnob `json:"most"`     // the configuration that moves it most; null: none does
	Tells    bool           `json:"tells"`    // that one is established

	sd float64
	f  Figure
}

// RehearsedKnob is a configuration and what is expected of it.
type RehearsedKnob struct {
	Configuration string            `json:"configuration"`
	Change        float64           `json:"change"`            // of the line, or of what is carried
	Effects       []RehearsedEffect `json:"effects,omitempty"` // that are expected to be established, largest first
	Carries       float64           `json:"carries,omitempty"` // requests per second within the limits
	Would         int               `json:"launches_that_would_tell,omitempty"`
}

// RehearsedEffect is what a configuration is expected to do to a line.
type RehearsedEffect struct {
	Row     string  `json:"row"`
	Metric  string  `json:"metric"`
	Change  float64 `json:"change"`
	OfShare bool    `json:"of_share"`
}

// Of says what it is an effect on.
func (e RehearsedEffect) Of() string {
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
		return say.Errorf("--gpu %s: the target of %s is a twin already", gpu, p.Path).WithHint("leave --gpu out; what is rehearsed is target: " + p.Target)
	case p.Server.Twin != "":
		return say.Errorf("--gpu %s: %s names a twin already, sim:%s", gpu, p.Path, p.Server.Twin).WithHint("leave one of them out")
	}
	if !strings.Contains(gpu, "@") {
		told, err := target.Tell(ctx, (&Experiment{Plan: p}).wanted())
		if err != nil || told.Model == "" {
			return say.Errorf("--gpu %s: the server does not tell its model", gpu).WithHint("name it too: --gpu llama-3.1-8b@" + gpu)
		}
		gpu = told.Model + "@" + gpu
	}
	if _, err := deploy.Parse(gpu); err != nil {
		return say.Errorf("--gpu %s: %v", gpu, err).WithHint(say.Hint(err))
	}
	p.Server.Twin = gpu
	return nil
}

// Rehearse carries a plan out on the twin, in a directory that is removed afterwards.
func Rehearse(ctx context.Context, p *Plan, version result.Version, view View) (*Rehearsal, error) {
	spec := p.TwinSpec()
	if spec == "" {
		return nil, say.Errorf("%s: it is not known what the server is", p.Path).WithHint("name its GPU with --gpu h100, or its twin in the plan: target: {url: …, twin: sim:llama-3.1-8b@h100}")
	}
	d, err := deploy.Parse(spec)
	if err != nil {
		return nil, err
	}
	r := &Rehearsal{Plan: p, Twin: spec, Spread: usualSpread, Launches: p.Launches}
	if d.LaunchCV > 0 {
		r.Spread, r.Stated = d.LaunchCV, true
	}
	q, err := r.quiet(d.Efficiency.Scale)
	if err != nil {
		return nil, err
	}
	x, err := rehearsal(ctx, q, version, view)
	if err != nil {
		return nil, err
	}
	r.Forecast = (&Experiment{Plan: p, Dir: x.Dir, runs: map[string]*result.Run{}, twin: x}).Forecast()
	r.Seconds, r.USD = r.Forecast.Seconds, r.Forecast.USD
	for _, row := range r.Forecast.Rows {
		r.Tokens[0] += row.Input * float64(r.Forecast.Launches)
		r.Tokens[1] += row.Output * float64(r.Forecast.Launches)
	}
	r.affordable()
	if err := r.read(x); err != nil {
		return nil, err
	}
	return r, nil
}

// rehearsal carries a quiet plan out, in a directory that is removed. What its runs say is
// kept.
func rehearsal(ctx context.Context, q *Plan, version result.Version, view View) (*Experiment, error) {
	dir, err := os.MkdirTemp("", "pitot-rehearsal-")
	if err != nil {
		return nil, fmt.Errorf("rehearse: %w", err)
	}
	defer os.RemoveAll(dir)
	os.Remove(dir) // an experiment makes its own
	x, err := Measure(ctx, q, nil, dir, version, view)
	if err != nil {
		return nil, err
	}
	for _, c := range q.planned() {
		for _, part := range q.parts(c, 1) {
			x.finished(&part) // is read
		}
	}
	return x, ctx.Err()
}

// quiet is the plan as it is rehearsed: one launch, without the chance by which launches
// differ, and where the deployment's factor on the duration of steps is given, two more of
// the baseline, a slower and a faster one.
func (r *Rehearsal) quiet(scaled float64) (*Plan, error) {
	p := r.Plan
	q := *p
	q.Server, q.Budget, q.left = nil, Budget{}, nil
	q.Launches, q.Stop.Early, q.rehearsed = 1, false, true
	q.Target = "sim:" + without(r.Twin, "launch_cv")
	q.Knobs = nil
	for _, k := range p.Knobs {
		if k.Name == scaleKnob {
			r.Unknown = append(r.Unknown, "scale: a rehearsal sets it itself")
			continue
		}
		kept := Knob{Name: k.Name}
		for _, v := range k.Values {
			one := p.Judged().Plan
			one.Spec = q.Spec(Configuration{Knob: k.Name, Value: v})
			if err := target.Check(target.WantedBy(&one)); err != nil {
				r.Unknown = append(r.Unknown, k.Name+"="+v+": "+err.Error())
				continue
			}
			kept.Values = append(kept.Values, v)
		}
		if len(kept.Values) > 0 {
			q.Knobs = append(q.Knobs, kept)
		}
	}
	if scaled > 0 {
		scale := func(x float64) string { return say.Exact(math.Round(scaled*x*1e6) / 1e6) }
		q.Knobs = append(q.Knobs, Knob{Name: scaleKnob, Values: []string{scale(1 - r.Spread), scale(1 + r.Spread)}})
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
	return &q, nil
}

// affordable is how many launches the budget is enough for.
func (r *Rehearsal) affordable() {
	b, each := r.Plan.Budget, 1/float64(r.Plan.Launches)
	r.Budgeted = r.Plan.Launches
	if b.Time > 0 && r.Seconds > 0 {
		r.Budgeted = min(r.Budgeted, int(b.Time.Seconds()/(r.Seconds*each)))
	}
	if b.USD > 0 && r.USD > 0 {
		r.Budgeted = min(r.Budgeted, int(b.USD/(r.USD*each)))
	}
	if r.Budgeted >= 2 {
		r.Launches = r.Budgeted
	}
}

// read works out what was rehearsed.
func (r *Rehearsal) read(x *Experiment) error {
	all := x.Plan.Configurations()
	knobs, slow := all[1:len(all)-2], all[len(all)-2:]
	capacity, err := parseFigure("capacity")
	if err != nil {
		return err
	}
	for _, row := range x.Plan.Rows {
		figures := x.Plan.figuresOf(row)
		if row.Name == x.Plan.Contract.Row {
			figures = slices.Insert(figures, 0, capacity)
		}
		for _, f := range figures {
			value := func(c Configuration) float64 {
				v := x.figure(f, row.Name, c.Name, 1)
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
			l := RehearsedLine{Row: row.Name, Metric: f.Name, Unit: string(f.Metric.Unit), OfShare: f.Share(), Baseline: base, sd: math.Sqrt((a*a + b*b) / 2), f: f}
			if !l.OfShare {
				l.Baseline = math.Exp(base)
			}
			if f.Name == "capacity" { // one step of the ladder may hide how it moves
				r.Carries, l.sd = l.Baseline, max(l.sd, r.Spread)
				if c, ok := climb(x.finished(&Part{all[0], row, 1}), x.Plan.Contract.Capacity, x.Plan.Contract.Limits); ok {
					r.AtLeast = c.AtLeast
				}
			}
			r.Lines = append(r.Lines, l)
		}
	}
	for _, c := range knobs {
		r.Knobs = append(r.Knobs, RehearsedKnob{Configuration: c.Name})
	}
	for i := range r.Lines {
		l := &r.Lines[i]
		smallest := r.smallest(l, r.Launches)
		if l.sd > 0 && !math.IsNaN(smallest) {
			s := l.back(smallest)
			l.Smallest = &s
		}
		for n, c := range knobs {
			now := x.figure(l.f, l.Row, c.Name, 1)
			change := now - l.Baseline
			if !l.OfShare {
				change = math.Log(now / l.Baseline)
			}
			if math.IsNaN(change) || math.IsInf(change, 0) {
				continue
			}
			k := &r.Knobs[n]
			if l.f.Name == "capacity" {
				k.Carries, k.Change = now, l.back(change)
			}
			const nothing = 1e-6
			if math.Abs(change) < nothing {
				continue
			}
			if l.Most == nil || math.Abs(l.back(change)) > math.Abs(l.Most.Change) {
				l.Most = &RehearsedKnob{Configuration: c.Name, Change: l.back(change)}
			}
			if l.sd == 0 || math.Abs(change) >= smallest {
				k.Effects = append(k.Effects, RehearsedEffect{l.Row, l.Metric, l.back(change), l.OfShare})
				l.Tells = true
			} else if would := r.would(l, math.Abs(change)); would > 0 && (k.Would == 0 || would < k.Would) {
				k.Would = would
			}
		}
	}
	for i := range r.Knobs {
		k := &r.Knobs[i]
		slices.SortStableFunc(k.Effects, func(a, b RehearsedEffect) int {
			return cmp.Compare(math.Abs(b.Change), math.Abs(a.Change))
		})
		if len(k.Effects) > 0 {
			k.Would = 0
		}
	}
	tells := func(row string) bool {
		return slices.ContainsFunc(r.Lines, func(l RehearsedLine) bool { return l.Row == row && l.Tells })
	}
	for _, row := range x.Plan.Rows {
		paired := slices.ContainsFunc(presets(), func(p preset) bool { return p.twin == row.Name && tells(p.name) })
		if row.Name != x.Plan.Contract.Row && !tells(row.Name) && !paired {
			r.Idle = append(r.Idle, row.Name)
		}
	}
	r.Lines = slices.DeleteFunc(r.Lines, func(l RehearsedLine) bool { return l.Smallest == nil && l.Most == nil })
	return nil
}

// Asked says that a hypothesis is about a row.
func (r *Rehearsal) Asked(row string) bool {
	for _, of := range r.Plan.Rows {
		for _, h := range of.Hypotheses {
			if h.Left.Row == row || h.Right.Row == row {
				return true
			}
		}
	}
	return false
}

// back is a change as it is shown: ratio less 1, or a difference of shares.
func (l *RehearsedLine) back(change float64) float64 {
	if l.OfShare {
		return change
	}
	return math.Expm1(change)
}

// smallest is the least change of a line that so many launches would establish.
func (r *Rehearsal) smallest(l *RehearsedLine, launches int) float64 {
	configurations := len(r.Knobs) + 1
	others := len(r.Knobs)
	if l.f.Metric.Name != metric.Capacity { // effects are corrected together
		others *= max(1, len(r.Lines)-1)
	}
	return decide.Smallest(l.sd, others, configurations, launches, r.Plan.Stop.Confidence, r.Plan.Stop.Early)
}

// would is how many launches would tell a change, 0 where it takes more than anyone would
// start.
func (r *Rehearsal) would(l *RehearsedLine, change float64) int {
	const most = 30
	for n := r.Launches + 1; n <= most; n++ {
		if change >= r.smallest(l, n) {
			return n
		}
	}
	return 0
}

// Share is that of the plan's time that is a row's, or a configuration's.
func (r *Rehearsal) Share(row string) (seconds, usd float64) {
	for _, f := range r.Forecast.Rows {
		if f.Row.Name == row {
			seconds = f.Seconds * float64(r.Forecast.Launches)
		}
	}
	if r.Seconds > 0 {
		usd = r.USD * seconds / r.Seconds
	}
	return seconds, usd
}
