// Command hits holds what is expected of a prefix cache against what a simulated server
// serves: trees, shares, conversations, caches of several sizes, light and heavy
// loads. It prints the table of evidence/workloads.md. Nothing in the expectation is
// fitted to these cases.
//
//	go run ./bench/hits
package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"pitot/internal/config"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/session"
)

func main() {
	if err := table(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// asked is what is asked, and how hard.
func asked() (list []load) {
	usual := [][]string{{"--rate", "3"}, {"--rate", "20"}, {"--concurrency", "48"}}
	for _, a := range [][]string{
		{"--prefix", "1024", "--prefix-share", "0.5", "--input", "uniform(50,400)"},
		{"--prefix", "tree(10x256)", "--input", "256"},
		{"--prefix", "tree(64x2048 zipf(1.1))", "--input", "128"},
		{"--prefix", "tree(1x512, 8x1024 zipf(1.1), 64x256)", "--input", "lognormal(200,150)"},
		{"--prefix", "0.6*tree(10x100) + 0.3*tree(4x2000) + 0.1*none", "--input", "300"},
		{"--cache", "60%", "--input", "lognormal(800,600)"},
	} {
		list = append(list, load{a, usual})
	}
	conversations := [][]string{{"--rate", "1"}, {"--rate", "5"}, {"--concurrency", "24"}}
	list = append(list, load{
		[]string{"--turns", "uniform(2,6)", "--system", "800", "--input", "400", "--set", "turn-input=150", "--think", "1s", "--set", "sub-agents=share(20%), agents(uniform(1,3)), steps(uniform(2,5)), system(600)"},
		conversations,
	})
	return append(list, load{
		[]string{"--turns", "uniform(2,6)", "--system", "300", "--input", "uniform(100,400)", "--think", "exponential(4s)"},
		conversations,
	})
}

type load struct {
	asked []string
	hard  [][]string
}

func table() error {
	dir, err := os.MkdirTemp("", "hits")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Println("| asked | cache, tokens | served under three loads, % | expected, % | most apart, points |")
	fmt.Println("|---|---|---|---|---|")
	worst, n := 0., 0
	for _, a := range asked() {
		for _, t := range []string{"", "?num_gpu_blocks=4000&max_model_len=8192", "?num_gpu_blocks=1500&max_model_len=8192"} {
			var served, expected []string
			apart, tokens := 0., 0
			for _, hard := range a.hard {
				args := append([]string{"sim:llama-3.1-8b@h100" + t, "--output", "uniform(20,200)", "--duration", "40s", "--warmup", "5s", "--seed", "1", "--out", filepath.Join(dir, fmt.Sprint(n))}, a.asked...)
				e, err := measure(append(args, hard...))
				if err != nil {
					return err
				}
				tokens, n = e.Tokens, n+1
				apart = max(apart, 100*math.Abs(*e.Served-e.Expected))
				served, expected = append(served, fmt.Sprintf("%.1f", 100**e.Served)), append(expected, fmt.Sprintf("%.1f", 100*e.Expected))
			}
			worst = max(worst, apart)
			fmt.Printf("| `%s` | %s | %s | %s | %.2f |\n", strings.Join(a.asked, " "), say.Count(tokens), strings.Join(served, ", "), strings.Join(expected, ", "), apart)
		}
	}
	fmt.Printf("\n%d cases, at most %.2f points apart\n", n, worst)
	return nil
}

// measure gives what the cache was expected to have of a load, and had.
func measure(args []string) (*result.PrefixCache, error) {
	p, _, err := config.Decode(config.VerbRun, args, nil)
	if err != nil {
		return nil, err
	}
	r := session.Runner{}
	got, _, err := r.Run(context.Background(), &p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	e := got.Points[0].PrefixCache
	if e == nil || e.Served == nil {
		return nil, fmt.Errorf("%s: nothing is known of the cache", strings.Join(args, " "))
	}
	return e, nil
}
