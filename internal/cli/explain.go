package cli

import (
	"context"
	"fmt"
	"io"

	"pitot/internal/analysis/inspect"
	"pitot/internal/config"
	"pitot/internal/report"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/session"
)

// explainVerb says what limits a run.
func explainVerb(_ context.Context, e *Env) (int, error) {
	var p config.Explanation
	dirs, err := config.DecodeParts(config.VerbExplain, e.Args, e.Environ, &e.Display, &p)
	if err != nil {
		return Usage, err
	}
	if len(dirs) != 1 {
		return Usage, say.Errorf("explain needs one run directory, not %d", len(dirs)).WithHint("for example pitot explain runs/NAME")
	}
	measured, err := openRun(dirs[0], e.Stderr)
	if measured == nil {
		return Usage, err
	}
	view := newProgress(e.Stderr, p.Format == "json", e.Getenv)
	progress := func(load string, done, of int) {
		view.Line(fmt.Sprintf("explaining %s: load %d of %d", load, done+1, of))
	}
	x, err := inspect.Run(dirs[0], measured, inspect.Options{
		Deployment: p.Deployment, Progress: progress, AtLimit: !e.Display.Full && !p.Save && p.Format != "json",
	})
	view.close()
	if err != nil {
		return Usage, err
	}
	if p.Save {
		measured.Findings = x.Findings(versionOf().Version, false)
		if err := session.Save(dirs[0], measured); err != nil {
			return Done, err
		}
	}
	if p.Format == "json" {
		return Done, report.WriteJSON(e.Stdout, x)
	}
	return Done, report.WriteExplanation(e.Stdout, measured, x, e.styleOf(e.Stdout))
}

// buildModel is a run's model with what limits it, where an objective is not met. What
// cannot be explained is no part of it. Of no run it is empty.
func buildModel(measured *result.Run, dir string) (m report.Model) {
	if measured == nil {
		return m
	}
	m = report.Build(measured, dir)
	x := inspect.StoredExplanation(dir, measured)
	if x == nil || measured.Findings.By != versionOf().Version {
		brief, err := inspect.Run(dir, measured, inspect.Options{Quick: true})
		if err == nil && len(brief.Points) > 0 {
			x, measured.Findings = brief, brief.Findings(versionOf().Version, true)
		}
	}
	m.AddExplanation(x)
	return m
}

// concludedModel is the model of a run that was just measured. What limits it is kept
// with it.
func concludedModel(measured *result.Run, dir string) report.Model {
	kept := measured != nil && session.IsSaved(dir, measured)
	m := buildModel(measured, dir)
	if kept && measured.Findings != nil && session.Save(dir, measured) != nil {
		measured.Findings = nil // the result is there as it was
	}
	return m
}

func explainHelp(w io.Writer) {
	fmt.Fprint(w, `pitot explain RUN [--deployment MODEL@GPU[?settings]]

Finds what limits a run: the cause of each limit that was missed (of p90 TTFT, mean
TPOT and p90 stall if all were met), the evidence, what was ruled out, how sure it
is, how to confirm it, and one setting to try. For a search it explains the load
at the limit; --full explains every load, with all evidence.

Pitot simulates the deployment with the same requests, relieving one cause after
the other. For a real server, name it with --deployment; sim: and mock: targets
have theirs. If the cause is not known, explain says why, and how to find out.
docs/why.md shows how to read it.

run.json of a run that misses its --slo has a short form of this. --save puts all
of it there, and report and compare use it.

`)
	printSettings(w, config.VerbExplain)
}
