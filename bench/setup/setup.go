// Package setup is what the benches share: a build of Pitot, a core for each
// process, and a place for files. What goes wrong ends the program.
package setup

import (
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// Dir gives a directory that remove takes away.
func Dir() (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "pitot-bench-")
	if err != nil {
		log.Fatal(err)
	}
	return dir, func() { os.RemoveAll(dir) }
}

// Build builds the program as it is released, static and without symbols, and
// gives its path. env is added to the environment, as "GOOS=windows".
func Build(dir string, env ...string) string {
	path := filepath.Join(dir, "pitot")
	Run(env, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "./cmd/pitot")
	return path
}

// Run runs a command to its end.
func Run(env []string, name string, args ...string) {
	cmd := exec.Command(name, args...)
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		log.Fatalf("%s: %v", name, err)
	}
}

// OnCore gives a command line that runs on one core alone.
func OnCore(core int, command ...string) []string {
	return append([]string{"taskset", "-c", strconv.Itoa(core)}, command...)
}

// Command is [On] as a command to run.
func Command(core int, command ...string) *exec.Cmd {
	line := OnCore(core, command...)
	return exec.Command(line[0], line[1:]...)
}
