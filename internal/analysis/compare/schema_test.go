package compare

import (
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"pitot/internal/results/result"
)

var update = flag.Bool("update", false, "write the schema of a comparison's JSON anew")

// compiled is a schema of this package, which refers to that of run.json.
func compiled(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	own, err := os.ReadFile(name + ".schema.json")
	if err != nil {
		t.Fatal(err)
	}
	run, err := os.ReadFile("../../results/result/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	for at, text := range map[string]string{"urn:pitot:run:v2": string(run), "urn:pitot:" + name: string(own)} {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource(at, doc); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := c.Compile("urn:pitot:" + name)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// comments are those of the package's types and fields, "Row" and "Row.Metric".
func comments(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, path := range files {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			g, ok := n.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				return true
			}
			spec := g.Specs[0].(*ast.TypeSpec)
			documented[spec.Name.Name] = strings.Join(strings.Fields(g.Doc.Text()), " ")
			s, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range s.Fields.List {
				for _, name := range field.Names {
					documented[spec.Name.Name+"."+name.Name] = strings.NewReplacer("[", "", "]", "").Replace(strings.Join(strings.Fields(field.Comment.Text()), " ")) // links of godoc
				}
			}
			return true
		})
	}
	return documented
}

// generator makes a schema of Go types, described by their comments.
type generator struct {
	documented map[string]string
	defs       map[string]any
}

// words are the values of fields that have no others.
var words = map[string][]string{
	"Row.Unit":         {"ms", "/s", "users", "share", "$", "tokens", "count"},
	"Row.ChangeIn":     {"ratio", "share"},
	"Row.Verdict":      {Slower, Faster, Worse, Better, Equivalent, Undistinguished, Unconfirmed, OtherInstrument},
	"Verdict.Word":     {Slower, Faster, Worse, Better, Equivalent, Undistinguished, OtherInstrument, NotCompared, Mixed},
	"Resolution.State": {Fired, RuledOut, Undecided, NotJudged},
}

func (g *generator) of(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		n := g.of(t.Elem())
		if kind, plain := n["type"].(string); plain && len(n) == 1 {
			return map[string]any{"type": []string{kind, "null"}}
		}
		return map[string]any{"anyOf": []any{n, map[string]any{"type": "null"}}}
	case reflect.Struct:
		if t == reflect.TypeFor[result.Load]() {
			return map[string]any{"$ref": "urn:pitot:run:v2#/$defs/load"}
		}
		if t == reflect.TypeFor[result.Reason]() {
			return map[string]any{"$ref": "urn:pitot:run:v2#/$defs/reason"}
		}
		g.object(t)
		return map[string]any{"$ref": "#/$defs/" + defName(t)}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": g.of(t.Elem())}
	case reflect.Array:
		return map[string]any{"type": "array", "items": g.of(t.Elem()), "minItems": t.Len(), "maxItems": t.Len()}
	}
	return map[string]any{"type": map[reflect.Kind]string{reflect.String: "string", reflect.Bool: "boolean", reflect.Int: "integer", reflect.Float64: "number"}[t.Kind()]}
}

func defName(t reflect.Type) string { return strings.ToLower(t.Name()[:1]) + t.Name()[1:] }

// object is the definition of a struct.
func (g *generator) object(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	out := map[string]any{"type": "object", "description": g.documented[t.Name()], "additionalProperties": false, "properties": properties}
	g.defs[defName(t)] = out
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		n := g.of(f.Type)
		if option == "" {
			required = append(required, name)
		} else if f.Type.Kind() == reflect.Pointer { // left out, never null
			n = g.of(f.Type.Elem())
		}
		at := t.Name() + "." + f.Name
		if words[at] != nil {
			n["enum"] = words[at]
		}
		if at == "Comparison.Schema" {
			n = map[string]any{"const": Schema}
		}
		if g.documented[at] != "" {
			n["description"] = g.documented[at]
		}
		properties[name] = n
	}
	slices.Sort(required)
	out["required"] = required
	return out
}

// The schema is the types: go test ./internal/analysis/compare -run Schema -update writes
// it.
func TestSchemaIsTheTypes(t *testing.T) {
	g := generator{comments(t), map[string]any{}}
	schema := g.object(reflect.TypeFor[Comparison]())
	delete(g.defs, "comparison")
	maps.Copy(schema, map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:pitot:comparison:v1", "title": Schema, "$defs": g.defs})
	var want strings.Builder
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(schema); err != nil {
		t.Fatal(err)
	}
	const path = "comparison.schema.json"
	if *update {
		if err := os.WriteFile(path, []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	has, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(has), want.String()); d != "" {
		t.Errorf("%s (go test -update writes it anew):\n%s", path, d)
	}
}

// The schema takes every kind of comparison and refuses broken ones.
func TestSchemaJudges(t *testing.T) {
	schema := compiled(t, "comparison")
	judge := func(c *Comparison, edit func(map[string]any)) error {
		data, err := json.Marshal(c)
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
		return schema.Validate(v)
	}
	whole := func() *Comparison {
		return mustCompare(t, Options{Clauses: clauses(t, "p99 ttft slower by 5%, errors worse by 1%")}, side("a", 8, steady...), side("b", 8, times(steady, 1.3)...))
	}
	capacities := func(name string, x float64) Side {
		r := runOf("1")
		r.Capacity = &result.Capacity{Over: "concurrency", SLO: "p99 ttft<500ms", Estimate: &x}
		return Side{Name: name, Runs: []Source{{name, r}}}
	}
	closed := func(name string) Side {
		return side(name, 8, noisy...).edit(0, func(p *result.Point) {
			p.Load, p.Goodput, p.SLO = result.Load{Loop: "closed", Concurrency: ptr(4), ThinkMS: ptr(2.)}, &result.Goodput{RequestsPerS: 3}, &result.SLO{Spec: "ttft<1s"}
		})
	}
	for name, c := range map[string]*Comparison{
		"a whole one": whole(), "single launches": mustCompare(t, Options{}, side("a", 8, 100), side("b", 8, 120)),
		"unstable":      mustCompare(t, Options{}, side("a", 8, 100), side("b", 8, 120).edit(0, func(p *result.Point) { p.Stability = "unstable" })),
		"capacities":    mustCompare(t, Options{}, capacities("a", 3), capacities("b", 4)),
		"closed loops":  mustCompare(t, Options{}, closed("a"), closed("b")),
		"another tool":  mustCompare(t, Options{}, side("a", 8, 100), other("b", "", atRate(8, 100))),
		"only others":   mustCompare(t, Options{}, other("a", "", atRate(8, 100)), other("b", "", atRate(8, 90))),
		"load not told": mustCompare(t, Options{}, other("a", ""), other("b", "", atRate(8, 90))),
	} {
		if err := judge(c, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	first := func(m map[string]any, list string) map[string]any { return m[list].([]any)[0].(map[string]any) }
	for name, edit := range map[string]func(map[string]any){
		"another schema":    func(m map[string]any) { m["schema"] = "pitot.comparison/v2" },
		"a field too many":  func(m map[string]any) { first(m, "pairs")["extra"] = 1 },
		"a field too few":   func(m map[string]any) { delete(first(m, "pairs"), "instruments") },
		"no such verdict":   func(m map[string]any) { first(m, "verdicts")["word"] = "fine" },
		"null pairs":        func(m map[string]any) { m["pairs"] = nil },
		"three launches":    func(m map[string]any) { first(m, "pairs")["launches"] = []any{1, 2, 3} },
		"no such outcome":   func(m map[string]any) { first(m, "fail_if")["state"] = "maybe" },
		"an unknown loop":   func(m map[string]any) { first(m, "pairs")["load"].(map[string]any)["loop"] = "ajar" },
		"a row of no words": func(m map[string]any) { first(first(m, "pairs"), "rows")["verdict"] = "" },
	} {
		if judge(whole(), edit) == nil {
			t.Errorf("%s is let through", name)
		}
	}
}
