package catalogue

import (
	_ "embed"
	"slices"
	"sync"
)

// Regime is a kind of system, and how far the unfitted twin was from public
// measurements of it: percent that 80 % of them stay within, in TPOT and in TTFT.
type Regime struct {
	Name         string   `yaml:"name"`
	Accelerators []string `yaml:"accelerators,flow"`
	Experts      bool     `yaml:"experts"`
	MXFP4        bool     `yaml:"mxfp4"`  // its experts are in it
	Serial       bool     `yaml:"serial"` // its steps are planned one after the other: async_scheduling is off

	TPOT    float64 `yaml:"tpot_pct"`
	TTFT    float64 `yaml:"ttft_pct"`
	Systems int     `yaml:"systems"` // model, data type, accelerator, tensor parallelism
	Rows    int     `yaml:"rows"`    // measurements of them
	// Kept is the number of further systems. They were kept out of every choice of a constant and
	// of the errors. TPOTHolds and TTFTHolds are the percentages of those systems for which the
	// errors hold.
	Kept      int     `yaml:"kept_out"`
	TPOTHolds float64 `yaml:"tpot_holds_pct"`
	TTFTHolds float64 `yaml:"ttft_holds_pct"`
}

// EnoughSystems is the number of systems that suffice to bound the error of a further one in four
// cases of five. Of fewer systems the bound is beyond the furthest, the order statistic of place
// ⌈0.8·(n+1)⌉ of n. A regime with fewer has the errors of systems of all kinds, or its own where
// these are more.
const EnoughSystems = 4

//go:embed errors.yaml
var errorFile []byte

// Regimes gives all that were measured.
var Regimes = sync.OnceValue(func() []Regime { return parseTable[Regime](errorFile) })

// RegimeOf gives that of an accelerator, a model and a way to plan steps, false where no
// such system was measured.
func RegimeOf(accelerator string, m *Model, serial bool) (Regime, bool) {
	for _, r := range Regimes() {
		if slices.Contains(r.Accelerators, accelerator) && r.Experts == (m.Experts > 0) && r.MXFP4 == (m.ExpertDType == "mxfp4") && r.Serial == serial {
			return r, true
		}
	}
	return Regime{}, false
}
