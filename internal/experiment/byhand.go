package experiment

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"pitot/internal/experiment/server"
	"pitot/internal/results/result"
	"pitot/internal/session"
	"pitot/internal/target"
)

// Launches that somebody else makes: which is wanted is said, and it is waited for. That
// one was made is seen by the process that answers, where the server tells when it began;
// else the user says so.

// Waiting is a launch that is to be made by hand.
type Waiting struct {
	Configuration string `json:"configuration"`
	Launch        int    `json:"launch"`
	Flags         string `json:"flags"`           // that the baseline's get besides
	After         string `json:"after,omitempty"` // mark of the launch before, which is not it
	Why           string `json:"why,omitempty"`   // what answers is not it
}

// Sentence says what to do.
func (w *Waiting) Sentence() string {
	if w.Flags == "" {
		return "start the server anew as the baseline, without any flag of the knobs"
	}
	return "start the server anew with " + w.Flags
}

// Hands are those of a user who makes launches. A [View] that has them is asked.
type Hands interface {
	// Launched says, once, that the launch that was waited for is made.
	Launched() bool
	// Ask shows what to do and waits until it is done; false where nobody is there.
	Ask(ctx context.Context, w *Waiting) bool
}

// Crewed has workers that carry loads out. A [View] that is crewed has them do it.
type Crewed interface {
	Crew() session.Crew // nil for none
}

// errWaits ends a sitting in which nobody makes the launch.
var errWaits = errors.New("a launch is to be made by hand")

// AwaitedLaunch is the launch that is waited for, nil where none is.
func (x *Experiment) AwaitedLaunch() *Waiting {
	if x.state == nil {
		return nil
	}
	return x.state.Waits
}

// launchByHand measures what is missing of a launch that somebody else makes.
func (x *Experiment) launchByHand(ctx context.Context, c Configuration, block int, head string, view View) error {
	hands, _ := view.(Hands)
	rec, dir, err := x.openLaunch(c, block)
	if err != nil {
		return err
	}
	asked := &server.Asked{Configuration: c.Name, Settings: settingsOf(c), Flags: x.Plan.Flags(c), URL: x.Plan.Target}
	made := x.state.Waits != nil && x.state.Waits.Configuration == c.Name && x.state.Waits.Launch == block // it was asked for
	said := made && hands != nil && hands.Launched()
	for {
		before := x.state.Mark
		first := before == "" && c.Name == Baseline && block == 1 && len(rec.Starts) == 0
		s := startRecord{Began: now(), Rows: []string{}}
		told, err := target.IdentifyServer(ctx, x.wantedTarget())
		if ctx.Err() != nil {
			return ctx.Err()
		}
		why := ""
		same := err == nil && told.Began != "" && told.Began == before
		switch {
		case err != nil:
			why = "it does not answer: " + err.Error()
		case same && rec.lastMark() == before: // the launch goes on
			s = *lastStart(rec)
		case same:
			if other, of, n := x.incompleteLaunch(before); other != nil { // which needs no start
				if err := x.measureByHand(ctx, other, lastStart(other), of, n, fmt.Sprintf("launch %d: %s", n, of.Name), view); err != nil {
					return err
				}
				continue
			}
			why = "what answers there is still the launch before"
		case first, said, made && told.Began != "":
			name := "start-" + strconv.Itoa(len(rec.Starts)+1)
			err := x.describeServer(ctx, &s, asked, dir, name, func(ctx context.Context) (string, error) {
				return server.Describe(ctx, x.Plan.Server.Commands, asked)
			})
			var failed *server.Failed
			if errors.As(err, &failed) {
				why = failed.Msg
			} else if err != nil {
				return err
			}
		case made:
			why = "the server does not report its start time: say that it is started again, with Enter or --launched"
		}
		if why == "" && (same || made || first) {
			return x.measureByHand(ctx, rec, &s, c, block, head, view)
		}
		x.state.Waits = &Waiting{Configuration: c.Name, Launch: block, Flags: asked.Flags, After: before, Why: why}
		if err := x.state.write(x.Dir); err != nil {
			return err
		}
		if hands == nil || !hands.Ask(ctx, x.state.Waits) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return errWaits
		}
		made, said = true, true
	}
}

// lastStart is the last start of a launch, on which more is measured.
func lastStart(rec *launchRecord) *startRecord {
	s := rec.Starts[len(rec.Starts)-1]
	s.Began, s.Ended, s.Why, s.Rows = now(), "", result.Reason{}, []string{}
	return &s
}

// incompleteLaunch is a launch of which something is not measured, as of rows that were added, on
// the start that has a mark; nil where there is none.
func (x *Experiment) incompleteLaunch(mark string) (*launchRecord, Configuration, int) {
	for block := 1; block <= x.Plan.Launches; block++ {
		for _, c := range x.Plan.Configurations() {
			if rec, err := x.readLaunch(c, block); err == nil && rec.lastMark() == mark && len(x.missingParts(c, block)) > 0 {
				return rec, c, block
			}
		}
	}
	return nil, Configuration{}, 0
}

// measureByHand measures on a launch that is there.
func (x *Experiment) measureByHand(ctx context.Context, rec *launchRecord, s *startRecord, c Configuration, block int, head string, view View) error {
	dir := x.launchDir(c, block)
	x.state.Waits, x.state.Mark = nil, s.Mark
	if x.state.Mark == "" {
		x.state.Mark = "launch " + strconv.Itoa(block) + " of " + c.Name
	}
	if err := x.state.write(x.Dir); err != nil {
		return err
	}
	rec.Starts = append(rec.Starts, *s)
	s = &rec.Starts[len(rec.Starts)-1]
	if err := rec.write(dir); err != nil {
		return err
	}
	view.ShowLine(head + ": measuring what answers" + s.describeServer())
	x.sameServer(s, view)
	err := x.onStart(ctx, s, c, block, head, view, nil)
	s.Ended, s.Why = now(), endOf(ctx, err)
	var failed *server.Failed
	if errors.As(err, &failed) && ctx.Err() == nil { // it went away: somebody must start it again
		x.state.Waits = &Waiting{Configuration: c.Name, Launch: block, Flags: rec.Flags, After: s.Mark, Why: failed.Msg}
		view.ShowLine(head + ": " + failed.Msg)
		if err := errors.Join(x.state.write(x.Dir), rec.write(dir)); err != nil {
			return err
		}
		return errWaits
	}
	return errors.Join(err, rec.write(dir))
}
