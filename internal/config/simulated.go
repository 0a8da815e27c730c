package config

import (
	"slices"
	"strings"

	"pitot/internal/say"
	"pitot/internal/sim/engines"
)

// Settings of a simulated server stand after the target's question mark, among those of its
// engine: mock:fixed?ttft=20ms&faults=429:1%.

// ParseSimulated reads a simulated target, with or without its mock: or sim:. It returns the
// engine with the engine's own settings, and what the server is like.
func ParseSimulated(target string) (engine string, e Embedded, err error) {
	Reset(&e)
	engine, err = e.ApplyTarget(target)
	return engine, e, err
}

// EngineOf returns the engine of a simulated target with the engine's own settings: MODEL@GPU
// where the target is mock:MODEL@GPU?speed=2.
func EngineOf(target string) string {
	engine, _, _ := ParseSimulated(target) // who opens the target reports what is wrong with it
	return engine
}

// ApplyTarget sets what a simulated target says of its server, and returns its engine.
func (e *Embedded) ApplyTarget(target string) (engine string, err error) {
	name, query, _ := strings.Cut(withoutKind(target), "?")
	_, _, fixed := engines.OfLatencies(name)
	var own, seen []string
	for setting := range strings.SplitSeq(query, "&") {
		key, value, valued := strings.Cut(setting, "=")
		s := targetSetting(key)
		if s == nil || !fixed && key == "max_model_len" { // a modelled engine has its own
			if setting != "" {
				own = append(own, setting)
			}
			continue
		}
		if slices.Contains(seen, key) && err == nil {
			err = say.Errorf("%s is given twice in the target", key).WithHint("keep one of them")
		}
		seen = append(seen, key)
		if s.Arg == "" && !valued {
			value = "true"
		}
		if wrong := s.parseInto([]any{e}, value); wrong != nil && err == nil {
			hint := say.HintOf(wrong)
			if hint == "" {
				hint = "for example " + key + "=" + s.ExampleValue()
			}
			err = say.Errorf("%s of %s: %v", key, target, wrong).WithHint(hint)
		}
	}
	if len(own) > 0 {
		name += "?" + strings.Join(own, "&")
	}
	return name, err
}

func withoutKind(target string) string {
	for _, kind := range []string{KindMock, KindSim} {
		if name, ok := strings.CutPrefix(target, kind+":"); ok {
			return name
		}
	}
	return target
}

// TargetKey returns the name of a setting after a target's question mark.
func (s *Setting) TargetKey() string { return strings.ReplaceAll(s.Name, "-", "_") }

// targetSetting returns the setting of simulated servers of a key, nil if there is none.
func targetSetting(key string) *Setting {
	for _, s := range Settings() {
		if s.OfTarget && s.TargetKey() == key {
			return &s
		}
	}
	return nil
}

// TargetSettings returns the settings that stand after the question mark of a simulated target,
// those of an engine aside.
func TargetSettings() (list []Setting) {
	for _, s := range Settings() {
		if s.OfTarget {
			list = append(list, s)
		}
	}
	return list
}

// checkSimulated refuses settings of a simulated target that it cannot have.
func (p *Plan) checkSimulated() error {
	if p.Kind() == KindServer {
		return nil
	}
	_, e, err := ParseSimulated(p.Spec)
	if err != nil || p.Kind() != KindSim {
		return err
	}
	for _, s := range TargetSettings() {
		if s.Targets == MockTargets && len(s.setValues([]any{&e})) > 0 {
			return say.Errorf("%s needs a server behind a socket, and %s has none", s.TargetKey(), p.Spec).WithHint("use mock: in place of sim:")
		}
	}
	for fault := range strings.SplitSeq(strings.Join(e.Faults, ","), ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(fault), ":")
		if !slices.Contains([]string{"", "freeze", "429", "500", "503", "html"}, name) {
			return say.Errorf("the fault %q needs a server behind a socket, and %s has none", name, p.Spec).
				WithHint("use mock: in place of sim:, whose faults are freeze, 429, 500, 503 and html")
		}
	}
	return nil
}

// keptTarget returns a target as config.yaml has it: without what a new run would overwrite.
func keptTarget(target string) string {
	name, query, has := strings.Cut(target, "?")
	if !has || withoutKind(target) == target {
		return target
	}
	kept := slices.DeleteFunc(strings.Split(query, "&"), func(setting string) bool {
		key, _, _ := strings.Cut(setting, "=")
		s := targetSetting(key)
		return s != nil && s.NotKept != ""
	})
	if len(kept) == 0 {
		return name
	}
	return name + "?" + strings.Join(kept, "&")
}
