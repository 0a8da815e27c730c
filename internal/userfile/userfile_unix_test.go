//go:build unix

package userfile

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Devices are refused at once, also through links; a pipe is read where something writes to it,
// and refused after a moment where nothing does.
func TestSpecial(t *testing.T) {
	defer func(was time.Duration) { opensWithin = was }(opensWithin)
	opensWithin = 50 * time.Millisecond
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/dev/zero", link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/dev/zero", "/dev/urandom", "/dev/full", link} {
		if _, err := os.Stat(path); err != nil {
			continue // not of this system
		}
		if _, err := Read(path, 1<<20); !errors.Is(err, ErrDevice) {
			t.Errorf("%s: %v", path, err)
		}
	}
	at := filepath.Join(dir, "socket")
	if l, err := net.Listen("unix", at); err == nil {
		if _, err := Read(at, 1<<20); !errors.Is(err, ErrSocket) {
			t.Errorf("socket: %v", err)
		}
		l.Close()
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	begin := time.Now()
	if _, err := Read(fifo, 1<<20); !errors.Is(err, ErrSilent) {
		t.Errorf("a pipe that nothing writes to: %v", err)
	}
	if took := time.Since(begin); took < opensWithin/2 {
		t.Errorf("refused after %v", took)
	}
	fifo = filepath.Join(dir, "another") // what was given up may be a reader of the first for a moment
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		w, err := os.OpenFile(fifo, os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = w.WriteString("what a command printed")
		w.Close()
	}()
	if got, err := Read(fifo, 1<<20); err != nil || string(got) != "what a command printed" {
		t.Errorf("a pipe: %q, %v", got, err)
	}
}
