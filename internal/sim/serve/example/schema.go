// Package example makes values that a constraint allows: JSON that a JSON Schema
// describes, text that a regular expression matches. The values are short,
// always the same, and bounded whatever is asked for.
package example

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// schema is the part of JSON Schema that examples are made from.
type schema struct {
	Ref        string                     `json:"$ref"`
	Type       any                        `json:"type"`
	Enum       []json.RawMessage          `json:"enum"`
	Const      json.RawMessage            `json:"const"`
	Default    json.RawMessage            `json:"default"`
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
	Items      json.RawMessage            `json:"items"`
	Prefix     []json.RawMessage          `json:"prefixItems"`
	AllOf      []json.RawMessage          `json:"allOf"`
	AnyOf      []json.RawMessage          `json:"anyOf"`
	OneOf      []json.RawMessage          `json:"oneOf"`
	MinItems   int                        `json:"minItems"`
	MaxItems   *int                       `json:"maxItems"`
	Minimum    *float64                   `json:"minimum"`
	Maximum    *float64                   `json:"maximum"`
	Above      *float64                   `json:"exclusiveMinimum"`
	Below      *float64                   `json:"exclusiveMaximum"`
	MultipleOf float64                    `json:"multipleOf"`
	MinLength  int                        `json:"minLength"`
	MaxLength  *int                       `json:"maxLength"`
	Pattern    string                     `json:"pattern"`
	Format     string                     `json:"format"`
}

const (
	maxSchemaDepth = 16
	maxItems       = 64      // that a schema can ask for
	maxLength      = 1 << 12 // characters, the same
	maxExample     = 1 << 13 // bytes from which on only what must be there is
)

// formats has an example of each format of strings that is known.
var formats = map[string]string{
	"date-time": "2026-01-01T00:00:00Z", "date": "2026-01-01", "time": "00:00:00Z", "duration": "PT1S",
	"uuid": "00000000-0000-4000-8000-000000000000", "email": "someone@example.com", "uri": "https://example.com/",
	"hostname": "example.com", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1",
}

// OfSchema gives a value that a JSON Schema allows, as far as it is understood:
// every property, in the order of their names. A property that would lead back
// into a schema it is part of is left out if it may be.
func OfSchema(raw json.RawMessage) string {
	e := exampler{root: raw}
	e.writeValue("value", raw, 0)
	return e.String()
}

// UnknownType is the type that a schema asks for, if there is none of that name.
func UnknownType(raw json.RawMessage) string {
	var s schema
	_ = json.Unmarshal(raw, &s)
	switch kind, _ := s.Type.(string); kind {
	case "", "object", "array", "string", "integer", "number", "boolean", "null":
		return ""
	default:
		return kind
	}
}

// exampler writes one example.
type exampler struct {
	strings.Builder
	root json.RawMessage
	open []string // the references that are being followed
}

// find gives what a reference stands for: a JSON pointer into the root (RFC
// 6901), empty for what is not there.
func (e *exampler) find(ref string) (at json.RawMessage) {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	at = e.root
	for _, step := range strings.Split(path, "/")[1:] {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		var object map[string]json.RawMessage
		var list []json.RawMessage
		if json.Unmarshal(at, &object) == nil {
			at = object[step]
		} else if i, err := strconv.Atoi(step); err == nil && json.Unmarshal(at, &list) == nil && 0 <= i && i < len(list) {
			at = list[i]
		} else {
			return nil
		}
	}
	return at
}

// read gives a schema with what it refers to and what it is made of put
// together, and how many references were opened for it.
func (e *exampler) read(raw json.RawMessage) (s schema, opened int) {
	_ = json.Unmarshal(raw, &s) // what is not understood is an object
	more := s.AllOf
	if s.Ref != "" && len(e.open) < maxSchemaDepth {
		more = append([]json.RawMessage{e.find(s.Ref)}, more...)
		e.open = append(e.open, s.Ref)
		opened++
	}
	if len(e.open) >= maxSchemaDepth {
		return s, opened
	}
	for _, part := range more {
		if len(part) == 0 {
			continue
		}
		p, n := e.read(part)
		opened += n
		s.merge(p)
	}
	return s, opened
}

// merge takes over what another schema says too.
func (s *schema) merge(p schema) {
	if s.Properties != nil {
		maps.Copy(s.Properties, p.Properties)
	}
	s.Required = append(s.Required, p.Required...)
	s.MinItems, s.MinLength = max(s.MinItems, p.MinItems), max(s.MinLength, p.MinLength)
	mine, other := reflect.ValueOf(s).Elem(), reflect.ValueOf(p)
	for i := range mine.NumField() {
		if f := mine.Field(i); f.IsZero() {
			f.Set(other.Field(i))
		}
	}
}

// leadsBack says whether a schema refers to one that is being written.
func (e *exampler) leadsBack(raw json.RawMessage) bool {
	var s schema
	_ = json.Unmarshal(raw, &s)
	back := slices.Contains(e.open, s.Ref) || slices.ContainsFunc(s.AllOf, e.leadsBack)
	some := append(slices.Clone(s.AnyOf), s.OneOf...)
	return back || len(some) > 0 && !slices.ContainsFunc(some, func(one json.RawMessage) bool { return !e.leadsBack(one) })
}

// isFull says that only what must be there is still written.
func (e *exampler) isFull(depth int) bool { return depth >= maxSchemaDepth || e.Len() > maxExample }

func (e *exampler) writeValue(name string, raw json.RawMessage, depth int) {
	s, opened := e.read(raw)
	defer func() { e.open = e.open[:len(e.open)-opened] }()
	kind, _ := s.Type.(string)
	if kinds, ok := s.Type.([]any); ok && len(kinds) > 0 {
		kind, _ = kinds[0].(string)
	}
	some := append(s.AnyOf, s.OneOf...)
	switch {
	case depth > 2*maxSchemaDepth || e.Len() > 2*maxExample: // it has no end
		e.WriteString("null")
	case len(s.Const) > 0:
		e.Write(s.Const)
	case len(s.Enum) > 0:
		e.Write(s.Enum[0])
	case len(s.Default) > 0:
		e.Write(s.Default)
	case len(some) > 0 && len(s.Properties) == 0:
		one := some[0]
		if i := slices.IndexFunc(some, func(one json.RawMessage) bool { return !e.leadsBack(one) }); i >= 0 {
			one = some[i]
		}
		e.writeValue(name, one, depth+1)
	case kind == "string" || kind == "" && (s.Pattern != "" || s.Format != ""):
		e.Write(quote(s.sampleText(name)))
	case kind == "integer" || kind == "number":
		e.WriteString(s.sampleNumber(kind == "integer"))
	case kind == "boolean":
		e.WriteString("true")
	case kind == "null":
		e.WriteString("null")
	case kind == "array" || kind == "" && (len(s.Items) > 0 || len(s.Prefix) > 0):
		e.writeArray(name, &s, depth)
	default:
		e.writeObject(&s, depth)
	}
}

func (e *exampler) writeArray(name string, s *schema, depth int) {
	n := max(s.MinItems, 1, len(s.Prefix))
	if s.MinItems == 0 && len(s.Prefix) == 0 && (e.isFull(depth) || e.leadsBack(s.Items)) {
		n = 0
	}
	if s.MaxItems != nil {
		n = min(n, *s.MaxItems)
	}
	e.WriteByte('[')
	for i := range min(n, maxItems) {
		if i > 0 {
			e.WriteString(", ")
		}
		switch {
		case i < len(s.Prefix):
			e.writeValue(name, s.Prefix[i], depth+1)
		case len(s.Items) == 0 || bytes.Equal(s.Items, []byte("true")):
			e.Write(quote(name))
		default:
			e.writeValue(name, s.Items, depth+1)
		}
	}
	e.WriteByte(']')
}

func (e *exampler) writeObject(s *schema, depth int) {
	var names []string
	for _, p := range slices.Sorted(maps.Keys(s.Properties)) {
		if slices.Contains(s.Required, p) || !e.isFull(depth) && !e.leadsBack(s.Properties[p]) {
			names = append(names, p)
		}
	}
	for _, p := range slices.Sorted(slices.Values(s.Required)) { // without a schema of their own
		if !slices.Contains(names, p) {
			names = append(names, p)
		}
	}
	e.WriteByte('{')
	for i, p := range names {
		if i > 0 {
			e.WriteString(", ")
		}
		e.Write(quote(p))
		e.WriteString(": ")
		e.writeValue(p, s.Properties[p], depth+1)
	}
	e.WriteByte('}')
}

// quote is a text as JSON has it, with < and > as they are.
func quote(text string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a text always encodes
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// sampleText is a text for a property that its schema allows.
func (s *schema) sampleText(name string) string {
	if s.Pattern != "" {
		if text, err := OfPattern(s.Pattern); err == nil {
			return text
		}
	}
	if text, known := formats[s.Format]; known {
		return text
	}
	text := "some " + strings.ReplaceAll(name, "_", " ")
	least := min(s.MinLength, maxLength)
	for n := utf8.RuneCountInString(text); n < least; n = len(text) {
		text += " and more"
	}
	if s.MaxLength != nil {
		if runes := []rune(text); len(runes) > *s.MaxLength {
			text = string(runes[:max(*s.MaxLength, 0)])
		}
	}
	return text
}

// sampleNumber is one that a schema allows, 1 if it may be.
func (s *schema) sampleNumber(whole bool) string {
	step := s.MultipleOf
	if whole && step == 0 {
		step = 1
	}
	n := 0.0
	raiseTo := func(least float64) {
		n = least
		if step > 0 {
			n = step * math.Ceil(least/step)
		}
	}
	raiseTo(1)
	if s.Minimum != nil && n < *s.Minimum {
		raiseTo(*s.Minimum)
	}
	if s.Above != nil && n <= *s.Above {
		if raiseTo(*s.Above); n <= *s.Above {
			n += max(step, 1)
		}
	}
	most := math.Inf(1)
	if s.Maximum != nil {
		most = *s.Maximum
	}
	if s.Below != nil && *s.Below <= most {
		most = math.Nextafter(*s.Below, math.Inf(-1))
	}
	if n > most {
		if n = most; step > 0 {
			n = step * math.Floor(most/step)
		}
		if low := s.Above; low != nil && n <= *low { // a narrow range
			n = (*low + most) / 2
		}
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}
