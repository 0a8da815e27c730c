package resulttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"
)

// Validate reports why a JSON document is not one that a schema allows. It has the part of
// JSON Schema that run.json's contract uses and refuses a schema with more. Unlike the
// complete validator, which the tests of package result compare it with, it costs
// a program that imports it nothing when it starts.
func Validate(schema, document string) error {
	var root any
	if err := decode(schema, &root); err != nil {
		return fmt.Errorf("decode schema: %w", err)
	}
	var doc any
	if err := decode(document, &doc); err != nil {
		return fmt.Errorf("decode document: %w", err)
	}
	v := validator{root}
	if err := v.known("#", root); err != nil {
		return err
	}
	return v.value("", doc, root)
}

// decode reads one JSON value, with its numbers as they are written.
func decode(text string, value any) error {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(value); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}

type object = map[string]any

type validator struct{ root any }

// known reports a keyword of a schema that is not implemented here.
func (v validator) known(at string, schema any) error {
	s, ok := schema.(object)
	if !ok {
		if _, ok := schema.(bool); ok {
			return nil
		}
		return fmt.Errorf("%s: not a schema", at)
	}
	for key, value := range s {
		var err error
		switch key {
		case "$schema", "$id", "title", "description", "type", "const", "enum", "required", "minimum", "maximum", "minItems", "maxItems":
		case "$ref":
			if ref, _ := value.(string); v.definition(ref) == nil {
				err = fmt.Errorf("%s: no definition %v", at, value)
			}
		case "format":
			if value != "date-time" {
				err = fmt.Errorf("%s: unknown format %v", at, value)
			}
		case "properties", "$defs":
			for name, property := range value.(object) {
				err = errors.Join(err, v.known(at+"/"+key+"/"+name, property))
			}
		case "items", "additionalProperties", "propertyNames":
			err = v.known(at+"/"+key, value)
		case "anyOf":
			for _, one := range value.([]any) {
				err = errors.Join(err, v.known(at+"/anyOf", one))
			}
		default:
			err = fmt.Errorf("%s: unknown keyword %s", at, key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// definition returns what a reference leads to, nil if nothing.
func (v validator) definition(ref string) any {
	name, ok := strings.CutPrefix(ref, "#/$defs/")
	if !ok {
		return nil
	}
	defs, _ := v.root.(object)["$defs"].(object)
	return defs[name]
}

func (v validator) value(at string, doc, schema any) error {
	s, ok := schema.(object)
	if !ok {
		if schema == false {
			return fmt.Errorf("%s: not allowed", at)
		}
		return nil
	}
	if ref, ok := s["$ref"].(string); ok {
		if err := v.value(at, doc, v.definition(ref)); err != nil {
			return err
		}
	}
	if types, ok := s["type"]; ok {
		list, several := types.([]any)
		if !several {
			list = []any{types}
		}
		if !slices.ContainsFunc(list, func(name any) bool { return isA(doc, name) }) {
			return fmt.Errorf("%s: want %v, got %v", at, types, doc)
		}
	}
	if want, ok := s["const"]; ok && !same(doc, want) {
		return fmt.Errorf("%s: want %v, got %v", at, want, doc)
	}
	if enum, ok := s["enum"].([]any); ok && !slices.ContainsFunc(enum, func(one any) bool { return same(doc, one) }) {
		return fmt.Errorf("%s: want one of %v, got %v", at, enum, doc)
	}
	if alternatives, ok := s["anyOf"].([]any); ok {
		var reasons []error
		for _, one := range alternatives {
			err := v.value(at, doc, one)
			if err == nil {
				reasons = nil
				break
			}
			reasons = append(reasons, err)
		}
		if reasons != nil {
			return errors.Join(reasons...)
		}
	}
	switch doc := doc.(type) {
	case json.Number:
		return within(at, rational(doc), s, "minimum", "maximum")
	case string:
		if _, err := time.Parse(time.RFC3339, doc); s["format"] == "date-time" && err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	case []any:
		if err := within(at+" length", big.NewRat(int64(len(doc)), 1), s, "minItems", "maxItems"); err != nil {
			return err
		}
		if items, ok := s["items"]; ok {
			for i, item := range doc {
				if err := v.value(fmt.Sprintf("%s/%d", at, i), item, items); err != nil {
					return err
				}
			}
		}
	case object:
		return v.object(at, doc, s)
	}
	return nil
}

func (v validator) object(at string, doc, s object) error {
	required, _ := s["required"].([]any)
	for _, name := range required {
		if _, ok := doc[name.(string)]; !ok {
			return fmt.Errorf("%s: no %s", at, name)
		}
	}
	properties, _ := s["properties"].(object)
	for _, name := range slices.Sorted(maps.Keys(doc)) {
		property, ok := properties[name]
		if !ok {
			property = true
			if other, ok := s["additionalProperties"]; ok {
				property = other
			}
		}
		if err := v.value(at+"/"+name, doc[name], property); err != nil {
			return err
		}
		if names, ok := s["propertyNames"]; ok {
			if err := v.value(at+"/"+name+" (its name)", name, names); err != nil {
				return err
			}
		}
	}
	return nil
}

// isA reports whether a value has a type of JSON Schema.
func isA(doc, name any) bool {
	switch doc := doc.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case json.Number:
		return name == "number" || name == "integer" && rational(doc).IsInt()
	case []any:
		return name == "array"
	case object:
		return name == "object"
	}
	return false
}

// same reports whether two values are equal: of a schema these are texts, mostly.
func same(a, b any) bool {
	x, _ := json.Marshal(a) // decoded from JSON
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

func within(at string, value *big.Rat, s object, least, most string) error {
	if limit, ok := s[least].(json.Number); ok && value.Cmp(rational(limit)) < 0 {
		return fmt.Errorf("%s: want at least %s, got %s", at, limit, value.RatString())
	}
	if limit, ok := s[most].(json.Number); ok && value.Cmp(rational(limit)) > 0 {
		return fmt.Errorf("%s: want at most %s, got %s", at, limit, value.RatString())
	}
	return nil
}

// rational is a number of JSON, exactly.
func rational(n json.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return new(big.Rat)
	}
	return r
}
