package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"pitot/internal/config"
	"pitot/internal/report"
	"pitot/internal/report/card"
	"pitot/internal/report/export"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/say"
	"pitot/internal/session"
)

// reportVerb shows runs again. A run whose process was killed has a journal
// and no run.json: it is finished first.
func reportVerb(_ context.Context, e *Env) (int, error) {
	var p config.Output
	dirs, err := config.DecodeParts(config.VerbReport, e.Args, e.Environ, &e.Display, &p)
	if err != nil {
		return Usage, err
	}
	if len(dirs) == 0 {
		return Usage, say.Errorf("no run given").WithHint("for example pitot report runs/*")
	}
	exports, err := export.ParseExports(p.Export)
	if err != nil {
		return Usage, err
	}
	if len(exports) > 0 && len(dirs) > 1 {
		return Usage, say.Errorf("--export writes one run, and %d are named", len(dirs)).WithHint("export them one by one")
	}
	if p.Card != "" {
		if err := card.CheckName(p.Card); err != nil {
			return Usage, err
		}
		if len(dirs) > 1 || isFile(dirs[0]) {
			return Usage, say.Errorf("--card shows one run of Pitot").
				WithHint("for example pitot report runs/before --card card.svg")
		}
	}
	code := Done
	var unsaved error
	var sideBySide report.SideBySide
	for _, dir := range dirs {
		if isFile(dir) {
			if err := showForeign(e, dir, p.Format, exports, &sideBySide); err != nil {
				return Usage, err
			}
			continue
		}
		build := buildModel
		if rundir.StateOf(dir) == rundir.Measured { // it is finished now
			build = concludedModel
		}
		measured, failed := openRun(dir, e.Stderr)
		if measured == nil {
			return Usage, failed
		}
		unsaved = errors.Join(unsaved, failed)
		sideBySide.AddRun(measured, dir)
		model := build(measured, dir)
		page, missing := writePage(e.Stderr, measured, model, dir)
		if err := errors.Join(showRun(e, measured, shownFrom{model, dir, failed == nil, page, missing}, p.Format), writeExports(e, exports, measured, dir), writeCard(e, p.Card, &model)); err != nil {
			return Done, err
		}
		if path := filepath.Join(dir, rundir.Page); p.ShowPage && isFile(path) { // where this one could not be written it is an earlier one, as a note says
			openPage(e, path)
		}
		code = worseCode(code, strictExitCode(&p, e, measured, definiteCode(measured))) // that a run was interrupted is history
	}
	if p.Format == "text" || p.Format == "md" {
		if err := sideBySide.Write(e.Stdout, p.Format == "md"); err != nil {
			return Done, err
		}
	}
	return code, unsaved
}

// writeCard writes the card of a run to a path, "" for none.
func writeCard(e *Env, path string, m *report.Model) error {
	if path == "" {
		return nil
	}
	err := session.NotOwn(path)
	if err == nil {
		err = export.ReplaceFile(path, func(w io.Writer) error {
			return card.New(m).Write(w, path)
		})
	}
	if err == nil {
		fmt.Fprintf(e.Stderr, "pitot: wrote %s\n", path)
	}
	return err
}

// openRun reads a run's result, or makes it. A result with an error is one that
// could not be saved.
func openRun(dir string, stderr io.Writer) (*result.Run, error) {
	switch rundir.StateOf(dir) {
	case rundir.Finished:
		return rundir.ReadResult(dir)
	case rundir.Measured:
	default:
		return nil, rundir.NoRun(dir)
	}
	fmt.Fprintf(stderr, "finishing the run in %s\n", dir)
	measured, err := session.Finish(dir, func(line string) { fmt.Fprintln(stderr, line) })
	if errors.Is(err, rundir.ErrLive) {
		return nil, session.StillGoingOn(dir)
	}
	return measured, err
}

func reportHelp() manual {
	return manual{
		about: "Show a run again, or finish one that was killed.",
		usage: "pitot report RUN… [flags]",
		examples: `pitot report runs/before
			pitot report runs/before --open                 # the page, in a browser
			pitot report runs/before --card before.svg      # a picture to share, also .png and .md
			pitot report runs/before --export vllm=bench.json
			pitot report vllm-result.json                   # also SGLang, AIPerf and GuideLLM`,
		notes: `pitot report also writes the page report.html again. If the process of a run was killed, it
first finishes the run from its journal. No measured request is lost.`,
	}
}
