//go:build unix

package server

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// gateScript waits for a word on descriptor 3, and ends where there is none: then whoever
// wanted the command is gone. The command takes the place of the shell.
const gateScript = `read -r word <&3 || exit 0; exec 3<&-; exec sh -c "$1"`

// gatedCommand is a command in a session of its own that waits at a gate.
func gatedCommand(line string, env []string, out, gate *os.File) (*exec.Cmd, error) {
	cmd := exec.Command("sh", "-c", gateScript, "pitot", line)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = env, out, out, []*os.File{gate}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, nil
}

// shortCommand is a command that ends soon; all of its group is killed if it does not.
func shortCommand(ctx context.Context, line string, env []string, out io.Writer) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	return cmd, nil
}

// signal asks a group to end, or kills it.
func signal(group int, kill bool) {
	s := syscall.SIGTERM
	if kill {
		s = syscall.SIGKILL
	}
	_ = syscall.Kill(-group, s)
}

// isRunning says that a group has processes, other than dead ones that nobody asked after.
func isRunning(group int) bool {
	if err := syscall.Kill(-group, 0); errors.Is(err, syscall.ESRCH) {
		return false
	}
	if runtime.GOOS != "linux" {
		return true
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return true
	}
	for _, path := range stats {
		if f := fieldsOf(path); len(f) > fieldGroup && f[fieldGroup] == strconv.Itoa(group) && f[fieldState] != "Z" && f[fieldState] != "X" {
			return true
		}
	}
	return false
}

// Fields of /proc/PID/stat behind the name (proc(5) counts them from 3).
const (
	fieldState = 0
	fieldGroup = 2
	fieldStart = 19
)

func fieldsOf(path string) []string {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	text := string(data)
	return strings.Fields(text[strings.LastIndexByte(text, ')')+1:]) // a name may hold anything
}

// processStart is when a process did, as something that no other process with its number has;
// "" where it is not known or the process is not there.
func processStart(pid int) string {
	if runtime.GOOS == "linux" {
		f := fieldsOf("/proc/" + strconv.Itoa(pid) + "/stat")
		boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
		if len(f) <= fieldStart || err != nil {
			return ""
		}
		return strings.TrimSpace(string(boot)) + " " + f[fieldStart]
	}
	out, err := exec.Command("ps", "-o", "lstart=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
