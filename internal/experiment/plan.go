// Package experiment takes a contract to a decision: a plan in a file says what must be
// served within which limits, what is measured, which settings of the engine are tried
// and what is expected of them; the launches that it takes are measured one after the
// other, and what they say together is kept as a record.
package experiment

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pitot/internal/analysis/predict"
	"pitot/internal/config"
	"pitot/internal/slo"
)

// Plan is an experiment as its file says.
type Plan struct {
	Path     string // of the file
	Contract Contract
	Budget   Budget
	Target   string    // sim: or mock:, of the baseline, or a URL
	Server   *Server   // of a URL: how it is started; nil of others
	Common   []Setting // of all rows
	Rows     []*Row
	Knobs    []Knob
	Launches int // of each configuration
	Seed     uint64
	Stop     Stop

	source string // of the file

	simulated bool // only figures are asked of its runs, which are thrown away

	left map[string]bool // configurations that could not be started
}

// Name is the plan's, from its file: chat.yaml is chat.
func (p *Plan) Name() string {
	return strings.TrimSuffix(filepath.Base(p.Path), filepath.Ext(p.Path))
}

// Contract holds the conditions under which a deployment is accepted.
type Contract struct {
	Kind     string   // of traffic, one of Kinds
	Limits   slo.Spec // that requests are answered within
	Capacity float64  // requests per second that are to be carried within them
	Cost     float64  // USD per million output tokens within the limits, at most; 0 for no limit
	Row      string   // that the contract is judged by
}

// Budget bounds an experiment; zero for no bound.
type Budget struct {
	Time time.Duration // of measured load
	USD  float64       // what that costs
}

// Setting is one of those of pitot run, by its name there.
type Setting struct {
	Name   string
	Values []string
	line   int // of the file, 0 of a preset
}

// Row is one workload at one load, or, of the contract's, at as many as show where the
// limits are reached.
type Row struct {
	Name       string
	Question   string
	Hypotheses []Hypothesis
	Settings   []Setting         // its own
	Plan       config.Plan       // of one run, for the baseline; no directory, no seed
	expected   *predict.Expected // of the twin, where it was asked
	line       int
}

// Knob is a setting of the engine that is tried at some values, one at a time.
type Knob struct {
	Name   string
	Values []string
	Rows   []string // that it can move, besides the contract's; nil for all. Others are controls
	line   int
}

// Stop says when there is enough.
type Stop struct {
	Confidence float64 // of what is claimed
	Precision  float64 // how much more another configuration may carry and not be looked for
	Early      bool    // give up configurations, and end, as soon as the launches allow it
}

// Configuration is the engine with its settings. The first of a plan is the baseline.
type Configuration struct {
	Name        string // "baseline", or "max_num_seqs=64"
	Knob, Value string // "" of the baseline
}

// setsEngine reports whether the configuration has a setting of the engine, which the
// baseline and a limit in front of the server have not.
func (c Configuration) setsEngine() bool { return c.Knob != "" && c.Knob != limitInFront }

// Baseline is the name of the configuration that others are compared with.
const Baseline = "baseline"

// plannedConfigurations are the baseline and each value of each knob.
func (p *Plan) plannedConfigurations() []Configuration {
	list := []Configuration{{Name: Baseline}}
	for _, k := range p.Knobs {
		for _, v := range k.Values {
			list = append(list, Configuration{Name: k.Name + "=" + v, Knob: k.Name, Value: v})
		}
	}
	return list
}

// Configurations are those of the plan, but for what could not be started.
func (p *Plan) Configurations() []Configuration {
	return slices.DeleteFunc(p.plannedConfigurations(), func(c Configuration) bool { return p.left[c.Name] })
}

// Row gives the row of a name, nil if there is none.
func (p *Plan) Row(name string) *Row {
	for _, r := range p.Rows {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// limitInFront is the knob that is none of the engine: so many requests are sent at once,
// and the others wait in front of the server, as behind a gateway with a limit.
const limitInFront = "load.max-in-flight"

// Spec is the target with the settings of a configuration.
func (p *Plan) Spec(c Configuration) string {
	if p.Server != nil {
		return p.Target
	}
	return c.targetWith(p.Target)
}

// targetWith is a target with the settings of a configuration.
func (c Configuration) targetWith(spec string) string {
	if c.setsEngine() {
		return withSetting(spec, c.Knob, c.Value)
	}
	return spec
}

// withSetting gives a target a setting, in place of what it has of it.
func withSetting(spec, key, value string) string {
	spec = withoutSetting(spec, key)
	joint := "?"
	if strings.Contains(spec, "?") {
		joint = "&"
	}
	return spec + joint + key + "=" + value
}

// withoutSetting is a target without one of its settings.
func withoutSetting(spec, key string) string {
	name, query, _ := strings.Cut(spec, "?")
	var kept []string
	for part := range strings.SplitSeq(query, "&") {
		if has, _, _ := strings.Cut(part, "="); part != "" && has != key {
			kept = append(kept, part)
		}
	}
	if len(kept) == 0 {
		return name
	}
	return name + "?" + strings.Join(kept, "&")
}

// ContractRow is the row of the contract.
func (p *Plan) ContractRow() *Row { return p.Row(p.Contract.Row) }
