// Package resulttest helps tests of run.json and of its contract.
package resulttest

import (
	"encoding/json"
	"fmt"
	"strings"

	"pitot/internal/results/metric"
)

// SchemaOf returns the contract of run.json with the metrics of a catalogue in place of
// those that it has: schema.json is that of the whole catalogue.
func SchemaOf(schema string, metrics metric.Catalogue) string {
	const begin, end = "    \"metrics\": {\n", "    \"summary\": {\n"
	from, to := strings.Index(schema, begin), strings.Index(schema, end)
	return schema[:from] + metricsSchema(metrics.WithPercentiles()) + schema[to:]
}

// metricsSchema defines the object of a point's metrics.
func metricsSchema(metrics metric.Catalogue) string {
	type group struct {
		name  string
		lines []string
		keys  []string
	}
	groups := []*group{{}} // the first is the object itself
	for _, m := range metrics {
		g, key := groups[0], m.Key
		if name, rest, ok := strings.Cut(m.Key, "."); ok {
			key = rest
			if g = groups[len(groups)-1]; g.name != name {
				g = &group{name: name}
				groups = append(groups, g)
			}
		}
		g.keys = append(g.keys, quoteText(key))
		g.lines = append(g.lines, fmt.Sprintf(`%s: {"anyOf": [{"$ref": "#/$defs/summary"}, {"type": "null"}], "description": %s}`, quoteText(key), quoteText(m.Help)))
	}
	top := groups[0]
	for _, g := range groups[1:] {
		top.keys = append(top.keys, quoteText(g.name))
		top.lines = append(top.lines, fmt.Sprintf(`%s: {"$ref": "#/$defs/%s"}`, quoteText(g.name), g.name))
	}
	top.lines = append(top.lines, `"undefined": {"type": "object", "description": "metric: why there is none", "additionalProperties": {"$ref": "#/$defs/reason"}}`)
	var b strings.Builder
	for i, g := range groups {
		name, what := "metrics", "distributions over the cohort"
		if i > 0 {
			name, what = g.name, "latencies counted from when a request was sent"
		}
		fmt.Fprintf(&b, "    %s: {\n      \"type\": \"object\",\n      \"description\": %s,\n", quoteText(name), quoteText(what))
		fmt.Fprintf(&b, "      \"required\": [\n        %s\n      ],\n", strings.Join(g.keys, ",\n        "))
		fmt.Fprintf(&b, "      \"additionalProperties\": false,\n      \"properties\": {\n        %s\n      }\n    },\n", strings.Join(g.lines, ",\n        "))
	}
	return b.String()
}

// quoteText is a text in JSON, with its characters as they are.
func quoteText(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a text
	return strings.TrimSpace(b.String())
}
