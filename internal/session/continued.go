package session

import (
	"fmt"
	"path/filepath"
	"strings"

	"pitot/internal/capacity"
	"pitot/internal/config"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/say"
)

// Continued is an earlier search that another goes on with.
type Continued struct {
	dir      string
	run      *result.Run
	steps    []capacity.Step
	launches int
	restart  bool   // the server was started again since
	knownBy  string // how that is known
}

// ReadContinued reads the run that a plan goes on with, and refuses one that asked otherwise.
// The new run has arrivals and prompts of its own.
func ReadContinued(p *config.Plan) (*Continued, error) {
	c := &Continued{dir: p.Continue}
	before, err := config.ReadRecorded(filepath.Join(p.Continue, rundir.Config))
	if err == nil {
		c.run, err = rundir.ReadResult(p.Continue)
	}
	switch {
	case err != nil:
		return nil, say.Errorf("%s cannot be gone on with: %v", p.Continue, err).WithHint("name the directory of a run of pitot find")
	case c.run.Capacity == nil:
		return nil, say.Errorf("the run in %s was no search for a capacity", p.Continue).WithHint("name the directory of a run of pitot find")
	}
	if unlike := config.SearchDifferences(&before, p); len(unlike) > 0 {
		return nil, say.Errorf("the search in %s had other settings: %s", p.Continue, strings.Join(unlike, "; ")).WithHint("use the same settings, or begin a new search without --continue")
	}
	if c.steps, c.launches = capacity.EarlierOf(c.run); len(c.steps) == 0 {
		return nil, say.Errorf("the search in %s has no windows that another can go on with", p.Continue).WithHint("begin a new search without --continue")
	}
	if p.SeedSet && p.Seed == c.run.Seed && !p.Resume {
		return nil, say.Errorf("the search in %s had the seed %d too, and so the same arrivals and prompts", p.Continue, p.Seed).WithHint("leave --seed out, or take another one")
	}
	return c, nil
}

// Launched finds out whether the target that is open is another start of the server than
// the one that the earlier search measured.
func (c *Continued) Launched(s *Session) error {
	t, had := s.Target, &c.run.Target
	if now, was := t.Options.Model, had.Model; now != was && was != "" {
		return say.Errorf("the search in %s was of the model %s, and this target serves %s", c.dir, was, now).WithHint("begin a new search without --continue")
	}
	began, begins := had.Server[metric.ProcessStart], t.Server[metric.ProcessStart]
	launch := s.plan.Launch
	switch {
	case began != "" && begins != "" && t.Kind == "http":
		c.restart, c.knownBy = began != begins, "by the start time that the server reports"
	case launch != "":
		c.restart, c.knownBy = launch != c.run.Launch, "by --launch"
	case t.Kind != "http":
		c.restart, c.knownBy = false, "an embedded target has no starts but those that --launch names"
	default:
		c.restart, c.knownBy = true, "the server does not report its start time, and --launch names no start"
	}
	return nil
}

// into gives a search what it goes on with.
func (c *Continued) into(cfg *capacity.FindConfig) {
	cfg.Earlier, cfg.Launch = c.steps, c.launches-1
	if c.restart {
		cfg.Launch++
		return
	}
	if v := c.run.Capacity.Verified; v != nil && v.Passed && c.run.Capacity.Load != nil && *c.run.Capacity.Load == v.Load {
		cfg.Held = capacity.Verification{Load: v.Load, N: v.Requests, Violations: v.Violations, Errors: v.Errors, Upper: v.Upper, Passed: true, Attempts: v.Attempts}
	}
}

// summaryLine says what is gone on with.
func (c *Continued) summaryLine() string {
	of := "on the same start of the server"
	if c.restart {
		of = "on another start of the server, by which launches differ"
	}
	return fmt.Sprintf("going on with %s: %s, %s (%s)", c.dir, say.Plural(len(c.steps), "window"), of, c.knownBy)
}

// toResult returns its entry in run.json.
func (c *Continued) toResult() *result.Continued {
	was := c.run.Capacity
	r := &result.Continued{Run: c.dir, Launches: c.launches, Restart: c.restart, KnownBy: c.knownBy, Requests: was.Requests, Seconds: was.Seconds}
	if c.restart {
		r.Launches++
	}
	if was.Continued != nil {
		r.Requests, r.Seconds = r.Requests+was.Continued.Requests, r.Seconds+was.Continued.Seconds
	}
	return r
}
