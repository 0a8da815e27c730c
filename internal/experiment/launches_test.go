package experiment

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pitot/internal/results/result"
)

// said is a view that keeps its lines.
type said struct {
	lines
	text strings.Builder
}

func (v *said) ShowLine(line string) { v.text.WriteString(line + "\n") }

// onServer measures a plan whose server is started by commands.
func onServer(t *testing.T, ctx context.Context, commands string, v View) error {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no POSIX shell")
	}
	source := strings.Replace(small, simTarget, `{url: "http://127.0.0.1:1", engine: vllm, `+commands+`}`, 1)
	p, err := Parse("small.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Measure(ctx, p, []byte(source), t.TempDir(), result.Version{}, v)
	return err
}

// A server that dies is started as often as the plan says, though its command finds
// nothing to stop.
func TestDiesAndCannotBeStopped(t *testing.T) {
	v := &said{}
	err := onServer(t, t.Context(), `start: "exit 3 # {flags}", ready: "sleep 20", stop: "echo no such container; exit 1", tries: 3`, v)
	if err == nil || !strings.Contains(err.Error(), "the baseline cannot be started") || strings.Count(v.text.String(), "of 3)") != 3 {
		t.Errorf("%v\n%s", err, v.text.String())
	}
}

// A command that is not found is not looked for again, and the record begins with it.
func TestCommandNotFound(t *testing.T) {
	v := &said{}
	err := onServer(t, t.Context(), `start: "no-such-command-here {flags}", ready: "sleep 20", tries: 3`, v)
	if err == nil || !strings.Contains(err.Error(), "a command was not found (tries in a row: 1)") {
		t.Errorf("%v\n%s", err, v.text.String())
	}
}

// Whoever interrupts is told of a server that could not be stopped, and of nothing else.
func TestInterruptedAndNotStopped(t *testing.T) {
	for stop, want := range map[string]string{"exit 4": "the server of baseline may still run: stop server: \"exit 4\": exit status 4", "true": ""} {
		ctx, cancel := context.WithCancel(t.Context())
		v := &said{lines: lines{begin: func(int) { cancel() }}}
		err := onServer(t, ctx, `start: "sleep 20 # {flags}", ready: "true", stop: "`+stop+`"`, v)
		cancel()
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want || errors.Is(err, context.Canceled)) {
			t.Errorf("stop: %s: %v, want %q\n%s", stop, err, want, v.text.String())
		}
	}
}

// What a launch that is there lacks is found by the start that answers.
func TestLacking(t *testing.T) {
	p, err := Parse("p.yaml", []byte(`
contract: {limits: "p95 ttft<500ms", capacity: 2/s}
target: http://localhost:1
rows: {F: {requests: 20}}
knobs: {max_num_seqs: [8]}
`))
	if err != nil {
		t.Fatal(err)
	}
	x := &Experiment{Plan: p, Dir: t.TempDir(), runs: map[string]*result.Run{}}
	if rec, _, _ := x.incompleteLaunch("m"); rec != nil {
		t.Errorf("%+v", rec)
	}
	c := p.Configurations()[1]
	rec, dir, err := x.openLaunch(c, 2)
	if err != nil {
		t.Fatal(err)
	}
	rec.Starts = []startRecord{{Mark: "k"}, {Mark: "m", Rows: []string{"A"}}}
	if err := rec.write(dir); err != nil {
		t.Fatal(err)
	}
	if _, of, n := x.incompleteLaunch("m"); of != c || n != 2 {
		t.Errorf("%+v, launch %d", of, n)
	}
	if rec, _, _ := x.incompleteLaunch("k"); rec != nil {
		t.Error("an earlier start is taken for the one that is there")
	}
}

// waited is a view that keeps what is waited for.
type waited struct {
	lines
	list []string
}

func (w *waited) Waiting(what, log string) { w.list = append(w.list, what+": "+log) }

// While a server starts, how long and the end of its log are shown each second.
func TestStartingIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &waited{}
		stop := showWaiting(v, "starting baseline 1 of 2", 10*time.Minute, func() string { return "loading weights" })
		time.Sleep(190*time.Second + time.Millisecond)
		stop()
		time.Sleep(time.Minute)
		if n := len(v.list); n != 190 || v.list[n-1] != "starting baseline 1 of 2, 3:10 of 10 min: loading weights" {
			t.Errorf("%d: %q", n, v.list[max(0, n-1):])
		}
	})
}

// The commands of a record repeat no secret.
func TestCommandsHoldNoSecret(t *testing.T) {
	p, err := Parse("small.yaml", []byte(strings.Replace(small, simTarget, "mock:llama-3.1-8b@h100", 1)+"common: {header: [X-Api-Key=sk-secret-1], key-env: K}\n"))
	if err != nil {
		t.Fatal(err)
	}
	part := p.launchParts(p.Configurations()[0], 1)[0]
	line := strings.Join(partCommand(p.partPlan(&part, t.TempDir()), part.Row, p), " ")
	if strings.Contains(line, "sk-secret") || !strings.Contains(line, "--header X-Api-Key=[redacted]") || !strings.Contains(line, "--key-env K") {
		t.Error(line)
	}
}
