// Command capacity holds `pitot find` against a real server, whose capacity is not known:
// several searches of one budget are to agree, and long checks are to say yes at the load at which
// a third of what may violate is expected to, and no at the one at which three times as many
// are.
//
//	go run ./bench/capacity -dir D [-searches 5] [-budget 20m] [-checks 15m] URL [flags of pitot find]
//
// For example, on a server that takes no other requests (two and a half hours):
//
//	go run ./bench/capacity -dir D http://127.0.0.1:8200 --slo 'p95 ttft<2s, p95 tpot<60ms' --input 200 --output 40
//
// The searches' estimates are tested for heterogeneity (Cochran's Q, Biometrics 10, 1954):
// that they scatter more than their intervals say has a chance of 1 % where these hold. The
// loads of the checks are read off a fit of all windows of all searches together. What is in
// the directory is not measured again: the same command goes on. On a machine whose speed
// wanders, the searches are to say so themselves: what they say is printed.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pitot/internal/capacity"
	"pitot/internal/cli"
	"pitot/internal/report/reasons"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/stats"
)

func main() {
	log.SetFlags(0)
	dir := flag.String("dir", "", "where the runs are kept")
	searches := flag.Int("searches", 5, "how many")
	budget := flag.Duration("budget", 20*time.Minute, "of each search")
	checks := flag.Duration("checks", 15*time.Minute, "budget of each of the two checks")
	flag.Parse()
	if *dir == "" || flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	var found []*result.Capacity
	for i := range *searches {
		run := measured(filepath.Join(*dir, fmt.Sprintf("search%d", i+1)), *budget, flag.Args(), "--seed", fmt.Sprint(i+1))
		c := run.Capacity
		fmt.Printf("search %d: %s, %d requests in %.1f min, %s%s\n", i+1, said(c), c.Requests, c.Seconds/60, run.Verdict, flags(run))
		found = append(found, c)
	}
	agree(found)
	for _, times := range []float64{1. / 3, 3} {
		load, why := expected(found, times)
		if why != "" {
			fmt.Printf("no check at %.2g times what may violate: %s\n", times, why)
			continue
		}
		name := map[bool]string{true: "below", false: "above"}[times < 1]
		run := measured(filepath.Join(*dir, name), *checks, flag.Args(), "--at", fmt.Sprintf("%.4g", load), "--seed", "99")
		v, says := run.Capacity.Verified, "undecided"
		switch {
		case v == nil:
			says = reasons.Text(run.Capacity.Why)
		case v.Passed:
			says = "yes"
		case v.Refuted:
			says = "no"
		}
		fmt.Printf("at %.4g, where %.2g times what may violate is expected: %s\n", load, times, says)
	}
}

// measured is a run of pitot find, made unless it is there.
func measured(dir string, budget time.Duration, args []string, more ...string) *result.Run {
	run, err := rundir.ReadResult(dir)
	if err != nil || run.Capacity == nil {
		all := append(append([]string{"find"}, args...), append(more, "--budget", budget.String(), "--out", dir, "--quiet")...)
		if rundir.StateOf(dir) >= rundir.Measured {
			all = append(all, "--resume")
		}
		if code := cli.Run(context.Background(), all, strings.NewReader(""), io.Discard, os.Stderr); code != cli.Done && code != cli.SLOMissed && code != cli.Invalid {
			log.Fatalf("pitot %s: exit code %d", strings.Join(all, " "), code)
		}
		run, err = rundir.ReadResult(dir)
	}
	if err != nil || run.Capacity == nil {
		log.Fatalf("%s: no capacity: %v", dir, err)
	}
	return run
}

// said is what a search says.
func said(c *result.Capacity) string {
	number := func(x *float64) string {
		if x == nil {
			return "none"
		}
		return fmt.Sprintf("%.4g", *x)
	}
	text := "no estimate"
	if c.Estimate != nil && c.CI95 != nil {
		text = fmt.Sprintf("%s (%.4g to %.4g)", number(c.Estimate), c.CI95[0], c.CI95[1])
	}
	if b := c.Bracket; b != nil {
		text += fmt.Sprintf(", at least %s, at most %s", number(b[0]), number(b[1]))
	}
	return text
}

// flags are the checks that did not pass where the search rests on it.
func flags(run *result.Run) string {
	var list []string
	for i := range run.Points {
		p := &run.Points[i]
		for k := range p.Checks {
			c := &p.Checks[k]
			if c.Status != result.Pass && !p.IsExcused(c, run.Capacity.RestsOn(i)) && !slices.Contains(list, c.Name) {
				list = append(list, c.Name)
			}
		}
	}
	if len(list) == 0 {
		return ""
	}
	return ": " + strings.Join(list, ", ")
}

// agree says whether the estimates scatter more than their intervals allow.
func agree(found []*result.Capacity) {
	var logs, weights []float64
	for _, c := range found {
		if c.Estimate == nil || c.CI95 == nil {
			continue
		}
		se := math.Log(c.CI95[1]/c.CI95[0]) / 2 / stats.NormalQuantile(0.975)
		logs, weights = append(logs, math.Log(*c.Estimate)), append(weights, 1/(se*se))
	}
	if len(logs) < 2 {
		fmt.Printf("%d of %d searches have an estimate: nothing can be said of how they agree\n", len(logs), len(found))
		return
	}
	mean, sum := 0., 0.
	for i, w := range weights {
		mean, sum = mean+w*logs[i], sum+w
	}
	mean /= sum
	q := 0.
	for i, w := range weights {
		q += w * (logs[i] - mean) * (logs[i] - mean)
	}
	df := float64(len(logs) - 1)
	most := stats.ChiSquaredQuantile(0.99, df)
	verdict := "they agree"
	if q > most {
		verdict = "they differ by more than their intervals say"
	}
	fmt.Printf("%d estimates, together %.4g: Q = %.2f on %.0f degrees of freedom, 1 %% is above %.2f: %s\n", len(logs), math.Exp(mean), q, df, most, verdict)
}

// expected is the load at which so many times what may violate the limit that is reached first
// is expected to, by all windows.
func expected(found []*result.Capacity, times float64) (load float64, why string) {
	least := math.Inf(1)
	for claim := range found[0].Limits {
		eps := found[0].Limits[claim].Allowed
		var shares []stats.Share
		for _, c := range found {
			steps, _ := capacity.EarlierOf(&result.Run{Capacity: c})
			for i := range steps {
				s := &steps[i].Seen
				if claim < len(s.Violations) && s.N > 0 && slices.Contains([]string{capacity.Centre, capacity.Main, capacity.Verifying}, steps[i].Stage) {
					shares = append(shares, stats.Share{Load: steps[i].Load, Violations: s.Violations[claim], N: s.N})
				}
			}
		}
		fit := stats.FitLogistic(shares, capacity.SlopePrior())
		if fit.Reason != "" || !(fit.B > 0) {
			continue
		}
		p := min(0.5, times*eps)
		least = min(least, fit.Centre*math.Exp((math.Log(p/(1-p))-fit.A)/fit.B))
	}
	if math.IsInf(least, 1) {
		return 0, "no fit of the windows of all searches"
	}
	return least, ""
}
