// Package cli is the command line: one file per verb, flags, help and exit
// codes, and no logic of its own.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"pitot/internal/config"
	"pitot/internal/say"
	"pitot/internal/session"
	"pitot/internal/target"
	"pitot/internal/workers"
)

// Exit codes. Where several apply, the first of Interrupted, TargetFailed, INVALID,
// Fired, SLOMissed, undecided wins.
const (
	Done         = 0
	Bug          = 1
	Usage        = 2
	TargetFailed = 3
	Invalid      = 4 // no verdict: the measurement is INVALID, or a gate is undecided
	SLOMissed    = 5 // or, of a search, not met at any load
	Fired        = 6 // a condition of --fail-if, or workloads that differ
	ByHand       = 7 // an experiment waits for a launch that is made by hand
	Interrupted  = 130
)

// exitCodes lists the exit codes for the help.
func exitCodes() []struct {
	code    int
	meaning string
} {
	return []struct {
		code    int
		meaning string
	}{
		{Done, "done"},
		{Bug, "an internal error"},
		{Usage, "wrong usage: nothing was measured"},
		{TargetFailed, "the server cannot be reached, or answered less than half of the requests"},
		{Invalid, "no verdict: the measurement is INVALID, the SLO or a clause of --fail-if is " +
			"undecided (--undecided pass: 0), or --strict found a flag"},
		{SLOMissed, "the SLO is not met. find: no load meets it, or the load of --at misses it. " +
			"experiment: no configuration meets it"},
		{Fired, "a clause of --fail-if fired, or a metric got worse since experiment --against"},
		{ByHand, "experiment run waits for a server that you start by hand"},
		{Interrupted, "interrupted; what was measured is stored"},
	}
}

// Env is the environment of a verb.
type Env struct {
	Args           []string // without the verb
	Command        []string // as typed
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environ        []string // NAME=VALUE
	Getenv         func(string) string
	Display        config.Display                  // how answers are shown, as the verb's flags say
	Late           func(point int32) time.Duration // see [session.Runner]; nil but where a test starves the client
}

// verb is one word of the command line.
type verb struct {
	group string // of the overview
	name  string
	run   func(ctx context.Context, e *Env) (int, error)
	help  func() manual
	args  func(given []string, current string) completion // what its next argument can be
}

// verbs lists them in the order of the help.
func verbs() []verb {
	const (
		measure    = "Measure"
		understand = "Understand"
		plan       = "Plan"
		prepare    = "Prepare"
		scale      = "Scale"
		other      = "Other"
	)
	return []verb{
		{measure, "quick", quickVerb, quickHelp, targetArgument},
		{measure, "run", runVerb, runHelp, targetArgument},
		{measure, "sweep", sweepVerb, sweepHelp, targetArgument},
		{measure, "find", findVerb, findHelp, targetArgument},
		{measure, "report", reportVerb, reportHelp, pathArguments},
		{understand, "explain", explainVerb, explainHelp, pathArguments},
		{understand, "compare", compareVerb, compareHelp, pathArguments},
		{understand, "experiment", experimentVerb, experimentHelp, experimentArguments},
		{plan, "predict", predictVerb, predictHelp, deploymentArgument},
		{plan, "choose", chooseVerb, chooseHelp, noArguments},
		{plan, "calibrate", calibrateVerb, calibrateHelp, targetArgument},
		{plan, "fit", fitVerb, fitHelp, fitArguments},
		{prepare, "workload", workloadVerb, workloadHelp, workloadArguments},
		{prepare, "mock", mockVerb, mockHelp, deploymentArgument},
		{prepare, "check", checkVerb, checkHelp, noArguments},
		{scale, "worker", workerVerb, workerHelp, noArguments},
		{scale, "fleet", fleetVerb, fleetHelp, noArguments},
		{other, "vllm-bench", vllmBenchVerb, vllmBenchHelp, noArguments},
		{other, "completion", completionVerb, completionHelp, shellArgument},
		{other, "skill", skillVerb, skillHelp, noArguments},
		{other, "version", versionVerb, versionHelp, noArguments},
	}
}

// answerFirst leaves out the empty line that sets a report on a terminal apart from the progress
// above it: in a pipe or a file the first line is the answer.
type answerFirst struct {
	w     io.Writer
	begun bool
}

func (a *answerFirst) Write(b []byte) (int, error) {
	skipped := 0
	if !a.begun && len(b) > 0 {
		if a.begun = true; b[0] == '\n' {
			b, skipped = b[1:], 1
		}
	}
	if len(b) == 0 {
		return skipped, nil
	}
	n, err := a.w.Write(b)
	return n + skipped, err
}

// heapFloor is the size of an allocation that is never touched, so that it takes no memory. It
// raises the heap at which the garbage collector starts: short commands have small heaps, and
// would otherwise collect dozens of times, a quarter of what they compute.
const heapFloor = 16 << 20

// Run does what the arguments say and gives the exit code.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	e := &Env{Command: append([]string{"pitot"}, args...), Stdin: stdin, Stdout: stdout, Stderr: stderr, Environ: os.Environ(), Getenv: os.Getenv}
	defer startCPUProfile(e.Getenv)()
	defer runtime.KeepAlive(make([]byte, heapFloor))
	if !isTerminal(stdout, e.Getenv) {
		e.Stdout = &answerFirst{w: stdout}
	}
	code, err := dispatch(ctx, e, args)
	if err == nil {
		return code
	}
	hint := say.HintOf(err)
	var other *config.OtherVerb
	if errors.As(err, &other) {
		hint = verbsTaking(other.Flag)
	}
	var target *target.Error
	var mistake *say.Error
	var records *session.RecordsError
	switch {
	case errors.As(err, &records):
		code, hint = Invalid, records.Hint()
	case errors.As(err, &target):
		code, hint = max(code, TargetFailed), target.Hint
	case errors.As(err, &mistake):
		if code != Interrupted && code != Invalid {
			code = Usage
		}
	case errors.Is(err, context.Canceled):
		return Interrupted // the user knows
	case code == Done:
		code = Bug
	}
	fmt.Fprintf(stderr, "pitot: %v\n", err)
	if hint != "" {
		fmt.Fprintf(stderr, "hint: %s\n", hint)
	}
	return code
}

func dispatch(ctx context.Context, e *Env, args []string) (int, error) {
	if len(args) == 0 {
		args = []string{string(config.VerbQuick)}
	}
	name := args[0]
	if topic, is := strings.CutPrefix(name, "--help="); is {
		name, args = "help", []string{"help", topic}
	}
	switch name {
	case "help", "--help", "-h", "-help":
		if len(args) == 1 {
			writeOverview(e.Stdout)
			return Done, nil
		}
		if err := writeHelpOn(e.Stdout, args[1]); err != nil {
			return Usage, err
		}
		return Done, nil
	case "--version", "-version":
		return versionVerb(ctx, e)
	}
	v, err := verbNamed(name)
	if err != nil {
		return Usage, err
	}
	e.Args = args[1:]
	completing := name == "completion" && slices.Index(e.Args, completionWords) == 0 // of any line
	if topic, asked := config.HelpAsked(config.Verb(name), e.Args); asked && !completing {
		if err := v.writeHelp(e.Stdout, topic); err != nil {
			return Usage, err
		}
		return Done, nil
	}
	switch name {
	case "completion", "version": // a shell's start and scripts call these
	default:
		for _, note := range config.IgnoredVariables(e.Environ) {
			fmt.Fprintln(e.Stderr, workers.Note+note)
		}
	}
	var remove func()
	if e.Args, remove, err = fromStdin(name, e.Args, e.Stdin); err != nil {
		return Usage, err
	}
	defer remove()
	return v.run(ctx, e)
}

func verbNamed(name string) (verb, error) {
	var names []string
	for _, v := range verbs() {
		if v.name == name {
			return v, nil
		}
		names = append(names, v.name)
	}
	hint := "pitot --help lists the verbs"
	switch n := say.NearestName(name, names); {
	case n != "":
		hint = "did you mean pitot " + n + "?"
	case strings.Contains(name, ":"), strings.HasPrefix(name, "-"):
		hint = "the verb comes first: pitot run " + name + " …"
	}
	return verb{}, say.Errorf("unknown verb %q", name).WithHint(hint)
}

// verbsTaking says which verbs take a flag.
func verbsTaking(flag string) string {
	var takers []string
	for _, v := range verbs() {
		if slices.ContainsFunc(config.Settings(), func(s config.Setting) bool { return s.Name == flag && s.AppliesTo(config.Verb(v.name)) }) {
			takers = append(takers, "pitot "+v.name)
		}
	}
	hint := "--" + flag + " belongs to " + strings.Join(takers, ", ")
	if flag == "resume" {
		hint += "; pitot report DIR finishes a run that was killed"
	}
	return hint
}

// oneWish is within what time further signals are the same wish: timeout(1) sends one to a
// process and one to its group.
const oneWish = 500 * time.Millisecond

// interruptibleContext gives a context that the first Ctrl-C or SIGTERM ends, so
// that what was measured is reported. A second one leaves at once; the
// journal is on disk by then.
func interruptibleContext(ctx context.Context, stderr io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	quit := make(chan struct{})
	go func() {
		var first time.Time
		for {
			select {
			case <-quit:
				return
			case <-signals:
			}
			if !first.IsZero() {
				if time.Since(first) < oneWish {
					continue
				}
				os.Exit(Interrupted)
			}
			first = time.Now()
			if stderr != nil {
				fmt.Fprintln(stderr, "pitot: stopping; once more to leave at once")
			}
			cancel()
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(quit)
		cancel()
	}
}

// leaveAfter is the time that a verb has to end by itself after the first signal. It applies while
// no load has begun.
const leaveAfter = 800 * time.Millisecond

// leaveUnlessBegun ends the process, by exit, if it goes on for leaveAfter behind the end of ctx
// and no load has begun: there is nothing to keep then, and reading a large file or making a long
// prompt does not look at ctx. Call stop where the verb ends by itself.
func leaveUnlessBegun(ctx context.Context, began func() bool, exit func(code int)) (stop func()) {
	ended := make(chan struct{})
	forget := context.AfterFunc(ctx, func() {
		select {
		case <-ended:
		case <-time.After(leaveAfter):
			if !began() {
				exit(Interrupted)
			}
		}
	})
	return func() {
		forget()
		close(ended)
	}
}
