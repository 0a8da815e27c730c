package experiment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/say"
	"pitot/internal/say/unreadable"
	"pitot/internal/userfile"
)

// An experiment is a directory: what was measured is in run directories below it, the
// plan beside them, and what became of it in a file of its own. Nothing is remembered that
// the runs do not say: after a kill it goes on from what is there.

// Files of an experiment's directory.
const (
	stateFile = "experiment.json"
	planFile  = "plan.yaml"
	void      = "void" // runs that a changed plan has no use for
)

// StateSchema names the version of experiment.json.
const StateSchema = "pitot.experiment/v1"

// state is experiment.json.
type state struct {
	Schema   string    `json:"schema"`
	Seed     uint64    `json:"seed"`
	Sittings []sitting `json:"sittings"`
	Looked   []int     `json:"looked_at_launches,omitempty"` // numbers of launches that were planned, and all looked at: the errors allowed that were made
	Failed   []Failure `json:"not_started,omitempty"`        // configurations that are left out
	Server   string    `json:"server,omitempty"`             // engine, version and model of the first launch
	Waits    *Waiting  `json:"waits,omitempty"`              // for a launch by hand
	Mark     string    `json:"launch_mark,omitempty"`        // of the launch by hand that was measured last
}

// sitting is one time that somebody measured.
type sitting struct {
	Pitot string        `json:"pitot"`        // version
	Began string        `json:"began"`        // RFC 3339
	Ended string        `json:"ended"`        // "" where it was killed
	Why   result.Reason `json:"why,omitzero"` // it ended
}

// readState reads it, nil where there is none.
func readState(dir string) (*state, error) {
	data, err := userfile.Read(filepath.Join(dir, stateFile), userfile.MostResult)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unreadable.FileError("experiment", dir, err, "choose another place with --out")
	}
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, say.Errorf("%s: %v", filepath.Join(dir, stateFile), err).WithHint("move it away: what was measured is in runs, and is found again")
	}
	if s.Schema != StateSchema {
		return nil, say.Errorf("%s is of version %.60q, which this program does not know", filepath.Join(dir, stateFile), s.Schema).WithHint("a newer pitot wrote it: use that one")
	}
	return &s, nil
}

// write puts it in place as a whole.
func (s *state) write(dir string) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = rundir.WriteFile(dir, stateFile, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", stateFile, err)
	}
	return nil
}

// IsBegun says whether a directory holds an experiment.
func IsBegun(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, stateFile))
	return err == nil
}

// openState makes the directory, or finds the experiment that is in it, and takes it for this
// process alone.
func openState(dir string, p *Plan) (s *state, release func(), err error) {
	if s, err = readState(dir); err != nil {
		return nil, nil, err
	}
	if s == nil {
		if err := rundir.NewDir(dir); errors.Is(err, rundir.ErrNotEmpty) {
			return nil, nil, say.Errorf("%s is not empty, and holds no experiment", dir).WithHint("choose another place with --out")
		} else if err != nil {
			return nil, nil, say.Errorf("create directory: %v", err).WithHint("choose another place with --out")
		}
		s = &state{Schema: StateSchema, Seed: p.Seed}
		if err := s.write(dir); err != nil {
			return nil, nil, err
		}
	}
	lock := filepath.Join(dir, lockFile)
	f, err := os.OpenFile(lock, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, nil, say.Errorf("open %s: %v", lock, err).WithHint("choose another place with --out")
	}
	f.Close()
	if release, err = rundir.Claim(lock); errors.Is(err, rundir.ErrLive) {
		return nil, nil, say.Errorf("another process measures the experiment in %s", dir).WithHint("wait for its end, or stop it with Ctrl-C")
	} else if err != nil {
		return nil, nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	rundir.RemoveTemps(dir)
	return s, release, nil
}

// lockFile is the file that two processes cannot have at once.
const lockFile = ".lock"

// putAway moves a run that the plan has no use for any more to where it is kept.
func putAway(dir string, part *Part) error {
	from := part.runDir(dir)
	for n := 1; ; n++ {
		to := filepath.Join(dir, void, fmt.Sprintf("%s-%s-%d-%d", part.Configuration.Name, part.Row.Name, part.Block, n))
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return fmt.Errorf("put %s away: %w", from, err)
		}
		if err := os.Rename(from, to); err != nil {
			return fmt.Errorf("put %s away: %w", from, err)
		}
		return nil
	}
}
