package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// startOn starts a command that runs on these cores alone, on any for nil.
func startOn(c *exec.Cmd, cores []int) error {
	if cores == nil {
		return c.Start()
	}
	runtime.LockOSThread() // a child has the cores of the thread that starts it
	defer runtime.UnlockOSThread()
	var was, only unix.CPUSet
	if err := unix.SchedGetaffinity(0, &was); err != nil {
		return fmt.Errorf("read the cores of a thread: %w", err)
	}
	for _, core := range cores {
		only.Set(core)
	}
	if err := unix.SchedSetaffinity(0, &only); err != nil {
		return fmt.Errorf("keep a thread to cores %v: %w", cores, err)
	}
	defer func() { _ = unix.SchedSetaffinity(0, &was) }()
	return c.Start()
}

// coresHere are the processors that this process may use, those of one core together: two that
// share a core take from each other.
func coresHere() (cores [][]int) {
	var may unix.CPUSet
	if unix.SchedGetaffinity(0, &may) != nil {
		return nil
	}
	of := map[string]int{}
	for cpu := range len(may) * 64 {
		if !may.IsSet(cpu) {
			continue
		}
		name, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu))
		if err != nil {
			name = []byte(strconv.Itoa(cpu))
		}
		i, known := of[string(name)]
		if !known {
			i, cores = len(cores), append(cores, nil)
			of[string(name)] = i
		}
		cores[i] = append(cores[i], cpu)
	}
	return cores
}

// tick is the unit of processor time in /proc: every Linux has it for user space.
const tick = 10 * time.Millisecond

// spentBy is the processor time of a process and those that it started and that go on.
func spentBy(pid int) (sum time.Duration) {
	type process struct{ pid, parent, ticks int }
	var all []process
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(text), ") ") // behind its name
		f := strings.Fields(rest)
		if len(f) < 13 {
			continue
		}
		p := process{}
		p.pid, _ = strconv.Atoi(filepath.Base(filepath.Dir(file)))
		p.parent, _ = strconv.Atoi(f[1])
		user, _ := strconv.Atoi(f[11])
		system, _ := strconv.Atoi(f[12])
		p.ticks = user + system
		all = append(all, p)
	}
	of := []int{pid}
	for i := 0; i < len(of); i++ {
		for _, p := range all {
			if p.pid == of[i] {
				sum += time.Duration(p.ticks) * tick
			}
			if p.parent == of[i] && !slices.Contains(of, p.pid) {
				of = append(of, p.pid)
			}
		}
	}
	return sum
}
