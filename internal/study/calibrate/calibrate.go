// Package calibrate makes the twin of a server: it measures loads that are chosen
// for what they tell of the twin's parameters, each a run of its own, and fits
// the twin to them.
package calibrate

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pitot/internal/data/result"
	"pitot/internal/data/rundir"
	"pitot/internal/plan"
	"pitot/internal/run"
	"pitot/internal/say"
	"pitot/internal/study/predict"
	"pitot/internal/twin/deploy"
	"pitot/internal/workload"
)

// Calibration is what is to be calibrated, and with how much.
type Calibration struct {
	Plan       *plan.Plan         // how the target is reached, and where the runs go
	Deployment *deploy.Deployment // what is known of it
	Time       time.Duration      // that the loads may take together
	Each       time.Duration      // measured window of a load
	Command    []string           // as typed, for the record
	Version    result.Version
	Progress   run.Progress
}

// Result is what came of it.
type Result struct {
	Fit     *predict.Fit
	Dir     string // holds the runs, and is the place for the profile
	Profile string // its file in Dir
}

const (
	// warmUp is the load before a window: the fit goes through it too, so it need
	// not have settled.
	warmUp = 2 * time.Second
	// around is what opening the target and the last answers take besides.
	around = 2 * time.Second
	// leastLoads is how many loads a calibration is made of at least: two, each
	// measured twice.
	leastLoads = 4
)

// Run measures and fits. The first half of the loads is chosen by the catalogue's
// twin, the other by the twin as the first half has it. Each half is measured
// forwards and backwards, so that what drifts by and by takes no side. Errors are
// the user's; what was measured by then stays.
func (c *Calibration) Run(ctx context.Context) (*Result, error) {
	slots := int(c.Time / (c.Each + warmUp + around))
	if slots < leastLoads {
		return nil, say.Errorf("%v are too short for %d loads of %v each", c.Time, leastLoads, c.Each).WithHint("give a longer --budget, or a shorter --duration of each load")
	}
	parent := c.Plan.Out
	if parent == "" {
		parent = filepath.Join("runs", rundir.Name(time.Now(), "calibration-"+c.Deployment.Model.Name))
	}
	x := &Result{Dir: parent, Profile: filepath.Join(parent, "profile.yaml")}
	first := c.load(predict.DesignLoad{Users: 1, Input: 1, Output: 1}, parent, 1)
	if err := run.Check(first); err != nil { // before much is worked out
		return x, err
	}
	var recordings []*predict.Recording
	d := c.Deployment
	number := 0
	for half := range 2 {
		n := slots / 4 // loads, each measured twice
		if half == 1 {
			n = (slots - number) / 2
		}
		chosen := predict.Choose(d, recordings, max(n, 1), c.Each.Seconds())
		order := slices.Concat(chosen, reversed(chosen))
		for _, l := range order {
			number++
			c.showLine(fmt.Sprintf("load %d of %d: %s", number, slots, describe(l)))
			more, err := c.measure(ctx, l, parent, number)
			if err != nil {
				return x, err
			}
			recordings = append(recordings, more...)
		}
		if half == 0 {
			c.showLine("choosing further loads by what these told")
			fitted, err := predict.Center(c.Deployment, recordings)
			if err != nil {
				return x, err
			}
			d = fitted
		}
	}
	c.showLine("fitting")
	var err error
	x.Fit, err = predict.FitRuns(c.Deployment, recordings)
	if err != nil {
		return x, err
	}
	return x, x.Fit.Profile(c.Deployment.Given).Write(x.Profile)
}

func reversed(list []predict.DesignLoad) []predict.DesignLoad {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}

func describe(l predict.DesignLoad) string {
	return fmt.Sprintf("%s, prompts of about %d tokens, answers of %d", say.Plural(l.Users, "user"), l.Input, l.Output)
}

func (c *Calibration) showLine(line string) {
	if c.Progress != nil {
		c.Progress.ShowLine(line)
	}
}

// load is the plan of a load.
func (c *Calibration) load(l predict.DesignLoad, parent string, number int) *plan.Plan {
	one := *c.Plan
	one.Out = filepath.Join(parent, fmt.Sprintf("%02d", number))
	one.Load = plan.Load{Concurrency: l.Users, Arrival: "poisson", Duration: c.Each, Warmup: warmUp, Repeat: 1}
	one.Ask.Input, one.Ask.Output = between(l.Input), between(l.Output)
	if one.SeedSet {
		one.Seed = run.LaunchSeed(c.Plan.Seed, number)
	}
	return &one
}

// measure carries one load out. One that nothing answered tells nothing, and ends
// the calibration: the next would fare no better.
func (c *Calibration) measure(ctx context.Context, l predict.DesignLoad, parent string, number int) ([]*predict.Recording, error) {
	r := run.Runner{Command: c.Command, Version: c.Version, Progress: c.Progress}
	measured, dir, err := r.Run(ctx, c.load(l, parent, number))
	if err != nil {
		return nil, err
	}
	if measured.Interrupted || ctx.Err() != nil {
		return nil, say.Errorf("stopped after %s", say.Plural(number-1, "load")).WithHint("they stay: pitot fit " + c.Deployment.Spec + " " + filepath.Join(parent, "*"))
	}
	recordings, err := predict.ReadRuns(dir)
	if err != nil {
		return nil, fmt.Errorf("load %d (%s): %w", number, describe(l), err)
	}
	return recordings, nil
}

// between are lengths from half of one to one and a half of it.
func between(n int) workload.Lengths {
	lengths, err := workload.ParseLengths(fmt.Sprintf("uniform(%d,%d)", max(n/2, 1), max(n*3/2, 2)))
	if err != nil {
		return workload.Fixed(n)
	}
	return lengths
}

// Given says what deployment a target is: as the user says, or as an embedded
// target's own name does.
func Given(spec, given string) (*deploy.Deployment, error) {
	if given == "" {
		for _, kind := range []string{plan.KindSim, plan.KindMock} {
			if rest, ok := strings.CutPrefix(spec, kind+":"); ok {
				given = rest
			}
		}
	}
	if given == "" {
		return nil, say.Errorf("no deployment given").WithHint("say what the server is, with the settings it was started with: --deployment 'llama-3.1-8b@h100?max_num_seqs=256'")
	}
	return deploy.Parse(given)
}
