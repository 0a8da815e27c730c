package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"pitot/internal/analysis/audit"
	"pitot/internal/analysis/tools"
	"pitot/internal/config"
	"pitot/internal/report"
	"pitot/internal/say"
)

func checkHelp() manual {
	return manual{
		about: "Check how accurately Pitot measures on this machine.",
		usage: "pitot check [flags]",
		examples: `pitot check                            # 1 to 1,000 streams and more
			pitot check --api all                  # each API of the reference server
			pitot check --fleet 4                  # four worker processes together
			pitot check --client 'CMD {url}'       # another client`,
		notes: `Pitot starts a reference server in a process of its own, loads it, and compares the measured
times with the server's log.`,
	}
}

// most is the number of streams at which the search for the machine's limit ends.
const most = 16_000

func checkVerb(ctx context.Context, e *Env) (int, error) {
	var p config.Audit
	args, err := config.DecodeParts(config.VerbCheck, e.Args, e.Environ, &e.Display, &p)
	if err != nil {
		return Usage, err
	}
	if len(args) > 0 {
		return Usage, say.Errorf("unexpected argument %q", args[0]).WithHint("pitot check brings its own target; see pitot check --help")
	}
	self, err := os.Executable()
	if err != nil {
		return Done, fmt.Errorf("find this program: %w", err)
	}
	c := &audit.Checker{Command: []string{self}, Version: versionOf(), Window: p.Window, Err: e.Stderr,
		Ref: audit.Reference{TTFT: p.TTFT, ITL: p.ITL, Tokens: p.Tokens}, ReadReport: readClaim}
	ctx, stop := interruptibleContext(ctx, e.Stderr)
	defer stop()
	if p.Workers > 0 {
		crew, disband, err := crewOf(ctx, e, &config.Fleet{Workers: p.Workers}, func(line string) { fmt.Fprintln(e.Stderr, "pitot: "+line) })
		if err != nil {
			return Done, err
		}
		defer disband()
		c.Crew = crew
	}
	if p.Client != "" {
		r, err := c.CheckClient(ctx, p.Client)
		if errors.Is(err, audit.ErrNothingAnswered) {
			return TargetFailed, err
		}
		if err != nil {
			return Done, err
		}
		if p.Format == "json" {
			return Done, report.WriteJSON(e.Stdout, r)
		}
		return Done, report.CheckedClient(e.Stdout, r)
	}
	if p.API == config.AllAPIs {
		return checkAll(ctx, e, c, &p)
	}
	if !slices.Contains(audit.APIs(), p.API) {
		return Usage, say.Errorf("the reference server has no %q to check", p.API).WithHint(say.KnownHint(p.API, append(audit.APIs(), config.AllAPIs)))
	}
	c.API = p.API
	levels, search := p.Streams, false
	if levels == nil {
		levels, search = usualLevels(p.Workers), true
	}
	var done []*audit.Level
	show := func() {
		if p.Format != "json" {
			report.WriteCheck(e.Stdout, c.Ref, c.Window, done, e.styleOf(e.Stdout))
		}
	}
	for n := 0; len(levels) > 0; levels = levels[1:] {
		n = levels[0]
		fmt.Fprintf(e.Stderr, "checking at %s\n", say.Plural(n, "stream"))
		l, err := c.CheckLevel(ctx, n)
		if err != nil {
			if len(done) > 0 && ctx.Err() == nil { // the machine carries no more
				fmt.Fprintf(e.Stderr, "pitot: %d streams: %v\n", n, err)
				break
			}
			show() // what was measured until then
			return Done, err
		}
		done = append(done, l)
		if search && len(levels) == 1 && n*2 <= most && l.LargestError() <= 1 {
			levels = append(slices.Clone(levels), n*2)
		}
	}
	if p.Format == "json" {
		return Done, report.WriteJSON(e.Stdout, done)
	}
	show()
	return Done, nil
}

// usualLevels are the numbers of streams that are checked unless others are asked for, each of
// which has one for each worker.
func usualLevels(workers int) (levels []int) {
	for _, n := range []int{1, 10, 100, 1000} {
		levels = append(levels, max(n, workers))
	}
	return slices.Compact(levels)
}

// checkAll checks every API that the reference server has.
func checkAll(ctx context.Context, e *Env, c *audit.Checker, p *config.Audit) (int, error) {
	levels := p.Streams
	if levels == nil {
		levels = []int{max(10, p.Workers)}
	}
	var done []*audit.Level
	for _, c.API = range audit.APIs() {
		for _, n := range levels {
			fmt.Fprintf(e.Stderr, "checking %s at %s\n", c.API, say.Plural(n, "stream"))
			l, err := c.CheckLevel(ctx, n)
			if err != nil {
				return Done, fmt.Errorf("check %s: %w", c.API, err)
			}
			done = append(done, l)
		}
	}
	if p.Format == "json" {
		return Done, report.WriteJSON(e.Stdout, done)
	}
	report.CheckAPIs(e.Stdout, c.Ref, c.Window, done, e.styleOf(e.Stdout))
	return Done, nil
}

// readClaim reads another client's results from a file it wrote.
func readClaim(path string) (audit.ClientReport, error) {
	r, err := tools.Read(path)
	if err != nil {
		return audit.ClientReport{}, err
	}
	return r.Claim(), nil
}
