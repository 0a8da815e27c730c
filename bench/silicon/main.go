// Command silicon holds the twin against public measurements of accelerators:
//
//	go run ./bench/silicon compare DIR   end-to-end measurements against the twin
//	go run ./bench/silicon rank DIR      does the twin order deployments as they were measured?
//	go run ./bench/silicon stages REPO   those of inference-sim/training
//	go run ./bench/silicon derive DIR    kernels.yaml of the catalogue, from measured kernels
//
// DIR is an unpacked wheel of aiconfigurator-core (PyPI, Apache-2.0), REPO a checkout
// of github.com/inference-sim/training, which has no licence. Nothing of them is
// kept here but what derive works out: constants of formulas.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// lockstep says that rows of engines in lock step are compared, in place of the others.
var lockstep bool

// pools says that rows of prefill and decode on servers of their own are.
var pools bool

// own says that rows of SGLang are compared with its own scheduler in the twin.
var own bool

func main() {
	all := flag.Bool("all", false, "compare: a line for each load and for each system too")
	chosen := flag.Bool("chosen", false, "compare: without the systems that are kept out, to look for causes")
	only := flag.String("only", "", "compare: systems whose names have this in them")
	flag.BoolVar(&lockstep, "lockstep", false, "compare: the rows of engines in lock step that divide experts among them, which no constant was chosen on, in place of the others")
	flag.BoolVar(&pools, "pools", false, "compare: the rows of prefill and decode on servers of their own that are all alike, in place of the others")
	flag.BoolVar(&own, "own", false, "compare, rank: rows of SGLang with SGLang's scheduler, in place of vLLM's")
	set := flag.String("set", "", "compare, stages: settings of every deployment, as row_overhead=20us&step_overhead=1ms")
	errors := flag.String("errors", "", "compare: write the errors to expect to this file")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: silicon [flags] compare|rank|stages|derive DIR")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	systems := filepath.Join(flag.Arg(1), "aiconfigurator_core", "systems")
	var err error
	switch flag.Arg(0) {
	case "compare":
		err = compare(systems, *all, *chosen, *only, *set, *errors)
	case "rank":
		err = rank(systems, *chosen, *only, *set)
	case "stages":
		err = stages(flag.Arg(1), *set)
	case "derive":
		err = derive(systems)
	default:
		flag.Usage()
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "silicon:", err)
		os.Exit(1)
	}
}
