package deploy

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"

	"go.yaml.in/yaml/v3"

	"pitot/internal/user"
)

// ProfileSchema is the schema of a profile.
const ProfileSchema = "pitot.profile/v1"

// Profile is what a fit found: settings of a deployment under their names,
// how sure each is, and what loads it was found from.
type Profile struct {
	Schema     string             `yaml:"schema"`
	Deployment string             `yaml:"deployment"` // MODEL@GPU
	Settings   map[string]string  `yaml:"settings"`
	Factors    map[string]float64 `yaml:"factors,omitempty"` // 95 %: value ÷ factor to value × factor
	Range      Range              `yaml:"range"`
}

// Range is the loads that a fit has seen. Beyond it the twin extrapolates.
type Range struct {
	Input   [2]int     `json:"input_tokens" yaml:"input_tokens,flow"`
	Output  [2]int     `json:"output_tokens" yaml:"output_tokens,flow"`
	Running [2]float64 `json:"mean_running" yaml:"mean_running,flow"` // requests at once, in the least and the most loaded run
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
		return user.Errorf("choose another file with --out", "write profile: %v", err)
	}
	return nil
}

// applyProfile takes the settings of a profile.
func (d *Deployment) applyProfile(path string) error {
	const hint = "pitot fit writes profiles"
	b, err := os.ReadFile(path)
	if err != nil {
		return user.Errorf(hint, "read profile: %v", err)
	}
	var p Profile
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	if err := dec.Decode(&p); err != nil {
		return user.Errorf(hint, "profile %s is damaged: %v", path, err)
	}
	if p.Schema != ProfileSchema {
		return user.Errorf(hint, "%s is no profile: its schema is %q, not %q", path, p.Schema, ProfileSchema)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Settings)) {
		if err := d.Set(name, p.Settings[name]); err != nil {
			return fmt.Errorf("profile %s: %w", path, err)
		}
	}
	if p.Deployment != d.Spec {
		d.Notes = append(d.Notes, fmt.Sprintf("the profile was fitted for %s, not for %s", p.Deployment, d.Spec))
	}
	d.Fitted = &p.Range
	return nil
}

// Outside says in what a load leaves the range of the profile that the
// deployment has, "" if in nothing. A zero is not compared.
func (d *Deployment) Outside(input, output int, running float64) string {
	if d.Fitted == nil {
		return ""
	}
	// A tenth beyond is as good as within.
	out := func(what string, v, lo, hi float64) string {
		if v > 0 && (v < lo*0.9 || v > hi*1.1) {
			return fmt.Sprintf("%s %.4g, fitted from %.4g to %.4g", what, v, lo, hi)
		}
		return ""
	}
	r := d.Fitted
	for _, s := range []string{
		out("prompt tokens", float64(input), float64(r.Input[0]), float64(r.Input[1])),
		out("answer tokens", float64(output), float64(r.Output[0]), float64(r.Output[1])),
		out("requests at once", running, 0, r.Running[1]),
	} {
		if s != "" {
			return "outside the fitted range: " + s
		}
	}
	return ""
}
