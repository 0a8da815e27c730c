package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"pitot/internal/clock"
	"pitot/internal/telemetry"
	"pitot/internal/telemetry/scrape"
)

// machine is a tree as /proc has it.
type machine fstest.MapFS

func (m machine) file(name, text string) { m[name] = &fstest.MapFile{Data: []byte(text)} }

// process puts one there: its parent, ticks outside the kernel and in it, what it has open.
func (m machine) process(pid, parent int, name string, user, system int, open ...string) {
	dir := strconv.Itoa(pid)
	m[dir] = &fstest.MapFile{Mode: fs.ModeDir | 0o555}
	m.file(dir+"/stat", fmt.Sprintf("%d (%s) S %d 1 1 0 -1 4194304 100 0 0 0 %d %d 0 0 20 0 1 0 %d 1000000 100 18446744073709551615\n", pid, name, parent, user, system, 1000+pid))
	for i, to := range open {
		m[fmt.Sprintf("%s/fd/%d", dir, i)] = &fstest.MapFile{Mode: fs.ModeSymlink | 0o777, Data: []byte(to)}
	}
}

func (m machine) files() fs.FS { return fstest.MapFS(m) }

const tcpHead = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

// tcp is a socket of /proc/net/tcp.
func tcp(local, state string, inode int) string {
	return fmt.Sprintf("   0: %s 00000000:0000 %s 00000000:00000000 00:00000000 00000000  1000        0 %d 1 0000000000000000 100 0 0 10 0\n", local, state, inode)
}

// serving is a machine on which vLLM listens at 127.0.0.1:8000, with a child and a
// grandchild, beside others.
func serving() machine {
	m := machine{}
	m.file("net/tcp", tcpHead+tcp("0100007F:1F40", "0A", 777)+tcp("0100007F:1F40", "01", 778)+tcp("0100007F:1F41", "0A", 779))
	m.file("net/tcp6", tcpHead)
	m.process(1, 0, "init", 5, 5)
	m.process(50, 1, "vllm (serve) 1", 100, 20, "/dev/null", "socket:[777]", "socket:[1]")
	m.file("50/schedstat", "1200000000 1000000000 70\n")
	m.process(51, 50, "VLLM::EngineCor", 900, 100)
	m.process(52, 51, "VLLM::Worker", 400, 0)
	m.process(60, 1, "other", 7000, 0, "socket:[779]")
	return m
}

// Who listens is found with its children, and their processor time only grows, whoever
// ends and begins.
func TestProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := serving()
		p, err := FindProcesses(m.files(), "127.0.0.1:8000", false)
		if err != nil || !slices.Equal(p.IDs(), []int{50, 51, 52}) {
			t.Fatalf("%v, %v", p.IDs(), err)
		}
		check := func(all, listening, processes float64) {
			t.Helper()
			a, err := p.Tell(t.Context())
			v := a.Values
			if err != nil || math.Abs(v[telemetry.ServerCPU]-all) > 1e-9 || math.Abs(v[telemetry.ListenerCPU]-listening) > 1e-9 || v[telemetry.ServerProcesses] != processes {
				t.Errorf("%v, %v; want %g, %g s of %g", v, err, all, listening, processes)
			}
		}
		check(0, 0, 3)
		m.process(50, 1, "vllm (serve) 1", 150, 30, "socket:[777]")
		m.file("50/schedstat", "1800000000 1250000000 99\n")
		m.process(51, 50, "VLLM::EngineCor", 1000, 100)
		check(1.6, .6, 3)
		if a, _ := p.Tell(t.Context()); math.Abs(a.Values[telemetry.ListenerWait]-.25) > 1e-9 {
			t.Errorf("it waited %g s", a.Values[telemetry.ListenerWait])
		}
		delete(m, "52/stat")
		m.process(53, 50, "VLLM::Worker", 5000, 0) // as long as it is not seen it counts for nothing
		check(1.6, .6, 2)
		time.Sleep(childrenEvery)
		check(1.6, .6, 3)
		m.process(53, 50, "VLLM::Worker", 5050, 0)
		check(2.1, .6, 3)
		delete(m, "50/stat") // the server ends, and another begins
		if _, err := p.Tell(t.Context()); err == nil {
			t.Error("it still tells")
		}
		m.process(70, 1, "python3", 10, 10, "socket:[777]")
		if _, err := p.Tell(t.Context()); err != nil {
			t.Error(err)
		}
		m.process(70, 1, "python3", 110, 10, "socket:[777]")
		check(3.1, 1.6, 1)
	})
}

// Sockets of any address, of IPv6, of several processes, and of unix.
func TestListeners(t *testing.T) {
	for name, c := range map[string]struct {
		address string
		unix    bool
		edit    func(m machine)
		want    []int
		err     error
	}{
		"any address":       {"127.0.0.1:8000", false, func(m machine) { m.file("net/tcp", tcpHead+tcp("00000000:1F40", "0A", 777)) }, []int{50, 51, 52}, nil},
		"by name":           {"localhost:8000", false, func(machine) {}, []int{50, 51, 52}, nil},
		"IPv6, any":         {"[::1]:8000", false, func(m machine) { m.file("net/tcp6", tcpHead+tcp(strings.Repeat("0", 32)+":1F40", "0A", 777)) }, []int{50, 51, 52}, nil},
		"IPv6":              {"[::1]:8000", false, func(m machine) { m.file("net/tcp6", tcpHead+tcp("00000000000000000000000001000000:1F40", "0A", 777)) }, []int{50, 51, 52}, nil},
		"another address":   {"127.0.0.2:8000", false, func(machine) {}, nil, errors.New("no process that is seen here listens at 127.0.0.2:8000")},
		"another port":      {"127.0.0.1:9000", false, func(machine) {}, nil, errors.New("no process that is seen here listens at 127.0.0.1:9000")},
		"two that share it": {"127.0.0.1:8000", false, func(m machine) { m.process(61, 1, "python3", 0, 0, "socket:[777]") }, []int{50, 51, 52, 61}, nil},
		"a unix socket": {"/run/v.sock", true, func(m machine) {
			m.file("net/unix", "Num RefCount Protocol Flags Type St Inode Path\n0000: 00000002 00000000 00010000 0001 01 779 /run/v.sock\n0000: 00000003 00000000 00000000 0001 03 7 /run/w.sock\n")
		}, []int{60}, nil},
		"another user's": {"127.0.0.1:8000", false, func(m machine) { delete(m, "50/fd/1") }, nil, ErrUnseen},
		"a tunnel":       {"127.0.0.1:8000", false, func(m machine) { m.process(50, 1, "ssh", 1, 1, "socket:[777]") }, nil, ErrElsewhere},
		"this process":   {"127.0.0.1:8000", false, func(m machine) { m.process(os.Getpid(), 1, "pitot", 1, 1, "socket:[777]") }, nil, ErrOwn},
		"no /proc":       {"127.0.0.1:8000", false, func(m machine) { clear(m) }, nil, errors.New("/proc/net/tcp cannot be read")},
	} {
		m := serving()
		c.edit(m)
		p, err := FindProcesses(m.files(), c.address, c.unix)
		if c.err == nil && (err != nil || !slices.Equal(p.IDs(), c.want)) || c.err != nil && (err == nil || !errors.Is(err, c.err) && err.Error() != c.err.Error()) {
			t.Errorf("%s: %v, %v", name, p.IDs(), err)
		}
	}
}

func FuzzProc(f *testing.F) {
	f.Add([]byte("1 (a) b) S 1 1 1 0 -1 0 0 0 0 0 5 6 0 0 20 0 1 0 9 1 1"), []byte(tcpHead+tcp("0100007F:1F40", "0A", 777)))
	f.Add([]byte(") ("), []byte("a b c 0A e f g h i j\n:1F40"))
	f.Add([]byte("()0 0 0 0 0 0 0 0 0 0 0 0 922700000000 0 0 0 0 0 0 0"), []byte{})
	f.Fuzz(func(t *testing.T, line, table []byte) {
		if s, err := parseStat(line); err == nil && s.spent < 0 {
			t.Errorf("%q: %+v", line, s)
		}
		for _, inode := range listeningSockets(table, 8000, "127.0.0.1:8000") {
			if inode == "" || inode == "0" {
				t.Errorf("%q: inode %q", table, inode)
			}
		}
		m := serving()
		m["50/stat"] = &fstest.MapFile{Data: line}
		m["net/tcp"] = &fstest.MapFile{Data: table}
		if p, err := FindProcesses(m.files(), "127.0.0.1:8000", false); err == nil {
			_, _ = p.Tell(t.Context())
		}
	})
}

const smiLine = "2, %d, 0x0000000000000004, %s, 700.00, 85, 40, 70000, 81559, 1700, 1980, 2619, 61"

// Lines become a reading when that of each GPU is there.
func TestNVIDIALines(t *testing.T) {
	var c cycle
	feed := func(lines ...string) (r telemetry.Reading, whole int) {
		t.Helper()
		for i, line := range lines {
			one, err := parseRow(line)
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := c.add(one, int64(i)+c.last+1e9); ok {
				r, whole = got, whole+1
			}
		}
		return r, whole
	}
	r, whole := feed(fmt.Sprintf(smiLine, 0, "500.5"), fmt.Sprintf(smiLine, 1, "600.5"))
	v := r.Values
	if whole != 1 || v[telemetry.GPUs] != 2 || v[telemetry.GPUPower] != 1101 || v[telemetry.GPUActive] != .85 || v[telemetry.GPUMemory] != 140000*(1<<20) || v[telemetry.GPUClock] != 1700 || v[telemetry.GPUTemperature] != 61 {
		t.Errorf("%d: %v", whole, v)
	}
	// A GPU that does not tell makes no sum of the others, and a lost line none of two answers.
	r, whole = feed(fmt.Sprintf(smiLine, 0, "500"), fmt.Sprintf(smiLine, 0, "[N/A]"), fmt.Sprintf(smiLine, 1, "600"))
	if _, told := r.Values[telemetry.GPUPower]; whole != 1 || told || r.Values[telemetry.GPUClock] != 1700 {
		t.Errorf("%d: %v", whole, r.Values)
	}
	if x := r.Values[telemetry.GPUThrottledPower]; math.Abs(x-2) > 1e-6 { // both, for a second
		t.Errorf("held down for %g s", x)
	}
	if x := r.Values[telemetry.GPUThrottledHeat]; x != 0 {
		t.Errorf("too hot for %g s", x)
	}
	for _, line := range []string{"", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "Field \"x\" is not a valid field to query.", "No devices were found",
		strings.Replace(smiLine, "2, ", "0, ", 1), "a, b, c, d, e, f, g, h, i, j, k, l, m"} {
		if r, err := parseRow(line); err == nil {
			t.Errorf("%q: %+v", line, r)
		}
	}
}

func FuzzNVIDIA(f *testing.F) {
	f.Add(fmt.Sprintf(smiLine, 0, "500") + "\n" + fmt.Sprintf(smiLine, 1, "[Not Supported]"))
	f.Add("1, 0, 0xFFFFFFFFFFFFFFFF, NaN, inf, -1, 1e999, 0x1p9, , [N/A], 1, 1, 1")
	f.Fuzz(func(t *testing.T, text string) {
		var c cycle
		at := int64(0)
		for line := range strings.Lines(text) {
			r, err := parseRow(line)
			if err != nil {
				continue
			}
			at += 1e9
			if reading, ok := c.add(r, at); ok {
				for s, x := range reading.Values {
					if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
						t.Errorf("%s %g of %q", s, x, text)
					}
				}
			}
		}
	})
}

// onPath puts a script there that takes nvidia-smi's place.
func onPath(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// asked is how a fake is asked: it writes down with which arguments.
func asked(t *testing.T, answer string) string {
	args := filepath.Join(t.TempDir(), "arguments")
	onPath(t, "echo \"$@\" >> "+args+"\n"+answer)
	return args
}

func unknownTime(int) (time.Duration, bool) { return 0, false }

// nvidia-smi is one process that is asked of the server's GPUs, and that ends with the
// target.
func TestNVIDIA(t *testing.T) {
	args := asked(t, `case "$1" in
*compute-apps*) echo "50, GPU-aa"; echo "99, GPU-bb"; echo "51, GPU-cc"; exit 0;;
esac
echo "8, 0, 0x0000000000000000, 500, 700, 85, 40, 70000, 81559, 1700, 1980, 2619, 61"
echo "8, 2, 0x0000000000000000, 600, 700, 85, 40, 70000, 81559, 1700, 1980, 2619, 61"
exec sleep 600`)
	n := StartNVIDIA(time.Second, []int{50, 51}, unknownTime)
	a, err := n.Tell(t.Context())
	if err != nil || a.Values[telemetry.GPUPower] != 1100 || a.Values[telemetry.GPUs] != 2 || a.At > clock.Now() {
		t.Errorf("%+v, %v", a, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if a, err := n.Tell(ctx); err == nil {
		t.Errorf("told twice: %+v", a)
	}
	n.Close()
	data, err := os.ReadFile(args)
	if err != nil || !strings.Contains(string(data), "--loop-ms=1000 --id=GPU-aa,GPU-cc") {
		t.Errorf("%s, %v", data, err)
	}
}

// One that fails, ends, or says what it never should is given up with a sentence.
func TestNVIDIAFails(t *testing.T) {
	for script, why := range map[string]string{
		"echo \"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\"; exit 9": "nvidia-smi says \"NVIDIA-SMI has failed",
		"exit 0": "nvidia-smi ended",
		"while :; do printf 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'; done":                                  "token too long",
		"echo '1, 0, 0x0, 500, 700, 85, 40, 70000, 81559, 1700, 1980, 2619, 61'; echo '<html></html>'; exec sleep 600": "nvidia-smi says \"<html>",
	} {
		onPath(t, script)
		n := StartNVIDIA(time.Second, nil, unknownTime)
		var err error
		for err == nil {
			_, err = n.Tell(t.Context())
		}
		var final scrape.Final
		if !errors.As(err, &final) || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", script, err)
		}
		n.Close()
	}
	t.Setenv("PATH", t.TempDir())
	if n := StartNVIDIA(time.Second, nil, unknownTime); n != nil {
		t.Error("there is none")
	}
}

// One that takes more of a core than it may is asked less often.
func TestNVIDIAIsThrifty(t *testing.T) {
	args := asked(t, `i=0
while [ $i -lt 8 ]; do
echo "1, 0, 0x0000000000000000, 50$i, 700, 85, 40, 70000, 81559, 1700, 1980, 2619, 61"
i=$((i+1))
done
exec sleep 600`)
	spent := time.Duration(0)
	n := StartNVIDIA(time.Second, nil, func(int) (time.Duration, bool) {
		spent += 20 * time.Millisecond // an answer: 2 % of a core
		return spent, true
	})
	for {
		if _, err := n.Tell(t.Context()); err != nil {
			t.Fatal(err)
		}
		if data, _ := os.ReadFile(args); strings.Contains(string(data), "--loop-ms=4000") {
			break
		}
	}
	n.Close()
}

// AMD's GPUs are read from the driver's files.
func TestAMD(t *testing.T) {
	m := machine{}
	for card, watts := range map[string]string{"card0": "450000000", "card1": "550500000"} {
		dir := "class/drm/" + card + "/device/"
		m.file(dir+"vendor", "0x1002\n")
		m.file(dir+"gpu_busy_percent", "97\n")
		m.file(dir+"mem_info_vram_used", "1073741824\n")
		m.file(dir+"hwmon/hwmon3/power1_average", watts+"\n")
		m.file(dir+"hwmon/hwmon3/temp2_input", "61000\n")
		m.file(dir+"hwmon/hwmon3/freq1_input", "2100000000\n")
	}
	m.file("class/drm/card1/device/mem_busy_percent", "50\n") // card0 does not tell
	m.file("class/drm/card0-DP-1/device/vendor", "0x1002\n")
	m.file("class/drm/card9/device/vendor", "0x1a03\n")
	a := FindAMD(m.files())
	if a == nil || len(a.cards) != 2 {
		t.Fatalf("%+v", a)
	}
	told, err := a.Tell(t.Context())
	v := told.Values
	if _, partly := v[telemetry.GPUMemoryActive]; err != nil || v[telemetry.GPUPower] != 1000.5 || v[telemetry.GPUActive] != .97 || v[telemetry.GPUClock] != 2100 || v[telemetry.GPUTemperature] != 61 || v[telemetry.GPUMemory] != 1<<31 || partly {
		t.Errorf("%v, %v", v, err)
	}
	m.file("class/drm/card1/device/hwmon/hwmon3/power1_average", "what?\n")
	if _, err := a.Tell(t.Context()); err == nil {
		t.Error("the power of one card passes for that of two")
	}
	if FindAMD(machine{}.files()) != nil {
		t.Error("there is none")
	}
}

// What is of this machine.
func TestHere(t *testing.T) {
	for address, want := range map[string]bool{"127.0.0.1:80": true, "127.8.0.1:80": true, "[::1]:80": true, "localhost:80": true, "192.0.2.7:80": false, "vllm:80": false, "": false, "127.0.0.1": false} {
		if IsThisMachine(address) != want {
			t.Errorf("%q", address)
		}
	}
}
