package predict

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/sim/deploy"
)

// A fit has few parameters, each a physical quantity that the catalogue has a
// value of, by measurement or assumption, and a spread around it. All are fitted
// by their logarithm, so that an uncertainty is a factor. What the runs do not
// tell stays at the catalogue's value: a fit on two loads must hold on a third.

// parameter is one thing that a fit may move.
type parameter struct {
	name   string // the setting of a deployment
	lo, hi float64
	usual  float64 // where the catalogue's value is below lo
	// spread is the distance of servers from the catalogue, as the standard deviation of the
	// logarithm. The first is where the accelerator's kernels were measured, and the second where
	// not.
	spread [2]float64
}

// unit is "s" of a length of time, "" of a plain number.
func (p *parameter) unit() string {
	if _, ok := new(deploy.Deployment).Field(p.name).(*time.Duration); ok {
		return "s"
	}
	return ""
}

// ofGroup reports whether only a group of accelerators has the parameter.
func (p *parameter) ofGroup() bool { return strings.HasPrefix(p.name, "allreduce_") }

func (p *parameter) value(d *deploy.Deployment) float64 {
	switch field := d.Field(p.name).(type) {
	case *time.Duration:
		return field.Seconds()
	case *float64:
		return *field
	}
	return math.NaN()
}

func (p *parameter) setValue(d *deploy.Deployment, v float64) {
	v = min(max(v, p.lo), p.hi)
	switch field := d.Field(p.name).(type) {
	case *time.Duration:
		*field = time.Duration(v * 1e9)
	case *float64:
		*field = v
	}
}

// parameters are all, the most certain first. The time to read the weights and the
// overhead of a step cannot be separated by a run: what is known of each before says
// which takes up how much of a difference. The spreads: kernels that were measured differ
// by version and clock, by 0.06 to 0.35 from the formula that sums them
// (SOURCES.md); of hosts and front ends little is known, a factor of 2 to 3.
var parameters = []parameter{
	{"bandwidth_efficiency", 1e-5, 1, 0.8, [2]float64{0.12, 0.15}},
	{"step_overhead", 10e-6, 1, 2e-3, [2]float64{0.7, 1.2}},
	{"row_overhead", 0.1e-6, 0.1, 20e-6, [2]float64{0.7, 1.2}},
	{"prefill_overhead", 1e-6, 1, 300e-6, [2]float64{1, 1.5}},
	{"prompt_overhead", 1e-6, 1, 100e-6, [2]float64{1.5, 1.5}},
	{computeEfficiency, 1e-5, 1, 0.6, [2]float64{0.4, 2}},
	{"attention_efficiency", 1e-6, 1, 1, [2]float64{0.6, 2}},
	{promptAttention, 1e-6, 1, 0.5, [2]float64{0.7, 2}},
	{"allreduce_latency", 0.1e-6, 0.1, 6e-6, [2]float64{0.7, 1.2}},
	{"allreduce_gb_per_s", 0.01, 1e5, 100, [2]float64{0.5, 1.2}},
	{"frontend_latency", 10e-6, 10, 3e-3, [2]float64{1.2, 1.2}},
	{"frontend_request", 10e-6, 1, 1e-3, [2]float64{1.2, 1.2}},
	{"frontend_prompt_token", 1e-9, 1e-3, 1e-6, [2]float64{1, 1}},
	{"frontend_chunk", 0.1e-6, 0.1, 30e-6, [2]float64{1, 1}},
	{"frontend_jitter", 0.001, 3, 0.2, [2]float64{1, 1}},
	{"frontend_contention", 0.001, 1, 0.1, [2]float64{1.2, 1.2}},
	{"step_jitter", 0.001, 1, 0.02, [2]float64{1, 1}},
}

// prior is a parameter that a fit of one deployment moves, and what is known of it
// without a run.
type prior struct {
	*parameter
	centre float64
	sd     float64 // of the logarithm
}

// The attention of prompts is computed on the same units as their products.
const computeEfficiency, promptAttention = "compute_efficiency", "prompt_attention_efficiency"

// centreAttentionPrior moves the centre of the prior of prompts' attention where no kernels were
// measured: an accelerator that is so much slower at the products of prompts than the
// catalogue has it (fewer cores, no units for matrices) is so at their attention too,
// which only long prompts tell.
func (f *fitter) centreAttentionPrior(d *deploy.Deployment) {
	if d.Measured() {
		return
	}
	slower := f.d.Efficiency.Compute / f.usual.Efficiency.Compute
	for i := range f.parameters {
		if p := &f.parameters[i]; p.name == promptAttention {
			p.centre = min(max(p.centre*slower, p.lo), p.hi)
		}
	}
}

// priors are those of a deployment, and the deployment at their centre: from
// nothing no factor leads anywhere.
func priors(d *deploy.Deployment) (list []prior, centre deploy.Deployment) {
	centre = *d
	measured := 1
	if d.Measured() {
		measured = 0
	}
	for i := range parameters {
		p := &parameters[i]
		if p.ofGroup() && d.TensorParallel < 2 {
			continue
		}
		if p.value(&centre) < p.lo {
			p.setValue(&centre, p.usual)
		}
		list = append(list, prior{p, p.value(&centre), p.spread[measured]})
	}
	return list, centre
}

// precision returns the weight of the prior in the loss. It counts for each square of the logarithm
// that the parameter is from its centre.
func (p *prior) precision() float64 { return strength / (p.sd * p.sd) }

// strength is the weight of the priors next to the moments of the runs. The standard errors of the
// moments are rather too large.
const strength = 0.3

// Fitted holds what a fit found of one parameter.
type Fitted struct {
	Name  string  `json:"name" yaml:"name"`
	Value float64 `json:"value" yaml:"value"`
	Unit  string  `json:"unit,omitempty" yaml:"unit,omitempty"`
	// Factor is the half width of the range of the logarithm, as a factor:
	// from Value/Factor to Value·Factor, or to a bound. It is 1 where there is no
	// range: then Reason says why.
	Factor float64 `json:"factor" yaml:"factor"`
	Low    float64 `json:"low" yaml:"low"`
	High   float64 `json:"high" yaml:"high"`
	// Identified is false where the runs say too little of the parameter:
	// the value is then as good as any within the factor.
	Identified bool `json:"identified" yaml:"identified"`
	// StandIn is another parameter that can stand in for it: with that known,
	// the runs would determine this one.
	StandIn string `json:"stand_in,omitempty" yaml:"stand_in,omitempty"`
	// AtBound: the runs ask for what lies beyond the bound. How far beyond is no
	// range of the value.
	AtBound bool   `json:"at_bound,omitempty" yaml:"at_bound,omitempty"`
	Reason  string `json:"reason,omitempty" yaml:"reason,omitempty"`
}

// Fit is a calibration of the twin.
type Fit struct {
	Schema     string     `json:"schema"`
	Deployment string     `json:"deployment"`
	Parameters []Fitted   `json:"parameters"`
	Runs       []Residual `json:"runs"`
	LeftOut    []LeftOut  `json:"left_out,omitempty"` // with at least two loads
	// Error is the error to expect of a load that lies among those that were fitted and is none of
	// them. It is nil where too few were left out to tell.
	Error *deploy.ExpectedError `json:"error_to_expect,omitempty"`
	Next  NextLoad              `json:"next_load"` // that would add most to what is known
	// Open are the ways in which the parameters may be off together, as factors, one
	// standard deviation away each.
	Open []map[string]float64 `json:"open,omitempty"`
	// PacePct is by how many percent runs of the same load differ in speed, as a standard
	// deviation; 0 where no load was measured twice.
	PacePct float64      `json:"pace_pct,omitempty"`
	Range   deploy.Range `json:"range"`
	Notes   []string     `json:"notes,omitempty"`
	Origins []string     `json:"origins,omitempty"` // of the runs, as a profile keeps them

	Fitted *deploy.Deployment `json:"-"`
}

// Residual holds the distance of the fitted twin from a run, on requests that the fit did not see.
type Residual struct {
	Run      string  `json:"run"`
	Fitted   int     `json:"fitted_requests"`
	Held     int     `json:"held_back_requests"`
	Recorded Metrics `json:"recorded"`
	ErrorPct Metrics `json:"error_pct"`
}

// FitSchema is the schema of a fit as JSON.
const FitSchema = "pitot.fit/v1"

// FitRuns calibrates a deployment from runs. The end of each, a fifth or more, is
// held back to judge the fit on. It begins with what the gaps between chunks say
// of the steps, moves all parameters together as long as the twin comes nearer
// to the moments of the runs, and works out from how these change with each
// parameter, and with chance, how far each is known. Meanwhile the runs' own slow
// phases are replayed; how slow and how long they are is fitted from the gaps
// alone. Errors are the user's.
func FitRuns(d *deploy.Deployment, runs []*Recording) (*Fit, error) { return FitFrom(d, nil, runs) }

// FitFrom is [FitRuns] that begins at what some of the runs came to ([RoughFit]).
func FitFrom(d, from *deploy.Deployment, runs []*Recording) (*Fit, error) {
	n := 0
	for _, r := range runs {
		n += len(r.RecordedSeries().TTFT)
	}
	if n < 50 {
		return nil, say.Errorf("%d answered requests are too few to fit anything; it takes 50", n).WithHint("measure longer with --duration")
	}
	shown := shownOf(runs)
	f, gaps, slow, err := fitParameters(d, from, shown, mostSlopes)
	if err != nil {
		return nil, err
	}
	known, cov := f.parameterUncertainty()
	fit := &Fit{Schema: FitSchema, Deployment: d.Spec, Parameters: append(known, slow.parameters()...), Next: f.chooseNextLoad(cov)}
	fit.LeftOut = f.leaveLoadsOut(d, gaps, runs, shown)
	fit.PacePct = 100 * paceOf(runs)
	fit.Error = errorAtOtherTime(expectedError(fit.LeftOut), fit.PacePct)
	fit.Open = f.uncertainDirections(cov)
	slow.applyTo(&f.d)
	fit.Range = emptyRange
	for i, r := range runs {
		fit.Runs = append(fit.Runs, r.residualOf(&f.d, shown[i]))
		widenRange(&fit.Range, r)
		if r.run != nil {
			if o := runOrigin(r.run); !slices.Contains(fit.Origins, o) {
				fit.Origins = append(fit.Origins, o)
			}
		}
	}
	fit.Notes = notesOf(d, runs)
	fit.Fitted = &f.d // as its profile would have it
	f.d.Fitted, f.d.FittedOn, f.d.FittedError, f.d.FittedOpen = &fit.Range, fit.Origins, fit.Error, fit.Open
	return fit, nil
}

// notesOf returns what stands in the way of a fit of the deployment to the runs. Each note comes
// once, with its first run and the number of further runs.
func notesOf(d *deploy.Deployment, runs []*Recording) (notes []string) {
	const name = "\x00" // of the run, in a note that may be of several
	var kinds []string
	of := map[string][]string{}
	for _, r := range runs {
		for _, n := range r.notes(name, d) {
			if of[n] == nil {
				kinds = append(kinds, n)
			}
			of[n] = append(of[n], r.Dir)
		}
	}
	for _, n := range kinds {
		run := of[n][0]
		if more := len(of[n]) - 1; more > 0 {
			run += fmt.Sprintf(" and %d more", more)
		}
		notes = append(notes, strings.Replace(n, name, run, 1))
	}
	return notes
}

// notes are those of one run, which they call by a name.
func (r *Recording) notes(name string, d *deploy.Deployment) (notes []string) {
	if n := r.meanRunning(); n > manyStreams {
		notes = append(notes, fmt.Sprintf("in %s more than %d requests ran at once: what the front end takes for as many chunks may be taken for slow steps, and for slow phases; fit on runs of fewer", name, manyStreams))
	}
	if r.run == nil {
		return notes
	}
	notes = append(notes, deploymentDifferences(name, r.run, d)...)
	if s := r.run.Points[r.point].Standstills; s != nil {
		notes = append(notes, fmt.Sprintf("in %s all streams stood still for %.3g ms every %.3g s; the twin has no such thing, and other parameters may take its part: mend that first", name, s.ForMS, s.EveryS))
	}
	if d := disturbedChecks(&r.run.Points[r.point]); d != "" {
		notes = append(notes, fmt.Sprintf("in %s the client was disturbed, see its checks (%s): what that took is fitted as the server's; measure again on a machine with nothing else to do", name, d))
	}
	return notes
}

// disturbedChecks names the checks by which a client did not see the server alone, ""
// for none.
func disturbedChecks(p *result.Point) string {
	var why []string
	for _, c := range p.Checks {
		if c.Status != result.Pass && slices.Contains([]string{result.CheckHost, result.CheckSendLag, result.CheckClientCPU}, c.Name) {
			why = append(why, c.Name)
		}
	}
	return strings.Join(why, ", ")
}

// calmSlopes is the number of times that a fit without slow phases works slopes out at most, where
// there may be some. It need only be near enough to tell what else lasts.
const calmSlopes = 3

// fitParameters moves the parameters as far as the runs say, from where another fit has
// them or from what the gaps say. The runs' slow phases it replays, and gives apart:
// where the gaps speak for some, a fit without them tells what of these is none.
func fitParameters(d, from *deploy.Deployment, shown []*Recording, most int) (*fitter, *regression, slowness, error) {
	gaps, ok := gapsOf(shown)
	if !ok {
		return nil, nil, slowness{}, say.Errorf("the runs have too few chunks to read the duration of steps from").WithHint("measure longer, and with streaming")
	}
	slow := gaps.slowPhases()
	if slow.cv == 0 {
		f := newFitter(d, from, gaps, shown, &slow)
		f.chooseStart(f.d, f.usual)
		f.polish(most)
		return f, gaps, slow, nil
	}
	calm := newFitter(d, from, gaps, shown, &slowness{})
	calm.chooseStart(calm.d, calm.usual)
	calm.polish(min(most, calmSlopes))
	gaps.calm = calm.replayGaps()
	if slow = gaps.slowPhases(); slow.cv == 0 {
		calm.polish(most)
		return calm, gaps, slow, nil
	}
	slow.goThrough(shown)
	f := newFitter(d, from, gaps, shown, &slow)
	f.chooseStart(f.d, f.usual, calm.d)
	f.polish(most)
	return f, gaps, slow, nil
}

// newFitter begins a fit, from where another has the parameters or from what the gaps
// say, whose replays go through the runs' courses of slow phases.
func newFitter(d, from *deploy.Deployment, gaps *regression, shown []*Recording, slow *slowness) *fitter {
	f := &fitter{}
	f.parameters, f.usual = priors(d)
	f.d = f.usual
	f.d.Settings.SlowCV = 0
	if from == nil {
		gaps.addEquations(slow.courses)
		gaps.setFromGaps(&f.d, shown, slow)
	}
	for i := range f.parameters {
		p := &f.parameters[i]
		if from != nil {
			p.setValue(&f.d, p.value(from))
			continue
		}
		within := 2 * p.sd // the gaps tell what is small badly
		if p.name == computeEfficiency && !d.Measured() {
			within = math.Inf(1) // of a single core of a CPU it is far off, and no small part
		}
		p.setValue(&f.d, p.centre*math.Exp(min(max(math.Log(p.value(&f.d)/p.centre), -within), within)))
	}
	f.centreAttentionPrior(d)
	pace := paceOf(shown)
	for _, r := range shown {
		c := newComparison(r.limitTokens(replayedTokens/len(shown)), &f.d)
		c.pace = pace
		f.runs = append(f.runs, c)
	}
	return f
}

// replayGaps are those of a replay of each run, as the regression takes them.
func (f *fitter) replayGaps() [][]gap {
	var g regression
	for _, c := range f.runs {
		g.addGaps(c.run.servedBy(&f.d, 1))
	}
	return g.gaps
}

// chooseStart begins with the one of several deployments that is nearest to the runs.
func (f *fitter) chooseStart(from ...deploy.Deployment) {
	var trials []trial
	for _, d := range from {
		d.Settings.SlowCV = 0
		trials = append(trials, trial{d, 1})
	}
	best, all := math.Inf(1), f.trialResiduals(trials)
	f.scale = math.Inf(1)
	for _, r := range all {
		f.scale = min(f.scale, scaleOf(r))
	}
	for i, r := range all {
		if l := f.totalLoss(&trials[i].d, r); l < best {
			best, f.d = l, trials[i].d
		}
	}
}

// applyTo gives a deployment slow phases.
func (s *slowness) applyTo(d *deploy.Deployment) {
	if d.Settings.SlowCV = s.cv; s.cv > 0 {
		d.Settings.SlowTime = time.Duration(s.time * 1e9)
	}
}

// manyStreams is the number of streams at once that make the front end's part of a gap between
// chunks as large as the step's. The two are then not separated.
const manyStreams = 64

// enough is the number of requests of a run that the search uses.
const enough = 1500

// shownPart returns the part of a run that a fit sees: the requests of the first four fifths, and
// after them only the load that they met.
func (r *Recording) shownPart() *Recording {
	n := 0
	for _, q := range r.Requests {
		if q.measured {
			n++
		}
	}
	return r.First(min(n-n/5, enough))
}

// replayedTokens is the number of tokens of answers that a fit replays of all runs together. What
// many short runs have beyond that tells little and takes long.
const replayedTokens = 250_000

// limitTokens is a run until so many tokens were answered, and each of its users has had
// some requests.
func (r *Recording) limitTokens(tokens int) *Recording {
	const each = 5
	n, sum := 0, 0
	for _, q := range r.Requests {
		if !q.measured {
			continue
		}
		if sum += q.Output; sum > tokens && n >= max(each*r.users, 5*leastGroup) {
			return r.First(n)
		}
		n++
	}
	return r
}

// First is the first so many requests of a run that are measured, and behind them
// only the load that they met.
func (r *Recording) First(n int) *Recording {
	c := *r
	c.Requests, c.until = nil, math.Inf(1)
	begin, end := r.Requests[0].Arrival, 0.0
	for _, q := range r.Requests {
		switch {
		case n == 0 && q.Arrival > end+0.1*(end-begin): // a replay may be faster
			return &c
		case n == 0:
			q.measured, c.until = false, min(c.until, q.Arrival)
		case q.measured:
			end = max(end, q.Arrival+q.seen.e2e)
			n--
		}
		c.Requests = append(c.Requests, q)
	}
	return &c
}

// shownOf returns the part of each run that a fit sees.
func shownOf(runs []*Recording) []*Recording {
	shown := make([]*Recording, len(runs))
	for i, r := range runs {
		shown[i] = r.shownPart()
	}
	return shown
}

// LoadRange returns the range of loads of the recording.
func (r *Recording) LoadRange() deploy.Range {
	g := emptyRange
	widenRange(&g, r)
	return g
}

// emptyRange is the range that every run widens.
var emptyRange = deploy.Range{Input: [2]int{math.MaxInt, 0}, Output: [2]int{math.MaxInt, 0}, Running: [2]float64{math.MaxFloat64, 0}}

// widenRange takes a run into the range.
func widenRange(g *deploy.Range, r *Recording) {
	busy, last := 0.0, 0.0
	for _, q := range r.Requests {
		g.Input = [2]int{min(g.Input[0], q.Input), max(g.Input[1], q.Input)}
		g.Output = [2]int{min(g.Output[0], q.Output), max(g.Output[1], q.Output)}
		busy += q.seen.e2e
		last = max(last, q.Arrival+q.seen.e2e)
	}
	if last > 0 {
		g.Running = [2]float64{min(g.Running[0], busy/last), max(g.Running[1], busy/last)}
	}
}

// futures is the number of replays that a prediction is the mean of, and calmFutures the number
// where there are no slow phases. With slow phases, one may fall where a run is looked at.
const futures, calmFutures = 16, 4

// residualOf returns the distance of the deployment from the requests that the fit did not see.
func (r *Recording) residualOf(d *deploy.Deployment, shown *Recording) Residual {
	held := func(i int) bool { return r.Requests[i].Arrival >= shown.until }
	obs := r.joinTimings(r.timings(), held)
	x := Residual{Run: r.Dir, Held: len(obs.TTFT), Recorded: obs.Metrics()}
	x.Fitted = len(shown.RecordedSeries().TTFT)
	x.ErrorPct = PercentErrors(r.expectedMetrics(d, held), x.Recorded)
	return x
}

// expectedMetrics are the metrics of the wanted requests as the mean over replays.
func (r *Recording) expectedMetrics(d *deploy.Deployment, wanted func(i int) bool) Metrics {
	n := calmFutures
	if d.Settings.SlowCV > 0 {
		n = futures
	}
	list := make([]Metrics, n)
	for seed := range list {
		list[seed] = r.joinTimings(r.serve(d, uint64(seed), nil), wanted).Metrics()
	}
	return meanMetrics(list)
}

// Profile returns the fit in the form in which it is kept: the fitted parameters, and the settings
// of the engine they were fitted with.
func (f *Fit) Profile(given map[string]string) *deploy.Profile {
	p := &deploy.Profile{Schema: deploy.ProfileSchema, Deployment: f.Deployment, Settings: map[string]string{}, Factors: map[string]float64{}, Range: f.Range, Runs: f.Origins, Error: f.Error, Open: f.Open}
	maps.Copy(p.Settings, given)
	for _, x := range f.Parameters {
		v := strconv.FormatFloat(x.Value, 'g', 6, 64)
		if x.Unit == "s" {
			v = time.Duration(x.Value * 1e9).String()
		}
		p.Settings[x.Name] = v
		if x.Reason == "" {
			p.Factors[x.Name] = math.Round(x.Factor*1000) / 1000
		}
	}
	return p
}

// fitter holds the state of a fit.
type fitter struct {
	parameters []prior
	usual      deploy.Deployment // the parameters at the centres of their priors
	runs       []*comparison
	d          deploy.Deployment // the best so far
	base       []float64         // its residuals, with the first chances
	slopes     [][][]float64     // of the residuals there, each time by other chances
	scale      float64           // of residuals, see scaleOf
}

// trial is a deployment to replay all runs on.
type trial struct {
	d    deploy.Deployment
	seed uint64
}

// trialResiduals are those of all runs, for each trial.
func (f *fitter) trialResiduals(trials []trial) [][]float64 {
	parts := make([][][]float64, len(trials))
	runs := len(f.runs)
	for t := range parts {
		parts[t] = make([][]float64, runs)
	}
	InParallel(len(trials)*runs, func(k int) {
		t, c := k/runs, f.runs[k%runs]
		parts[t][k%runs] = c.momentResiduals(c.momentsOf(c.replayRun(&trials[t].d, trials[t].seed)))
	})
	out := make([][]float64, len(trials))
	for t := range out {
		out[t] = slices.Concat(parts[t]...)
	}
	return out
}

// knee is where residuals begin to pull less the further they are, in standard errors:
// what the twin has no parameter for must not bend all that it has (Cauchy's function:
// Holland and Welsch, Commun. Statist. A 6, 813, 1977). With Huber's, which pulls on, short
// prompts that cost a server as much as longer ones made answers 20 % slower, which
// the twin can have right.
const knee = 3.0

// totalLoss is the sum of Cauchy's function of the residuals, and of how far the
// parameters are from what is known without a run.
func (f *fitter) totalLoss(d *deploy.Deployment, residuals []float64) float64 {
	sum := 0.0
	for _, r := range residuals {
		r /= f.scale
		sum += knee * knee * math.Log1p(r*r/(knee*knee))
	}
	for i := range f.parameters {
		p := &f.parameters[i]
		sum += p.precision() * p.logDistance(d) * p.logDistance(d)
	}
	return sum
}

// logDistance is the logarithm of how far a parameter is from the centre of its prior.
func (p *prior) logDistance(d *deploy.Deployment) float64 {
	return math.Log(p.value(d) / p.centre)
}

// stepAside is a deployment a step of h from the best in the logarithm of a parameter, to
// the other side where that is beyond its bound, and how far it then is.
func (f *fitter) stepAside(p *prior, h float64) (d deploy.Deployment, width float64) {
	at := p.value(&f.d)
	for _, h := range []float64{h, -h} {
		d = f.d
		p.setValue(&d, at*math.Exp(h))
		if width = math.Log(p.value(&d) / at); math.Abs(width) > math.Abs(h)/2 {
			break
		}
	}
	return d, width
}

// hasFaded says that a parameter has become so small that its logarithm has hardly
// an effect any more. How far it is known then shows in what it would do if it
// were larger: its unit is what is usual.
func (f *fitter) hasFaded(p *prior) bool { return p.value(&f.d) < p.centre/3 }

// scaleOf is by how much residuals are larger than their standard errors, 1 at least: by
// their median. Of a server that the twin does not reproduce as exactly as it was
// measured, the loads tell less than their errors say, and what is known without them
// counts more.
func scaleOf(residuals []float64) float64 {
	sizes := make([]float64, len(residuals))
	for i, r := range residuals {
		sizes[i] = math.Abs(r)
	}
	slices.Sort(sizes)
	const normal = 1.4826 // standard deviation ÷ median size of a normal distribution
	return max(1, normal*sizes[len(sizes)/2])
}

// residualWeights returns the weight of each residual by Cauchy's function.
func (f *fitter) residualWeights(residuals []float64) []float64 {
	w := make([]float64, len(residuals))
	for i, r := range residuals {
		r /= f.scale
		w[i] = 1 / (1 + r*r/(knee*knee)) / (f.scale * f.scale)
	}
	return w
}

// mostSlopes is the number of times that a fit works slopes out at most, each time where the last
// ones led.
const mostSlopes = 12

// polish goes along the valley: steps of Levenberg and Marquardt on the
// logarithms of all parameters at once. To work slopes out takes most of the time:
// they are kept for as long as steps by them lead on.
func (f *fitter) polish(most int) {
	f.base = f.trialResiduals([]trial{{f.d, 1}})[0]
	for range most {
		f.scale = scaleOf(f.base)
		best := f.totalLoss(&f.d, f.base)
		f.addSlopes()
		// How far the slopes before held says little of how far these do: with the short
		// steps that they ended in, a fit far from its best would pass for one at it.
		before, damping := best, 1e-2
		for last := math.Inf(1); best < last*0.99; {
			last = best
			best, damping = f.step(f.meanSlopes(), best, damping)
		}
		switch {
		case best <= before*0.99:
			f.slopes = nil // they are of elsewhere
		case len(f.slopes) > 1: // they led nowhere, and of several seeds there is less chance in them
			return
		}
	}
}

// addSlopes works out the change of each residual with the logarithm of each parameter
// at the best, with chances of its own. A replay is not smooth: a step that takes a
// little longer may admit another request. A wide difference averages over that. It is
// to one side, and the next time to the other.
func (f *fitter) addSlopes() {
	h, seed, base := 0.3, uint64(1+len(f.slopes)), f.base
	if len(f.slopes)%2 == 1 {
		h = -h
	}
	var trials []trial
	widths := make([]float64, len(f.parameters))
	for i := range f.parameters {
		moved := trial{seed: seed}
		moved.d, widths[i] = f.stepAside(&f.parameters[i], h)
		trials = append(trials, moved)
	}
	if seed > 1 {
		trials = append(trials, trial{f.d, seed})
	}
	at := f.trialResiduals(trials)
	if seed > 1 {
		base = at[len(at)-1]
	}
	jac := newMatrix(len(f.parameters), len(base))
	for i, w := range widths {
		for l := range base {
			if w != 0 {
				jac[i][l] = (at[i][l] - base[l]) / w
			}
		}
	}
	f.slopes = append(f.slopes, jac)
}

// meanSlopes are those of all chances together.
func (f *fitter) meanSlopes() [][]float64 {
	mean := newMatrix(len(f.parameters), len(f.base))
	for i := range mean {
		for _, jac := range f.slopes {
			for l, s := range jac[i] {
				mean[i][l] += s / float64(len(f.slopes))
			}
		}
	}
	return mean
}

// step goes where residuals and their slopes say that the loss is less, as far as
// it is. It gives the loss and the damping to go on with.
func (f *fitter) step(jac [][]float64, best, damping float64) (float64, float64) {
	w := f.residualWeights(f.base)
	m := weightedProduct(jac, jac, w)
	down := weightedProduct(jac, [][]float64{f.base}, w)
	from := f.d
	for range 2 { // the second time with shorter steps
		var next []trial
		for range 3 { // at once
			a := cloneMatrix(m)
			for i := range m {
				a[i][i] += damping*m[i][i] + f.parameters[i].precision()
			}
			inv := invertMatrix(a)
			c := from
			for i := range f.parameters {
				move := 0.0
				for j := range f.parameters {
					p := &f.parameters[j]
					move -= inv[i][j] * (down[j][0] + p.precision()*p.logDistance(&from))
				}
				f.parameters[i].setValue(&c, f.parameters[i].value(&from)*math.Exp(min(max(move, -1), 1)))
			}
			next = append(next, trial{c, 1})
			damping *= 6
		}
		chosen := -1
		for k, r := range f.trialResiduals(next) {
			if l := f.totalLoss(&next[k].d, r); l < best {
				best, f.d, f.base, chosen = l, next[k].d, r, k
			}
		}
		if chosen >= 0 { // the middle one next time
			return best, damping * math.Pow(6, float64(chosen-4))
		}
	}
	return best, 1e-2
}
