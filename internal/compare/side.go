package compare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pitot/internal/result"
	"pitot/internal/user"
)

// Side is one of what is compared: the runs of one system.
type Side struct {
	Name string
	Runs []Source
}

// Source is a run and where it was read from.
type Source struct {
	Path string
	Run  *result.Run
}

// ReadSide reads what an argument of the command line names: a run directory,
// a directory of them, a run.json, a baseline, or NAME=PATH,PATH… of these.
// Every error is a [user.Error].
func ReadSide(arg string) (Side, error) {
	s := Side{Name: filepath.Base(filepath.Clean(arg))}
	paths := []string{arg}
	if name, list, named := strings.Cut(arg, "="); named && !exists(arg) {
		s.Name, paths = strings.TrimSpace(name), strings.Split(list, ",")
		if s.Name == "" {
			return s, user.Errorf("for example new=runs/a,runs/b", "side %q has no name before its =", arg)
		}
	}
	for _, path := range paths {
		if path == "" {
			return s, user.Errorf("for example new=runs/a,runs/b", "side %q names an empty path", arg)
		}
		runs, err := read(filepath.Clean(path))
		if err != nil {
			return s, err
		}
		s.Runs = append(s.Runs, runs...)
	}
	for i, a := range s.Runs {
		if slices.ContainsFunc(s.Runs[:i], func(b Source) bool { return identity(a.Run) == identity(b.Run) }) {
			return s, user.Errorf("a run counts once", "side %s names %s twice", s.Name, a.Path)
		}
	}
	return s, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// read gives the runs under a path.
func read(path string) ([]Source, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, user.Errorf("a side is a run directory, a directory of runs, a baseline, or NAME=PATH,PATH", "there is no %s", path)
	case err != nil:
		return nil, user.Unreadable("side", path, err, "")
	case !info.IsDir():
		return readFile(path)
	}
	run, err := readRun(path)
	if run != nil || err != nil {
		return []Source{{path, run}}, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, user.Unreadable("side", path, err, "")
	}
	var runs []Source
	for _, e := range entries {
		at := filepath.Join(path, e.Name())
		if info, err := os.Stat(at); err != nil || !info.IsDir() {
			continue
		}
		run, err := readRun(at)
		if err != nil {
			return nil, err
		}
		if run != nil {
			runs = append(runs, Source{at, run})
		}
	}
	if len(runs) == 0 {
		return nil, user.Errorf("name a directory that holds run.json, or one of such directories", "%s holds no run", path)
	}
	return runs, nil
}

// Files of a run directory, as packages point and record write them.
const (
	runFile     = "run.json"
	configFile  = "config.yaml"
	journalFile = "journal.pitot"
)

// readRun reads the run of a directory, nil if it holds none.
func readRun(dir string) (*result.Run, error) {
	path := filepath.Join(dir, runFile)
	data, err := os.ReadFile(path)
	switch {
	case err == nil:
		return decodeRun(path, data)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, user.Unreadable("run", path, err, "")
	case exists(filepath.Join(dir, journalFile)):
		return nil, user.Errorf("pitot report "+dir+" finishes it", "the run in %s was never finished", dir)
	case exists(filepath.Join(dir, configFile)):
		return nil, user.Errorf("measure it again: pitot run --config "+filepath.Join(dir, configFile), "the run in %s ended before anything was measured", dir)
	}
	return nil, nil
}

// readFile reads a file that is a baseline or a run.json.
func readFile(path string) ([]Source, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, user.Unreadable("side", path, err, "")
	}
	var head struct {
		Schema string `json:"schema"`
	}
	_ = json.Unmarshal(data, &head) // what is no JSON has no schema
	if strings.HasPrefix(head.Schema, baselineName) {
		return decodeBaseline(path, data)
	}
	if strings.HasPrefix(head.Schema, runName) {
		run, err := decodeRun(path, data)
		return []Source{{path, run}}, err
	}
	const hint = "a side is a run directory, a directory of runs, a baseline, or NAME=PATH,PATH"
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		return nil, user.Errorf("pitot report shows what other tools say", "%s is no result of Pitot, and those of other tools cannot be compared: they mean other things by the same names", path)
	}
	return nil, user.Errorf(hint, "%s is neither a run nor a baseline", path)
}

// runName begins every version's schema.
const runName = "pitot.run/"

func decodeRun(path string, data []byte) (*result.Run, error) {
	var head struct {
		Schema string `json:"schema"`
	}
	damaged := func(err error) error {
		return user.Errorf("delete it and pitot report "+filepath.Dir(path)+" makes it anew from the records", "%s is damaged: %v", path, err)
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, damaged(err)
	}
	if head.Schema != result.Schema {
		return nil, otherSchema(path, head.Schema, result.Schema)
	}
	var run result.Run
	if err := json.Unmarshal(data, &run); err != nil {
		return nil, damaged(err)
	}
	return &run, nil
}

func otherSchema(path, has, want string) error {
	hint := ""
	if strings.HasPrefix(has, strings.TrimRight(want, "0123456789")) {
		hint = "a newer pitot wrote it: compare with that one"
	}
	return user.Errorf(hint, "%s has schema %q, not %q", path, has, want)
}

// launches groups a side's runs by the start of the server that they measured.
// Runs of one process are of one launch, whatever they are called.
func (s *Side) launches() (ids []string, of map[string][]Source, warnings []string) {
	of = map[string][]Source{}
	known := map[string]string{} // process: launch
	for _, r := range s.Runs {
		id := launchOf(r.Run)
		if at := r.Run.Target.Server[started]; at != "" {
			process := r.Run.Target.URL + " " + at
			first, ok := known[process]
			if !ok {
				known[process], first = id, id
			}
			if first != id {
				warnings = append(warnings, fmt.Sprintf("launch %s of %s is the same process as launch %s, and counts as that", id, s.Name, first))
				id = first
			}
		}
		if of[id] == nil {
			ids = append(ids, id)
		}
		of[id] = append(of[id], r)
	}
	return ids, of, warnings
}

// started is what vLLM and many others call the start of their process in
// /metrics.
const started = "process_start_time_seconds"

// launchOf names the start of the server that a run measured: as the user did
// with --launch, else by when its process started. Runs of which neither is
// known count as one launch, "": that claims least.
func launchOf(run *result.Run) string {
	switch {
	case run.Launch != "":
		return run.Launch
	case run.Notes["launch"] != "":
		return run.Notes["launch"]
	case run.Target.Server[started] != "":
		return fmt.Sprintf("started at %s s", run.Target.Server[started])
	}
	return ""
}

// distinct gives every side a name of its own.
func distinct(sides []Side) []Side {
	out := slices.Clone(sides)
	seen := map[string]int{}
	for i := range out {
		name := out[i].Name
		seen[name]++
		if n := seen[name]; n > 1 {
			out[i].Name = fmt.Sprintf("%s (%d)", name, n)
		}
	}
	return out
}
