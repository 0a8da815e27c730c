package experiment

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"pitot/internal/data/result"
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
