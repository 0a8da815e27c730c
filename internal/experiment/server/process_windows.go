package server

import (
	"context"
	"io"
	"os"
	"os/exec"

	"pitot/internal/say"
)

// errShell says why commands of a plan do not run here.
var errShell = say.Errorf("the commands of a plan need a POSIX shell, which Windows does not have").WithHint("run it in WSL, or give target: URL and start the server by hand")

func gatedCommand(string, []string, *os.File, *os.File) (*exec.Cmd, error) { return nil, errShell }

func shortCommand(context.Context, string, []string, io.Writer) (*exec.Cmd, error) {
	return nil, errShell
}

func signal(int, bool) {}

func isRunning(int) bool { return false }

func processStart(int) string { return "" }
