// Command pace measures how late Pitot sends: lag at 1,000 requests a second,
// next to a bare pacer (the same alarm, the same schedule, nothing sent) in the
// same run, and how far the arrivals are from their schedule.
//
//	go run ./bench/pace [-rate 1000] [-rounds 3] [-scrape URL]
//
// With -scrape also the lag while the page of metrics at URL is read each second, as a
// server under load has one, and what reading it takes of the processor.
//
// The server has one core, Pitot and the bare pacer the other. Needs Linux,
// two cores and taskset.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"time"

	"pitot/bench/setup"
	"pitot/internal/analysis/audit"
	"pitot/internal/clock"
	"pitot/internal/results/record"
	"pitot/internal/stats"
	"pitot/internal/workload/arrival"
)

func main() {
	log.SetFlags(0)
	rate := flag.Float64("rate", 1000, "requests per second")
	rounds := flag.Int("rounds", 3, "runs of each, in turn")
	span := flag.Duration("duration", 5*time.Second, "length of each")
	page := flag.String("scrape", "", "URL of a page of metrics to read meanwhile, in further runs")
	bare := flag.Bool("bare", false, "be the bare pacer and print lateness as JSON")
	flag.Parse()
	if *bare {
		pacer(*rate, *span)
		return
	}
	dir, remove := setup.Dir()
	defer remove()
	pitot := setup.Build(dir)
	self, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	var ratio, scraped []float64
	fmt.Printf("%-12s %10s %10s %10s\n", "lateness", "p50 µs", "p99 µs", "max µs")
	for range *rounds {
		var b [3]float64
		out, err := setup.Command(1, self, "-bare", "-rate", fmt.Sprint(*rate), "-duration", span.String()).Output()
		if err != nil || json.Unmarshal(out, &b) != nil {
			log.Fatalf("bare pacer: %v", err)
		}
		p, _ := sends(dir, pitot, *rate, *span, "--no-scrape")
		fmt.Printf("%-12s %10.1f %10.1f %10.1f\n", "bare pacer", b[0], b[1], b[2])
		fmt.Printf("%-12s %10.1f %10.1f %10.1f\n", "pitot", p[0], p[1], p[2])
		ratio = append(ratio, p[1]/b[1])
		if *page != "" {
			s, _ := sends(dir, pitot, *rate, *span, "--no-probe", "--scrape", "page="+*page)
			fmt.Printf("%-12s %10.1f %10.1f %10.1f\n", "and scrapes", s[0], s[1], s[2])
			scraped = append(scraped, s[1]/p[1])
		}
	}
	slices.Sort(ratio)
	fmt.Printf("p99 of Pitot's lag ÷ p99 of the bare pacer's, median of %d: %.2f\n", len(ratio), ratio[len(ratio)/2])
	if *page != "" {
		scrapes(dir, pitot, *page, scraped)
	}
}

// scrapes says what scraping did to the lag, and what a page takes of the processor.
func scrapes(dir, pitot, page string, ratio []float64) {
	slices.Sort(ratio)
	fmt.Printf("p99 of Pitot's lag with scraping ÷ without, median of %d: %.2f\n", len(ratio), ratio[len(ratio)/2])
	const span = 20 * time.Second
	var each []float64
	for range 5 {
		_, without := sends(dir, pitot, 1, span, "--no-scrape")
		_, with := sends(dir, pitot, 1, span, "--no-probe", "--scrape", "page="+page, "--set", "scrape-interval=200ms")
		reads := map[int64]bool{}
		for s, err := range record.Samples(filepath.Join(dir, "run")) {
			if err == nil && s.Source == "page" {
				reads[s.T] = true
			}
		}
		each = append(each, float64((with-without).Microseconds())/1e3/float64(max(len(reads), 1)))
	}
	slices.Sort(each)
	fmt.Printf("a page takes %.2f ms of a processor, median of %d (%.2f to %.2f): %.2f %% of a core where it is read each second\n",
		each[len(each)/2], len(each), each[0], each[len(each)-1], each[len(each)/2]/10)
}

// pacer waits for each time of a schedule and does nothing then.
func pacer(rate float64, span time.Duration) {
	due, err := arrival.NewPoisson(rate, 1)
	if err != nil {
		log.Fatal(err)
	}
	a := clock.NewAlarm()
	defer a.Close()
	origin := clock.Now() + int64(50*time.Millisecond)
	var late []float64
	for t := due.Next(); t < int64(span); t = due.Next() {
		a.Wait(origin+t, nil)
		late = append(late, float64(clock.Now()-origin-t)/1e3)
	}
	_ = json.NewEncoder(os.Stdout).Encode(summary(late))
}

// sends gives the lag of a run of Pitot, and what it took of the processor.
func sends(dir, pitot string, rate float64, span time.Duration, flags ...string) (lag [3]float64, took time.Duration) {
	srv, err := audit.StartServer(context.Background(), setup.OnCore(0, pitot))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _, _ = srv.Stop() }()
	run := filepath.Join(dir, "run")
	os.RemoveAll(run)
	cmd := setup.Command(1, append([]string{pitot, "run", srv.URL, "--api", "openai-completions", "--model", "reference",
		"--input", "64", "--output", "1", "--rate", fmt.Sprint(rate), "--duration", span.String(), "--warmup", "1s", "--quiet", "--out", run}, flags...)...)
	if output, err := cmd.CombinedOutput(); err != nil {
		log.Printf("%s%v", output, err)
	}
	var late []float64
	for f, err := range record.Frames(run) {
		if err != nil {
			log.Fatal(err)
		}
		for _, r := range f.Rows {
			if r.Sent >= 0 && r.Due >= int64(time.Second) {
				late = append(late, float64(r.Sent-r.Ready)/1e3)
			}
		}
	}
	return summary(late), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

func summary(x []float64) [3]float64 {
	if len(x) == 0 {
		log.Fatal("nothing was sent")
	}
	stats.SortFloat64(x)
	return [3]float64{stats.Percentile(x, 0.5), stats.Percentile(x, 0.99), x[len(x)-1]}
}
