package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"pitot/internal/config"
	"pitot/internal/say"
	"pitot/internal/say/unreadable"
	"pitot/internal/session"
	"pitot/internal/userfile"
	"pitot/internal/workers"
)

func workerHelp() manual {
	return manual{
		about: "Send part of a distributed run's load.",
		usage: "pitot worker --join URL [flags]",
		examples: `pitot-fleet run URL --rate 2000 --fleet 'listen://:4222?workers=4&token_file=t'
			pitot worker --join 'nats://HOST:4222?token_file=t'    # on four machines`,
		notes: `pitot run --fleet 4 starts its workers itself, on the same machine. For other machines, start
a worker on each, before or after the run. They meet at a NATS server (nats://), or at the run
itself (listen://, pitot-fleet only). A worker reads the API key and the run's files locally.`,
	}
}

func workerVerb(ctx context.Context, e *Env) (int, error) {
	var p config.Working
	args, err := config.DecodeParts(config.VerbWorker, e.Args, e.Environ, &p)
	switch {
	case err != nil:
		return Usage, err
	case len(args) > 0:
		return Usage, say.Errorf("unexpected argument %q", args[0]).WithHint("pitot worker --join URL; the run says what is measured")
	case p.Join == "":
		return Usage, say.Errorf("no run to work for").WithHint("pitot worker --join URL names its NATS server; pitot run … --fleet N starts workers of this machine by itself")
	}
	token, err := fleetToken(e, &p.Bus)
	if err != nil {
		return Usage, err
	}
	dir, err := os.MkdirTemp("", "pitot-worker-")
	if err != nil {
		return Done, fmt.Errorf("make a place for the journal: %w", err)
	}
	ctx, stop := interruptibleContext(ctx, e.Stderr)
	defer stop()
	w := &workers.Worker{
		Runner: session.Runner{Command: e.Command, Version: versionOf()}, URL: p.Join, Token: token, Bus: p.Bus, Dir: dir, Environ: e.Environ,
		Say: func(line string) { fmt.Fprintln(e.Stderr, workers.Note+line) },
	}
	if place, err := strconv.Atoi(e.Getenv(workers.JobIndex)); err == nil {
		w.Index = &place
	}
	err = w.Run(ctx)
	if w.IsHome() { // else its journal stays
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if errors.Is(err, workers.ErrStopped) {
		return Interrupted, err
	}
	return Done, err
}

// fleetToken returns the token for a fleet's server, from its file or the environment.
func fleetToken(e *Env, b *config.Bus) (string, error) {
	if b.TokenFile == "" {
		return e.Getenv(config.TokenVariable), nil
	}
	text, err := userfile.Read(b.TokenFile, userfile.MostSecret)
	if err != nil {
		return "", unreadable.FileError("token_file", b.TokenFile, err, "a file that holds the token alone")
	}
	return strings.TrimSpace(string(text)), nil
}

// leastToken is the minimum number of characters in a token of a server that listens.
const leastToken = 16

// crewOf returns the crew that carries out the loads of a plan with workers, whom it gathers when
// the first load begins; it gives what to do at the end.
func crewOf(ctx context.Context, e *Env, p *config.Fleet, tell func(line string)) (session.Crew, func(), error) {
	if p.IsRemote() {
		token, err := fleetToken(e, &p.Bus)
		if err == nil && p.Listen != "" && token != "" && len(token) < leastToken {
			err = say.Errorf("the token of the fleet has %s: anyone who guesses it can read and send what the fleet does", say.Plural(len(token), "character")).WithHint("make one: openssl rand -hex 16 > fleet.token")
		}
		if err != nil {
			return nil, nil, err
		}
		crew, err := workers.NewRemote(versionOf(), p, token, tell)
		if err != nil {
			return nil, nil, err
		}
		return crew, func() {
			if ctx.Err() != nil {
				crew.NoteStopped()
			}
			crew.Close()
		}, nil
	}
	crew, err := workers.NewLocal(versionOf(), p.Workers, thisProgram())
	if err != nil {
		return nil, nil, err
	}
	return crew, func() {
		if ctx.Err() != nil {
			crew.NoteStopped()
		}
		for _, journal := range crew.Close() {
			tell("note: what a lost worker had recorded, and did not come home, is in " + journal)
		}
	}, nil
}

// musterHere starts workers of this machine for loads that need them, in place of those that were
// started before; disband lets the last go.
func musterHere(ctx context.Context, e *Env, tell func(line string)) (muster func(int) (session.Crew, error), disband func()) {
	disbandLast := func() {}
	return func(workers int) (session.Crew, error) {
		disbandLast()
		disbandLast = func() {}
		crew, last, err := crewOf(ctx, e, &config.Fleet{Workers: workers}, tell)
		if err == nil {
			disbandLast = last
		}
		return crew, err
	}, func() { disbandLast() }
}

// thisProgram is this program: its path, and the name that it goes by.
func thisProgram() [2]string {
	path, err := os.Executable()
	if err != nil {
		path = os.Args[0]
	}
	return [2]string{path, cmp.Or(os.Args[0], "pitot")}
}
