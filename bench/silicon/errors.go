package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"pitot/internal/twin/catalogue"
)

// regimes are the kinds of systems that an error is expected of: what they
// have in common is the generation of the accelerator, whether the model has
// experts, and whether those are in MXFP4.
var regimes = []catalogue.Regime{
	{Name: "dense models on Hopper", Accelerators: []string{"h100", "h200"}},
	{Name: "dense models on Blackwell", Accelerators: []string{"b200", "b300", "gb200", "gb300"}},
	{Name: "mixtures of experts on Hopper", Accelerators: []string{"h100", "h200"}, Experts: true},
	{Name: "mixtures of experts on Blackwell", Accelerators: []string{"b200", "b300", "gb200", "gb300"}, Experts: true},
	{Name: "mixtures of MXFP4 experts on Hopper", Accelerators: []string{"h100", "h200"}, Experts: true, MXFP4: true},
	{Name: "mixtures of MXFP4 experts on Blackwell", Accelerators: []string{"b200", "b300", "gb200", "gb300"}, Experts: true, MXFP4: true},
}

// writeErrors works out the error that 80 % of the rows stay within: of the
// systems that constants were chosen on, and somewhat more. On how many of those kept out it holds
// stands next to it; where a kind of system has none but those kept out, they are
// all there is, and it says so.
func writeErrors(path string, list []comparison) error {
	var known []catalogue.Regime
	for _, r := range regimes {
		var chosen, kept [2][]float64
		systems := map[string]bool{}
		for i := range list {
			b := &list[i]
			if b.engine != "vllm" || strings.Contains(b.kind(), "unexplained") || !slices.Contains(r.Accelerators, b.accelerator) || r.Experts != (b.kind() == "MoE") || r.MXFP4 != strings.Contains(b.model, "gpt-oss") {
				continue
			}
			systems[b.system()] = true
			to := &chosen
			if held(b.system()) {
				to = &kept
			}
			to[0] = append(to[0], math.Abs(b.tpotError))
			to[1] = append(to[1], math.Abs(b.ttftError))
		}
		r.Systems, r.Rows, r.Kept = len(systems), len(chosen[0])+len(kept[0]), len(kept[0])
		if r.Rows < 30 {
			continue
		}
		within := func(chosen, kept []float64) (limitPct, holds float64) {
			if len(chosen) == 0 {
				chosen = kept
			}
			slices.Sort(chosen)
			// Systems are the sample, not rows, and few: 1/√n of a spread is not known.
			limit := chosen[(len(chosen)*4+4)/5-1] * (1 + 1/math.Sqrt(float64(len(systems))))
			n := 0
			for _, e := range kept {
				if e <= limit {
					n++
				}
			}
			return math.Ceil(100 * limit), math.Round(100 * float64(n) / float64(max(len(kept), 1)))
		}
		r.TPOT, r.TPOTHolds = within(chosen[0], kept[0])
		r.TTFT, r.TTFTHolds = within(chosen[1], kept[1])
		fmt.Printf("%s: TPOT ±%.0f %%, holds on %.0f %% of those kept out; TTFT ±%.0f %%, on %.0f %%; %d rows of %d systems\n", r.Name, r.TPOT, r.TPOTHolds, r.TTFT, r.TTFTHolds, r.Rows, r.Systems)
		known = append(known, r)
	}
	b, err := yaml.Marshal(known)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append([]byte(`# Errors of the unfitted twin, by go run ./bench/silicon -errors FILE compare DIR:
# what 80 % of public measurements of vLLM stay within.

`), b...), 0o644)
}
