//go:build unix

package record

import (
	"testing"

	"golang.org/x/sys/unix"

	"pitot/internal/results/rundir"
)

// A process that is started while a journal is closed has a copy of its file for a moment. The
// run has ended all the same.
func TestClosedWhileAProcessStarts(t *testing.T) {
	dir := t.TempDir()
	j, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	inherited, err := unix.Dup(int(j.file.(*rundir.LockedFile).Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(inherited)
	if err := rundir.CheckLive(dir); err == nil {
		t.Error("a journal that is open has no writer")
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := rundir.CheckLive(dir); err != nil {
		t.Error(err)
	}
}
