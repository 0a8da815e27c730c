package main

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"pitot/internal/sim/catalogue"
)

// regimes are the kinds of systems that an error is expected of: what they have in
// common is the generation of the accelerator, whether the model has experts, whether
// those are in MXFP4, and whether steps are planned one after the other.
func regimes() (list []catalogue.Regime) {
	for _, serial := range []bool{false, true} {
		for _, kind := range []catalogue.Regime{{Name: "dense models"}, {Name: "mixtures of experts", Experts: true}, {Name: "mixtures of MXFP4 experts", Experts: true, MXFP4: true}} {
			for _, on := range []struct {
				name         string
				accelerators []string
			}{{"Hopper", []string{"h100", "h200"}}, {"Blackwell", []string{"b200", "b300", "gb200", "gb300"}}} {
				r := kind
				r.Name, r.Accelerators, r.Serial = r.Name+" on "+on.name, on.accelerators, serial
				if serial {
					r.Name += " with async_scheduling off"
				}
				list = append(list, r)
			}
		}
	}
	return list
}

// covered is the share of a new system's loads that the errors to expect are to
// hold on.
const covered = 0.8

// shrunk is how many systems all of a kind count beside a regime's own.
const shrunk = 4

// tells says that a load tells something of a regime. Systems that plan their steps one
// after the other are an old version of vLLM with kernels of its own: others tell of
// them, they do not tell of others.
func (b *comparison) tells(r *catalogue.Regime) bool {
	return b.engine == "vllm" && (r.Serial || !b.serial()) && !strings.Contains(b.kind(), "unexplained")
}

// kin says that it is besides of a regime's kind of model, on whatever accelerator.
func (b *comparison) kin(r *catalogue.Regime) bool {
	return b.tells(r) && r.Experts == (b.kind() == "MoE") && r.MXFP4 == strings.Contains(b.model, "gpt-oss")
}

// of says that a load is of a regime.
func (b *comparison) of(r *catalogue.Regime) bool {
	return b.kin(r) && r.Serial == b.serial() && slices.Contains(r.Accelerators, b.accelerator)
}

// limit is the error to expect of a regime, of the logarithm, by those systems that
// constants were chosen on that are known. Where there are enough of the
// regime's own, it is theirs, shrunk towards that of all of their kind. Fewer cannot tell how
// far off a further one may be, nor whether it is like others of their kind: it is then that of
// all systems, or what their own loads are within where that is more. 0 where none is left.
func limit(list []comparison, r *catalogue.Regime, known func(system string) bool, each func(*comparison) float64) float64 {
	errors := func(wanted func(*comparison) bool) (systems [][]float64) {
		of := map[string][]float64{}
		for i := range list {
			b := &list[i]
			if name := b.system(); wanted(b) && known(name) && !held(name) {
				of[name] = append(of[name], math.Abs(math.Log1p(each(b))))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(of)) {
			systems = append(systems, of[name])
		}
		return systems
	}
	own := errors(func(b *comparison) bool { return b.of(r) })
	all := errors(func(b *comparison) bool { return b.tells(r) })
	switch k := float64(len(own)); {
	case len(all) == 0:
		return 0
	case k == 0:
		return expected(all, len(all))
	case k < catalogue.EnoughSystems:
		return max(quantile(own, covered), expected(all, len(all)))
	default: // which rests on those too that it is shrunk towards
		kin := errors(func(b *comparison) bool { return b.kin(r) })
		return (k*expected(own, len(own)+shrunk) + shrunk*expected(kin, len(kin))) / (k + shrunk)
	}
}

// few says on how many percent of the loads of a regime's other systems an error holds where
// the systems that constants were chosen on are all known but for those of the regime, of
// which each n are known in turn; ok is false where there are no others.
func few(list []comparison, r *catalogue.Regime, n int, each func(*comparison) float64) (pct float64, ok bool) {
	var names []string
	for i := range list {
		if b := &list[i]; b.of(r) && !held(b.system()) && !slices.Contains(names, b.system()) {
			names = append(names, b.system())
		}
	}
	slices.Sort(names)
	shares, of := 0.0, 0.0
	for known := range combinations(names, n) {
		most := limit(list, r, func(s string) bool { return !slices.Contains(names, s) || slices.Contains(known, s) }, each)
		others := map[string]*tally{}
		for i := range list {
			b := &list[i]
			name := b.system()
			if !b.of(r) || held(name) || slices.Contains(known, name) {
				continue
			}
			if others[name] == nil {
				others[name] = &tally{}
			}
			others[name].count(math.Abs(math.Log1p(each(b))) <= most)
		}
		for _, name := range slices.Sorted(maps.Keys(others)) {
			shares, of = shares+100*float64(others[name].held)/float64(others[name].of), of+1
		}
	}
	return shares / of, of > 0
}

// combinations are all choices of n names.
func combinations(names []string, n int) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		var choose func(from int, chosen []string) bool
		choose = func(from int, chosen []string) bool {
			if len(chosen) == n {
				return yield(chosen)
			}
			for i := from; i < len(names); i++ {
				if !choose(i+1, append(slices.Clip(chosen), names[i])) {
					return false
				}
			}
			return true
		}
		choose(0, nil)
	}
}

// tally counts on how many loads an error holds.
type tally struct{ held, of int }

func (s *tally) count(holds bool) {
	s.of++
	if holds {
		s.held++
	}
}

func (s tally) pct() float64 { return math.Round(100 * float64(s.held) / float64(max(s.of, 1))) }

// writeErrors works out the errors to expect of each regime from the systems that
// constants were chosen on, prints on how many of their loads such errors hold if the
// system is left out, and says the same of those that were kept out of every choice.
func writeErrors(path string, list []comparison) error {
	var known []catalogue.Regime
	left, kept := map[string]*tally{}, map[string]*tally{}
	each := map[string][]float64{} // percent of the loads of a system, by latency and kind
	for _, r := range regimes() {
		systems := map[string]bool{}
		for i := range list {
			b := &list[i]
			if !b.of(&r) {
				continue
			}
			if held(b.system()) {
				r.Kept++
				continue
			}
			r.Rows++
			systems[b.system()] = true
		}
		r.Systems = len(systems)
		if r.Rows < 15 {
			continue
		}
		hold := func(latency string, of func(*comparison) float64) (limitPct, holds float64) {
			key := fmt.Sprintf("%s, experts: %v", latency, r.Experts)
			if left[key] == nil {
				left[key], kept[key] = &tally{}, &tally{}
			}
			limitPct = math.Ceil(100 * math.Expm1(limit(list, &r, func(string) bool { return true }, of)))
			without, alone := map[string]float64{}, map[string]*tally{}
			for name := range systems {
				without[name], alone[name] = limit(list, &r, func(s string) bool { return s != name }, of), &tally{}
			}
			var here tally
			for i := range list {
				b := &list[i]
				e := math.Abs(math.Log1p(of(b)))
				switch name := b.system(); {
				case !b.of(&r):
				case held(name):
					here.count(e <= math.Log1p(limitPct/100))
					kept[key].count(e <= math.Log1p(limitPct/100))
				default:
					left[key].count(e <= without[name])
					alone[name].count(e <= without[name])
				}
			}
			for _, t := range alone {
				each[key] = append(each[key], t.pct())
			}
			return limitPct, here.pct()
		}
		r.TPOT, r.TPOTHolds = hold("TPOT", func(b *comparison) float64 { return b.tpotError })
		r.TTFT, r.TTFTHolds = hold("TTFT", func(b *comparison) float64 { return b.ttftError })
		fmt.Printf("%s: TPOT ±%.0f %%, TTFT ±%.0f %%, of %d loads of %d systems; of %d kept out they hold on %.0f and %.0f %%\n", r.Name, r.TPOT, r.TTFT, r.Rows, r.Systems, r.Kept, r.TPOTHolds, r.TTFTHolds)
		known = append(known, r)
	}
	for _, key := range slices.Sorted(maps.Keys(left)) {
		fmt.Printf("%s: each left out of it, an error holds on %.0f %% of the loads chosen on (of those of single systems %.0f to %.0f %%, %.0f in the mean of %d); on %.0f %% of the %d kept out\n",
			key, left[key].pct(), slices.Min(each[key]), slices.Max(each[key]), average(each[key]), len(each[key]), kept[key].pct(), kept[key].of)
	}
	for _, latency := range []struct {
		name string
		of   func(*comparison) float64
	}{{"TPOT", func(b *comparison) float64 { return b.tpotError }}, {"TTFT", func(b *comparison) float64 { return b.ttftError }}} {
		for n := 2; n < catalogue.EnoughSystems; n++ {
			var shares []float64
			for _, r := range known {
				if pct, ok := few(list, &r, n, latency.of); ok {
					shares = append(shares, pct)
				}
			}
			if len(shares) > 0 {
				fmt.Printf("%s, of a group's systems chosen on %d known: an error holds on %.0f to %.0f %% of the loads of its others, by group; %.0f in the mean of %d\n", latency.name, n, slices.Min(shares), slices.Max(shares), average(shares), len(shares))
			}
		}
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
// weight, and not their loads, whose neighbours are like them. Where k of them tell, the
// quantile is that of (1 + 1/2k) times the level, which holds on 80 to 88 % of the
// loads of a further system in simulations (TestExpectedHolds); 1 + 1/k, which is
// never too low (Dunn, Wasserman and Ramdas, JASA 2023), holds on up to 95 %.
func expected(systems [][]float64, k int) float64 {
	return quantile(systems, min(covered*(1+0.5/float64(k)), 1))
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
