package record

import (
	"errors"
	"os"
)

// ErrLive says that a run is still going on.
var ErrLive = errors.New("the run is still going on")

// lock is not needed here: an open file cannot be removed.
func lock(*os.File) {}

func claim(string) (release func(), err error) { return func() {}, nil }
