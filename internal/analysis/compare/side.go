package compare

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitot/internal/analysis/tools"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/say"
	"pitot/internal/say/unreadable"
	"pitot/internal/userfile"
)

// Side is one of what is compared: the runs of one system, or what files of one
// other tool say of it.
type Side struct {
	Name   string
	Runs   []Source
	Others []*tools.Result // a side of them has no runs

	path string   // that it is named after, "" if it was given a name
	left []string // files of its directories that no tool is known to write
}

// Source is a run and where it was read from.
type Source struct {
	Path string
	Run  *result.Run
}

const sideHint = "a side is a run directory, a directory of runs, a baseline, a result of vllm bench serve, SGLang, AIPerf or GuideLLM, or NAME=PATH,PATH"

// ReadSide reads what an argument of the command line names: a run directory,
// a directory of them, a run.json, a baseline, a result of another tool, a
// directory of those, or NAME=PATH,PATH… of these. Every error is a
// [say.Error].
func ReadSide(arg string) (Side, error) {
	s := Side{path: filepath.Clean(arg)}
	s.Name = filepath.Base(s.path)
	paths := []string{arg}
	if name, list, named := strings.Cut(arg, "="); named && !fileExists(arg) {
		s = Side{Name: strings.TrimSpace(name)}
		paths = strings.Split(list, ",")
		if s.Name == "" {
			return s, say.Errorf("side %q has no name before its =", arg).WithHint("for example new=runs/a,runs/b")
		}
	}
	for _, path := range paths {
		if path == "" {
			return s, say.Errorf("side %q names an empty path", arg).WithHint("for example new=runs/a,runs/b")
		}
		if err := s.read(filepath.Clean(path)); err != nil {
			return s, err
		}
	}
	return s, s.oneInstrument()
}

// oneInstrument refuses what would count twice, and instruments that are mixed.
func (s *Side) oneInstrument() error {
	for i, a := range s.Runs {
		if slices.ContainsFunc(s.Runs[:i], func(b Source) bool { return runIdentity(a.Run) == runIdentity(b.Run) }) {
			return say.Errorf("side %s names %s twice", s.Name, a.Path).WithHint("a run counts once")
		}
	}
	for i, a := range s.Others {
		if slices.ContainsFunc(s.Others[:i], func(b *tools.Result) bool { return sameResult(a, b) }) {
			return say.Errorf("side %s names %s twice", s.Name, a.File).WithHint("a result counts once")
		}
		if first := s.Others[0]; instrumentName(a) != instrumentName(first) {
			return say.Errorf("side %s mixes instruments: %s is of %s, %s of %s", s.Name, first.File, instrumentName(first), a.File, instrumentName(a)).WithHint("make a side of each: pitot compare " + first.File + " " + a.File)
		}
	}
	if len(s.Runs) > 0 && len(s.Others) > 0 {
		run, other := s.Runs[0].Path, s.Others[0]
		return say.Errorf("side %s mixes instruments: %s is a run of Pitot, %s is of %s", s.Name, run, other.File, instrumentName(other)).WithHint("make a side of each: pitot compare " + run + " " + other.File)
	}
	return nil
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// read adds what is under a path.
func (s *Side) read(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return say.Errorf("there is no %s", path).WithHint(sideHint)
	case err != nil:
		return unreadable.FileError("side", path, err, "")
	case !info.IsDir():
		return s.readFile(path)
	}
	run, err := readRun(path)
	if run != nil {
		s.Runs = append(s.Runs, Source{path, run})
	}
	if run != nil || err != nil {
		return err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return unreadable.FileError("side", path, err, "")
	}
	var files []string
	before := len(s.Runs)
	for _, e := range entries {
		at := filepath.Join(path, e.Name())
		info, err := os.Stat(at)
		if err != nil {
			continue
		}
		if ext := filepath.Ext(at); info.Mode().IsRegular() && (ext == ".json" || ext == ".jsonl") {
			files = append(files, at)
		}
		if !info.IsDir() {
			continue
		}
		run, err := readRun(at)
		if err != nil {
			return err
		}
		if run != nil {
			s.Runs = append(s.Runs, Source{at, run})
		}
	}
	if len(s.Runs) > before { // files next to runs are what was made of them
		return nil
	}
	return s.readOthers(path, files)
}

// readOthers adds the results of another tool among the files of a directory.
// What is left out is reported: a result that cannot be read may be the worst one.
func (s *Side) readOthers(dir string, files []string) error {
	var first error
	before := len(s.Others)
	for _, path := range files {
		r, err := tools.Read(path)
		if err != nil {
			first = cmp.Or(first, err)
			s.left = append(s.left, fmt.Sprintf("left out of %s: %v", s.Name, err))
			continue
		}
		s.Others = append(s.Others, r)
	}
	switch {
	case len(s.Others) > before:
		return nil
	case first != nil:
		return say.Errorf("%s holds no run, and no result of another tool: %v", dir, first).WithHint(say.HintOf(first))
	}
	return say.Errorf("%s holds no run", dir).WithHint("name a directory that holds run.json, one of such directories, or one of results of another tool")
}

// readRun reads the run of a directory, nil if it holds none.
func readRun(dir string) (*result.Run, error) {
	if rundir.StateOf(dir) == rundir.Nothing {
		return nil, nil
	}
	return rundir.ReadResult(dir)
}

// readFile adds what a file holds: a baseline, a run.json or a result of
// another tool.
func (s *Side) readFile(path string) error {
	data, err := userfile.Read(path, userfile.MostLarge)
	if err != nil {
		return unreadable.FileError("side", path, err, "")
	}
	var head struct {
		Schema string `json:"schema"`
	}
	_ = json.Unmarshal(data, &head) // what is no JSON has no schema
	switch {
	case strings.HasPrefix(head.Schema, baselineName):
		runs, err := decodeBaseline(path, data)
		s.Runs = append(s.Runs, runs...)
		return err
	case result.IsOwnSchema(head.Schema), filepath.Base(path) == rundir.Result:
		run, err := rundir.DecodeResult(path, data)
		s.Runs = append(s.Runs, Source{path, run})
		return err
	}
	r, err := tools.Parse(data)
	if err != nil {
		return say.Errorf("%s is no run, no baseline and no result of another tool: %v", path, err).WithHint(say.HintOf(err))
	}
	r.File = path
	s.Others = append(s.Others, r)
	return nil
}

// groupLaunches groups a side's runs by the start of the server that they measured.
// Runs of one process are of one launch, whatever they are called.
func (s *Side) groupLaunches() (ids []string, of map[string][]Source, warnings []string) {
	of = map[string][]Source{}
	known := map[string]string{} // process: launch
	for _, r := range s.Runs {
		id := launchOf(r.Run)
		if process := processOf(r.Run); process != "" {
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

// processOf names the process of the server that a run measured, "" where the server did not tell
// when it began.
func processOf(run *result.Run) string {
	at := run.Target.Server[started]
	if at == "" {
		return ""
	}
	return run.Target.URL + " " + at
}

// oneProcess is the process that all runs of a side measured, "" where they are of several or it is
// not known.
func (s *Side) oneProcess() (process string) {
	for i, r := range s.Runs {
		of := processOf(r.Run)
		if of == "" || i > 0 && of != process {
			return ""
		}
		process = of
	}
	return process
}

// hasStarts reports whether the side's runs say which start of the server they measured.
func (s *Side) hasStarts() bool {
	for _, r := range s.Runs {
		if launchOf(r.Run) != "" {
			return true
		}
	}
	return false
}

// sameProcess says that two sides measured one and the same process of a server.
func sameProcess(a, b *Side) bool { return a.oneProcess() != "" && a.oneProcess() == b.oneProcess() }

// started is the name in /metrics that vLLM and many others give the start of their process.
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
		at := run.Target.Server[started]
		if s, err := strconv.ParseFloat(at, 64); err == nil && s > 1e8 && s < 1e11 { // seconds since 1970
			return "started at " + time.UnixMilli(int64(s*1e3)).UTC().Format("2006-01-02 15:04:05.000")
		}
		return fmt.Sprintf("started at %s s", at)
	}
	return ""
}

// distinctNames gives every side a name of its own. Sides that are named after paths
// of one last element get the shortest tails that tell them apart: a/1 and b/1.
func distinctNames(sides []Side) []Side {
	out := slices.Clone(sides)
	for i, s := range sides {
		var paths []string // of its namesakes, and its own
		for _, other := range sides {
			if other.Name == s.Name && !slices.Contains(paths, other.path) {
				paths = append(paths, other.path)
			}
		}
		if s.path == "" || len(paths) == 1 {
			continue
		}
		for n := 2; ; n++ {
			tails := map[string]bool{}
			longer := false
			for _, path := range paths {
				t, more := pathTail(path, n)
				tails[t], longer = true, longer || more
			}
			if len(tails) == len(paths) || !longer {
				out[i].Name, _ = pathTail(s.path, n)
				break
			}
		}
	}
	taken := map[string]bool{}
	for i := range out { // what is named alike all the same
		name := out[i].Name
		for n := 2; taken[out[i].Name]; n++ {
			out[i].Name = fmt.Sprintf("%s (%d)", name, n)
		}
		taken[out[i].Name] = true
	}
	return out
}

// pathTail is the end of a path, of n elements, and whether there is more of it.
func pathTail(path string, n int) (string, bool) {
	elements := strings.Split(filepath.ToSlash(path), "/")
	if n >= len(elements) {
		return filepath.ToSlash(path), false
	}
	return strings.Join(elements[len(elements)-n:], "/"), true
}

// instrumentName names what wrote a result. Versions of one tool are one
// instrument; Pitot, where it wrote the tool's format, is another.
func instrumentName(r *tools.Result) string {
	if r.By != "" {
		return "pitot as " + r.Tool
	}
	return r.Tool
}

// sameResult says that two files hold the same.
func sameResult(a, b *tools.Result) bool {
	x, y := *a, *b
	x.File, y.File = "", ""
	return reflect.DeepEqual(x, y)
}
