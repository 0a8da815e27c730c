package main

import (
	"fmt"
	"math"
	"slices"

	"pitot/internal/capacity"
	"pitot/internal/stats"
)

// flooredWidths is the same of those servers alone that violate a limit without a load too.
func flooredWidths() table {
	t := widths()
	t.name, t.rows = "width-floors", func(reps int, seed uint64) [][]string {
		drawn := append(drawnServers(0, drawnFloors), drawnServers(seed*1000, drawnEach)...)
		for i := range drawn {
			if !slices.Contains(floorsChosenOn, drawn[i].id) {
				drawn[i].half = "reported"
			}
		}
		return widthRows(drawn, (*seatServer).floored, reps, seed)
	}
	t.about = "Of the servers that violate the limit at a tenth of their capacity by a quarter of what may and more. " + t.about
	return t
}

// mildWidths is the same of those servers alone whose lengths and arrivals vary little.
func mildWidths() table {
	t := widths()
	t.name, t.about = "width-mild", "Of the servers whose arrivals are those of a Poisson process and whose lengths have a coefficient of variation of 0.5 at the most. "+t.about
	t.rows = func(reps int, seed uint64) [][]string {
		return widthRows(drawnHalves(seed), (*seatServer).mild, reps, seed)
	}
	return t
}

// mild says that little varies from request to request.
func (r *seatServer) mild() bool { return r.Shape == 1 && r.Spread <= 0.5 }

// floorsChosenOn are the servers that what a search does above a floor was chosen on, of the first
// drawnFloors.
var floorsChosenOn = []uint64{19, 23, 24, 35, 50, 52, 59, 86, 106, 114}

const drawnFloors = 115

// widths is how narrow the interval of a capacity is, beside a yardstick of what counts of
// violations say.
func widths() table {
	return table{
		name: "width", slow: true, reps: 50,
		about: "How narrow the interval of the capacity is, of servers that batch with a limited number of seats, a budget of requests in windows; all searches that were started count, and one without an estimate has no end. " +
			"Yardstick: the half-width of the 95 % interval of one who knows how steeply violations rise and how much they cluster in the long run, and puts all requests on the capacity: 1.96 √(φ(1−ε)/(εn)) ÷ slope; its sum is the median of the systems. " +
			"Error: of |estimate ÷ truth − 1| the median, and what 95 % of the searches do not exceed. Half-width: median and ninth decile. Holds: of the intervals, the share that holds the truth. At least: of all searches, the share whose lower bound holds. " +
			"Half: constants were chosen on the design half.",
		header: []string{"system", "half", "budget", "slope", "φ", "yardstick", "error", "95 % of errors", "half-width", "nine of ten", "interval", "holds", "at least"},
		rows: func(reps int, seed uint64) [][]string {
			return widthRows(drawnHalves(seed), func(*seatServer) bool { return true }, reps, seed)
		},
	}
}

// drawnEach is how many systems are drawn for each half; some of them have no capacity.
const drawnEach = 20

// drawnServer is a server of seats by the seed that it is drawn by.
type drawnServer struct {
	id   uint64
	half string
}

func drawnServers(from uint64, n int) (list []drawnServer) {
	for i := range uint64(n) {
		list = append(list, drawnServer{from + i, "design"})
	}
	return list
}

// drawnHalves are those that constants were chosen on, and as many others by a seed.
func drawnHalves(seed uint64) []drawnServer {
	drawn := append(drawnServers(0, drawnEach), drawnServers(seed*1000, drawnEach)...)
	for i := drawnEach; i < len(drawn); i++ {
		drawn[i].half = "reported"
	}
	return drawn
}

func widthRows(drawn []drawnServer, which func(*seatServer) bool, reps int, seed uint64) (rows [][]string) {
	budgets := []int{3_000, 10_000, 40_000}
	all := map[string]*widthCount{}
	for _, d := range drawn {
		r := piece(fmt.Sprintf("server %d", d.id), func() *seatServer { return drawSeatServer(d.id) })
		if r == nil || r.Capacity == 0 || r.SE > 0.01 {
			continue // it has no capacity, or its truth is not known well enough
		}
		if r = piece(fmt.Sprintf("refined server %d", d.id), r.refined); r == nil || !which(r) {
			continue
		}
		phi := piece(fmt.Sprintf("clusters of server %d", d.id), func() *float64 { phi := r.clusters(); return &phi })
		for _, budget := range budgets {
			c := piece(fmt.Sprintf("widths of server %d %d %d %d", d.id, budget, reps, seed), func() *widthCount { return r.widths(budget, reps, seed) })
			if phi == nil || c == nil { // there was no time for it
				continue
			}
			yardstick := 1.96 * math.Sqrt(*phi*(1-r.Share)/(r.Share*float64(budget))) / r.Slope
			rows = append(rows, append([]string{r.about(), d.half, fmt.Sprint(budget), fmt.Sprintf("%.1f", r.Slope), fmt.Sprintf("%.0f", *phi)}, c.row(yardstick)...))
			key := d.half + fmt.Sprint(budget)
			if all[key] == nil {
				all[key] = &widthCount{}
			}
			all[key].merge(c, yardstick)
		}
	}
	for _, half := range []string{"design", "reported"} {
		for _, budget := range budgets {
			if c := all[half+fmt.Sprint(budget)]; c != nil {
				rows = append(rows, append([]string{"all", half, fmt.Sprint(budget), "", ""}, c.row(median(c.Yardsticks))...))
			}
		}
	}
	return rows
}

// refined is a server whose capacity is told by loads within 6 % of it alone, where violations rise
// so slowly that the loads that it was found with lie further apart: over these the rise bends, and
// a line through them was 2 % off.
func (r *seatServer) refined() *seatServer {
	const n, slow, step = 200_000, 10, 0.015
	if r.Slope > slow {
		return r
	}
	for _, n := range []int{n / 4, n} {
		points := make([]stats.Share, 9)
		together(len(points), func(i int) {
			p := stats.Share{Load: r.Capacity * math.Exp(step*float64(i-4)), N: n}
			for _, x := range r.long(p.Load, n) {
				if x >= 1 {
					p.Violations++
				}
			}
			points[i] = p
		})
		fit := stats.FitLogistic(points, stats.Prior{})
		at := fit.LoadAt((r.Share-r.Fails)/(1-r.Fails), 0.95, 0.05)
		if at.Load == 0 {
			panic(fmt.Sprintf("the truth of %s: %s", r.about(), at.Reason))
		}
		r.Capacity, r.Slope = at.Load, fit.B
		r.SE = math.Sqrt(max(0, at.SE*at.SE-stats.ModelError*stats.ModelError))
	}
	return r
}

// floored says that a quarter of what may violate the limit does at a tenth of the capacity.
func (r *seatServer) floored() bool {
	const n = 20_000
	share := piece(fmt.Sprintf("floor of %s %v", r.about(), r.Capacity), func() float64 {
		bad := n * r.Fails
		for _, x := range r.long(r.Capacity/10, n) {
			if x >= 1 {
				bad++
			}
		}
		return bad / n
	})
	return share >= r.Share/4
}

// widthCount is how the searches of a system came out.
type widthCount struct {
	Errors, Widths, Yardsticks []float64
	Given, Holds, AtLeast      tally
}

// nowhere stands for the width of an interval that is not given.
const nowhere = 1e9

func (r *seatServer) widths(budget, reps int, seed uint64) *widthCount {
	found := make([]capacity.Found, reps)
	together(reps, func(i int) { found[i] = r.find(budget, seed<<32+uint64(i)) })
	c := &widthCount{}
	for i := range found {
		f := &found[i]
		c.Given.count(f.Estimate > 0)
		c.AtLeast.count(f.AtLeast <= r.Capacity)
		if f.Estimate == 0 {
			c.Errors, c.Widths = append(c.Errors, nowhere), append(c.Widths, nowhere)
			continue
		}
		c.Holds.count(f.Interval.Contains(r.Capacity))
		c.Errors = append(c.Errors, math.Abs(f.Estimate/r.Capacity-1))
		c.Widths = append(c.Widths, (f.Interval.Hi-f.Interval.Lo)/2/f.Estimate)
	}
	return c
}

func (c *widthCount) merge(o *widthCount, yardstick float64) {
	c.Errors, c.Widths, c.Yardsticks = append(c.Errors, o.Errors...), append(c.Widths, o.Widths...), append(c.Yardsticks, yardstick)
	for _, t := range [][2]*tally{{&c.Given, &o.Given}, {&c.Holds, &o.Holds}, {&c.AtLeast, &o.AtLeast}} {
		t[0].Held, t[0].Of = t[0].Held+t[1].Held, t[0].Of+t[1].Of
	}
}

func (c *widthCount) row(yardstick float64) []string {
	of := func(xs []float64, p float64) string {
		stats.SortFloat64(xs)
		if x := stats.Percentile(xs, p); x < nowhere {
			return fmt.Sprintf("%.1f %%", 100*x)
		}
		return "none"
	}
	return []string{fmt.Sprintf("%.1f %%", 100*yardstick), of(c.Errors, 0.5), of(c.Errors, 0.95), of(c.Widths, 0.5), of(c.Widths, 0.9), c.Given.String(), c.Holds.String(), c.AtLeast.String()}
}

// clusters is how many times more than independent ones the violations at the capacity vary
// in the long run.
func (r *seatServer) clusters() float64 {
	const n, blocks = 1_000_000, 100
	counts := make([]float64, blocks)
	for i, x := range r.long(r.Capacity, n) {
		if x >= 1 {
			counts[i*blocks/n]++
		}
	}
	mean, sd := stats.Moments(counts)
	return sd * sd / (mean * (1 - mean*blocks/n))
}
