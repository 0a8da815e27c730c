// Command finish measures what a run of many requests takes when it ends: it
// writes the journal of a made-up run, as a process that is killed leaves it
// behind, and has the program finish it, draw its page and export it, each in a process of
// its own whose peak memory is read from the system.
//
//	go run ./bench/finish -requests 5000000
//	go run ./bench/finish -requests 50000000 -dir /big/disk
//
// Every request streams its answer in a few chunks. Of a hundred requests one
// fails or is cut, and of a hundred chunks one shares a read with another; every
// second the instrument and its machine are sampled: so every list that grows with a
// run grows here. With -killed the journal has no end, as that of a process that
// was killed, and the requests under way are made up for too.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"pitot/bench/setup"
	"pitot/internal/metrics"
	"pitot/internal/results/marks"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
)

var (
	requests = flag.Int64("requests", 1_000_000, "how many requests")
	chunks   = flag.Int("chunks", 2, "chunks of each answer")
	rate     = flag.Float64("rate", 2000, "requests a second")
	place    = flag.String("dir", "", "directory for the run, which stays; by default a temporary one")
	binary   = flag.String("pitot", "", "program to measure; by default this source, built")
	killed   = flag.Bool("killed", false, "leave the journal as a kill does")
	exports  = flag.String("export", "", "formats to export, separated by commas")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	temp, remove := setup.Dir()
	defer remove()
	if *binary == "" {
		*binary = setup.Build(temp)
	}
	dir := *place
	if dir == "" {
		dir = filepath.Join(temp, "run")
	}
	if _, err := os.Stat(dir); err != nil {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			log.Fatal(err)
		}
		began := time.Now()
		write(dir)
		fmt.Printf("%d requests, %d chunks: journal of %.2f GB written in %.1f s\n", *requests, *requests*int64(*chunks), size(dir, rundir.Journal), time.Since(began).Seconds())
	}
	if _, err := os.Stat(filepath.Join(dir, rundir.Journal)); err == nil {
		measured("finish", *binary, "report", dir, "--format", "json")
		fmt.Printf("requests.parquet %.2f GB, chunks.parquet %.2f GB\n", size(dir, rundir.Requests), size(dir, rundir.Chunks))
	}
	measured("report", *binary, "report", dir)
	for format := range strings.SplitSeq(*exports, ",") {
		if format != "" {
			out := filepath.Join(temp, format)
			measured(format, *binary, "report", dir, "--format", "json", "--export", format+"="+out)
			os.Remove(out)
		}
	}
}

// measured runs a command and says what it took.
func measured(name string, command ...string) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	began := time.Now()
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() == 2 || exit.ExitCode() < 0) {
		log.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	u := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	fmt.Printf("%-16s peak %4d MB  %6.1f s  processor %6.1f s\n", name, u.Maxrss>>10, time.Since(began).Seconds(),
		(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
}

func size(dir, name string) float64 {
	info, err := os.Stat(filepath.Join(dir, name))
	if err != nil {
		return math.NaN()
	}
	return float64(info.Size()) / 1e9
}

// event is what happens at a time: a chunk comes, or a request ends.
type event struct {
	t, earliest int64
	row         *record.Row // of a request's end
	id          int64
}

// write makes the journal.
func write(dir string) {
	j, err := record.Create(dir)
	if err != nil {
		log.Fatal(err)
	}
	warm := int64(10e9)
	end := warm + int64(float64(*requests) / *rate * 1e9)
	writePlan(j, warm, end)
	rng := rand.New(rand.NewPCG(1, 1))
	var pending []event
	due, sampled := 0.0, 0.0
	for id := int64(0); ; {
		for ; sampled < due; sampled += 1e9 {
			for i, name := range []string{record.CPUShare, record.Pause, "memory_bytes"} {
				j.AddSample(record.Sample{T: int64(sampled), Source: record.SourceClient, Name: name, Value: .01 * float64(i) * rng.Float64()})
			}
			for _, name := range []string{record.OthersShare, record.Runnable, record.WaitedShare} {
				j.AddSample(record.Sample{T: int64(sampled), Source: record.SourceHost, Name: name, Value: .01 * rng.Float64()})
			}
		}
		for range 8192 { // a batch, whose events are put in order
			due += rng.ExpFloat64() / *rate * 1e9
			if int64(due) >= end {
				break
			}
			pending = request(pending, rng, id, int64(due))
			id++
		}
		slices.SortFunc(pending, func(a, b event) int { return cmp.Compare(a.t, b.t) })
		n := len(pending)
		if int64(due) < end || *killed {
			n, _ = slices.BinarySearchFunc(pending, int64(due), func(e event, t int64) int { return cmp.Compare(e.t, t) })
		}
		for _, e := range pending[:n] {
			if e.row != nil {
				j.Done(e.row)
			} else {
				j.Chunk(record.Chunk{Request: e.id, T: e.t, Earliest: e.earliest, Tokens: 1, Bytes: 4})
			}
		}
		pending = slices.Delete(pending, 0, n)
		if err := j.Flush(); err != nil {
			log.Fatal(err)
		}
		if int64(due) >= end {
			break
		}
	}
	if *killed {
		if err := j.Close(); err != nil {
			log.Fatal(err)
		}
		return
	}
	j.AddMark(record.Mark{Name: "window", Data: fmt.Appendf(nil, `{"t1":%d,"ended":%d}`, end, end+int64(10e9))})
	j.AddMark(record.Mark{Name: "end", Data: []byte(`{"ended":"2026-11-21T00:00:00Z","interrupted":false}`)})
	if err := j.Close(); err != nil {
		log.Fatal(err)
	}
}

// request appends the events of one.
func request(to []event, rng *rand.Rand, id, due int64) []event {
	r := record.BlankRow()
	input := []int32{100, 1000, 8000}[rng.IntN(3)]
	r.ID, r.Due, r.Eligible, r.Ready = id, due, due, due+rng.Int64N(20e3)
	r.Sent = r.Ready + rng.Int64N(50e3)
	r.InputPlanned, r.PromptTokens, r.OutputPlanned, r.Stream, r.Reused = input, input, int32(*chunks), true, true
	r.BytesOut, r.Choices, r.Status = int64(input)*4, 1, 200
	at := r.Sent + 60e6 + int64(input)*1e4 + int64(rng.ExpFloat64()*40e6)
	r.Headers, r.FirstEvent = at-1e6, at
	switch rng.IntN(300) {
	case 0:
		r.Outcome, r.Error, r.Status, r.Done = record.Failed, record.ServerError(500), 500, at
		r.Headers, r.FirstEvent, r.Detail = record.Unset, record.Unset, "internal error"
		return append(to, event{t: at, row: &r})
	case 1:
		r.Outcome, r.Error, r.Done = record.Cut, record.ErrTimeout, due+int64(10e9)
		r.FirstToken, r.FirstAnswer, r.LastToken, r.Chunks, r.Arrivals = at, at, at, 1, 1
		return append(to, event{t: at, earliest: at, id: id}, event{t: r.Done, row: &r})
	}
	r.FirstToken, r.FirstAnswer = at, at
	for i := range *chunks {
		if i > 0 {
			at += 8e6 + int64(rng.ExpFloat64()*2e6)
		}
		earliest := at
		if rng.IntN(100) == 0 {
			earliest -= rng.Int64N(5e6)
			r.Merged++
		}
		to = append(to, event{t: at, earliest: earliest, id: id})
	}
	n := int32(*chunks)
	r.LastToken, r.Done, r.CompletionTokens, r.Chunks, r.Arrivals, r.FirstTokens = at, at+rng.Int64N(1e6), n, n, n, 1
	r.TextBytes, r.BytesIn, r.Finish = 4*int64(n), 300*int64(n), "length"
	return append(to, event{t: r.Done, row: &r})
}

// writePlan writes what was planned.
func writePlan(j *record.Journal, t0, t1 int64) {
	run := result.Run{
		Schema: result.Schema, Pitot: result.Version{Version: "dev", Commit: "unknown", Go: "go"}, Command: []string{"pitot", "run"},
		Seed: 1, Started: "2026-11-20T00:00:00Z", Environment: result.Environment{Stamps: "kernel"},
		Target:   result.Target{Spec: "http://made-up", Kind: "http", API: "openai-chat", Model: "m"},
		Workload: json.RawMessage(`{"kind": "random"}`), Notes: map[string]string{},
	}
	j.AddMark(record.Mark{Name: marks.NameRun, Data: marks.EncodeHead(&run)})
	setup := metrics.Setup{T0: t0, T1: t1, Stamps: "kernel", Load: result.Load{Loop: "open", Rate: rate, Arrival: "poisson"}, Residence: 120e6}
	j.AddMark(record.Mark{Name: marks.NamePoint, Data: marks.Encode(setup)})
}
