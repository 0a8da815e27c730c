package config

import (
	"strconv"

	"pitot/internal/say"
	"pitot/internal/workload"
)

// presetValues returns the values of a preset, by the names of the settings.
func presetValues(p workload.Preset) map[string]string {
	values := map[string]string{"input": p.Input, "output": p.Output}
	if p.Prefix > 0 {
		values["prefix"], values["prefix-share"] = strconv.Itoa(p.Prefix), say.Exact(p.PrefixShare)
	}
	if p.SLO != "" {
		values["slo"] = p.SLO
	}
	if p.Correlation != 0 {
		values["correlation"] = say.Exact(p.Correlation)
	}
	if p.Turns != "" {
		values["turns"], values["turn-input"], values["think"], values["system"] = p.Turns, p.TurnInput, p.Think, strconv.Itoa(p.System)
	}
	if p.SubAgents != "" {
		values["sub-agents"] = p.SubAgents
	}
	return values
}

// takePreset sets what the preset of --workload says and nobody has set.
func (d *decoder) takePreset() error {
	a := findPart[Ask](d.parts)
	if a == nil || d.given["workload"] == 0 {
		return nil
	}
	p, ok := workload.PresetNamed(a.Workload)
	if !ok {
		return d.takeMix(a)
	}
	for name, v := range presetValues(p) {
		if s := d.known[name]; s != nil && d.given[name] == 0 {
			if err := s.parseInto(d.parts, v); err != nil {
				return say.Errorf("--workload %s: %s: %v", a.Workload, name, err)
			}
			d.given[name] = d.given["workload"]
		}
	}
	return nil
}

// unlikePreset says that a setting has another value than the preset gives it: then it is
// written even where it is the default.
func (p *Plan) unlikePreset(s *Setting, parts []any) bool {
	preset, ok := workload.PresetNamed(p.Workload)
	if !ok {
		return false
	}
	v, has := presetValues(preset)[s.Name]
	written := s.written(parts)
	return has && len(written) > 0 && s.usual(v) != written[0]
}

// FlagsOf writes what parts of a plan say as flags that two verbs both take: what is not the
// default, nor what the preset of --workload says. The seed is left out.
func FlagsOf(of, to Verb, parts ...any) (flags []string) {
	var preset map[string]string
	if a := findPart[Ask](parts); a != nil {
		if p, ok := workload.PresetNamed(a.Workload); ok {
			preset = presetValues(p)
		}
	}
	for _, s := range Settings() {
		if !s.AppliesTo(of) || !s.AppliesTo(to) || !s.isIn(parts) || s.Name == "seed" {
			continue
		}
		v, has := preset[s.Name]
		for _, written := range s.written(parts) {
			if has && s.usual(v) == written || !has && s.usual(s.Default) == written {
				continue
			}
			flags = append(flags, s.Args(s.ShownValue(written))...)
		}
	}
	return flags
}
