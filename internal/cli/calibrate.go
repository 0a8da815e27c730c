package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"pitot/internal/analysis/calibrate"
	"pitot/internal/config"
	"pitot/internal/report"
	"pitot/internal/say"
	"pitot/internal/sim/deploy"
)

// calibrateVerb measures a server with loads chosen for it and fits the twin to them.
func calibrateVerb(ctx context.Context, e *Env) (int, error) {
	var own config.Calibration
	p, args, err := config.DecodeWith(config.VerbCalibrate, e.Args, e.Environ, &own)
	if err != nil {
		return Usage, err
	}
	if len(args) > 1 {
		return Usage, say.Errorf("more than one target: %q and %q", args[0], args[1]).WithHint("one calibration is of one server")
	}
	if err := p.CheckTarget(config.VerbCalibrate); err != nil {
		return Usage, err
	}
	given := own.Deployment
	if given == "" && p.Kind() != config.KindServer {
		given = config.EngineOf(p.Spec)
	}
	if given == "" {
		return Usage, say.Errorf("no deployment given").WithHint("say what the server is, with the settings it was started with: --deployment 'llama-3.1-8b@h100?max_num_seqs=256'")
	}
	d, err := deploy.Parse(given)
	if err != nil {
		return Usage, err
	}
	c := calibrate.Calibration{Plan: &p, Deployment: d, Time: own.Time, Each: own.Each, AnyModel: own.Allow == config.AllowModel, Command: e.Command, Version: versionOf()}
	if p.DryRun {
		return Done, writeOutline(e.Stdout, &c)
	}
	view := newProgress(e.Stderr, p.Quiet, e.Getenv)
	ctx, stop := interruptibleContext(ctx, view)
	defer stop()
	c.Progress = view
	x, err := c.Run(ctx)
	view.close()
	if err != nil && x != nil && len(x.Runs) > 0 {
		command := slices.Concat([]string{"pitot", "fit", given}, x.Runs, []string{"--out", x.Profile})
		fmt.Fprintf(e.Stderr, "pitot: whole loads measured: %s, and a twin is made of them by %s\n", say.Count(len(x.Runs)), say.ShellLine(command))
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return Interrupted, err
	case err != nil:
		return Done, err
	case own.Format == "json":
		return Done, report.WriteJSON(e.Stdout, x.Fit)
	}
	return Done, report.WriteFit(e.Stdout, x.Fit, x.Profile, e.styleOf(e.Stdout))
}

// writeOutline says what a calibration will measure and how long that takes.
func writeOutline(w io.Writer, c *calibrate.Calibration) error {
	x, err := c.Outline()
	if err != nil {
		return err
	}
	ways := ""
	if x.Ways > 1 {
		ways = "; each kind is measured twice"
	}
	lines := []string{
		"target    " + c.Plan.Spec,
		"twin      " + c.Deployment.Spec,
		fmt.Sprintf("loads     about %d of %s with warm-up%s", x.Loads, say.Duration(c.Each), ways),
		"time      about " + say.Duration(c.Time),
	}
	for i, l := range x.First {
		head := "first     "
		if i > 0 {
			head = "          "
		}
		lines = append(lines, head+calibrate.DescribeLoad(l))
	}
	lines = append(lines, "then      loads that are chosen by these results", "nothing was sent")
	_, err = fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

func calibrateHelp() manual {
	return manual{target: true, engine: true,
		about: "Calibrate the simulation of a server with about twenty short loads.",
		usage: "pitot calibrate URL --deployment MODEL@GPU[?settings] [flags]",
		examples: `pitot calibrate http://localhost:8000 --deployment 'llama-3.1-8b@h100?max_num_seqs=256'
			pitot predict 'llama-3.1-8b@h100?profile=PROFILE'       # uses the result`,
		notes: `Give the settings that the engine was started with. Nothing else may use the server
meanwhile. Each load is a run in a directory below --out, next to the profile.`,
	}
}
