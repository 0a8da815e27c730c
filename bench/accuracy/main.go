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
	"runtime"
	"strconv"
	"strings"
	"time"

	"pitot/bench/setup"
	"pitot/internal/analysis/audit"
	"pitot/internal/config"
	"pitot/internal/report"
)

func main() {
	log.SetFlags(0)
	streams := flag.String("streams", "1,10,100,1000", "numbers of streams")
	each := flag.Duration("duration", 5*time.Second, "window of each level")
	busy := flag.Bool("busy", false, "be the process that takes half a core")
	pitot := flag.String("pitot", "", "be pinned to a core, and measure this program")
	flag.Parse()
	if *busy {
		for busy := 0; ; busy++ { // on purpose
		}
	}
	self, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	if *pitot == "" { // again, on the second core
		dir, remove := setup.Dir()
		defer remove()
		setup.Run(nil, "taskset", append([]string{"-c", "1", self, "-pitot", setup.Build(dir)}, os.Args[1:]...)...)
		return
	}
	if n := runtime.NumCPU(); n != 1 {
		log.Fatalf("not pinned to one core but to %d", n)
	}
	c := &audit.Checker{Command: setup.OnCore(0, *pitot), Ref: standard(), Window: *each, Err: os.Stderr}
	for _, shared := range []bool{false, true} {
		if shared {
			other := setup.Command(1, self, "-busy")
			if err := other.Start(); err != nil {
				log.Fatal(err)
			}
			defer other.Process.Kill()
			fmt.Println("\nwith another process on the same core")
		}
		var levels []*audit.Level
		for text := range strings.SplitSeq(*streams, ",") {
			n, err := strconv.Atoi(text)
			if err != nil {
				log.Fatal(err)
			}
			l, err := c.CheckLevel(context.Background(), n)
			if err != nil {
				log.Fatal(err)
			}
			levels = append(levels, l)
		}
		report.WriteLevels(os.Stdout, levels, report.Style{Full: true, Width: 160})
	}
}

// standard is the load that clients of this field are compared with: 50 ms to the first
// token, then 100 tokens a second.
func standard() audit.Reference {
	var usual config.Audit
	config.Reset(&usual)
	return audit.Reference{TTFT: usual.TTFT, ITL: usual.ITL, Tokens: usual.Tokens}
}
