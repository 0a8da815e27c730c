package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"pitot/internal/results/rundir"
)

// Whatever a result says follows from what is kept beside it: one that is gone, as
// after a kill at the last moment, is made again to the byte.
func TestResultMadeAgain(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("simulated, and slow under the race detector")
	}
	for name, args := range map[string][]string{
		"run":      {"run", "sim:fixed", "--rate", "20", "--duration", "3s", "--warmup", "1s"},
		"repeated": {"run", "sim:fixed", "--rate", "20", "--duration", "3s", "--warmup", "1s", "--repeat", "3"},
		"sweep":    {"sweep", "sim:llama-3.1-8b@h100", "--points", "4", "--max-load", "20", "--duration", "2s"},
		"find":     {"find", "sim:llama-3.1-8b@h100?max_num_seqs=2", "--slo", "p90 ttft<60ms", "--budget", "30s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "run")
			code, _, stderr := pitot(t, append(args, "--seed", "7", "--input", "64", "--output", "8", "--quiet", "--out", dir)...)
			path := filepath.Join(dir, rundir.Result)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("exit code %d\n%s", code, stderr)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			again, _, stderr := pitot(t, "report", dir)
			if again != code {
				t.Errorf("exit code %d, then %d\n%s", code, again, stderr)
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
				t.Errorf("another result: %v", err)
			}
		})
	}
}

// finishedRun finishes the killed run of a directory and gives its result.
func finishedRun(t *testing.T, dir string) []byte {
	t.Helper()
	code, _, stderr := pitot(t, "report", dir)
	data, err := os.ReadFile(filepath.Join(dir, rundir.Result))
	if err != nil {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	return data
}

// A run that was killed while it was finished is finished as if it had not been,
// whatever was left half written, and nothing of that stays.
func TestKilledWhileItFinishes(t *testing.T) {
	want := finishedRun(t, copied(t, "killed-run"))
	dir := copied(t, "killed-run")
	for _, name := range []string{rundir.Requests, rundir.Chunks, rundir.Telemetry, rundir.Marks, rundir.Result} {
		for _, left := range []string{name, name + ".0123456789abcdef.tmp"} {
			if left == rundir.Result || left == rundir.Marks {
				continue // these get their names when they are whole
			}
			if err := os.WriteFile(filepath.Join(dir, left), []byte("PAR1 half"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := finishedRun(t, dir); !bytes.Equal(got, want) {
		t.Error("another result")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); left != nil {
		t.Errorf("left: %q", left)
	}
}

// Files of a directory that came from somewhere else may be links: finishing its
// run writes through none of them.
func TestLinksAreNotFollowed(t *testing.T) {
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := copied(t, "killed-run")
	for _, name := range []string{rundir.Requests, rundir.Chunks, rundir.Telemetry, rundir.Marks, rundir.Page} {
		for _, link := range []string{name, name + ".tmp"} {
			if err := os.Symlink(victim, filepath.Join(dir, link)); err != nil {
				t.Skip(err) // not every system lets everybody make them
			}
		}
	}
	finishedRun(t, dir)
	if data, err := os.ReadFile(victim); err != nil || string(data) != "precious" {
		t.Errorf("%q, %v", data, err)
	}
}
