package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"pitot/internal/plan"
	"pitot/internal/point"
	"pitot/internal/user"
)

func mockSettings() []string {
	return []string{"port", "host", "model", "key-file", "seed",
		"ttft", "itl", "jitter", "slots", "tokens-per-chunk", "role-chunk", "max-model-len",
		"speed", "startup-delay", "reasoning", "eos", "prompt-tokens-details", "faults", "truth", "until-eof"}
}

func mockVerb(ctx context.Context, e *Env) (int, error) {
	p, args, err := plan.Decode(mockSettings(), e.Args, e.Environ)
	if err != nil {
		return Usage, err
	}
	name := ""
	if len(args) > 0 {
		name = strings.TrimPrefix(args[0], "mock:")
	}
	if len(args) > 1 {
		return Usage, user.Errorf("", "more than one name: %q and %q", args[0], args[1])
	}
	srv, about, notes, err := point.NewMock(&p, name)
	if err != nil {
		return Usage, err
	}
	for _, n := range notes {
		fmt.Fprintln(e.Stderr, "pitot: "+n)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(p.Mock.Host, strconv.Itoa(p.Mock.Port)))
	if err != nil {
		hint := "choose another with --port, or --port 0 for any"
		if errors.Is(err, syscall.EACCES) {
			hint = "ports below 1024 need privileges; choose another with --port"
		}
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err
		}
		return Usage, user.Errorf(hint, "listen on port %d: %v", p.Mock.Port, err)
	}
	ctx, stop := interruptible(ctx, nil) // before others learn that it is there
	defer stop()
	if p.Mock.UntilEOF {
		var end context.CancelFunc
		ctx, end = context.WithCancel(ctx)
		go func() {
			_, _ = io.Copy(io.Discard, e.Stdin) // however it ends, who started this has gone
			end()
		}()
	}
	fmt.Fprintf(e.Stdout, "serving on http://%s (%s)\n", l.Addr(), about)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	select {
	case err = <-served:
	case <-ctx.Done():
		end, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		// Answers that outlast the wait are cut, which is what was asked for; a
		// log of the truth that could not be written is an error.
		if err = srv.Shutdown(end); errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
	}
	fmt.Fprintln(e.Stdout, srv.Stats())
	return Done, err
}
