package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/plan"
	"pitot/internal/report"
	"pitot/internal/run"
	"pitot/internal/run/search"
	"pitot/internal/say"
	"pitot/internal/study/tools"
)

func reportSettings() []string { return []string{"format", "open", "export", "strict"} }

// reportVerb shows runs again. A run whose process was killed has a journal
// and no run.json: it is finished first.
func reportVerb(_ context.Context, e *Env) (int, error) {
	p, dirs, err := plan.Decode(reportSettings(), e.Args, e.Environ)
	if err != nil {
		return Usage, err
	}
	if len(dirs) == 0 {
		return Usage, say.Errorf("no run given").WithHint("for example pitot report runs/*")
	}
	exports, err := tools.ParseExports(p.Export)
	if err != nil {
		return Usage, err
	}
	if len(exports) > 0 && len(dirs) > 1 {
		return Usage, say.Errorf("--export writes one run, and %d are named", len(dirs)).WithHint("export them one by one")
	}
	code := Done
	var unsaved error
	var beside report.SideBySide
	for _, dir := range dirs {
		if isFile(dir) {
			if err := showForeign(e, dir, p.Format, exports, &beside); err != nil {
				return Usage, err
			}
			continue
		}
		measured, failed := openRun(dir, e.Stderr)
		if measured == nil {
			return Usage, failed
		}
		unsaved = errors.Join(unsaved, failed)
		beside.Run(measured, dir)
		page, missing := writePage(e.Stderr, measured, dir)
		if err := errors.Join(show(e, measured, shownFrom{dir, failed == nil, page, missing}, p.Format), export(e, exports, measured, dir)); err != nil {
			return Done, err
		}
		if path := filepath.Join(dir, pageName); p.ShowPage && isFile(path) { // of an earlier time, if a note said so
			openPage(e, path)
		}
		code = worse(code, strictly(&p, e, measured, judged(measured))) // that a run was interrupted is history
	}
	if p.Format == "text" || p.Format == "md" {
		if err := beside.Write(e.Stdout, p.Format == "md"); err != nil {
			return Done, err
		}
	}
	return code, unsaved
}

// openRun reads a run's result, or makes it. A result with an error is one that
// could not be saved.
func openRun(dir string, stderr io.Writer) (*result.Run, error) {
	data, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err == nil {
		var head struct{ Schema string }
		damaged := func(err error) error {
			return say.Errorf("run.json in %s is damaged: %v", dir, err).WithHint("delete it and run pitot report again: it is made anew from the records")
		}
		if err := json.Unmarshal(data, &head); err != nil {
			return nil, damaged(err)
		}
		if head.Schema != result.Schema { // before its fields, which may have other types there
			hint := "name the directory of a run of pitot"
			if strings.HasPrefix(head.Schema, strings.TrimRight(result.Schema, "0123456789")) {
				hint = "a newer pitot wrote it: update this one"
			}
			return nil, say.Errorf("run.json in %s has schema %q, not %q", dir, head.Schema, result.Schema).WithHint(hint)
		}
		var measured result.Run
		if err := json.Unmarshal(data, &measured); err != nil {
			return nil, damaged(err)
		}
		return &measured, nil
	}
	if !run.Exists(dir) {
		return nil, say.Errorf("%s holds no run", dir).WithHint("name a directory that holds run.json or journal.pitot")
	}
	fmt.Fprintf(stderr, "finishing the run in %s\n", dir)
	measured, err := run.Finish(dir)
	if errors.Is(err, record.ErrLive) {
		return nil, run.StillGoingOn(dir)
	}
	if measured != nil && search.Complete(measured) && err == nil {
		err = run.Save(dir, measured)
	}
	return measured, err
}
