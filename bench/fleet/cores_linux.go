package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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

// spentBy is the processor time of a process and those that it started and that go on.
func spentBy(pid int) (sum time.Duration) {
	parents := map[int]int{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		behind := bytes.LastIndexByte(text, ')') + 1 // its name, which may have parentheses of its own
		if f := strings.Fields(string(text[behind:])); len(f) > 1 {
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			parents[child], _ = strconv.Atoi(f[1])
		}
	}
	of := []int{pid}
	for i := 0; i < len(of); i++ {
		var spent unix.Timespec // by the clock of a process's processor time, clock_getcpuclockid(3)
		if unix.ClockGettime(int32(^of[i]<<3|2), &spent) == nil {
			sum += time.Duration(spent.Nano())
		}
		for child, parent := range parents {
			if parent == of[i] {
				of = append(of, child)
			}
		}
	}
	return sum
}
