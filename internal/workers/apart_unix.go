//go:build unix

package workers

import (
	"os/exec"
	"syscall"
)

// ownProcessGroup keeps a process out of what the terminal sends to this one: Ctrl-C stops the run,
// and the run its workers.
func ownProcessGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
