package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"pitot/internal/analysis/compare"
	"pitot/internal/config"
	"pitot/internal/report"
	"pitot/internal/results/rundir"
	"pitot/internal/session"
)

// Launches of an embedded target are measured one after the other: each is a run
// of its own, in a directory next to the others, with its own name and seed, so that
// the directory around them is a side of a comparison.

// launchPlan is the plan of one launch, counted from 1. Its seed follows from the
// one that was given.
func launchPlan(p *config.Plan, parent string, n int) *config.Plan {
	one := *p
	one.Launches, one.Launch = 1, strconv.Itoa(n)
	one.Out = filepath.Join(parent, one.Launch)
	if p.SeedSet {
		one.Seed = session.LaunchSeed(p.Seed, n)
	}
	return &one
}

// checkLaunches refuses launches whose places are taken, before the first is measured.
func checkLaunches(p *config.Plan, parent string) error {
	for n := 1; n <= p.Launches; n++ {
		if err := session.Check(launchPlan(p, parent, n)); err != nil {
			return err
		}
	}
	return nil
}

// launchesDir is the directory that has one of each launch.
func launchesDir(p *config.Plan) string {
	if p.Out != "" {
		return p.Out
	}
	_, name, _ := strings.Cut(p.Spec, ":")
	name, _, _ = strings.Cut(name, "?")
	return rundir.DefaultPath(time.Now(), name)
}

// launchLines say what each launch would be: its directory and its seed.
func launchLines(p *config.Plan, parent string) (lines []string) {
	for n := 1; n <= p.Launches; n++ {
		one := launchPlan(p, parent, n)
		dir := one.Out
		if p.Out == "" { // its name is of the time when it begins
			dir = filepath.Join("runs", "…", one.Launch)
		}
		lines = append(lines, fmt.Sprintf("launch %-2d %s, seed %s", n, dir, seedText(one)))
	}
	return lines
}

// eachLaunch measures all launches, and shows what they show together.
func (v *measuring) eachLaunch(ctx context.Context, e *Env, p *config.Plan) (int, error) {
	parent := launchesDir(p)
	view := newProgress(e.Stderr, p.Quiet, e.Getenv)
	ctx, stop := interruptibleContext(ctx, view)
	defer stop()
	if err := checkLaunches(p, parent); err != nil {
		return Usage, err
	}
	side := compare.Side{Name: filepath.Base(parent)}
	code := Done
	for n := 1; n <= p.Launches && ctx.Err() == nil; n++ {
		one := launchPlan(p, parent, n)
		view.ShowLine(fmt.Sprintf("launch %d of %d, seed %s", n, p.Launches, seedText(one)))
		measured, dir, err := v.carryOut(ctx, e, one, view)
		writePage(e.Stderr, measured, concludedModel(measured, dir), dir)
		switch {
		case measured == nil:
		case measured.Interrupted:
			view.ShowLine(fmt.Sprintf("launch %d was stopped: it is in %s, and in no figure below", n, dir))
		default:
			side.Runs = append(side.Runs, compare.Source{Path: dir, Run: measured})
			code = worseCode(code, gatedCode(&p.Output, e, measured, exitCode(measured)))
		}
		if err != nil {
			return Done, err // the launches before it are in their directories
		}
	}
	if len(side.Runs) == 0 {
		return Interrupted, nil
	}
	m := report.BuildLaunches(side, parent)
	var err error
	if p.Format == "md" {
		err = m.WriteMarkdown(e.Stdout)
	} else {
		err = m.WriteTerminal(e.Stdout, e.styleOf(e.Stdout))
	}
	if err != nil {
		return Done, err
	}
	if ctx.Err() != nil {
		return Interrupted, nil
	}
	return code, nil
}

func seedText(p *config.Plan) string {
	if !p.SeedSet {
		return "fresh"
	}
	return strconv.FormatUint(p.Seed, 10)
}
