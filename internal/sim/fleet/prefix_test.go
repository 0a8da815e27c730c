package fleet

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pitot/internal/sim"
)

// chainedWhole keeps nothing, but says what its stretches are by itself.
type chainedWhole struct{ whole }

func (c chainedWhole) Chain(block, n int) (list []uint64) {
	h := uint64(0)
	for k := range n {
		h = sim.ChainHash(h, c.Tokens(k*block, (k+1)*block))
		list = append(list, h)
	}
	return list
}

// The router's tree remembers what a list of all that was sent does, that is gone through for each
// prompt: who was sent a beginning last, and of how many stretches an engine is remembered.
func TestCacheAwareRemembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
		n := in("engines", 1, 5)
		f := &Fleet{of: make([]member, n)}
		for i := range n {
			f.open = append(f.open, i)
		}
		c := Defaults(1)
		c.BalanceAbsThreshold = in("balance", 0, 3)
		r := newCacheAware(f, c)
		r.most = in("most", 1, 40)
		sent := make([][]uint64, n) // the oldest first
		var turn []int              // who was sent each of all stretches, in turn
		var all []uint64
		distinct := func(i int) int {
			list := slices.Clone(sent[i])
			slices.Sort(list)
			return len(slices.Compact(list))
		}
		for range in("prompts", 1, 60) {
			if in("an engine dies", 0, 15) == 0 {
				i := in("which", 0, n-1)
				r.gone(i)
				sent[i] = nil
			}
			for i := range n {
				f.of[i].jobs = in("jobs", 0, 6)
			}
			group := in("group", 0, 4)
			w := whole{own: uint64(in("own", 0, 9)), group: uint64(group), shared: stretch * in("shared", 0, 8)}
			j := sim.Job{Prompt: in("prompt", 1, 12*stretch), Content: w}
			if rapid.Bool().Draw(t, "chained") {
				j.Content = chainedWhole{w}
			}
			list := chainedWhole{w}.Chain(stretch, j.Prompt/stretch)
			if rest := j.Prompt % stretch; rest > 0 {
				h := uint64(0)
				if len(list) > 0 {
					h = list[len(list)-1]
				}
				list = append(list, sim.ChainHash(h, w.Tokens(j.Prompt-rest, j.Prompt)))
			}
			want := -1
			least, mostLoaded := math.MaxInt, 0
			for i := range n {
				least, mostLoaded = min(least, f.of[i].jobs), max(mostLoaded, f.of[i].jobs)
			}
			if mostLoaded-least > c.BalanceAbsThreshold && float64(mostLoaded) > float64(least)*c.BalanceRelThreshold {
				want = f.leastLoaded(0, f.jobCount)
			} else {
				found := 0
				for k, h := range list {
					owner := -1
					for at := len(all) - 1; at >= 0 && owner < 0; at-- {
						if all[at] == h && slices.Contains(sent[turn[at]], h) {
							owner = turn[at]
						}
					}
					if owner < 0 {
						break
					}
					found, want = k+1, owner
				}
				if float64(min(found*stretch, j.Prompt)) <= c.CacheThreshold*float64(j.Prompt) {
					want = f.leastLoaded(0, distinct)
				}
			}
			got := r.route(0, &j)
			if got != want {
				t.Fatalf("sent to %d, should be to %d", got, want)
			}
			for _, h := range list {
				sent[got] = append(sent[got], h)
				all, turn = append(all, h), append(turn, got)
			}
			for distinct(got) > r.most || len(sent[got]) > 4*r.most {
				sent[got] = sent[got][1:]
			}
			for i := range n {
				if d := distinct(i); r.memory[i].size() != d {
					t.Fatalf("%d is remembered for %d stretches, should be for %d", i, r.memory[i].size(), d)
				}
			}
			if used := len(r.tree) - 1 - len(r.spare); used != len(r.index) {
				t.Fatalf("%d stretches in the tree, %d in the index", used, len(r.index))
			}
		}
	})
}
