package config

import (
	"slices"
	"strings"

	"pitot/internal/say"
	"pitot/internal/workload"
)

// Conflicts and requirements between settings, and with kinds of target, as the table
// of settings declares them.

// isOverruled says whether a source of higher precedence has set something that
// conflicts with a setting, which is then ignored.
func (d *decoder) isOverruled(name string, from source) bool {
	stronger := func(condition string) bool {
		other, _, valued := strings.Cut(condition, "=")
		return d.given[other] > from && (!valued || d.conditionHolds(condition))
	}
	for _, s := range d.known {
		if a := s.Alternative; a != nil && (s.Name == name && stronger(a.To) || a.To == name && stronger(s.Name)) {
			return true
		}
	}
	for _, c := range d.known[name].Clashes {
		if stronger(c.With) && !d.goesTogether(d.known[name]) {
			return true
		}
	}
	return false
}

// goesTogether says that a setting goes with those that it clashes with otherwise.
func (d *decoder) goesTogether(s *Setting) bool { return s.Unless != "" && d.conditionHolds(s.Unless) }

// checkConflicts refuses settings that exclude each other or lack what they require,
// for a kind of target; "" where the verb has no target.
func (d *decoder) checkConflicts(kind string) error {
	for _, name := range d.sortedNames() {
		s := d.known[name]
		if d.given[name] == 0 {
			continue
		}
		if a := s.Alternative; a != nil && d.given[a.To] > 0 {
			return say.Errorf("%s", a.Mistake).WithHint(a.Hint)
		}
		if len(s.setValues(d.parts)) == 0 {
			continue // as it is without being given
		}
		for _, c := range s.Clashes {
			if d.conditionHolds(c.With) && !d.goesTogether(s) {
				return say.Errorf("%s has no meaning with --%s", s.Flag(), asFlag(c.With)).WithHint(d.presetHint(c))
			}
		}
		for _, n := range s.Needs {
			if n.Targets.ContainsKind(kind) && !d.anyHolds(n.AnyOf) {
				return say.Errorf("%s without %s", s.Flag(), joinFlags(n.AnyOf)).WithHint(n.Hint)
			}
		}
	}
	return nil
}

// presetHint returns the hint of a clash, and a preset's name where --workload is nearly one.
func (d *decoder) presetHint(c Clash) string {
	if a := findPart[Ask](d.parts); a != nil && strings.HasSuffix(c.With, "="+anyFile) {
		if near := say.NearestName(a.Workload, workload.PresetNames()); near != "" {
			return "did you mean --workload " + near + "? " + c.Hint
		}
	}
	return c.Hint
}

// anyFile is the value of a condition that --workload names a file.
const anyFile = "FILE"

// conditionHolds evaluates a condition: NAME holds if the setting was given and differs
// from its default; NAME=VALUE if it has that value, or is a list with such a value or
// key.
func (d *decoder) conditionHolds(condition string) bool {
	name, value, valued := strings.Cut(condition, "=")
	s := d.known[name]
	switch {
	case s == nil:
		return false
	case valued && value == anyFile:
		a := findPart[Ask](d.parts)
		return d.given[name] > 0 && a != nil && a.Mix == nil && !a.IsGenerated()
	case valued:
		return slices.ContainsFunc(s.written(d.parts), func(v string) bool {
			key, _, keyed := strings.Cut(v, "=")
			return v == value || keyed && s.IsRepeatable() && key == value
		})
	}
	return d.given[name] > 0 && len(s.setValues(d.parts)) > 0
}

func (d *decoder) anyHolds(conditions string) bool {
	known := false
	for c := range strings.FieldsSeq(conditions) {
		if d.conditionHolds(c) {
			return true
		}
		name, _, _ := strings.Cut(c, "=")
		known = known || d.known[name] != nil
	}
	return !known // a condition on a setting that the verb does not have always holds
}

// asFlag writes NAME or NAME=VALUE as on the command line, without the dashes.
func asFlag(condition string) string { return strings.Replace(condition, "=", " ", 1) }

func joinFlags(conditions string) string {
	var names []string
	for c := range strings.FieldsSeq(conditions) {
		names = append(names, "--"+asFlag(c))
	}
	return strings.Join(names, " or ")
}

// checkTargets refuses settings that are for targets of another kind.
func (p *Plan) checkTargets() error {
	kind, parts := p.Kind(), p.settingParts()
	for _, s := range Settings() {
		if s.Targets == AllTargets || !s.isIn(parts) || s.Targets.ContainsKind(kind) || len(s.setValues(parts)) == 0 {
			continue
		}
		hint := s.OtherTarget
		switch {
		case kind == KindServer && hint == "":
			hint = "use it with mock:MODEL@GPU"
			fallthrough
		case kind == KindServer:
			return say.Errorf("%s describes the embedded target, and %s is none", s.Flag(), p.Spec).WithHint(hint)
		default:
			return say.Errorf("%s needs the embedded target behind a socket, and %s has none", s.Flag(), p.Spec).WithHint("use mock: in place of sim:")
		}
	}
	return nil
}

// Relation is a dependency of a setting on others, or on the target: "not with", "--rate".
type Relation struct{ How, What string }

// Relations returns how the setting depends on other settings and on the kind of target.
func (s *Setting) Relations() (list []Relation) {
	add := func(how, what string) { list = append(list, Relation{how, what}) }
	switch s.Targets {
	case EmbeddedTargets:
		add("only for", "mock: and sim: targets")
	case MockTargets:
		add("only for", "mock: targets")
	case SocketTargets:
		add("not for", "sim: targets")
	case ServerTargets:
		add("not for", "mock: and sim: targets")
	}
	if s.Alternative != nil {
		add("or", "--"+s.Alternative.To)
	}
	var others []string
	for _, c := range s.Clashes {
		others = append(others, "--"+asFlag(c.With))
	}
	if except := strings.Join(others, ", "); except != "" {
		if s.Unless != "" {
			except += ", except with --" + asFlag(s.Unless)
		}
		add("not with", except)
	}
	for _, n := range s.Needs {
		add("only with", joinFlags(n.AnyOf))
	}
	return list
}
