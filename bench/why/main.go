// Command why judges the diagnosis of pitot explain on servers whose truth is known by
// intervention: simulated ones that differ from the catalogue, with other people's load,
// networks, proxies, throttled clocks and slow clients around them. The same schedule is
// served again with each cause relieved alone: a rate a third higher, a limit twice as
// high, a cost of the host or the way of nothing. The causes of a metric are those that
// bring at least half of what the best brings, and a twentieth; else it has none.
//
// The diagnosis is given what a client records, the deployment as its owner states it, and
// what a page of metrics shows when it is read each second: all of it, all but the
// deployment, and the client's part alone. A claim is right if its cause is among the true ones.
// A cause is ruled out falsely if it brings more than a twentieth. The knob that is
// proposed is turned on the true server.
//
//	go run ./bench/why [-cases DIR] [-from 0] [-to 20] [-seed 1 | -seed commit] [-thorough] [-again]
//	go run ./bench/why [-from 0] -sockets 40
//
// What came of each case is kept in the directory, so that many can be gone through in
// pieces; -again makes the diagnoses of those that are there anew, without a server.
// Limits of the rules were chosen with seed 1 (200 cases); seed 2 shows how often they hold.
package main

import (
	"bytes"
	"encoding/gob"
	"flag"
	"fmt"
	"hash/fnv"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"pitot/internal/analysis/predict"
)

func main() {
	log.SetFlags(0)
	dir := flag.String("cases", filepath.Join(os.TempDir(), "pitot-why"), "where what came of each case is kept")
	from, to := flag.Int("from", 0, "the first case"), flag.Int("to", 20, "the one behind the last")
	seed := flag.String("seed", "1", "of the cases; commit: the hash of the commit")
	again := flag.Bool("again", false, "only the cases that are there")
	thorough := flag.Bool("thorough", false, "ask as many twins as pitot explain does, not as few as a report: five times as long")
	verbose := flag.Bool("v", false, "each claim that is wrong")
	overSockets := flag.Int("sockets", 0, "serve so many cases from -from on over real sockets instead: about a minute each")
	flag.Parse()
	number := seedOf(*seed)
	if *overSockets > 0 {
		sockets(number, *from, *overSockets)
		return
	}
	at := filepath.Join(*dir, fmt.Sprintf("%x", number))
	if err := os.MkdirAll(at, 0o755); err != nil {
		log.Fatal(err)
	}
	effort := predict.Brief
	if *thorough {
		effort = predict.Thorough
	}
	var results []*Result
	for i := *from; i < *to; i++ {
		file := filepath.Join(at, fmt.Sprintf("%04d.gob", i)) // JSON has no times that are not known
		x := new(Result)
		b, err := os.ReadFile(file)
		if err != nil || gob.NewDecoder(bytes.NewReader(b)).Decode(x) != nil || x.Version != ResultVersion {
			if *again {
				continue
			}
			x = newCase(number, i).result(effort)
			var to bytes.Buffer
			if err = gob.NewEncoder(&to).Encode(x); err == nil {
				err = os.WriteFile(file, to.Bytes(), 0o644)
			}
			if err != nil {
				log.Fatal(err)
			}
		}
		results = append(results, x)
	}
	report(results, *verbose)
}

// seedOf is a number, or made of the commit's hash.
func seedOf(text string) uint64 {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return n
	}
	if text == "commit" {
		out, err := exec.Command("git", "rev-parse", "HEAD").Output()
		if err != nil {
			log.Fatalf("the commit's hash: %v", err)
		}
		text = strings.TrimSpace(string(out))
	}
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64()
}
