package session

import (
	"maps"
	"math"
	"testing"
	"time"

	"pitot/internal/results/record"
)

// Files of a machine with two cores, before and one second after.
func machines(busy, steal, waited, throttled string) func(string) string {
	return func(path string) string {
		return map[string]string{
			"/proc/stat": "cpu  " + busy + " 20 60 4000 100 5 5 " + steal + " 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu1 1 2 3 4 5 6 7 8 9 10\n" +
				"ctxt 1\nprocs_running 7\nprocs_blocked 0",
			"/proc/pressure/cpu":                "some avg10=1.00 avg60=2.00 avg300=3.00 total=" + waited + "\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=99",
			"/proc/self/cgroup":                 "3:cpu:/\n0::/slice/one",
			"/sys/fs/cgroup/cpu.stat":           "usage_usec 5\nthrottled_usec 1",
			"/sys/fs/cgroup/slice/one/cpu.stat": "usage_usec 5\nnr_throttled 3\nthrottled_usec " + throttled,
		}[path]
	}
}

func TestHostSamples(t *testing.T) {
	before, after := machineOf(machines("1000", "10", "500000", "0")), machineOf(machines("1150", "30", "1250000", "0"))
	if !after.known || after.cores != 2 {
		t.Fatalf("%+v", after)
	}
	got := map[string]float64{}
	after.addSamples(before, 300*time.Millisecond, time.Second, func(name string, v float64) { got[name] = math.Round(v*1e6) / 1e6 })
	// 1.5 s of two cores were busy, 0.3 of them this process's.
	want := map[string]float64{record.OthersShare: .6, record.StolenShare: .1, record.Runnable: 7, record.WaitedShare: .75, record.ThrottledShare: 0}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	held := machineOf(machines("1150", "30", "1250000", "40000"))
	held.addSamples(after, 0, time.Second, func(name string, v float64) {
		if name == record.ThrottledShare && v <= 0 {
			t.Error("a container that was held back is not seen")
		}
	})
	none := machineOf(func(string) string { return "" })
	none.addSamples(before, 0, time.Second, func(name string, v float64) { t.Errorf("%s %v of a machine that does not tell", name, v) })
	after.addSamples(none, 0, time.Second, func(name string, v float64) { t.Errorf("%s %v against a machine that did not tell", name, v) })
	garbled := machineOf(func(string) string { return "cpu a b c d e f g h\nprocs_running\nsome total=x\n0::" })
	garbled.addSamples(garbled, 0, time.Second, func(name string, v float64) {
		if v != 0 {
			t.Errorf("%s %v of garbled files", name, v)
		}
	})
}

// A process that is confined to a core has that core for its machine.
func TestHostOfConfinedProcess(t *testing.T) {
	look := func(first, second string) machine {
		return machineOf(func(path string) string {
			return map[string]string{
				"/proc/stat":         "cpu  9 0 0 0 0 0 0 0\ncpu0 " + first + " 0 0 0 0 0 0 0 0 0\ncpu1 " + second + " 0 0 0 0 0 0 3 0 0\n",
				"/proc/pressure/cpu": "some total=5",
				"/proc/self/status":  "Name:\tpitot\nCpus_allowed_list:\t1\n",
			}[path]
		})
	}
	got := map[string]float64{}
	look("900", "30").addSamples(look("100", "10"), 150*time.Millisecond, time.Second, func(name string, v float64) { got[name] = math.Round(v*1e6) / 1e6 })
	want := map[string]float64{record.OthersShare: .05, record.StolenShare: 0, record.Runnable: 0, record.ThrottledShare: 0}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if cores := coresOf("0-2,5,x-3,7-"); len(cores) != 4 || !cores[5] {
		t.Errorf("%v", cores)
	}
}
