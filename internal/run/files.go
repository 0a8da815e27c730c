package run

import (
	"fmt"
	"os"

	"pitot/internal/plan"
	"pitot/internal/say"
)

// Each request under way has a connection, and each connection a descriptor.
// A client without enough of them would measure itself.

// otherFiles are the descriptors left for what is no connection yet or no
// more: those being made, name look-ups, the files that a run ends with.
const otherFiles = 96

// enoughFiles refuses a load of so many connections at once if this process
// may not open as many files. What it has open already counts.
//
// The Go runtime has raised the soft limit to the hard one by the time any of
// this runs, on every system that has the two.
func enoughFiles(p *plan.Plan, connections int) error {
	limit, ok := fileLimit()
	if !ok {
		return nil
	}
	each := int64(1)
	if p.Kind() == "mock" {
		each = 2 // both ends are in this process
	}
	free := int64(limit) - int64(openFiles()) - otherFiles
	if int64(connections)*each <= free {
		return nil
	}
	most := max(free/each, 0)
	err := say.Errorf("%s connections at once take more files than the %s that this process may have open", say.Count(connections), say.Count(limit))
	hint := fmt.Sprintf("raise the limit before (ulimit -n %d)", int64(connections)*each+int64(limit)-free)
	switch {
	case most < 1:
	case p.Rate > 0:
		hint += fmt.Sprintf(", or hold back what is more: --max-in-flight %d is the highest possible", most)
	default:
		hint += fmt.Sprintf(", or put on less: %s users are the highest load possible", say.Count(most))
	}
	return err.WithHint(hint)
}

// plannedFiles holds the loads that a plan names against the limit, before
// anything is asked or written.
func plannedFiles(p *plan.Plan) error {
	if p.Kind() == "sim" {
		return nil
	}
	users := p.Concurrency
	if p.Over == "concurrency" {
		for _, x := range append([]float64{p.Verify}, p.Loads...) {
			users = max(users, int(x))
		}
	}
	return enoughFiles(p, users)
}

// openFiles is how many descriptors this process has open; a few where the
// system does not tell.
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
