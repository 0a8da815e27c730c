//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
)

// The matrix of faults: what a broken or hostile server, a machine that is too
// small, a bad disk and a bad client do, each with the class that it has, what is
// kept of it, the exit code, and how much of a processor and of memory it may take.
//
// Rows with a server run a pitot of their own against a scripted one. The
// others are held by tests beside the code that stands them; those are named,
// and TestFaultsAreCovered holds that they exist.
type fault struct {
	name string
	held string // tests that hold it instead, "PACKAGE Test", separated by commas

	serve func(c net.Conn, ask *http.Request) // what a server does with a request
	tls   *tls.Config
	url   string   // in place of that server's, %s is its address
	args  []string // beside those of every row

	exits   []int
	class   string // of every request that did not end well, "" for none
	message string // in what is printed, a regular expression
	kept    func(r *result.Run, rows []record.Row) error
	noRun   bool          // it is refused before there is one
	within  time.Duration // time of a processor
	memory  int64         // most MiB of the process
	timeout string
}

const eventHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"

func delta(text string) string {
	return `data: {"choices":[{"index":0,"delta":{"content":"` + text + `"}}]}` + "\n\n"
}

const (
	finished1 = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}` + "\n\n"
	doneMark  = "data: [DONE]\n\n"
)

func usageEvent(fields string) string { return `data: {"choices":[],"usage":{` + fields + "}}\n\n" }

// answering gives a server that sends these texts and closes.
func answering(texts ...string) func(net.Conn, *http.Request) {
	return func(c net.Conn, _ *http.Request) {
		for _, s := range texts {
			if _, err := io.WriteString(c, s); err != nil {
				return
			}
		}
	}
}

// endless gives a server that sends a head, and then the rest until nobody
// reads it any more.
func endless(head, rest string) func(net.Conn, *http.Request) {
	return func(c net.Conn, _ *http.Request) {
		if _, err := io.WriteString(c, head); err != nil {
			return
		}
		block := []byte(strings.Repeat(rest, 1+64<<10/len(rest)))
		for {
			if _, err := c.Write(block); err != nil {
				return
			}
		}
	}
}

// broken gives a server that sends texts and resets the connection.
func broken(texts ...string) func(net.Conn, *http.Request) {
	return func(c net.Conn, ask *http.Request) {
		answering(texts...)(c, ask)
		_ = c.(*net.TCPConn).SetLinger(0)
	}
}

// zipped is a stream of many events in few bytes.
func zipped() string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	block := []byte(strings.Repeat(delta("y"), 1000))
	for range 100 {
		_, _ = z.Write(block)
	}
	_ = z.Close()
	return b.String()
}

// manyChoices is one event of 20,000 of them.
func manyChoices() string {
	var s strings.Builder
	s.WriteString(`data: {"choices":[`)
	for i := range 20_000 {
		if i > 0 {
			s.WriteByte(',')
		}
		fmt.Fprintf(&s, `{"index":%d,"delta":{"content":"x"}}`, i)
	}
	s.WriteString("]}\n\n")
	return s.String()
}

// rowsHave says whether every row is as it should be.
func rowsHave(what string, is func(*record.Row) bool) func(*result.Run, []record.Row) error {
	return func(_ *result.Run, rows []record.Row) error {
		for i := range rows {
			if !is(&rows[i]) {
				return fmt.Errorf("%s does not hold of %+v", what, rows[i])
			}
		}
		return nil
	}
}

// manyKept says that what came before the bound is kept.
var manyKept = rowsHave("over 30,000 events are kept", func(r *record.Row) bool { return r.Chunks > 30_000 && r.FirstToken >= 0 })

// doubted says that a usage is flagged and believed by nobody.
func doubted(r *result.Run, rows []record.Row) error {
	for _, c := range r.Points[0].Checks {
		if c.Name == result.CheckUsage && c.Status == result.Flag {
			// What comes after the end mark may come after the response has been taken, too.
			if !slices.ContainsFunc(rows, func(r record.Row) bool { return strings.HasPrefix(r.Detail, record.UsageDoubt) }) {
				return errors.New("no row says why it has no usage")
			}
			return rowsHave("no usage", func(r *record.Row) bool { return r.CompletionTokens < 0 && r.Outcome == record.OK })(nil, rows)
		}
	}
	return fmt.Errorf("no flag among %+v", r.Points[0].Checks)
}

func faults() []fault {
	failed := []int{TargetFailed}
	well := []int{Done, Invalid} // INVALID on a machine that is busy
	first := delta("a")
	return []fault{
		{name: "endless stream", serve: endless(eventHead, delta("y")),
			exits: failed, class: record.ErrOversized, message: "more events than the request allows: over 32,?800", kept: manyKept, within: 10 * time.Second, memory: 300},
		{name: "a stream without an end", serve: answering(eventHead, first),
			exits: failed, class: record.ErrUnfinished, message: "without a finish reason or an end mark", within: 5 * time.Second},
		{name: "many more tokens than asked for", serve: answering(eventHead, strings.Repeat(delta("y"), 40_000), finished1, doneMark),
			exits: failed, class: record.ErrOversized, kept: manyKept, within: 10 * time.Second, memory: 300},
		{name: "20,000 choices", serve: answering(eventHead, manyChoices(), doneMark),
			exits: failed, class: record.ErrOversized, message: "choices", within: 10 * time.Second, memory: 300},
		{name: "body at its bound, of each connection", serve: endless("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", strings.Repeat(" ", 1000)),
			exits: failed, class: record.ErrOversized, within: 15 * time.Second, memory: 600},
		{name: "event at its bound, of each connection", serve: endless(eventHead+"data: ", strings.Repeat("x", 1000)),
			exits: failed, class: record.ErrOversized, within: 15 * time.Second, memory: 600},
		{name: "gzip of events", serve: answering("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n", zipped()),
			exits: failed, class: record.ErrOversized, kept: manyKept, within: 10 * time.Second, memory: 300},
		{name: "endless interim answers", serve: endless("", "HTTP/1.1 102 Processing\r\n\r\n"),
			exits: failed, class: record.ErrOversized, message: "headers of the response exceed 64 KiB", within: 5 * time.Second, memory: 200},
		{name: "reset: while connecting", url: "http://127.0.0.1:1",
			exits: failed, message: "cannot be measured .connect.: .*refused", noRun: true, within: 5 * time.Second},
		{name: "reset: after it was accepted", serve: broken(),
			exits: failed, class: record.ErrReset, within: 5 * time.Second},
		{name: "reset: after the headers", serve: broken(eventHead),
			exits: failed, class: record.ErrReset, kept: rowsHave("headers", func(r *record.Row) bool { return r.Headers >= 0 && r.Status == 200 }), within: 5 * time.Second},
		{name: "reset: in the stream", serve: broken(eventHead, first),
			exits: failed, class: record.ErrReset, kept: rowsHave("a token", func(r *record.Row) bool { return r.Chunks == 1 && r.FirstToken >= 0 }), within: 5 * time.Second},
		{name: "reset: after the last token", serve: broken(eventHead, first, finished1, doneMark),
			exits: well, kept: rowsHave("all of it", func(r *record.Row) bool { return r.Outcome == record.OK && r.Chunks == 1 }), within: 5 * time.Second},
		{name: "TLS alert", tls: &tls.Config{ClientAuth: tls.RequireAnyClientCert}, args: []string{"--insecure"}, serve: answering(),
			exits: failed, class: record.ErrTLS, message: "tls: certificate required", within: 5 * time.Second},
		{name: "mTLS", held: "internal/target TestClientCertificate"},
		{name: "TLS handshake that hangs", url: "https://%s", serve: func(c net.Conn, _ *http.Request) {}, timeout: "500ms", args: []string{"--insecure"},
			exits: failed, message: "cannot be measured .timeout.: .*no answer to the TLS handshake in time", noRun: true, within: 5 * time.Second},
		{name: "proxy that refuses", url: "http://example.test", args: []string{"--set", "proxy=http://127.0.0.1:1"},
			exits: failed, message: "cannot be measured .proxy.: proxy 127.0.0.1:1: .*refused", noRun: true, within: 5 * time.Second},
		{name: "proxy that hangs", url: "http://example.test", args: []string{"--set", "proxy=http://%s"}, serve: func(c net.Conn, _ *http.Request) { time.Sleep(20 * time.Second) }, timeout: "500ms",
			exits: failed, message: "cannot be measured .proxy.: .*no answer to CONNECT in time", noRun: true, within: 5 * time.Second},
		{name: "huge usage", serve: answering(eventHead, first, finished1, usageEvent(`"prompt_tokens":9,"completion_tokens":1000000000000000000`), doneMark),
			exits: well, kept: doubted, within: 5 * time.Second},
		{name: "usage in exponent form", serve: answering(eventHead, first, finished1, usageEvent(`"prompt_tokens":9,"completion_tokens":1e18`), doneMark),
			exits: well, kept: doubted, within: 5 * time.Second},
		{name: "usage after the end mark", serve: answering(eventHead, first, finished1, doneMark, usageEvent(`"prompt_tokens":9,"completion_tokens":4`)),
			exits: well, kept: doubted, within: 5 * time.Second},
		{name: "a byte a second", timeout: "1s", serve: func(c net.Conn, _ *http.Request) {
			for _, b := range []byte(eventHead + first) {
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}, exits: failed, class: record.ErrTimeout, kept: rowsHave("cut", func(r *record.Row) bool { return r.Outcome == record.Cut }), within: 5 * time.Second},
		{name: "connections closed as they are used again", held: "internal/loadgen TestWallSendsAgainOnAStaleConnection"},
		{name: "a prompt that nobody reads", timeout: "1s", args: []string{"--input", "300000"}, serve: nil,
			exits: failed, class: record.ErrTimeout, kept: rowsHave("cut", func(r *record.Row) bool { return r.Outcome == record.Cut && r.Sent >= 0 }), within: 10 * time.Second, memory: 300},
		{name: "too few files", held: "internal/cli TestTooFewFiles, internal/cli TestFilesRunOut, internal/client TestOwnLimits"},
		{name: "huge concurrency", url: "sim:fixed", args: []string{"--concurrency", "2000000000"},
			exits: []int{Usage}, message: "--concurrency: 2000000000 is not between 1 and 1,000,000", noRun: true, within: 3 * time.Second, memory: 100},
		{name: "clock step", held: "internal/clock TestFromWall, internal/metrics TestChecks"},
		{name: "timeout under a flood", timeout: "1s", args: []string{"--output", "100000"}, serve: endless(eventHead, ": flood\n"),
			exits: failed, class: record.ErrTimeout, within: 6 * time.Second, memory: 400},
		{name: "server that is restarted", held: "internal/target TestRestartIsSeen, internal/cli TestServerDies"},
		{name: "24 hours in little memory", held: "internal/metrics TestBudgetDoesNotMatter, internal/results/spill TestSorted"},
		{name: "a flipped bit", held: "internal/results/record TestFlippedAnywhere, internal/cli TestDamagedJournals"},
		{name: "a flipped bit, resumed", held: "internal/session TestResumeOfDamagedJournal"},
		{name: "truncation", held: "internal/results/record TestTruncatedAnywhere, internal/cli TestDamagedJournals"},
		{name: "full disk, at each stage", held: "internal/results/record TestFullDisk, internal/results/record TestLostRecordsLeaveAMark"},
		{name: "directory deleted while it is measured", held: "internal/results/record TestInterference"},
		{name: "journal truncated while it is written", held: "internal/results/record TestInterference"},
		{name: "symbolic links in the directory", held: "internal/cli TestLinksAreNotFollowed"},
		{name: "killed while it finishes", held: "internal/cli TestKilledWhileItFinishes, internal/cli TestResultMadeAgain"},
		{name: "power that fails", held: "internal/results/record TestPowerFails, internal/results/record TestPowerFailsAtAnyByte, internal/results/record TestSyncs"},
		{name: "damaged Parquet", held: "internal/results/record TestDamagedParquet"},
		{name: "head of a request to the mock without end", held: "internal/sim/serve TestMockHeadIsBounded"},
		{name: "heads that come slowly to the mock", held: "internal/sim/serve TestMockSlowHeadIsClosed"},
		{name: "names of secret headers", held: "internal/config TestSecretsAreNotKept, internal/cli TestScripts"},
		{name: "two writers", held: "internal/cli TestResumedTwice"},
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("processes")
	}
	for _, f := range faults() {
		if f.held != "" {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			f.check(t)
		})
	}
}

// check runs a pitot against the fault and looks at all that it did.
func (f *fault) check(t *testing.T) {
	url := "http://%s"
	if f.tls != nil {
		url = "https://%s"
	}
	if f.url != "" {
		url = f.url
	}
	addr := f.listen(t)
	filled := func(s string) string { return strings.ReplaceAll(s, "%s", addr) }
	dir := filepath.Join(t.TempDir(), "run")
	args := []string{"run", filled(url), "--duration", "50ms", "--warmup", "0s", "--seed", "1", "--out", dir}
	for _, usual := range [][2]string{{"--concurrency", "4"}, {"--output", "4"}, {"--input", "8"}} {
		if !slices.Contains(f.args, usual[0]) {
			args = append(args, usual[0], usual[1])
		}
	}
	if !strings.HasPrefix(url, "sim:") {
		args = append(args, "--no-probe", "--model", "m", "--api", "openai-chat")
	}
	if f.timeout != "" {
		args = append(args, "--timeout", f.timeout)
	}
	for _, a := range f.args {
		args = append(args, filled(a))
	}
	p := start(t, args...)
	code := p.code()
	out := p.out.String() + p.err.String()
	defer func() {
		if t.Failed() {
			t.Logf("%s\n%s", strings.Join(args, " "), out)
		}
	}()
	if !slices.Contains(f.exits, code) {
		t.Errorf("exit code %d, want %v", code, f.exits)
	}
	if f.message != "" && !regexp.MustCompile(f.message).MatchString(strings.Join(strings.Fields(out), " ")) {
		t.Errorf("nothing says %q", f.message)
	}
	// One that hangs is killed after [limit]. How long the others take by the clock is
	// the machine's matter.
	if took := p.ProcessState.UserTime() + p.ProcessState.SystemTime(); took > f.within {
		t.Errorf("it took %v of a processor, more than %v", took, f.within)
	}
	if use, ok := p.ProcessState.SysUsage().(*syscall.Rusage); ok && f.memory > 0 && raceFactor == 1 {
		// A process begins with the size of the one that started it, this one.
		var self syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &self); err != nil {
			t.Fatal(err)
		}
		if n := mebibytes(use); n > max(f.memory, mebibytes(&self)) {
			t.Errorf("it took %d MiB, more than %d", n, f.memory)
		}
	}
	if f.noRun {
		if _, err := os.Stat(dir); err == nil {
			t.Error("what was refused left a directory")
		}
		return
	}
	run := validRunIn(t, dir)
	if _, err := os.Stat(filepath.Join(dir, "report.html")); err != nil {
		t.Error(err)
	}
	f.requests(t, run, dir)
}

// requests looks at the requests of a run that met the fault.
func (f *fault) requests(t *testing.T, run *result.Run, dir string) {
	r := run.Points[0].Requests
	if r.Due == 0 || r.Due != r.OK+r.Failed+r.Cut+r.Unsent {
		t.Errorf("%+v", r)
	}
	for class := range r.Errors {
		if class != f.class && class != record.ErrInterrupted {
			t.Errorf("class %s, want %q alone: %v %v", class, f.class, r.Errors, r.ErrorExamples)
		}
	}
	if f.class != "" && r.Errors[f.class] == 0 {
		t.Errorf("no %s among %v", f.class, r.Errors)
	}
	if f.kept == nil {
		return
	}
	var rows []record.Row
	for frame, err := range record.Frames(dir) {
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range frame.Rows {
			if row.Error != record.ErrInterrupted {
				rows = append(rows, row)
			}
		}
	}
	if len(rows) == 0 {
		t.Fatal("no records")
	}
	if err := f.kept(run, rows); err != nil {
		t.Error(err)
	}
}

// listen starts the fault's server: one request a connection.
func (f *fault) listen(t *testing.T) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	raw := strings.HasPrefix(f.url, "https://") // whose handshake nobody answers
	if f.tls != nil {
		cert := httptest.NewUnstartedServer(nil)
		cert.StartTLS()
		f.tls.Certificates = cert.TLS.Certificates
		cert.Close()
		l = tls.NewListener(l, f.tls)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			go func() {
				if raw || f.serve == nil {
					return // and the connection stays open
				}
				defer c.Close()
				ask, err := http.ReadRequest(bufio.NewReader(c))
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, ask.Body)
				f.serve(c, ask)
			}()
		}
	}()
	return l.Addr().String()
}

// Faults that other tests hold are held: the tests are there. And the matrix is
// whole.
func TestFaultsAreCovered(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range faults() {
		if seen[f.name] {
			t.Errorf("%s is there twice", f.name)
		}
		seen[f.name] = true
		if (f.held == "") == (f.exits == nil) {
			t.Errorf("%s is held by neither or by both", f.name)
		}
		if f.held == "" {
			continue
		}
		for held := range strings.SplitSeq(f.held, ", ") {
			pkg, name, _ := strings.Cut(held, " ")
			if !slices.Contains(testsIn(t, pkg), name) {
				t.Errorf("%s: no test %s in %s", f.name, name, pkg)
			}
		}
	}
	if len(seen) != 44 {
		t.Errorf("%s faults, not 44", strconv.Itoa(len(seen)))
	}
}

// testsIn lists the tests of a package.
func testsIn(t *testing.T, pkg string) (names []string) {
	files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pkg), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}

// mebibytes is the most memory that a process had.
func mebibytes(use *syscall.Rusage) int64 {
	n := int64(use.Maxrss) >> 10 // kilobytes, and bytes on macOS
	if runtime.GOOS == "darwin" {
		n >>= 10
	}
	return n
}

// A worker that is killed leaves a run that says so: what was measured is kept, INVALID, and
// no other worker goes on.
func TestKilledWorker(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("children are found in /proc")
	}
	dir := filepath.Join(t.TempDir(), "run")
	p := start(t, "run", "mock:fixed?ttft=5ms&itl=1ms", "--output", "20", "--rate", "100", "--duration", "1m", "--warmup", "0s", "--no-scrape", "--quiet", "--fleet", "3", "--out", dir)
	recording(t, dir)
	var workers []int
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.Process.Pid))
	for _, path := range threads {
		list, _ := os.ReadFile(path) // of a thread that has ended there is none
		for _, child := range strings.Fields(string(list)) {
			if pid, err := strconv.Atoi(child); err == nil {
				workers = append(workers, pid)
			}
		}
	}
	if len(workers) != 3 {
		t.Skipf("%d workers are found: this kernel does not tell a process's children", len(workers))
	}
	if err := syscall.Kill(workers[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := p.code(); code != Invalid || !strings.Contains(p.err.String(), "was lost (its process ended: signal: killed)") || !strings.Contains(p.out.String(), "INVALID") {
		t.Errorf("exit code %d\n%s\n%s", code, p.out.String(), p.err.String())
	}
	for _, pid := range workers {
		if err := syscall.Kill(pid, 0); err == nil {
			t.Errorf("worker %d goes on", pid)
		}
	}
	if _, err := rundir.ReadResult(dir); err != nil {
		t.Error(err)
	}
}

// Workers that are started elsewhere, each with an environment and a directory of its own, carry
// out a run that waits for them, and end with it. Who has no token is not let in.
func TestWorkersElsewhere(t *testing.T) {
	t.Parallel()
	port, err := unusedPort()
	if err != nil {
		t.Fatal(err)
	}
	at := "127.0.0.1:" + port
	here := t.TempDir()
	token := filepath.Join(here, "token")
	if err := os.WriteFile(token, []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(here, "run")
	p := startProgram(t, "pitot-fleet", "run", "mock:fixed?ttft=5ms&itl=1ms", "--output", "5", "--rate", "100", "--duration", "300ms", "--warmup", "0s", "--no-scrape", "--quiet",
		"--key-env", "FLEET_TEST_KEY", "--fleet", "listen://"+at+"?workers=2&join_timeout=1m&token_file="+token, "--out", dir)
	worker := func(shown string) *exec.Cmd {
		w := exec.Command("pitot", "worker", "--join", "nats://"+at+"?"+shown)
		race, value := raceExit()
		w.Dir = t.TempDir()
		w.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.Dir, "TMPDIR=" + w.Dir, "FLEET_TEST_KEY=sk-secret-0123456789", race + "=" + value}
		return w
	}
	workers := []*exec.Cmd{worker("token_file=" + token), worker("token_file=" + token)}
	for _, w := range workers {
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.Process.Kill() })
	}
	if out, err := worker("join_timeout=10s").CombinedOutput(); err == nil || !strings.Contains(string(out), "refused") && !strings.Contains(string(out), "connect to NATS") {
		t.Errorf("without a token: %v\n%s", err, out)
	}
	if code := p.code(); !finished(code) || !strings.Contains(p.out.String(), "by 2 workers on ") {
		t.Errorf("exit code %d\n%s\n%s", code, p.out.String(), p.err.String())
	}
	for _, w := range workers {
		if err := w.Wait(); err != nil {
			t.Errorf("a worker ended with %v", err)
		}
		if left, _ := os.ReadDir(w.Dir); len(left) > 0 {
			t.Errorf("it left %v", left)
		}
	}
	if r := validRunIn(t, dir); len(r.Points[0].Workers) != 2 {
		t.Errorf("workers %+v", r.Points[0].Workers)
	}
	noSecret(t, dir, "0123456789abcdef")
}

// noSecret holds that no file of a directory has one.
func noSecret(t *testing.T, dir, secret string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, path := range files {
		if data, err := os.ReadFile(path); err != nil || bytes.Contains(data, []byte(secret)) {
			t.Errorf("%s tells a secret, or %v", path, err)
		}
	}
}
