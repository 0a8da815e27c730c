package experiment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"pitot/internal/config"
	"pitot/internal/experiment/decide"
	"pitot/internal/experiment/server"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/say"
	"pitot/internal/session"
	"pitot/internal/userfile"
)

// View shows how an experiment goes on.
type View interface {
	session.Progress
	About(line string) // what is being measured
}

// Waiter shows what is waited for, and the last line that a server logged. A [View] that is one is
// told each second.
type Waiter interface {
	Waiting(what, log string)
}

// Experiment is a plan and what was measured of it.
type Experiment struct {
	Plan    *Plan
	Dir     string
	Version result.Version
	Void    []string // parts that a changed plan has no use for: why

	state  *state
	runs   map[string]*result.Run // of finished parts, by directory; nil of others
	twin   *Experiment            // the same on the twin, whose runs tell how long rows take; nil where that is not known
	untold error                  // why the twin gives no forecast; nil where it does, or there is none

	simulation *simulation // that twin is of
}

// Load reads what was measured of a plan.
func Load(p *Plan, dir string) (*Experiment, error) {
	x := &Experiment{Plan: p, Dir: dir, runs: map[string]*result.Run{}}
	var err error
	if x.state, err = readState(dir); err == nil {
		x.leaveOut()
	}
	return x, err
}

// Measure goes on until there is enough, the budget is spent or ctx ends. What was
// measured before is not measured again.
func Measure(ctx context.Context, p *Plan, source []byte, dir string, version result.Version, view View) (*Experiment, error) {
	s, release, err := openState(dir, p)
	if err != nil {
		return nil, err
	}
	defer release()
	x := &Experiment{Plan: p, Dir: dir, Version: version, state: s, runs: map[string]*result.Run{}}
	s.Seed, s.Failed = p.Seed, nil // what could not be started is tried again
	x.leaveOut()
	left, err := server.StopLeft(dir)
	if left != "" {
		view.ShowLine("note: " + left)
	}
	if err != nil {
		return nil, err
	}
	s.Sittings = append(s.Sittings, sitting{Pitot: version.Version, Began: now()})
	if err := errors.Join(rundir.WriteFile(dir, planFile, source), s.write(dir)); err != nil {
		return nil, err
	}
	why, err := x.measure(ctx, view)
	if err != nil && ctx.Err() == nil {
		why = result.Reason{Code: result.SittingFailed, Quote: say.PlainLine(err.Error())}
	}
	if x.completeBlocks() >= p.Launches && !slices.Contains(s.Looked, p.Launches) {
		s.Looked = append(s.Looked, p.Launches)
		slices.Sort(s.Looked)
	}
	last := &s.Sittings[len(s.Sittings)-1]
	last.Ended, last.Why = now(), why
	return x, errors.Join(err, s.write(dir))
}

func now() string { return time.Now().Format(time.RFC3339) }

// measure goes from block to block.
func (x *Experiment) measure(ctx context.Context, view View) (why result.Reason, err error) {
	p := x.Plan
	for block := 1; block <= p.Launches; block++ {
		d := x.currentDecision()
		if d.Enough {
			return result.Reason{Code: result.SittingDone}, nil
		}
		left := map[string]bool{}
		for i, c := range p.Configurations() {
			left[c.Name] = d.Of[i].Left > 0
		}
		order := p.blockOrder(block)
		for n, c := range order {
			if left[c.Name] || p.left[c.Name] {
				continue
			}
			head := fmt.Sprintf("launch %d of %d, %d of %d: %s", block, p.Launches, n+1, len(order), c.Name)
			if x.budgetSpent() {
				return result.Reason{Code: result.SittingBudget}, nil
			}
			fresh, err := x.measureLaunch(ctx, c, block, head, view)
			if ctx.Err() != nil {
				if left := (notStopped{}); errors.As(err, &left) {
					return result.Reason{Code: result.SittingInterrupted}, left
				}
				return result.Reason{Code: result.SittingInterrupted}, nil
			}
			if errors.Is(err, errWaits) {
				return result.Reason{Code: result.SittingWaits}, nil
			}
			if err != nil {
				return result.Reason{Code: result.SittingFailed}, err
			}
			if fresh {
				view.ShowLine(head + x.launchText(c, block))
			}
		}
	}
	return result.Reason{Code: result.SittingDone}, nil
}

// launchText says what a launch carried.
func (x *Experiment) launchText(c Configuration, block int) string {
	measured := x.finishedRun(&Part{c, x.Plan.ContractRow(), block})
	if measured == nil {
		return ""
	}
	climbed, ok := readClimb(measured, x.Plan.Contract.Capacity, x.Plan.Contract.Limits)
	if !ok {
		return ""
	}
	bound := ""
	if climbed.AtLeast {
		bound = "at least "
	} else if climbed.AtMost {
		bound = "less than "
	}
	return fmt.Sprintf(" carries %s%.4g/s", bound, climbed.Load)
}

// measureLaunch measures what is not yet there of one launch. fresh says that there was something.
func (x *Experiment) measureLaunch(ctx context.Context, c Configuration, block int, head string, view View) (fresh bool, err error) {
	if x.Plan.Server != nil {
		return x.launchServer(ctx, c, block, head, view)
	}
	for _, part := range x.Plan.launchParts(c, block) {
		if x.finishedRun(&part) != nil {
			continue
		}
		fresh = true
		view.About(head + ", row " + part.Row.Name)
		if err := x.measurePart(ctx, &part, view); err != nil {
			return fresh, err
		}
		if ctx.Err() != nil {
			return fresh, ctx.Err()
		}
	}
	return fresh, nil
}

// finishedRun is the run of a part that is all there and of this plan, nil of others.
func (x *Experiment) finishedRun(part *Part) *result.Run {
	dir := part.runDir(x.Dir)
	if measured, known := x.runs[dir]; known {
		return measured
	}
	x.runs[dir] = nil
	if rundir.StateOf(dir) != rundir.Finished || !x.hasSamePlan(part) {
		return nil
	}
	measured, err := rundir.ReadResult(dir)
	if err != nil || measured.Interrupted || measured.Recovered || x.Plan.Server != nil && brokenOff(measured) || !x.isComplete(part, measured) {
		return nil
	}
	x.runs[dir] = measured
	return measured
}

// hasSamePlan says that the run in a part's directory is of this plan.
func (x *Experiment) hasSamePlan(part *Part) bool {
	dir := part.runDir(x.Dir)
	was, err := userfile.Read(filepath.Join(dir, rundir.Config), userfile.MostText)
	return err == nil && bytes.Equal(was, x.Plan.partPlan(part, x.Dir).YAML(config.VerbRun))
}

// isComplete says that nothing is left to measure of a part.
func (x *Experiment) isComplete(part *Part, measured *result.Run) bool {
	if part.Row.Name != x.Plan.Contract.Row {
		return len(measured.Points) > 0
	}
	c, ok := readClimb(measured, x.Plan.Contract.Capacity, x.Plan.Contract.Limits)
	if !ok {
		return false
	}
	_, more := decide.Next(x.Plan.Contract.Capacity, x.nearbyLoad(part), c.rungs)
	return !more
}

// nearbyLoad is where the limits were reached before: in the last launch of the same
// configuration, else in this one's of the baseline, 0 where neither was measured.
func (x *Experiment) nearbyLoad(part *Part) float64 {
	for block := part.Block - 1; block >= 1; block-- {
		if measured := x.finishedRun(&Part{part.Configuration, part.Row, block}); measured != nil {
			if c, ok := readClimb(measured, x.Plan.Contract.Capacity, x.Plan.Contract.Limits); ok {
				return c.Load
			}
		}
	}
	return 0
}

// measurePart measures one part, or the rest of it.
func (x *Experiment) measurePart(ctx context.Context, part *Part, view View) (err error) {
	dir := part.runDir(x.Dir)
	one := x.Plan.partPlan(part, x.Dir)
	switch rundir.StateOf(dir) {
	case rundir.Planned: // nothing had been measured
		if err := os.Remove(filepath.Join(dir, rundir.Config)); err != nil {
			return fmt.Errorf("begin %s again: %w", dir, err)
		}
	case rundir.Nothing:
	default:
		why := ""
		switch {
		case !x.hasSamePlan(part):
			why = "was planned otherwise"
		case x.Plan.Server != nil:
			why = "had begun on another start of the server"
		}
		if why != "" {
			if err := putAway(x.Dir, part); err != nil {
				return err
			}
			line := fmt.Sprintf("row %s of %s, launch %d, %s: it is kept in %s and measured anew", part.Row.Name, part.Configuration.Name, part.Block, why, void)
			x.Void = append(x.Void, line)
			view.ShowLine("note: " + line)
			break
		}
		one.Resume = true
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	r := session.Runner{Verb: config.VerbRun, Command: partCommand(one, part.Row, x.Plan), Version: x.Version, Progress: quietly{view}, Figures: x.Plan.simulated}
	if by, ok := view.(Crewed); ok {
		r.Crew = by.Crew()
	}
	session, err := r.Open(ctx, one)
	if err != nil {
		return err
	}
	err = x.measureLoads(ctx, session, part, one)
	if errors.Is(err, context.Canceled) {
		err = nil // the run says that it was interrupted
	}
	measured, err := session.Close(ctx.Err() != nil, err)
	delete(x.runs, dir)
	if err == nil && ctx.Err() == nil && x.finishedRun(part) == nil {
		return fmt.Errorf("measure %s: the run has %d points and is not finished", dir, len(measured.Points))
	}
	return err
}

// measureLoads measures the loads of a part.
func (x *Experiment) measureLoads(ctx context.Context, s *session.Session, part *Part, one *config.Plan) error {
	l := session.PointSpec{Load: one.Load}
	if part.Row.Name != x.Plan.Contract.Row {
		_, err := s.Measure(ctx, l)
		return err
	}
	l.Stage = result.StageCurve
	wanted, near := x.Plan.Contract.Capacity, x.nearbyLoad(part)
	var rungs []decide.Rung
	for {
		load, more := decide.Next(wanted, near, rungs)
		if !more {
			return nil
		}
		l.Rate, l.GiveUp = load, load > wanted
		m, err := s.Measure(ctx, l)
		if err != nil || ctx.Err() != nil {
			return err
		}
		rung, _ := rungOf(&m.Point, x.Plan.Contract.Limits)
		rung.Load = load
		rungs = append(rungs, rung)
	}
}

// quietly leaves out what runs say of themselves: there are hundreds.
type quietly struct{ View }

// ShowLine implements [session.Progress].
func (quietly) ShowLine(string) {}

// completeBlocks returns the number of complete blocks. In a complete block each configuration that
// was not given up by then has all its parts.
func (x *Experiment) completeBlocks() (n int) {
	for block := 1; block <= x.Plan.Launches; block++ {
		d := x.decideBy(block - 1)
		if d.Enough {
			return block - 1
		}
		for i, c := range x.Plan.Configurations() {
			if d.Of[i].Left == 0 && slices.ContainsFunc(x.Plan.launchParts(c, block), func(part Part) bool { return x.finishedRun(&part) == nil }) {
				return block - 1
			}
		}
	}
	return x.Plan.Launches
}

// currentDecision returns the decision that follows from the complete blocks.
func (x *Experiment) currentDecision() decide.Decision { return x.decideBy(x.completeBlocks()) }

func (x *Experiment) decideBy(blocks int) decide.Decision {
	return decide.Decide(x.decisionProblem(blocks))
}

// decisionProblem returns the decision problem of the first blocks: the measured capacities and the
// plan's requirements.
func (x *Experiment) decisionProblem(blocks int) decide.Problem {
	p := x.Plan
	q := decide.Problem{Wanted: p.Contract.Capacity, Planned: p.Launches, Confidence: p.Stop.Confidence, Precision: p.Stop.Precision, Early: p.Stop.Early}
	if x.state != nil {
		q.Before = slices.DeleteFunc(slices.Clone(x.state.Looked), func(n int) bool { return n >= p.Launches })
	}
	looked, rungs, beyond := 0.0, 0.0, make([]decide.Beyond, len(p.Configurations()))
	q.Carries = x.valuesOfBlocks(blocks, func(c Configuration, block int) float64 {
		measured := x.finishedRun(&Part{c, p.ContractRow(), block})
		if measured == nil {
			return math.NaN()
		}
		climbed, ok := readClimb(measured, p.Contract.Capacity, p.Contract.Limits)
		if !ok {
			return math.NaN()
		}
		switch i := slices.Index(p.Configurations(), c); {
		case climbed.AtLeast:
			beyond[i] = decide.Above
		case climbed.AtMost && beyond[i] == decide.Between:
			beyond[i] = decide.Below
		}
		if at := climbed.Claim; at >= 0 {
			for _, r := range climbed.rungs {
				looked, rungs = looked+decide.LoadError(r.Claims[at].N, r.Claims[at].Allowed), rungs+1
			}
		}
		return climbed.Load
	})
	if rungs > 0 {
		q.Looked = looked / rungs
	}
	q.Weights, q.Beyond = p.gpuWeights(), beyond
	if wanted := x.wantedForCost(blocks); wanted > q.Wanted {
		q.Wanted = wanted
	}
	return q
}

// valuesOfBlocks are something of each configuration and block.
func (x *Experiment) valuesOfBlocks(blocks int, of func(c Configuration, block int) float64) (out [][]float64) {
	for _, c := range x.Plan.Configurations() {
		var row []float64
		for block := 1; block <= blocks; block++ {
			row = append(row, of(c, block))
		}
		out = append(out, row)
	}
	return out
}

// wantedForCost is the load that must be carried for the tokens to be as cheap as the
// contract wants, 0 where it does not say.
func (x *Experiment) wantedForCost(blocks int) float64 {
	p := x.Plan
	if p.Contract.Cost == 0 {
		return 0
	}
	sum, n := 0.0, 0.0
	for _, c := range p.Configurations() {
		for block := 1; block <= blocks; block++ {
			measured := x.finishedRun(&Part{c, p.ContractRow(), block})
			if measured == nil {
				continue
			}
			if climbed, ok := readClimb(measured, p.Contract.Capacity, p.Contract.Limits); ok && !math.IsNaN(climbed.costWithinLimits()) {
				sum, n = sum+math.Log(climbed.costWithinLimits()*climbed.Load), n+1 // dollars a second, over tokens a request
			}
		}
	}
	if n == 0 {
		return 0
	}
	return math.Exp(sum/n) / p.Contract.Cost
}

// measuredCosts is the time that was measured, and what it cost at the price of the GPUs.
func (x *Experiment) measuredCosts() (seconds, usd float64) {
	for _, c := range x.Plan.Configurations() {
		for block := 1; block <= x.Plan.Launches; block++ {
			for _, part := range x.Plan.launchParts(c, block) {
				measured := x.finishedRun(&part)
				if measured == nil {
					continue
				}
				for i := range measured.Points {
					p := &measured.Points[i]
					s := loadSeconds(p)
					seconds += s
					if p.Cost != nil && p.Cost.USDPerHour != nil {
						usd += *p.Cost.USDPerHour * s / 3600
					}
				}
			}
		}
	}
	if x.Plan.Server != nil { // its starts take time too
		s, cost := x.startCosts()
		seconds, usd = seconds+s, usd+cost
	}
	return seconds, usd
}

// loadSeconds returns the time of a load on its server, in seconds.
func loadSeconds(p *result.Point) float64 {
	return p.Seconds.Warmup + p.Seconds.Window + p.Seconds.Drain
}

// budgetSpent says that the budget is.
func (x *Experiment) budgetSpent() bool {
	b := x.Plan.Budget
	if b == (Budget{}) {
		return false
	}
	seconds, usd := x.measuredCosts()
	return b.Time > 0 && seconds >= b.Time.Seconds() || b.USD > 0 && usd >= b.USD
}

// hasVoided says that something was measured of a part that the plan has no use for.
func (x *Experiment) hasVoided(part *Part) bool {
	return rundir.StateOf(part.runDir(x.Dir)) >= rundir.Measured && !x.hasSamePlan(part)
}
