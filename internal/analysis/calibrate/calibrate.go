// Package calibrate makes the twin of a server: it measures loads that are chosen
// for what they tell of the twin's parameters, each a run of its own, and fits
// the twin to them.
package calibrate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"pitot/internal/analysis/predict"
	"pitot/internal/config"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/say"
	"pitot/internal/session"
	"pitot/internal/sim/deploy"
	"pitot/internal/target"
	"pitot/internal/workload"
)

// Calibration holds what to calibrate, and with how much.
type Calibration struct {
	Plan       *config.Plan       // how the target is reached, and where the runs go
	Deployment *deploy.Deployment // what is known of it
	Time       time.Duration      // that the loads may take together
	Each       time.Duration      // measured window of a load
	AnyModel   bool               // the server may call its model otherwise than the deployment
	Command    []string           // as typed, for the record
	Version    result.Version
	Progress   session.Progress
	Measure    Measure // carries out the loads; nil for runs on the target
}

// Result holds the outcome of a calibration.
type Result struct {
	Fit     *predict.Fit // nil where it came to none
	Dir     string       // holds the runs, and is the place for the profile
	Runs    []string     // the directories in Dir that a fit can be made from
	Profile string       // its file in Dir
}

const (
	// warmUp is the load before a window: the fit goes through it too, so it need
	// not have settled.
	warmUp = 2 * time.Second
	// around is the time that opening the target and the last answers take besides.
	around = 2 * time.Second
	// leastLoads is the least number of loads in a calibration.
	leastLoads = 4
	// bothWays is the number of loads that the time must allow if each is measured twice.
	bothWays = 8
)

// Measure carries a load out, and gives what was recorded of it: nothing of one that
// does not tell anything.
type Measure func(context.Context, predict.DesignLoad) ([]*predict.Recording, error)

// series is the loads of a calibration, one after the other.
type series struct {
	*Calibration
	dir        string
	measured   int // loads that were carried out
	recordings []*predict.Recording
	runs       []string // the directories that they are from
	tooLong    int      // tokens of the shortest prompts that the server takes no request with, 0 for none
	silent     error    // why the last load that tells nothing does not
}

// Run measures and fits. The first half of the loads is chosen by the catalogue's
// twin, the other by the twin as the first half has it. Each half is measured
// forwards and backwards, so that what drifts by and by takes no side; where there is time
// for a few loads alone each is measured once, so that they are of more kinds. Errors are
// the user's; what was measured by then stays, and the result says where. With Measure the
// result is the fit alone, and nothing is written.
func (c *Calibration) Run(ctx context.Context) (*Result, error) {
	slots, err := c.countSlots()
	if err != nil {
		return nil, err
	}
	s := &series{Calibration: c}
	if c.Measure != nil {
		fit, err := s.fitTwin(ctx, slots)
		return &Result{Fit: fit}, err
	}
	if s.dir = c.Plan.Out; s.dir == "" {
		s.dir = filepath.Join("runs", rundir.Name(time.Now(), "calibration-"+c.Deployment.Model.Name))
	}
	x := &Result{Dir: s.dir, Profile: filepath.Join(s.dir, "profile.yaml")}
	first := s.planLoad(predict.DesignLoad{Users: 1, Input: 1, Output: 1}, 1)
	err = session.Check(first) // before much is worked out
	if err == nil {
		err = session.CheckServer(ctx, first, s.showLine)
	}
	if err == nil && c.Plan.Kind() == config.KindServer && !c.AnyModel {
		err = c.checkModel(ctx)
	}
	if err == nil {
		x.Fit, err = s.fitTwin(ctx, slots)
	}
	x.Runs = s.runs
	if err != nil {
		return x, err
	}
	return x, x.Fit.Profile(c.Deployment.Given).Write(x.Profile)
}

// countSlots returns how many loads fit into the time, and an error where they are too few to fit a
// twin.
func (c *Calibration) countSlots() (int, error) {
	least := leastLoads
	if c.Measure == nil && c.Plan.Kind() == config.KindServer { // whose speed is not known: half of its loads must do to choose the others
		least = bothWays
	}
	n := int(c.Time / c.nominalDuration())
	if n >= least {
		return n, nil
	}
	needed := time.Duration(least) * c.nominalDuration()
	return 0, say.Errorf("--budget %s is too short: %d loads of %s each take %s", say.Duration(c.Time), least, say.Duration(c.Each), say.Duration(needed)).
		WithHint(fmt.Sprintf("give --budget %v at least, or a shorter --duration of each load", needed))
}

// Outline holds what a calibration will measure.
type Outline struct {
	Loads int // about, as long as they take no longer than is thought
	Ways  int // how often each is measured
	First []predict.DesignLoad
}

// Outline returns what a calibration will measure, as far as it is known beforehand.
func (c *Calibration) Outline() (Outline, error) {
	slots, err := c.countSlots()
	if err != nil {
		return Outline{}, err
	}
	s := &series{Calibration: c}
	ways := waysOf(slots)
	return Outline{slots, ways, s.chooseLoads(c.Deployment, slots/(2*ways))}, nil
}

// waysOf returns how often each of the loads is measured, where there is time for so many.
func waysOf(slots int) int {
	if slots < bothWays {
		return 1
	}
	return 2
}

// nominalDuration returns the time that a load is thought to take.
func (c *Calibration) nominalDuration() time.Duration { return c.Each + warmUp + around }

// fitTwin measures the loads, of which so many are thought to fit into the time, and
// fits the twin to them.
func (s *series) fitTwin(ctx context.Context, slots int) (*predict.Fit, error) {
	begin, ways := time.Now(), waysOf(slots)
	for tooLong := -1; len(s.recordings) == 0; {
		if tooLong == s.tooLong { // shorter prompts are not the remedy
			return nil, s.silent
		}
		tooLong = s.tooLong
		if err := s.measureAll(ctx, s.chooseLoads(s.Deployment, slots/(2*ways)), ways, slots); err != nil {
			return nil, err
		}
	}
	s.showLine("choosing further loads by these")
	from := s.Deployment
	nearer, err := predict.RoughFit(s.Deployment, s.recordings)
	if err == nil {
		from = nearer
	} else { // further loads may be the remedy
		s.showLine("note: " + err.Error())
	}
	each := s.nominalDuration()
	if s.Plan != nil && s.Plan.Kind() != config.KindSim { // answers may take longer than was thought
		each = max(each, time.Since(begin)/time.Duration(max(s.measured, 1)))
	}
	for tooLong := -1; tooLong != s.tooLong; { // others in place of those that were not taken
		tooLong = s.tooLong
		left := max(int(s.Time/each)-s.measured, 2)
		if err := s.measureAll(ctx, s.chooseLoads(from, left/ways), ways, s.measured+left); err != nil {
			return nil, err
		}
	}
	s.showLine("fitting")
	return predict.FitFrom(s.Deployment, nearer, s.recordings)
}

// chooseLoads chooses so many loads for a deployment, of prompts that the server takes.
func (s *series) chooseLoads(d *deploy.Deployment, n int) []predict.DesignLoad {
	taken := *d
	if s.tooLong > 0 {
		taken.Settings.MaxModelLen = min(taken.Settings.MaxModelLen, s.tooLong*3/2) // three fifths of it are asked for
	}
	return predict.ChooseLoads(&taken, s.recordings, n, s.Each.Seconds(), warmUp.Seconds())
}

// measureAll carries loads out in their order, and of two ways again in the opposite one. A
// load that is not answered, as its prompts may be longer than the server takes, is
// left out.
func (s *series) measureAll(ctx context.Context, loads []predict.DesignLoad, ways, total int) error {
	var back []predict.DesignLoad
	if ways > 1 {
		back = slices.Clone(loads)
		slices.Reverse(back)
	}
	for _, l := range slices.Concat(loads, back) {
		if s.tooLong > 0 && l.Input >= s.tooLong {
			continue
		}
		s.showLine(fmt.Sprintf("load %d of %d: %s", s.measured+1, total, DescribeLoad(l)))
		if err := s.measureLoad(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// DescribeLoad says what a load asks.
func DescribeLoad(l predict.DesignLoad) string {
	return fmt.Sprintf("%s, prompts of about %s tokens, answers of %s", say.Plural(l.Users, "user"), say.Count(l.Input), say.Count(l.Output))
}

func (c *Calibration) showLine(line string) {
	if c.Progress != nil {
		c.Progress.ShowLine(line)
	}
}

// planLoad is the plan of a load.
func (s *series) planLoad(l predict.DesignLoad, number int) *config.Plan {
	one := *s.Plan
	one.Out = filepath.Join(s.dir, fmt.Sprintf("%02d", number))
	one.Load = config.Load{Concurrency: l.Users, Arrival: "poisson", Duration: s.Each, Warmup: warmUp, Repeat: 1}
	one.Ask.Input, one.Ask.Output = lengthsAround(l.Input), lengthsAround(l.Output)
	if one.SeedSet {
		one.Seed = session.LaunchSeed(s.Plan.Seed, number)
	}
	return &one
}

// measureLoad has one load carried out.
func (s *series) measureLoad(ctx context.Context, l predict.DesignLoad) error {
	carryOut := s.runLoad
	if s.Measure != nil {
		s.measured++
		carryOut = s.Measure
	}
	recordings, err := carryOut(ctx, l)
	if err != nil {
		return err
	}
	s.recordings = append(s.recordings, recordings...)
	return nil
}

// runLoad carries a load out as a run against the plan's target.
func (s *series) runLoad(ctx context.Context, l predict.DesignLoad) ([]*predict.Recording, error) {
	r := session.Runner{Command: s.Command, Version: s.Version, Progress: s.Progress}
	measured, dir, err := r.Run(ctx, s.planLoad(l, s.measured+1))
	var refused *target.Error
	if errors.As(err, &refused) && refused.Class == record.ErrContextLength && measured == nil {
		if s.tooLong == 0 || l.Input < s.tooLong {
			s.tooLong = l.Input
		}
		s.leaveOut(err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s.measured++
	if measured.Interrupted || ctx.Err() != nil {
		return nil, say.Errorf("stopped in load %d", s.measured)
	}
	recordings, err := predict.ReadRuns(dir)
	if err != nil {
		s.leaveOut(err)
		return nil, nil
	}
	s.runs = append(s.runs, dir)
	return recordings, nil
}

// leaveOut says why a load tells nothing.
func (s *series) leaveOut(why error) {
	s.silent = why
	s.showLine("left out: " + why.Error())
}

// lengthsAround are lengths from half of one to one and a half of it.
func lengthsAround(n int) workload.Lengths {
	lengths, err := workload.ParseLengths(fmt.Sprintf("uniform(%d,%d)", max(n/2, 1), max(n*3/2, 2)))
	if err != nil {
		return workload.FixedLength(n)
	}
	return lengths
}
