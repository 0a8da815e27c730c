package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"pitot/internal/plan"
	"pitot/internal/report"
	"pitot/internal/run/audit"
	"pitot/internal/say"
	"pitot/internal/workload"
)

func checkSettings() []string {
	return []string{"client", "streams", "duration", "ttft", "itl", "output", "format"}
}

func checkHelp(w io.Writer) {
	fmt.Fprint(w, `pitot check [flags]

How accurate is this instrument on this machine? Starts the reference server
in a process of its own, loads it at 1, 10, 100, 1,000 streams and as many as
the machine carries, and lays what was measured beside the server's own log.

pitot check --client 'CMD with {url}' [flags]

Runs any other client against the same server and prints what was true.
`)
	printSettings(w, checkSettings(), func(s *plan.Setting) {
		switch s.Name {
		case "output":
			s.Help, s.Default = "tokens of each of the reference's answers", strconv.Itoa(audit.Standard.Tokens)
		case "duration":
			s.Help, s.Default = "measured window of each level; 1.5 s of warm-up come on top", checkWindow.String()
		case "ttft":
			s.Default = audit.Standard.TTFT.String()
		case "itl":
			s.Default = audit.Standard.ITL.String()
		case "format":
			s.Help = "what standard output gets: text or json"
		}
	})
}

// checkWindow is the measured window of a level where none is asked for.
const checkWindow = 4 * time.Second

// most is where the search for the machine's limit ends.
const most = 16_000

func checkVerb(ctx context.Context, e *Env) (int, error) {
	base := plan.Default()
	base.Duration, base.Output = checkWindow, workload.Fixed(audit.Standard.Tokens)
	base.Mock.TTFT, base.Mock.ITL = audit.Standard.TTFT, audit.Standard.ITL
	p, args, err := plan.DecodeOver(base, checkSettings(), e.Args, e.Environ)
	if err != nil {
		return Usage, err
	}
	if len(args) > 0 {
		return Usage, say.Errorf("unexpected argument %q", args[0]).WithHint("pitot check brings its own target; see pitot check --help")
	}
	tokens := int(p.Output.Mean())
	if p.Output != workload.Fixed(tokens) {
		return Usage, say.Errorf("the reference's answers are all of one length, not %s", p.Output).WithHint("write a number, as --output 100")
	}
	if err := onlyTextOrJSON(p.Format, "a check"); err != nil {
		return Usage, err
	}
	self, err := os.Executable()
	if err != nil {
		return Done, fmt.Errorf("find this program: %w", err)
	}
	c := &audit.Checker{Command: []string{self}, Version: versionOf(), Window: p.Duration, Err: e.Stderr,
		Ref: audit.Reference{TTFT: p.Mock.TTFT, ITL: p.Mock.ITL, Tokens: tokens}}
	ctx, stop := interruptible(ctx, e.Stderr)
	defer stop()
	if p.Client != "" {
		r, err := c.Client(ctx, p.Client)
		if err != nil {
			return Done, err
		}
		if p.Format == "json" {
			return Done, report.JSON(e.Stdout, r)
		}
		return Done, report.CheckedClient(e.Stdout, r)
	}
	levels, search := p.Streams, false
	if levels == nil {
		levels, search = []int{1, 10, 100, 1000}, true
	}
	var done []*audit.Level
	if p.Format != "json" {
		report.CheckHead(e.Stdout, c.Ref, c.Window)
	}
	for n := 0; len(levels) > 0; levels = levels[1:] {
		n = levels[0]
		l, err := c.Level(ctx, n)
		if err != nil {
			if len(done) > 0 && ctx.Err() == nil { // the machine carries no more
				fmt.Fprintf(e.Stderr, "pitot: %d streams: %v\n", n, err)
				break
			}
			return Done, err
		}
		done = append(done, l)
		if p.Format != "json" {
			report.CheckLevel(e.Stdout, l)
		}
		if search && len(levels) == 1 && n*2 <= most && l.Worst() <= 1 {
			levels = append(slices.Clone(levels), n*2)
		}
	}
	if p.Format == "json" {
		return Done, report.JSON(e.Stdout, done)
	}
	report.CheckVerdict(e.Stdout, done)
	return Done, nil
}
