package workload

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"pitot/internal/workload/arrival"
)

// Every preset can be asked; the means of those that are of public data are those of the
// data, within what eleven quantiles say of them.
func TestPresets(t *testing.T) {
	means := map[string][2]float64{ // of all requests of the data
		"chat":                {1155, 211},
		"code-completion":     {2048, 28},
		"rag":                 {2944 - 1024, 283},
		"summarization":       {2588, 291},
		"long-context":        {12035, 343},
		"tools-and-documents": {15325, 149},
		"reasoning":           {1268, 1527},
		"api-many-clients":    {914, 155},
	}
	seen := map[string]bool{}
	for _, p := range Presets() {
		in, out := lengths(t, p.Input), lengths(t, p.Output)
		if seen[p.Name] || p.About == "" || p.Stresses == "" || p.Source == "" || p.From == "" || in.String() != p.Input || out.String() != p.Output {
			t.Errorf("preset %+v", p)
		}
		seen[p.Name] = true
		if p.Turns != "" { // prompts stay below what servers of 131,072 tokens take
			think, err := ParsePause(p.Think)
			turns, later := lengths(t, p.Turns), lengths(t, p.TurnInput)
			if err != nil || think.String() != p.Think || later.String() != p.TurnInput {
				t.Errorf("preset %+v: %v", p, err)
			}
			if most := float64(p.System) + in.Mean() + float64(turns.Quantile(.9))*(later.Mean()+out.Mean()); most > 131_072 {
				t.Errorf("%s: nine of ten have up to %.0f tokens", p.Name, most)
			}
		}
		want, known := means[p.Name]
		if !known {
			continue
		}
		delete(means, p.Name)
		for i, l := range []Lengths{in, out} {
			if r := l.Mean() / want[i]; math.Abs(r-1) > 0.12 {
				t.Errorf("%s: mean %.0f, of the data %.0f", p.Name, l.Mean(), want[i])
			}
		}
	}
	if len(means) > 0 {
		t.Errorf("no presets: %v", means)
	}
}

// The file of presets has no key that [Preset] lacks.
func TestPresetKeys(t *testing.T) {
	in := json.NewDecoder(bytes.NewReader(presetsFile))
	in.DisallowUnknownFields()
	if err := in.Decode(&[]Preset{}); err != nil {
		t.Error(err)
	}
}

// The law beside a preset's data has about the dispersion of the data, at its rate.
func TestPresetArrivals(t *testing.T) {
	n := 0
	for _, p := range Presets() {
		if a := p.Arrivals; a.Law != "" {
			n++
			law, err := arrival.ParseLaw(a.Law, arrival.Files{})
			if err != nil {
				t.Fatal(err)
			}
			for i, got := range law.ExpectedAt(a.Rate).Dispersion {
				if r := got / a.Dispersion[i]; !(r > .85 && r < 1.15) {
					t.Errorf("%s: dispersion %.2f of %s, the data has %.2f", p.Name, got, a.Law, a.Dispersion[i])
				}
			}
		}
	}
	if n < 2 {
		t.Errorf("%d presets with arrivals", n)
	}
}
