package result

import (
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"pitot/internal/results/metric"
	"pitot/internal/results/result/resulttest"
)

var update = flag.Bool("update", false, "write schema.json anew")

// jsonSchema is the contract of run.json as a JSON Schema, draft 2020-12.
func jsonSchema(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// node is one schema, as far as this contract uses JSON Schema.
type node struct {
	Ref        string           `json:"$ref"`
	Type       any              `json:"type"`
	Const      any              `json:"const"`
	Enum       []string         `json:"enum"`
	AnyOf      []*node          `json:"anyOf"`
	Items      *node            `json:"items"`
	Required   []string         `json:"required"`
	Properties map[string]*node `json:"properties"`
	Additional any              `json:"additionalProperties"`
	Defs       map[string]*node `json:"$defs"`
}

// walker holds Go types and schema against each other.
type walker struct {
	t    *testing.T
	root *node
	seen map[reflect.Type]bool
}

func (w *walker) resolve(n *node) *node {
	if n.Ref == "" {
		return n
	}
	d := w.root.Defs[strings.TrimPrefix(n.Ref, "#/$defs/")]
	if d == nil {
		w.t.Fatalf("%s leads nowhere", n.Ref)
	}
	return d
}

func (w *walker) check(at string, t reflect.Type, n *node) {
	if t.Kind() == reflect.Pointer {
		if n.AnyOf != nil {
			if len(n.AnyOf) != 2 || n.AnyOf[1].Type != "null" {
				w.t.Errorf("%s: want the value or null", at)
			}
			w.check(at, t.Elem(), n.AnyOf[0])
			return
		}
		pair, _ := n.Type.([]any)
		if len(pair) != 2 || pair[1] != "null" {
			w.t.Errorf("%s: a pointer may be null, the schema says %v", at, n.Type)
			return
		}
		w.check(at, t.Elem(), &node{Type: pair[0]})
		return
	}
	n = w.resolve(n)
	if t == reflect.TypeFor[json.RawMessage]() || t == reflect.TypeFor[Metrics]() { // see TestSchemaIsTheCatalogue
		return
	}
	want := map[reflect.Kind]string{
		reflect.String: "string", reflect.Bool: "boolean", reflect.Float64: "number",
		reflect.Int: "integer", reflect.Int64: "integer", reflect.Uint64: "integer",
		reflect.Slice: "array", reflect.Array: "array", reflect.Map: "object", reflect.Struct: "object",
	}[t.Kind()]
	if n.Type != want && n.Const == nil {
		w.t.Errorf("%s: Go type %v, schema type %v", at, t, n.Type)
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		w.check(at+"[]", t.Elem(), n.Items)
	case reflect.Map:
		data, _ := json.Marshal(n.Additional)
		var value node
		if err := json.Unmarshal(data, &value); err != nil {
			w.t.Fatalf("%s: %v", at, err)
		}
		w.check(at+"{}", t.Elem(), &value)
	case reflect.Struct:
		w.fields(at, t, n)
	}
}

func (w *walker) fields(at string, t reflect.Type, n *node) {
	if w.seen[t] {
		return
	}
	w.seen[t] = true
	if n.Additional != false {
		w.t.Errorf("%s: other properties are allowed", at)
	}
	var names, required []string
	for i := range t.NumField() {
		name, option, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == "" {
			w.t.Errorf("%s.%s has no name in JSON", at, t.Field(i).Name)
		}
		names = append(names, name)
		if option == "" {
			required = append(required, name)
		}
		if p := n.Properties[name]; p != nil {
			w.check(at+"."+name, t.Field(i).Type, p)
		}
	}
	var known []string
	for k := range n.Properties {
		known = append(known, k)
	}
	slices.Sort(names)
	slices.Sort(known)
	if d := cmp.Diff(names, known); d != "" {
		w.t.Errorf("%s: Go type (-) and schema (+) differ:\n%s", at, d)
	}
	slices.Sort(required)
	slices.Sort(n.Required)
	if d := cmp.Diff(required, n.Required); d != "" {
		w.t.Errorf("%s: what is always there (-) and what is required (+) differ:\n%s", at, d)
	}
}

// Every field of the Go types is in the schema with its type, and the other
// way round.
func TestSchemaIsTheTypes(t *testing.T) {
	var root node
	if err := json.Unmarshal([]byte(jsonSchema(t)), &root); err != nil {
		t.Fatal(err)
	}
	w := &walker{t, &root, map[reflect.Type]bool{}}
	w.check("run", reflect.TypeFor[Run](), &root)
	if root.Properties["schema"].Const != Schema {
		t.Errorf("the schema is for %v, the types are %s", root.Properties["schema"].Const, Schema)
	}
	verdicts := []string{string(Valid), string(ValidWithFlags), string(Invalid)}
	if got := root.Defs["verdict"].Enum; !slices.Equal(got, verdicts) {
		t.Errorf("verdicts %q, want %q", got, verdicts)
	}
}

// The metrics of schema.json are those of the catalogue.
func TestSchemaIsTheCatalogue(t *testing.T) {
	want := resulttest.SchemaOf(jsonSchema(t), metric.All())
	if *update {
		if err := os.WriteFile("schema.json", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(want, jsonSchema(t)); d != "" {
		t.Errorf("schema.json is not that of the catalogue (go test -update writes it):\n%s", d)
	}
}

// The schema is itself valid, takes a whole run and refuses broken ones.
func TestSchemaJudges(t *testing.T) {
	s := contract(t, jsonSchema(t))
	rate, mean := 2., 1.5
	whole := func() Run {
		return Run{
			Schema: Schema, Command: []string{"pitot"}, Started: "2026-11-20T23:48:00+01:00", Ended: "2026-11-20T22:50:00Z",
			Environment: Environment{Stamps: "kernel"},
			Target:      Target{Kind: "http", Server: map[string]string{"engine": "vllm"}},
			Workload:    json.RawMessage(`{"kind":"random","sampling":{"temperature":0}}`),
			Notes:       map[string]string{},
			Points: []Point{{
				Load:      Load{Loop: "open", Rate: &rate, Arrival: "poisson"},
				Requests:  Requests{Errors: map[string]int{"timeout": 1}, Finish: map[string]int{}, ErrorExamples: map[string]string{"timeout": "x"}},
				Metrics:   MetricsOf(map[metric.Name]*Summary{metric.TTFT: &Summary{N: 3, Mean: &mean, Few: []string{"p90"}, Over: map[string]float64{"p99": 3}}}),
				SLO:       &SLO{Met: "no", Limits: []Limit{{Met: "no"}}},
				Stability: "stable", Outcome: "ok", Checks: []Check{{Name: "send lag", Status: "pass"}}, Verdict: Valid,
			}},
			Verdict: Valid,
		}
	}
	judge := func(r Run, edit func(map[string]any)) error {
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
		if err != nil {
			t.Fatal(err)
		}
		if edit != nil {
			edit(v.(map[string]any))
		}
		return s.Validate(v)
	}
	if err := judge(whole(), nil); err != nil {
		t.Errorf("a whole run: %v", err)
	}
	point := func(m map[string]any) map[string]any { return m["points"].([]any)[0].(map[string]any) }
	for name, edit := range map[string]func(map[string]any){
		"another schema":      func(m map[string]any) { m["schema"] = "pitot.run/v9" },
		"a field too many":    func(m map[string]any) { m["extra"] = 1 },
		"a field too few":     func(m map[string]any) { delete(m, "seed") },
		"no such verdict":     func(m map[string]any) { m["verdict"] = "FINE" },
		"no date":             func(m map[string]any) { m["started"] = "yesterday" },
		"null points":         func(m map[string]any) { m["points"] = nil },
		"a share above 1":     func(m map[string]any) { point(m)["slo"].(map[string]any)["attained"] = 1.5 },
		"requests below zero": func(m map[string]any) { point(m)["requests"].(map[string]any)["due"] = -1 },
		"an unknown percentile": func(m map[string]any) {
			point(m)["metrics"].(map[string]any)["ttft_ms"].(map[string]any)["over"] = map[string]any{"p98": 1}
		},
	} {
		if judge(whole(), edit) == nil {
			t.Errorf("%s is let through", name)
		}
	}
}
