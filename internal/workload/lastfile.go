package workload

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// lastFile keeps what was read of the file that was opened last: a plan asks for one many times,
// and a large one takes seconds to read.
type lastFile[T any] struct {
	sync.Mutex
	key  string
	what T
}

// open gives what is kept of a file, or reads it where it is another one or has changed.
func (l *lastFile[T]) open(path string, read func() (T, error)) (T, error) {
	key := fileKey(path)
	l.Lock()
	defer l.Unlock()
	if l.key == key {
		return l.what, nil
	}
	what, err := read()
	if err == nil {
		l.key, l.what = key, what
	}
	return what, err
}

// forget keeps nothing.
func (l *lastFile[T]) forget() {
	l.Lock()
	defer l.Unlock()
	var none T
	l.key, l.what = "", none
}

// fileKey is another one for a file that has changed.
func fileKey(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return path
	}
	whole, _ := filepath.Abs(path)
	return fmt.Sprint(whole, info.Size(), info.ModTime().Format(time.RFC3339Nano))
}
