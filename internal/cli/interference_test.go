//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pitot/internal/data/result"
	"pitot/internal/data/rundir"
)

// Whatever something else does to a run's directory while it is measured: the load
// is stopped, what was measured is kept and INVALID, also in the directory itself,
// and a sentence says where.
func TestInterference(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(dir string) error
		says string
	}{
		"deleted": {os.RemoveAll, `the records in \S+ were deleted or moved while they were written: what was measured until then is there again; the load was stopped`},
		"moved": {func(dir string) error { return os.Rename(dir, dir+"-moved") },
			`the records in \S+ were deleted or moved while they were written: what was measured until then is there again; the load was stopped`},
		"truncated": {func(dir string) error { return os.Truncate(filepath.Join(dir, rundir.Journal), 7000) },
			`the journal in \S+ was made shorter by something else while it was written: \d+ bytes are gone, the rest is kept; the load was stopped`},
		"emptied": {func(dir string) error { return os.Truncate(filepath.Join(dir, rundir.Journal), 0) }, `was made shorter by something else`},
		"replaced": {func(dir string) error {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
			return os.WriteFile(dir, []byte("not a directory"), 0o644)
		}, `the records in \S+ were deleted or moved while they were written: what was measured until then is in \S+/pitot-run-\d+; the load was stopped`},
	} {
		t.Run(name, func(t *testing.T) {
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			dir := filepath.Join(t.TempDir(), "run")
			p := start(t, load(dir)...)
			recording(t, dir)
			if err := c.harm(dir); err != nil {
				t.Fatal(err)
			}
			code := p.code()
			stderr := strings.Join(strings.Fields(p.err.String()), " ")
			if code != Invalid || !regexp.MustCompile(c.says).MatchString(stderr) || strings.Contains(stderr, "bug") {
				t.Errorf("exit code %d\n%s\n%s", code, p.out.String(), p.err.String())
			}
			if name == "replaced" {
				saved, err := filepath.Glob(filepath.Join(temp, "pitot-run-*"))
				if err != nil || len(saved) != 1 {
					t.Fatalf("%v, %v", saved, err)
				}
				dir = saved[0]
			}
			run := written(t, dir)
			if run.Verdict != result.Invalid || run.Points[0].Verdict != result.Invalid {
				t.Errorf("verdict %s, of the point %s", run.Verdict, run.Points[0].Verdict)
			}
			if r := run.Points[0].Requests; r.Due != r.OK+r.Failed+r.Cut+r.Unsent {
				t.Errorf("%+v", r)
			}
			if code, out, errs := here("report", dir); code != Invalid || !strings.Contains(out, "something else deleted, moved or shortened them") {
				t.Errorf("shown again: %d\n%s\n%s", code, out, errs)
			}
		})
	}
}
