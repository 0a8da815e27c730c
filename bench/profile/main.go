// Command profile measures how near replays of a profile come to the log that it is of: the
// gaps between requests, and the dispersion of how many come in 1, 10 and 60 s.
//
//	go run ./bench/profile LOG… LAW:RATE:REQUESTS…
//
// A LAW is one of --arrival, of which a log is made. The constants of profiles were chosen on
// Azure's, Mooncake's and RAGPulse's traces and poisson, gamma(0.1), on-off(5s,20s) and
// mmpp(0.5:60s,4:10s); other laws had no part in it, such as those of the tests of cascades, and
// diurnal(1h).
package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"pitot/internal/workload/arrival"
	"pitot/internal/workload/profile"
)

const replays = 5

func main() {
	fmt.Println("| log | requests | gaps apart, KS | CV | dispersion at 1, 10, 60 s | worst of them |")
	fmt.Println("|---|---:|---:|---:|---|---:|")
	for _, name := range os.Args[1:] {
		if err := measure(name); err != nil {
			fmt.Fprintln(os.Stderr, name+":", err)
			os.Exit(1)
		}
	}
}

func measure(name string) error {
	b, err := profile.NewBuilder(profile.Options{Requests: 5, Clients: 2})
	if err != nil {
		return err
	}
	var due []int64
	take := func(q *profile.Request) bool {
		due = append(due, q.At)
		return b.Add(q)
	}
	if err := read(name, take); err != nil {
		return err
	}
	p, err := b.BuildProfile()
	if err != nil {
		return err
	}
	due, _ = profile.SpreadTimes(due)
	p.Sessions = nil // the law is that of all requests
	law, err := p.ArrivalLaw()
	if err != nil {
		return err
	}
	want := arrival.ObserveTimes(due)
	apart, worst := 0.0, 0.0
	var cv float64
	var mean [3]float64
	for seed := range uint64(replays) {
		process, err := law.NewProcess(law.OwnRate(), seed, 0)
		if err != nil {
			return err
		}
		again := make([]int64, len(due))
		for i := range again {
			again[i] = process.Next()
		}
		apart = max(apart, profile.GapDistance(due, again))
		got := arrival.ObserveTimes(again)
		cv += got.CV / replays
		for i := range mean {
			mean[i] += got.Dispersion[i] / replays
			if r := math.Abs(got.Dispersion[i]/want.Dispersion[i] - 1); r > worst {
				worst = r
			}
		}
	}
	var parts []string
	for i := range mean {
		parts = append(parts, fmt.Sprintf("%s for %s", number(mean[i]), number(want.Dispersion[i])))
	}
	if _, err := os.Stat(name); err == nil {
		name = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	}
	fmt.Printf("| %s | %d | %.4f | %s for %s | %s | %.1f %% |\n", name, len(due), apart, number(cv), number(want.CV), strings.Join(parts, ", "), 100*worst)
	return nil
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }

// read hands on a log, or what a law makes.
func read(name string, take func(q *profile.Request) bool) error {
	if _, err := os.Stat(name); err == nil {
		_, err := profile.ReadLog(name, take)
		return err
	}
	parts := strings.Split(name, ":")
	if len(parts) < 3 {
		return os.ErrNotExist
	}
	n := len(parts)
	rate, err := strconv.ParseFloat(parts[n-2], 64)
	if err != nil {
		return err
	}
	count, err := strconv.Atoi(parts[n-1])
	if err != nil {
		return err
	}
	law, err := arrival.ParseLaw(strings.Join(parts[:n-2], ":"), arrival.Files{})
	if err != nil {
		return err
	}
	process, err := law.NewProcess(rate, 3, 0)
	if err != nil {
		return err
	}
	for range count {
		take(&profile.Request{At: process.Next(), End: -1, Input: -1, Output: -1, TTFT: -1})
	}
	return nil
}
