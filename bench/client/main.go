// Command client measures what Pitot costs: processor time per chunk, all of
// it (start-up, parsing, recording, analysis), as a ratio to a bare reader in
// C that only receives and counts, in one run. Server and client each have a
// core of their own.
//
//	go run ./bench/client [-streams 100,1000] [-rounds 3]
//
// With -apis it compares what a chunk of each API costs, from the bytes of a read to the
// record, with one of a chat.
//
// Needs Linux, two cores, taskset and a C compiler.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"pitot/bench/setup"
	"pitot/internal/analysis/audit"
)

const tokens = 100

func main() {
	log.SetFlags(0)
	streams := flag.String("streams", "100,1000", "numbers of streams")
	rounds := flag.Int("rounds", 3, "runs of each client, in turn; at least 9 with -apis, whose differences are small")
	profile := flag.String("profile", "", "write Pitot's CPU profile here")
	apis := flag.Bool("apis", false, "compare the APIs with one another")
	flag.Parse()
	dir, remove := setup.Dir()
	defer remove()
	if *apis {
		compareAPIs(setup.Build(dir), max(*rounds, 9))
		return
	}
	b := bench{dir: dir, pitot: setup.Build(dir), reader: filepath.Join(dir, "reader"), profile: *profile}
	setup.Run(nil, "cc", "-O2", "-o", b.reader, "bench/reader/reader.c")
	fmt.Printf("%8s  %-22s %14s %8s\n", "streams", "client", "CPU µs/chunk", "ratio")
	for _, text := range strings.Split(*streams, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			log.Fatal(err)
		}
		requests := max(10*n, 1000) // ten seconds of work, and at least 100,000 chunks
		var bare, ours, ratio []float64
		for range *rounds {
			x := b.measure(func(port string) *exec.Cmd {
				return setup.Command(1, b.reader, port, text, strconv.Itoa(requests), strconv.Itoa(tokens))
			})
			y := b.measure(func(port string) *exec.Cmd {
				out := filepath.Join(b.dir, "run")
				os.RemoveAll(out)
				cmd := setup.Command(1, b.pitot, "run", "http://127.0.0.1:"+port, "--no-probe",
					"--api", "openai-completions", "--model", "reference", "--input", "16", "--output", strconv.Itoa(tokens),
					"--concurrency", text, "--requests", strconv.Itoa(requests), "--warmup", "0s", "--quiet", "--out", out)
				cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
				if b.profile != "" {
					cmd.Env = append(cmd.Env, "PITOT_CPUPROFILE="+b.profile)
				}
				return cmd
			})
			bare, ours, ratio = append(bare, x), append(ours, y), append(ratio, y/x)
		}
		fmt.Printf("%8d  %-22s %14.2f %8s\n", n, "bare reader (C, epoll)", median(bare), "1")
		fmt.Printf("%8d  %-22s %14.2f %8.2f   (%.2f to %.2f in %d rounds)\n", n, "pitot run", median(ours), median(ratio), slices.Min(ratio), slices.Max(ratio), len(ratio))
	}
}

type bench struct{ dir, pitot, reader, profile string }

// measure gives a client's microseconds of CPU per event that the server
// wrote.
func (b *bench) measure(client func(port string) *exec.Cmd) float64 {
	srv, err := audit.StartServer(context.Background(), setup.OnCore(0, b.pitot), "--ttft", "50ms", "--itl", "10ms")
	if err != nil {
		log.Fatal(err)
	}
	cmd := client(srv.URL[strings.LastIndexByte(srv.URL, ':')+1:])
	output, err := cmd.CombinedOutput()
	if err != nil {
		log.Printf("%s\n%s", output, err)
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	stats, err := srv.Stop()
	if err != nil {
		log.Fatal(err)
	}
	if stats.Events == 0 {
		log.Fatalf("the server wrote nothing; the client wrote:\n%s", output)
	}
	return float64(cpu.Nanoseconds()) / 1e3 / float64(stats.Events)
}

func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	return s[len(s)/2]
}
