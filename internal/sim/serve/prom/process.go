package prom

import (
	"os"
	"strconv"
	"strings"
)

// WritePython writes the families that the Python client has of its interpreter, which
// is not there: nothing is collected, and the version is none.
func (p *Page) WritePython() {
	for _, f := range []struct{ name, help string }{
		{"python_gc_objects_collected_total", "Objects collected by Python's collector of garbage, none here."},
		{"python_gc_objects_uncollectable_total", "Objects that it could not collect, none here."},
		{"python_gc_collections_total", "Its collections, none here."},
	} {
		p.WriteHead(f.name, "counter", f.help)
		for _, generation := range []string{"0", "1", "2"} {
			p.Line(f.name, []string{"generation", generation}, 0)
		}
	}
	p.WriteGauge("python_info", "The Python that the server runs on: none, this is Pitot's mock.", Series{Value: 1, Labels: []string{
		"implementation", "pitot", "major", "0", "minor", "0", "patchlevel", "0", "version", "0.0.0",
	}})
}

// WriteProcess writes what the Python client tells of its process. The server stands
// for a process of its own: that began when the counters did. Outside Linux no
// more than that is known.
func (p *Page) WriteProcess() {
	gauge := func(name, help string, v float64) { p.WriteGauge(name, help, Series{Value: v}) }
	stat, err := os.ReadFile("/proc/self/stat")
	// The fields from the third on: the second may have spaces in it.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	known := err == nil && len(fields) > 21
	field := func(i int) float64 {
		v, _ := strconv.ParseFloat(fields[i-3], 64)
		return v
	}
	if known {
		gauge("process_virtual_memory_bytes", "Virtual memory, bytes.", field(23))
		gauge("process_resident_memory_bytes", "Resident memory, bytes.", field(24)*float64(os.Getpagesize()))
	}
	gauge("process_start_time_seconds", "When the process began, Unix time in seconds.", p.Created)
	if !known {
		return
	}
	const ticks = 100 // a second: USER_HZ of every Linux
	p.WriteHead("process_cpu_seconds_total", "counter", "Processor time of user and system, seconds.")
	p.Line("process_cpu_seconds_total", nil, (field(14)+field(15))/ticks)
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		gauge("process_open_fds", "Open file descriptors.", float64(len(open)))
	}
	limits, _ := os.ReadFile("/proc/self/limits")
	for line := range strings.Lines(string(limits)) {
		if rest, ok := strings.CutPrefix(line, "Max open files"); ok {
			most, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			gauge("process_max_fds", "Most file descriptors that may be open.", most)
		}
	}
}
