package predict

import (
	"pitot/internal/sim/catalogue"
	"pitot/internal/sim/deploy"
)

// KnownSchema is the schema of what is known, as JSON.
const KnownSchema = "pitot.catalogue/v1"

// Known holds the names that a deployment can be put together from.
type Known struct {
	Schema       string             `json:"schema"`
	Models       []KnownModel       `json:"models"`
	Accelerators []KnownAccelerator `json:"accelerators"`
	Settings     []string           `json:"settings"` // of the engine, behind a question mark
}

// KnownModel is a model of the catalogue.
type KnownModel struct {
	Name       string   `json:"name"`
	Aliases    []string `json:"aliases,omitempty"`
	Repository string   `json:"repository"` // on the Hugging Face hub
	Parameters int64    `json:"parameters"`
	Active     int64    `json:"active_parameters"` // for one token
	Context    int      `json:"max_position"`      // tokens
	DType      string   `json:"dtype"`             // of the published weights
}

// KnownAccelerator is an accelerator of the catalogue, as its datasheet says.
type KnownAccelerator struct {
	Name         string             `json:"name"`
	Aliases      []string           `json:"aliases,omitempty"`
	MemoryGiB    float64            `json:"memory_gib"`
	BandwidthGBs float64            `json:"bandwidth_gb_per_s"`
	TFLOPS       map[string]float64 `json:"tflops"` // dense, by data type
	USDPerHour   float64            `json:"usd_per_hour"`
}

// AllKnown lists the catalogue.
func AllKnown() *Known {
	k := &Known{Schema: KnownSchema, Settings: deploy.SettingNames()}
	for _, m := range catalogue.Models() {
		k.Models = append(k.Models, KnownModel{m.Name, m.Aliases, m.HF, m.Parameters, m.ActiveWeights(), m.MaxPosition, m.DType})
	}
	for _, a := range catalogue.Accelerators() {
		k.Accelerators = append(k.Accelerators, KnownAccelerator{a.Name, a.Aliases, a.MemoryGiB, a.BandwidthGBs, a.TFLOPS, a.USDPerHour})
	}
	return k
}
