package config

import (
	"maps"
	"slices"
	"strings"

	"pitot/internal/results/rundir"
	"pitot/internal/say"
	"pitot/internal/slo"
)

// flagValue is one flag as given.
type flagValue struct{ name, value string }

// groupValues collects the values of each flag, in order.
func groupValues(flags []flagValue) map[string][]string {
	m := map[string][]string{}
	for _, f := range flags {
		m[f.name] = append(m[f.name], f.value)
	}
	return m
}

// flagName gives the name of a flag and the value behind its =, if a is one.
func flagName(a string) (name, value string, has, ok bool) {
	if len(a) < 2 || a[0] != '-' {
		return "", "", false, false
	}
	name, value, has = strings.Cut(strings.TrimPrefix(a[1:], "-"), "=")
	return name, value, has, true
}

// parseFlags takes --name value, --name=value and -name, anywhere among the
// arguments; behind -- all are arguments.
func parseFlags(known map[string]*Setting, argv []string) (flags []flagValue, args []string, err error) {
	all := maps.Clone(known)
	for _, s := range GeneralFlags() {
		all[s.Name] = &s
	}
	seen := map[string]bool{}
	for i := 0; i < len(argv); i++ {
		if argv[i] == "--" {
			return flags, append(args, argv[i+1:]...), nil
		}
		name, value, has, ok := flagName(argv[i])
		if !ok {
			args = append(args, argv[i])
			continue
		}
		s, ok := all[name]
		if !ok || s.KeyOnly {
			return nil, nil, unknownFlag(name, all)
		}
		if !s.IsRepeatable() && seen[name] {
			return nil, nil, say.Errorf("--%s is given twice", name).WithHint("keep one of them")
		}
		seen[name] = true
		next := ""
		if i+1 < len(argv) {
			next = argv[i+1]
		}
		switch {
		case has:
		case s.Arg == "":
			if next == "true" || next == "false" {
				return nil, nil, say.Errorf("--%s takes no value of its own", name).WithHint("write --" + name + "=" + next)
			}
			value = "true"
		default:
			follower, _, _, flag := flagName(next)
			if _, is := all[follower]; i+1 >= len(argv) || next == "--" || flag && (is || isHelp(follower)) {
				return nil, nil, say.Errorf("--%s needs a value", name).WithHint("for example --" + name + " " + s.ExampleValue())
			}
			value = next
			i++
		}
		given := flagValue{name, value}
		if name == setFlag {
			if given, err = keyGiven(known, value, seen); err != nil {
				return nil, nil, err
			}
		}
		flags = append(flags, given)
	}
	return flags, args, nil
}

// setFlag is the flag of settings that have none of their own.
const setFlag = "set"

// GeneralFlags returns the flags of every verb with settings. They set no field themselves.
func GeneralFlags() []Setting {
	return []Setting{
		{Name: "config", Group: groupOutput, Common: true, Arg: "FILE", Example: rundir.Config,
			Brief: "read settings from a YAML file",
			Help:  "read settings from a YAML file, whose keys are the names of flags. Flags and PITOT_ variables override it",
			value: fieldValue(filePath(), func(*Plan) *string { return nil })},
		{Name: setFlag, Group: groupOutput, Arg: "KEY=VALUE", Example: "correlation=0.5",
			Brief: "set a rarely used key, which has no flag of its own",
			Help:  "set a rarely used key, which has no flag of its own. --help=all lists the keys, --help=KEY shows one",
			value: listValue(anything(), func(*Plan) *[]string { return nil })},
	}
}

// FlagsAndKeys returns what the command line of a verb can set, in the order of the table. A verb
// without keys has no --set, and one without settings no --config.
func FlagsAndKeys(v Verb) (list []Setting) {
	keys := false
	for _, s := range Settings() {
		if s.AppliesTo(v) {
			list, keys = append(list, s), keys || s.KeyOnly
		}
	}
	for _, s := range GeneralFlags() {
		if len(list) > 0 && (keys || s.Name != setFlag) {
			list = append(list, s)
		}
	}
	return list
}

// keyGiven reads the KEY=VALUE of --set.
func keyGiven(known map[string]*Setting, text string, seen map[string]bool) (flagValue, error) {
	key, value, valued := strings.Cut(text, "=")
	s := known[key]
	var keys []string
	for name, s := range known {
		if s.KeyOnly {
			keys = append(keys, name)
		}
	}
	slices.Sort(keys)
	switch {
	case s == nil:
		return flagValue{}, say.Errorf("--set: unknown key %.40q", key).WithHint(say.KnownHint(key, keys))
	case !s.KeyOnly:
		return flagValue{}, say.Errorf("--set: %s has a flag", key).WithHint("write --" + key)
	case !valued && s.Arg != "":
		return flagValue{}, say.Errorf("--set %s needs a value", key).WithHint("for example --set " + key + "=" + s.ExampleValue())
	case !valued:
		value = "true"
	case !s.IsRepeatable() && seen[setFlag+" "+key]:
		return flagValue{}, say.Errorf("--set %s is given twice", key).WithHint("keep one of them")
	}
	seen[setFlag+" "+key] = true
	return flagValue{key, value}, nil
}

// isHelp reports whether a flag's name asks for help.
func isHelp(name string) bool { return name == "help" || name == "h" }

// HelpAsked reports whether arguments of a verb ask for its help, and returns the topic of
// --help=TOPIC. The value of another flag does not ask.
func HelpAsked(v Verb, argv []string) (topic string, asked bool) {
	known := settingsOf(v)
	for i := 0; i < len(argv) && argv[i] != "--"; i++ {
		name, value, has, ok := flagName(argv[i])
		if ok && isHelp(name) {
			return value, true
		}
		if s := known[name]; ok && !has && (s != nil && s.Arg != "" || name == "config" || name == setFlag) {
			i++
		}
	}
	return "", false
}

func unknownFlag(name string, known map[string]*Setting) error {
	names := []string{"help"}
	for n, s := range known {
		if !s.KeyOnly {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	hint := "see --help=all"
	if s := known[name]; s != nil {
		return say.Errorf("unknown flag --%s", name).WithHint("it is a key of --config FILE, or " + say.ShellLine(s.Args(s.ExampleValue())))
	}
	switch near := say.NearestName(name, names); {
	case known[name+"s"] != nil:
		hint = "did you mean --" + name + "s?"
	case targetSetting(strings.ReplaceAll(name, "-", "_")) != nil:
		s := targetSetting(strings.ReplaceAll(name, "-", "_"))
		hint = "a simulated target has it after its question mark: 'mock:fixed?" + s.TargetKey() + "=" + s.ExampleValue() + "'"
		if _, err := slo.Parse("p99 " + name + "<1s"); err == nil {
			hint += `; a limit is written --slo "p99 ` + name + `<200ms"`
		}
	case slices.ContainsFunc(Settings(), func(s Setting) bool { return s.Name == name }):
		return &OtherVerb{name, say.Errorf("unknown flag --%s", name).WithHint("--" + name + " belongs to another verb")}
	case otherToolFlag(name) != "":
		hint = otherToolFlag(name)
	case near != "":
		hint = "did you mean --" + near + "?"
	}
	return say.Errorf("unknown flag --%s", name).WithHint(hint)
}

// OtherVerb is the error of a flag that another verb takes; the command line adds
// which. It is a [say.Error].
type OtherVerb struct {
	Flag string
	Err  error
}

func (e *OtherVerb) Error() string { return e.Err.Error() }

// Unwrap gives the user's error.
func (e *OtherVerb) Unwrap() error { return e.Err }

// otherToolFlag maps names of other tools' flags to Pitot's.
func otherToolFlag(name string) string {
	switch name {
	case "key", "api-key", "token":
		return "a key is never an argument, where others can read it: export OPENAI_API_KEY, or --key-env VAR, or --key-file FILE"
	case "url", "base-url", "target", "host", "endpoint":
		return "the target is an argument of its own: pitot run http://localhost:8000 --rate 4"
	case "request-rate", "qps", "rps":
		return "write --rate"
	case "max-concurrency", "users":
		return "write --concurrency, or --max-in-flight to cap a rate"
	case "num-prompts", "num-requests", "max-requests":
		return "write --requests"
	case "input-len", "random-input-len", "input-tokens":
		return "write --input"
	case "output-len", "random-output-len", "output-tokens", "max-tokens":
		return "write --output"
	case "dataset", "dataset-path":
		return "write --workload FILE"
	case "goodput":
		return `write --slo "p99 ttft<200ms, p99 tpot<50ms"`
	}
	return ""
}
