package predict

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"pitot/internal/config"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/say"
	"pitot/internal/session"
	"pitot/internal/sim"
	"pitot/internal/sim/deploy"
	"pitot/internal/target"
)

// RunAgainstTwinSchema is the schema of a comparison as JSON.
const RunAgainstTwinSchema = "pitot.beside/v1"

// RunAgainstTwin is a measured run next to what the twin does with the same requests
// at the same times.
type RunAgainstTwin struct {
	Schema     string             `json:"schema"`
	Run        string             `json:"run"`
	Facts      map[string]string  `json:"deployment"`
	Lines      []Line             `json:"lines"`
	Means      []string           `json:"what_it_means"`
	Notes      []string           `json:"notes,omitempty"`
	Deployment *deploy.Deployment `json:"-"`
}

// Line is one figure of both.
type Line struct {
	Load      string   `json:"load,omitempty"` // where a run measured several
	Name      string   `json:"name"`
	Unit      string   `json:"unit"`
	Measured  *float64 `json:"measured"` // nil where the run does not give it
	Predicted *float64 `json:"predicted"`
	Ratio     *float64 `json:"ratio"` // measured ÷ predicted
}

// RedoRun does a run again on a deployment's twin in virtual time and lays both
// side by side. Errors are the user's.
func RedoRun(ctx context.Context, spec, dir string) (*RunAgainstTwin, error) {
	d, err := deploy.Parse(spec)
	if err != nil {
		return nil, err
	}
	measured, err := rundir.ReadResult(dir)
	if err != nil {
		return nil, err
	}
	p, err := config.ReadRecorded(filepath.Join(dir, rundir.Config))
	if err != nil {
		return nil, err
	}
	p.Spec = "sim:" + spec
	p.API, p.Model, p.KeyFile, p.Headers = "", "", "", nil
	loads := measuredLoads(&p, measured)
	again, err := (&session.Runner{}).Simulate(ctx, &p, loads)
	if err != nil {
		return nil, err
	}
	if len(again) == 0 {
		return nil, say.Errorf("the run in %s has no points", dir)
	}
	b := &RunAgainstTwin{Schema: RunAgainstTwinSchema, Run: dir, Facts: d.ServerFacts(), Deployment: d, Notes: d.Notes}
	if s := chanceText(&d.Settings, measured.Points[0].Seconds.Window); s != "" {
		b.Notes = append(slices.Clone(b.Notes), s)
	}
	b.Notes = append(slices.Clone(b.Notes), deploymentDifferences(dir, measured, d)...)
	for _, x := range d.RangeDepartures(target.ObservedRange(again)) {
		b.Notes = append(b.Notes, x.String())
	}
	lightest := 0
	for i := range again {
		name := ""
		if len(again) > 1 {
			name = loadName(&measured.Points[i].Load)
		}
		b.addPoint(name, &measured.Points[i], &again[i])
		if measured.Points[i].Load.Value() < measured.Points[lightest].Load.Value() {
			lightest = i
		}
	}
	b.explainRatios(&measured.Points[lightest], &again[lightest], slices.Contains(d.FittedOn, runOrigin(measured)))
	return b, nil
}

// measuredLoads are the loads that a run measured: the one of its plan, or those
// that a sweep or a search chose, each with its window.
func measuredLoads(p *config.Plan, measured *result.Run) (loads []config.Load) {
	if len(measured.Points) == 0 {
		return nil
	}
	if p.Rate > 0 || p.Concurrency > 0 {
		return []config.Load{p.Load}
	}
	for i := range measured.Points {
		x := &measured.Points[i]
		l := p.Load
		if l.Rate, l.Concurrency = 0, 0; x.Load.Rate != nil {
			l.Rate, l.Arrival = *x.Load.Rate, x.Load.Arrival
		} else if x.Load.Concurrency != nil {
			l.Concurrency = *x.Load.Concurrency
		}
		seconds := func(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }
		l.Warmup, l.Duration, l.Requests, l.Exactly = seconds(x.Seconds.Warmup), seconds(x.Seconds.Window), 0, false
		loads = append(loads, l)
	}
	return loads
}

// loadName returns the name of a load in a table.
func loadName(l *result.Load) string {
	if l.Rate != nil {
		return fmt.Sprintf("%.3g requests/s", *l.Rate)
	}
	return say.Plural(int(l.Value()), "user")
}

// chanceText says how much of a difference may be the phases' alone: over seconds,
// the mean of a process of the standard deviation cv and the correlation time t
// has the variance cv²·2·t/seconds, in the measured run and in the predicted one.
func chanceText(s *sim.Settings, seconds float64) string {
	if s.SlowCV == 0 || seconds <= 0 {
		return ""
	}
	sd := s.SlowCV * math.Sqrt(2*min(2*s.SlowTime.Seconds()/seconds, 1))
	if sd < 0.01 {
		return ""
	}
	return fmt.Sprintf("slow phases of %.2g over %s come at other times in the twin than in the run: by this alone means differ by up to %.0f %% in so short a run",
		s.SlowCV, s.SlowTime.Round(10*time.Millisecond), 196*sd)
}

// addPoint puts the figures of two points side by side; load names them,
// "" for a run of one load.
func (b *RunAgainstTwin) addPoint(load string, m, p *result.Point) {
	for _, l := range comparisonLines(m, p) {
		l.Load = load
		b.Lines = append(b.Lines, l)
	}
}

// comparisonLines are the figures of two points, side by side.
func comparisonLines(m, p *result.Point) (list []Line) {
	pair := func(name, unit string, x, y *float64) {
		l := Line{Name: name, Unit: unit, Measured: x, Predicted: y}
		if x != nil && y != nil && *y > 0 {
			r := *x / *y
			l.Ratio = &r
		}
		list = append(list, l)
	}
	for _, d := range metric.All().WithPercentiles() {
		x, y := m.Metrics.SummaryOf(d.Name), p.Metrics.SummaryOf(d.Name)
		if d.Show != metric.Headline || x == nil || y == nil {
			continue
		}
		for _, key := range []string{metric.Mean, "p50", "p90", "p99"} {
			pair(d.Label+" "+key, string(d.Unit), x.Value(key), y.Value(key))
		}
	}
	pair("requests/s", "", m.Throughput.RequestsPerS, p.Throughput.RequestsPerS)
	pair("output tokens/s", "", m.Throughput.OutputTokensPerS, p.Throughput.OutputTokensPerS)
	return list
}

// far is from where on a ratio is far from one.
const far = 1.25

// explainRatios says what ratios far from one usually mean, at one load. own says that the twin was
// fitted on this very run.
func (b *RunAgainstTwin) explainRatios(m, p *result.Point, own bool) {
	ratio := map[string]float64{}
	for _, l := range comparisonLines(m, p) {
		if l.Ratio != nil {
			ratio[l.Name] = *l.Ratio
		}
	}
	tpot, ttft := ratio["TPOT p50"], ratio["TTFT p50"]
	// A lucky request has all its drafts accepted.
	floor := b.Deployment.Bounds().StepFloor * 1e3 / float64(1+b.Deployment.Settings.NumSpeculativeTokens)
	notef := func(s string) { b.Means = append(b.Means, s) }
	if s := m.Metrics.SummaryOf(metric.TPOT); s != nil && s.Min != nil && *s.Min < floor {
		notef("tokens came faster than the weights can be read once: the model, its data type or the accelerator is another than was named, or several tokens come from one step (speculative decoding)")
	}
	switch {
	case tpot == 0:
	case tpot > far:
		notef("tokens come slower than this hardware should give them: no CUDA graphs (enforce-eager), another process or a power limit on the accelerator, a slow host, a data type or attention kernel without fast support, or more requests at once than were sent here")
	case tpot < 1/far:
		notef("tokens come faster than the twin expects: fewer bits per weight than was named, speculative decoding, or a faster accelerator")
	}
	switch {
	case ttft == 0:
	case ttft > far && tpot < far:
		notef("only the first token is late: requests wait before the engine sees them (API server, tokenizer, gateway, network), or max_num_seqs or max_num_batched_tokens are smaller than was given")
	case ttft > far:
		notef("the first token is late too: when steps are slower, queues grow, so look at the time per token first")
	case ttft < 1/far:
		notef("the first token comes earlier than expected: prompts are in the prefix cache, or shorter than was planned")
	}
	if len(b.Means) == 0 {
		switch {
		case tpot == 0 && ttft == 0:
			notef("nothing that both have can be compared: too few requests were answered")
		case own:
			notef("measured and predicted agree to within a quarter")
		case b.Deployment.Fitted != nil:
			notef("measured and predicted agree to within a quarter: the deployment does what it did when the profile was fitted")
		default:
			notef("measured and predicted agree to within a quarter: the deployment does what its hardware should")
		}
	}
	if own {
		notef("the profile was fitted on this very run: that the twin agrees with it says nothing of the hardware, nor of other loads")
		return
	}
	notef("pitot fit '" + b.Deployment.SpecString() + "' " + b.Run + " --out PROFILE calibrates the twin to this run")
}
