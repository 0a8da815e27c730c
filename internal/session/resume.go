package session

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"pitot/internal/metrics"
	"pitot/internal/results/marks"
	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/say"
	"pitot/internal/userfile"
)

// A session that goes on has the points that it had, as far as they are whole. What
// is measured next follows from all before it: so the first point that is not
// whole is measured again, and all behind it.

// readPoints reads the points that the directory has.
func (s *Session) readPoints() error {
	p := s.plan
	if err := rundir.CheckLive(p.Out); err != nil {
		return StillGoingOn(p.Out)
	}
	o, err := readOutline(p.Out)
	if err != nil {
		return err
	}
	if p.SeedSet && p.Seed != o.run.Seed {
		return say.Errorf("the run in %s has seed %d", p.Out, o.run.Seed).WithHint("leave --seed out, or choose another place with --out")
	}
	s.head = marks.EncodeHead(&o.run)
	p.Seed, s.alone, s.resumed.serverStart = o.run.Seed, o.alone, o.run.Target.Server[metric.ProcessStart]
	if had, want := verbOf(o.run.Command), verbOf(s.runner.Command); had != want {
		return say.Errorf("the run in %s was made by pitot %s, not by pitot %s", p.Out, had, want).WithHint("choose another place with --out")
	}
	was, err := userfile.Read(filepath.Join(p.Out, rundir.Config), userfile.MostText)
	if err != nil {
		return say.Errorf("the run in %s cannot be resumed: %v", p.Out, err).WithHint("choose another place with --out")
	}
	if !bytes.Equal(was, p.YAML(s.runner.planVerb())) {
		return say.Errorf("the run in %s was planned otherwise, see its %s", p.Out, rundir.Config).WithHint("give the same flags, or choose another place with --out")
	}
	points := o.pointCount()
	if first, ok := o.setups[0]; ok {
		p.SeedSet = first.Seeded // config.yaml has the seed, whoever chose it
	}
	s.resumed.begun = points
	why := ""
	for i := int32(0); i < points; i++ {
		if why = o.unfitReason(i, points); why != "" {
			break
		}
		setup := endedSetup(o.setups[i], o.ends[i])
		o.setups[i] = setup
		s.resumed.points = append(s.resumed.points, earlier{setup: setup})
	}
	metrics.SettleWindows(o.setups, record.Rows(p.Out))
	for i := range s.resumed.points {
		s.resumed.points[i].fold = metrics.NewFoldIn(s.sharedStore(), o.setups[int32(i)])
	}
	for f, err := range record.Frames(p.Out) {
		if err != nil {
			break // reported by read, or after the points that count
		}
		switch {
		case f.Point == record.Probing:
			s.resumed.probes += int64(len(f.Rows))
		case f.Point >= 0 && int(f.Point) < len(s.resumed.points):
			s.resumed.points[f.Point].fold.Add(f)
		}
	}
	if n := len(s.resumed.points); n > 0 && s.resumed.points[n-1].fold.Point().Outcome == result.Failing {
		s.resumed.points = s.resumed.points[:n-1] // perhaps the target died, which may be why the run is resumed
		why = "its target failed"
	}
	if why == "" && o.end != nil && !o.end.Interrupted {
		s.resumed.concluded = concludedOrNil(o.found)
	}
	s.latest = int32(max(0, len(s.resumed.points)-1))
	s.tellResumed(o, int(points), why)
	return nil
}

// concludedOrNil returns what a search found that went to its end, nil if it did not.
func concludedOrNil(found *result.Capacity) *result.Capacity {
	if found == nil || found.Unfinished {
		return nil
	}
	return found
}

// pointCount returns the number of points in the records.
func (o *outline) pointCount() (n int32) {
	for i := range o.setups {
		n = max(n, i+1)
	}
	for i := range o.ends {
		n = max(n, i+1)
	}
	for i := range o.damage {
		if !o.damage[i].IsNone() {
			n = max(n, o.damage[i].LastPoint+1)
		}
	}
	return n
}

// unfitReason says why one of so many points is measured again, "" if it is whole.
func (o *outline) unfitReason(i, points int32) string {
	var lost record.Damage
	exact, damaged := true, false
	for k := range o.damage {
		d := &o.damage[k]
		if i < d.FirstPoint || i > d.LastPoint || d.IsNone() {
			continue
		}
		damaged = true
		exact = exact && d.Exact && d.FirstPoint == d.LastPoint
		lost.Rows, lost.Chunks = lost.Rows+d.Rows, lost.Chunks+d.Chunks
		lost.Samples, lost.Marks = lost.Samples+d.Samples, lost.Marks+d.Marks
	}
	_, planned := o.setups[i]
	_, over := o.ends[i]
	switch {
	case damaged && exact:
		return fmt.Sprintf("the journal is damaged there: %s requests, %s chunks and %s other records are lost",
			say.Count(lost.Rows), say.Count(lost.Chunks), say.Count(lost.Samples+lost.Marks))
	case damaged:
		return "the journal is damaged there, or near: an unknown number of records is lost"
	case !planned:
		return "what was planned of it is lost"
	case !over:
		return "it did not come to its end"
	case o.end != nil && o.end.Interrupted && i == points-1:
		return "it was stopped"
	}
	return ""
}

// tellResumed says which of so many points are kept, and why the others are not.
func (s *Session) tellResumed(o *outline, points int, why string) {
	kept, dir := len(s.resumed.points), s.plan.Out
	switch {
	case points == 0:
		s.runner.showLine(fmt.Sprintf("resuming %s: no point had begun", dir))
		return
	case kept == points:
		s.runner.showLine(fmt.Sprintf("resuming %s: %d points are there", dir, kept))
	default:
		s.runner.showLine(fmt.Sprintf("resuming %s: %d points are there, %d measured again", dir, kept, points-kept))
		line := fmt.Sprintf("note: point %d is measured again: %s", kept+1, why)
		if kept+2 == points {
			line += fmt.Sprintf("; so is point %d after it", points)
		} else if kept+1 < points {
			line += fmt.Sprintf("; so are points %d to %d after it", kept+2, points)
		}
		s.runner.showLine(line)
	}
	if _, err := os.Stat(filepath.Join(dir, rundir.Journal)); err == nil && len(o.damage) > 0 {
		s.runner.showLine("note: the damaged journal stays too, under another name")
	}
}

// verbOf is that of a command line.
func verbOf(command []string) string {
	if len(command) > 1 {
		return command[1]
	}
	return ""
}

// checkWritable makes sure that records can be taken.
func (s *Session) checkWritable() (err error) {
	if s.journal == nil {
		s.journal, err = record.Reopen(s.Dir, s.keepsFrame)
	}
	return err
}

// keepsFrame says which frames of an earlier session stay: those of whole points,
// and what was planned.
func (s *Session) keepsFrame(f *record.Frame) bool {
	whole := int(f.Point) < len(s.resumed.points)
	if !whole {
		f.Chunks, f.Rows, f.Samples = nil, nil, nil
	}
	stay := f.Marks[:0]
	for _, m := range f.Marks {
		switch m.Name {
		case marks.NameRun, marks.NameAlone:
			stay = append(stay, m)
		case marks.NameEnd, marks.NameCapacity: // of the session that ends now
		case record.DamageMark: // the points that lost records are measured again
			if d, ok := record.DamageOf(&m); ok && int(d.LastPoint) < len(s.resumed.points) {
				stay = append(stay, m)
			}
		default:
			if whole {
				stay = append(stay, m)
			}
		}
	}
	f.Marks = stay
	return len(f.Chunks)+len(f.Rows)+len(f.Samples)+len(f.Marks) > 0
}
