package vllmapi

import (
	"encoding/json"
	"strings"

	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/example"
)

// constraint is the required form of an answer: one of response_format and structured_outputs.
type constraint struct {
	schema  json.RawMessage // of JSON
	object  bool            // any JSON object
	pattern *string
	choices []string
}

// anyObject stands for the JSON objects that a model makes up unasked.
var anyObject = json.RawMessage(`{"properties": {"answer": {"type": "string"}}}`)

// exampleAnswer is an answer that the constraint allows; pick says which of several.
func (c *constraint) exampleAnswer(pick uint64) (string, *dialect.Reply) {
	switch {
	case c.pattern != nil:
		text, err := example.OfPattern(*c.pattern)
		if err != nil {
			return "", rejectionReply("", "Grammar error: %v", err)
		}
		return text, nil
	case c.schema != nil:
		if kind := example.UnknownType(c.schema); kind != "" {
			return "", rejectionReply("", "Grammar error: Invalid type: %s", kind)
		}
		return example.OfSchema(c.schema), nil
	case c.object:
		return example.OfSchema(anyObject), nil
	case len(c.choices) == 0:
		return "", rejectionReply("", "Choice '[]' cannot be an empty list")
	}
	return c.choices[pick%uint64(len(c.choices))], nil
}

// parseConstraint gives what the request says its answer has to be like, nil for
// nothing. Grammars and structural tags are not modelled, and refused.
func (b *body) parseConstraint(chat bool) (*constraint, *dialect.Reply) {
	format, refused := b.responseFormat()
	if refused != nil || !b.hasField("structured_outputs") {
		return format, refused
	}
	return b.structuredOutputs(chat)
}

// responseFormat reads response_format. What is no form of it is held against
// all there are, as pydantic does with a union: the plain ones, and the
// structural tags of today and of before.
func (b *body) responseFormat() (*constraint, *dialect.Reply) {
	const field = "response_format"
	if !b.hasField(field) {
		return nil, nil
	}
	var f map[string]json.RawMessage
	if err := json.Unmarshal(b.m[field], &f); err != nil {
		for range 3 {
			b.notObject(field, b.m[field])
		}
		return nil, nil
	}
	kind := ""
	_ = json.Unmarshal(f["type"], &kind)
	if kind == "json_schema" && isAbsent(f["json_schema"]) {
		return nil, parameterReply(field, "", "When response_format type is 'json_schema', the 'json_schema' field must be provided.")
	}
	if kind == "structural_tag" {
		if isAbsent(f["format"]) && (isAbsent(f["structures"]) || isAbsent(f["triggers"])) {
			return nil, parameterReply(field, "", "Invalid response_format structural_tag specification.")
		}
		return nil, notModelled(field, "structural tags")
	}
	before := len(b.faults)
	b.noteLiteral(field+".type", f, "'text', 'json_object' or 'json_schema'", kind == "text" || kind == "json_object" || kind == "json_schema")
	var s struct {
		Name   *string         `json:"name"`
		Schema json.RawMessage `json:"schema"`
	}
	if kind == "json_schema" {
		if err := json.Unmarshal(f["json_schema"], &s); err != nil {
			b.notObject(field+".json_schema", f["json_schema"])
		} else if s.Name == nil {
			b.noteAbsent(field+".json_schema.name", f["json_schema"])
		}
	}
	if len(b.faults) > before {
		b.noteLiteral(field+".type", f, "'structural_tag'", false)
		if isAbsent(f["format"]) {
			b.noteAbsent(field+".format", b.m[field])
		}
		b.noteLiteral(field+".type", f, "'structural_tag'", false)
		for _, name := range []string{"structures", "triggers"} {
			if isAbsent(f[name]) {
				b.noteAbsent(field+"."+name, b.m[field])
			}
		}
		return nil, nil
	}
	switch {
	case kind == "json_object":
		return &constraint{object: true}, nil
	case kind == "json_schema" && isAbsent(s.Schema):
		return nil, rejectionReply("", "You must use one kind of structured outputs constraint but none are specified: %s", listConstraints(nil))
	case kind == "json_schema":
		return &constraint{schema: s.Schema}, nil
	}
	return nil, nil
}

// notModelled refuses what a real server takes and this one does not.
func notModelled(param, what string) *dialect.Reply {
	return rejectionReply(param, "%s are not modelled by this server (parameter=%s)", what, param)
}

// constraints are the fields of structured_outputs, as the server lists them.
var constraints = []string{
	"json", "regex", "choice", "grammar", "json_object", "disable_any_whitespace", "disable_additional_properties",
	"whitespace_pattern", "structural_tag", "_backend", "_backend_was_auto",
}

// listConstraints lists them with what of them is given, as Python would.
func listConstraints(given map[string]json.RawMessage) string {
	list := make([]string, len(constraints))
	for i, name := range constraints {
		value := "None"
		if strings.HasPrefix(name, "disable") || name == "_backend_was_auto" {
			value = "False"
		}
		if raw := given[name]; !isAbsent(raw) {
			value = pythonValue(raw)
		}
		list[i] = "'" + name + "': " + value
	}
	return "{" + strings.Join(list, ", ") + "}"
}

// structuredOutputs reads structured_outputs.
func (b *body) structuredOutputs(chat bool) (*constraint, *dialect.Reply) {
	const field = "structured_outputs"
	var f map[string]json.RawMessage
	if err := json.Unmarshal(b.m[field], &f); err != nil {
		b.notObject(field, b.m[field])
		return nil, nil
	}
	count := func(names ...string) (n int) {
		for _, name := range names {
			if !isAbsent(f[name]) {
				n++
			}
		}
		return n
	}
	if count("json", "regex", "choice") > 1 {
		const message = "You can only use one kind of constraints for structured outputs ('json', 'regex' or 'choice')."
		if chat {
			return nil, rejectionReply("", message)
		}
		return nil, parameterReply(field, "", message)
	}
	c := &constraint{}
	if raw := f["choice"]; !isAbsent(raw) && json.Unmarshal(raw, &c.choices) != nil {
		b.noteFault("list_type", field+".choice", raw)
		return nil, nil
	}
	if raw := f["regex"]; !isAbsent(raw) && json.Unmarshal(raw, &c.pattern) != nil {
		b.noteFault("string_type", field+".regex", raw)
		return nil, nil
	}
	switch count("json", "regex", "choice", "grammar", "json_object", "structural_tag") {
	case 0:
		return nil, rejectionReply("", "You must use one kind of structured outputs constraint but none are specified: %s", listConstraints(f))
	case 1:
	default:
		return nil, rejectionReply("", "You can only use one kind of structured outputs constraint but multiple are specified: %s", listConstraints(f))
	}
	switch {
	case string(f["json_object"]) == "false":
		return nil, rejectionReply("", "structured_outputs.json_object must be True if set; omit structured_outputs to disable structured outputs")
	case string(f["grammar"]) == `""`:
		return nil, rejectionReply("", "structured_outputs.grammar cannot be an empty string")
	case !isAbsent(f["grammar"]):
		return nil, notModelled(field, "grammars")
	case !isAbsent(f["structural_tag"]):
		return nil, notModelled(field, "structural tags")
	case !isAbsent(f["json_object"]):
		c.object = true
	case !isAbsent(f["json"]):
		c.schema = f["json"]
		var text string
		if json.Unmarshal(c.schema, &text) == nil { // a schema may be written in a string
			if c.schema = json.RawMessage(text); !json.Valid(c.schema) {
				return nil, rejectionReply("", "Invalid JSON grammar specification.")
			}
		}
	}
	return c, nil
}
