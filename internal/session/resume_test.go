package session

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/config"
	"pitot/internal/results/marks"
	"pitot/internal/results/record"
	"pitot/internal/results/rundir"
)

// listener keeps what it is told.
type listener struct{ lines []string }

func (l *listener) ShowLine(line string) { l.lines = append(l.lines, line) }
func (l *listener) Update(Status)        {}

// A session whose journal is damaged goes on with the points before the damage,
// says which those are and why the others are measured again, and comes to the same
// as one that was never damaged. The damaged journal stays as it was.
func TestResumeOfDamagedJournal(t *testing.T) {
	t.Parallel()
	whole := filepath.Join(t.TempDir(), "whole")
	s := open(t, sweeping(t, whole))
	want := loads(t, s, 2, 5, 3)
	run, err := s.Close(false, nil)
	if err != nil {
		t.Fatal(err)
	}
	killed := filepath.Join(t.TempDir(), "killed")
	s = open(t, sweeping(t, killed))
	loads(t, s, 2, 5, 3)
	_ = s.journal.Close()
	s.Target.Close()
	s.letGo()
	journal, err := os.ReadFile(filepath.Join(killed, rundir.Journal))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	keptMany := map[int]bool{}
	bits := 12
	if testing.Short() {
		bits = 6
	}
	for i := range bits {
		at, bit := (2*i+r.IntN(2))*len(journal)/(2*bits), r.IntN(8)
		// Behind the header of a frame that begins there: where the header of the last
		// frame is lost, nothing says which point that was of.
		if frame := bytes.LastIndex(journal[:min(at+4, len(journal))], []byte("PJ1\n")); at-frame < 92 {
			at = frame + 92
		}
		bad := bytes.Clone(journal)
		bad[at] ^= 1 << bit
		t.Run(fmt.Sprintf("bit %d of byte %d", bit, at), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			if err := os.CopyFS(dir, os.DirFS(killed)); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, rundir.Journal), bad, 0o644); err != nil {
				t.Fatal(err)
			}
			lines := &listener{}
			s, err := (&Runner{Verb: config.VerbSweep, Progress: lines}).Open(context.Background(), sweeping(t, dir))
			if err != nil {
				t.Fatal(err)
			}
			kept := len(s.resumed.points)
			keptMany[kept] = true
			if d := cmp.Diff(want, loads(t, s, 2, 5, 3)); d != "" {
				t.Error(d)
			}
			again, err := s.Close(false, nil)
			if err != nil || len(again.Damage) > 0 || again.Verdict != run.Verdict {
				t.Errorf("%v, damage %v, verdict %s and not %s", err, again.Damage, again.Verdict, run.Verdict)
			}
			if again.Target.API != run.Target.API || again.Environment.Stamps != run.Environment.Stamps {
				t.Errorf("target %+v, environment %+v", again.Target, again.Environment)
			}
			if left, err := os.ReadFile(filepath.Join(dir, rundir.Damaged)); err != nil || !bytes.Equal(left, bad) {
				t.Errorf("the damaged journal is not what it was: %v", err)
			}
			message := strings.Join(lines.lines, "\n")
			for _, line := range []string{
				fmt.Sprintf("resuming %s: %d points are there, %d measured again", dir, kept, 3-kept),
				fmt.Sprintf("note: point %d is measured again: the journal is damaged there", kept+1),
				"note: the damaged journal stays too",
				[]string{"; so are points 2 to 3 after it", "; so is point 3 after it", ""}[min(kept, 2)],
			} {
				if !strings.Contains(message, line) {
					t.Errorf("nothing says %q:\n%s", line, message)
				}
			}
		})
	}
	if !keptMany[0] || !keptMany[1] || !keptMany[2] {
		t.Errorf("kept so many points: %v", keptMany)
	}
}

// What ends a run stands with its last point, also where nothing new was measured.
func TestEndIsOfTheLastPoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	for _, rates := range [][]float64{{2, 5, 3}, {2, 5, 3}} {
		s := open(t, sweeping(t, dir))
		loads(t, s, rates...)
		if _, err := s.Close(false, nil); err != nil {
			t.Fatal(err)
		}
		var ends []int32
		for m, err := range record.Marks(dir) {
			if err != nil {
				t.Fatal(err)
			}
			if m.Name == marks.NameEnd {
				ends = append(ends, m.Point)
			}
		}
		if !slices.Equal(ends, []int32{2}) {
			t.Errorf("ends of points %v", ends)
		}
	}
}
