//go:build unix

package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"pitot/internal/results/record"
	"pitot/internal/results/result"
)

// limited starts a pitot of its own under limits of a shell.
func limited(t *testing.T, limits string, args ...string) *process {
	t.Helper()
	race, value := raceExit()
	p := &process{Cmd: exec.Command("sh", append([]string{"-c", limits + ` && exec pitot "$@"`, "pitot"}, args...)...)}
	p.Env = append(p.Environ(), race+"="+value)
	p.Stdout, p.Stderr = &p.out, &p.err
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(limit, func() { _ = p.Process.Kill() })
	t.Cleanup(func() { late.Stop(); _ = p.Process.Kill() })
	return p
}

// slow is a server that answers well, after a time.
func slow(t *testing.T, after time.Duration) (url string) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(after)
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// A load that takes more files than there can be is refused before anything is
// sent or written, with the highest that can be; that one can.
func TestTooFewFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("processes")
	}
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	run := func(limits string, users int) (*process, int) {
		p := limited(t, limits, "run", "mock:fixed?ttft=1ms&itl=1ms", "--input", "8", "--output", "2", "--concurrency", fmt.Sprint(users), "--duration", "100ms", "--warmup", "0s", "--out", dir)
		return p, p.code()
	}
	p, code := run("ulimit -n 256", 1000)
	stderr := p.err.String()
	if code != Usage || !strings.Contains(stderr, "1,000 connections at once take more files than the 256 that this process may have open") || !strings.Contains(stderr, "ulimit -n") {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	if _, err := filepath.EvalSymlinks(dir); err == nil {
		t.Error("a refused start left its directory")
	}
	most := 0
	if m := regexp.MustCompile(`put on less: ([0-9,]+) users are the highest load possible`).FindStringSubmatch(stderr); m == nil {
		t.Fatal(stderr)
	} else if _, err := fmt.Sscan(strings.ReplaceAll(m[1], ",", ""), &most); err != nil || most < 10 {
		t.Fatal(stderr)
	}
	if p, code := run("ulimit -n 256", most); !finished(code) || strings.Contains(p.out.String(), record.ErrOwnFiles) {
		t.Errorf("the highest load of %d: exit code %d\n%s\n%s", most, code, p.out.String(), p.err.String())
	}
	// A low soft limit is raised to the hard one.
	dir = filepath.Join(t.TempDir(), "run")
	if p, code := run("ulimit -Sn 64", 100); !finished(code) || strings.Contains(p.out.String(), record.ErrOwnFiles) {
		t.Errorf("soft limit: exit code %d\n%s\n%s", code, p.out.String(), p.err.String())
	}
}

// An open loop whose requests pile up runs out of files all the same: that is
// the client's failure, and no fault of the server.
func TestFilesRunOut(t *testing.T) {
	if testing.Short() {
		t.Skip("processes")
	}
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	p := limited(t, "ulimit -n 256", "run", slow(t, 800*time.Millisecond), "--no-probe", "--model", "m", "--rate", "400", "--duration", "1500ms", "--warmup", "0s", "--input", "8", "--out", dir)
	if code := p.code(); code != Invalid {
		t.Errorf("exit code %d\n%s\n%s", code, p.out.String(), p.err.String())
	}
	r := written(t, dir)
	e := r.Points[0].Requests.Errors
	if e[record.ErrOwnFiles] == 0 || e[record.ErrConnect] > 0 || r.Points[0].Outcome != "ok" {
		t.Errorf("%v", e)
	}
	if out := p.out.String(); r.Verdict != result.Invalid || !strings.Contains(out, "client limits") || !strings.Contains(out, "ulimit -n") {
		t.Errorf("%s\n%s", r.Verdict, out)
	}
}
