package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"pitot/internal/fleet"
	"pitot/internal/plan"
	"pitot/internal/run"
	"pitot/internal/say"
)

func workerHelp(w io.Writer) {
	fmt.Fprint(w, `pitot worker --join URL [flags]

Sends a share of the load of a run that another pitot measures, and ends with it.
Runs with --fleet N start their workers themselves, and nothing prints the URL:
there is no need to call it. The target's key is read
here, from the environment or its file; it is never sent from one to another.
`)
	printSettings(w, plan.VerbWorker)
}

func workerVerb(ctx context.Context, e *Env) (int, error) {
	var p plan.Working
	args, err := plan.DecodeParts(plan.VerbWorker, e.Args, e.Environ, &p)
	switch {
	case err != nil:
		return Usage, err
	case len(args) > 0:
		return Usage, say.Errorf("unexpected argument %q", args[0]).WithHint("pitot worker --join URL; the run says what is measured")
	case p.Join == "":
		return Usage, say.Errorf("no run to work for").WithHint("pitot run … --fleet N starts workers by itself")
	}
	token := e.Getenv(plan.TokenVariable)
	if p.TokenFile != "" {
		b, err := os.ReadFile(p.TokenFile)
		if err != nil {
			return Usage, say.Unreadable("--token-file", p.TokenFile, err, "a file that holds the token alone")
		}
		token = strings.TrimSpace(string(b))
	}
	dir, err := os.MkdirTemp("", "pitot-worker-")
	if err != nil {
		return Done, fmt.Errorf("make a place for the journal: %w", err)
	}
	ctx, stop := interruptible(ctx, e.Stderr)
	defer stop()
	w := &fleet.Worker{
		Runner: run.Runner{Command: e.Command, Version: versionOf()}, URL: p.Join, Token: token, Dir: dir, Environ: e.Environ,
		Say: func(line string) { fmt.Fprintln(e.Stderr, "pitot: "+line) },
	}
	err = w.Run(ctx)
	if err == nil || !w.Recorded() { // else its journal stays
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return Done, err
}

// self is this program: its path, and the name that it goes by.
func self() [2]string {
	path, err := os.Executable()
	if err != nil {
		path = os.Args[0]
	}
	return [2]string{path, cmp.Or(os.Args[0], "pitot")}
}
