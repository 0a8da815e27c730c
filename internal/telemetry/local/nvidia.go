package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"pitot/internal/clock"
	"pitot/internal/telemetry"
	"pitot/internal/telemetry/scrape"
)

// The fields that nvidia-smi is asked for, in this order. It knows all of them since
// driver 418; one that a GPU does not have it answers with words in brackets.
var fields = []field{
	{query: "count"}, {query: "index"}, {query: "clocks_throttle_reasons.active"},
	{"power.draw", telemetry.GPUPower, 1},
	{"power.limit", telemetry.GPUPowerLimit, 1},
	{"utilization.gpu", telemetry.GPUActive, 0.01},
	{"utilization.memory", telemetry.GPUMemoryActive, 0.01},
	{"memory.used", telemetry.GPUMemory, 1 << 20},
	{"memory.total", telemetry.GPUMemoryTotal, 1 << 20},
	{"clocks.sm", telemetry.GPUClock, 1},
	{"clocks.max.sm", telemetry.GPUClockMost, 1},
	{"clocks.mem", telemetry.GPUMemoryClock, 1},
	{"temperature.gpu", telemetry.GPUTemperature, 1},
}

type field struct {
	query  string
	signal telemetry.Signal // "" of the first three
	scale  float64
}

// Reasons for which a clock is held down (nvmlClocksThrottleReasons of NVML's nvml.h).
const (
	swPowerCap        = 0x4
	hwSlowdown        = 0x8 // heat or power brake: which, the two below say
	swThermalSlowdown = 0x20
	hwThermalSlowdown = 0x40
	hwPowerBrake      = 0x80
)

// row is one line: a GPU.
type row struct {
	count, index int // GPUs of the machine; which this is
	gpu          gpu
	reasons      uint64
	told         bool // whether reasons are
}

// largestLine bounds what is taken for a line of nvidia-smi.
const largestLine = 4096

// parseRow reads a line of nvidia-smi --format=csv,noheader,nounits.
func parseRow(line string) (row, error) {
	parts := strings.Split(line, ",")
	if len(parts) != len(fields) {
		return row{}, fmt.Errorf("nvidia-smi says %.80q", line)
	}
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	r := row{gpu: gpu{}}
	var err, also error
	r.count, err = strconv.Atoi(parts[0])
	r.index, also = strconv.Atoi(parts[1])
	if err != nil || also != nil || r.count < 1 || r.count > 1024 || r.index < 0 || r.index > 1024 {
		return row{}, fmt.Errorf("nvidia-smi says %.80q", line)
	}
	if hex, ok := strings.CutPrefix(parts[2], "0x"); ok {
		r.reasons, err = strconv.ParseUint(hex, 16, 64)
		r.told = err == nil
	}
	for i, f := range fields {
		if f.signal == "" {
			continue
		}
		if x, err := strconv.ParseFloat(parts[i], 64); err == nil && !math.IsNaN(x) && !math.IsInf(x, 0) && x >= 0 {
			r.gpu[f.signal] = x * f.scale
		}
	}
	return r, nil
}

// cycle gathers the lines of one answer: one of each GPU.
type cycle struct {
	expected int // GPUs that were chosen, 0 for all of the machine
	rows     []row

	last   int64 // when the one before was whole, 0 for none
	throes [2]float64
}

// add takes in a line; ok says that the answer is whole, as it is at a time.
func (c *cycle) add(r row, at int64) (reading telemetry.Reading, ok bool) {
	if slices.ContainsFunc(c.rows, func(one row) bool { return one.index == r.index }) {
		c.rows = c.rows[:0] // a line of the one before was lost
	}
	c.rows = append(c.rows, r)
	if n := c.expected; len(c.rows) < n || n == 0 && len(c.rows) < r.count {
		return reading, false
	}
	var all []gpu
	told := true
	passed := 0.
	if c.last > 0 {
		passed = float64(at-c.last) / 1e9
	}
	for _, r := range c.rows {
		all = append(all, r.gpu)
		told = told && r.told
		// How long clocks were held down is added up from what was so at each answer.
		if r.reasons&(swPowerCap|hwPowerBrake) != 0 {
			c.throes[0] += passed
		}
		if r.reasons&(swThermalSlowdown|hwThermalSlowdown) != 0 || r.reasons&(hwSlowdown|hwPowerBrake) == hwSlowdown {
			c.throes[1] += passed
		}
	}
	c.last = at
	reading = combineGPUs(SourceNVIDIA, all)
	if told {
		reading.Values[telemetry.GPUThrottledPower], reading.Values[telemetry.GPUThrottledHeat] = c.throes[0], c.throes[1]
	}
	c.rows = c.rows[:0]
	return reading, true
}

// NVIDIA reads GPUs through nvidia-smi: one process that answers again and again, for as long as it
// is read.
type NVIDIA struct {
	mu      sync.Mutex
	changed chan struct{} // closed when there is something new
	latest  scrape.Asked
	asked   int64 // the time of what was told last
	ended   error
	stop    context.CancelFunc
	done    chan struct{}
}

// errSilent says that nvidia-smi came to an end.
var errSilent = errors.New("nvidia-smi ended")

// StartNVIDIA asks nvidia-smi every so often, of the GPUs on which processes run, or of
// all where those run on none that it tells of, as in a container. spent is the processor
// time of a process. It gives nil where there is no nvidia-smi.
func StartNVIDIA(every time.Duration, processes []int, spent func(pid int) (time.Duration, bool)) *NVIDIA {
	path, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return nil
	}
	ctx, stop := context.WithCancel(context.Background())
	n := &NVIDIA{changed: make(chan struct{}), stop: stop, done: make(chan struct{})}
	go func() {
		defer close(n.done)
		chosen := gpusOf(ctx, path, processes)
		for first := true; ctx.Err() == nil; first = false {
			longer, err := n.runQuery(ctx, path, every, chosen, spent)
			if longer == 0 || !first {
				n.endReadings(err)
				return
			}
			every = longer
		}
	}()
	return n
}

// shortly bounds a question that is answered once.
const shortly = 5 * time.Second

// gpusOf are those that processes run on.
func gpusOf(ctx context.Context, path string, processes []int) (uuids []string) {
	if len(processes) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, shortly)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--query-compute-apps=pid,gpu_uuid", "--format=csv,noheader")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(out)) {
		pid, uuid, ok := strings.Cut(strings.TrimSpace(line), ",")
		n, err := strconv.Atoi(strings.TrimSpace(pid))
		uuid = strings.TrimSpace(uuid)
		if ok && err == nil && strings.HasPrefix(uuid, "GPU-") && slices.Contains(processes, n) && !slices.Contains(uuids, uuid) {
			uuids = append(uuids, uuid)
		}
	}
	return uuids
}

const (
	// thrift is the share of a core that nvidia-smi may take.
	thrift = 0.005
	// tried is the number of answers that show how long one takes.
	tried = 5
	// seldom is the longest time between two answers.
	seldom = 30 * time.Second
)

// runQuery runs nvidia-smi until it ends, or until it turns out to take more of a core than it
// may: then longer is how often it may be asked.
func (n *NVIDIA) runQuery(ctx context.Context, path string, every time.Duration, chosen []string, spent func(pid int) (time.Duration, bool)) (longer time.Duration, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var query []string
	for _, f := range fields {
		query = append(query, f.query)
	}
	args := []string{"--query-gpu=" + strings.Join(query, ","), "--format=csv,noheader,nounits", "--loop-ms=" + strconv.FormatInt(every.Milliseconds(), 10)}
	if len(chosen) > 0 {
		args = append(args, "--id="+strings.Join(chosen, ","))
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, fmt.Errorf("ask nvidia-smi: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start nvidia-smi: %w", err)
	}
	defer func() { stop(); _ = cmd.Wait() }()
	answers, first := 0, time.Duration(0)
	err = n.read(out, cycle{expected: len(chosen)}, func() bool {
		took, known := spent(cmd.Process.Pid)
		if answers++; answers == 1 {
			first = took
		}
		if !known || answers != tried+1 {
			return true
		}
		each := (took - first) / tried
		if float64(each) <= thrift*float64(every) || every >= seldom {
			return true
		}
		longer = min(seldom, time.Duration(float64(each)/thrift))
		return false
	})
	return longer, err
}

// read takes in what nvidia-smi writes; whole is called after each answer, and says
// whether to go on.
func (n *NVIDIA) read(out io.Reader, c cycle, whole func() bool) error {
	lines := bufio.NewScanner(out)
	lines.Buffer(make([]byte, 0, largestLine), largestLine)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		r, err := parseRow(line)
		if err != nil {
			return err
		}
		now := clock.Now()
		if reading, ok := c.add(r, now); ok {
			n.publishAnswer(scrape.Asked{Reading: reading, At: now})
			if !whole() {
				return nil
			}
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read nvidia-smi: %w", err)
	}
	return errSilent
}

// publishAnswer hands over an answer.
func (n *NVIDIA) publishAnswer(a scrape.Asked) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.latest = a
	close(n.changed)
	n.changed = make(chan struct{})
}

// endReadings notes that there will be no more.
func (n *NVIDIA) endReadings(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = err
	close(n.changed)
	n.changed = make(chan struct{})
}

// Tell gives each answer of nvidia-smi once: the latest, or the next if that was given.
func (n *NVIDIA) Tell(ctx context.Context) (scrape.Asked, error) {
	for {
		n.mu.Lock()
		a, ended, changed := n.latest, n.ended, n.changed
		fresh := a.At > n.asked
		if fresh {
			n.asked = a.At
		}
		n.mu.Unlock()
		switch {
		case fresh:
			return a, nil
		case ended != nil:
			return scrape.Asked{}, scrape.Final{Err: ended}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return scrape.Asked{}, errors.New("it did not answer in time")
			}
			return scrape.Asked{}, ctx.Err()
		}
	}
}

// Latest gives its last answer, also one that was told before.
func (n *NVIDIA) Latest() (a scrape.Asked, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = n.latest.At
	return n.latest, n.latest.At > 0 && n.ended == nil
}

// Close ends nvidia-smi.
func (n *NVIDIA) Close() {
	n.stop()
	<-n.done
}
