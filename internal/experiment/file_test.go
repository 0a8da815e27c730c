package experiment

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"pitot/internal/say"
)

var update = flag.Bool("update", false, "write the schema of plans")

const small = `contract: {limits: "p95 ttft<500ms, p95 tpot<30ms, errors<1%", capacity: 10/s}
target: sim:llama-3.1-8b@h100?launch_cv=0.03
rows:
  A:
  F: {requests: 30, workload: random, input: 512, output: 8, hypothesis: p95 ttft of F < 5s}
knobs: {max_num_seqs: [4]}
launches: 2
`

func TestPlan(t *testing.T) {
	p, err := Parse("small.yaml", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	if p.Name() != "small" || len(p.Configurations()) != 2 || p.Contract.Row != "F" || p.Row("A").Question == "" || p.ContractRow().Plan.Rate != 10 || p.ContractRow().Plan.Requests != 30 {
		t.Errorf("%+v", p)
	}
	if got := p.Spec(p.Configurations()[1]); got != "sim:llama-3.1-8b@h100?launch_cv=0.03&max_num_seqs=4" {
		t.Error(got)
	}
	p.Target += "&max_num_seqs=8"
	if got := p.Spec(p.Configurations()[1]); got != "sim:llama-3.1-8b@h100?launch_cv=0.03&max_num_seqs=4" {
		t.Errorf("the baseline's value stays: %s", got)
	}
	for _, kind := range Kinds() {
		text, err := Template(kind)
		if err == nil {
			p, err = Parse(kind+".yaml", text)
		}
		if err != nil || p.Contract.Kind != kind || p.Row("E-cold") == nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

const simTarget = "sim:llama-3.1-8b@h100?launch_cv=0.03"

// A target that is a server may say how it is started; a knob that its engine does not
// know is a mistake of the plan.
func TestServerTarget(t *testing.T) {
	const commands = `{url: "http://localhost:8000/v1", start: "vllm serve m {flags}", ready: "true", ready_within: 3m, describe: "cat x", stop: "kill x", tries: 5, twin: sim:llama-3.1-8b@h100}`
	p, err := Parse("small.yaml", []byte(strings.Replace(small, simTarget, commands, 1)))
	if err != nil {
		t.Fatal(err)
	}
	s := p.Server
	if p.Target != "http://localhost:8000/v1" || s.Engine != "vllm" || s.Commands.Within != 3*time.Minute || s.Tries != 5 || s.Twin != "llama-3.1-8b@h100" || len(s.Notes) > 0 || p.ByHand() {
		t.Errorf("%+v", s)
	}
	c := p.Configurations()[1]
	if p.Spec(c) != p.Target || p.Flags(c) != "--max-num-seqs 4" || p.describeSettings(c) != "http://localhost:8000/v1 --max-num-seqs 4" {
		t.Errorf("%s, %s", p.Spec(c), p.Flags(c))
	}
	one := p.partPlan(&Part{c, p.ContractRow(), 1}, "x")
	if !slices.ContainsFunc(one.Notes, func(n string) bool { return strings.HasPrefix(n, "start=") }) {
		t.Errorf("what is started otherwise is another system: %q", one.Notes)
	}
	p, err = Parse("small.yaml", []byte(strings.Replace(small, simTarget, "http://localhost:8000", 1)))
	if err != nil || !p.ByHand() || len(p.Server.Notes) != 1 || p.blockOrder(1)[0].Name != Baseline {
		t.Errorf("by hand: %v", err)
	}
}

// What the twin expects stands in a new plan as hypotheses and comments.
func TestTemplateExpects(t *testing.T) {
	s := templateStarts()[2]
	s.Target = "sim:llama-3.1-8b@l4"
	s.Expects = map[string][]string{"A": {"p50 ttft of A within 25% of 14.8ms"}, "B": {"p50 ttft of B within 25% of 53.6ms"}}
	s.Of = map[string]string{"max_num_seqs": "the twin expects of 32: what F carries -12 %"}
	text := s.writeTemplate()
	p, err := Parse("x.yaml", text)
	if err != nil || len(p.Row("A").Hypotheses) != 1 || len(p.Row("B").Hypotheses) != 2 || p.Target != s.Target {
		t.Errorf("%v\n%s", err, text)
	}
	if !strings.Contains(string(text), "  # the twin expects of 32: what F carries -12 %\n  max_num_seqs: [32, 128]\n") {
		t.Errorf("%s", text)
	}
}

// What is wrong with a plan is said with its line, and what to do.
func TestMistakes(t *testing.T) {
	for _, c := range []struct{ from, to, want, hint string }{
		{"capacity: 10/s", "capacty: 10/s", `small.yaml:1: unknown key "capacty" in contract`, "capacity"},
		{"capacity: 10/s", "capacity: 10", `no rate of requests`, "12/s"},
		{", capacity: 10/s", "", "rejects nothing", "capacity"},
		{`limits: "p95 ttft<500ms, p95 tpot<30ms, errors<1%", `, "", "has no limits", "p95"},
		{"p95 ttft<500ms", "p95 ttft<500", "small.yaml:1: limits:", "ms"},
		{"max_num_seqs: [4]", "max_num_seq: [4]", "max_num_seq", "max_num_seqs"},
		{"max_num_seqs: [4]", "max_num_seqs: [4, 4]", "twice", "once"},
		{"max_num_seqs: [4]", "launch_cv: [0.03]", "has already", "baseline"},
		{"requests: 30", "request: 60", `unknown key "request"`, "requests"},
		{"requests: 30", "requests: sixty", "row F", ""},
		{"requests: 30", "rate: 3", "is its capacity", "leave"},
		{"p95 ttft of F < 5s", "p95 ttft of G < 5s", "no row G", "rows are"},
		{"p95 ttft of F < 5s", "ttft of F < 5s", "needs a percentile or the mean", "p50 ttft"},
		{"p95 ttft of F < 5s", "p95 ttft of F < 5", "another unit", "ms"},
		{"p95 ttft of F < 5s", "p95 tfft of F < 5s", "no metric", "ttft"},
		{"launches: 2", "launches: 1", "number of launches", "3 is usual"},
		{"  A:\n", "  A:\n  A:\n", "", ""},
		{simTarget, "http://", "target", ""},
		{simTarget, "{url: http://localhost:8000, strat: x}", `small.yaml:2: unknown key "strat" in target`, "start"},
		{simTarget, "{start: vllm serve m}", "no url", "url:"},
		{simTarget, `{url: "http://localhost:8000", start: vllm serve m}`, "cannot reach the server", "{flags}"},
		{simTarget, "{url: sim:llama-3.1-8b@h100, start: x}", "is no server", "target: sim:"},
		{simTarget, "{url: http://localhost:8000, stop: x}", "stop is given, and start is not", "by hand"},
		{simTarget, "{url: http://localhost:8000, ready_within: 10}", "no length of time", "30m"},
		{simTarget, "{url: http://localhost:8000, engine: vlm}", "unknown engine", "vllm"},
		{simTarget, "{url: http://localhost:8000, twin: llama@h100}", "is no twin", "sim:"},
		{simTarget, "{url: http://localhost:8000, tries: 0}", "number of tries", ""},
		{"knobs: {max_num_seqs: [4]}\n", "", "no knobs", "max_num_seqs"},
		{small, "", "is empty", "new"},
		{small, "- a\n", "a plan has keys", "contract"},
		{small, "\t", "", ""},
	} {
		_, err := Parse("small.yaml", []byte(strings.Replace(small, c.from, c.to, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(say.HintOf(err), c.hint) {
			t.Errorf("%.40q: %v (%s)", c.to, err, say.HintOf(err))
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	text, _ := Template("rag")
	f.Add(text)
	f.Add([]byte(strings.Replace(small, simTarget, `{url: "http://localhost:8000", start: "vllm serve m {flags}", ready_within: 3m, tries: 5}`, 1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.Contains(data, []byte("@.")) || bytes.Contains(data, []byte("/")) && bytes.Contains(data, []byte("workload")) {
			t.Skip("names of files")
		}
		p, err := Parse("x.yaml", data)
		if err == nil && (p.ContractRow() == nil || len(p.Configurations()) < 2) {
			t.Errorf("%+v", p)
		}
	})
}

func FuzzHypothesis(f *testing.F) {
	for _, s := range []string{"p50 ttft of B > 3 x p50 ttft of A", "p50 tpot of C within 15% of 7.2ms", "errors of F < 1%", "capacity of F with a=1 > 12/s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := ParseHypothesis(text)
		if err != nil {
			return
		}
		if again, err := ParseHypothesis(h.Text); err != nil || again.Text != h.Text {
			t.Errorf("%q becomes %q: %v", text, h.Text, err)
		}
	})
}

// The schema is what is written beside this test, and takes the plans that are written.
func TestSchema(t *testing.T) {
	got, err := JSONSchema()
	if err != nil {
		t.Fatal(err)
	}
	const path = "testdata/plan.schema.json" // but for the settings of pitot run, which have their own
	own := withoutSettings(t, got)
	if *update {
		if err := os.WriteFile(path, own, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(own, want) {
		t.Errorf("%v; go test ./internal/experiment -update writes it anew", err)
	}
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(got))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("plan.json", schema); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("plan.json")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := Template("batch")
	for _, source := range []string{small, string(text)} {
		var v any
		if err := yaml.Unmarshal([]byte(source), &v); err != nil {
			t.Fatal(err)
		}
		data, _ := json.Marshal(v)
		v, _ = jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err := compiled.Validate(v); err != nil {
			t.Error(err)
		}
	}
	if err := compiled.Validate(map[string]any{"contrat": 1}); err == nil {
		t.Error("the schema takes what the reader refuses")
	}
}

// withoutSettings is a schema less the properties that are settings of pitot run.
func withoutSettings(t *testing.T, schema []byte) []byte {
	t.Helper()
	var v any
	if err := json.Unmarshal(schema, &v); err != nil {
		t.Fatal(err)
	}
	var strip func(v any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, name := range runSettings() {
				if _, isSchema := v[name].(map[string]any); isSchema {
					delete(v, name)
				}
			}
			for _, x := range v {
				strip(x)
			}
		case []any:
			for _, x := range v {
				strip(x)
			}
		}
	}
	strip(v)
	out, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(out, '\n')
}

// A warm prefix has its cold twin at the same load; more GPUs are counted and said.
func TestFilled(t *testing.T) {
	p, err := Parse("p.yaml", []byte(`
contract: {limits: "p95 ttft<500ms", capacity: 2/s}
target: {url: http://localhost:1, start: "vllm serve m -tp 2 {flags}"}
common: {gpus: 2, gpu-price: 3}
rows: {E: {concurrency: 4, requests: 9}, F: {requests: 20}}
knobs: {tensor_parallel_size: [4], max_num_seqs: [8]}
`))
	if err != nil {
		t.Fatal(err)
	}
	if cold := p.Row("E-cold"); cold == nil || cold.Plan.Concurrency != 4 || cold.Plan.Requests != 9 || cold.Plan.Workload != "matrix-e-cold" {
		t.Errorf("%+v", cold)
	}
	all := p.Configurations()
	if got := []string{p.GPUs(all[0]), p.GPUs(all[1]), p.GPUs(all[2])}; got[0] != "" || got[1] != "4 GPUs" || got[2] != "" {
		t.Errorf("%q", got)
	}
	if w := p.gpuWeights(); len(w) != 3 || w[1] != 2 || w[2] != 1 {
		t.Errorf("%v", w)
	}
	if one := p.partPlan(&Part{all[1], p.ContractRow(), 1}, "x"); one.GPUs != 4 {
		t.Errorf("%d GPUs", one.GPUs)
	}
}
