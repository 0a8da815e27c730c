package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/sim/serve"
)

// Signals, kills and dying servers need processes: pitot here is this test
// binary under another name, on PATH (see TestMain).

// limit is how long a process may take for anything: beyond it, it hangs.
const limit = 3 * time.Minute

// process is a pitot of its own.
type process struct {
	*exec.Cmd
	out, err bytes.Buffer
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	return startProgram(t, "pitot", args...)
}

// startProgram starts one of the programs of [TestMain].
func startProgram(t *testing.T, name string, args ...string) *process {
	t.Helper()
	race, value := raceExit()
	p := &process{Cmd: exec.Command(name, args...)}
	p.Env = append(os.Environ(), "OPENAI_API_KEY=sk-secret-0123456789", race+"="+value, "GOGC=") // as much memory as users have it take
	p.Stdout, p.Stderr = &p.out, &p.err
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(limit, func() { _ = p.Process.Kill() })
	t.Cleanup(func() {
		late.Stop()
		_ = p.Process.Kill()
		_, _ = p.Process.Wait()
	})
	return p
}

// code waits for the end and gives the exit code, -1 if a signal ended it.
func (p *process) code() int {
	err := p.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		return -2
	}
	return 0
}

// finished says whether a run came to its end; on a busy machine any
// measurement may be INVALID.
func finished(code int) bool { return code == Done || code == Invalid }

// recording waits until a run has flushed some of its records.
func recording(t *testing.T, dir string) {
	t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if s, err := os.Stat(filepath.Join(dir, "journal.pitot")); err == nil && s.Size() > 20_000 {
			return
		}
	}
	t.Fatalf("nothing was recorded in %s", dir)
}

// load is a run that would go on for long.
func load(dir string) []string {
	return []string{"run", "mock:fixed?ttft=5ms&itl=2ms", "--rate", "200", "--duration", "60s", "--warmup", "0s",
		"--output", "16", "--input", "20", "--header", "X-Api-Key=hd-secret-1", "--out", dir}
}

// validRunIn is the result in a run's directory, as the schema has it.
func validRunIn(t *testing.T, dir string) *result.Run {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	run, err := validRun(data)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// written reads a run's result and looks for secrets in all of its files.
func written(t *testing.T, dir string) *result.Run {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if data, err := os.ReadFile(f); err != nil || bytes.Contains(data, []byte("secret")) && !strings.HasSuffix(f, "config.yaml") ||
			bytes.Contains(data, []byte("secret-")) {
			t.Errorf("%s holds a secret, or %v", f, err)
		}
	}
	run := validRunIn(t, dir)
	if len(run.Points) != 1 || run.Points[0].Requests.OK == 0 {
		t.Fatalf("nothing that was measured is there: %+v", run)
	}
	return run
}

// The first Ctrl-C ends the load; what was measured is reported.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	p := start(t, load(dir)...)
	recording(t, dir)
	_ = p.Process.Signal(os.Interrupt)
	if code := p.code(); code != Interrupted {
		t.Errorf("exit code %d\n%s", code, p.err.String())
	}
	if !strings.Contains(p.out.String(), "Interrupted: this is what had been measured") || !strings.Contains(p.err.String(), "stopping") {
		t.Errorf("%s%s", p.out.String(), p.err.String())
	}
	run := written(t, dir)
	if !run.Interrupted || run.Recovered || run.Points[0].Outcome != "ok" {
		t.Errorf("interrupted %v, recovered %v, outcome %s", run.Interrupted, run.Recovered, run.Points[0].Outcome)
	}
	if code, out, _ := here("report", dir); !finished(code) || !strings.Contains(out, "interrupted") {
		t.Errorf("shown again: %d\n%s", code, out)
	}
}

// The second one leaves at once; the records are on disk.
func TestInterruptedTwice(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	p := start(t, load(dir)...)
	recording(t, dir)
	_ = p.Process.Signal(os.Interrupt)
	_ = p.Process.Signal(syscall.SIGTERM) // another signal: two of one kind may be merged
	if code := p.code(); code != Interrupted {
		t.Errorf("exit code %d\n%s", code, p.err.String())
	}
	code, out, errs := here("report", dir)
	if !finished(code) {
		t.Errorf("report: %d\n%s%s", code, out, errs)
	}
	if run := written(t, dir); !run.Interrupted && !run.Recovered {
		t.Error("the run looks whole")
	}
}

// A killed run is finished by report.
func TestKilled(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	p := start(t, load(dir)...)
	recording(t, dir)
	_ = p.Process.Kill()
	if code := p.code(); code != -1 {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat(filepath.Join(dir, "run.json")); err == nil {
		t.Error("a killed run has a result")
	}
	code, out, errs := here("report", dir)
	if !finished(code) || !strings.Contains(out, "Recovered") || !strings.Contains(errs, "finishing the run in "+dir) {
		t.Errorf("report: %d\n%s%s", code, out, errs)
	}
	run := written(t, dir)
	if !run.Recovered || run.Interrupted {
		t.Errorf("interrupted %v, recovered %v", run.Interrupted, run.Recovered)
	}
	if code, again, errs := here("report", dir); !finished(code) || again != out || errs != "" {
		t.Errorf("shown again it differs: %d, %s\n%s\n%s", code, errs, out, again)
	}
	exportedAll(t, run, dir)
}

// Of two that go on with one session at once, one does and the other is told so;
// what the one holds is free again when it is killed.
func TestResumedTwice(t *testing.T) {
	t.Parallel()
	p, stdin, _, url := startMock(t, "--ttft", "2ms", "--itl", "1ms")
	dir := filepath.Join(t.TempDir(), "run")
	sweep := []string{"sweep", url, "--loads", "50,100", "--requests", "30", "--warmup", "0s", "--input", "20", "--output", "4", "--seed", "1", "--wait-ready", "1m", "--resume", "--out", dir}
	if code, _, errs := here(sweep...); !finished(code) {
		t.Fatalf("%d, %s", code, errs)
	}
	whole := func() []byte {
		data, err := os.ReadFile(filepath.Join(dir, "run.json"))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	before := whole()
	_ = stdin.Close() // each waits for the server from now on, with what it recalled
	_ = p.code()
	type ended struct{ one, other *process }
	ends := make(chan ended, 2)
	a, b := start(t, sweep...), start(t, sweep...)
	codes := map[*process]int{}
	var mu sync.Mutex
	for _, x := range []ended{{a, b}, {b, a}} {
		go func() {
			code := x.one.code()
			mu.Lock()
			codes[x.one] = code
			mu.Unlock()
			ends <- x
		}()
	}
	first := <-ends
	_ = first.other.Process.Kill()
	<-ends
	if codes[first.one] != Usage || !strings.Contains(first.one.err.String(), "the run in "+dir+" is still going on") || codes[first.other] != -1 {
		t.Errorf("exit codes %v\n%s\n%s", codes, a.err.String(), b.err.String())
	}
	if !bytes.Equal(before, whole()) {
		t.Error("what was there was changed")
	}
	release, err := rundir.LockDir(dir)
	if err != nil {
		t.Fatalf("after a kill: %v", err)
	}
	release()
}

// exportedAll says that each request that a run counts is in what is exported.
func exportedAll(t *testing.T, run *result.Run, dir string) {
	t.Helper()
	table, metrics := filepath.Join(t.TempDir(), "requests.csv"), filepath.Join(t.TempDir(), "metrics.txt")
	if code, _, errs := here("report", dir, "--export", "csv-requests="+table, "--export", "openmetrics="+metrics); !finished(code) {
		t.Fatalf("%d, %s", code, errs)
	}
	text, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	inWindow, outcome := slices.Index(rows[0], "in_window"), slices.Index(rows[0], "outcome")
	found := map[string]int{}
	for _, row := range rows[1:] {
		if row[inWindow] == "true" {
			found[row[outcome]]++
			found["due"]++
		}
	}
	exposed, err := os.ReadFile(metrics)
	if err != nil {
		t.Fatal(err)
	}
	r := run.Points[0].Requests
	for name, n := range map[string]int{"due": r.Due, "ok": r.OK, "failed": r.Failed, "cut": r.Cut, "unsent": r.Unsent} {
		if found[name] != n {
			t.Errorf("%d requests %s in the table, %d in the result", found[name], name, n)
		}
		if line := fmt.Sprintf(`outcome="%s"} %d`, name, n); name != "due" && !strings.Contains(string(exposed), line) {
			t.Errorf("no %s in\n%s", line, exposed)
		}
	}
	if r.Cut == 0 {
		t.Errorf("nothing was under way: %+v", r)
	}
}

// A server that dies under load is a result, not an error.
func TestServerDies(t *testing.T) {
	t.Parallel()
	mock := exec.Command("pitot", "mock", "--port", "0", "--ttft", "5ms", "--itl", "2ms")
	out, err := mock.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := mock.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = mock.Process.Kill()
		_ = mock.Wait()
	})
	late := time.AfterFunc(limit, func() { _ = mock.Process.Kill() })
	defer late.Stop()
	line, err := bufio.NewReader(out).ReadString('\n')
	url, _, ok := strings.Cut(strings.TrimPrefix(line, "serving on "), " ")
	if err != nil || !ok {
		t.Fatalf("%q, %v", line, err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	p := start(t, "run", url, "--rate", "200", "--duration", "10s", "--warmup", "0s", "--output", "16", "--input", "20", "--out", dir)
	recording(t, dir)
	_ = mock.Process.Kill()
	// When most of the load came after the end, the target failed.
	if code := p.code(); !finished(code) && code != TargetFailed {
		t.Errorf("exit code %d\n%s", code, p.err.String())
	}
	run := written(t, dir)
	r := run.Points[0].Requests
	if r.Errors["connect"] == 0 || r.Failed == 0 {
		t.Errorf("%+v", r)
	}
	if o := run.Points[0].Outcome; o != "degraded" && o != "failing" {
		t.Errorf("outcome %s", o)
	}
	if !strings.Contains(p.out.String(), " connect: ") {
		t.Errorf("%s", p.out.String())
	}
}

// The embedded server ends well on a signal, or with the standard input of
// who started it, and says what it served.
func TestMockEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(p *process, stdin io.Closer){
		"signal": func(p *process, _ io.Closer) { _ = p.Process.Signal(os.Interrupt) },
		"stdin":  func(_ *process, stdin io.Closer) { _ = stdin.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			p, stdin, r, _ := startMock(t)
			end(p, stdin)
			rest, _ := io.ReadAll(r)
			if code := p.code(); code != Done || len(rest) == 0 {
				t.Errorf("exit code %d, %q", code, rest)
			}
		})
	}
}

// startMock starts a mock that ends with its standard input, and gives what it
// says from then on and where it serves.
func startMock(t *testing.T, flags ...string) (p *process, stdin io.Closer, stdout *bufio.Reader, url string) {
	t.Helper()
	p = &process{Cmd: exec.Command("pitot", append([]string{"mock", "--port", "0", "--until-eof"}, flags...)...)}
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(limit, func() { _ = p.Process.Kill() })
	t.Cleanup(func() { late.Stop() })
	stdout = bufio.NewReader(out)
	var started serve.Started
	line, err := stdout.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &started)
	}
	if err != nil || !strings.HasPrefix(started.URL, "http://127.0.0.1:") {
		t.Fatalf("%q, %v", line, err)
	}
	return p, in, stdout, started.URL
}

// Answers under way when the server is stopped, by a signal or the end of its
// input, have the time that --drain gives them, and are cut after it.
func TestMockDrain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ttft   string // after which an answer that is not cut is whole
		drain  string
		signal bool
		whole  bool
	}{"time": {"300ms", "1m", false, true}, "time after SIGTERM": {"300ms", "1m", true, true}, "none": {"30s", "0s", false, false}} {
		t.Run(name, func(t *testing.T) {
			p, stdin, _, url := startMock(t, "--ttft", c.ttft, "--drain", c.drain)
			// The header of a stream comes at once, its first token later.
			r, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"x","stream":true,"max_tokens":2}`))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Body.Close()
			if c.signal {
				_ = p.Process.Signal(syscall.SIGTERM)
			} else {
				_ = stdin.Close()
			}
			body, err := io.ReadAll(r.Body)
			if whole := err == nil && strings.HasSuffix(string(body), "data: [DONE]\n\n"); whole != c.whole {
				t.Errorf("%v after %q", err, body)
			}
			if code := p.code(); code != Done {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// here runs the command line in this process.
func here(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Run(context.Background(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}
