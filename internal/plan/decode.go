package plan

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"pitot/internal/data/rundir"
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
	verb    Verb
	parts   []any
	known   map[string]*Setting
	given   map[string]source
	origins []Origin
	path    string // of the file
	resumed bool   // the file is that of the run to go on with
}

func newDecoder(v Verb, parts []any) *decoder {
	d := &decoder{verb: v, parts: parts, known: settingsOf(v), given: map[string]source{}}
	Reset(parts...)
	for _, s := range d.known { // verbs may have defaults of their own
		if s.in(parts) {
			s.reset(parts, s.Default)
		}
	}
	return d
}

// Decode makes the plan of a verb that measures of arguments, environment
// (NAME=VALUE each) and the file that --config names; what stands earlier in this
// list wins. The arguments that are no flags come back in args. Every error is a
// [say.Error].
func Decode(v Verb, argv, environ []string) (p Plan, args []string, err error) {
	d := newDecoder(v, p.parts())
	if args, err = d.decode(argv, environ); err != nil {
		return p, nil, err
	}
	p.Spec, args = d.target(args, variables(environ))
	p.Origins = d.origins
	if d.given["duration"] == 0 && !p.Until.None() {
		p.Duration = min(p.Duration, p.Budget/firstLook)
	}
	return p, args, d.together(p.Kind())
}

// firstLook bounds the first window of --until where none is asked for: it fits
// this often into the budget, so that it can be doubled.
const firstLook = 4

// DecodeParts does the same for another verb, whose settings are in these parts:
// pointers to structs of this package.
func DecodeParts(v Verb, argv, environ []string, parts ...any) (args []string, err error) {
	d := newDecoder(v, parts)
	if args, err = d.decode(argv, environ); err != nil {
		return nil, err
	}
	return args, d.together("")
}

// Recorded reads the plan of a run from its config.yaml, whichever verb made it.
func Recorded(path string) (Plan, error) {
	var p Plan
	d := newDecoder("", p.parts())
	for _, s := range Settings() {
		if s.in(d.parts) {
			d.known[s.Name] = &s
		}
	}
	spec, err := d.file(path)
	p.Spec = spec
	return p, err
}

// decode takes the settings of all sources. The target of a file stands for one
// that is missing in the arguments.
func (d *decoder) decode(argv, environ []string) (args []string, err error) {
	flags, args, err := parseFlags(d.known, argv)
	if err != nil {
		return nil, err
	}
	onLine := group(flags)
	defer func() {
		if err == nil {
			err = d.lost()
		}
	}()
	for _, name := range d.names() {
		if values := onLine[name]; values != nil {
			if err := d.set(fromFlag, "--"+name, name, values); err != nil {
				return nil, err
			}
		}
	}
	env := variables(environ)
	if err := d.environment(env); err != nil {
		return nil, err
	}
	config := env[configVariable]
	if c := onLine["config"]; c != nil {
		if config = c[0]; config == "" {
			return nil, say.Errorf("--config: empty").WithHint("for example --config plan.yaml")
		}
	}
	if config == "" {
		if config = d.earlier(); config == "" {
			return args, nil
		}
		d.resumed = true
	}
	target, err := d.file(config)
	if err != nil {
		return nil, err
	}
	if target != "" {
		d.note("target", config, len(args) > 0)
		if len(args) == 0 {
			args = []string{target}
		}
	}
	return args, nil
}

// earlier is the plan of the run to go on with, which says what a user does not say
// again; "" where there is none.
func (d *decoder) earlier() string {
	o := find[Output](d.parts)
	if o == nil || !o.Resume || o.Out == "" {
		return ""
	}
	if path := filepath.Join(o.Out, rundir.Config); exists(path) {
		return path
	}
	return ""
}

// target is the first argument or else what the variable of OpenAI's clients names.
func (d *decoder) target(args []string, env map[string]string) (string, []string) {
	if len(args) > 0 {
		return args[0], args
	}
	url := env[targetVariable]
	if url != "" {
		d.note(targetVariable, "", false)
	}
	return url, args
}

// names are the known settings in a fixed order, so that of two mistakes
// always the same is told.
func (d *decoder) names() []string { return slices.Sorted(maps.Keys(d.known)) }

// set takes the values of one setting, unless a stronger source has it
// already or has chosen otherwise. where is what the user wrote.
func (d *decoder) set(from source, where, name string, values []string) error {
	stronger := d.given[name] > from
	if stronger {
		values = d.missing(name, values)
	}
	if stronger && len(values) == 0 || d.putAway(name, from) {
		d.noteSource(from, name, true)
		return nil
	}
	d.given[name] = max(d.given[name], from)
	d.noteSource(from, name, false)
	for _, v := range values {
		if !utf8.ValidString(v) { // no file could hold it
			return say.Errorf("%s: not UTF-8 text", where)
		}
		if err := d.known[name].set(d.parts, v); err != nil {
			var u *say.Error
			if errors.As(err, &u) {
				return say.Errorf("%s: %s", where, u.Msg).WithHint(u.Hint)
			}
			return say.Errorf("%s: %v", where, err)
		}
	}
	return nil
}

// missing gives the values of a weaker source that hold beside those of a
// stronger: those whose key is another.
func (d *decoder) missing(name string, values []string) (out []string) {
	s := d.known[name]
	if s.Key == nil {
		return nil
	}
	has := map[string]bool{}
	for _, v := range s.get(d.parts) {
		has[s.Key(v)] = true
	}
	for _, v := range values {
		if !has[s.Key(v)] {
			out = append(out, v)
		}
	}
	return out
}

// lost refuses values that are not whole: what was hidden when they were kept
// must be given again.
func (d *decoder) lost() error {
	for _, name := range d.names() {
		s := d.known[name]
		if s.Lost == nil {
			continue
		}
		for _, v := range s.get(d.parts) {
			if lost := s.Lost(v); len(lost) > 0 {
				return say.Errorf("the value of the %s was not stored", strings.Join(lost, " and of the ")).WithHint("give it again: " + say.ShellLine([]string{"--" + name, strings.ReplaceAll(v, redacted, "…")}))
			}
		}
	}
	return nil
}
