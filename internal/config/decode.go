package config

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"pitot/internal/results/rundir"
	"pitot/internal/say"
	"pitot/internal/workload"
)

// Sources of settings, in order of precedence: the highest wins.
type source int

const (
	fromFile source = 1 + iota
	fromEnvironment
	fromFlag
)

// decoder merges the settings of all sources.
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
		if s.isIn(parts) {
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
	return DecodeWith(v, argv, environ)
}

// DecodeWith is Decode of a verb that has parts of its own besides.
func DecodeWith(v Verb, argv, environ []string, more ...any) (p Plan, args []string, err error) {
	d := newDecoder(v, append(p.settingParts(), more...))
	if args, err = d.decode(argv, environ); err != nil {
		return p, nil, err
	}
	p.Spec, args = d.takeTarget(args, environmentByName(environ))
	p.Origins = d.origins
	if err := d.takeOwnTimes(v, &p); err != nil {
		return p, nil, err
	}
	if err := d.takeProfile(v, &p); err != nil {
		return p, nil, err
	}
	if err := p.takeOwnRate(v); err != nil {
		return p, nil, err
	}
	if d.given["duration"] == 0 && !p.Until.IsNone() {
		p.Duration = min(p.Duration, p.MaxDuration/firstLook)
	}
	return p, args, d.checkConflicts(p.Kind())
}

// firstLook bounds the first window of --until where none is asked for: it fits
// this often into the longest, so that it can be doubled.
const firstLook = 4

// DecodeParts does the same for another verb, whose settings are in these parts:
// pointers to structs of this package.
func DecodeParts(v Verb, argv, environ []string, parts ...any) (args []string, err error) {
	d := newDecoder(v, parts)
	if args, err = d.decode(argv, environ); err != nil {
		return nil, err
	}
	return args, d.checkConflicts("")
}

// ReadRecorded reads the plan of a run from its config.yaml, whichever verb made it. A name that
// means one thing to a verb and another to the next, as duration, means what it does to that one.
func ReadRecorded(path string) (Plan, error) {
	var p Plan
	d := newDecoder("", p.settingParts())
	by := RecordedBy(path)
	for _, s := range Settings() {
		if s.isIn(d.parts) && (d.known[s.Name] == nil || s.AppliesTo(by)) { // those of verbs that measure come first
			d.known[s.Name] = &s
		}
	}
	spec, err := d.readFile(path)
	p.Spec = spec
	if err == nil {
		if _, preset := workload.PresetNamed(p.Workload); preset { // a file may be gone, and another by now
			err = d.takePreset()
		}
	}
	return p, err
}

// ReadForWorker reads the plan of a verb from a config.yaml that another process wrote, as it has
// it: of the environment only what the file leaves out, being secret, counts.
func ReadForWorker(v Verb, path string, environ []string) (Plan, error) {
	var secret []string
	for _, s := range Settings() {
		if s.Lost == nil || !s.AppliesTo(v) {
			continue
		}
		for _, e := range environ {
			if strings.HasPrefix(e, envName(s.Name)+"=") {
				secret = append(secret, e)
			}
		}
	}
	p, _, err := Decode(v, []string{"--config", path}, secret)
	return p, err
}

// decode takes the settings of all sources. The target of a file stands for one
// that is missing in the arguments.
func (d *decoder) decode(argv, environ []string) (args []string, err error) {
	flags, args, err := parseFlags(d.known, argv)
	if err != nil {
		return nil, err
	}
	onLine := groupValues(flags)
	defer func() {
		if err == nil {
			err = d.refuseHidden()
		}
		if err == nil {
			err = d.takePreset()
		}
	}()
	for _, name := range d.sortedNames() {
		if values := onLine[name]; values != nil {
			if err := d.assignSetting(fromFlag, d.known[name].Flag(), name, values); err != nil {
				return nil, err
			}
		}
	}
	env := environmentByName(environ)
	if err := d.decodeEnvironment(env); err != nil {
		return nil, err
	}
	config := env[configVariable]
	if c := onLine["config"]; c != nil {
		if config = c[0]; config == "" {
			return nil, say.Errorf("--config: empty").WithHint("for example --config plan.yaml")
		}
	}
	if config == "" {
		if config = d.resumedConfig(); config == "" {
			if config = d.continuedConfig(); config == "" {
				return args, nil
			}
			if !fileExists(config) {
				return nil, say.Errorf("--continue: there is no run in %s", filepath.Dir(config)).WithHint("name the directory of a run of pitot find")
			}
			for _, own := range []string{"seed", "launch"} { // each search has its own
				delete(d.known, own)
			}
		}
		d.resumed = true
	}
	target, err := d.readFile(config)
	if err != nil {
		return nil, err
	}
	if target != "" {
		d.recordOrigin("target", config, len(args) > 0)
		if len(args) == 0 {
			args = []string{target}
		}
	}
	return args, nil
}

// resumedConfig is the path of the config.yaml of the run that --resume continues: it
// holds the settings that need not be given again. "" where there is none.
func (d *decoder) resumedConfig() string {
	o := findPart[Output](d.parts)
	if o == nil || !o.Resume || o.Out == "" {
		return ""
	}
	if path := filepath.Join(o.Out, rundir.Config); fileExists(path) {
		return path
	}
	return ""
}

// continuedConfig is that of the run that --continue names.
func (d *decoder) continuedConfig() string {
	if s := findPart[Search](d.parts); s != nil && s.Continue != "" {
		return filepath.Join(s.Continue, rundir.Config)
	}
	return ""
}

// takeTarget gives the target, the first argument or else OPENAI_BASE_URL, and the
// arguments.
func (d *decoder) takeTarget(args []string, env map[string]string) (string, []string) {
	if len(args) > 0 {
		return args[0], args
	}
	url := env[targetVariable]
	if url != "" {
		d.recordOrigin(targetVariable, "", false)
	}
	return url, args
}

// sortedNames are the known settings in a fixed order, so that of two mistakes
// always the same one is reported.
func (d *decoder) sortedNames() []string { return slices.Sorted(maps.Keys(d.known)) }

// assignSetting takes the values of one setting, unless a stronger source has it
// already or has chosen otherwise. where is what the user wrote.
func (d *decoder) assignSetting(from source, where, name string, values []string) error {
	stronger := d.given[name] > from
	if stronger {
		values = d.valuesOfOtherKeys(name, values)
	}
	if stronger && len(values) == 0 || d.isOverruled(name, from) {
		d.noteSource(from, name, true)
		return nil
	}
	d.given[name] = max(d.given[name], from)
	d.noteSource(from, name, false)
	for _, v := range values {
		if !utf8.ValidString(v) { // no file could hold it
			return say.Errorf("%s: not UTF-8 text", where)
		}
		if err := d.known[name].parseInto(d.parts, v); err != nil {
			var u *say.Error
			if errors.As(err, &u) {
				return say.Errorf("%s: %s", where, u.Msg).WithHint(u.Hint)
			}
			return say.Errorf("%s: %v", where, err)
		}
	}
	return nil
}

// valuesOfOtherKeys gives those values of a source of lower precedence that are kept:
// the ones whose key no source of higher precedence has set.
func (d *decoder) valuesOfOtherKeys(name string, values []string) (out []string) {
	s := d.known[name]
	if s.Key == nil {
		return nil
	}
	has := map[string]bool{}
	for _, v := range s.written(d.parts) {
		has[s.Key(v)] = true
	}
	for _, v := range values {
		if !has[s.Key(v)] {
			out = append(out, v)
		}
	}
	return out
}

// refuseHidden refuses values from config.yaml that were stored without their secret
// part: it must be given again.
func (d *decoder) refuseHidden() error {
	for _, name := range d.sortedNames() {
		s := d.known[name]
		if s.Lost == nil {
			continue
		}
		for _, v := range s.written(d.parts) {
			if lost := s.Lost(v); len(lost) > 0 {
				return say.Errorf("the value of the %s was not stored", strings.Join(lost, " and of the ")).WithHint("give it again: " + say.ShellLine(s.Args(strings.ReplaceAll(v, redacted, "…"))))
			}
		}
	}
	return nil
}
