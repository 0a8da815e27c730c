package deploy

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"

	"go.yaml.in/yaml/v3"

	"pitot/internal/say"
	"pitot/internal/userfile"
)

// ProfileSchema is the schema of a profile.
const ProfileSchema = "pitot.profile/v1"

// Profile is the result of a fit. It holds settings of a deployment under their names, the
// uncertainty of each, and the loads that were fitted.
type Profile struct {
	Schema     string             `yaml:"schema"`
	Deployment string             `yaml:"deployment"` // MODEL@GPU
	Settings   map[string]string  `yaml:"settings"`
	Factors    map[string]float64 `yaml:"factors,omitempty"` // of the range of each: value ÷ factor to value × factor
	Range      Range              `yaml:"range"`
	Error      *ExpectedError     `yaml:"error_to_expect,omitempty"`
	// Open are the ways in which the settings may be off together as far as the runs
	// tell, each as factors on settings, one standard deviation away.
	Open []map[string]float64 `yaml:"open,omitempty,flow"`
	Runs []string             `yaml:"runs,omitempty"` // that it was fitted on, each by when it began, its seed and its model
}

// Range is the loads that a fit has seen. Beyond it the twin extrapolates.
type Range struct {
	Input   [2]int     `json:"input_tokens" yaml:"input_tokens,flow"`
	Output  [2]int     `json:"output_tokens" yaml:"output_tokens,flow"`
	Running [2]float64 `json:"mean_running" yaml:"mean_running,flow"` // requests at once, in the least and the most loaded run
}

// ExpectedError is by how many percent four of five predictions of means and medians
// were off at most, of so many loads that were left out of the fit.
type ExpectedError struct {
	TTFTPct float64 `json:"ttft_pct" yaml:"ttft_pct"`
	TPOTPct float64 `json:"tpot_pct" yaml:"tpot_pct"`
	E2EPct  float64 `json:"e2e_pct" yaml:"e2e_pct"`
	Loads   int     `json:"loads" yaml:"loads"`
}

// Write makes the profile's file.
func (p *Profile) Write(path string) error {
	var b bytes.Buffer
	b.WriteString("# A calibrated twin: mock:, sim: and predict take it as " + p.Deployment + "?profile=FILE\n")
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(p); err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		return say.Errorf("write profile: %v", err).WithHint("choose another file with --out")
	}
	return nil
}

// check says what a file that was cut off, or edited, lacks.
func (p *Profile) check() error {
	g := &p.Range
	if !(g.Input[0] >= 1 && g.Input[1] >= g.Input[0] && g.Output[0] >= 1 && g.Output[1] >= g.Output[0] && g.Running[0] >= 0 && g.Running[1] >= g.Running[0]) {
		return errors.New("it lacks the range of the loads that it was fitted on")
	}
	for name, f := range p.Factors {
		if !(f >= 1) {
			return fmt.Errorf("the factor of %s is %v", name, f)
		}
	}
	for _, direction := range p.Open {
		for name, f := range direction {
			if !(f > 0 && f < 100) || !IsSetting(name) {
				return fmt.Errorf("what is open of %s is %v", name, f)
			}
		}
	}
	return nil
}

// applyProfile takes the settings of a profile.
func (d *Deployment) applyProfile(path string) error {
	const hint = "pitot fit writes profiles"
	b, err := userfile.Read(path, userfile.MostText)
	if err != nil {
		return say.Errorf("read profile: %v", err).WithHint(hint)
	}
	var p Profile
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	if err := dec.Decode(&p); err != nil {
		return say.Errorf("profile %s is damaged: %v", path, err).WithHint(hint)
	}
	if p.Schema != ProfileSchema {
		return say.Errorf("%s has schema %s; this pitot reads %s", path, p.Schema, ProfileSchema).WithHint(hint)
	}
	for _, name := range inOrder(p.Settings) {
		if err := d.Set(name, p.Settings[name]); err != nil {
			return fmt.Errorf("profile %s: %w", path, err)
		}
	}
	if err := p.check(); err != nil {
		return say.Errorf("profile %s is damaged: %v", path, err).WithHint(hint)
	}
	if p.Deployment != d.Spec {
		d.Notes = append(d.Notes, fmt.Sprintf("the profile was fitted for %s, not for %s", p.Deployment, d.Spec))
	}
	d.Fitted, d.FittedOn, d.FittedError, d.FittedOpen = &p.Range, p.Runs, p.Error, p.Open
	return nil
}

// Departure is a quantity of a load that is outside of what a profile was fitted
// on.
type Departure struct{ Of, Is string }

func (x Departure) String() string { return "outside the fitted range: " + x.Of + " " + x.Is }

// RangeDepartures says in what loads leave the range of the profile that the deployment
// has. A quantity that is zero is not known and not compared.
func (d *Deployment) RangeDepartures(seen Range) (list []Departure) {
	if d.Fitted == nil {
		return nil
	}
	span := func(lo, hi float64) string {
		if lo == hi {
			return fmt.Sprintf("%.4g", lo)
		}
		return fmt.Sprintf("%.4g to %.4g", lo, hi)
	}
	compare := func(what string, lo, hi, from, to float64) {
		if isOutside(lo, hi, from, to) {
			list = append(list, Departure{what, fmt.Sprintf("%s, fitted from %.4g to %.4g", span(lo, hi), from, to)})
		}
	}
	r := d.Fitted
	compare("prompt tokens", float64(seen.Input[0]), float64(seen.Input[1]), float64(r.Input[0]), float64(r.Input[1]))
	compare("answer tokens", float64(seen.Output[0]), float64(seen.Output[1]), float64(r.Output[0]), float64(r.Output[1]))
	compare("requests at once", seen.Running[0], seen.Running[1], r.Running[0], r.Running[1])
	return list
}

// FitDistance returns the distance of loads from the range that the profile was fitted on. It is
// the sum over their quantities of the logarithm of the factor, 0 within the range.
func (d *Deployment) FitDistance(seen Range) (far float64) {
	if d.Fitted == nil {
		return 0
	}
	r := d.Fitted
	for _, q := range [][4]float64{
		{float64(seen.Input[0]), float64(seen.Input[1]), float64(r.Input[0]), float64(r.Input[1])},
		{float64(seen.Output[0]), float64(seen.Output[1]), float64(r.Output[0]), float64(r.Output[1])},
		{max(seen.Running[0], min(1, r.Running[1])), seen.Running[1], r.Running[0], r.Running[1]}, // one now and then is one
	} {
		if lo, hi, from, to := q[0], q[1], q[2], q[3]; isOutside(lo, hi, from, to) {
			far += max(math.Log(from/max(lo, 1e-3)), 0) + max(math.Log(hi/max(to, 1e-3)), 0)
		}
	}
	return far
}

// isOutside says that a quantity leaves a range; a tenth beyond is as good as within, and
// what is zero is not known.
func isOutside(lo, hi, from, to float64) bool { return hi > 0 && (lo < from*0.9 || hi > to*1.1) }
