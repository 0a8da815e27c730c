package main

import (
	"math"
	"testing"

	"pitot/internal/capacity"
)

// Every table runs, and its rows are as wide as its header.
func TestTables(t *testing.T) {
	seen := map[string]bool{}
	for _, table := range tables() {
		if seen[table.name] || table.about == "" || table.reps < 1 {
			t.Errorf("%s: a name twice, nothing about it, or no repetitions", table.name)
		}
		seen[table.name] = true
		if table.slow {
			continue
		}
		if table.name == "lockstep" { // 28 loads of hundreds of users: one of them does
			if row := (crowd{"llama-3.1-8b@h100", 512, 64, 8}).row("Pitot", 1, 1); len(row) != len(table.header) {
				t.Errorf("%s: %q under %q", table.name, row, table.header)
			}
			continue
		}
		rows := table.rows(1, 1)
		if len(rows) == 0 {
			t.Errorf("%s is empty", table.name)
		}
		for _, row := range rows {
			if len(row) != len(table.header) {
				t.Errorf("%s: %q under %q", table.name, row, table.header)
			}
		}
	}
}

func TestMarkdown(t *testing.T) {
	got := markdown([]string{"φ", "share"}, [][]string{{"1", "3 %"}, {"22.25", "none"}})
	want := `| φ     | share |
| ----- | ----- |
| 1     | 3 %   |
| 22.25 | none  |
`
	if got != want {
		t.Errorf("%s", got)
	}
}

// Every system counts every request, and violates more under more load.
func TestSystems(t *testing.T) {
	for _, s := range systems() {
		var shares []int
		for _, load := range []float64{0.3 * s.capacity, 1.5 * s.capacity} {
			p := s.probe(capacity.Probe{Load: load, Requests: 300, Residences: 10, Residence: s.residence, Blocks: 10}, 1)
			blocks := 0
			for _, b := range p.Blocks[0] {
				blocks += b
			}
			if p.N != 300 || blocks != p.Violations[0] || p.Joint < p.Violations[0] || p.Residence < 0.3*s.residence || p.Seconds <= 0 {
				t.Errorf("%s at %.3g: %+v", s.name, load, p)
			}
			shares = append(shares, p.Joint)
		}
		if shares[0] > 10 || shares[1] < 100 {
			t.Errorf("%s violates %d and %d times of 300", s.name, shares[0], shares[1])
		}
	}
}

// Curves that are drawn violate as often as they say, in clusters as long as they say.
func TestDrawnCurves(t *testing.T) {
	const n = 2_000_000
	for _, c := range []drawnCurve{
		{Slope: 5, Allowed: .05, Capacity: 20, LoadCluster: 1},
		{Slope: 5, Allowed: .05, Capacity: 20, LoadCluster: 40},
		{Slope: 5, Allowed: .05, Capacity: 20, LoadCluster: 1, Floor: .03, FloorCluster: 10},
	} {
		marks := c.measure(capacity.Probe{Load: c.Capacity, Requests: n, Blocks: 10}, 1).violations
		bad, runs := 0, 0
		for i, m := range marks {
			if bad += int(m); m > 0 && (i == 0 || marks[i-1] == 0) {
				runs++
			}
		}
		if share := float64(bad) / n; math.Abs(share/c.Allowed-1) > 0.05 {
			t.Errorf("%+v: a share of %.4f at the capacity", c, share)
		}
		if c.Floor == 0 && math.Abs(float64(bad)/float64(runs)/max(c.LoadCluster, 1/(1-c.Allowed))-1) > 0.1 {
			t.Errorf("%+v: clusters of %.1f", c, float64(bad)/float64(runs))
		}
	}
}
