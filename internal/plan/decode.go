package plan

import (
	"errors"
	"maps"
	"slices"
	"unicode/utf8"

	"pitot/internal/say"
)

// Sources of settings, the stronger the higher.
type source int

const (
	fromFile source = 1 + iota
	fromEnvironment
	fromFlag
)

// decoder puts settings from all sources together.
type decoder struct {
	plan  Plan
	known map[string]Setting
	given map[string]source
	path  string // of the file
}

// Decode makes a plan of arguments, environment (NAME=VALUE each) and the file
// that --config names; what stands earlier in this list wins. Only the settings
// in names are known to the verb. The arguments that are no flags come back in
// args. Every error is a [user.Error].
func Decode(names, argv, environ []string) (p Plan, args []string, err error) {
	return DecodeOver(Default(), names, argv, environ)
}

// DecodeOver is [Decode] for a verb whose defaults are its own.
func DecodeOver(base Plan, names, argv, environ []string) (p Plan, args []string, err error) {
	d := &decoder{plan: base, known: map[string]Setting{}, given: map[string]source{}}
	for _, s := range Settings() {
		if slices.Contains(names, s.Name) {
			d.known[s.Name] = s
		}
	}
	flags, args, err := parseFlags(d.known, argv)
	if err != nil {
		return d.plan, nil, err
	}
	onLine := group(flags)
	for _, name := range d.names() {
		if values := onLine[name]; values != nil {
			if err := d.set(fromFlag, "--"+name, name, values); err != nil {
				return d.plan, nil, err
			}
		}
	}
	env := variables(environ)
	if err := d.environment(env); err != nil {
		return d.plan, nil, err
	}
	config := env[configVariable]
	if c := onLine["config"]; c != nil {
		if config = c[0]; config == "" {
			return d.plan, nil, say.Errorf("--config: empty").WithHint("for example --config plan.yaml")
		}
	}
	if config != "" {
		target, err := d.file(config)
		if err != nil {
			return d.plan, nil, err
		}
		if target != "" {
			d.note("target", config, len(args) > 0)
			if len(args) == 0 {
				args = []string{target}
			}
		}
	}
	if len(args) > 0 {
		d.plan.Target = args[0]
	} else if url := env[targetVariable]; url != "" {
		d.plan.Target = url
		d.note(targetVariable, "", false)
	}
	if d.plan.Prefix > 0 && d.given["prefix-share"] == 0 {
		d.plan.PrefixShare = 1
	}
	return d.plan, args, nil
}

// names are the known settings in a fixed order, so that of two mistakes
// always the same is told.
func (d *decoder) names() []string { return slices.Sorted(maps.Keys(d.known)) }

// set takes the values of one setting, unless a stronger source has it
// already or has chosen otherwise. where is what the user wrote.
func (d *decoder) set(from source, where, name string, values []string) error {
	if d.given[name] > from {
		d.noteSource(from, name, true)
		return nil
	}
	for _, c := range choices() {
		other := c.other(name)
		if other == "" {
			continue
		}
		if d.given[other] > from {
			d.noteSource(from, name, true)
			return nil
		}
		if d.given[other] == from && c.clash != "" {
			return say.Errorf("%s", c.clash).WithHint(c.hint)
		}
	}
	d.given[name] = from
	d.noteSource(from, name, false)
	for _, v := range values {
		if !utf8.ValidString(v) { // no file could hold it
			return say.Errorf("%s: not UTF-8 text", where)
		}
		if err := d.known[name].set(&d.plan, v); err != nil {
			var u *say.Error
			if errors.As(err, &u) {
				return say.Errorf("%s: %s", where, u.Msg).WithHint(u.Hint)
			}
			return say.Errorf("%s: %v", where, err)
		}
	}
	return nil
}

// choice is a pair of settings of which a run has one: given in a stronger
// source, one puts the other away.
type choice struct {
	sides       [2][]string // the setting, and others that mean nothing without it
	clash, hint string      // what to say to both from one source, "" where Plan.Check says it
}

func choices() []choice {
	return []choice{
		{sides: [2][]string{{"rate", "arrival", "max-in-flight"}, {"concurrency", "think"}}},
		{sides: [2][]string{{"duration"}, {"requests"}},
			clash: "--duration and --requests both say when the window ends", hint: "keep one of them; --timeout bounds each request"},
		{sides: [2][]string{{"key-env"}, {"key-file"}},
			clash: "--key-env and --key-file both say where the key is", hint: "keep one of them"},
	}
}

// other is the setting that would put this one away.
func (c choice) other(name string) string {
	for i, side := range c.sides {
		if slices.Contains(side, name) {
			return c.sides[1-i][0]
		}
	}
	return ""
}
