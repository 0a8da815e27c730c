package compare

import (
	"fmt"
	"slices"
	"time"

	"pitot/internal/results/result"
)

// Day is two sides at the times of day at which both were measured, by the clocks of their clients.
type Day struct {
	Metric string       `json:"metric"`  // that the medians are of: "ttft", or "e2e" where nothing streams
	Every  float64      `json:"every_s"` // how long each time is, in seconds
	Times  []DayTime    `json:"times"`
	Slower []SlowerTime `json:"slower"` // where a run's own test says that its server was slower at some times
}

// DayTime is a time of day.
type DayTime struct {
	From string   `json:"from"` // "14:05"
	To   string   `json:"to"`
	A    DayLevel `json:"a"`
	B    DayLevel `json:"b"`
}

// DayLevel holds the times of a side's requests that were due then. They are the median of its
// blocks' medians, in milliseconds, null where they have none.
type DayLevel struct {
	P50  *float64 `json:"p50_ms"`
	TPOT *float64 `json:"tpot_p50_ms"`
}

// SlowerTime is a side whose own blocks differ by more than chance explains on a server
// that is always alike.
type SlowerTime struct {
	Side   string  `json:"side"`
	Metric string  `json:"metric"`
	From   string  `json:"from"` // of the slowest block, "14:05"
	To     string  `json:"to"`
	Times  float64 `json:"times"` // its median, in multiples of the quickest
}

// dayTimes are the lengths that times of day have, in minutes: all divide a day.
var dayTimes = []int{2, 5, 10, 15, 20, 30, 60, 120, 240}

// dayOf puts the blocks of two sides beside each other by their time of day; nil where they share
// fewer than two times. names are of the sides; tokens says that TPOT can be compared.
func dayOf(x, y *loadOfSide, names [2]string, tokens bool) *Day {
	sides := [2][]*result.OverTime{x.overDay(), y.overDay()}
	all := slices.Concat(sides[0], sides[1])
	if len(sides[0]) == 0 || len(sides[1]) == 0 || slices.ContainsFunc(all, func(o *result.OverTime) bool { return o.Metric != all[0].Metric }) {
		return nil
	}
	longest := 0.
	for _, o := range all {
		longest = max(longest, o.BlockS)
	}
	minutes := dayTimes[len(dayTimes)-1]
	if i := slices.IndexFunc(dayTimes, func(m int) bool { return float64(m)*60 >= longest }); i >= 0 {
		minutes = dayTimes[i]
	}
	n := 24 * 60 / minutes
	levels := [2][]struct{ p50, tpot []float64 }{}
	for i, side := range sides {
		levels[i] = make([]struct{ p50, tpot []float64 }, n)
		for _, o := range side {
			for k, b := range o.Blocks {
				at := blockAt(o, float64(k)+.5)
				l := &levels[i][(at.Hour()*60+at.Minute())/minutes]
				if b.P50 != nil {
					l.p50 = append(l.p50, *b.P50)
				}
				if b.TPOT != nil && tokens {
					l.tpot = append(l.tpot, *b.TPOT)
				}
			}
		}
	}
	d := &Day{Metric: all[0].Metric, Every: float64(minutes) * 60, Times: []DayTime{}, Slower: []SlowerTime{}}
	clock := func(k int) string { return fmt.Sprintf("%02d:%02d", k*minutes/60%24, k*minutes%60) }
	for k := range n {
		a, b := levels[0][k], levels[1][k]
		if len(a.p50) > 0 && len(b.p50) > 0 {
			d.Times = append(d.Times, DayTime{clock(k), clock(k + 1), DayLevel{medianOrNil(a.p50), medianOrNil(a.tpot)}, DayLevel{medianOrNil(b.p50), medianOrNil(b.tpot)}})
		}
	}
	if len(d.Times) < 2 {
		return nil
	}
	for i, side := range sides {
		for _, o := range side {
			for _, s := range o.SlowerBlocks() {
				if s.Metric == "tpot" && !tokens {
					continue
				}
				from, to := blockAt(o, float64(s.Slowest)), blockAt(o, float64(s.Slowest+1))
				d.Slower = append(d.Slower, SlowerTime{names[i], s.Metric, from.Format("15:04"), to.Format("15:04"), s.Most / s.Least})
			}
		}
	}
	return d
}

// overDay is the course of the loads of a side that have a time of day.
func (x *loadOfSide) overDay() (list []*result.OverTime) {
	for _, p := range pointsOf(x) {
		if o := p.OverTime; o != nil && o.BlockS > 0 {
			if _, err := time.Parse(time.RFC3339, o.Began); err == nil {
				list = append(list, o)
			}
		}
	}
	return list
}

// blockAt is when a block began, by the clock of the client.
func blockAt(o *result.OverTime, block float64) time.Time {
	began, _ := time.Parse(time.RFC3339, o.Began)
	return began.Add(time.Duration(block * o.BlockS * 1e9))
}

// medianOrNil is the median, nil of none.
func medianOrNil(v []float64) *float64 {
	if len(v) == 0 {
		return nil
	}
	return new(median(v))
}
