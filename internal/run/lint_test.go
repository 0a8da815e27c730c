package run

import (
	"testing"

	"pitot/internal/plan"
	"pitot/internal/target"
	"pitot/internal/wire/api"
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
		p := plan.Default()
		p.Rate, p.Arrival = 1, c.arrival
		p.Input, _ = workload.ParseLengths(c.input)
		p.Ask.Output, _ = workload.ParseLengths(c.output)
		found := Lint(&p, &target.Target{Server: map[string]string{"max_model_len": c.limit}})
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
		for _, f := range Lint(p, &target.Target{Server: map[string]string{}, Kind: plan.KindServer, Options: api.Options{Vocab: token.Universal()}}) {
			got += f.Name
		}
		if got != c.want {
			t.Errorf("%v: %q, want %q", c.args, got, c.want)
		}
	}
}
