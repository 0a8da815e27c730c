package cli

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
)

// damaged is a journal in which something went wrong, and what.
type damaged struct {
	what string
	data []byte
}

// damages gives ways in which a journal is damaged, of all kinds.
func damages(data []byte, n int) (list []damaged) {
	r := rand.New(rand.NewPCG(1, uint64(len(data))))
	for i := range n {
		at := r.IntN(len(data))
		length := min([]int{1, 16, 500, 5_000}[r.IntN(4)], len(data)-at)
		d := damaged{data: bytes.Clone(data)}
		switch i % 4 {
		case 0:
			d.what = fmt.Sprintf("bit %d of byte %d", i%8, at)
			d.data[at] ^= 1 << (i % 8)
		case 1:
			d.what = fmt.Sprintf("%d zeros from byte %d on", length, at)
			clear(d.data[at : at+length])
		case 2:
			d.what = fmt.Sprintf("%d bytes gone at byte %d", length, at)
			d.data = slices.Delete(d.data, at, at+length)
		case 3:
			d.what = fmt.Sprintf("cut at byte %d", at)
			d.data = d.data[:at]
		}
		list = append(list, d)
	}
	return list
}

// A damaged journal is finished as far as it can be read: it says what is lost, it
// stays as it was, and a point that lost records is INVALID. One that was cut is
// that of a run that was killed earlier.
func TestDamagedJournals(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow under the race detector, and has nothing at the same time")
	}
	const n = 8
	for _, name := range []string{"killed-run", "killed-sweep", "ended-run"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := filepath.Join(golden, name)
			whole, err := os.ReadFile(filepath.Join(from, rundir.Journal))
			if err != nil {
				t.Fatal(err)
			}
			dir := copied(t, name)
			if code, _, stderr := pitot(t, "report", dir); code != Done && code != Invalid {
				t.Fatalf("exit code %d\n%s", code, stderr)
			}
			sound := decoded(t, filepath.Join(dir, rundir.Result))
			salvaged := 0
			for _, d := range damages(whole, n) {
				if bytes.Equal(d.data, whole) {
					continue
				}
				if finishDamaged(t, from, d, sound, strings.HasPrefix(d.what, "cut")) {
					salvaged++
				}
			}
			if salvaged < n*6/10 {
				t.Errorf("%d of %d journals were salvaged", salvaged, n)
			}
		})
	}
}

// finishDamaged has a damaged journal finished and says whether points came of it.
func finishDamaged(t *testing.T, from string, d damaged, sound *result.Run, cut bool) bool {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, rundir.Journal), d.data, 0o644); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := pitot(t, "report", dir)
	output := fmt.Sprintf("%s: exit code %d\n%s\n%s", d.what, code, stdout, stderr)
	if strings.Contains(stderr, "bug") || strings.Contains(stderr, "panic") {
		t.Errorf("a bug: %s", output)
	}
	if code == Usage { // nothing to finish: the journal stays
		if kept, err := os.ReadFile(filepath.Join(dir, rundir.Journal)); err != nil || !bytes.Equal(kept, d.data) {
			t.Errorf("the journal is not what it was: %v, %s", err, output)
		}
		if !strings.Contains(stderr, "hint:") {
			t.Errorf("no hint: %s", output)
		}
		return false
	}
	run := decoded(t, filepath.Join(dir, rundir.Result))
	lost := run.Unplanned > 0
	for _, d := range run.Damage {
		lost = lost || !d.Exact || d.Requests+d.Chunks+d.Others > 0
	}
	kept, err := os.ReadFile(filepath.Join(dir, rundir.Damaged))
	switch {
	case cut && (len(run.Damage) > 0 || err == nil):
		t.Errorf("a journal that was cut is no damaged one: %s", output)
	case !cut && len(run.Damage) > 0 && (err != nil || !bytes.Equal(kept, d.data)):
		t.Errorf("the damaged journal was not kept: %v, %s", err, output)
	case lost && (run.Verdict != result.Invalid || code != Invalid):
		t.Errorf("verdict %s with loss: %s", run.Verdict, output)
	case lost && !strings.Contains(stdout, "he journal is damaged"):
		t.Errorf("nothing is said: %s", output)
	}
	for i, p := range run.Points {
		r := p.Requests
		if r.Due != r.OK+r.Failed+r.Cut+r.Unsent {
			t.Errorf("point %d: %+v: %s", i, r, d.what)
		}
	}
	// An end of the journal that is gone ends the run earlier. A point without loss is what it was.
	for i := range min(len(run.Points), len(sound.Points)) {
		was, now := &sound.Points[i], &run.Points[i]
		if now.Verdict != result.Invalid && now.Seconds.Window == was.Seconds.Window && now.Seconds.Warmup == was.Seconds.Warmup && now.Requests.Due != was.Requests.Due {
			t.Errorf("point %d: %d due, %d of the sound journal: %s", i, now.Requests.Due, was.Requests.Due, d.what)
		}
	}
	again, _, stderr := pitot(t, "report", dir)
	if again != code {
		t.Errorf("exit code %d the second time: %s\n%s", again, output, stderr)
	}
	return len(run.Points) > 0
}
