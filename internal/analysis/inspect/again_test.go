package inspect

import (
	"encoding/json"
	"slices"
	"testing"

	"pitot/internal/results/result"
)

// What would tell is a command that can be run, and nothing that the run has already.
func TestAgain(t *testing.T) {
	open := func(rate float64) result.Point {
		return result.Point{Load: result.Load{Loop: "open", Rate: &rate}, Seconds: result.Seconds{Window: 20}}
	}
	closed := func(users int) result.Point {
		return result.Point{Load: result.Load{Loop: "closed", Concurrency: &users}, Seconds: result.Seconds{Window: 60}}
	}
	const random = `{"kind":"random","input":"200","output":"8"}`
	for _, c := range []struct {
		workload string
		points   []result.Point
		longer   string
		less     []string
	}{
		{random, []result.Point{open(215)}, "pitot run http://h:8000 --rate 215 --input 200 --output 8 --duration 60s",
			[]string{"half the load: pitot run http://h:8000 --rate 107.5 --input 200 --output 8 --duration 60s", "one request at a time: pitot run http://h:8000 --concurrency 1 --input 200 --output 8 --duration 60s"}},
		{random, []result.Point{open(215), open(100)}, "pitot run http://h:8000 --rate 215 --input 200 --output 8 --duration 60s",
			[]string{"one request at a time: pitot run http://h:8000 --concurrency 1 --input 200 --output 8 --duration 60s"}},
		{random, []result.Point{closed(8), closed(4), closed(1)}, "", nil},
		{`{"kind":"dataset"}`, []result.Point{open(2)}, "", []string{"half the load", "one request at a time"}},
	} {
		run := &result.Run{Command: []string{"pitot", "run", "http://h:8000", "--seed", "1"}, Target: result.Target{Spec: "http://h:8000"}, Workload: json.RawMessage(c.workload), Points: c.points}
		if got := longerCommand(run, 0); got != c.longer {
			t.Errorf("longer: %q, want %q", got, c.longer)
		}
		if got := lighterLoads(run, 0); !slices.Equal(got, c.less) {
			t.Errorf("less: %q, want %q", got, c.less)
		}
	}
}

// A model that was named is named again, and a target that a shell would not take as it is
// is quoted.
func TestAgainOfAModel(t *testing.T) {
	rate := 2.
	run := &result.Run{
		Command: []string{"pitot", "find", "x", "--model=a b", "--api", "openai-completions", "--key-env", "K", "--insecure", "--header", "X-Api-Key=[redacted]"}, Target: result.Target{Spec: "sim:m@h100?tp=2"},
		Workload: json.RawMessage(`{"kind":"random","input":"8","output":"9"}`), Points: []result.Point{{Load: result.Load{Loop: "open", Rate: &rate}}},
	}
	if got, want := longerCommand(run, 0), "pitot run 'sim:m@h100?tp=2' --model 'a b' --api openai-completions --key-env K --insecure --header X-Api-Key=… --rate 2 --input 8 --output 9 --duration 60s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	bursts := &run.Points[0].Load
	if bursts.Arrival = "on-off(5s,20s)"; longerCommand(run, 0) != "" {
		t.Error("other arrivals are measured as Poisson's")
	}
}
