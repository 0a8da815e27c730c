package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/sim/serve"
	"pitot/internal/workers/bus"
	"pitot/internal/workers/natsserver"
)

// The test binary is also pitot and pitot-fleet themselves, for scripts and for tests that kill
// them or send them signals.
func TestMain(m *testing.M) {
	// Many of these tests wait for processes and for real time: four run at once, or as many as
	// there are processors, unless -parallel says otherwise.
	_ = flag.Set("test.parallel", strconv.Itoa(max(4, runtime.GOMAXPROCS(0))))
	testscript.Main(m, map[string]func(){
		"pitot": func() { os.Exit(Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
		"pitot-fleet": func() {
			bus.EmbedServer(natsserver.Serve)
			os.Exit(Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		},
	})
}

// TestScripts runs the command line as users do.
//
//	exitcode N pitot ARG…   runs it and wants exit code N, or 0|4 for either: on a
//	                        busy machine any measurement may be INVALID
//	measured N COMMAND      likewise, again where the machine was too busy to measure
//	validrun FILE           wants a whole run.json, as by the schema
//	server KIND             starts a small HTTP server and sets URL: "teapot"
//	                        answers 418 to everything, "parrot" repeats the
//	                        request's secrets in a 401, "models" lists one model,
//	                        "nothing" answers 404
//	served N                wants that many requests to have come to it
//	serve ARG…              starts pitot mock with these arguments on a free port
//	                        and sets URL; standard output is its first line
//	ask PATH [FILE]         gets a path under URL, or posts the file to it as JSON;
//	                        standard output is the status, then the body
//	absent TEXT PATH…       wants no file under the paths to hold the text
//	port                    sets PORT to one that is free
//	hold DIR                has the run in a directory from then on, as a pitot has
//	                        that measures there
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Files: scripts(t),
		Setup: func(e *testscript.Env) error {
			e.Setenv(raceExit())
			e.Setenv("PITOT_FULL", "true") // the short answers are golden files of report
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exitcode": exitcode, "measured": measured, "validrun": validrun, "server": server, "served": served, "absent": absent,
			"serve": serveMock, "ask": ask, "hold": hold, "port": freePort,
		},
	})
}

// scripts are those of testdata. In a short test, which is one for races, they are those of
// which something goes through a socket: what is simulated runs in one goroutine, as in the
// tests of its own room, and takes ten times as long there.
func scripts(t *testing.T) (list []string) {
	all, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(all) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if testing.Short() && bytes.Contains(text, []byte("sim:")) && !bytes.Contains(text, []byte("mock")) && !bytes.Contains(text, []byte("http:")) {
			continue
		}
		list = append(list, path)
	}
	return list
}

// raceExit keeps the race detector, where there is one, from its second of
// sleep at the end of each process.
func raceExit() (name, value string) { return "GORACE", "atexit_sleep_ms=0" }

// freePort is for servers whose address a plan has to name.
func freePort(ts *testscript.TestScript, neg bool, args []string) {
	port, err := unusedPort()
	ts.Check(err)
	ts.Setenv("PORT", port)
}

// unusedPort is below those that systems give to connections (from 32768 on, or 49152):
// no connection is given it, and of other tests that draw one too few hit the same of 12,000.
func unusedPort() (port string, err error) {
	for range 1000 {
		port = strconv.Itoa(20_000 + rand.IntN(12_000))
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			return port, l.Close()
		}
	}
	return "", err
}

func exitcode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode N command…")
	}
	wantCode(ts, args, codeOf(ts, args))
}

// codeOf runs a command and returns its exit code.
func codeOf(ts *testscript.TestScript, args []string) int {
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	ts.Check(err)
	return 0
}

func wantCode(ts *testscript.TestScript, args []string, got int) {
	if !slices.Contains(strings.Split(args[0], "|"), strconv.Itoa(got)) {
		ts.Fatalf("exit code %d, want %s\nstdout:\n%s\nstderr:\n%s", got, args[0], ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// measured wants an exit code of a command that measures in real time. Where the machine was so
// busy that the run is INVALID the command runs again, without the directory that it made.
func measured(ts *testscript.TestScript, neg bool, args []string) {
	out := slices.Index(args, "--out") + 1
	if neg || len(args) < 2 || out == 0 || out == len(args) {
		ts.Fatalf("usage: measured N command… --out DIR")
	}
	code := codeOf(ts, args)
	for tries := 1; tries < 5 && code == Invalid; tries++ {
		ts.Check(os.RemoveAll(ts.MkAbs(args[out])))
		code = codeOf(ts, args)
	}
	wantCode(ts, args, code)
}

func validrun(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: validrun file")
	}
	if _, err := validRun([]byte(ts.ReadFile(args[0]))); err != nil {
		ts.Fatalf("%s: %v", args[0], err)
	}
}

// validRun reads a run.json that the schema allows and whose counts add up.
func validRun(data []byte) (*result.Run, error) {
	text, err := os.ReadFile("../results/result/schema.json")
	if err != nil {
		return nil, err
	}
	contract, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("run.json", contract); err != nil {
		return nil, err
	}
	schema, err := c.Compile("run.json")
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	if err != nil {
		return nil, err
	}
	if err := schema.Validate(doc); err != nil {
		return nil, err
	}
	var run result.Run
	if err := json.Unmarshal(data, &run); err != nil {
		return nil, err
	}
	for i, p := range run.Points {
		r := p.Requests
		if r.Due != r.OK+r.Failed+r.Cut+r.Unsent {
			return nil, fmt.Errorf("point %d: requests do not add up: %+v", i, r)
		}
		lost := 0
		for _, n := range r.Errors {
			lost += n
		}
		if lost != r.Due-r.OK {
			return nil, fmt.Errorf("point %d: error classes do not add up: %+v", i, r)
		}
	}
	return &run, nil
}

// servers are the counts of the requests that came to each script's server.
var servers sync.Map // *testscript.TestScript: *atomic.Int64

func server(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: server kind")
	}
	n := new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		switch args[0] {
		case "models":
			_, _ = io.WriteString(w, `{"data":[{"id":"llama-3.1-8b"}]}`)
		case "parrot":
			w.WriteHeader(http.StatusUnauthorized)
			output := strings.TrimSpace(strings.Join([]string{r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"), r.Header.Get("Cookie"), r.Header.Get("X-Custom")}, " "))
			_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"message": "wrong key: " + output}})
		case "nothing":
			http.NotFound(w, r)
		default:
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	ts.Defer(s.Close)
	ts.Setenv("URL", s.URL)
	servers.Store(ts, n)
	ts.Defer(func() { servers.Delete(ts) })
}

func served(ts *testscript.TestScript, neg bool, args []string) {
	n, ok := servers.Load(ts)
	if neg || len(args) != 1 || !ok {
		ts.Fatalf("usage: server kind, then served N")
	}
	if got := strconv.FormatInt(n.(*atomic.Int64).Load(), 10); got != args[0] {
		ts.Fatalf("%s requests came, want %s", got, args[0])
	}
}

// serveMock starts the mock in a process of its own, as users do. It ends with
// the script.
func serveMock(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: serve arg…")
	}
	mock := exec.Command("pitot", append([]string{"mock", "--port", "0", "--until-eof"}, args...)...)
	mock.Dir = ts.MkAbs(".")
	stdin, err := mock.StdinPipe()
	ts.Check(err)
	stdout, err := mock.StdoutPipe()
	ts.Check(err)
	ts.Check(mock.Start())
	ts.Defer(func() {
		_ = stdin.Close()
		_, _ = io.Copy(io.Discard, stdout)
		_ = mock.Wait()
	})
	var started serve.Started
	ts.Check(json.NewDecoder(stdout).Decode(&started))
	ts.Setenv("URL", started.URL)
	_, _ = io.WriteString(ts.Stdout(), started.About+"\n")
}

func ask(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: ask path [file]")
	}
	var r *http.Response
	var err error
	if url := ts.Getenv("URL") + args[0]; len(args) == 1 {
		r, err = http.Get(url)
	} else {
		r, err = http.Post(url, "application/json", strings.NewReader(ts.ReadFile(args[1])))
	}
	ts.Check(err)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%s\n%s\n", r.Status, body)
}

func absent(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: absent text path…")
	}
	files := 0
	for _, root := range args[1:] {
		ts.Check(filepath.WalkDir(ts.MkAbs(root), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			files++
			data, err := os.ReadFile(path)
			if err == nil && strings.Contains(string(data), args[0]) {
				ts.Fatalf("%s holds %s", path, args[0])
			}
			return err
		}))
	}
	if files == 0 {
		ts.Fatalf("no file to look into")
	}
}

func hold(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hold dir")
	}
	release, err := rundir.LockDir(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Defer(release)
}
