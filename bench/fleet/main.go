// Command fleet holds loads that several workers carry out against one that a process does
// alone: the distributions of TTFT and E2E of one schedule, by a two-sample test, and the
// processor time per chunk of all processes of the client together.
//
//	go run ./bench/fleet [-workers 1,2,4] [-rate 100] [-duration 20s] [-target MODEL@GPU]
//
// The server is pitot mock, in a process of its own. On a busy machine the test tells of
// the machine: the run's own checks say so.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitot/bench/setup"
	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/data/rundir"
	"pitot/internal/stat"
)

// measured is what a run came to.
type measured struct {
	ttft, e2e []int64 // of answered requests, by value
	chunks    int64
	cpu       time.Duration
	verdict   result.Verdict
	failed    []string // checks
}

func main() {
	log.SetFlags(0)
	workers := flag.String("workers", "1,2,4", "numbers of workers")
	rate := flag.Float64("rate", 100, "requests a second")
	duration := flag.Duration("duration", 20*time.Second, "of each window")
	target := flag.String("target", "llama-3.1-8b@h100", "of the mock")
	flag.Parse()
	dir, remove := setup.Dir()
	defer remove()
	pitot := setup.Build(dir)
	mock := exec.Command(pitot, "mock", *target, "--port", "0")
	out, err := mock.StdoutPipe()
	if err == nil {
		mock.Stderr = mock.Stdout
		err = mock.Start()
	}
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = mock.Process.Kill() }()
	line, _ := bufio.NewReader(out).ReadString('\n')
	_, url, _ := strings.Cut(line, "http://")
	url = "http://" + strings.Fields(url + " ?")[0]
	run := func(name string, more ...string) measured {
		at := filepath.Join(dir, name)
		args := append([]string{"run", url, "--rate", fmt.Sprint(*rate), "--duration", duration.String(), "--warmup", "2s", "--input", "256", "--output", "uniform(16,128)",
			"--seed", "7", "--no-scrape", "--quiet", "--out", at}, more...)
		c := exec.Command(pitot, args...)
		text, err := c.CombinedOutput()
		if _, e := os.Stat(filepath.Join(at, rundir.Result)); e != nil {
			log.Fatalf("%v: %v\n%s", args, err, text)
		}
		m := read(at)
		m.cpu = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
		return m
	}
	run("first") // which leaves the prompts in the server's cache
	alone := run("alone")
	fmt.Printf("%-8s %8s %10s %12s %8s %12s %12s  %s\n", "workers", "answers", "chunks", "CPU/chunk µs", "ratio", "TTFT D, p", "E2E D, p", "verdict")
	show := func(name string, m *measured) {
		each := func(m *measured) float64 { return float64(m.cpu.Microseconds()) / float64(m.chunks) }
		compare := func(x, y []int64) string {
			d := stat.Distance(x, y)
			return fmt.Sprintf("%.3f %.2f", d, stat.DistanceP(d, len(x), len(y)))
		}
		fmt.Printf("%-8s %8d %10d %12.2f %8.2f %12s %12s  %s %s\n", name, len(m.ttft), m.chunks, each(m), each(m)/each(&alone), compare(m.ttft, alone.ttft), compare(m.e2e, alone.e2e), m.verdict, strings.Join(m.failed, ", "))
	}
	show("none", &alone)
	again := run("again")
	show("again", &again)
	for n := range strings.SplitSeq(*workers, ",") {
		if _, err := strconv.Atoi(n); err != nil {
			log.Fatal(err)
		}
		m := run("fleet"+n, "--fleet", n)
		show(n, &m)
	}
}

// read reads a run.
func read(dir string) (m measured) {
	data, err := os.ReadFile(filepath.Join(dir, rundir.Result))
	var r result.Run
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil || len(r.Points) != 1 {
		log.Fatal("read run: ", err)
	}
	m.verdict = r.Points[0].Verdict
	for _, c := range r.Points[0].Checks {
		if c.Status != result.Pass {
			m.failed = append(m.failed, c.Name)
		}
	}
	for f, err := range record.Frames(dir) {
		if err != nil {
			log.Fatal(err)
		}
		m.chunks += int64(len(f.Chunks))
		for i := range f.Rows {
			if q := &f.Rows[i]; q.Outcome == record.OK && f.Point == 0 {
				m.ttft, m.e2e = append(m.ttft, q.FirstToken-q.Due), append(m.e2e, q.LastToken-q.Due)
			}
		}
	}
	slices.Sort(m.ttft)
	slices.Sort(m.e2e)
	return m
}
