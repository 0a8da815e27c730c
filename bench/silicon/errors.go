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

// shrunk is how many systems all of a kind count beside a regime's own.
const shrunk = 4

// of says that a load is of a regime's kind, on whatever accelerator.
func (b *comparison) of(r *catalogue.Regime) bool {
	return b.engine == "vllm" && !strings.Contains(b.kind(), "unexplained") && r.Experts == (b.kind() == "MoE") && r.MXFP4 == strings.Contains(b.model, "gpt-oss")
}

// limit is the error to expect of a regime, in percent: that of its systems but
// the one left out, shrunk towards that of all of their kind, for few systems tell
// little. 0 where the regime has none.
func limit(list []comparison, r *catalogue.Regime, out string, each func(*comparison) float64) float64 {
	own, all := map[string][]float64{}, map[string][]float64{}
	for i := range list {
		b := &list[i]
		name := b.system()
		if !b.of(r) || name == out {
			continue
		}
		e := math.Abs(math.Log1p(each(b)))
		all[name] = append(all[name], e)
		if slices.Contains(r.Accelerators, b.accelerator) {
			own[name] = append(own[name], e)
		}
	}
	if len(own) == 0 {
		return 0
	}
	errors := func(of map[string][]float64) (list [][]float64) {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			list = append(list, of[name])
		}
		return list
	}
	k := float64(len(own))
	return math.Ceil(100 * math.Expm1((k*expected(errors(own))+shrunk*expected(errors(all)))/(k+shrunk)))
}

// writeErrors works out the errors to expect of each regime from all of its
// systems, and says on how many of the loads of those that were kept out of every
// choice of a constant they would have held, each of these systems left out of them.
func writeErrors(path string, list []comparison) error {
	var known []catalogue.Regime
	for _, r := range regimes {
		systems := map[string]bool{}
		var kept []*comparison
		for i := range list {
			b := &list[i]
			if !b.of(&r) || !slices.Contains(r.Accelerators, b.accelerator) {
				continue
			}
			r.Rows++
			systems[b.system()] = true
			if held(b.system()) {
				kept = append(kept, b)
			}
		}
		r.Systems, r.Kept = len(systems), len(kept)
		if r.Rows < 30 {
			continue
		}
		of := func(each func(*comparison) float64) (limitPct, holds float64) {
			without := map[string]float64{}
			n := 0
			for _, b := range kept {
				name := b.system()
				if _, ok := without[name]; !ok {
					without[name] = limit(list, &r, name, each)
				}
				if math.Abs(math.Log1p(each(b))) <= math.Log1p(without[name]/100) {
					n++
				}
			}
			return limit(list, &r, "", each), math.Round(100 * float64(n) / float64(max(len(kept), 1)))
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
# what 80 % of public measurements of a further system of vLLM stay within.

`), b...), 0o644)
}

// expected is the error, of the logarithm, that a further system's loads stay
// within four times of five. The systems are the sample, each with the same
// weight, and not their loads, whose neighbours are like them. With k of them the
// quantile is that of (1 + 1/4k) times the level, which holds on 80 to 84 % of the
// loads of a further system in simulations (TestExpectedHolds); 1 + 1/k, which is
// never too low (Dunn, Wasserman and Ramdas, JASA 2023), holds on up to 95 %.
func expected(systems [][]float64) float64 {
	return quantile(systems, covered*(1+0.25/float64(len(systems))))
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
