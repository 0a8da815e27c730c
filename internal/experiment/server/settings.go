package server

import (
	"slices"
	"strings"

	"pitot/internal/say"
	"pitot/internal/sim/engines"
)

// Setting is one of an engine, by the name that the engine has for it, with underscores.
type Setting struct{ Name, Value string }

// Other is an engine whose settings are not known: names are not checked.
const Other = "other"

// Engines are the names that a plan can give.
func Engines() []string { return append(engines.Names(), Other) }

// EngineOf tells from the words of a command which engine it starts, "" where it does not.
// Pitot's mock takes the usual engine's flags.
func EngineOf(command string) string {
	low := strings.ToLower(command)
	for _, k := range slices.Backward(engines.Deployed()) { // the usual one last: words of others may have its own in them
		if slices.ContainsFunc(k.Starts, func(words string) bool { return strings.Contains(low, words) }) {
			return k.Name
		}
	}
	if strings.Contains(low, "pitot mock") {
		return engines.Default().Name
	}
	return ""
}

// settingsOf are the settings of an engine that are known; all says that it has no others,
// in the version that the list is of.
func settingsOf(name string) (names []string, all bool) {
	k, ok := engines.ByName(name)
	if !ok {
		return nil, false
	}
	return k.FlagNames(), k.AllFlags
}

// CheckName says of a setting that the engine does not know it: err, where that is a
// mistake, and note, where the list of names may be what is short.
func CheckName(engine, name string) (note string, err error) {
	names, all := settingsOf(engine)
	if names == nil || slices.Contains(names, name) {
		return "", nil
	}
	near := say.NearestName(name, names)
	switch {
	case strings.HasPrefix(name, "no_") && slices.Contains(names, strings.TrimPrefix(name, "no_")):
		name = strings.TrimPrefix(name, "no_")
		return "", say.Errorf("a setting is named without no_").WithHint("write " + name + ": [false]")
	case near == "" && !all:
		return engine + " is not known to have a setting " + name + ", of the ones that are listed here", nil
	}
	hint := "an engine of another version may have it: with target: engine: other no name is checked"
	if near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return "", say.Errorf("%s has no setting %s", engine, name).WithHint(hint)
}

// Flags writes settings as flags of an engine, each value as one word of a POSIX shell.
// true and false are flags without a value, --name and --no-name, unless the engine has no
// flags for false.
func Flags(engine string, settings []Setting) string {
	var words []string
	k, known := engines.ByName(engine)
	for _, s := range settings {
		name := strings.ReplaceAll(s.Name, "_", "-")
		switch {
		case s.Value == "true":
			words = append(words, "--"+name)
		case s.Value == "false" && known && k.OnlyTrue:
		case s.Value == "false":
			words = append(words, "--no-"+name)
		default:
			words = append(words, "--"+name, s.Value)
		}
	}
	return say.ShellLine(words)
}

// placeholder is the text in a command that stands for the flags.
const placeholder = "{flags}"

// TakesFlags says that a command can have a configuration's settings: by its placeholder
// or by a variable of the environment.
func TakesFlags(command string) bool {
	return strings.Contains(command, placeholder) || strings.Contains(command, variables)
}

// variables begin the names of all variables that commands get.
const variables = "PITOT_SERVER_"

// environment returns the environment variables that commands get of a configuration.
func environment(a *Asked) []string {
	env := []string{
		variables + "CONFIGURATION=" + a.Configuration,
		variables + "FLAGS=" + a.Flags,
		variables + "URL=" + a.URL,
		variables + "LOG=" + a.Log,
	}
	for _, s := range a.Settings {
		env = append(env, variables+"KNOB_"+strings.ToUpper(s.Name)+"="+s.Value)
	}
	return env
}
