package main

import (
	"fmt"
	"math"

	"pitot/internal/run/search"
	"pitot/internal/stat"
)

// widths is how narrow the interval of a capacity is, beside a yardstick of what counts of
// violations say.
func widths() table {
	return table{
		name: "width", slow: true, reps: 50,
		about: "How narrow the interval of the capacity is, of the servers of `replay` and without a twin, a budget of requests in windows; all searches that were started count, and one without an estimate has no end. " +
			"Yardstick: the half-width of the 95 % interval of one who knows how steeply violations rise and how much they cluster in the long run, and puts all requests on the capacity: 1.96 √(φ(1−ε)/(εn)) ÷ slope; its sum is the median of the systems. " +
			"Error: of |estimate ÷ truth − 1| the median, and what 95 % of the searches do not exceed. Half-width: median and ninth decile. Holds: of the intervals, the share that holds the truth. At least: of all searches, the share whose lower bound holds. " +
			"Half: constants were chosen on the design half.",
		header: []string{"system", "half", "budget", "slope", "φ", "yardstick", "error", "95 % of errors", "half-width", "nine of ten", "interval", "holds", "at least"},
		rows:   widthRows,
	}
}

// drawnEach is how many systems are drawn for each half; some of them have no capacity.
const drawnEach = 20

func widthRows(reps int, seed uint64) (rows [][]string) {
	budgets := []int{3_000, 10_000, 40_000}
	all := map[string]*widthCount{}
	for _, half := range []string{"design", "reported"} {
		from := uint64(0)
		if half == "reported" {
			from = seed * 1000
		}
		for i := range uint64(drawnEach) {
			r := piece(fmt.Sprintf("rival %d", from+i), func() *rival { return drawRival(from + i) })
			if r == nil || r.Capacity == 0 || r.SE > 0.01 {
				continue // it has no capacity, or its truth is not known well enough
			}
			phi := piece(fmt.Sprintf("clusters of rival %d", from+i), func() *float64 { phi := r.clusters(); return &phi })
			for _, budget := range budgets {
				c := piece(fmt.Sprintf("widths of rival %d %d %d %d", from+i, budget, reps, seed), func() *widthCount { return r.widths(budget, reps, seed) })
				if phi == nil || c == nil { // there was no time for it
					continue
				}
				yardstick := 1.96 * math.Sqrt(*phi*(1-r.Share)/(r.Share*float64(budget))) / r.Slope
				rows = append(rows, append([]string{r.about(), half, fmt.Sprint(budget), fmt.Sprintf("%.1f", r.Slope), fmt.Sprintf("%.0f", *phi)}, c.row(yardstick)...))
				key := half + fmt.Sprint(budget)
				if all[key] == nil {
					all[key] = &widthCount{}
				}
				all[key].merge(c, yardstick)
			}
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

// widthCount is how the searches of a system came out.
type widthCount struct {
	Errors, Widths, Yardsticks []float64
	Given, Holds, AtLeast      tally
}

// nowhere stands for the width of an interval that is not given.
const nowhere = 1e9

func (r *rival) widths(budget, reps int, seed uint64) *widthCount {
	found := make([]search.Capacity, reps)
	together(reps, func(i int) { found[i], _ = r.find(none, budget, seed<<32+uint64(i), measuredWindows[*servedLoad]{}) })
	c := &widthCount{}
	for i := range found {
		f := &found[i]
		c.Given.count(f.Estimate > 0)
		c.AtLeast.count(f.AtLeast <= r.Capacity)
		if f.Estimate == 0 {
			c.Errors, c.Widths = append(c.Errors, nowhere), append(c.Widths, nowhere)
			continue
		}
		c.Holds.count(f.Interval.Holds(r.Capacity))
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
		stat.SortFloat64(xs)
		if x := stat.Percentile(xs, p); x < nowhere {
			return fmt.Sprintf("%.1f %%", 100*x)
		}
		return "none"
	}
	return []string{fmt.Sprintf("%.1f %%", 100*yardstick), of(c.Errors, 0.5), of(c.Errors, 0.95), of(c.Widths, 0.5), of(c.Widths, 0.9), c.Given.String(), c.Holds.String(), c.AtLeast.String()}
}

// clusters is how many times more than independent ones the violations at the capacity vary
// in the long run.
func (r *rival) clusters() float64 {
	const n, blocks = 1_000_000, 100
	counts := make([]float64, blocks)
	for i, x := range r.long(&r.Server, r.Capacity, n) {
		if x >= 1 {
			counts[i*blocks/n]++
		}
	}
	mean, sd := stat.Moments(counts)
	return sd * sd / (mean * (1 - mean*blocks/n))
}
