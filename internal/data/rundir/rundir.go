// Package rundir owns the directory of a run: what its files are called, how it
// is made, held and written to, and how its result is read. What is in the
// records is data/record's, what is in the result data/result's.
package rundir

import (
	"os"
	"path/filepath"
)

// The files of a run directory.
const (
	Config    = "config.yaml"       // the plan: exact, does the run again
	Result    = "run.json"          // what came of it
	Journal   = "journal.pitot"     // the records while a run goes on
	Marks     = "marks.json"        // what was planned and how it ended, once the run is finished
	Requests  = "requests.parquet"  // a row for each request
	Chunks    = "chunks.parquet"    // a row for each chunk
	Telemetry = "telemetry.parquet" // samples of the client, the server and the GPUs
	Page      = "report.html"       // the result to look at
)

// Own says that a run directory has a file of this name which must not be
// replaced. The page is none: it is made of the others.
func Own(name string) bool {
	switch name {
	case Config, Result, Journal, Marks, Requests, Chunks, Telemetry:
		return true
	}
	return false
}

// State is how far a run in a directory came.
type State int

const (
	Nothing  State = iota // no run of pitot
	Planned               // it ended before anything was measured
	Measured              // there are records, and no result yet
	Finished              // there is a result
)

// Look says how far the run in a directory came.
func Look(dir string) State {
	switch {
	case has(dir, Result):
		return Finished
	case has(dir, Journal) || has(dir, Requests):
		return Measured
	case has(dir, Config):
		return Planned
	}
	return Nothing
}

func has(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.Mode().IsRegular()
}
