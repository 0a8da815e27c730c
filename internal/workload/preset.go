package workload

import (
	_ "embed"
	"encoding/json"
	"sync"

	"pitot/internal/say"
)

// Preset is a workload with a name: what is asked in a task that many have. Its
// numbers never change under their name, so that it means the same load everywhere. They are in
// presets.json.
type Preset struct {
	Name, About   string
	Input, Output string  // lengths, as ParseLengths reads them
	Correlation   float64 // Spearman's, of the two
	Prefix        int     // tokens in front of every prompt
	PrefixShare   float64 // of the requests, that have the same in front
	// Of conversations, whose first request Input and Output are about; "" where requests
	// stand alone: requests, tokens that each further one adds, and the pause before it, as
	// settings are written; and tokens of the system prompt that all share.
	Turns, TurnInput, Think string
	SubAgents               string // that the steps of its conversations start, "" for none
	System                  int
	// SLO is the objective that it is judged by where none is given, a preset's name as
	// --slo takes it; "" for none.
	SLO string
	// Arrivals describes the times in the data. It is zero where they are not known.
	Arrivals DataArrivals
	Stresses string // what of a server it is hardest on
	Source   string // where the numbers come from
	From     string // the same in a word or two
}

// DataArrivals describes the arrivals of public data. Nothing uses it to send requests: a preset's
// requests come as --arrival says.
type DataArrivals struct {
	Rate       float64    // requests/s
	Dispersion [3]float64 // of counts in 1, 10 and 60 s
	Law        string     // that is near it at that rate, as --arrival takes it
}

//go:embed presets.json
var presetsFile []byte

var presets = sync.OnceValue(func() (list []Preset) {
	if err := json.Unmarshal(presetsFile, &list); err != nil {
		panic("presets.json: " + err.Error())
	}
	return list
})

// Presets lists the presets, the one to begin with first. Quantiles are the values of that rank
// in the named data, of all its requests.
func Presets() []Preset { return presets() }

// PresetNamed gives the preset of that name.
func PresetNamed(name string) (Preset, bool) {
	for _, p := range Presets() {
		if p.Name == name {
			return p, true
		}
	}
	return Preset{}, false
}

// PresetNames lists their names.
func PresetNames() (names []string) {
	for _, p := range Presets() {
		names = append(names, p.Name)
	}
	return names
}

// UnknownPreset is the error for a name that no preset has.
func UnknownPreset(name string) error {
	if name == "matrix-f" { // the row of the matrix that nobody else can know
		return say.Errorf("row F of the matrix is your own production, and has no numbers here").WithHint("make a profile of your logs, pitot workload profile LOG… -o profile.yaml, and ask it with --workload profile.yaml")
	}
	return say.Errorf("unknown workload %.60q", name).WithHint(say.KnownHint(name, PresetNames()))
}
