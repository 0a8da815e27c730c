package config

import (
	"fmt"
	"slices"
	"strings"
)

// Origin is where a setting came from that was not on the command line.
type Origin struct {
	Name       string // of the setting in a file, or of the variable
	File       string // "" for the environment
	Overridden bool   // a stronger source says otherwise
}

// recordOrigin keeps where a setting came from; file is "" for a variable.
func (d *decoder) recordOrigin(name, file string, overridden bool) {
	d.origins = append(d.origins, Origin{name, file, overridden})
}

// noteSource keeps where a setting came from, but for how an answer is shown: that changes nothing of
// what is measured.
func (d *decoder) noteSource(from source, name string, overridden bool) {
	if d.known[name].NotKept == onlyShown {
		return
	}
	switch from {
	case fromFile:
		d.recordOrigin(name, d.path, overridden)
	case fromEnvironment:
		d.recordOrigin(envName(name), "", overridden)
	}
}

// mostListed is the maximum number of names of one kind to list; the others are counted.
const mostListed = 5

// Provenance says in one line which settings were not given on the command
// line, where they came from, and which of them do not count because a
// stronger source says otherwise. It gives names only, for a value may be a
// secret, and "" where all was on the command line.
func (p *Plan) Provenance() string {
	var file, env, over []string
	path := ""
	for _, o := range p.sortedOrigins() {
		name := o.Name
		if o.Overridden && o.File != "" {
			name += " of " + o.File
		}
		switch {
		case o.Overridden:
			over = append(over, name)
		case o.File != "":
			path = o.File
			file = append(file, name)
		default:
			env = append(env, name)
		}
	}
	var parts []string
	if len(file) > 0 {
		parts = append(parts, listNames(file)+" from "+path)
	}
	if len(env) > 0 {
		parts = append(parts, listNames(env)+" from the environment")
	}
	if len(over) > 0 {
		parts = append(parts, "overridden: "+listNames(over))
	}
	return strings.Join(parts, "; ")
}

// sortedOrigins has the target and the load first.
func (p *Plan) sortedOrigins() []Origin {
	first := []string{"target", targetVariable, "rate", envName("rate"), "concurrency", envName("concurrency")}
	rank := func(o Origin) int {
		if i := slices.Index(first, o.Name); i >= 0 {
			return i
		}
		return len(first)
	}
	out := slices.Clone(p.Origins)
	slices.SortStableFunc(out, func(a, b Origin) int { return rank(a) - rank(b) })
	return out
}

func listNames(names []string) string {
	if more := len(names) - mostListed; more > 1 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostListed], ", "), more)
	}
	return strings.Join(names, ", ")
}
