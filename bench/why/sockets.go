package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"pitot/bench/setup"
	"pitot/internal/analysis/explain"
	"pitot/internal/analysis/inspect"
	"pitot/internal/analysis/predict"
	"pitot/internal/sim/serve"
)

// sockets serves cases over real sockets, in real time, with their page of metrics, and
// has pitot run and pitot explain say what limits them: the same requests, due at the same
// times. It sets beside each what is said of the case's virtual run. Cases have nothing
// around the server, come at a rate and share no prefixes, which is what a file of lengths
// can ask for and one machine can serve.
func sockets(seed uint64, from, many int) {
	dir, remove := setup.Dir()
	defer remove()
	pitot := setup.Build(dir)
	same, among, all, cases := 0, 0, 0, 0
	for i := from; cases < many; i++ {
		c := newCase(seed, i)
		c.s.RoundTrip = 0
		plain := surroundings{Slower: 1}
		if c.s != plain || c.load.MostInFlight > 0 || c.load.Rate == 0 || c.load.Prefix > 0 {
			continue
		}
		cases++
		recording, seen, a := c.serve(c.truth, c.s)
		told := &Result{Seen: seen, Told: a.told(), Stated: c.stating()}
		twins := recording.WhatIf(c.stated, told.facts(symptoms[0], true), predict.Thorough)
		x := c.overSockets(pitot, filepath.Join(dir, fmt.Sprint(i)), seen)
		for _, s := range symptoms {
			value, ok := explain.SymptomValue(s, seen)
			at := slices.IndexFunc(x.Points[0].Symptoms, func(d explain.Diagnosis) bool { return d.Symptom == s })
			if !ok || at < 0 {
				continue
			}
			virtual := explain.Diagnose(&explain.Case{Symptom: s, Value: value, Facts: told.facts(s, true), Twin: twins.Of(s)})
			real := x.Points[0].Symptoms[at]
			all++
			verdict := "other"
			switch {
			case real.Primary.Cause == virtual.Primary.Cause:
				same++
				verdict = "same"
			case slices.ContainsFunc(virtual.Also, func(f explain.Finding) bool { return f.Cause == real.Primary.Cause }):
				among++
				verdict = "also"
			}
			fmt.Printf("%4d %-8s %-11s %-5s %8.1f ms %-22s virtual %8.1f ms %s\n", i, c.kind, s, verdict, real.Value, real.Primary.Cause, virtual.Value, virtual.Primary.Cause)
		}
	}
	fmt.Printf("%d cases, %d figures: %d the same cause, %d one that the virtual run names as well\n", cases, all, same, among)
}

// overSockets is what pitot explain says of the case, served in real time.
func (c *aCase) overSockets(pitot, dir string, seen []explain.Request) (x inspect.Explanation) {
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	check(os.MkdirAll(dir, 0o755))
	lines := bytes.NewBufferString(`{"schema": "pitot.requests/v1", "holds": "lengths"}` + "\n")
	for i := range seen {
		q := &seen[i]
		fmt.Fprintf(lines, `{"due_ns": %d, "input_tokens": %d, "output_tokens": %d}`+"\n", int64((q.Sent-seen[0].Sent)*1e9), q.Input, q.Output)
	}
	requests := filepath.Join(dir, "requests.jsonl")
	check(os.WriteFile(requests, lines.Bytes(), 0o644))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	srv := serve.New(serve.Config{Engine: c.truth.Engine(c.seed), Model: "m"})
	go srv.Serve(l) //nolint:errcheck // it ends with Shutdown
	defer srv.Shutdown(context.Background())
	out := filepath.Join(dir, "run")
	last := seen[len(seen)-1].Sent - seen[0].Sent
	run := exec.Command(pitot, "run", "http://"+l.Addr().String(), "--workload", requests, "--warmup", "0s", "--duration", fmt.Sprintf("%.3fs", last+0.001), "--quiet", "--out", out)
	if said, err := run.CombinedOutput(); err != nil && run.ProcessState.ExitCode() != 4 {
		log.Fatalf("%s: %v\n%s", strings.Join(run.Args, " "), err, said)
	}
	said, err := exec.Command(pitot, "explain", out, "--deployment", c.stated.SpecString(), "--format", "json").Output()
	check(err)
	check(json.Unmarshal(said, &x))
	return x
}
