package session

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/config"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/say"
	"pitot/internal/workload"
)

// sweeping is a plan whose points a test chooses.
func sweeping(t *testing.T, out string) *config.Plan {
	t.Helper()
	p := config.Default()
	p.Spec, p.Out, p.Seed, p.SeedSet, p.Resume = "sim:fixed", out, 7, true, true
	p.Input, p.Ask.Output = workload.FixedLength(16), workload.FixedLength(8)
	return &p
}

func open(t *testing.T, p *config.Plan) *Session {
	t.Helper()
	r := &Runner{Verb: config.VerbSweep}
	s, err := r.Open(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func loads(t *testing.T, s *Session, rates ...float64) (points []result.Point) {
	t.Helper()
	for _, r := range rates {
		m, err := s.Measure(context.Background(), pointSpec(s, PointSpec{Load: config.Load{Rate: r, Requests: 200}, Stage: "curve"}))
		if err != nil {
			t.Fatal(err)
		}
		if m.Index != int(s.next)-1 {
			t.Errorf("index %d", m.Index)
		}
		points = append(points, m.Point)
	}
	return points
}

// A session that was left, in whatever state, goes on as if it had not been:
// same points, same files.
func TestSessionResumes(t *testing.T) {
	t.Parallel()
	whole := filepath.Join(t.TempDir(), "whole")
	s := open(t, sweeping(t, whole))
	want := loads(t, s, 2, 5, 3)
	if _, err := s.Close(false, nil); err != nil {
		t.Fatal(err)
	}
	for name, leave := range map[string]func(*Session){
		"killed": func(s *Session) {
			_ = s.journal.Flush()
			_ = s.journal.Close()
			s.Target.Close()
			s.letGo() // as the system does
		},
		"ended": func(s *Session) { _, _ = s.Close(false, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			s := open(t, sweeping(t, dir))
			loads(t, s, 2, 5)
			leave(s)
			s = open(t, sweeping(t, dir))
			got := loads(t, s, 2, 5, 3)
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			run, err := s.Close(false, nil)
			if err != nil || len(run.Points) != 3 {
				t.Fatal(err)
			}
			for _, file := range []string{"requests.parquet", "chunks.parquet"} {
				a, _ := os.ReadFile(filepath.Join(whole, file))
				b, _ := os.ReadFile(filepath.Join(dir, file))
				if string(a) != string(b) {
					t.Errorf("%s differs", file)
				}
			}
		})
	}
}

func TestSessionResumeRefuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	s := open(t, sweeping(t, dir))
	loads(t, s, 2)
	if _, err := s.Close(false, nil); err != nil {
		t.Fatal(err)
	}
	r := &Runner{Verb: config.VerbSweep}
	p := sweeping(t, dir)
	p.Seed = 8
	if _, err := r.Open(context.Background(), p); err == nil {
		t.Error("another seed is taken")
	}
	p = sweeping(t, dir)
	p.Ask.Output = workload.FixedLength(9)
	if _, err := r.Open(context.Background(), p); err == nil {
		t.Error("another plan is taken")
	}
	p = sweeping(t, dir)
	p.Resume = false
	if _, err := r.Open(context.Background(), p); err == nil {
		t.Error("a directory that is not empty is taken")
	}
	s = open(t, sweeping(t, dir))
	if _, err := s.Measure(context.Background(), pointSpec(s, PointSpec{Load: config.Load{Rate: 3, Requests: 200}, Stage: "curve"})); err == nil {
		t.Error("another load is given the points of this one")
	}
	_, _ = s.Close(false, nil)
}

// What a search begins with is asked once: a target in real time would answer
// otherwise the second time, and all that follows from it would differ.
func TestSessionRemembersAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	plan := func() *config.Plan {
		p := sweeping(t, dir)
		p.Spec, p.NoProbe = "mock:fixed?ttft=2ms&itl=1ms", false
		return p
	}
	s := open(t, plan())
	alone, err := s.MeasureAlone(context.Background())
	if err != nil || alone <= 0 {
		t.Fatal(alone, err)
	}
	if _, err := s.Measure(context.Background(), withSize(s, 100, 20)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Close(false, nil); err != nil {
		t.Fatal(err)
	}
	s = open(t, plan())
	if again, err := s.MeasureAlone(context.Background()); again != alone || err != nil {
		t.Errorf("%v, then %v, %v", alone, again, err)
	}
	_, _ = s.Close(false, nil)
}

// A resume that is refused leaves the result as it was.
func TestSessionRefusedKeepsTheResult(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	s := open(t, sweeping(t, dir))
	loads(t, s, 2, 5)
	run, err := s.Close(false, nil)
	if err != nil {
		t.Fatal(err)
	}
	run.Curve = &result.Curve{Over: "rate", Points: []int{0, 1}}
	if err := Save(dir, run); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(filepath.Join(dir, "run.json"))
	s = open(t, sweeping(t, dir))
	_, err = s.Measure(context.Background(), pointSpec(s, PointSpec{Load: config.Load{Rate: 3, Requests: 200}, Stage: "curve"}))
	if err == nil {
		t.Fatal("another load is given the points of this one")
	}
	if run, err := s.Close(false, err); run != nil || err == nil {
		t.Error("a refused resume has a result")
	}
	if after, _ := os.ReadFile(filepath.Join(dir, "run.json")); string(after) != string(before) {
		t.Error("run.json was changed")
	}
}

// Of two sessions in one directory the second is refused, also while the first
// has nothing new yet, and so is whoever would finish the run under it.
func TestOneSessionADirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	s := open(t, sweeping(t, dir))
	refused := func(when string) {
		t.Helper()
		var mistake *say.Error
		r := &Runner{Verb: config.VerbSweep}
		if _, err := r.Open(context.Background(), sweeping(t, dir)); !errors.As(err, &mistake) || mistake.Hint == "" || mistake.Msg != "the run in "+dir+" is still going on, or another process finishes it" {
			t.Errorf("%s: %v", when, err)
		}
		if _, err := Finish(dir, func(string) {}); !errors.Is(err, rundir.ErrLive) {
			t.Errorf("%s, finished: %v", when, err)
		}
	}
	refused("a first one is open")
	loads(t, s, 2)
	if _, err := s.Close(false, nil); err != nil {
		t.Fatal(err)
	}
	s = open(t, sweeping(t, dir))
	refused("one that goes on has nothing new")
	loads(t, s, 2, 5)
	refused("it measured")
	if _, err := s.Close(false, nil); err != nil {
		t.Fatal(err)
	}
	s = open(t, sweeping(t, dir))
	if run, err := s.Close(false, nil); err != nil || len(run.Points) != 2 {
		t.Errorf("%+v, %v", run, err)
	}
}

// A frame of probes whose header is damaged is of no point: no request of a load is
// made up for it, wherever it stands.
func TestDamagedProbes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	p := sweeping(t, dir)
	p.Out, p.Resume, p.Spec, p.NoProbe = filepath.Join(dir, "whole"), false, "mock:fixed?ttft=2ms&itl=1ms", false
	s := open(t, p)
	if _, err := s.Measure(context.Background(), pointSpec(s, PointSpec{Load: config.Load{Rate: 200, Requests: 20}, Stage: "curve"})); err != nil {
		t.Fatal(err)
	}
	_ = s.journal.Close()
	s.Target.Close()
	s.letGo()
	journal, err := os.ReadFile(filepath.Join(p.Out, rundir.Journal))
	if err != nil {
		t.Fatal(err)
	}
	sound, err := Finish(p.Out, func(string) {})
	if err != nil || sound.Sent.Probes == nil || sound.Sent.Probes.Requests == 0 {
		t.Fatal(sound, err)
	}
	// Where frames stand is found by their magic; which are of probes their headers say.
	damaged := 0
	for at := 0; at < len(journal); {
		next := bytes.Index(journal[at+1:], []byte("PJ1\n"))
		if int32(binary.LittleEndian.Uint32(journal[at+12:])) == record.Probing {
			bad := bytes.Clone(journal)
			bad[at+70] ^= 4
			out := filepath.Join(t.TempDir(), "run")
			if err := os.CopyFS(out, os.DirFS(p.Out)); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{rundir.Result, rundir.Requests, rundir.Chunks, rundir.Telemetry, rundir.Marks} {
				_ = os.Remove(filepath.Join(out, name))
			}
			if err := os.WriteFile(filepath.Join(out, rundir.Journal), bad, 0o644); err != nil {
				t.Fatal(err)
			}
			run, err := Finish(out, func(string) {})
			if err != nil {
				t.Fatal(err)
			}
			lost := int64(0)
			for _, d := range run.Damage {
				lost += d.Requests
			}
			if lost == 0 || run.Verdict != result.Invalid {
				t.Errorf("frame at byte %d: %d requests lost, verdict %s", at, lost, run.Verdict)
			}
			if d := cmp.Diff(sound.Points[0].Requests, run.Points[0].Requests); d != "" {
				t.Errorf("frame at byte %d:\n%s", at, d)
			}
			damaged++
		}
		if next < 0 {
			break
		}
		at += 1 + next
	}
	if damaged == 0 {
		t.Error("no frame of probes")
	}
}

// A run whose directory is deleted under way ends with an error that says so.
func TestDeletedUnderWay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	s := open(t, sweeping(t, dir))
	loads(t, s, 2)
	if err := os.RemoveAll(dir); err != nil {
		t.Skip(err) // an open file cannot be removed there
	}
	run, err := s.Close(false, nil)
	var records *RecordsError
	if run != nil || !errors.Is(err, record.ErrInterference) || !errors.As(err, &records) || !strings.Contains(records.Hint(), "measure again") {
		t.Errorf("%+v, %v", run, err)
	}
}

// pointSpec returns the plan's load with the size of another.
func pointSpec(s *Session, spec PointSpec) PointSpec {
	l := spec.Load
	spec.Load = s.plan.Load
	spec.Rate, spec.Concurrency, spec.Requests, spec.Duration, spec.Warmup = l.Rate, l.Concurrency, l.Requests, l.Duration, l.Warmup
	return spec
}

// withSize returns the plan's load at a rate, with a number of requests, as a point of a sweep.
func withSize(s *Session, rate float64, requests int64) PointSpec {
	return pointSpec(s, PointSpec{Load: config.Load{Rate: rate, Requests: requests}, Stage: "curve"})
}
