package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pitot/internal/data/result"
	"pitot/internal/data/rundir"
	"pitot/internal/measure/judge"
	"pitot/internal/report"
	"pitot/internal/report/export"
)

// golden are the runs that older programs left, by version. What is there is
// never written anew: it must be readable for ever.
const golden = "../data/testdata"

// now is the version of what a run's directory holds at present.
const now = "v2"

// With -update the results of the golden runs of the present version are made
// again from their records, as when something was added to a result; where there are
// none, they are measured. Those of older versions are never touched: when a format
// changes, the present version becomes one of them.
func TestUpdateGolden(t *testing.T) {
	if !*update {
		t.Skip("only with -update")
	}
	if !strings.HasSuffix(result.Schema, "/"+now) {
		t.Fatalf("the present version is %s: give it a directory of its own", result.Schema)
	}
	if _, err := os.Stat(filepath.Join(golden, now)); errors.Is(err, fs.ErrNotExist) {
		measureGolden(t)
	}
	for name, to := range map[string]string{"killed-run": "killed-run.expected.json", "ended-run": "ended-run.expected.json", "run": "run/run.json"} {
		dir := copied(t, now, name)
		if err := os.Remove(filepath.Join(dir, rundir.Result)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if code, _, stderr := pitot(t, "report", dir); code != Done && code != Invalid {
			t.Fatal(stderr)
		}
		keepGolden(t, os.DirFS(dir), rundir.Result, to)
	}
}

// keepGolden copies a file to one of the golden runs of the present version.
func keepGolden(t *testing.T, from fs.FS, file, to string) {
	t.Helper()
	data, err := fs.ReadFile(from, file)
	path := filepath.Join(golden, now, to)
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

// measureGolden makes the golden runs of the present version.
func measureGolden(t *testing.T) {
	base := t.TempDir()
	measure := func(name string, during func(dir string)) fs.FS {
		dir := filepath.Join(base, name)
		done := make(chan string)
		go func() {
			code, _, stderr := pitot(t, "run", "mock:llama-3.1-8b@h100", "--rate", "20", "--duration", "5s", "--warmup", "1s", "--input", "64", "--output", "16",
				"--slo", "p99 ttft<200ms, p99 tpot<50ms", "--seed", "9", "--quiet", "--out", dir)
			done <- fmt.Sprintf("%s: exit code %d\n%s", name, code, stderr)
		}()
		for i := 0; rundir.Look(dir) < rundir.Measured; i++ {
			if i > 1000 {
				t.Fatal(name, "has no journal")
			}
			time.Sleep(10 * time.Millisecond)
		}
		during(dir)
		t.Log(<-done)
		return os.DirFS(dir)
	}
	run := measure("run", func(string) {})
	for _, file := range []string{rundir.Config, rundir.Marks, rundir.Requests, rundir.Chunks, rundir.Telemetry} {
		keepGolden(t, run, file, "run/"+file)
	}
	keepJournal := func(name string, from fs.FS) {
		keepGolden(t, from, rundir.Config, name+"/"+rundir.Config)
		keepGolden(t, from, rundir.Journal, name+"/"+rundir.Journal)
	}
	// The journal of a run that was killed is what it is at any moment.
	measure("killed-run", func(dir string) {
		time.Sleep(4500 * time.Millisecond)
		keepJournal("killed-run", os.DirFS(dir))
	})
	// A directory in the way of a file keeps a run from being finished.
	keepJournal("ended-run", measure("ended-run", func(dir string) {
		if err := os.Mkdir(filepath.Join(dir, rundir.Chunks), 0o755); err != nil {
			t.Fatal(err)
		}
	}))
}

// pitot runs the command line in this process.
func pitot(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = Run(context.Background(), args, strings.NewReader(""), &out, &err)
	return code, out.String(), err.String()
}

// copied is a golden run in a directory of the test's own.
func copied(t *testing.T, version, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(golden, version, name))); err != nil {
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

// rounded takes numbers for equal that differ in their last digits: version 1
// rounded at every step of a sum.
var rounded = cmpopts.EquateApprox(1e-11, 0)

// corrected puts what later versions say of a run where they corrected what version 1
// did, as CHANGELOG has it.
//
// Few samples at a load of a sweep or a search are no flag of the whole.
func corrected(run *result.Run) {
	run.Verdict = result.Valid
	for i := range run.Points {
		p := &run.Points[i]
		counted := slices.DeleteFunc(slices.Clone(p.Checks), func(c result.Check) bool { return p.Excused(&c, run.Capacity.Carries(i)) })
		if v := judge.Verdict(counted); v == result.Invalid || run.Verdict == result.Valid {
			run.Verdict = v
		}
		if why, ok := reworded[p.Throughput.Why]; ok {
			p.Throughput.Why = why
		}
	}
}

// reworded are reasons that earlier programs gave in other words.
var reworded = map[string]string{
	"nobody counted the output tokens of some answers": "the output tokens of some answers were not counted",
	"nobody counted the input tokens of some requests": "the input tokens of some requests were not counted",
}

// withoutIntervals leaves out which values have an interval, how wide it is, and which
// are marked approximate: later versions found that those of version 1 held less often
// than they said.
func withoutIntervals(runs ...*result.Run) {
	of := func(m *result.Metrics) {
		for _, d := range m.List {
			if d.Summary != nil {
				d.Few, d.CI95, d.NoInterval = nil, nil, nil
			}
		}
	}
	for _, run := range runs {
		for i := range run.Points {
			p := &run.Points[i]
			of(&p.Metrics)
			for _, c := range p.Classes {
				of(&c.Metrics)
			}
			p.Throughput.CI95, p.Throughput.NoInterval = nil, ""
			if p.Throughput.Late != nil {
				p.Throughput.Late.CI95 = nil
			}
			if p.SLO != nil {
				p.SLO.CI95, p.SLO.NoInterval = nil, ""
			}
		}
	}
}

// withoutNewMetrics leaves out what a run has of metrics of which the earlier one has
// neither values nor a reason why there are none: the program did not know them.
func withoutNewMetrics(earlier, run *result.Run) {
	of := func(was, now *result.Metrics) {
		for i := range now.List {
			d := &now.List[i]
			if was.SummaryOf(d.Name) == nil && was.Undefined[d.Key] == "" {
				d.Summary = nil
				delete(now.Undefined, d.Key)
			}
		}
	}
	if earlier.Curve != nil && run.Curve != nil && earlier.Curve.Crossing == nil {
		run.Curve.Crossing = nil
	}
	for i := range min(len(earlier.Points), len(run.Points)) {
		was, now := &earlier.Points[i], &run.Points[i]
		of(&was.Metrics, &now.Metrics)
		if old := was.Cost; old != nil && now.Cost != nil && old.Basis == "" { // of a program that knew rents alone, and what output costs
			now.Cost = &result.Cost{USDPerGPUHour: now.Cost.USDPerGPUHour, USDPerMOutput: now.Cost.USDPerMOutput, USDPerMGoodOutput: now.Cost.USDPerMGoodOutput}
		}
		if was.SLO != nil && now.SLO != nil && was.SLO.Violations == nil {
			now.SLO.Violations = nil
		}
		for name, c := range now.Classes {
			old := was.Classes[name]
			of(&old.Metrics, &c.Metrics)
		}
		for _, x := range []struct{ was, now *map[string]float64 }{{&was.Window, &now.Window}, {&was.Server, &now.Server}} {
			maps.DeleteFunc(*x.now, func(field string, _ float64) bool { _, known := (*x.was)[field]; return !known })
			if len(*x.now) == 0 && *x.was == nil {
				*x.now = nil
			}
		}
	}
}

// sameChecksOf does it of all points of a run.
func sameChecksOf(t *testing.T, want, now *result.Run) {
	t.Helper()
	for i := range min(len(want.Points), len(now.Points)) {
		sameChecks(t, &want.Points[i], &now.Points[i])
	}
}

// sameChecks holds the checks that are made of a point now against those that
// version 1 made, in the words that both are shown in, and takes them out of the
// points. Version 1 did not know every check of today: those must pass.
func sameChecks(t *testing.T, want, now *result.Point) {
	t.Helper()
	for i := range now.Checks {
		has := report.BuildCheck(&now.Checks[i])
		k := slices.IndexFunc(want.Checks, func(c result.Check) bool { return c.Name == has.Name })
		if k < 0 {
			if has.Status != result.Pass {
				t.Errorf("a check that version 1 did not make: %+v", has)
			}
			continue
		}
		had := report.BuildCheck(&want.Checks[k])
		had.Value, had.Advice = inTodaysWords(had.Value), inTodaysWords(had.Advice)
		if d := cmp.Diff(had, has); d != "" {
			t.Errorf("checked then (-), now (+):\n%s", d)
		}
		want.Checks = slices.Delete(want.Checks, k, k+1)
	}
	for _, c := range want.Checks {
		t.Errorf("not checked any more: %s", c.Name)
	}
	want.Checks, now.Checks = nil, nil
}

// inTodaysWords puts a sentence of a check of version 1, which kept sentences, into
// the words of today.
func inTodaysWords(sentence string) string {
	sentence = regexp.MustCompile(`window of ([0-9.]+), one takes`).ReplaceAllString(sentence, "$1 in the window, one takes")
	sentence = strings.ReplaceAll(sentence, "as far apart as chance brings them", "a difference within chance")
	return strings.ReplaceAll(sentence, "looks alike", "looks the same")
}

// A killed run is finished to what the program of its time made of it.
func TestGoldenKilled(t *testing.T) {
	for _, name := range []string{"v1/killed-run", "v1/killed-sweep", "v2/killed-run", "v2/ended-run"} {
		t.Run(name, func(t *testing.T) {
			version, name := filepath.Split(name)
			dir := copied(t, version, name)
			code, _, stderr := pitot(t, "report", dir)
			if code != Done && code != Invalid {
				t.Errorf("exit code %d\n%s", code, stderr)
			}
			want, now := decoded(t, filepath.Join(golden, version, name+".expected.json")), decoded(t, filepath.Join(dir, rundir.Result))
			corrected(want)
			withoutIntervals(want, now)
			withoutNewMetrics(want, now)
			want.Sent = now.Sent // version 1 did not count it
			sameChecksOf(t, want, now)
			if d := cmp.Diff(want, now, rounded); d != "" {
				t.Errorf("expected (-), now (+):\n%s", d)
			}
		})
	}
}

// A finished run is shown, exported, compared and predicted as it was.
func TestGoldenFinished(t *testing.T) {
	if testing.Short() {
		t.Skip("slow under the race detector")
	}
	for _, name := range []string{"v1/run", "v1/sweep", "v1/find", "v2/run"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			version, name := filepath.Split(name)
			dir := copied(t, version, name)
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
			if want.Findings == nil { // a program before they were kept: what limits the run is worked out now
				shown.Findings = nil
			}
			if d := cmp.Diff(want, shown, rounded); d != "" {
				t.Errorf("kept (-), shown (+):\n%s", d)
			}
			ends := codeOfRun(want)
			if code != ends {
				t.Errorf("report: exit code %d, not %d", code, ends)
			}
			code, stdout, stderr = pitot(t, "report", dir)
			if code != ends || !strings.Contains(stdout, string(want.Verdict)) || !strings.Contains(stdout, "saved in") || stderr != "" {
				t.Errorf("report: exit code %d\n%s\n%s", code, stdout, stderr)
			}
			if now, err := os.ReadFile(filepath.Join(dir, rundir.Result)); err != nil || !bytes.Equal(now, kept) {
				t.Errorf("report wrote another result: %v", err)
			}
			exportAll(t, dir, want, ends)
			code, stdout, stderr = pitot(t, "compare", dir, copied(t, version, name))
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
			again := decoded(t, filepath.Join(dir, rundir.Result))
			if name == "find" {
				again.Capacity = want.Capacity // version 1 kept it nowhere else
			}
			corrected(want)
			withoutIntervals(want, again)
			withoutNewMetrics(want, again)
			want.Sent = again.Sent // version 1 did not count it
			if want.Findings == nil {
				again.Findings = nil
			}
			sameChecksOf(t, want, again)
			if d := cmp.Diff(want, again, rounded); d != "" {
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

// Runs of version 1 are two sides like any others, and a baseline of theirs is one.
func TestGoldenCompared(t *testing.T) {
	t.Parallel()
	run, killed := copied(t, "v1", "run"), copied(t, "v1", "killed-run")
	if code, _, stderr := pitot(t, "report", killed); code != Done {
		t.Fatal(stderr)
	}
	code, stdout, stderr := pitot(t, "compare", run, killed, "--allow", "workloads")
	if code != Done || !strings.Contains(stdout, "ttft") && !strings.Contains(stdout, "TTFT") {
		t.Errorf("exit code %d\n%s\n%s", code, stdout, stderr)
	}
	base := filepath.Join(golden, "v1", "baseline.json")
	fromBase, stdoutBase, stderr := pitot(t, "compare", base, killed, "--allow", "workloads")
	if fromBase != Done {
		t.Errorf("exit code %d\n%s\n%s", fromBase, stdoutBase, stderr)
	}
}

// The twin does a run of version 1 again, and is fitted to it.
func TestGoldenPredicted(t *testing.T) {
	if testing.Short() {
		t.Skip("slow under the race detector, and has one goroutine")
	}
	t.Parallel()
	run := copied(t, "v1", "run")
	code, stdout, stderr := pitot(t, "predict", "llama-3.1-8b@h100", "--run", run)
	if code != Done || !strings.Contains(stdout, "TTFT") {
		t.Errorf("predict --run: exit code %d\n%s\n%s", code, stdout, stderr)
	}
	for _, name := range []string{"sweep", "find"} { // load by load
		code, stdout, stderr := pitot(t, "predict", "llama-3.1-8b@h100", "--run", copied(t, "v1", name))
		if code != Done || !strings.Contains(stdout, "at 16.2 requests/s") || strings.Contains(stdout, " 0      –") {
			t.Errorf("predict --run of a %s: exit code %d\n%s\n%s", name, code, stdout, stderr)
		}
	}
	profile := filepath.Join(t.TempDir(), "fitted.yaml")
	code, stdout, stderr = pitot(t, "fit", "llama-3.1-8b@h100", run, "--out", profile)
	if _, err := os.Stat(profile); code != Done || err != nil {
		t.Errorf("fit: exit code %d\n%s\n%s", code, stdout, stderr)
	}
}

// A run of version 1 goes on: its points are kept, the others measured.
func TestGoldenResumed(t *testing.T) {
	if testing.Short() {
		t.Skip("simulated, and slow under the race detector")
	}
	for name, verb := range map[string]string{"sweep": "sweep", "find": "find", "killed-sweep": "sweep"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := copied(t, "v1", name)
			if name == "killed-sweep" { // version 1 kept the values of headers, which are secret now
				path := filepath.Join(dir, rundir.Config)
				text, err := os.ReadFile(path)
				if err == nil {
					err = os.WriteFile(path, bytes.Replace(text, []byte("\ninput:"), []byte("\nheader: X-Team=blue\ninput:"), 1), 0o644)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			code, _, stderr := pitot(t, verb, "--config", filepath.Join(dir, rundir.Config), "--out", dir, "--resume")
			if code != Done && code != Invalid && code != SLOMissed {
				t.Fatalf("exit code %d\n%s", code, stderr)
			}
			from := filepath.Join(golden, "v1", name, rundir.Result)
			if name == "killed-sweep" {
				from = filepath.Join(golden, "v1", name+".expected.json")
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
			withoutIntervals(want, now)
			withoutNewMetrics(want, now)
			for i := range kept {
				sameChecks(t, &want.Points[i], &now.Points[i])
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
