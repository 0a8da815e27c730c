package predict

import (
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"pitot/internal/stat"
	"pitot/internal/twin/deploy"
	"pitot/internal/user"
)

// A fit has few parameters, each a physical quantity between bounds that
// physics or plain sense set. All are fitted by their logarithm, so that an
// uncertainty is a factor.

// parameter is one thing that a fit may move.
type parameter struct {
	name   string // the setting of a deployment
	lo, hi float64
	unit   string // "s", "" for a plain number
	get    func(*deploy.Deployment) *float64
	span   func(*deploy.Deployment) *time.Duration
}

func (p *parameter) value(d *deploy.Deployment) float64 {
	if p.span != nil {
		return p.span(d).Seconds()
	}
	return *p.get(d)
}

func (p *parameter) set(d *deploy.Deployment, v float64) {
	v = min(max(v, p.lo), p.hi)
	if p.span != nil {
		*p.span(d) = time.Duration(v * 1e9)
		return
	}
	*p.get(d) = v
}

// parameters are all, the most certain first. The share of the bandwidth that
// is reached is not among them: the time to read the weights and the overhead
// of a step cannot be told apart by a run, so the one is left as it is and the
// other takes up the difference.
var parameters = []parameter{
	{"step_overhead", 10e-6, 1, "s", nil, func(d *deploy.Deployment) *time.Duration { return &d.Efficiency.PerStep }},
	{"row_overhead", 0.1e-6, 0.1, "s", nil, func(d *deploy.Deployment) *time.Duration { return &d.Efficiency.PerRequest }},
	{"prefill_overhead", 1e-6, 1, "s", nil, func(d *deploy.Deployment) *time.Duration { return &d.Efficiency.PerPrefill }},
	{"compute_efficiency", 1e-5, 1, "", func(d *deploy.Deployment) *float64 { return &d.Efficiency.Compute }, nil},
	{"frontend_latency", 10e-6, 10, "s", nil, func(d *deploy.Deployment) *time.Duration { return &d.Settings.Frontend.Latency }},
	{"frontend_request", 10e-6, 1, "s", nil, func(d *deploy.Deployment) *time.Duration { return &d.Settings.Frontend.PerRequest }},
	{"frontend_prompt_token", 1e-9, 1e-3, "s", nil, func(d *deploy.Deployment) *time.Duration { return &d.Settings.Frontend.PerPromptToken }},
	{"frontend_chunk", 0.1e-6, 0.1, "s", nil, func(d *deploy.Deployment) *time.Duration { return &d.Settings.Frontend.PerChunk }},
	{"frontend_jitter", 0.001, 3, "", func(d *deploy.Deployment) *float64 { return &d.Settings.Frontend.Jitter }, nil},
	{"frontend_contention", 0.001, 1, "", func(d *deploy.Deployment) *float64 { return &d.Settings.Frontend.Contention }, nil},
	{"step_jitter", 0.001, 1, "", func(d *deploy.Deployment) *float64 { return &d.Settings.StepJitter }, nil},
}

// Fitted is what a fit found of one parameter.
type Fitted struct {
	Name  string  `json:"name" yaml:"name"`
	Value float64 `json:"value" yaml:"value"`
	Unit  string  `json:"unit,omitempty" yaml:"unit,omitempty"`
	// Factor is the half width of the 95 % interval of the logarithm, as a
	// factor: the value lies between Value/Factor and Value·Factor. It is 1
	// where there is no interval: then Reason says why.
	Factor float64 `json:"factor" yaml:"factor"`
	// Identified is false where the runs say too little of the parameter:
	// the value is then as good as any within the factor.
	Identified bool `json:"identified" yaml:"identified"`
	// AtBound: the runs ask for more than physics allows. How far they do is
	// no interval of the value.
	AtBound bool   `json:"at_bound,omitempty" yaml:"at_bound,omitempty"`
	Reason  string `json:"reason,omitempty" yaml:"reason,omitempty"`
}

// Fit is a calibration of the twin.
type Fit struct {
	Schema     string       `json:"schema"`
	Deployment string       `json:"deployment"`
	Parameters []Fitted     `json:"parameters"`
	Runs       []Residual   `json:"runs"`
	Range      deploy.Range `json:"range"`

	Fitted *deploy.Deployment `json:"-"`
}

// Residual is how far the fitted twin is from a run, on requests that the fit
// did not see.
type Residual struct {
	Run      string  `json:"run"`
	Fitted   int     `json:"fitted_requests"`
	Held     int     `json:"held_back_requests"`
	Recorded Metrics `json:"recorded"`
	ErrorPct Metrics `json:"error_pct"`
}

// FitSchema is the schema of a fit as JSON.
const FitSchema = "pitot.fit/v1"

// held says whether a request, by its place in the recording, is held back
// from the fit: each fifth is.
func held(i int) bool { return i%5 == 4 }

func fitted(i int) bool { return !held(i) }

// quantilesFitted are those of TTFT, TPOT and stall that the fit compares, besides
// the means.
var quantilesFitted = []float64{.1, .25, .5, .75, .9, .99}

// FitRuns calibrates a deployment from runs. It begins with what the gaps
// between chunks say of the steps, moves all parameters together as long as
// the twin comes nearer to the runs, and works the uncertainty out from how
// much the runs change with each (the Gauss-Newton covariance). Meanwhile the
// runs' own slow phases are replayed; how slow and how long they are is fitted
// from the gaps alone. Errors are the user's.
func FitRuns(d *deploy.Deployment, runs []*Recording) (*Fit, error) {
	n := 0
	for _, r := range runs {
		n += len(r.Recorded().TTFT)
	}
	if n < 50 {
		return nil, user.Errorf("measure longer with --duration", "%d answered requests are too few to fit anything; it takes 50", n)
	}
	f := fitter{runs: shortened(runs), d: *d}
	slow, ok := begin(&f.d, f.runs)
	if !ok {
		return nil, user.Errorf("measure longer, and with streaming", "the runs have too few chunks to read the duration of steps from")
	}
	f.d.Settings.Frontend.Jitter = max(f.d.Settings.Frontend.Jitter, someJitter)
	for i := range parameters { // keep to the bounds: from nothing no factor leads anywhere
		parameters[i].set(&f.d, parameters[i].value(&f.d))
	}
	f.start = f.d
	f.polish()
	fit := &Fit{Schema: FitSchema, Deployment: d.Spec, Fitted: &f.d, Parameters: append(f.uncertainty(), slow.parameters()...)}
	if f.d.Settings.SlowCV = slow.cv; slow.cv > 0 {
		f.d.Settings.SlowTime = time.Duration(slow.time * 1e9)
	}
	fit.Range = deploy.Range{Input: [2]int{math.MaxInt, 0}, Output: [2]int{math.MaxInt, 0}, Running: [2]float64{math.MaxFloat64, 0}}
	for _, r := range runs {
		fit.Runs = append(fit.Runs, r.residual(&f.d))
		widen(&fit.Range, r)
	}
	return fit, nil
}

// someJitter is what the jitter of the front is tried from.
const someJitter = 0.2

// enough is how many requests of a run the search uses; the residuals that are
// reported are those of all.
const enough = 3000

// shortened leaves out what comes after enough measured requests.
func shortened(runs []*Recording) []*Recording {
	out := make([]*Recording, len(runs))
	for i, r := range runs {
		c, n := *r, 0
		for j, q := range r.Requests {
			if q.measured {
				n++
			}
			if n == enough {
				c.Requests = r.Requests[:j+1]
				break
			}
		}
		out[i] = &c
	}
	return out
}

// widen takes a run into the range.
func widen(g *deploy.Range, r *Recording) {
	busy, last := 0.0, 0.0
	for _, q := range r.Requests {
		g.Input = [2]int{min(g.Input[0], q.Input), max(g.Input[1], q.Input)}
		g.Output = [2]int{min(g.Output[0], q.Output), max(g.Output[1], q.Output)}
		busy += q.LastToken
		last = max(last, q.Arrival+q.LastToken)
	}
	if last > 0 {
		g.Running = [2]float64{min(g.Running[0], busy/last), max(g.Running[1], busy/last)}
	}
}

// residual is how far the deployment is from the requests held back.
func (r *Recording) residual(d *deploy.Deployment) Residual {
	obs, pred := r.split(d, held)
	x := Residual{Run: r.Dir, Held: len(obs.TTFT), Recorded: obs.Metrics()}
	x.Fitted = len(r.Recorded().TTFT) - x.Held
	x.ErrorPct = Errors(pred.Metrics(), x.Recorded)
	return x
}

// split gives the recorded and the replayed metrics of the measured requests
// that are wanted.
func (r *Recording) split(d *deploy.Deployment, wanted func(i int) bool) (obs, pred Series) {
	return r.series(r.timings(), wanted), r.series(r.replay(d), wanted)
}

// Profile is what the fit is kept as: the fitted parameters, and the settings
// of the engine they were fitted with.
func (f *Fit) Profile(given map[string]string) *deploy.Profile {
	p := &deploy.Profile{Schema: deploy.ProfileSchema, Deployment: f.Deployment, Settings: map[string]string{}, Factors: map[string]float64{}, Range: f.Range}
	for name, v := range given {
		p.Settings[name] = v
	}
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
	runs  []*Recording
	start deploy.Deployment // what the gaps say
	d     deploy.Deployment // the best so far
}

// residuals are the logarithms of predicted over recorded quantities, of all
// runs, on the requests that are not held back.
func (f *fitter) residuals(d *deploy.Deployment) []float64 {
	parts := make([][]float64, len(f.runs))
	var all sync.WaitGroup
	for i, r := range f.runs {
		all.Go(func() {
			obs, pred := r.split(d, fitted)
			for _, m := range [][2][]float64{{obs.TTFT, pred.TTFT}, {obs.TPOT, pred.TPOT}, {obs.Stall, pred.Stall}} {
				parts[i] = append(parts[i], compared(m[0], m[1])...)
			}
		})
	}
	all.Wait()
	return slices.Concat(parts...)
}

func compared(obs, pred []float64) []float64 {
	if len(obs) == 0 || len(pred) == 0 {
		return nil
	}
	log := func(p, o float64) float64 { return math.Log(max(p, 1e-6) / max(o, 1e-6)) }
	mean := func(v []float64) float64 {
		s := 0.0
		for _, x := range v {
			s += x
		}
		return s / float64(len(v))
	}
	out := []float64{3 * log(mean(pred), mean(obs))}
	obs, pred = slices.Sorted(slices.Values(obs)), slices.Sorted(slices.Values(pred))
	for _, q := range quantilesFitted {
		out = append(out, log(stat.Percentile(pred, q), stat.Percentile(obs, q)))
	}
	return out
}

// prior is how strongly parameters are held to what the gaps say: a parameter
// that is off by a factor of e counts like a quantile that is off by 14 %.
const prior = 0.02

// knee is where Huber's function passes from the square to the straight line.
const knee = 0.3

// loss is the sum of Huber's function of the residuals: a quantile that the
// twin cannot reach pulls less than its square would.
func (f *fitter) loss(d *deploy.Deployment) float64 {
	sum := 0.0
	for _, r := range f.residuals(d) {
		if r = math.Abs(r); r <= knee {
			sum += r * r
		} else {
			sum += knee * (2*r - knee)
		}
	}
	// What the runs say nothing of stays where it was.
	for i := range parameters {
		p := &parameters[i]
		move := math.Log(p.value(d) / p.value(&f.start))
		sum += prior * move * move
	}
	return sum
}

// jacobian is the change of each residual with the logarithm of each
// parameter, by differences of h. A replay is not smooth: a step that takes a
// little longer may admit another request. A wide difference averages over
// that.
func (f *fitter) jacobian(base []float64, h float64) [][]float64 {
	jac := make([][]float64, len(parameters))
	for i := range parameters {
		p := &parameters[i]
		up, down := f.d, f.d
		p.set(&up, p.value(&f.d)*math.Exp(h))
		p.set(&down, p.value(&f.d)*math.Exp(-h))
		width := math.Log(p.value(&up) / p.value(&down))
		a, b := f.residuals(&up), f.residuals(&down)
		jac[i] = make([]float64, len(base))
		for j := range base {
			if width > 0 {
				jac[i][j] = (a[j] - b[j]) / width
			}
		}
	}
	return jac
}

// normal is JᵀJ.
func normal(jac [][]float64) [][]float64 {
	m := make([][]float64, len(jac))
	for i := range m {
		m[i] = make([]float64, len(jac))
		for j := range m[i] {
			for l := range jac[i] {
				m[i][j] += jac[i][l] * jac[j][l]
			}
		}
	}
	return m
}

// polish goes along the valley: steps of Levenberg and Marquardt on the
// logarithms of all parameters at once.
func (f *fitter) polish() {
	best, damping := f.loss(&f.d), 1e-2
	for range 12 {
		base := f.residuals(&f.d)
		jac := f.jacobian(base, 0.1)
		for l, r := range base { // as Huber's function weighs them
			w := math.Sqrt(min(1, knee/max(math.Abs(r), 1e-12)))
			base[l] *= w
			for i := range jac {
				jac[i][l] *= w
			}
		}
		before := best
		for range 5 {
			m := normal(jac)
			for i := range m {
				m[i][i] += damping*m[i][i] + prior + 1e-6
			}
			inv := inverse(m)
			c := f.d
			for i := range parameters {
				step := 0.0
				for j := range jac {
					p := &parameters[j]
					step -= inv[i][j] * prior * math.Log(p.value(&f.d)/p.value(&f.start))
					for l, r := range base {
						step -= inv[i][j] * jac[j][l] * r
					}
				}
				parameters[i].set(&c, parameters[i].value(&f.d)*math.Exp(min(max(step, -1), 1)))
			}
			if l := f.loss(&c); l < best {
				best, f.d = l, c
				damping /= 5
				break
			}
			damping *= 4
		}
		if best > before*0.995 {
			return
		}
	}
}

// uncertainty works out how well the runs determine each parameter: with J
// the change of the residuals with the logarithms of the parameters and s²
// their variance, the covariance is s²·(JᵀJ)⁻¹.
func (f *fitter) uncertainty() []Fitted {
	// Quantiles of a few hundred requests are no better known than this, and
	// those of one run move together.
	const grain = 0.03
	base := f.residuals(&f.d)
	n, k := len(base), len(parameters)
	m := normal(f.jacobian(base, 0.5))
	s2 := 0.0
	for _, r := range base {
		s2 += r * r
	}
	s2 /= float64(max(n-k, 1))
	// A weak prior (a factor of 100 either way) keeps the matrix regular; a
	// parameter that the runs do not speak of keeps about that width.
	weak := 1 / (math.Log(100) * math.Log(100))
	for i := range m {
		for j := range m[i] {
			m[i][j] /= max(s2, grain*grain)
		}
		m[i][i] += weak
	}
	cov := inverse(m)
	out := make([]Fitted, k)
	for i := range parameters {
		p := &parameters[i]
		v := p.value(&f.d)
		factor := math.Exp(1.96 * math.Sqrt(max(cov[i][i], 0)))
		out[i] = Fitted{Name: p.name, Value: v, Unit: p.unit, Factor: factor, Identified: factor < 2}
		if v <= p.lo*1.001 || v >= p.hi*0.999 {
			out[i].AtBound, out[i].Factor, out[i].Identified, out[i].Reason = true, 1, false, "at its bound"
		}
	}
	return out
}

// inverse of a symmetric positive definite matrix, by Gauss and Jordan.
func inverse(m [][]float64) [][]float64 {
	n := len(m)
	inv := make([][]float64, n)
	for i := range inv {
		inv[i] = make([]float64, n)
		inv[i][i] = 1
	}
	for c := range n {
		pivot := c
		for r := c + 1; r < n; r++ {
			if math.Abs(m[r][c]) > math.Abs(m[pivot][c]) {
				pivot = r
			}
		}
		m[c], m[pivot], inv[c], inv[pivot] = m[pivot], m[c], inv[pivot], inv[c]
		d := m[c][c]
		for j := range n {
			m[c][j] /= d
			inv[c][j] /= d
		}
		for r := range n {
			if f := m[r][c]; r != c && f != 0 {
				for j := range n {
					m[r][j] -= f * m[c][j]
					inv[r][j] -= f * inv[c][j]
				}
			}
		}
	}
	return inv
}
