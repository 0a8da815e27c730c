package cli

import (
	"context"
	"fmt"

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

func explainHelp() manual {
	return manual{engine: true,
		about: "Name the bottleneck of a run, and one setting to try.",
		usage: "pitot explain RUN [--deployment MODEL@GPU[?settings]] [flags]",
		examples: `pitot explain runs/before
			pitot explain runs/before --deployment 'llama-3.1-8b@h100?max_num_seqs=256'`,
		notes: `Pitot explains, with evidence, each limit of the SLO that was not met. Without an SLO it explains p90 TTFT,
mean TPOT and p90 stall. For a search it explains the load at the limit; --full explains every load.
Pitot simulates the deployment and removes one possible cause after another. A run on a mock: or sim: target has its deployment in the target.`,
	}
}
