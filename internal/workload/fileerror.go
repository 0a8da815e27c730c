package workload

import (
	"errors"
	"fmt"
	"io/fs"
)

// FileError is an error in the contents of a file of requests.
type FileError struct {
	Path  string
	Line  int  // 0 where it is not known
	Trace bool // the file is a trace: it has lengths and times, not prompts
	Err   error
}

func (e *FileError) Error() string {
	if e.Trace {
		return "read trace " + e.PlaceAndCause()
	}
	return "read workload " + e.PlaceAndCause()
}

// PlaceAndCause returns the place and the error, without what was being done.
func (e *FileError) PlaceAndCause() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %v", e.Path, e.Line, e.Err)
	}
	return fmt.Sprintf("%s: %v", e.Path, e.Err)
}

func (e *FileError) Unwrap() error { return e.Err }

// openError says what could not be opened, or why its contents could not be read.
func openError(path string, trace bool, err error) error {
	if _, system := errors.AsType[*fs.PathError](err); !system {
		return &FileError{Path: path, Trace: trace, Err: err}
	}
	if trace {
		return fmt.Errorf("open trace: %w", err)
	}
	return fmt.Errorf("open workload: %w", err)
}

var errChanged = errors.New("the file has changed since the run began")
