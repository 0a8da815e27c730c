package mock

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The tokens of a call that carry no text of its arguments: what a model
// writes around it, which a server takes away.
const (
	callOpen  = 6 // before the name is known
	callClose = 2 // after the last argument
	callPiece = 4 // bytes of the arguments in one token
)

// toolCall is an answer that calls a function.
type toolCall struct {
	name  string
	args  string // JSON
	named bool   // the client named the function
}

// tokens is how many tokens the whole call has.
func (t *toolCall) tokens() int {
	return callOpen + 1 + (len(t.args)+callPiece-1)/callPiece + callClose
}

// argsIn is the part of the arguments that lies in the tokens [from, to).
func (t *toolCall) argsIn(from, to int) string {
	at := func(token int) int { return min(max(token-callOpen-1, 0)*callPiece, len(t.args)) }
	return t.args[at(from):at(to)]
}

// raw is the whole call as the model writes it.
func (t *toolCall) raw() string {
	return `<tool_call>` + "\n" + `{"name": "` + t.name + `", "arguments": ` + t.args + "}\n</tool_call>"
}

// tool is one entry of a request's tools.
type tool struct {
	Type     string `json:"type"`
	Function *struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// toolCall gives the call that tools and tool_choice ask for, nil for none:
// with "auto" the model answers in words.
func (b *body) toolCall() (*toolCall, *reply) {
	choice, chosen := b.text("tool_choice")
	if !b.has("tools") {
		if b.has("tool_choice") && choice != "none" && choice != "auto" {
			return nil, parameter("tool_choice", "", "When using `tool_choice`, `tools` must be set.")
		}
		return nil, nil
	}
	var tools []tool
	if err := json.Unmarshal(b.m["tools"], &tools); err != nil {
		b.add("list_type", "body.tools", "Input should be a valid list", b.m["tools"])
		return nil, nil
	}
	if len(tools) == 0 {
		return nil, parameter("tools", "", "`tools` must not be an empty array. Either provide at least one tool or omit the field entirely.")
	}
	for i, t := range tools {
		if t.Function == nil {
			b.add("missing", fmt.Sprintf("body.tools.%d.function", i), "Field required", json.RawMessage("{}"))
			return nil, nil
		}
	}
	switch {
	case !b.has("tool_choice"), choice == "auto", choice == "none":
		return nil, nil
	case choice == "required":
		f := tools[0].Function
		return &toolCall{name: f.Name, args: example(f.Parameters)}, nil
	case chosen:
		return nil, parameter("tool_choice", "", "Invalid value for `tool_choice`: "+choice+
			"! Only named tools, \"none\", \"auto\" or \"required\" are supported.")
	}
	var named tool
	_ = json.Unmarshal(b.m["tool_choice"], &named)
	if named.Function != nil {
		for _, t := range tools {
			if t.Function.Name == named.Function.Name {
				return &toolCall{name: t.Function.Name, args: example(t.Function.Parameters), named: true}, nil
			}
		}
	}
	return nil, parameter("tool_choice", "", "The tool specified in `tool_choice` does not match any of the specified `tools`")
}

// schema is the part of JSON Schema that examples are made from.
type schema struct {
	Type       any                        `json:"type"`
	Enum       []json.RawMessage          `json:"enum"`
	Const      json.RawMessage            `json:"const"`
	Default    json.RawMessage            `json:"default"`
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
	Items      json.RawMessage            `json:"items"`
	AnyOf      []json.RawMessage          `json:"anyOf"`
	OneOf      []json.RawMessage          `json:"oneOf"`
	MinItems   int                        `json:"minItems"`
	Minimum    *json.Number               `json:"minimum"`
	MinLength  int                        `json:"minLength"`
	MaxLength  *int                       `json:"maxLength"`
}

const (
	maxSchemaDepth = 8
	maxExample     = 64 // items and characters that a schema can ask for
)

// example gives a value that a JSON Schema allows, as far as it is understood:
// every property, in the order of their names.
func example(raw json.RawMessage) string {
	var b strings.Builder
	appendExample(&b, "value", raw, 0)
	return b.String()
}

func appendExample(b *strings.Builder, name string, raw json.RawMessage, depth int) {
	var s schema
	_ = json.Unmarshal(raw, &s) // what is not understood is an object
	kind, _ := s.Type.(string)
	if kinds, ok := s.Type.([]any); ok && len(kinds) > 0 {
		kind, _ = kinds[0].(string)
	}
	switch {
	case len(s.Const) > 0:
		b.Write(s.Const)
	case len(s.Enum) > 0:
		b.Write(s.Enum[0])
	case len(s.Default) > 0:
		b.Write(s.Default)
	case len(s.AnyOf) > 0 && depth < maxSchemaDepth:
		appendExample(b, name, s.AnyOf[0], depth+1)
	case len(s.OneOf) > 0 && depth < maxSchemaDepth:
		appendExample(b, name, s.OneOf[0], depth+1)
	case kind == "string":
		b.Write(marshal(words(name, s.MinLength, s.MaxLength)))
	case kind == "integer" || kind == "number":
		n := json.Number("1")
		if s.Minimum != nil {
			n = *s.Minimum
		}
		b.WriteString(n.String())
	case kind == "boolean":
		b.WriteString("true")
	case kind == "null":
		b.WriteString("null")
	case kind == "array":
		b.WriteByte('[')
		for i := range min(max(s.MinItems, 1), maxExample) {
			if i > 0 {
				b.WriteString(", ")
			}
			if len(s.Items) == 0 || depth >= maxSchemaDepth {
				b.WriteString(`"` + name + `"`)
				continue
			}
			appendExample(b, name, s.Items, depth+1)
		}
		b.WriteByte(']')
	default:
		names := make([]string, 0, len(s.Properties))
		for p := range s.Properties {
			if depth < maxSchemaDepth || slices.Contains(s.Required, p) && depth < 2*maxSchemaDepth {
				names = append(names, p)
			}
		}
		slices.Sort(names)
		b.WriteByte('{')
		for i, p := range names {
			if i > 0 {
				b.WriteString(", ")
			}
			b.Write(marshal(p))
			b.WriteString(": ")
			appendExample(b, p, s.Properties[p], depth+1)
		}
		b.WriteByte('}')
	}
}

// words is a text for a property, of a length that the schema allows.
func words(name string, least int, most *int) string {
	text := "some " + strings.ReplaceAll(name, "_", " ")
	for len(text) < min(least, maxExample) {
		text += pieces[len(text)%len(pieces)]
	}
	if most != nil && len(text) > *most {
		text = strings.ToValidUTF8(text[:max(*most, 0)], "")
	}
	return text
}
