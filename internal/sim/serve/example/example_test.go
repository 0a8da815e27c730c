package example

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
)

// valid says what is wrong with a value by a schema, as another reader of JSON
// Schema has it.
func valid(schema, value string) error {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("s.json", doc); err != nil {
		return err
	}
	s, err := c.Compile("s.json")
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(value))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// schemas are what libraries make of types: references into $defs or
// definitions, optional fields, enums, tuples, and types that hold themselves.
var schemas = map[string]string{
	"nested": `{"$defs":{"Unit":{"enum":["celsius","kelvin"],"type":"string"},"Place":{"type":"object","properties":{"city":{"type":"string","minLength":20},"unit":{"$ref":"#/$defs/Unit"}},"required":["city","unit"],"additionalProperties":false}},
		"type":"object","properties":{"place":{"$ref":"#/$defs/Place"},"all":{"type":"array","items":{"$ref":"#/$defs/Place"},"minItems":2}},"required":["place","all"]}`,
	"definitions": `{"definitions":{"a/b":{"type":"integer"}},"type":"object","properties":{"x":{"$ref":"#/definitions/a~1b"}},"required":["x"]}`,
	"allOf":       `{"$defs":{"B":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}},"type":"object","properties":{"x":{"allOf":[{"$ref":"#/$defs/B"}],"description":"d"}},"required":["x"]}`,
	"list":        `{"$defs":{"N":{"type":"object","properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/N"},{"type":"null"}]}},"required":["v","next"]}},"$ref":"#/$defs/N"}`,
	"tree":        `{"$defs":{"N":{"type":"object","properties":{"v":{"type":"number"},"children":{"type":"array","items":{"$ref":"#/$defs/N"}},"parent":{"$ref":"#/$defs/N"}},"required":["v","children"]}},"$ref":"#/$defs/N"}`,
	"itself":      `{"type":"object","properties":{"v":{"const":"a"},"sub":{"$ref":"#"}},"required":["v"]}`,
	"optional":    `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null},"b":{"type":["integer","null"]}}}`,
	"numbers":     `{"type":"object","properties":{"a":{"type":"integer","exclusiveMinimum":3,"maximum":9},"b":{"type":"number","maximum":-2.5},"c":{"type":"integer","multipleOf":7,"minimum":1},"d":{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1},"e":{"type":"integer","exclusiveMaximum":0}},"required":["a","b","c","d","e"]}`,
	"formats":     `{"type":"object","properties":{"t":{"type":"string","format":"date-time"},"u":{"type":"string","format":"uuid"},"m":{"type":"string","format":"email"},"p":{"type":"string","pattern":"^[A-Z]{2}-\\d{3,}$"}},"required":["t","u","m","p"]}`,
	"tuple":       `{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"minItems":2,"maxItems":2}`,
	"characters":  `{"type":"object","properties":{"stadt":{"enum":["München, Größe: „XL“ 東京"]}},"required":["stadt"]}`,
	"plain":       `{"type":"string","maxLength":3}`,
}

// What types come to as schemas has examples.
func TestSchemas(t *testing.T) {
	for name, schema := range schemas {
		if err := valid(schema, OfSchema([]byte(schema))); err != nil {
			t.Errorf("%s: %s: %v", name, OfSchema([]byte(schema)), err)
		}
	}
}

func TestMatchingProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.StringMatching(`(\[a-f\]|[xyz.]|\\d|\(a\|b\))([*+?]|\{1,3\})?([q-t]|\(c\|\[0-9\]\{2\}\))*`).Draw(t, "pattern")
		text, err := OfPattern(p)
		if err != nil || !regexp.MustCompile(`^(?:`+p+`)$`).MatchString(text) {
			t.Fatalf("%s: %q, %v", p, text, err)
		}
	})
}

// Schemas put together at random, with references between them, have examples
// that they allow.
func TestExampleProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"A", "B", "C"}
		var of func(depth int) map[string]any
		of = func(depth int) map[string]any {
			kinds := []string{"string", "integer", "number", "boolean", "null", "enum"}
			if depth < 3 {
				kinds = append(kinds, "ref", "object", "object", "array", "anyOf")
			}
			switch kind := rapid.SampledFrom(kinds).Draw(t, "kind"); kind {
			case "enum":
				return map[string]any{"enum": []any{rapid.String().Draw(t, "enum"), 2}}
			case "integer", "number":
				return map[string]any{"type": kind, "minimum": rapid.IntRange(-5, 5).Draw(t, "minimum"), "maximum": rapid.IntRange(5, 9).Draw(t, "maximum")}
			case "string":
				return map[string]any{"type": kind, "minLength": rapid.IntRange(0, 40).Draw(t, "minLength"), "maxLength": 40}
			case "ref": // never needed, so that there is an end
				return map[string]any{"anyOf": []any{map[string]any{"$ref": "#/$defs/" + rapid.SampledFrom(names).Draw(t, "ref")}, map[string]any{"type": "null"}}}
			case "object":
				properties, required := map[string]any{}, []string{}
				for _, p := range []string{"p", "q r", "s"}[:rapid.IntRange(0, 3).Draw(t, "properties")] {
					properties[p] = of(depth + 1)
					if rapid.Bool().Draw(t, "required") {
						required = append(required, p)
					}
				}
				return map[string]any{"type": kind, "properties": properties, "required": required, "additionalProperties": false}
			case "array":
				return map[string]any{"type": kind, "items": of(depth + 1), "minItems": rapid.IntRange(0, 2).Draw(t, "minItems"), "maxItems": 3}
			case "anyOf":
				return map[string]any{"anyOf": []any{of(depth + 1), of(depth + 1)}}
			default:
				return map[string]any{"type": kind}
			}
		}
		schema, defs := of(0), map[string]any{}
		for _, name := range names {
			defs[name] = of(1)
		}
		schema["$defs"] = defs
		text := mustJSON(schema)
		if err := valid(text, OfSchema([]byte(text))); err != nil {
			t.Fatalf("%s for %s: %v", OfSchema([]byte(text)), text, err)
		}
	})
}

// A schema that no value can fill, and one that asks for very much, have an
// example of a bounded size.
func TestExampleIsBounded(t *testing.T) {
	var wide strings.Builder
	for i := range 12 {
		fmt.Fprintf(&wide, `%s"p%d":{"$ref":"#/$defs/L%%d"}`, []string{"", ","}[min(i, 1)], i)
	}
	doubling := `{"$ref":"#/$defs/L0","$defs":{`
	for i := range 12 {
		doubling += fmt.Sprintf(`"L%d":{"type":"object","properties":{%s}},`, i, strings.ReplaceAll(wide.String(), "%d", fmt.Sprint(i+1)))
	}
	doubling += `"L12":{"type":"integer"}}}`
	for name, schema := range map[string]string{
		"endless":   `{"$defs":{"N":{"type":"object","properties":{"l":{"$ref":"#/$defs/N"},"r":{"$ref":"#/$defs/N"}},"required":["l","r"]}},"$ref":"#/$defs/N"}`,
		"itself":    `{"$ref":"#"}`,
		"rings":     `{"allOf":[{"$ref":"#"},{"$ref":"#"}]}`,
		"nowhere":   `{"$ref":"#/$defs/none"}`,
		"elsewhere": `{"$ref":"https://example.com/schema"}`,
		"many":      `{"type":"array","minItems":1000000,"items":{"type":"array","minItems":1000000,"items":{"type":"string","minLength":1000000}}}`,
		"doubling":  doubling,
	} {
		if got := OfSchema([]byte(schema)); !json.Valid([]byte(got)) || len(got) > 1<<18 {
			t.Errorf("%s: %d bytes, %.200s", name, len(got), got)
		}
	}
}

func FuzzExample(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"b":{}}}}}}`))
	f.Add([]byte(`{"enum":[1]}`))
	f.Add([]byte(`{"type":"integer","minimum":1e3}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		if got := OfSchema(raw); !json.Valid([]byte(got)) {
			t.Errorf("%s for %s", got, raw)
		}
	})
}

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
