package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pitot/internal/report/export"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
)

// golden are stored runs in the present form, one of each kind.
const golden = "../results/testdata"

// With -update the results of the golden runs are made again from their records, as when
// something was added to a result. Where there are no records, they are measured.
func TestUpdateGolden(t *testing.T) {
	if !*update {
		t.Skip("only with -update")
	}
	if _, err := os.Stat(filepath.Join(golden, "run")); errors.Is(err, fs.ErrNotExist) {
		measureGolden(t)
	}
	for name, to := range map[string]string{
		"killed-run": "killed-run.expected.json", "killed-sweep": "killed-sweep.expected.json", "ended-run": "ended-run.expected.json",
		"run": "run/run.json", "sweep": "sweep/run.json", "find": "find/run.json",
	} {
		dir := copied(t, name)
		if err := os.Remove(filepath.Join(dir, rundir.Result)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if code, _, stderr := pitot(t, "report", dir); code != Done && code != Invalid && code != SLOMissed {
			t.Fatal(stderr)
		}
		keepGolden(t, os.DirFS(dir), rundir.Result, to)
	}
	base := filepath.Join(t.TempDir(), "baseline.json")
	if code, _, stderr := pitot(t, "compare", copied(t, "run"), "--save-baseline", base); code != Done {
		t.Fatal(stderr)
	}
	keepGolden(t, os.DirFS(filepath.Dir(base)), "baseline.json", "baseline.json")
}

// keepGolden copies a file to one of the golden runs.
func keepGolden(t *testing.T, from fs.FS, file, to string) {
	t.Helper()
	data, err := fs.ReadFile(from, file)
	path := filepath.Join(golden, to)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = os.WriteFile(path, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// measureGolden makes the golden runs.
func measureGolden(t *testing.T) {
	base := t.TempDir()
	served := []string{"mock:llama-3.1-8b@h100", "--warmup", "1s", "--input", "64", "--output", "16", "--slo", "p99 ttft<200ms, p99 tpot<50ms"}
	simulated := []string{"sim:llama-3.1-8b@h100", "--input", "128", "--output", "16"}
	measure := func(name, verb string, during func(dir string), args ...string) fs.FS {
		dir := filepath.Join(base, name)
		done := make(chan string)
		go func() {
			code, _, stderr := pitot(t, append([]string{verb, "--seed", "9", "--quiet", "--out", dir}, args...)...)
			done <- fmt.Sprintf("%s: exit code %d\n%s", name, code, stderr)
		}()
		for i := 0; rundir.StateOf(dir) < rundir.Measured; i++ {
			if i > 1000 {
				t.Fatal(name, "has no journal")
			}
			time.Sleep(10 * time.Millisecond)
		}
		during(dir)
		t.Log(<-done)
		return os.DirFS(dir)
	}
	finished := func(name, verb string, args ...string) {
		run := measure(name, verb, func(string) {}, args...)
		for _, file := range []string{rundir.Config, rundir.Marks, rundir.Requests, rundir.Chunks, rundir.Telemetry} {
			keepGolden(t, run, file, name+"/"+file)
		}
	}
	finished("run", "run", append(served, "--rate", "20", "--duration", "5s")...)
	finished("sweep", "sweep", append(simulated, "--points", "4", "--max-load", "40", "--duration", "5s", "--slo", "chat")...)
	finished("find", "find", append(simulated, "--slo", "p90 ttft<60ms", "--budget", "1m")...)
	keepJournal := func(name string, from fs.FS) {
		keepGolden(t, from, rundir.Config, name+"/"+rundir.Config)
		keepGolden(t, from, rundir.Journal, name+"/"+rundir.Journal)
	}
	// The journal of a run that was killed is what it is at any moment.
	killed := func(name, verb string, after time.Duration, args ...string) {
		measure(name, verb, func(dir string) {
			time.Sleep(after)
			keepJournal(name, os.DirFS(dir))
		}, append(served, args...)...)
	}
	killed("killed-run", "run", 4500*time.Millisecond, "--rate", "20", "--duration", "5s")
	killed("killed-sweep", "sweep", 10*time.Second, "--points", "4", "--max-load", "60", "--duration", "3s")
	// A directory in the way of a file keeps a run from being finished.
	keepJournal("ended-run", measure("ended-run", "run", func(dir string) {
		if err := os.Mkdir(filepath.Join(dir, rundir.Chunks), 0o755); err != nil {
			t.Fatal(err)
		}
	}, append(served, "--rate", "20", "--duration", "5s")...))
}

// pitot runs the command line in this process.
func pitot(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = Run(context.Background(), args, strings.NewReader(""), &out, &err)
	return code, out.String(), err.String()
}

// copied is a golden run in a directory of the test's own.
func copied(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(golden, name))); err != nil {
		t.Fatal(err)
	}
	return dir
}

func decoded(t *testing.T, path string) *result.Run {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	run, err := result.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// rounded takes numbers for equal that differ in their last digits: sums may be in another order.
var rounded = cmpopts.EquateApprox(1e-11, 0)

// A killed run is finished to what was made of it when it was stored.
func TestGoldenKilled(t *testing.T) {
	for _, name := range []string{"killed-run", "killed-sweep", "ended-run"} {
		t.Run(name, func(t *testing.T) {
			dir := copied(t, name)
			code, _, stderr := pitot(t, "report", dir)
			if code != Done && code != Invalid && code != SLOMissed {
				t.Errorf("exit code %d\n%s", code, stderr)
			}
			want, now := decoded(t, filepath.Join(golden, name+".expected.json")), decoded(t, filepath.Join(dir, rundir.Result))
			if d := cmp.Diff(want, now, rounded); d != "" {
				t.Errorf("expected (-), now (+):\n%s", d)
			}
		})
	}
}

// A finished run is shown, exported, compared and predicted as it was.
func TestGoldenFinished(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow under the race detector")
	}
	for _, name := range []string{"run", "sweep", "find"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := copied(t, name)
			kept, err := os.ReadFile(filepath.Join(dir, rundir.Result))
			if err != nil {
				t.Fatal(err)
			}
			code, stdout, stderr := pitot(t, "report", dir, "--format", "json")
			if stderr != "" {
				t.Errorf("report: exit code %d\n%s", code, stderr)
			}
			shown, err := result.Decode([]byte(stdout))
			if err != nil {
				t.Fatal(err)
			}
			want, err := result.Decode(kept)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, shown, rounded); d != "" {
				t.Errorf("kept (-), shown (+):\n%s", d)
			}
			ends := definiteCode(want)
			if code != ends {
				t.Errorf("report: exit code %d, not %d", code, ends)
			}
			code, stdout, stderr = pitot(t, "report", dir)
			if code != ends || !strings.Contains(stdout, string(want.Verdict)) || !strings.Contains(stdout, "report.html") || stderr != "" {
				t.Errorf("report: exit code %d\n%s\n%s", code, stdout, stderr)
			}
			if now, err := os.ReadFile(filepath.Join(dir, rundir.Result)); err != nil || !bytes.Equal(now, kept) {
				t.Errorf("report wrote another result: %v", err)
			}
			exportAll(t, dir, want, ends)
			code, stdout, stderr = pitot(t, "compare", dir, copied(t, name))
			if compared := !strings.Contains(stdout, "not compared with"); compared != (code == Done) || !compared && code != Invalid || !strings.Contains(stdout, "have a run in common") {
				t.Errorf("compare: exit code %d\n%s\n%s", code, stdout, stderr)
			}
			// The records alone make the same result again.
			if err := os.Remove(filepath.Join(dir, rundir.Result)); err != nil {
				t.Fatal(err)
			}
			if code, _, stderr = pitot(t, "report", dir); code != ends {
				t.Errorf("report of the records: exit code %d\n%s", code, stderr)
			}
			if d := cmp.Diff(want, decoded(t, filepath.Join(dir, rundir.Result)), rounded); d != "" {
				t.Errorf("kept (-), made again (+):\n%s", d)
			}
		})
	}
}

// exportAll writes a run in every format. Some are of one load, and refuse many.
func exportAll(t *testing.T, dir string, run *result.Run, ends int) {
	t.Helper()
	to := t.TempDir()
	args := []string{"report", dir}
	for _, f := range export.Formats() {
		asked := "--export=" + f.Name + "=" + filepath.Join(to, f.Name)
		if !strings.HasPrefix(f.Name, "aiperf") || len(run.Points) == 1 {
			args = append(args, asked)
		} else if code, _, stderr := pitot(t, "report", dir, asked); !strings.Contains(stderr, "aiperf") {
			t.Errorf("export %s: exit code %d\n%s", f.Name, code, stderr)
		}
	}
	if code, _, stderr := pitot(t, args...); code != ends {
		t.Errorf("%q: exit code %d\n%s", args, code, stderr)
	}
	for _, f := range export.Formats() {
		path := filepath.Join(to, f.Name)
		one := strings.HasPrefix(f.Name, "aiperf") && len(run.Points) > 1
		if info, err := os.Stat(path); one != (err != nil) || !one && info.Size() == 0 {
			t.Errorf("export %s: %v", f.Name, err)
		}
		data, _ := os.ReadFile(path)
		switch f.Name {
		case "csv":
			if n := bytes.Count(data, []byte("\n")); n != 1+len(run.Points) {
				t.Errorf("export csv: %d lines for %d points", n, len(run.Points))
			}
		case "csv-requests":
			due := 0
			for _, p := range run.Points {
				due += p.Requests.Due
			}
			if n := bytes.Count(data, []byte("\n")); n < 1+due {
				t.Errorf("export csv-requests: %d lines for %d requests due", n, due)
			}
		}
	}
}

// Stored runs are two sides like any others, and a baseline of one is a side.
func TestGoldenCompared(t *testing.T) {
	t.Parallel()
	run, killed := copied(t, "run"), copied(t, "killed-run")
	if code, _, stderr := pitot(t, "report", killed); code != Done {
		t.Fatal(stderr)
	}
	code, stdout, stderr := pitot(t, "compare", run, killed, "--allow", "workloads")
	if code != Done || !strings.Contains(stdout, "ttft") && !strings.Contains(stdout, "TTFT") {
		t.Errorf("exit code %d\n%s\n%s", code, stdout, stderr)
	}
	base := filepath.Join(golden, "baseline.json")
	fromBase, stdoutBase, stderr := pitot(t, "compare", base, killed, "--allow", "workloads")
	if fromBase != Done {
		t.Errorf("exit code %d\n%s\n%s", fromBase, stdoutBase, stderr)
	}
}

// The twin does a stored run again, and is fitted to it.
func TestGoldenPredicted(t *testing.T) {
	if testing.Short() {
		t.Skip("slow under the race detector, and has one goroutine")
	}
	t.Parallel()
	run := copied(t, "run")
	code, stdout, stderr := pitot(t, "predict", "llama-3.1-8b@h100", "--run", run)
	if code != Done || !strings.Contains(stdout, "TTFT") {
		t.Errorf("predict --run: exit code %d\n%s\n%s", code, stdout, stderr)
	}
	for _, name := range []string{"sweep", "find"} { // load by load
		code, stdout, stderr := pitot(t, "predict", "llama-3.1-8b@h100", "--run", copied(t, name))
		if code != Done || strings.Count(stdout, "requests/s") < 2 || strings.Contains(stdout, " 0      –") {
			t.Errorf("predict --run of a %s: exit code %d\n%s\n%s", name, code, stdout, stderr)
		}
	}
	profile := filepath.Join(t.TempDir(), "fitted.yaml")
	code, stdout, stderr = pitot(t, "fit", "llama-3.1-8b@h100", run, "--out", profile)
	if _, err := os.Stat(profile); code != Done || err != nil {
		t.Errorf("fit: exit code %d\n%s\n%s", code, stdout, stderr)
	}
}

// A stored run goes on: its points are kept, the others measured.
func TestGoldenResumed(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("simulated, and slow under the race detector")
	}
	for name, verb := range map[string]string{"sweep": "sweep", "find": "find", "killed-sweep": "sweep"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := copied(t, name)
			code, _, stderr := pitot(t, verb, "--config", filepath.Join(dir, rundir.Config), "--out", dir, "--resume")
			if code != Done && code != Invalid && code != SLOMissed {
				t.Fatalf("exit code %d\n%s", code, stderr)
			}
			from := filepath.Join(golden, name, rundir.Result)
			if name == "killed-sweep" {
				from = filepath.Join(golden, name+".expected.json")
			}
			want := decoded(t, from)
			now := decoded(t, filepath.Join(dir, rundir.Result))
			kept := len(want.Points)
			if name == "killed-sweep" {
				kept-- // the one under way is measured again
			}
			if len(now.Points) < kept {
				t.Fatalf("%d points of %d", len(now.Points), kept)
			}
			for i := range kept {
				if d := cmp.Diff(want.Points[i], now.Points[i], rounded); d != "" {
					t.Errorf("point %d, kept (-), now (+):\n%s", i, d)
				}
			}
			if name == "find" {
				if d := cmp.Diff(want.Capacity, now.Capacity); d != "" {
					t.Errorf("capacity, kept (-), now (+):\n%s", d)
				}
			}
		})
	}
}
