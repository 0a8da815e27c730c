package config

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Verb is a word of the command line that takes settings.
type Verb string

// The verbs that take settings.
const (
	VerbRun       Verb = "run"
	VerbSweep     Verb = "sweep"
	VerbQuick     Verb = "quick"
	VerbFind      Verb = "find"
	VerbReport    Verb = "report"
	VerbMock      Verb = "mock"
	VerbPredict   Verb = "predict"
	VerbFit       Verb = "fit"
	VerbCalibrate Verb = "calibrate"
	VerbCompare   Verb = "compare"
	VerbCheck     Verb = "check"
	VerbExplain   Verb = "explain"

	VerbExperiment Verb = "experiment"
	VerbChoose     Verb = "choose"
	VerbWorker     Verb = "worker"
	VerbFleet      Verb = "fleet"
)

// Setting is one thing a user can set: a flag, a key in YAML and a PITOT_
// variable of the same name. All that is known of it stands in its entry of
// [Settings]: to add a setting is to add an entry, and the field that it sets.
type Setting struct {
	Name  string
	Verbs []Verb // that take it
	Group string
	Arg   string // placeholder of its value in the help, "" for a switch
	// Help is the text: a phrase, or a phrase and sentences, without the last full stop. Further
	// lines describe values: "cold: nothing".
	Help string

	Brief   string // a line of at most 60 characters; "" if Help is one
	Example string // a value to show, "" if the default or the placeholder is enough
	Common  bool   // shown on the first screen of the help, even of a verb with many settings

	Default string // its value where none is given, as a user would write it; "" for that of the field
	Unset   string // the help's description of the default, "" for Default

	Alternative *Alternative // the setting that says the same in another way
	Clashes     []Clash      // settings with which it has no meaning
	Unless      string       // condition in which it goes together with them all, "" for none
	Needs       []Need       // settings without which it has no meaning
	Targets     Targets      // the kinds of target that it is for
	OtherTarget string       // what to do where the target is of another kind, "" for the usual

	// KeyOnly marks a setting that has no flag of its own: it is a key of a config, a variable,
	// and on the command line --set KEY=VALUE.
	KeyOnly bool

	// OfTarget marks a setting of a simulated server: verbs that measure take it from the
	// target, after its question mark, with _ for -.
	OfTarget bool

	Noted   bool                  // run.json has it among its notes, under its name
	NotKept string                // why config.yaml leaves it out, "" if it does not
	Public  func(v string) Public // what of a value may be seen; nil: all of it

	// Lost names the parts of a stored value that were hidden and must be given
	// again. Nil where nothing is hidden.
	Lost func(v string) []string
	// Key returns the key that identifies a value of a list. Values of sources of lower precedence
	// stay if no higher source has their key. Key is nil where the source of the highest precedence
	// replaces the whole list.
	Key func(v string) string

	value
}

// Alternative is a setting that excludes another. Where both are set by different
// sources the one of higher precedence wins; set by the same source it is an error.
type Alternative struct{ To, Mistake, Hint string }

// Clash is a condition under which a setting has no meaning: that another setting is
// given (NAME), has a value (NAME=VALUE), or has a value with that key where it is a
// list of KEY=VALUE. The setting is ignored if it comes from a source of lower
// precedence, otherwise it is an error.
type Clash struct{ With, Hint string }

// Need is a condition that a setting requires: NAME, NAME=VALUE, or several separated
// by spaces of which one must hold.
type Need struct {
	AnyOf   string
	Hint    string
	Targets Targets // where it is needed
}

// Public is the part of a value that may be shown and stored.
type Public struct {
	Shown  string   // on the screen and in a stored command line
	Kept   string   // in config.yaml, "" for nothing
	Hidden []string // what was taken out, by name
}

// Targets are kinds of target.
type Targets uint8

// Kinds of target. The zero value stands for all.
const (
	AllTargets      Targets = iota
	EmbeddedTargets         // mock: and sim:
	MockTargets             // mock: alone, which has a socket
	SocketTargets           // all but sim:
	ServerTargets           // those that are not embedded
)

// ContainsKind says whether a kind of target, as [Target.Kind] gives it, is among them.
func (t Targets) ContainsKind(kind string) bool {
	switch t {
	case EmbeddedTargets:
		return kind != KindServer
	case MockTargets:
		return kind == KindMock
	case SocketTargets:
		return kind != KindSim
	case ServerTargets:
		return kind == KindServer
	}
	return true
}

// Args returns the arguments of a command line that give the setting a value.
func (s *Setting) Args(value string) []string {
	if s.KeyOnly {
		return []string{"--set", s.Name + "=" + value}
	}
	return []string{"--" + s.Name, value}
}

// Flag returns what the setting is called on the command line.
func (s *Setting) Flag() string {
	if s.KeyOnly {
		return "--set " + s.Name
	}
	return "--" + s.Name
}

// AppliesTo says whether a verb takes the setting.
func (s *Setting) AppliesTo(v Verb) bool { return slices.Contains(s.Verbs, v) }

// IsRepeatable says whether it may be given more than once.
func (s *Setting) IsRepeatable() bool { return s.isList() }

// DefaultDescription returns the help's description of the value where none is given, "" for
// nothing.
func (s *Setting) DefaultDescription() string {
	if s.Unset != "" {
		return s.Unset
	}
	return s.Default
}

// Summary returns one line about the setting.
func (s *Setting) Summary() string {
	text, _ := s.HelpParts()
	return cmp.Or(s.Brief, text)
}

// HelpText returns the help as one paragraph.
func (s *Setting) HelpText() string {
	text, values := s.HelpParts()
	for i, v := range values {
		text += []string{". ", "; "}[min(i, 1)] + v.Name + ": " + v.About
	}
	return text
}

// HelpParts returns the help as a text, and the values that it describes.
func (s *Setting) HelpParts() (text string, values []Choice) {
	text, rest, _ := strings.Cut(s.Help, "\n")
	for line := range strings.Lines(rest) {
		name, about, _ := strings.Cut(strings.TrimSpace(line), ": ")
		values = append(values, Choice{name, about})
	}
	return text, values
}

// ExampleValue returns a value to show in help and hints.
func (s *Setting) ExampleValue() string { return cmp.Or(s.Example, s.Default, s.Arg) }

// Variable returns the environment variable of the setting.
func (s *Setting) Variable() string { return envName(s.Name) }

// ShownValue gives a value as it may be shown.
func (s *Setting) ShownValue(v string) string {
	if s.Public == nil {
		return v
	}
	return s.Public(v).Shown
}

// setValues gives what is set, nothing where it is the default.
func (s *Setting) setValues(parts []any) []string {
	v := s.written(parts)
	if len(v) == 1 && v[0] == s.usual(s.Default) {
		return nil
	}
	return v
}

// shownValues gives the values as they may be shown.
func (s *Setting) shownValues(parts []any) (out []string) {
	for _, v := range s.setValues(parts) {
		out = append(out, s.ShownValue(v))
	}
	return out
}

// Choice is a value that a setting can have, for help and completion.
type Choice struct{ Name, About string }

// value reads and writes the field of the plan that a setting sets.
type value interface {
	parseInto(parts []any, v string) error
	written(parts []any) []string // as it would be written; nil for none
	usual(written string) string
	reset(parts []any, written string)
	isIn(parts []any) bool // its part is among these
	isList() bool

	// Choices are the values that can be named.
	Choices() []Choice
	// Paths says that a value names a file or directory.
	Paths() bool
}

// one is a field of part P that holds one value of type T.
type one[P, T any] struct {
	kind kind[T]
	at   func(*P) *T
}

// fieldValue makes the value of a setting that is in one field.
func fieldValue[P, T any](k kind[T], at func(*P) *T) value { return one[P, T]{k, at} }

func (f one[P, T]) fieldValue(parts []any) *T { return f.at(settingPart[P](parts)) }

func (f one[P, T]) parseInto(parts []any, v string) (err error) {
	x, err := f.kind.parse(v)
	if err == nil {
		*f.fieldValue(parts) = x
	}
	return err
}

func (f one[P, T]) written(parts []any) []string { return nonEmpty(f.kind.write(*f.fieldValue(parts))) }

func (f one[P, T]) usual(written string) string { return f.kind.write(f.initialValue(written)) }

func (f one[P, T]) reset(parts []any, written string) { *f.fieldValue(parts) = f.initialValue(written) }

// initialValue is the value by default.
func (f one[P, T]) initialValue(written string) (x T) {
	if written == "" {
		return x
	}
	x, err := f.kind.parse(written)
	if err != nil {
		panic(fmt.Sprintf("plan: the default %q is none: %v", written, err)) // a test reads all
	}
	return x
}

func (f one[P, T]) isIn(parts []any) bool { return findPart[P](parts) != nil }

func (f one[P, T]) isList() bool { return false }

// Choices implements value.
func (f one[P, T]) Choices() []Choice {
	if f.kind.choices == nil {
		return nil
	}
	return f.kind.choices()
}

// Paths implements value.
func (f one[P, T]) Paths() bool { return f.kind.paths }

// several is a field of part P that holds any number of values.
type several[P, T any] struct{ one[P, []T] }

// listValue makes the value of a setting that may be given more than once.
func listValue[P, T any](k kind[T], at func(*P) *[]T) value {
	return several[P, T]{one[P, []T]{kind[[]T]{
		parse: func(v string) ([]T, error) {
			x, err := k.parse(v)
			return []T{x}, err
		},
		choices: k.choices, paths: k.paths,
		write: func(x []T) string { return k.write(x[0]) },
	}, at}}
}

func (f several[P, T]) parseInto(parts []any, v string) error {
	x, err := f.kind.parse(v)
	if err == nil {
		at := f.fieldValue(parts)
		*at = append(*at, x...)
	}
	return err
}

func (f several[P, T]) written(parts []any) (out []string) {
	for _, x := range *f.fieldValue(parts) {
		out = append(out, f.kind.write([]T{x}))
	}
	return out
}

func (f several[P, T]) usual(string) string { return "" }

func (f several[P, T]) reset(parts []any, _ string) { *f.fieldValue(parts) = nil }

func (f several[P, T]) isList() bool { return true }

// settingPart finds the part of a plan that a setting is in. It panics if a verb lacks the part
// of one of its settings, which is a bug.
func settingPart[P any](parts []any) *P {
	p := findPart[P](parts)
	if p == nil {
		panic(fmt.Sprintf("plan: no %v among the parts of this verb", reflect.TypeFor[P]()))
	}
	return p
}

func findPart[P any](parts []any) *P {
	for _, x := range parts {
		if p, ok := x.(*P); ok {
			return p
		}
	}
	return nil
}

// settingsOf are the settings that a verb takes.
func settingsOf(v Verb) map[string]*Setting {
	known := map[string]*Setting{}
	for _, s := range Settings() {
		if s.AppliesTo(v) {
			known[s.Name] = &s
		}
	}
	return known
}

// nonEmpty is a list of one value, empty for the empty value.
func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}
