package main

import (
	"fmt"
	"math"
	"slices"

	"pitot/internal/run/search"
)

const replayAbout = "What a replay of a search on a twin adds to it (`pitot find --twin`), beside the same search by its counts alone (none), which has the same windows until the twin has a say. " +
	"No twin is the server, which has other kernels, overheads, limits of the scheduler, slow phases and chances. Named: what the server is but for these. " +
	"Nearest: nobody names it, and it is the one of a catalogue that serves the search's light loads most as the server does. The others are wrong: named for what it is not. " +
	"All searches that were started count. Given: there is an estimate. Half-width: median, of the 95 % interval; none counts as infinite. Holds: of those with one, the interval holds the truth; worst: the least of a system. " +
	"At least: of all searches, its lower bound holds. Error: median of |estimate ÷ truth − 1|. Explained: the twin had a say; of these, the median of the interval's width ÷ that of the counts alone, its ninth decile, and how many hold, and of the same searches how many by the counts alone. " +
	"CPU: seconds of a processor in the median, of which a search on the server itself takes those of none. Constants were chosen on systems of their own (replay-chosen, replay-nearest-chosen)."

func replayHeader() []string {
	return []string{"twin", "budget", "systems", "searches", "given", "half-width", "holds", "worst", "at least", "error", "explained", "narrower", "nine of ten", "hold", "alone", "ρ", "CPU"}
}

// replays is by queues that batch, which take no time; one half or the other.
func replays(name string, half group) table {
	return table{
		name: name, about: replayAbout + " Servers and twins are queues for seats.", slow: true, reps: 20, header: replayHeader(),
		rows: func(reps int, seed uint64) [][]string {
			const systems = 12
			var list []replaySystem
			for i := range uint64(systems) {
				i += drawnFrom(half, seed)
				r := piece(fmt.Sprintf("rival %d", i), func() *rival { return drawRival(i) })
				if r == nil || r.Capacity == 0 || r.SE > 0.01 {
					continue // it has no capacity, or its truth is not known well enough
				}
				list = append(list, replaySystem{r.about(), r.Capacity, func() searcher {
					had := measuredWindows[*servedLoad]{}
					return func(by twinned, budget int, seed uint64) (search.Capacity, int) { return r.find(by, budget, seed, had) }
				}})
			}
			return replayRows("replay", list, reps, seed)
		},
	}
}

// replayTwins is by deployments of the catalogue, in virtual time.
func replayTwins(name string, half group) table {
	return table{
		name: name, about: replayAbout + " Servers and twins are deployments in virtual time.", slow: true, reps: 6, header: replayHeader(),
		rows: func(reps int, seed uint64) [][]string {
			const systems, requests = 6, 30_000
			var list []replaySystem
			for i := range uint64(systems) {
				i += drawnFrom(half, seed)
				s := drawServer(i)
				m := piece(fmt.Sprintf("server %s %d", s.about(), requests), func() *float64 {
					at, _ := s.system().measuredCapacity(requests, i+1<<32)
					return &at.Load
				})
				if m == nil || *m == 0 {
					continue
				}
				list = append(list, replaySystem{s.about(), *m, func() searcher {
					had := measuredWindows[*did]{}
					return func(by twinned, budget int, seed uint64) (search.Capacity, int) { return s.find(by, budget, seed, had) }
				}})
			}
			return replayRows("replay-nearest", list, reps, seed)
		},
	}
}

// drawnFrom is which system the first of a half is.
func drawnFrom(half group, seed uint64) uint64 {
	if half == chosen {
		return 0
	}
	return seed * 1000
}

// searcher searches for the capacity of a server, with a twin.
type searcher func(by twinned, budget int, seed uint64) (c search.Capacity, sent int)

// replaySystem is a server whose searches are replayed.
type replaySystem struct {
	about    string
	capacity float64
	fresh    func() searcher // one that knows of no window yet
}

// replayed is how a search came out.
type replayed struct {
	Estimate, Lo, Hi, AtLeast float64 // 0 where there is none
	Sent                      int
	Explained                 bool
	Rho, K                    float64
	Reason                    string
	CPU                       float64
}

func (r *replayed) width() float64 {
	if r.Estimate == 0 {
		return nowhere
	}
	return (r.Hi - r.Lo) / 2 / r.Estimate
}

// replayBy are the twins that are asked of each search.
var replayBy = []twinned{none, named, nearest, anotherSize, anotherGPU, anotherCount}

// atOnce is how many searches a piece has.
const atOnce = 2

// replayRows searches with all twins.
func replayRows(name string, list []replaySystem, reps int, seed uint64) (rows [][]string) {
	budgets := []int{3_000, 10_000}
	counts := map[string]*replayCount{}
	count := func(by twinned, budget int) *replayCount {
		key := fmt.Sprint(by, budget)
		if counts[key] == nil {
			counts[key] = &replayCount{}
		}
		return counts[key]
	}
	// Repetitions go round the systems, so that what there is time for is of all of them.
	for from := 0; from < reps; from += atOnce {
		for i := range list {
			s := &list[i]
			for _, budget := range budgets {
				for r, all := range replayPiece(name, s, budget, from, seed) {
					if from+r >= reps {
						break
					}
					for k, by := range replayBy {
						count(by, budget).count(s, &all[k], &all[0])
					}
				}
			}
		}
	}
	for _, by := range replayBy {
		for _, budget := range budgets {
			if c := count(by, budget); c.searches > 0 {
				rows = append(rows, append([]string{string(by), fmt.Sprint(budget)}, c.row()...))
			}
		}
	}
	return rows
}

// replayPiece is how some searches came out, each with all twins.
func replayPiece(name string, s *replaySystem, budget, from int, seed uint64) [][]replayed {
	return piece(fmt.Sprintf("%s %s %v %d %d %d", name, s.about, s.capacity, budget, from, seed), func() (out [][]replayed) {
		for rep := from; rep < from+atOnce; rep++ {
			search := s.fresh()
			var all []replayed
			for _, by := range replayBy {
				before := processor()
				c, sent := search(by, budget, seed<<32+uint64(rep))
				one := replayed{Estimate: c.Estimate, Lo: c.Interval.Lo, Hi: c.Interval.Hi, AtLeast: c.AtLeast, Sent: sent, CPU: processor() - before}
				if r := c.Replayed; r != nil {
					one.Explained, one.Rho, one.K, one.Reason = r.Reason == "", r.Rho, r.K, r.Reason
				}
				all = append(all, one)
			}
			out = append(out, all)
		}
		return out
	})
}

// replayCount is how searches with a twin came out.
type replayCount struct {
	searches                               int
	given, holds, atLeast, explained       tally
	heldThen, heldAlone                    tally // of those that the twin explains
	widths, errors, narrower, rho, seconds []float64
	systems                                map[string]*tally
}

func (c *replayCount) count(s *replaySystem, x, alone *replayed) {
	c.searches++
	holds := x.Estimate > 0 && x.Lo <= s.capacity && s.capacity <= x.Hi
	c.given.count(x.Estimate > 0)
	c.holds.addIf(x.Estimate > 0, holds)
	if c.systems == nil {
		c.systems = map[string]*tally{}
	}
	if c.systems[s.about] == nil {
		c.systems[s.about] = &tally{}
	}
	c.systems[s.about].addIf(x.Estimate > 0, holds)
	c.atLeast.count(x.AtLeast <= s.capacity)
	c.widths, c.seconds = append(c.widths, x.width()), append(c.seconds, x.CPU)
	if x.Estimate > 0 {
		c.errors = append(c.errors, math.Abs(x.Estimate/s.capacity-1))
	}
	if c.explained.count(x.Explained); !x.Explained {
		return
	}
	c.rho, c.narrower = append(c.rho, x.Rho), append(c.narrower, x.width()/alone.width())
	c.heldThen.addIf(x.Estimate > 0, holds)
	c.heldAlone.addIf(alone.Estimate > 0, alone.Lo <= s.capacity && s.capacity <= alone.Hi)
}

func (c *replayCount) row() []string {
	worst, about := math.Inf(1), tally{}
	for _, t := range c.systems {
		if share := float64(t.Held) / float64(t.Of); t.Of > 0 && share < worst {
			worst, about = share, *t
		}
	}
	width := "none"
	if x := median(c.widths); x < nowhere {
		width = fmt.Sprintf("%.1f %%", 100*x)
	}
	ratio, nine, rho := "none", "none", "none"
	if len(c.narrower) > 0 {
		slices.Sort(c.narrower)
		ratio, nine = number(median(c.narrower)), number(c.narrower[len(c.narrower)*9/10])
		rho = fmt.Sprintf("%.2f", median(c.rho))
	}
	return []string{fmt.Sprint(len(c.systems)), fmt.Sprint(c.searches), c.given.String(), width, c.holds.String(), about.String(), c.atLeast.String(), percent(c.errors),
		c.explained.String(), ratio, nine, c.heldThen.String(), c.heldAlone.String(), rho, fmt.Sprintf("%.2f", median(c.seconds))}
}
