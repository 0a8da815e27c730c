package predict

import (
	"math"
	"slices"
	"strings"

	"pitot/internal/say"
	"pitot/internal/sim/catalogue"
	"pitot/internal/sim/deploy"
	"pitot/internal/workload"
)

// Schemas of what predict prints as JSON.
const (
	Schema       = "pitot.predict/v1"
	ReplaySchema = "pitot.replay/v1"
)

// Prediction holds what to expect of a deployment.
type Prediction struct {
	Schema     string             `json:"schema"`
	Deployment *deploy.Deployment `json:"-"`
	Facts      map[string]string  `json:"deployment"`
	Input      int                `json:"input_tokens"`
	Output     int                `json:"output_tokens"`
	Lengths    [2]string          `json:"lengths"` // of prompts and answers, as asked; those above are their means
	Bounds     deploy.Bounds      `json:"bounds"`
	Memory     deploy.Memory      `json:"memory_bytes"`
	KVTokens   int                `json:"kv_tokens"`
	Fit        int                `json:"sequences_that_fit"`
	Curve      []Expected         `json:"curve"`
	Error      *ErrorToExpect     `json:"error_to_expect"` // null where no such system was measured, and of a fitted one
	Notes      []string           `json:"notes,omitempty"`
}

// ErrorToExpect holds the distance of predictions of the unfitted twin from public measurements of
// such systems. Four of five lie within these percentages.
type ErrorToExpect struct {
	TPOTPct      float64 `json:"tpot_pct"`
	TTFTPct      float64 `json:"ttft_pct"`
	Of           string  `json:"of"`
	Systems      int     `json:"systems"`
	Measurements int     `json:"measurements"`
	// KeptOut are further measurements, of systems on which nothing was chosen, the other
	// two on how many percent of these the errors hold.
	KeptOut      int     `json:"kept_out"`
	TPOTHoldsPct float64 `json:"tpot_holds_pct"`
	TTFTHoldsPct float64 `json:"ttft_holds_pct"`
}

// UnfittedError finds that of a deployment that is not fitted; nil where no such system was
// measured.
func UnfittedError(d *deploy.Deployment) *ErrorToExpect {
	if !d.Alike() {
		return nil
	}
	r, ok := catalogue.RegimeOf(d.Accelerator.Name, &d.Model, !d.Settings.AsyncScheduling)
	if !ok || d.Fitted != nil {
		return nil
	}
	return &ErrorToExpect{TPOTPct: r.TPOT, TTFTPct: r.TTFT, Of: r.Name, Systems: r.Systems, Measurements: r.Rows,
		KeptOut: r.Kept, TPOTHoldsPct: r.TPOTHolds, TTFTHoldsPct: r.TTFTHolds}
}

// CoversAllSystems says that systems of all kinds were asked, as there are too few of the
// deployment's.
func (e *ErrorToExpect) CoversAllSystems() bool { return e.Systems < catalogue.EnoughSystems }

// tail is the bound that a draw of a length must lie beyond to be one in twenty at either end.
const tail = math.MaxUint64 / 20

// Predict works out the bounds and the twin's curve over concurrency; the
// arithmetic is of requests of the mean lengths. Errors are the user's.
func Predict(d *deploy.Deployment, in, out workload.Lengths) (*Prediction, error) {
	input, output := meanLength(in), meanLength(out)
	if input+output > d.Settings.MaxModelLen {
		return nil, say.Errorf("%s tokens of prompt and answer are more than max_model_len (%s)",
			say.Count(input+output), say.Count(d.Settings.MaxModelLen)).WithHint("ask for less with --input and --output, or raise max_model_len")
	}
	fit, _ := d.CountSequences(input + output)
	users := ConcurrencyLadder(d, input, output)
	notes := slices.Clone(d.Notes)
	ends := func(l workload.Lengths) [2]int { return [2]int{l.Draw(tail), l.Draw(math.MaxUint64 - tail)} }
	for _, x := range d.RangeDepartures(deploy.Range{Input: ends(in), Output: ends(out), Running: [2]float64{float64(users[0]), float64(users[len(users)-1])}}) {
		notes = append(notes, x.String())
	}
	curve := Curve(d, in, out, users)
	for i := range curve {
		x := &curve[i]
		running := x.Running + x.Waiting
		x.Error = ErrorAt(d, deploy.Range{Input: ends(in), Output: ends(out), Running: [2]float64{running, running}}, func(d *deploy.Deployment) Metrics {
			const few = 200
			s := simulation{d: d, asked: [2]workload.Lengths{in, out}, input: input, output: output, users: x.Users, count: max(2*x.Users, few)}
			e := s.run()
			return Metrics{e.TTFT, e.TPOT, e.E2E}
		})
	}
	return &Prediction{
		Schema: Schema, Deployment: d, Facts: d.ServerFacts(), Input: input, Output: output,
		Lengths: [2]string{in.String(), out.String()},
		Bounds:  d.Bounds(), Memory: d.Memory, KVTokens: d.KVTokens(), Fit: fit,
		Curve: curve, Error: UnfittedError(d), Notes: notes,
	}, nil
}

// Replayed is a recording next to what the twin makes of the same requests.
type Replayed struct {
	Schema    string            `json:"schema"`
	Recording string            `json:"recording"`
	Facts     map[string]string `json:"deployment"`
	Requests  int               `json:"requests"`
	Recorded  Metrics           `json:"recorded"`
	// Predicted is with the one scalar fitted on the recording's mean TPOT.
	Predicted Metrics  `json:"predicted"`
	ErrorPct  Metrics  `json:"error_pct"`
	Scalar    float64  `json:"fitted_scalar"`
	InSample  bool     `json:"in_sample,omitempty"` // constants of the twin were chosen on this recording
	Unfitted  Unfitted `json:"unfitted"`
	Notes     []string `json:"notes,omitempty"`

	Deployment *deploy.Deployment `json:"-"`
}

// Unfitted holds what the twin expected without having seen the recording.
type Unfitted struct {
	Predicted Metrics `json:"predicted"`
	ErrorPct  Metrics `json:"error_pct"`
}

// Compare replays a recording twice: as the datasheets say, and with all step
// times scaled by the one factor that gives the recorded mean TPOT.
func (r *Recording) Compare(d *deploy.Deployment) *Replayed {
	x := &Replayed{
		Schema: ReplaySchema, Recording: r.Dir, Requests: len(r.Requests),
		Recorded: r.RecordedSeries().Metrics(), Notes: d.Notes, InSample: r.InSample(),
	}
	x.Unfitted.Predicted = r.Replay(d).Metrics()
	x.Unfitted.ErrorPct = PercentErrors(x.Unfitted.Predicted, x.Recorded)
	c := *d
	c.Efficiency.Scale = r.FitScale(d)
	x.Scalar = c.Efficiency.Scale
	x.Predicted = r.Replay(&c).Metrics()
	x.ErrorPct = PercentErrors(x.Predicted, x.Recorded)
	x.Deployment, x.Facts = &c, c.ServerFacts()
	return x
}

// findAccelerator finds the accelerator of a recording: by what the driver called it,
// or by the beginning of the directory's name.
func (r *Recording) findAccelerator() (catalogue.Accelerator, bool) {
	if a, err := catalogue.FindDevice(r.Meta.Hardware.Device); err == nil {
		return a, true
	}
	name := strings.ToLower(strings.NewReplacer("_", "-", " ", "-").Replace(baseName(r.Dir)))
	var best catalogue.Accelerator
	length := 0
	for _, a := range catalogue.Accelerators() {
		for _, n := range append([]string{a.Name}, a.Aliases...) {
			if (strings.HasPrefix(name, n+"-") || strings.Contains(name, "-"+n+"-") || strings.HasSuffix(name, "-"+n)) && len(n) > length {
				best, length = a, len(n)
			}
		}
	}
	return best, length > 0
}

// FitScale finds the deployment's Efficiency.Scale with which the replay has the
// recording's mean TPOT, by the false-position method on a quantity that grows
// with it.
func (r *Recording) FitScale(d *deploy.Deployment) float64 {
	want := r.RecordedSeries().Metrics().TPOT.Mean
	excessTPOT := func(scale float64) float64 {
		c := *d
		c.Efficiency.Scale = scale
		return r.Replay(&c).Metrics().TPOT.Mean - want
	}
	if want <= 0 {
		return 1
	}
	lo, hi := 1.0, 1.0
	flo := excessTPOT(lo)
	fhi := flo
	for i := 0; fhi < 0 && i < 20; i++ {
		lo, flo = hi, fhi
		hi *= 1.5
		fhi = excessTPOT(hi)
	}
	for i := 0; flo > 0 && i < 20; i++ {
		hi, fhi = lo, flo
		lo /= 1.5
		flo = excessTPOT(lo)
	}
	for range 40 {
		if hi-lo < 1e-5*hi || flo >= 0 || fhi <= 0 {
			break
		}
		mid := lo + (hi-lo)*min(max(flo/(flo-fhi), 0.1), 0.9)
		if f := excessTPOT(mid); f < 0 {
			lo, flo = mid, f
		} else {
			hi, fhi = mid, f
		}
	}
	return (lo + hi) / 2
}
