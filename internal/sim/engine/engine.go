// Package engine says what an inference engine is to Pitot, as a table: what its settings
// are called, how it starts, which scheduler it runs, which command starts a server of it,
// what its metrics are called, and how its API server speaks. Each engine is a package
// below this one with one [Kind]; package engines lists them.
package engine

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"pitot/internal/sim"
	"pitot/internal/sim/serve/dialect"
	"pitot/internal/telemetry"
)

// Kind is an engine. Its name and the scheduler are all that a twin of it needs; what else
// is left out is as it is of an engine that has nothing of the kind.
//
// vLLM's names of settings are the vocabulary: code that is of every engine goes by them,
// and [Kind.SettingName] has the engine's own.
type Kind struct {
	Name  string // as settings, plans and servers have it: "sglang"
	Title string // as people write it: "SGLang"
	Model string // the version whose behaviour is modelled, "" as Title

	// Settings are those that vLLM has none like, or calls otherwise.
	Settings []Setting
	// Lacks are settings of the vocabulary that the engine has nothing like.
	Lacks []string
	// Unmodelled holds the engine's names of settings that the engine has and its twin lacks.
	Unmodelled map[string]string
	// Values is, of settings, what the engine calls values.
	Values map[string]map[string]string
	// Own are the defaults of settings that the engine alone has, as a value of a type of
	// its own that is copied with a deployment; nil where there are none.
	Own any

	Scheduler
	Server
	Launch
	Wording
}

// Scheduler holds the functions by which the twin of an engine starts and decides. Settings without
// New belong to no twin on hardware.
type Scheduler struct {
	// Complete works out what was left open as the engine does when it starts: memory,
	// limits of the batch. Its errors are the user's.
	Complete func(c *Config, h *Host) error
	// New makes an engine whose steps take what cost says.
	New func(c *Config, seed uint64, cost sim.Cost) sim.Model
	// Lockstep makes engines that New made take their steps together, and returns the
	// count of steps; nil where that is not modelled.
	Lockstep func(engines []sim.Model, cost func([]*sim.Batch) time.Duration) func() int64
	// Facts adds to what the record of a run says of the settings, which has the engine's
	// names already.
	Facts func(c *Config, to map[string]string)
	// Latencies makes an engine that runs on no hardware and has the times it is given.
	Latencies func(c sim.FixedConfig) sim.Engine

	Pools    bool // prefill and decode in engines of their own are modelled
	Hybrid   bool // layers that do not keep all tokens are modelled
	Profiles bool // it keeps the memory of activations free, as a profiling run finds it
	Held     bool // its times were held against running servers
	// SeatsInBudget says that requests that run are at most the tokens of a step.
	SeatsInBudget bool
	// Knobs are settings of its own that may relieve a cause.
	Knobs []Knob
}

// Knob is a setting that may relieve a cause, without making another model of it.
type Knob struct {
	Name     string
	Relieves []string // causes, as analysis/explain has them
	From     string   // the engine's default
	To       []string // values to try where the setting is not given
}

// Server describes the API server of an engine.
type Server struct {
	// Metrics are its names of signals.
	Metrics telemetry.Source
	// VersionPath is the route that tells its version, SettingsPath the one that tells its
	// settings; SettingsSeries is the metric whose labels tell some. "" where there is none.
	VersionPath, SettingsPath, SettingsSeries string
	// Face is the API of the server; without Open it is vLLM's.
	Face Face
}

// Face is a way of speaking that a server may have.
type Face struct {
	Name  string // where it is of no engine
	About string // what it has that others have not, as help says it behind the name
	Open  func(dialect.Served) dialect.Dialect
	// APIs are those that are first its own, by the names that clients have for them, as
	// far as these generate.
	APIs []string
}

// Launch holds the commands that start a server.
type Launch struct {
	// Command starts a server of a model.
	Command func(model string) []string
	// TensorParallel and DataParallel are its settings for these, "" as vLLM's.
	TensorParallel, DataParallel string
	// Image is that of its container.
	Image string
	// OnlyTrue says that switches have no form for false: they are given, or not.
	OnlyTrue bool
	// Flags are the names of all settings that a server takes, separated by spaces, with
	// comments after #; AllFlags says that it takes no others.
	Flags    string
	AllFlags bool
	// Starts are words by which a command is known to start it, in lower case.
	Starts []string
	// Logged is a regular expression for what its log says of the settings when it starts.
	Logged string
	// Shares says that a server shares requests out to several engines on its machine.
	Shares bool
	// Router is the program in front of several servers, and its package at PyPI;
	// RouterSessions says that it can go by the name of a conversation. Without one it is
	// vLLM's.
	Router         []string
	RouterPackage  string
	RouterSessions bool
}

// Wording holds the engine's own words for the vLLM names that explanations use: pairs of a vLLM
// name and its own.
type Wording []string

// Setting is a setting that an engine alone has, or calls otherwise.
type Setting struct {
	Name string
	// Like is the setting of the vocabulary that does the same, "" where none does;
	// Opposite says that it is true where that is false.
	Like     string
	Opposite bool
	// Field is what it sets, as [Assign] takes it.
	Field func(c *Config) any
	// After is the setting that it follows in help, "" for the end.
	After string
}

// Config holds the settings that an engine is started with.
type Config struct {
	Settings sim.Settings
	Own      any // settings that the engine alone has, a value of its own type
	// MemoryUtilization is the share of an accelerator's memory that the server may use.
	MemoryUtilization float64
	// CaptureSize is that of the largest CUDA graph in tokens; 0 is open.
	CaptureSize int
}

// Open stands in settings that [Scheduler.Complete] is to find a value for.
const Open = -1

// Auto is max_model_len as vLLM's -1: what the KV cache holds. Left out, it is
// what the model can take, and vLLM does not start where that does not fit.
const Auto = -1

// Host is where an engine starts.
type Host struct {
	Accelerator    string
	MemoryGiB      float64 // of an accelerator
	TensorParallel int
	Model          string
	MaxPosition    int                // tokens that the model can take
	Given          func(string) bool  // whether a setting was given
	Fit            func() error       // works out the KV blocks and the longest context of what the memory holds
	Note           func(notef string) // tells the user
}

// FullName returns the engine as people write it, with the version that is modelled.
func (k *Kind) FullName() string {
	if k.Model != "" {
		return k.Model
	}
	return k.Title
}

// OwnSetting returns the engine's own setting of a name.
func (k *Kind) OwnSetting(name string) (*Setting, bool) {
	if i := slices.IndexFunc(k.Settings, func(s Setting) bool { return s.Name == name }); i >= 0 {
		return &k.Settings[i], true
	}
	return nil, false
}

// similarSetting returns the engine's own setting that does what one of the vocabulary does.
func (k *Kind) similarSetting(name string) (*Setting, bool) {
	if i := slices.IndexFunc(k.Settings, func(s Setting) bool { return s.Like == name }); i >= 0 && name != "" {
		return &k.Settings[i], true
	}
	return nil, false
}

// SettingName returns the engine's name of a setting of the vocabulary, "" where it has none.
func (k *Kind) SettingName(name string) string {
	if s, ok := k.similarSetting(name); ok {
		return s.Name
	}
	if slices.Contains(k.Lacks, name) {
		return ""
	}
	return name
}

// Knob returns the name of a server's setting that does what one of the vocabulary does,
// whether or not it is modelled; "" where there is none.
func (k *Kind) Knob(name string) string {
	if own, ok := k.Unmodelled[name]; ok {
		return own
	}
	return k.SettingName(name)
}

// KnobValue returns what the engine calls a value of a setting of the vocabulary.
func (k *Kind) KnobValue(name, value string) string {
	if s, ok := k.similarSetting(name); ok && s.Opposite {
		return strconv.FormatBool(value != "true")
	}
	if own, ok := k.Values[name][value]; ok {
		return own
	}
	return value
}

// Words returns a text that has vLLM's names with the engine's own.
func (k *Kind) Words(text string) string { return strings.NewReplacer(k.Wording...).Replace(text) }

// FlagNames are the settings that a server is known to take, nil where they are not known.
func (k *Kind) FlagNames() (names []string) {
	for line := range strings.Lines(k.Flags) {
		if !strings.HasPrefix(line, "#") {
			names = append(names, strings.Fields(line)...)
		}
	}
	return names
}
