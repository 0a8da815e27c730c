package main

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"pitot/internal/sim/catalogue"
	"pitot/internal/stats"
)

// Does the twin put deployments in the order in which they were measured? Two systems of
// one model under the same requests are compared by what a GPU gives where users get
// equally much: tokens per second and GPU at the same tokens per second and user.

// frontier is a system's measured and predicted curve, over the logarithm of what a user
// gets; the loads that both have.
type frontier struct {
	system, accelerator, model string
	held                       bool
	measured, twin             []place
	// plain orders systems without a twin: logarithms of the bandwidth of all their GPUs, and
	// of how many times a second it reads the weights.
	plain [2]float64
}

// place is a load: logarithms of tokens/s and user, and of tokens/s and GPU.
type place struct{ user, gpu float64 }

// frontiers are the systems' curves by model and lengths.
func frontiers(list []comparison) map[string][]*frontier {
	groups := map[string]map[string]*frontier{}
	for i := range list {
		b := &list[i]
		if b.output < 2 || b.tpot <= 0 || b.ttft <= 0 {
			continue
		}
		model := b.model[strings.LastIndex(b.model, "/")+1:]
		model = strings.NewReplacer("-NVFP4", "", "-FP8", "", "-Instruct", "").Replace(model)
		key := fmt.Sprintf("%s %d/%d", model, b.input, b.output)
		if groups[key] == nil {
			groups[key] = map[string]*frontier{}
		}
		f := groups[key][b.system()]
		if f == nil {
			f = &frontier{system: b.system(), accelerator: b.accelerator, model: model, held: held(b.system()), plain: plainly(b)}
			groups[key][b.system()] = f
		}
		at := func(ttft, tpot float64) place {
			seconds := (ttft + tpot*float64(b.output-1)) / 1e3
			return place{math.Log(1e3 / tpot), math.Log(float64(b.users*b.output) / seconds / float64(b.tp))}
		}
		f.measured = append(f.measured, at(b.ttft, b.tpot))
		f.twin = append(f.twin, at(b.ttft*(1+b.ttftError), b.tpot*(1+b.tpotError)))
	}
	out := map[string][]*frontier{}
	for key, g := range groups {
		for _, f := range g {
			for _, c := range [][]place{f.measured, f.twin} {
				slices.SortFunc(c, func(a, b place) int { return cmp.Compare(a.user, b.user) })
			}
			if len(f.measured) > 1 {
				out[key] = append(out[key], f)
			}
		}
		slices.SortFunc(out[key], func(a, b *frontier) int { return cmp.Compare(a.system, b.system) })
	}
	return out
}

// plainly is what the datasheet alone says of a system.
func plainly(b *comparison) [2]float64 {
	a, err := catalogue.FindAccelerator(b.accelerator)
	if err != nil {
		return [2]float64{}
	}
	bytes := map[string]float64{"fp8": 1, "fp8_block": 1, "fp4": 0.5, "int4": 0.5}
	all := math.Log(a.BandwidthGBs * float64(b.tp))
	return [2]float64{all, all - math.Log(cmp.Or(bytes[b.dtype], 2))}
}

// at is what a GPU gives where users get so much, straight between loads; false outside.
func at(c []place, user float64) (float64, bool) {
	for i := 1; i < len(c); i++ {
		if a, b := c[i-1], c[i]; user >= a.user && user <= b.user && b.user > a.user {
			return a.gpu + (b.gpu-a.gpu)*(user-a.user)/(b.user-a.user), true
		}
	}
	return 0, false
}

// pair is two systems' difference at one place: logarithms of ratios.
type pair struct {
	a, b           string // systems
	measured, twin float64
	plain          [2]float64
	held           int // how many of the two were kept out
	sameGPU        bool
}

// pairs compares all, at up to five places of what both curves of both cover.
func pairs(groups map[string][]*frontier) (list []pair) {
	for _, key := range slices.Sorted(keysOf(groups)) {
		for i, a := range groups[key] {
			for _, b := range groups[key][:i] {
				low, high := math.Inf(-1), math.Inf(1)
				for _, c := range [][]place{a.measured, a.twin, b.measured, b.twin} {
					low, high = max(low, c[0].user), min(high, c[len(c)-1].user)
				}
				if high <= low {
					continue
				}
				const places = 5
				for k := range places {
					user := low + (high-low)*(float64(k)+0.5)/places
					am, ok1 := at(a.measured, user)
					bm, ok2 := at(b.measured, user)
					at1, ok3 := at(a.twin, user)
					bt, ok4 := at(b.twin, user)
					if ok1 && ok2 && ok3 && ok4 {
						plain := [2]float64{a.plain[0] - b.plain[0], a.plain[1] - b.plain[1]}
						list = append(list, pair{a.system, b.system, am - bm, at1 - bt, plain, kept(a) + kept(b), a.accelerator == b.accelerator})
					}
				}
			}
		}
	}
	return list
}

func keysOf[T any](m map[string]T) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func kept(f *frontier) int {
	if f.held {
		return 1
	}
	return 0
}

// By how little the twin may tell two apart for that to count as a tie, as the logarithm of a
// ratio: slight is a difference that is none; overlap one at which their error bars overlap, where
// four of five predictions are within 12 % and half of the variance is common, so that four of five
// differences are within 12 %·√(2·(1 − ½)).
const (
	slight  = 0.03
	overlap = 0.12
)

// rank prints how many pairs are ordered right, by how much they differ.
func rank(systems string, chosen bool, only, set string) error {
	list, _, err := simulated(systems, chosen, only, set)
	if err != nil {
		return err
	}
	groups := frontiers(list)
	all := pairs(groups)
	fmt.Println("right of those told apart: by the twin (95 %, by system), and by the datasheet alone: bandwidth × GPUs, and that ÷ the bytes of a weight")
	fmt.Println("ties: the twin's error bars overlap; then the same where only differences under 3 % are ties")
	byDifference(all, "differ by", func(p *pair) float64 { return p.measured })
	fmt.Println("\nthe same by what the twin says that they differ by, which is all that one has who chooses")
	byDifference(all, "twin says", func(p *pair) float64 { return p.twin })
	alike(groups)
	return nil
}

// byDifference prints how many pairs are ordered right, in rows by a difference of theirs.
func byDifference(all []pair, name string, of func(*pair) float64) {
	fmt.Printf("%-26s %-10s %7s %6s  %5s %5s  %-18s  %5s %5s  %-18s  %-16s  %s\n", "systems", name, "systems", "places", "right", "ties", "twin", "right", "ties", "twin", "bandwidth × GPUs", "÷ bytes")
	for _, part := range []struct {
		name string
		in   func(*pair) bool
	}{
		{"both kept out", func(p *pair) bool { return p.held == 2 }},
		{"both kept out, same GPU", func(p *pair) bool { return p.held == 2 && p.sameGPU }},
		{"both kept out, other GPUs", func(p *pair) bool { return p.held == 2 && !p.sameGPU }},
		{"one kept out", func(p *pair) bool { return p.held == 1 }},
		{"none kept out", func(p *pair) bool { return p.held == 0 }},
	} {
		for _, size := range []struct {
			name     string
			from, to float64
		}{{"under 10 %", 0, math.Log(1.1)}, {"10 to 20 %", math.Log(1.1), math.Log(1.2)}, {"over 20 %", math.Log(1.2), math.Inf(1)}} {
			var some []pair
			count := map[string]bool{}
			for i := range all {
				if d := math.Abs(of(&all[i])); part.in(&all[i]) && d >= size.from && d < size.to {
					some = append(some, all[i])
					count[all[i].a], count[all[i].b] = true, true
				}
			}
			fmt.Printf("%-26s %-10s %7d %6d", part.name, size.name, len(count), len(some))
			for _, tie := range []float64{overlap, slight} {
				right, ties := score(some, nil, tie)
				fmt.Printf("  %5d %5d  %-18s", right, ties, shareRight(some, slices.Sorted(keysOf(count)), tie))
			}
			fmt.Printf("  %-16s  %s\n", shareOf(some, 0), shareOf(some, 1))
		}
	}
}

// score counts pairs that are ordered as measured, and those that the twin does not tell
// apart; weights are of systems, nil for one each.
func score(list []pair, weight map[string]float64, tie float64) (right, ties int) {
	for _, p := range list {
		n := 1
		if weight != nil {
			n = int(weight[p.a] * weight[p.b])
		}
		switch {
		case math.Abs(p.twin) < tie:
			ties += n
		case (p.twin > 0) == (p.measured > 0):
			right += n
		}
	}
	return right, ties
}

// shareOf is how many of the pairs that a rule of the datasheet tells apart it orders as
// measured.
func shareOf(list []pair, rule int) string {
	right, ties := 0, 0
	for _, p := range list {
		switch x := p.plain[rule]; {
		case math.Abs(x) < slight:
			ties++
		case (x > 0) == (p.measured > 0):
			right++
		}
	}
	if len(list) == ties {
		return "–"
	}
	return fmt.Sprintf("%d of %d, %.0f %%", right, len(list)-ties, 100*float64(right)/float64(len(list)-ties))
}

// shareRight is the share of pairs that are ordered right among those that are told apart, with an
// interval by a bootstrap over systems; where all are, which no draw of them can tell from
// certainty, by as many successes as there are systems (Clopper and Pearson).
func shareRight(list []pair, systems []string, tie float64) string {
	right, ties := score(list, nil, tie)
	if len(list) == ties || len(systems) < 2 {
		return "–"
	}
	if right == len(list)-ties {
		return fmt.Sprintf("100 %% (%.0f to 100)", 100*stats.ClopperPearson(len(systems), len(systems), 1, 0.95).Lo)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var shares []float64
	for range 2000 {
		weight := map[string]float64{}
		for range systems {
			weight[systems[rng.IntN(len(systems))]]++
		}
		n := 0
		for _, p := range list {
			n += int(weight[p.a] * weight[p.b])
		}
		if r, t := score(list, weight, tie); n > t {
			shares = append(shares, float64(r)/float64(n-t))
		}
	}
	slices.Sort(shares)
	return fmt.Sprintf("%.0f %% (%.0f to %.0f)", 100*float64(right)/float64(len(list)-ties), 100*stats.Percentile(shares, 0.025), 100*stats.Percentile(shares, 0.975))
}

// alike prints which share of the variance of errors is common to systems on one
// accelerator, and to those of one model on it: a one-way analysis of variance of each
// system's mean error in what a GPU gives (Searle, Casella and McCulloch, Variance
// Components, 1992, section 3.6).
func alike(groups map[string][]*frontier) {
	errors := map[string][]float64{} // of each system
	of := map[string]*frontier{}
	for _, g := range groups {
		for _, f := range g {
			for _, m := range f.measured {
				if t, ok := at(f.twin, m.user); ok && !f.held {
					errors[f.system] = append(errors[f.system], t-m.gpu)
					of[f.system] = f
				}
			}
		}
	}
	fmt.Println()
	for _, way := range []struct {
		name  string
		group func(*frontier) string
	}{
		{"an accelerator", func(f *frontier) string { return f.accelerator }},
		{"a model on an accelerator", func(f *frontier) string { return f.model + " " + f.accelerator }},
	} {
		by := map[string][]float64{}
		for _, s := range slices.Sorted(keysOf(errors)) {
			key := way.group(of[s])
			by[key] = append(by[key], average(errors[s]))
		}
		if common, sd, ok := components(by); ok {
			fmt.Printf("of the variance of %d systems' errors %.0f %% is common to %s (none kept out; standard deviation %.0f %%)\n", len(errors), 100*common, way.name, 100*sd)
		}
	}
}

// components is the share of a variance that members of a group have in common, by the
// method of moments, and the standard deviation of all; false where there are too few.
func components(by map[string][]float64) (common, sd float64, ok bool) {
	var sum, squares, within, between, total float64
	for _, list := range by {
		total += float64(len(list))
		squares += float64(len(list) * len(list))
		for _, x := range list {
			sum += x
		}
	}
	k := float64(len(by))
	if k < 2 || total <= k {
		return 0, 0, false
	}
	for _, list := range by {
		m := average(list)
		between += float64(len(list)) * (m - sum/total) * (m - sum/total)
		for _, x := range list {
			within += (x - m) * (x - m)
		}
	}
	own := within / (total - k)
	shared := max((between/(k-1)-own)/((total-squares/total)/(k-1)), 0)
	return shared / (shared + own), math.Sqrt(shared + own), true
}
