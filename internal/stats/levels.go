package stats

import (
	"math"
	"slices"
)

const (
	// levelBatches is the number of batches of a stretch, and perLevelBatch the smallest number of
	// values of each. leastLevelBatches is the smallest number of batches that shows how it varies.
	levelBatches, leastLevelBatches = 24, 10
	perLevelBatch                   = 10
	// mostLevelMemory is the highest correlation of neighbouring batches that is put down to a
	// series of one level: what remembers for longer are levels. Companions that remember for
	// longer raise it as far as their own, up to mostCompanionMemory: what they have not explained
	// of a long queue remembers as long as the queue.
	mostLevelMemory, mostCompanionMemory = .5, .95
	// besideGroups is the largest number of groups of alike companions.
	besideGroups = 20
)

// LevelsDiffer is the chance that a series of one level has stretches as different as these,
// which follow one another in time. beside has a companion of each value that explains some
// of it, as how many others a queue had when its wait began; nil for none. What companions
// explain is taken out, so that what is left need not depend on what was shortly before.
// ok is false for fewer than two stretches, or fewer than a hundred values in one of them.
//
// It is an analysis of variance of ranks (Kruskal and Wallis, JASA 47, 1952) by the means
// of batches within each stretch (Law, "Simulation Modeling and Analysis", 2015, section
// 9.5.3). Batches may depend on each other as an autoregressive series of the first order
// does: its correlation is found within the stretches, without the bias that their own
// means give it (Marriott and Pope, Biometrika 41, 1954), and the spread that the stretches'
// means have by themselves is so much larger.
func LevelsDiffer(stretches, beside [][]float64) (p float64, ok bool) {
	least := math.MaxInt
	for _, s := range stretches {
		least = min(least, len(s))
	}
	if len(stretches) < 2 || least < leastLevelBatches*perLevelBatch {
		return 0, false
	}
	ranks := rankAll(stretches)
	if beside != nil {
		takeOut(ranks, beside)
	}
	batches := min(levelBatches, least/perLevelBatch)
	own := batchesWithin(ranks, batches)
	_, sd := Moments(own.means)
	if own.squares == 0 {
		if sd == 0 {
			return 1, true
		}
		return 0, true
	}
	most := mostLevelMemory
	if beside != nil {
		most = max(most, min(batchesWithin(rankAll(beside), batches).batchCorrelation(), mostCompanionMemory))
	}
	k, b := float64(len(stretches)), float64(batches)
	r := min(max(own.batchCorrelation(), 0), most)
	// The variance of a mean of so many, of that of one.
	share := 1 / b
	for j := 1.; j < b; j++ {
		share += 2 / b * (1 - j/b) * math.Pow(r, j)
	}
	one := own.squares / k / b / (1 - share)
	return FisherBeyond(sd*sd/(one*share), k-1, k*(b-1)*(1-r*r)/(1+r*r)), true
}

// withinStretches describes the variation of batch means about the means of their own stretches.
type withinStretches struct {
	means             []float64 // of the stretches
	batches           int       // of each
	squares, products float64   // sums over batches, and over neighbours
}

func batchesWithin(stretches [][]float64, batches int) withinStretches {
	w := withinStretches{means: make([]float64, len(stretches)), batches: batches}
	for i, s := range stretches {
		list, _ := batchesOf(s, batches).batchMeans()
		w.means[i], _ = Moments(list)
		for j, x := range list {
			w.squares += (x - w.means[i]) * (x - w.means[i])
			if j > 0 {
				w.products += (x - w.means[i]) * (list[j-1] - w.means[i])
			}
		}
	}
	return w
}

// batchCorrelation is the correlation of neighbouring batches, without the bias that the stretches'
// own means give it, and with what chance may have hidden of it.
func (w withinStretches) batchCorrelation() float64 {
	if w.squares == 0 {
		return 0
	}
	k, b := float64(len(w.means)), float64(w.batches)
	r := (w.products/w.squares*b/(b-1) + 1/b) / (1 - 3/b)
	return r + math.Sqrt(max(1-r*r, 0)/(k*(b-1)))
}

// rankAll are the ranks of values among all of them; those that are equal share theirs.
func rankAll(stretches [][]float64) [][]float64 {
	all := slices.Sorted(slices.Values(slices.Concat(stretches...)))
	out := make([][]float64, len(stretches))
	for i, s := range stretches {
		out[i] = make([]float64, len(s))
		for j, x := range s {
			from, _ := slices.BinarySearch(all, x)
			to, _ := slices.BinarySearch(all, math.Nextafter(x, math.Inf(1)))
			out[i][j] = float64(from+to) / 2
		}
	}
	return out
}

// takeOut takes out of values what their companions explain: the mean of those whose
// companions are alike.
func takeOut(values, beside [][]float64) {
	all := slices.Sorted(slices.Values(slices.Concat(beside...)))
	var from []float64 // of each group but the first
	for g := 1; g < besideGroups; g++ {
		if x := all[g*len(all)/besideGroups]; len(from) == 0 || x > from[len(from)-1] {
			from = append(from, x)
		}
	}
	group := func(x float64) int {
		g, found := slices.BinarySearch(from, x)
		if found {
			g++
		}
		return g
	}
	sums, counts := make([]float64, len(from)+1), make([]float64, len(from)+1)
	for k := range values {
		for i, x := range values[k] {
			g := group(beside[k][i])
			sums[g] += x
			counts[g]++
		}
	}
	for k := range values {
		for i := range values[k] {
			g := group(beside[k][i])
			values[k][i] -= sums[g] / counts[g]
		}
	}
}
