package vllmapi

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Messages of a server that is written in Python show values as Python does.

// pythonString is s as Python writes a string: with ' unless there is one in it.
func pythonString(s string) string {
	if strings.Contains(s, "'") {
		return `"` + s + `"`
	}
	return "'" + s + "'"
}

// pythonFloat is a float as Python writes it.
func pythonFloat(f float64) string {
	text := fmt.Sprint(f)
	if !strings.ContainsAny(text, ".eN") {
		text += ".0"
	}
	return text
}

// pythonList and pythonTexts are lists, the same.
func pythonList(ids []int64) string {
	return strings.ReplaceAll(fmt.Sprint(ids), " ", ", ")
}

func pythonTexts(texts []string) string {
	list := make([]string, len(texts))
	for i, t := range texts {
		list[i] = pythonString(t)
	}
	return "[" + strings.Join(list, ", ") + "]"
}

// pythonValue is a JSON value as Python writes it.
func pythonValue(raw json.RawMessage) string {
	var list []json.RawMessage
	var object map[string]json.RawMessage
	switch {
	case json.Unmarshal(raw, &list) == nil && list != nil:
		parts := make([]string, len(list))
		for i, v := range list {
			parts[i] = pythonValue(v)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case json.Unmarshal(raw, &object) == nil && object != nil:
		var parts []string
		for _, name := range sortedKeys(object) {
			parts = append(parts, pythonString(name)+": "+pythonValue(object[name]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case len(raw) > 0 && raw[0] == '"':
		return pythonString(shownValue(raw))
	}
	return shownValue(raw)
}

// shownValue returns a value as the answer repeats it to the client, with containers as their size.
func shownValue(raw json.RawMessage) string {
	var v any
	if len(raw) > 0 && raw[0] == '<' { // missing: the object around it
		return "<dict of " + string(raw[1:len(raw)-1]) + " items>"
	}
	_ = json.Unmarshal(raw, &v)
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case string:
		return v
	case []any:
		return fmt.Sprintf("<list of %d items>", len(v))
	case map[string]any:
		return fmt.Sprintf("<dict of %d items>", len(v))
	}
	return string(raw)
}
