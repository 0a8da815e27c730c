package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"pitot/internal/config"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/say"
)

// Local is a coordinator with workers that are processes of this machine.
type Local struct {
	*Coordinator
	command   [2]string // of a worker: its path and the name it goes by
	processes []*process
	failed    error // of the first Gather
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
	all []byte
}

// most is the maximum number of bytes that lines keep.
const most = 16 << 10

// Write implements [io.Writer].
func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all = append(l.all, b...); len(l.all) > 2*most {
		l.all = append(l.all[:0], l.all[len(l.all)-most:]...)
	}
	return len(b), nil
}

// lastError is the error that a process ended with.
func (l *lines) lastError() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var says []string
	for line := range strings.Lines(string(l.all[max(0, len(l.all)-most):])) {
		if line = strings.TrimSpace(strings.TrimPrefix(line, "pitot: ")); line != "" && !strings.HasPrefix(line, Note) {
			says = append(says, line)
		}
	}
	return strings.Join(says, "; ")
}

// joinTime is the time that processes have to join.
const joinTime = 30 * time.Second

// workerEnviron is this process's environment without what is said of itself alone: a coordinator
// may be a pod of an Indexed Job, and its workers have no place there.
func workerEnviron() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, JobIndex+"=") })
}

// NewLocal makes a coordinator of so many workers, which are this program again. command is its
// path and the name it goes by.
func NewLocal(v result.Version, size int, command [2]string) (*Local, error) {
	c, err := Listen(v, size)
	return &Local{Coordinator: c, command: command}, err
}

// Gather implements [session.Crew]: it starts the workers, and waits until they are there. Asked
// again, it says which one is not there any more.
func (l *Local) Gather(ctx context.Context) error {
	if l.failed != nil {
		return l.failed
	}
	if l.processes != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, m := range l.members {
			if m == nil {
				continue
			}
			if err := m.absenceError(); err != nil {
				return err
			}
		}
		return nil
	}
	c, size, command := l.Coordinator, l.size, l.command
	ctx, cancel := context.WithTimeoutCause(ctx, joinTime, errors.New("not within "+say.Duration(joinTime)))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	cores := max(1, runtime.GOMAXPROCS(0)/size) // those that a container may use, not those of its machine
	for range size {
		p := &process{ended: make(chan struct{})}
		p.Cmd = &exec.Cmd{Path: command[0], Args: []string{command[1], string(config.VerbWorker), "--join", c.URL()}, Stderr: &p.said}
		p.Env = append(workerEnviron(), config.TokenVariable+"="+c.Token(), "GOMAXPROCS="+strconv.Itoa(cores),
			"TMPDIR="+c.dir, "TMP="+c.dir) // see [Local.Close]
		ownProcessGroup(p.Cmd)
		if err := p.Cmd.Start(); err != nil {
			l.failed = fmt.Errorf("start a worker: %w", err)
			return l.failed
		}
		l.processes = append(l.processes, p)
		go func() {
			_ = p.Wait() // how it ended it says itself
			close(p.ended)
			said := cmp.Or(p.said.lastError(), p.ProcessState.String())
			c.gone(p.Process.Pid, said)
			fail(fmt.Errorf("a worker ended: %s", said))
		}()
	}
	l.failed = c.WaitReady(ctx)
	return l.failed
}

// endTime is the time that workers have to end by themselves.
const endTime = 5 * time.Second

// Close ends the workers and the server. What of a worker's journal has not come home, since
// it was lost, is kept: the only copy there is. Close gives where.
func (l *Local) Close() (kept []string) {
	_ = l.announceEnd()
	late, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	for _, p := range l.processes {
		select {
		case <-p.ended:
		case <-late.Done(): // and of those behind too
			_ = p.Process.Kill()
			<-p.ended
		}
	}
	kept = l.keepJournals()
	l.Coordinator.Close()
	return kept
}

// keepJournals moves journals that are not home to where they stay.
func (c *Coordinator) keepJournals() (kept []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stuck := false
	for _, m := range c.members {
		if m == nil {
			continue
		}
		from := filepath.Join(m.hello.Dir, rundir.Journal)
		is, err := os.Stat(from)
		if err != nil || is.Size() <= m.home { // what came home it removes itself, unless it was killed
			continue
		}
		to := filepath.Join(filepath.Dir(c.dir), fmt.Sprintf("pitot-lost-%s-worker-%d", c.id, m.rank))
		if os.Rename(m.hello.Dir, to) == nil {
			kept = append(kept, filepath.Join(to, rundir.Journal))
		} else {
			kept, stuck = append(kept, from), true
		}
	}
	if stuck { // the journal stays where it is, and so does the directory around it
		c.dir = ""
	}
	return kept
}
