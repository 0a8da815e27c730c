package workers

import (
	"os/exec"
	"syscall"
)

// ownProcessGroup keeps a process out of what the console sends to this one: Ctrl-C stops the run,
// and the run its workers.
func ownProcessGroup(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
