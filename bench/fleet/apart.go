package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
)

// together is how many events the server writes at once that is to be faster than several clients.
const together = 8

// apart measures with cores of their own for clients and server, where there are enough: what a
// chunk costs, and how many are read in a second by one process on one core and by workers on as
// many cores as they are.
func (b *bench) apart(parts []string) {
	for _, part := range parts {
		if !slices.Contains([]string{"cost", "full", "paced"}, part) {
			log.Fatalf("-cores %s: it is cost, full or paced, or several with commas", part)
		}
	}
	most := 1
	eachFleet(func(n int) { most = max(most, n) })
	own := b.place(most)
	if own == nil {
		log.Fatal("-cores needs Linux: elsewhere no process is kept to cores")
	}
	if slices.Contains(parts, "cost") {
		b.clients = own
		for _, bare := range []bool{false, true} {
			fmt.Printf("\nprocessor time per chunk, %.0f requests a second of %s, all clients on the same %s\n",
				*rate, map[bool]string{false: "pitot mock", true: "a bare server"}[bare], plural(len(own), "core"))
			func() {
				defer b.serve(bare, *pace, 1)()
				b.alike()
			}()
		}
	}
	if slices.Contains(parts, "full") {
		fmt.Printf("\nchunks a second, users for each core who ask again as soon as they are answered, by a server that writes %d events at once\n", together)
		b.read(own, 0, together, []int{*users})
	}
	if slices.Contains(parts, "paced") {
		fmt.Printf("\nchunks a second where each comes by itself, one each %v of a stream\n", *pace)
		b.read(own, *pace, 1, []int{1000, 2000, 3000})
	}
}

// place gives cores to clients and server, and says how.
func (b *bench) place(most int) (clients []int) {
	cores := coresHere()
	clients, b.servers = divide(cores, most)
	processors := 0
	for _, c := range cores {
		processors += len(c)
	}
	fmt.Printf("%s, %s of %s; programs may use %d at a time\n", cpuName(), plural(processors, "processor"), plural(len(cores), "core"), runtime.GOMAXPROCS(0))
	if slices.Equal(clients, b.servers) {
		fmt.Println("clients and server SHARE them: what follows says nothing of cores of their own")
	} else {
		fmt.Printf("clients on processors %v, server on %v\n", clients, b.servers)
	}
	return clients
}

// divide gives processors to at most so many clients, one of each core, since two of one take from
// each other, and to the server those of the other cores. Of fewer than four cores all have all.
func divide(cores [][]int, most int) (clients, servers []int) {
	own := min(most, len(cores)/2)
	if own < 2 {
		all := slices.Concat(cores...)
		return all, all
	}
	for _, c := range cores[:own] {
		clients = append(clients, c[0])
	}
	return clients, slices.Concat(cores[own:]...)
}

// read has one process on one core, and workers on as many as they are, read what users of each
// core bring: more and more of them, until what is measured is not sound.
func (b *bench) read(own []int, pace time.Duration, batch int, levels []int) {
	defer b.serve(true, pace, batch)()
	fmt.Printf("%-10s %6s %8s %12s %7s %14s %13s %12s %11s  %-26s %s\n",
		"clients", "cores", "streams", "chunks/s", "times", "of a busy core", "clients busy", "server busy", "lag p99 ms", "held up by", "what is flagged of the instrument")
	alone := map[int]float64{}
	var most, sound []string // of each kind of clients
	first, firstSound := 0.0, 0.0
	show := func(name, fleet string, cores []int) {
		best, bestSound := 0.0, 0.0
		for _, each := range levels {
			b.clients = cores
			w := b.watched(fmt.Sprint("read", pace, each, "-", fleet), fleet, each*len(cores), pace)
			if fleet == "none" {
				alone[each] = w.speed
			}
			fmt.Printf("%-10s %6d %8d %12.0f %7s %14.0f %12.0f%% %11.0f%% %11s  %-26s %s\n", name, len(cores), each*len(cores), w.speed, times(w.speed, alone[each]),
				w.speed/(w.client*float64(len(cores))), 100*w.client, 100*w.server, w.lag, w.by(pace), cmp.Or(strings.Join(w.flagged, ", "), "nothing"))
			best = max(best, w.speed)
			if w.sound {
				bestSound = max(bestSound, w.speed)
			}
			if !w.sound && pace > 0 {
				break
			}
		}
		if len(most) == 0 {
			first, firstSound = best, bestSound
		}
		most = append(most, fmt.Sprintf("%s %.0f (%s times)", name, best, times(best, first)))
		sound = append(sound, fmt.Sprintf("%s %.0f (%s times)", name, bestSound, times(bestSound, firstSound)))
	}
	show("1 process", "none", own[:1])
	eachFleet(func(n int) {
		switch {
		case n > len(own):
			fmt.Printf("%s: there are not as many cores\n", plural(n, "worker"))
		case n > 1 || pace == 0: // one is a process with another beside it
			show(plural(n, "worker"), strconv.Itoa(n), own[:n])
		}
	})
	fmt.Printf("most a second: %s\n", strings.Join(most, ", "))
	if pace > 0 {
		fmt.Printf("most at loads where the instrument was not invalid: %s\n", strings.Join(sound, ", "))
	}
}

// times is how many times as much one speed is as another, "?" where there is no other.
func times(speed, of float64) string {
	if !(of > 0) {
		return "?"
	}
	return fmt.Sprintf("%.2f", speed/of)
}

// watch is what a load came to while it went on.
type watch struct {
	speed          float64 // chunks a second of the window
	client, server float64 // shares of their cores
	lag            string
	sound          bool     // no check of the instrument made it invalid
	flagged        []string // those that did not pass
}

// by says what held it up.
func (w *watch) by(pace time.Duration) string {
	switch {
	case w.client > .9:
		return "the clients"
	case w.server > .9:
		return "the SERVER"
	case pace > 0:
		return "nothing: all came"
	}
	return "neither was full"
}

// ofInstrument are the checks of what measures; what the others say of so short a load is no matter
// here.
var ofInstrument = []string{result.CheckRecording, result.CheckOwnErrors, result.CheckClientLimits, result.CheckSendLag, result.CheckClientCPU,
	result.CheckHost, result.CheckPauses, result.CheckClockSteps, result.CheckStamps, result.CheckMerged, result.CheckWorkers}

// watched has users ask, and looks at the processes in the middle of the load.
func (b *bench) watched(name, fleet string, users int, pace time.Duration) (w watch) {
	select {
	case <-b.loaded: // the load before
	default:
	}
	output := "1000"
	if pace > 0 {
		output = "200"
	}
	c, out := b.start(name, "--concurrency", strconv.Itoa(users), "--output", output, "--fleet", fleet)
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	var err error
	select {
	case <-b.loaded:
		time.Sleep(*warmup)
		began, client, server := time.Now(), spentBy(c.Process.Pid), spentBy(b.server.Pid)
		time.Sleep(*duration * 9 / 10)
		span := time.Since(began).Seconds()
		w.client = (spentBy(c.Process.Pid) - client).Seconds() / span / float64(len(b.clients))
		w.server = (spentBy(b.server.Pid) - server).Seconds() / span / float64(max(1, len(b.servers)))
		err = <-ended
	case err = <-ended:
	}
	data, e := os.ReadFile(filepath.Join(out, rundir.Result))
	var r result.Run
	if e == nil {
		e = json.Unmarshal(data, &r)
	}
	if e != nil || len(r.Points) != 1 {
		log.Fatalf("%v: %v, %v", c.Args, err, e)
	}
	_ = os.RemoveAll(out)
	p := &r.Points[0]
	w.speed, w.lag, w.sound = math.NaN(), "?", true
	if x := p.Throughput.OutputTokensPerS; x != nil {
		w.speed = *x
	}
	if s := p.Metrics.SummaryOf(metric.Lag); s != nil && s.P99 != nil {
		w.lag = fmt.Sprintf("%.3f", *s.P99)
	}
	for _, c := range p.Checks {
		if c.Status == result.Pass || !slices.Contains(ofInstrument, c.Name) {
			continue
		}
		if c.Status == result.Fail {
			w.sound = false
			c.Name = "INVALID: " + c.Name
		}
		w.flagged = append(w.flagged, c.Name)
	}
	return w
}

// plural is so many of something.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprint(n, " ", what, "s")
}

// cpuName is the processor's, as Linux has it.
func cpuName() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.Trim(name, " \t:\n")
		}
	}
	return runtime.GOARCH
}
