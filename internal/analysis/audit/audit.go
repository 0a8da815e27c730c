// Package audit holds the instrument against its reference: how accurate is
// Pitot, or any other client, on this machine?
//
// The reference is the mock server in a process of its own. It logs the
// moment before each write, on a clock that all processes of the machine
// share, so that every chunk time of the client can be compared with the truth.
// The mock and the client share no parsing code.
package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"pitot/internal/config"
	"pitot/internal/results/result"
	"pitot/internal/session"
	"pitot/internal/sim/serve"
	"pitot/internal/workload"
)

// Reference holds the settings of the reference server.
type Reference struct {
	TTFT, ITL time.Duration
	Tokens    int // per answer
}

// Checker does checks.
type Checker struct {
	Command []string // this program
	Version result.Version
	API     string // in which the client asks, of [APIs]; "" is the first
	Ref     Reference
	Window  time.Duration // of each level
	Err     io.Writer
	Crew    session.Crew // workers that ask together, nil for this process alone
	// ReadClaim reads what another client says of its measurement out of a file
	// that it left.
	ReadReport func(path string) (ClientReport, error)
}

// APIs lists the APIs that can be checked, the usual one first.
func APIs() []string { return serve.APIs() }

// checkedAPI is the API of a check.
func (c *Checker) checkedAPI() string { return cmp.Or(c.API, APIs()[0]) }

// startReference starts a server with a directory of its own, which the caller
// removes, and gives the path of its log.
func (c *Checker) startReference(ctx context.Context) (srv *Server, dir, truth string, err error) {
	dir, err = os.MkdirTemp("", "pitot-check-")
	if err != nil {
		return nil, "", "", fmt.Errorf("check: %w", err)
	}
	truth = filepath.Join(dir, "truth.jsonl")
	face, _ := serve.DialectOf(c.checkedAPI())
	args := []string{"--face", face, "--ttft", c.Ref.TTFT.String(), "--itl", c.Ref.ITL.String(), "--truth", truth}
	srv, err = StartServer(ctx, c.Command, args...)
	if err != nil {
		os.RemoveAll(dir)
	}
	return srv, dir, truth, err
}

// CheckLevel loads the reference with so many streams and compares.
func (c *Checker) CheckLevel(ctx context.Context, streams int) (*Level, error) {
	srv, dir, truth, err := c.startReference(ctx)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	p := config.Default()
	p.Spec, p.API, p.Model = srv.URL, c.checkedAPI(), "reference"
	p.Input, p.Ask.Output = workload.FixedLength(16), workload.FixedLength(c.Ref.Tokens)
	p.Concurrency, p.Duration, p.Out = streams, c.Window, filepath.Join(dir, "run")
	p.Warmup, p.Timeout = 1500*time.Millisecond, time.Minute
	var spent session.Spent
	r := session.Runner{Command: []string{"pitot", "check"}, Version: c.Version, Crew: c.Crew, Loaded: func(s session.Spent) { spent = s }}
	measured, runDir, err := r.Run(ctx, &p)
	stats, stopped := srv.Stop()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err = errors.Join(err, stopped); err != nil {
		return nil, err
	}
	if len(measured.Points) == 0 || measured.Points[0].Requests.OK == 0 {
		return nil, errors.New("check: nothing was answered")
	}
	l := &Level{API: c.checkedAPI(), Streams: streams, Verdict: measured.Verdict, Late: stats.Late}
	return l, l.compareRecords(&measured.Points[0], runDir, truth, spent)
}
