// Command start measures what it takes to have Pitot: the size of the static
// binary, the time of --help, the time from its start to the first byte of
// the first request when nothing is probed, and that it builds for every
// platform.
//
//	go run ./bench/start
package main

import (
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"pitot/bench/setup"
)

func main() {
	log.SetFlags(0)
	dir, remove := setup.Dir()
	defer remove()
	for _, goos := range []string{"linux", "darwin", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			info, err := os.Stat(setup.Build(dir, "GOOS="+goos, "GOARCH="+arch))
			if err != nil {
				log.Fatal(err)
			}
			fmt.Printf("%-8s %-6s %6.1f MB\n", goos, arch, float64(info.Size())/1e6)
		}
	}
	pitot := setup.Build(dir)
	fmt.Printf("--help                         %v\n", median(21, func() time.Duration {
		begin := time.Now()
		if err := exec.Command(pitot, "--help").Run(); err != nil {
			log.Fatal(err)
		}
		return time.Since(begin)
	}))
	n := 0
	fmt.Printf("start to first request's bytes %v\n", median(11, func() time.Duration {
		n++
		return firstRequest(pitot, filepath.Join(dir, fmt.Sprint("run", n)))
	}))
}

// firstRequest is the time from the start of the process to the first byte of
// a request at the server.
func firstRequest(pitot, out string) time.Duration {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	first := make(chan time.Time, 64)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				if _, err := c.Read(make([]byte, 1)); err == nil {
					first <- time.Now()
				}
			}()
		}
	}()
	cmd := exec.Command(pitot, "run", "http://"+l.Addr().String(), "--no-probe", "--api", "openai-chat", "--model", "m",
		"--concurrency", "1", "--duration", "1m", "--warmup", "0s", "--quiet", "--out", out)
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		log.Fatal(err)
	}
	at := <-first
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return at.Sub(begin)
}

func median(n int, f func() time.Duration) time.Duration {
	x := make([]time.Duration, n)
	for i := range x {
		x[i] = f()
	}
	slices.Sort(x)
	return x[n/2].Round(100 * time.Microsecond)
}
