package session

import (
	"fmt"
	"os"
	"runtime"

	"pitot/internal/config"
	"pitot/internal/say"
)

// Each request under way has a connection, and each connection a descriptor.
// A client without enough of them would measure itself.

const (
	// laterFiles are the descriptors left at a load's begin for what is no
	// connection yet or no more: those being made (two each while they are handed
	// over), name look-ups, the files that a run ends with.
	laterFiles = 40
	// setUpFiles are those that are opened until then, laterFiles included, and
	// filesEach what the readers of sockets have for each core.
	setUpFiles = 72
	filesEach  = 6
)

// enoughFiles refuses a load of so many connections at once if this process
// may not open as many files in addition to those it has open and some that are kept.
//
// The Go runtime has raised the soft limit to the hard one by the time any of
// this runs, on every system that has the two.
func enoughFiles(p *config.Plan, connections, kept int) error {
	limit, ok := fileLimit()
	if !ok {
		return nil
	}
	each := int64(1)
	if p.Kind() == config.KindMock {
		each = 2 // both ends are in this process
	}
	free := int64(limit) - int64(openFiles()) - int64(kept)
	if int64(connections)*each <= free {
		return nil
	}
	most := max(free/each, 0)
	if most < 1 {
		return say.Errorf("this process may have %s files open, and the run takes them all before its first connection", say.Count(limit)).
			WithHint(fmt.Sprintf("raise the limit before (ulimit -n %d)", max(int64(connections)*each+int64(limit)-free, 256)))
	}
	err := say.Errorf("%s connections at once take more files than the %s that this process may have open", say.Count(connections), say.Count(limit))
	hint := fmt.Sprintf("raise the limit before (ulimit -n %d)", int64(connections)*each+int64(limit)-free)
	switch {
	case p.Rate > 0:
		hint += fmt.Sprintf(", or hold back what is more: --max-in-flight %d is the highest possible", most)
	default:
		hint += fmt.Sprintf(", or put on less: %s users are the highest load possible", say.Count(most))
	}
	return err.WithHint(hint)
}

// plannedFiles holds the loads that a plan names against the limit, before
// anything is asked or written.
func plannedFiles(p *config.Plan) error {
	if p.Kind() == config.KindSim {
		return nil
	}
	users := p.Concurrency
	if p.IsClosedLoop() {
		for _, x := range append([]float64{p.At}, p.Loads...) {
			users = max(users, int(x))
		}
	}
	return enoughFiles(p, users, setUpFiles+filesEach*runtime.GOMAXPROCS(0))
}

// openFiles returns the number of descriptors that this process has open. It returns a few where
// the system does not give the number.
func openFiles() int {
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		if d, err := os.Open(dir); err == nil {
			names, err := d.Readdirnames(-1)
			d.Close()
			if err == nil {
				return len(names)
			}
		}
	}
	return 16
}
