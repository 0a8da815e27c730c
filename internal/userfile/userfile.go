// Package userfile opens and reads the files that a user names: what has no end is refused, and
// what nobody writes to is not waited for.
package userfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// Why a file is refused; all come in an [fs.PathError].
var (
	ErrDevice = errors.New("it is a device, not a file")
	ErrSocket = errors.New("it is a socket, not a file")
	ErrSilent = errors.New("it is a pipe that nothing writes to")
	ErrLong   = errors.New("it is too long")
	ErrPipe   = errors.New("it is a pipe, and has to be a file")
)

// Most bytes of the files of a kind.
const (
	MostSecret = 64 << 10  // keys and tokens
	MostText   = 4 << 20   // what people write: configs, plans, profiles
	MostPEM    = 16 << 20  // certificates
	MostResult = 64 << 20  // what experiments came to
	MostLarge  = 256 << 20 // tokenizers, results of runs
)

// opensWithin is the time within which a pipe must get a writer; a test shortens it.
var opensWithin = 2 * time.Second

// Open opens a file for reading: a regular one, or a pipe that something writes to, as of
// <(command) in a shell. Devices but the null device, sockets and directories are refused, through
// links too.
func Open(path string) (*os.File, error) {
	refused := func(why error) (*os.File, error) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: why}
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if why := refuseKind(info); why != nil {
		return refused(why)
	}
	f, err := openPath(path, IsPipe(info))
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil { // it may be another one by now
		err = refuseKind(info)
	}
	if err != nil {
		_ = f.Close()
		return refused(err)
	}
	return f, nil
}

// IsPipe reports whether a file is a pipe, which can be read once.
func IsPipe(info fs.FileInfo) bool { return info.Mode()&fs.ModeNamedPipe != 0 }

func refuseKind(info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsRegular(), IsPipe(info):
		return nil
	case mode.IsDir():
		return syscall.EISDIR
	case mode&fs.ModeSocket != 0:
		return ErrSocket
	}
	if null, err := os.Stat(os.DevNull); err == nil && os.SameFile(info, null) {
		return nil
	}
	return ErrDevice
}

// openPath opens a file. That of a pipe waits for a writer.
func openPath(path string, pipe bool) (*os.File, error) {
	if !pipe {
		return os.Open(path)
	}
	type opened struct {
		f   *os.File
		err error
	}
	done := make(chan opened)
	gone := make(chan struct{})
	go func() {
		f, err := os.Open(path)
		select {
		case done <- opened{f, err}:
		case <-gone:
			if err == nil {
				_ = f.Close()
			}
		}
	}()
	wait := time.NewTimer(opensWithin)
	defer wait.Stop()
	select {
	case o := <-done:
		return o.f, o.err
	case <-wait.C:
	}
	close(gone)
	release(path)
	return nil, &fs.PathError{Op: "open", Path: path, Err: ErrSilent}
}

// Read reads all of a file that [Open] opens, and refuses one of more bytes than most.
func Read(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	long := &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: over %s", ErrLong, sizeText(most))}
	size := int64(0)
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		if size = info.Size(); size > most {
			return nil, long
		}
	}
	data := make([]byte, 0, size+512) // it may grow, and files of /proc have no size
	for {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case int64(len(data)) > most:
			return nil, long
		case err == io.EOF:
			return data, nil
		case err != nil:
			return nil, err
		case len(data) == cap(data):
			data = append(data, 0)[:len(data)]
		}
	}
}

// CheckRegular reports why a file is refused that something else is to open: what Read refuses, and
// pipes.
func CheckRegular(path string, most int64) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case IsPipe(info):
		err = ErrPipe
	case refuseKind(info) != nil:
		err = refuseKind(info)
	case info.Size() > most:
		err = fmt.Errorf("%w: over %s", ErrLong, sizeText(most))
	default:
		return nil
	}
	return &fs.PathError{Op: "open", Path: path, Err: err}
}

// sizeText writes bounds as they are given: in whole KiB or MiB.
func sizeText(n int64) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", max(n>>10, 1))
}
