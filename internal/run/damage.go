package run

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/data/rundir"
	"pitot/internal/load"
	"pitot/internal/measure"
	"pitot/internal/plan"
	"pitot/internal/say"
)

// Where a journal is damaged, its records are read on after the damage. What is
// missing is reported and counted: a request whose record is lost was due all
// the same.

// damageOf is a damaged stretch as run.json has it.
func damageOf(d *record.Damage) result.Damage {
	seconds := func(ns *int64) *float64 {
		if ns == nil {
			return nil
		}
		s := float64(*ns) / 1e9
		return &s
	}
	return result.Damage{ // that of probes stands before the first point
		Point: int(max(d.FirstPoint, 0)), LastPoint: int(max(d.LastPoint, 0)), FromS: seconds(d.From), ToS: seconds(d.To),
		Requests: d.Rows, Chunks: d.Chunks, Others: d.Samples + d.Marks, Exact: d.Exact, Bytes: d.Bytes,
	}
}

// damaged says that records of a point may be missing, and how many rows
// certainly are.
func (o *outline) damaged(point int32) (damaged bool, rows int64) {
	for i := range o.damage {
		d := &o.damage[i]
		if point < d.FirstPoint || point > d.LastPoint || d.None() {
			continue
		}
		damaged = true
		if d.Exact && d.FirstPoint == d.LastPoint {
			rows += d.Rows
		}
	}
	return damaged, rows
}

// lostRows gives rows for the requests of a point that came to its end whose own
// are lost.
func (m *remains) lostRows(point int32, s measure.Setup, runSeed uint64, last, rows int64) (lost []record.Row) {
	requests, ok := m.scheduled(s, runSeed, point, s.T1, m.highest)
	if !ok {
		requests = m.bounded(min(last, s.T1-1))
	}
	n := int64(0)
	for q := range requests {
		if n++; !q.row {
			lost = append(lost, m.lost(q.id, point, q.due))
		}
	}
	// More than the ids between those that are left: they came behind them.
	const most = 1 << 20 // a count that is itself forged is not believed
	for id := n; int64(len(lost))+m.lostBefore < min(rows, most); id++ {
		lost = append(lost, m.lost(id, point, max(s.T0, min(last, s.T1-1))))
	}
	return lost
}

// lost is the row of a request whose own was lost: nothing is known of it but what
// its chunks tell, if any are left.
func (m *remains) lost(id int64, point int32, due int64) record.Row {
	r := record.BlankRow()
	r.ID, r.Point, r.Due, r.Done = id, point, due, due
	r.Outcome, r.Error, r.Detail = record.Cut, record.ErrLost, "its record was in a part of the journal that is damaged"
	r.Stream = m.stream
	if t, traced := m.traces[id]; traced {
		r.Done = max(due, t.last)
	}
	return r
}

// replan makes up for what was lost of the plan, from the plan's own file. Only
// that of a single load says how each point was loaded.
func (o *outline) replan(dir string) error {
	path := filepath.Join(dir, rundir.Config)
	p, err := plan.Recorded(path)
	if err != nil {
		if !o.begun {
			return say.Errorf("the journal in %s is damaged where it says what was planned, and %s does not: %v", dir, rundir.Config, err).WithHint("copy " + rundir.Config + " from where the run was measured")
		}
		return nil
	}
	if !o.begun {
		o.run, o.begun, o.headless = headOf(&p, path), true, true
	}
	if p.Rate == 0 && p.Concurrency == 0 { // of a sweep or a search
		return nil
	}
	for i := range o.damage {
		for point := max(0, o.damage[i].FirstPoint); point <= o.damage[i].LastPoint; point++ {
			if _, known := o.setups[point]; !known && int(point) < max(p.Repeat, 1) {
				o.setups[point] = plannedSetup(&p, o.run.Environment.Stamps)
			}
		}
	}
	return nil
}

// headOf is what the plan tells of a run.
func headOf(p *plan.Plan, path string) result.Run {
	started := time.Unix(0, 0)
	if info, err := os.Stat(path); err == nil {
		started = info.ModTime() // it is written when the run begins, and never again
	}
	kind, stamps := "http", "user"
	switch {
	case strings.HasPrefix(p.Spec, "sim:"):
		kind, stamps = "sim", "virtual"
	case strings.HasPrefix(p.Spec, "mock:"):
		kind = "mock"
	}
	workload := "random"
	if !p.Generated() {
		workload = "file"
	}
	described, err := json.Marshal(map[string]any{"kind": workload, "sampling": map[string]any{}})
	if err != nil {
		panic(err) // strings always marshal
	}
	return result.Run{
		Schema: result.Schema, Command: []string{}, Seed: p.Seed, Started: started.Format(time.RFC3339),
		Environment: result.Environment{Stamps: stamps},
		Target:      result.Target{Spec: p.Spec, Kind: kind, Model: p.Model, Server: map[string]string{}},
		Workload:    described, Notes: map[string]string{}, Launch: p.Launch,
	}
}

// plannedSetup is that of a point of a single load, as far as the plan tells.
func plannedSetup(p *plan.Plan, stamps string) measure.Setup {
	s := measure.Setup{
		T0: int64(p.Warmup), Load: describeLoad(&p.Ask, &p.Load), SLO: p.SLO, GPUs: p.GPUs, Price: p.Price(),
		Stamps: stamps, Requests: p.Requests, AutoWarmup: p.Warmup == plan.AutoWarmup,
	}
	if s.AutoWarmup {
		s.T0 = int64(leastWarmup)
	}
	s.T1 = s.T0 + int64(p.Duration)
	if p.Requests > 0 {
		s.T1 = load.Never
	}
	return s
}
