package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"pitot/internal/data/result"
	"pitot/internal/plan"
	"pitot/internal/say"
)

// Local is a coordinator with workers that are processes of this machine.
type Local struct {
	*Coordinator
	processes []*process
}

// process is one of them.
type process struct {
	*exec.Cmd
	said  lines
	ended chan struct{}
}

// lines keep the end of what a process said.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

// Write implements [io.Writer].
func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all.Len() < 16<<10 {
		l.all.Write(b)
	}
	return len(b), nil
}

// last is the error that a process ended with.
func (l *lines) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var says []string
	for line := range strings.Lines(l.all.String()) {
		if line = strings.TrimSpace(strings.TrimPrefix(line, "pitot: ")); line != "" && !strings.HasPrefix(line, "waiting for ") {
			says = append(says, line)
		}
	}
	return strings.Join(says, "; ")
}

// joinTime is how long processes have to join.
const joinTime = 30 * time.Second

// Start starts so many workers, which are this program again, and waits until they are there.
// command is its path and the name it goes by.
func Start(ctx context.Context, v result.Version, size int, command [2]string) (_ *Local, err error) {
	c, err := Listen(v, size)
	if err != nil {
		return nil, err
	}
	l := &Local{Coordinator: c}
	defer func() {
		if err != nil {
			l.Close()
		}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, joinTime, errors.New("not within "+say.Span(joinTime)))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	cores := max(1, runtime.NumCPU()/size)
	for range size {
		p := &process{ended: make(chan struct{})}
		p.Cmd = &exec.Cmd{Path: command[0], Args: []string{command[1], string(plan.VerbWorker), "--join", c.URL()}, Stderr: &p.said}
		p.Env = append(os.Environ(), plan.TokenVariable+"="+c.Token(), "GOMAXPROCS="+strconv.Itoa(cores),
			"TMPDIR="+c.dir, "TMP="+c.dir) // what is home by the end goes with the run's own; of one that is killed it stays
		apart(p.Cmd)
		if err := p.Cmd.Start(); err != nil {
			return nil, fmt.Errorf("start a worker: %w", err)
		}
		l.processes = append(l.processes, p)
		go func() {
			_ = p.Wait() // how it ended it says itself
			close(p.ended)
			c.gone(p.Process.Pid)
			fail(fmt.Errorf("a worker ended: %s", p.said.last()))
		}()
	}
	return l, c.Ready(ctx)
}

// endTime is how long workers have to end by themselves.
const endTime = 5 * time.Second

// Close ends the workers and the server.
func (l *Local) Close() {
	_ = l.bye()
	late := time.After(endTime)
	for _, p := range l.processes {
		select {
		case <-p.ended:
		case <-late:
			_ = p.Process.Kill()
			<-p.ended
		}
	}
	l.Coordinator.Close()
}
