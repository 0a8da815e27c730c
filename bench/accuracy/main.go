// Command accuracy measures Pitot's errors: what it says of TTFT and gaps
// against the log of the reference server, at 1 to 1,000 streams, alone on
// its core and with another process that takes half of it.
//
//	go run ./bench/accuracy [-streams 1,10,100,1000] [-duration 5s]
//
// The server has one core, Pitot the other. Needs Linux, two cores, taskset.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"pitot/internal/check"
	"pitot/internal/report"
)

func main() {
	log.SetFlags(0)
	streams := flag.String("streams", "1,10,100,1000", "numbers of streams")
	each := flag.Duration("duration", 5*time.Second, "window of each level")
	busy := flag.Bool("busy", false, "be the process that takes half a core")
	flag.Parse()
	if *busy {
		for {
		}
	}
	if os.Getenv("PITOT_BENCH_PINNED") == "" { // again, on the second core
		self, err := os.Executable()
		if err != nil {
			log.Fatal(err)
		}
		cmd := exec.Command("taskset", append([]string{"-c", "1", self}, os.Args[1:]...)...)
		cmd.Env = append(os.Environ(), "PITOT_BENCH_PINNED=1")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			log.Fatal(err)
		}
		return
	}
	if n := runtime.NumCPU(); n != 1 {
		log.Fatalf("not pinned to one core but to %d", n)
	}
	dir, err := os.MkdirTemp("", "pitot-bench-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	pitot := filepath.Join(dir, "pitot")
	if out, err := exec.Command("taskset", "-c", "0,1", "go", "build", "-o", pitot, "./cmd/pitot").CombinedOutput(); err != nil {
		log.Fatalf("%s%v", out, err)
	}
	c := &check.Checker{Command: []string{"taskset", "-c", "0", pitot}, Ref: check.Standard, Seconds: *each, Err: os.Stderr}
	for _, shared := range []bool{false, true} {
		if shared {
			self, err := os.Executable()
			if err != nil {
				log.Fatal(err)
			}
			other := exec.Command("taskset", "-c", "1", self, "-busy")
			if err := other.Start(); err != nil {
				log.Fatal(err)
			}
			defer other.Process.Kill()
			fmt.Println("\nwith another process on the same core")
		} else {
			report.CheckHead(os.Stdout, c.Ref, c.Seconds)
		}
		for text := range strings.SplitSeq(*streams, ",") {
			n, err := strconv.Atoi(text)
			if err != nil {
				log.Fatal(err)
			}
			l, err := c.Level(context.Background(), n)
			if err != nil {
				log.Fatal(err)
			}
			report.CheckLevel(os.Stdout, l)
		}
	}
}
