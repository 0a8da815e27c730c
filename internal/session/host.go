package session

import (
	"runtime"
	"strconv"
	"strings"
	"time"

	"pitot/internal/results/record"
)

// A client whose machine is busy with something else is late like one that is
// itself overloaded, but the remedy is another. So in addition to its own processor
// time it notes what the machine's was spent on, as far as the system reports it.

// machine holds the use of this machine's processors since it started: of those that this process
// may run on, where it is confined to some.
type machine struct {
	known     bool
	cores     int
	busy      time.Duration // of all processes, summed over the cores
	stolen    time.Duration // by other guests of the hypervisor, summed over the cores
	runnable  float64       // tasks that run or wait for a core, now
	waited    time.Duration // that some task waited for a core; below 0 if not known, as for some of the cores
	throttled time.Duration // that this process was held back by the limit of its container
}

// userHZ is in what part of a second /proc/stat counts: the same on all platforms
// that Go runs on.
const userHZ = 100

// lookAtMachine reads the kernel's counters; elsewhere than on Linux there are none.
func lookAtMachine() machine { return machineOf(readTrimmed) }

// machineOf reads files of the kernel, each "" where there is none.
func machineOf(read func(path string) string) (m machine) {
	m.waited = -1
	allowed := coresOf(valueInText(strings.ReplaceAll(read("/proc/self/status"), ":\t", " "), "Cpus_allowed_list"))
	var own machine // of the allowed cores
	all := 0
	for line := range strings.Lines(read("/proc/stat")) {
		f := strings.Fields(line)
		switch {
		case len(f) < 2:
		case f[0] == "cpu" && len(f) > 8:
			m.addTicks(f)
		case strings.HasPrefix(f[0], "cpu"):
			all++
			if n, err := strconv.Atoi(f[0][len("cpu"):]); err == nil && allowed[n] && len(f) > 8 {
				own.cores++
				own.addTicks(f)
			}
		case f[0] == "procs_running":
			m.runnable, _ = strconv.ParseFloat(f[1], 64)
		}
	}
	confined := own.cores > 0 && own.cores < all
	if m.cores = all; confined {
		m.cores, m.busy, m.stolen = own.cores, own.busy, own.stolen
	}
	m.cores = max(m.cores, 1)
	for line := range strings.Lines(read("/proc/pressure/cpu")) { // of all cores: some avg10=0.00 avg60=0.00 avg300=0.00 total=µs
		if rest, is := strings.CutPrefix(line, "some "); is && !confined {
			if _, total, ok := strings.Cut(rest, "total="); ok {
				if n, err := strconv.ParseInt(strings.TrimSpace(total), 10, 64); err == nil {
					m.waited = time.Duration(n) * time.Microsecond
				}
			}
		}
	}
	if n, err := strconv.ParseInt(valueInText(containerStat(read), "throttled_usec"), 10, 64); err == nil {
		m.throttled = time.Duration(n) * time.Microsecond
	}
	return m
}

// addTicks adds the times of a line of /proc/stat:
// user nice system idle iowait irq softirq steal; guests are in user.
func (m *machine) addTicks(f []string) {
	var ticks [8]time.Duration
	for i := range ticks {
		n, _ := strconv.ParseInt(f[i+1], 10, 64)
		ticks[i] = time.Duration(n) * time.Second / userHZ
	}
	m.busy += ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]
	m.stolen += ticks[7]
	m.known = true
}

// mostCores bounds the numbers of cores that are read from a list.
const mostCores = 1 << 14

// coresOf reads a list of cores of the kernel, as "0-3,8".
func coresOf(list string) map[int]bool {
	cores := map[int]bool{}
	for part := range strings.SplitSeq(list, ",") {
		first, last, ranged := strings.Cut(strings.TrimSpace(part), "-")
		from, err := strconv.Atoi(first)
		to := from
		if ranged && err == nil {
			to, err = strconv.Atoi(last)
		}
		for n := from; err == nil && n <= min(to, mostCores); n++ {
			cores[n] = true
		}
	}
	return cores
}

// containerStat is the processor accounting of the group this process is in.
func containerStat(read func(path string) string) string {
	group := ""
	for line := range strings.Lines(read("/proc/self/cgroup")) {
		if path, is := strings.CutPrefix(strings.TrimSpace(line), "0::"); is {
			group = path
		}
	}
	if stat := read("/sys/fs/cgroup" + group + "/cpu.stat"); stat != "" {
		return stat
	}
	return read("/sys/fs/cgroup/cpu.stat") // a container's own is mounted there
}

// valueInText gives the value next to a name in a file of the kernel.
func valueInText(text, name string) string {
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(line, " "); ok && k == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// addSamples says what became of the machine since an earlier look; own is the
// processor time that this process used meanwhile, span how long it was.
func (m machine) addSamples(before machine, own, span time.Duration, sample func(name string, v float64)) {
	if !m.known || !before.known || span <= 0 {
		return
	}
	all := span.Seconds() * float64(m.cores)
	sample(record.OthersShare, max(0, (m.busy-before.busy-own).Seconds()/all))
	sample(record.StolenShare, max(0, (m.stolen-before.stolen).Seconds()/all))
	sample(record.Runnable, m.runnable)
	sample(record.ThrottledShare, max(0, (m.throttled-before.throttled).Seconds()/span.Seconds()/float64(runtime.GOMAXPROCS(0))))
	if m.waited >= 0 && before.waited >= 0 {
		sample(record.WaitedShare, min(1, max(0, (m.waited-before.waited).Seconds()/span.Seconds())))
	}
}
