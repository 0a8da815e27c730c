package config

import (
	"os"
	"path/filepath"
	"testing"
)

// The times of a file are taken where nobody asks for others: those of a trace unless users wait,
// those of prompts where no load is asked for.
func TestOwnTimes(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, content := range map[string]string{
		"prompts.jsonl":  "{\"timestamp\":0,\"text_input\":\"a\"}\n{\"timestamp\":500,\"text_input\":\"b\"}\n",
		"messages.jsonl": "{\"timestamp\":0,\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}\n{\"timestamp\":500,\"messages\":[{\"role\":\"user\",\"content\":\"b\"}]}\n",
		"prompts.csv":    "created_at;prompt\n2025-06-01 10:00:00;a\n2025-06-01 10:00:01;b\n",
		"plain.jsonl":    "{\"prompt\":\"a\"}\n",
		"trace.jsonl":    "{\"timestamp\":0,\"input_length\":5,\"output_length\":5}\n{\"timestamp\":500,\"input_length\":5,\"output_length\":5}\n",
		"a(b).jsonl":     "{\"timestamp\":0,\"text_input\":\"a\"}\n{\"timestamp\":500,\"text_input\":\"b\"}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		verb    Verb
		args    []string
		arrival string
		rate    float64
		inTime  bool
	}{
		{VerbRun, []string{"--workload", "prompts.jsonl"}, "trace(prompts.jsonl)", 2, true},
		{VerbRun, []string{"--workload", "messages.jsonl"}, "trace(messages.jsonl)", 2, true},
		{VerbRun, []string{"--workload", "prompts.csv"}, "trace(prompts.csv)", 1, true},
		{VerbRun, []string{"--workload", "prompts.jsonl", "--rate", "4"}, "poisson", 4, false},
		{VerbRun, []string{"--workload", "prompts.jsonl", "--concurrency", "4"}, "poisson", 0, false},
		{VerbRun, []string{"--workload", "prompts.jsonl", "--arrival", "trace(prompts.jsonl)"}, "trace(prompts.jsonl)", 2, true},
		{VerbRun, []string{"--workload", "prompts.jsonl", "--arrival", "trace(prompts.jsonl,speed=2)"}, "trace(prompts.jsonl,speed=2)", 4, true},
		{VerbRun, []string{"--workload", "prompts.jsonl", "--arrival", "trace(prompts.jsonl)", "--rate", "8"}, "trace(prompts.jsonl)", 8, true},
		{VerbRun, []string{"--workload", "prompts.jsonl", "--arrival", "trace(trace.jsonl)"}, "trace(trace.jsonl)", 2, false},
		{VerbRun, []string{"--workload", "trace.jsonl", "--arrival", "trace(prompts.jsonl)"}, "trace(prompts.jsonl)", 2, false},
		{VerbRun, []string{"--workload", "plain.jsonl"}, "poisson", 0, false},
		{VerbRun, []string{"--workload", "trace.jsonl"}, "trace(trace.jsonl)", 2, true},
		{VerbRun, []string{"--workload", "trace.jsonl", "--rate", "4"}, "trace(trace.jsonl)", 4, true},
		{VerbRun, []string{"--workload", "nothere.jsonl"}, "poisson", 0, false},
		{VerbSweep, []string{"--workload", "prompts.jsonl"}, "poisson", 0, false},
	} {
		p, _, err := Decode(c.verb, append([]string{"sim:fixed"}, c.args...), nil)
		if err != nil || p.Arrival != c.arrival || p.Rate != c.rate || p.InTime != c.inTime {
			t.Errorf("%s %v: %s at %v/s, in time %v, %v", c.verb, c.args, p.Arrival, p.Rate, p.InTime, err)
			continue
		}
		path := filepath.Join(dir, "config.yaml") // what is kept does the same again
		if err := os.WriteFile(path, p.YAML(c.verb), 0o600); err != nil {
			t.Fatal(err)
		}
		if again, _, err := Decode(c.verb, []string{"--config", path}, nil); err != nil || again.Arrival != p.Arrival || again.InTime != p.InTime || again.Rate != p.Rate {
			t.Errorf("%s %v, again: %s at %v/s, in time %v, %v", c.verb, c.args, again.Arrival, again.Rate, again.InTime, err)
		}
	}
	if _, _, err := Decode(VerbRun, []string{"sim:fixed", "--workload", "a(b).jsonl"}, nil); err == nil {
		t.Error("a name that --arrival cannot hold is taken")
	}
}
