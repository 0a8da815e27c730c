package session

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"pitot/internal/client/api"
	"pitot/internal/config"
	"pitot/internal/target"
	"pitot/internal/workload"
	"pitot/internal/workload/token"
)

// Generated lengths beyond the model's limit are told before a run, with their share; lengths
// within it are not. So are rounded times, and a window for which requests take too long.
func TestLintOfPlans(t *testing.T) {
	for _, c := range []struct {
		input, output, arrival string
		limit                  string
		want                   string
	}{
		{"1000", "200", "poisson", "1200", ""},
		{"1000", "200", "poisson", "1199", workload.LintLimit},
		{"1000", "200", "poisson", "", ""},
		{"uniform(1,1000)", "1", "poisson", "501", workload.LintLimit},
	} {
		p := config.Default()
		p.Rate, p.Arrival = 1, c.arrival
		p.Input, _ = workload.ParseLengths(c.input)
		p.Ask.Output, _ = workload.ParseLengths(c.output)
		found := Lint(t.Context(), &p, &target.Target{Server: map[string]string{"max_model_len": c.limit}})
		got := ""
		for _, f := range found {
			got += f.Name
		}
		if got != c.want {
			t.Errorf("%+v: %+v", c, found)
		}
		if c.input == "uniform(1,1000)" && found[0].Text[:4] != "50 %" {
			t.Errorf("half of them are beyond: %s", found[0].Text)
		}
	}
}

// A share of hits that nobody asked for is told, and a prefix of which no block is whole; what
// was asked for is not.
func TestLintOfTheCache(t *testing.T) {
	if testing.Short() {
		t.Skip("simulated requests are slow under the race detector")
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--prefix", "2000"}, ""},
		{[]string{"--prefix", "12"}, workload.LintRounding},
		{[]string{"--prefix", "tree(1x4, 8x9)"}, workload.LintRounding},
		{[]string{"--prefix", "tree(1x9, 8x9)"}, ""},
		{[]string{"--workload", "matrix-e"}, workload.LintCached},
		{[]string{"--workload", "matrix-e", "--cache", "warm"}, ""},
		{[]string{"--workload", "matrix-e-cold"}, ""},
		{[]string{"--workload", "chat"}, ""},
		{[]string{"--cache", "60%"}, ""},
		{[]string{"--cache", "95%", "--input", "20"}, workload.LintRounding},
	} {
		p := planned(t, append([]string{"http://localhost:1", "--rate", "10", "--seed", "1"}, c.args...)...)
		got := ""
		for _, f := range Lint(t.Context(), p, &target.Target{Server: map[string]string{}, Kind: config.KindServer, Options: api.Options{Vocab: token.Universal()}}) {
			got += f.Name
		}
		if got != c.want {
			t.Errorf("%v: %q, want %q", c.args, got, c.want)
		}
	}
}

// countedSource counts how many of its prompts are read.
type countedSource struct {
	bytes int
	reads []int64
	fails int64 // the item that cannot be read, -1 for none
	stop  func(item int64)
}

func (s *countedSource) At(item int64) (workload.Request, error) {
	s.reads = append(s.reads, item)
	if s.stop != nil {
		s.stop(item)
	}
	if item == s.fails {
		return workload.Request{}, errors.New("the file is gone")
	}
	text := strings.Repeat(strconv.FormatInt(item, 10)+" ", s.bytes)[:s.bytes]
	return workload.Request{ID: item, Input: workload.Unknown, Output: 4, Messages: []workload.Message{{Role: "user", Segments: []workload.Segment{{Text: text}}}}}, nil
}

// What is expected of a cache is found out of as many requests as are sent, each of which is read
// once; of long prompts of the first of them; and no more are read when the user stops.
func TestForeseenReads(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, c := range []struct {
		name  string
		src   countedSource
		n     int
		reads int
		list  int // requests, -1 for none at all
		all   bool
	}{
		{"two requests", countedSource{bytes: 100, fails: -1}, 2, 2, 2, true},
		{"a thousand", countedSource{bytes: 100, fails: -1}, 1000, 1000, 1000, true},
		{"long prompts", countedSource{bytes: 8 << 20, fails: -1}, 1000, 3, 3, false},
		{"one prompt beyond all bounds", countedSource{bytes: 20 << 20, fails: -1}, 1000, 1, 1, false},
		{"a file that is gone", countedSource{bytes: 100, fails: 5}, 1000, 6, -1, false},
		{"stopped", countedSource{bytes: 100, fails: -1, stop: func(item int64) {
			if item == 7 {
				cancel()
			}
		}}, 1000, 8, -1, false},
	} {
		list, all := foreseeRequests(ctx, &c.src, laying{perWord: 1}, make([]int64, c.n), time.Second)
		if len(c.src.reads) != c.reads || all != c.all || c.list < 0 != (list == nil) || list != nil && len(list) != c.list {
			t.Errorf("%s: %d reads, %d requests, all %v", c.name, len(c.src.reads), len(list), all)
		}
	}
}

func TestLinted(t *testing.T) {
	for _, c := range []struct {
		load config.Load
		want int64
	}{
		{config.Load{Concurrency: 1, Requests: 2, Exactly: true}, 2},
		{config.Load{Concurrency: 1, Requests: 5000}, 1000},
		{config.Load{Rate: 2, Duration: 10 * time.Second}, 20},
		{config.Load{Rate: 2, Requests: 3}, 3},
		{config.Load{Rate: .01, Duration: 10 * time.Second}, 1},
		{config.Load{Rate: 1000, Duration: time.Hour}, 1000},
		{config.Load{Concurrency: 8, Duration: time.Hour}, 1000},
	} {
		if got := lintCount(&c.load); got != c.want {
			t.Errorf("%+v: %d, want %d", c.load, got, c.want)
		}
	}
}
