package experiment

import (
	"encoding/json"
	"maps"
	"sync"

	"pitot/internal/config"
)

// The schema of a plan, for editors, is made of the tables that read it.

func stringSchema(example string) map[string]any {
	s := map[string]any{"type": "string"}
	if example != "" {
		s["examples"] = []string{example}
	}
	return s
}

// objectSchema is that of a part.
func objectSchema(keys []key) map[string]any {
	properties := map[string]any{}
	for _, k := range keys {
		s := map[string]any{}
		for name, v := range k.schema {
			s[name] = v
		}
		s["description"] = k.about
		properties[k.name] = s
	}
	return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
}

// plainValue is the schema of what a setting takes: YAML has types of its own.
func plainValue() map[string]any {
	return map[string]any{"type": []string{"string", "number", "boolean"}}
}

func runProperties() map[string]any { return maps.Clone(settingSchemas()) }

// settingSchemas are those of the settings of pitot run, which are made once.
var settingSchemas = sync.OnceValue(func() map[string]any {
	properties := map[string]any{}
	for _, name := range runSettings() {
		for _, s := range config.Settings() {
			if s.Name == name && s.AppliesTo(config.VerbRun) {
				value := plainValue()
				if s.IsRepeatable() {
					value = map[string]any{"anyOf": []any{plainValue(), map[string]any{"type": "array", "items": plainValue()}}}
				}
				value["description"] = s.Help
				properties[name] = value
			}
		}
	}
	return properties
})

func runSchema() map[string]any {
	return map[string]any{"type": []string{"object", "null"}, "properties": runProperties(), "additionalProperties": false}
}

func rowsSchema() map[string]any {
	properties := runProperties()
	for _, k := range rowKeys() {
		properties[k.name] = k.schema
	}
	row := map[string]any{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
	var names []string
	for _, p := range presets() {
		names = append(names, p.name)
	}
	return map[string]any{"anyOf": []any{
		map[string]any{"type": "object", "patternProperties": map[string]any{word.String(): row}, "additionalProperties": false},
		map[string]any{"type": "array", "items": map[string]any{"enum": names}},
	}}
}

func knobsSchema() map[string]any {
	values := map[string]any{"anyOf": []any{plainValue(), map[string]any{"type": "array", "items": plainValue(), "minItems": 1}}}
	parts := map[string]any{"type": "object", "additionalProperties": false, "required": []string{"values"}, "properties": map[string]any{
		"values": values,
		"rows":   map[string]any{"description": "rows that it can move, besides the contract's; others are measured once, as controls that must not move", "anyOf": []any{stringSchema(""), map[string]any{"type": "array", "items": stringSchema("")}}},
	}}
	return map[string]any{"type": "object", "additionalProperties": map[string]any{"anyOf": []any{values, parts}}}
}

// JSONSchema is the schema of a plan.
func JSONSchema() ([]byte, error) {
	s := objectSchema(planKeys())
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "a plan of pitot experiment"
	s["required"] = []string{"contract", "target", "knobs"}
	data, err := json.MarshalIndent(s, "", "  ")
	return append(data, '\n'), err
}
