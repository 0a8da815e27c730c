package main

import (
	"cmp"
	"fmt"
	"maps"
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

// covered is the share of a new system's loads that the errors to expect are to
// hold on.
const covered = 0.8

// writeErrors works out the errors to expect of each regime from the systems
// that constants were chosen on, and says on how many of the loads of those kept
// out they hold; where all of a regime's systems are kept out, or none, it says so.
func writeErrors(path string, list []comparison) error {
	var known []catalogue.Regime
	for _, r := range regimes {
		chosen, kept := map[string][]*comparison{}, []*comparison(nil)
		for i := range list {
			b := &list[i]
			if b.engine != "vllm" || strings.Contains(b.kind(), "unexplained") || !slices.Contains(r.Accelerators, b.accelerator) || r.Experts != (b.kind() == "MoE") || r.MXFP4 != strings.Contains(b.model, "gpt-oss") {
				continue
			}
			r.Rows++
			if held(b.system()) {
				kept = append(kept, b)
				continue
			}
			chosen[b.system()] = append(chosen[b.system()], b)
		}
		systems := map[string]bool{}
		for _, b := range kept {
			systems[b.system()] = true
		}
		r.Systems, r.Kept = len(chosen)+len(systems), len(kept)
		if r.Rows < 30 || len(chosen) == 0 {
			continue
		}
		of := func(each func(*comparison) float64) (limitPct, holds float64) {
			var errors [][]float64
			for _, name := range slices.Sorted(maps.Keys(chosen)) {
				var e []float64
				for _, b := range chosen[name] {
					e = append(e, math.Abs(math.Log1p(each(b))))
				}
				errors = append(errors, e)
			}
			limit := math.Ceil(100 * math.Expm1(expected(errors)))
			n := 0
			for _, b := range kept {
				if math.Abs(math.Log1p(each(b))) <= math.Log1p(limit/100) {
					n++
				}
			}
			return limit, math.Round(100 * float64(n) / float64(max(len(kept), 1)))
		}
		r.TPOT, r.TPOTHolds = of(func(b *comparison) float64 { return b.tpotError })
		r.TTFT, r.TTFTHolds = of(func(b *comparison) float64 { return b.ttftError })
		fmt.Printf("%s: TPOT ±%.0f %%, holds on %.0f %% of those kept out; TTFT ±%.0f %%, on %.0f %%; %d loads of %d systems, %d kept out\n", r.Name, r.TPOT, r.TPOTHolds, r.TTFT, r.TTFTHolds, r.Rows, r.Systems, r.Kept)
		known = append(known, r)
	}
	b, err := yaml.Marshal(known)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append([]byte(`# Errors of the unfitted twin, by go run ./bench/silicon -errors FILE compare DIR:
# what 80 % of the public measurements of a system of vLLM stay within that is not
# among those that constants were chosen on.

`), b...), 0o644)
}

// expected is the error, of the logarithm, that a further system's loads stay
// within four times of five. The systems are the sample, each with the same
// weight, and not their loads, whose neighbours are like them; with k of them, and
// the next one more, the quantile is that of (1 + 1/k) times the level (Dunn,
// Wasserman and Ramdas, "Distribution-free prediction sets for two-layer
// hierarchical models", JASA 2023).
func expected(systems [][]float64) float64 {
	return quantile(systems, covered*(1+1/float64(len(systems))))
}

// quantile is that of the errors of all systems, each system of the same weight;
// beyond the largest there is none.
func quantile(systems [][]float64, level float64) float64 {
	type weighted struct{ v, w float64 }
	var all []weighted
	for _, e := range systems {
		for _, v := range e {
			all = append(all, weighted{v, 1 / float64(len(e)*len(systems))})
		}
	}
	slices.SortFunc(all, func(a, b weighted) int { return cmp.Compare(a.v, b.v) })
	sum := 0.0
	for _, x := range all {
		if sum += x.w; sum >= level-1e-9 {
			return x.v
		}
	}
	return all[len(all)-1].v
}
