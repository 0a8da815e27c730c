package session

import (
	"math"
	"os"
	"runtime"
	"runtime/metrics"
	"strings"
	"time"

	"pitot/internal/clock"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
)

// The instrument watches itself: once a second it notes how much of its cores
// it used, how long the collector paused it, whether the wall clock, on which the
// kernel stamps, was stepped, and what else its machine was busy with.

const (
	watchEvery = time.Second
	stepLimit  = time.Millisecond // between two looks a disciplined clock drifts by far less
)

type watcher struct {
	quit, done chan struct{}
}

// watchInstrument notes samples until stop. others is the processor time of further processes
// on this machine that are part of the instrument, nil for none.
func watchInstrument(note func(record.Sample), point int32, origin int64, others func() time.Duration) *watcher {
	w := &watcher{make(chan struct{}), make(chan struct{})}
	go func() {
		defer close(w.done)
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		if others == nil {
			others = func() time.Duration { return 0 }
		}
		last, with := readUsage(), others()
		for {
			ended := false
			select {
			case <-w.quit:
				ended = true // what was left of the last second counts too
			case <-tick.C:
			}
			now, all := readUsage(), others()
			at := clock.Now() - origin
			sample := func(name string, v float64) {
				note(record.Sample{Point: point, T: at, Source: record.SourceClient, Name: name, Value: v})
			}
			now.machine.addSamples(last.machine, now.cpu-last.cpu+all-with, now.mono.Sub(last.mono), func(name string, v float64) {
				note(record.Sample{Point: point, T: at, Source: record.SourceHost, Name: name, Value: v})
			})
			span := now.mono.Sub(last.mono).Seconds()
			sample("cpu_share", (now.cpu-last.cpu).Seconds()/span/float64(runtime.GOMAXPROCS(0)))
			sample("gc_pause_s", now.pause-last.pause)
			sample("memory_bytes", now.memory)
			wall := now.mono.UnixNano() - last.mono.UnixNano()
			if step := time.Duration(wall) - now.mono.Sub(last.mono); math.Abs(float64(step)) > float64(stepLimit) {
				sample("clock_step", step.Seconds())
			}
			if ended {
				return
			}
			last, with = now, all
		}
	}()
	return w
}

func (w *watcher) stop() {
	close(w.quit)
	<-w.done
}

type reading struct {
	mono    time.Time
	cpu     time.Duration
	pause   float64
	memory  float64
	machine machine
}

func readUsage() reading {
	l := reading{mono: time.Now(), cpu: cpuTime(), machine: lookAtMachine()}
	s := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}, {Name: "/memory/classes/total:bytes"}}
	metrics.Read(s)
	if s[0].Value.Kind() == metrics.KindFloat64Histogram {
		l.pause = maxPauseSum(s[0].Value.Float64Histogram())
	}
	if s[1].Value.Kind() == metrics.KindUint64 {
		l.memory = float64(s[1].Value.Uint64())
	}
	return l
}

// maxPauseSum is the most that the durations of a histogram may sum up to, in
// seconds; of those in the last bucket, which has no end, the least.
func maxPauseSum(h *metrics.Float64Histogram) (sum float64) {
	for i, n := range h.Counts {
		if n == 0 {
			continue
		}
		edge := h.Buckets[i+1]
		if math.IsInf(edge, 0) {
			edge = h.Buckets[i]
		}
		sum += float64(n) * edge
	}
	return sum
}

// environment describes this machine.
func environment() result.Environment {
	e := result.Environment{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU()}
	e.CPU = fieldInFile("/proc/cpuinfo", "model name")
	e.Kernel = readTrimmed("/proc/sys/kernel/osrelease")
	e.Clocksource = readTrimmed("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	if kb := strings.TrimSuffix(fieldInFile("/proc/meminfo", "MemTotal"), " kB"); kb != "" {
		var n int64
		for _, c := range kb {
			if c >= '0' && c <= '9' {
				n = n*10 + int64(c-'0')
			}
		}
		e.MemoryBytes = n << 10
	}
	return e
}

func readTrimmed(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// fieldInFile gives the first "name: value" of a file of the kernel.
func fieldInFile(path, name string) string {
	for line := range strings.Lines(readTrimmed(path)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
