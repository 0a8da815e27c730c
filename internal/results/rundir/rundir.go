// Package rundir owns the directory of a run: what its files are called, how it
// is made, held and written to, and how its result is read. What is in the
// records is results/record's, what is in the result results/result's.
package rundir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The files of a run directory.
const (
	Config    = "config.yaml"       // the plan: exact, does the run again
	Result    = "run.json"          // what came of it
	Journal   = "journal.pitot"     // the records while a run goes on
	Damaged   = "damaged.pitot"     // a journal of which not all could be read, as it was; a further one is damaged-2.pitot
	Marks     = "marks.json"        // what was planned and how it ended, once the run is finished
	Requests  = "requests.parquet"  // a row for each request
	Chunks    = "chunks.parquet"    // a row for each chunk
	Telemetry = "telemetry.parquet" // samples of the client, the server and the GPUs
	Page      = "report.html"       // the result to look at
)

// IsOwnFile says that a run directory has a file of this name which must not be
// replaced. The page is none: it is made of the others.
func IsOwnFile(name string) bool {
	switch name {
	case Config, Result, Journal, Damaged, Marks, Requests, Chunks, Telemetry:
		return true
	}
	again, _ := filepath.Match(damagedAgain, name)
	return again
}

const damagedAgain = "damaged-*.pitot"

// KeepDamaged gives the journal a second name, under which it stays when the
// journal is removed or replaced, and returns that name.
func KeepDamaged(dir string) (string, error) {
	journal := filepath.Join(dir, Journal)
	for n := 1; ; n++ {
		name := Damaged
		if n > 1 {
			name = strings.Replace(damagedAgain, "*", strconv.Itoa(n), 1)
		}
		path := filepath.Join(dir, name)
		kept, err := os.Lstat(path)
		if err == nil {
			if now, err := os.Lstat(journal); err == nil && os.SameFile(kept, now) {
				return name, nil // a program that was killed had come so far
			}
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("keep damaged journal: %w", err)
		}
		if os.Link(journal, path) != nil { // a file system without links
			err = copyNew(path, journal)
		} else {
			err = nil
		}
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("keep damaged journal: %w", err)
		}
		return name, SyncDir(dir)
	}
}

// copyNew copies a file to a path where nothing is.
func copyNew(path, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		os.Remove(path)
	}
	return err
}

// State is the stage that a run in a directory reached.
type State int

const (
	Nothing  State = iota // no run of pitot
	Planned               // it ended before anything was measured
	Measured              // there are records, and no result yet
	Finished              // there is a result
)

// StateOf says how far the run in a directory came.
func StateOf(dir string) State {
	switch {
	case hasFile(dir, Result) && !hasFile(dir, Journal): // else a session that went on was killed
		return Finished
	case hasFile(dir, Journal) || hasFile(dir, Requests):
		return Measured
	case hasFile(dir, Config):
		return Planned
	}
	return Nothing
}

func hasFile(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.Mode().IsRegular()
}
