package plan

import (
	"slices"
	"strings"

	"pitot/internal/say"
)

// How settings stand to each other: which has no meaning beside which, without
// which, and with which targets. What is said of it is in the table.

// putAway says whether a stronger source has set what a setting has no meaning
// beside.
func (d *decoder) putAway(name string, from source) bool {
	stronger := func(condition string) bool {
		other, _, valued := strings.Cut(condition, "=")
		return d.given[other] > from && (!valued || d.is(condition))
	}
	for _, s := range d.known {
		if a := s.Alternative; a != nil && (s.Name == name && stronger(a.To) || a.To == name && stronger(s.Name)) {
			return true
		}
	}
	for _, c := range d.known[name].Clashes {
		if stronger(c.With) {
			return true
		}
	}
	return false
}

// together says which of the settings that were given cannot be together, or not
// with a kind of target; "" where the verb has none.
func (d *decoder) together(kind string) error {
	for _, name := range d.names() {
		s := d.known[name]
		if d.given[name] == 0 {
			continue
		}
		if a := s.Alternative; a != nil && d.given[a.To] > 0 {
			return say.Errorf("%s", a.Mistake).WithHint(a.Hint)
		}
		if len(s.values(d.parts)) == 0 {
			continue // as it is without being given
		}
		for _, c := range s.Clashes {
			if d.is(c.With) {
				return say.Errorf("--%s has no meaning with --%s", name, spelled(c.With)).WithHint(c.Hint)
			}
		}
		for _, n := range s.Needs {
			if n.Targets.Has(kind) && !d.any(n.AnyOf) {
				return say.Errorf("--%s without %s", name, alternatives(n.AnyOf)).WithHint(n.Hint)
			}
		}
	}
	return nil
}

// is says whether a setting was given, otherwise than by default; or, of
// NAME=VALUE, whether it has that value or, of a list, one that is it or has it as
// its key.
func (d *decoder) is(condition string) bool {
	name, value, valued := strings.Cut(condition, "=")
	s := d.known[name]
	switch {
	case s == nil:
		return false
	case valued:
		return slices.ContainsFunc(s.get(d.parts), func(v string) bool {
			key, _, keyed := strings.Cut(v, "=")
			return v == value || keyed && s.Many() && key == value
		})
	}
	return d.given[name] > 0 && len(s.values(d.parts)) > 0
}

func (d *decoder) any(conditions string) bool {
	known := false
	for c := range strings.FieldsSeq(conditions) {
		if d.is(c) {
			return true
		}
		name, _, _ := strings.Cut(c, "=")
		known = known || d.known[name] != nil
	}
	return !known // of a setting that the verb has not, nobody asks
}

// spelled writes NAME or NAME=VALUE as it stands behind two dashes.
func spelled(condition string) string { return strings.Replace(condition, "=", " ", 1) }

func alternatives(conditions string) string {
	var names []string
	for c := range strings.FieldsSeq(conditions) {
		names = append(names, "--"+spelled(c))
	}
	return strings.Join(names, " or ")
}

// checkTargets refuses settings that are for targets of another kind.
func (p *Plan) checkTargets() error {
	kind, parts := p.Kind(), p.parts()
	for _, s := range Settings() {
		if s.Targets == AllTargets || !s.in(parts) || s.Targets.Has(kind) || len(s.values(parts)) == 0 {
			continue
		}
		hint := s.OtherTarget
		switch {
		case kind == KindServer && hint == "":
			hint = "use it with mock:MODEL@GPU"
			fallthrough
		case kind == KindServer:
			return say.Errorf("--%s describes the embedded target, and %s is none", s.Name, p.Spec).WithHint(hint)
		default:
			return say.Errorf("--%s needs the embedded target behind a socket, and %s has none", s.Name, p.Spec).WithHint("use mock: in place of sim:")
		}
	}
	return nil
}
