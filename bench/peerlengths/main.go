// Command peerlengths says how near lengths that other tools drew come to those that Pitot
// draws: Kolmogorov and Smirnov's distance of two samples of the same size, and how probable
// one as large is where both have one distribution.
//
//	go run ./bench/peerlengths FILE INPUT OUTPUT [FILE INPUT OUTPUT…]
//
// FILE has the lengths of a prompt and of an answer on each line; INPUT and OUTPUT are the
// lengths that Pitot is asked for, as --input and --output. draw.py makes such files.
package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pitot/bench/ks"
	"pitot/internal/say"
	"pitot/internal/stats"
	"pitot/internal/workload"
)

func main() {
	log.SetFlags(0)
	args := os.Args[1:]
	if len(args) == 0 || len(args)%3 != 0 {
		log.Fatal("usage: go run ./bench/peerlengths FILE INPUT OUTPUT…")
	}
	fmt.Println("| drawn by | `--input` | means | KS | p | `--output` | means | KS | p |\n|---|---|---|---:|---:|---|---|---:|---:|")
	for seed := uint64(1); len(args) > 0; seed++ { // other draws for each file
		in, out, err := compare(seed, args[0], args[1], args[2])
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("| %s | %s | %s |\n", strings.TrimSuffix(filepath.Base(args[0]), ".txt"), in, out)
		args = args[3:]
	}
}

// compare gives the cells of a file's prompts and answers.
func compare(seed uint64, path, input, output string) (in, out string, err error) {
	inputs, outputs, err := read(path)
	if err != nil {
		return "", "", err
	}
	a, errA := workload.ParseLengths(input)
	b, errB := workload.ParseLengths(output)
	if errA != nil || errB != nil {
		return "", "", fmt.Errorf("%v %v", errA, errB)
	}
	w, err := workload.NewRandom(workload.RandomConfig{Input: a, Output: b, Seed: seed})
	if err != nil {
		return "", "", err
	}
	var ours [2][]int
	for i := range int64(len(inputs)) {
		r, err := w.At(i)
		if err != nil {
			return "", "", err
		}
		ours[0], ours[1] = append(ours[0], r.Input), append(ours[1], r.Output)
	}
	return cells(input, inputs, ours[0]), cells(output, outputs, ours[1]), nil
}

func cells(asked string, theirs, ours []int) string {
	mean := func(list []int) float64 {
		sum := 0
		for _, n := range list {
			sum += n
		}
		return float64(sum) / float64(len(list))
	}
	slices.Sort(theirs)
	slices.Sort(ours)
	d := stats.KSDistance(theirs, ours)
	p := fmt.Sprintf("%.2f", ks.P(d, len(theirs), len(ours)))
	if p == "0.00" {
		p = "<0.01"
	}
	return fmt.Sprintf("`%s` | %s, %s | %.3f | %s", asked, say.Decimal(mean(theirs), 1), say.Decimal(mean(ours), 1), d, p)
}

func read(path string) (inputs, outputs []int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var in, out int
		if _, err := fmt.Sscan(lines.Text(), &in, &out); err != nil {
			return nil, nil, fmt.Errorf("%s:%d: want two numbers: %w", path, len(inputs)+1, err)
		}
		inputs, outputs = append(inputs, in), append(outputs, out)
	}
	return inputs, outputs, lines.Err()
}
