package main

import (
	"fmt"
	"math"

	"pitot/bench/stat/queue"
	"pitot/internal/capacity"
	"pitot/internal/metrics"
	"pitot/internal/results/result"
)

// saturated is what a sweep says its target saturates at.
func saturated() table {
	return table{
		name: "saturation",
		about: "What sweeps of M/G/c queues from empty say that they saturate at, and where the knee lies, by the code that measures: loads of 0.3, 0.5, 0.7, 0.85, 1.1 and 1.4 of what is served, whose tokens all come at the end of a service. " +
			"Services have a coefficient of variation of 0.3, 1 or 2; windows are so many times what a request takes alone. " +
			"Found: there is a saturation. Error: of the requests a second, median. Holds: their interval holds what the servers serve at most. Width: median of the interval's upper end ÷ its lower one. " +
			"Knee: there is one. In its range: of these, how often the range holds the knee that long windows show of the same loads.",
		header: []string{"servers", "services", "window", "found", "error", "interval", "holds", "width", "knee", "in its range"},
		reps:   100,
		slow:   true,
		rows: func(reps int, seed uint64) (rows [][]string) {
			var systems []queueSystem
			for _, servers := range []int{4, 32} {
				for _, services := range []float64{0.3, 1, 2} {
					for _, window := range []float64{100, 300} {
						systems = append(systems, queueSystem{law: queue.Law{Services: services, Arrivals: 1}, servers: servers, window: window})
					}
				}
			}
			rows = make([][]string, len(systems))
			together(len(systems), func(i int) { rows[i] = systems[i].saturation(reps, seed+uint64(i)<<32) })
			return rows
		},
	}
}

var saturationLoads = []float64{0.3, 0.5, 0.7, 0.85, 1.1, 1.4}

// sweep measures the system at each load, once.
func (s queueSystem) sweep(window float64, seed uint64) *result.Curve {
	points := make([]result.Point, len(saturationLoads))
	for i, u := range saturationLoads {
		rate := u * float64(s.servers)
		f := metrics.NewFold(metrics.Setup{
			T0: warmIntervals * 1e9, T1: int64((warmIntervals + window) * 1e9),
			Residence: 1e9, Load: result.Load{Loop: "open", Rate: &rate},
		})
		f.Add(answered(queue.NewOf(s.law, s.servers, u, seed+uint64(i)), warmIntervals+window))
		points[i] = f.Point()
	}
	return capacity.CurveOf(points)
}

func (s queueSystem) saturation(reps int, seed uint64) []string {
	truth := float64(s.servers)
	knee := 0.
	if k := s.sweep(8*s.window, seed).Knee; k != nil {
		knee = k.Load
	}
	var found, interval, holds, bends, inRange tally
	var errors, widths []float64
	for r := range reps {
		c := s.sweep(s.window, seed+uint64(1+r)<<8)
		found.count(c.Saturation != nil)
		if x := c.Saturation; x != nil {
			errors = append(errors, math.Abs(x.RequestsPerS/truth-1))
			interval.count(x.CI95 != nil)
			if x.CI95 != nil {
				holds.count(x.CI95[0] <= truth && truth <= x.CI95[1])
				widths = append(widths, x.CI95[1]/x.CI95[0])
			}
		}
		bends.count(c.Knee != nil)
		if k := c.Knee; k != nil && k.Resampled != nil && knee > 0 {
			inRange.count(k.Resampled[0] <= knee && knee <= k.Resampled[1])
		}
	}
	width := "none"
	if len(widths) > 0 {
		width = fmt.Sprintf("%.3f", median(widths))
	}
	return []string{fmt.Sprint(s.servers), number(s.law.Services), number(s.window), found.String(), percent(errors), interval.String(), holds.String(), width, bends.String(), inRange.String()}
}
