package compare

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
)

// write puts files under a new directory, which the test then works in.
func write(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for path, text := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func runJSON(t *testing.T, launch string) string {
	t.Helper()
	data, err := json.Marshal(runOf(launch, pointAt(8, 100)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestReadSide(t *testing.T) {
	write(t, map[string]string{
		"before/1/run.json": runJSON(t, "1"), "before/2/run.json": runJSON(t, "2"), "before/notes.txt": "x", "before/plots/a.png": "x",
		"after/run.json": runJSON(t, "3"), "odd=name/run.json": runJSON(t, "1"),
	})
	for arg, want := range map[string]string{
		"before": "before: before/1 before/2", "after": "after: after", "./after/": "after: after", "new=after,before/2": "new: after before/2",
		"odd=name": "odd=name: odd=name", "before/1/run.json": "run.json: before/1/run.json", "both=before,after": "both: before/1 before/2 after",
	} {
		s, err := ReadSide(arg)
		got := s.Name + ":"
		for _, r := range s.Runs {
			got += " " + filepath.ToSlash(r.Path)
		}
		if err != nil || got != want {
			t.Errorf("%s: %s, %v", arg, got, err)
		}
	}
}

// A run counts once, however it is named.
func TestRunTwice(t *testing.T) {
	write(t, map[string]string{"a/run.json": runJSON(t, "1"), "b/run.json": runJSON(t, "2")})
	for _, arg := range []string{"x=a,a", "x=a,a/run.json", "x=a,b,./a/"} {
		if _, err := ReadSide(arg); err == nil || !strings.Contains(err.Error(), "twice") {
			t.Errorf("%s: %v", arg, err)
		}
	}
}

func TestUnreadableSides(t *testing.T) {
	write(t, map[string]string{
		"empty/x": "", "killed/journal.pitot": "x", "killed/config.yaml": "x", "begun/config.yaml": "x", "half/run.json": `{"schema": "pitot.run/v1", "points": [`,
		"future/run.json": `{"schema": "pitot.run/v9"}`, "wrong/requests.parquet": "", "wrong/run.json": `{"schema": "pitot.run/v1", "points": 3}`, "set/1/run.json": runJSON(t, ""), "set/2/journal.pitot": "x",
		"old.json": `{"schema": "pitot.baseline/v9"}`, "none.json": `{"schema": "pitot.baseline/v1", "runs": []}`, "bad.json": `{"schema": "pitot.baseline/v1", "runs": 3}`,
		"mixed.json": `{"schema": "pitot.baseline/v1", "runs": [{"schema": "pitot.run/v9"}]}`,
		"vllm.json":  `{"backend": "vllm", "mean_ttft_ms": 3}`, "text.txt": "hello",
	})
	for arg, want := range map[string][2]string{
		"nowhere":       {"there is no nowhere", "a side is"},
		"empty":         {"empty holds no run", "run.json"},
		"killed":        {"the run in killed was never finished", "pitot report killed finishes it"},
		"begun":         {"ended before anything was measured", "pitot run --config"},
		"half":          {"half/run.json is damaged", ""},
		"wrong":         {"wrong/run.json is damaged", "pitot report wrong"},
		"future":        {"future/run.json has schema pitot.run/v9; this pitot reads pitot.run/v1", "another version of pitot"},
		"set":           {"the run in set/2 was never finished", "pitot report set/2"},
		"old.json":      {"old.json has schema pitot.baseline/v9; this pitot reads pitot.baseline/v1", "--save-baseline"},
		"none.json":     {"none.json holds no run", "--save-baseline"},
		"bad.json":      {"bad.json is damaged", "--save-baseline"},
		"mixed.json":    {"a run in mixed.json has schema pitot.run/v9; this pitot reads pitot.run/v1", "another version of pitot"},
		"vllm.json":     {"vllm.json is no run, no baseline and no result of another tool: no result of a tool that is known", "results of vllm bench serve"},
		"text.txt":      {"text.txt is no run, no baseline and no result of another tool: not JSON", "results of vllm bench serve"},
		"=set/1":        {"no name before its =", "new="},
		"a=set/1,":      {"names an empty path", "new="},
		"a=set/1,set/1": {"side a names set/1 twice", "counts once"},
	} {
		_, err := ReadSide(arg)
		if err == nil || !strings.Contains(filepath.ToSlash(err.Error()), want[0]) || !strings.Contains(filepath.ToSlash(say.HintOf(err)), want[1]) {
			t.Errorf("%s: %v (%s)", arg, err, say.HintOf(err))
		}
	}
}

// A baseline is as good as the runs, says so by its schema, and is small.
func TestBaseline(t *testing.T) {
	a, b := side("a", 8, steady...), side("b", 8, times(steady, 1.3)...)
	for _, r := range a.Runs {
		p := &r.Run.Points[0]
		p.Checks = []result.Check{{Name: "send lag", Status: "pass"}}
		p.InFlight, p.Requests.Errors, p.Requests.Finish = []float64{1, 2}, map[string]int{"timeout": 100}, map[string]int{"length": 19_900}
		p.Requests.ErrorExamples = map[string]string{"timeout": "a long story"}
		p.Metrics.SetSummary(metric.Lag, spread(0.01))
		r.Run.Command = []string{"pitot", "run"}
	}
	base, err := NewBaseline([]Side{a})
	if err != nil {
		t.Fatal(err)
	}
	data, err := base.JSON()
	if err != nil {
		t.Fatal(err)
	}
	schema := compiled(t, "baseline")
	write(t, map[string]string{"base.json": string(data)})
	for _, s := range []string{"send lag", "a long story", "no_interval"} {
		if strings.Contains(string(data), s) {
			t.Errorf("%s is nothing to keep", s)
		}
	}
	if n := len(data) / len(a.Runs); n > 6000 {
		t.Errorf("%d bytes a run", n)
	}
	saved, err := ReadSide("base.json")
	if err != nil {
		t.Fatal(err)
	}
	saved.Name = "a"
	x, y := mustCompare(t, Options{}, a, b), mustCompare(t, Options{}, saved, b)
	hidden := cmpopts.IgnoreUnexported(Pair{}, Row{}, Left{})
	if d := cmp.Diff(x.Pairs, y.Pairs, hidden); d != "" {
		t.Error(d)
	}
	judge := func(text string) error {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(doc)
	}
	text := strings.ReplaceAll(string(data), `"ended":""`, `"ended":"2026-11-20T10:01:00Z"`)
	if err := judge(text); err != nil {
		t.Error(err)
	}
	if judge(strings.Replace(text, BaselineSchema, "pitot.baseline/v9", 1)) == nil || judge(`{"schema": "pitot.baseline/v1", "runs": []}`) == nil {
		t.Error("another schema, or no run, is let through")
	}
}

// Whatever a file holds, it is a run, a baseline or a mistake of the user's.
func FuzzReadSide(f *testing.F) {
	f.Add([]byte(`{"schema": "pitot.run/v1", "points": [{"load": {"rate": 3}}]}`))
	f.Add([]byte(`{"schema": "pitot.baseline/v1", "runs": [{"schema": "x", "workload": {}, "points": [{}]}]}`))
	f.Add([]byte(vllmFile + "\n" + vllmSecond))
	f.Add([]byte(sglangFile))
	f.Add([]byte(`{"benchmarks": [{"metrics": {"request_totals": {"successful": 3}}}, {"metrics": {}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "x.json")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := ReadSide(path)
		if err == nil {
			_, err = Compare([]Side{s, s}, Options{Within: 0.05})
		}
		if err != nil && say.HintOf(err) == "" && !strings.Contains(err.Error(), "has schema") {
			t.Fatalf("no hint: %v", err)
		}
	})
}
