// Command stat shows how the intervals and tests of package stat do where the
// truth is known: how often an interval holds it, how often a test cries wolf
// or stays silent. It prints one Markdown table after another.
//
//	go run ./bench/stat [-only percentile,find] [-reps 100] [-seed 1] [-keep DIR -for 7m]
//
// Without -only it takes about five minutes on one core, and leaves out intervals,
// intervals-sessions, levels, saturation, bounds (bounds-sessions: of conversations; bounds-slow:
// of arrivals that take turns), timed, drift, width (width-mild: where little varies; width-floors:
// where some violate without a load), clusters (of those that constants were chosen on:
// clusters-chosen), curve, truth, catalogue and find on the twin (find-light, find-bursty,
// find-32-slots, find-heavy, find-long-output), which take minutes each. A table is a file of its
// own with one function that gives it, and a row in tables.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"
	"time"
)

// table is one question, answered by simulation.
type table struct {
	name   string
	about  string // what is asked, and what the columns are
	header []string
	reps   int  // repetitions of each row unless -reps says otherwise
	slow   bool // only where -only names it
	rows   func(reps int, seed uint64) [][]string
}

func tables() []table {
	all := []table{independent(), percentile(), mean(), gate(), share(), intervals(), sessionIntervals(), sessionBounds(), sessionTruth(), levels(), saturated(), settling(), lockstep(), stability(), missed(), launches(), comparison(), find(), verification(), verificationAtCapacity(), floors(), bounds(), timedSearches(), drawnSearches(), drifts(), widths(), mildWidths(), flooredWidths(), slowBounds(), slowTruth(), clustered(), chosenClusters(), simBounds(), twinBounds(), crossings(), continued(), truth(), boundedTruth(), catalogued(), cataloguedQuickly()}
	return append(all, findTwins()...)
}

func main() {
	log.SetFlags(0)
	only := flag.String("only", "", "names of tables, separated by commas")
	reps := flag.Int("reps", 0, "repetitions of each row in place of each table's own number")
	seed := flag.Uint64("seed", 1, "of every draw")
	flag.StringVar(&keep.dir, "keep", "", "directory that keeps the pieces of long tables, so that the same command goes on with them; of another program they are not")
	limit := flag.Duration("for", 0, "begin no piece of a long table after this time")
	flag.Parse()
	if *limit > 0 {
		keep.until = time.Now().Add(*limit)
	}
	all := tables()
	var chosen, names []string
	for _, t := range all {
		names = append(names, t.name)
	}
	if *only != "" {
		chosen = strings.Split(*only, ",")
	}
	for _, name := range chosen {
		if !slices.Contains(names, name) {
			log.Fatalf("there is no table %q; there are %s", name, strings.Join(names, ", "))
		}
	}
	for _, t := range all {
		if len(chosen) > 0 && !slices.Contains(chosen, t.name) || len(chosen) == 0 && t.slow {
			continue
		}
		if *reps > 0 {
			t.reps = *reps
		}
		start := time.Now()
		rows := t.rows(t.reps, *seed)
		if keep.unfinished.Load() {
			log.Fatalf("%s is not finished after %.0f s: the same command goes on with what is in %s", t.name, time.Since(start).Seconds(), keep.dir)
		}
		fmt.Printf("## %s\n\n%s Seed %d, %d repetitions a row.\n\n%s\n", t.name, t.about, *seed, t.reps, markdown(t.header, rows))
		fmt.Fprintf(os.Stderr, "%s took %.0f s\n", t.name, time.Since(start).Seconds())
	}
}
