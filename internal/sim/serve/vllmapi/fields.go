package vllmapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/sim/serve/dialect"
)

// body is a JSON object that a client sent, and what is wrong with it.
type body struct {
	m      map[string]json.RawMessage
	faults []string
	param  string // where the first of them is
}

// readBody reads the object; what is not announced as JSON or is no object is
// refused at once.
func readBody(r *dialect.Request) (*body, *dialect.Reply) {
	if refused := checkContentType(r.Header.Get("Content-Type")); refused != nil {
		return nil, refused
	}
	b := &body{}
	trimmed := bytes.TrimSpace(r.Body)
	if len(trimmed) == 0 || string(trimmed) == "null" {
		b.noteFault("missing", "", json.RawMessage("null"))
		return nil, b.faultReply()
	}
	if !json.Valid(trimmed) {
		return nil, badJSON(r.Body)
	}
	if err := json.Unmarshal(trimmed, &b.m); err != nil {
		b.noteFault("model_attributes_type", "", trimmed)
		return nil, b.faultReply()
	}
	return b, nil
}

// checkContentType refuses what is not announced as JSON.
func checkContentType(contentType string) *dialect.Reply {
	kind, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	if kind == "application/json" {
		return nil
	}
	return refusalReply("Bad Request", "", "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed")
}

// hasField says whether a field is there and not null.
func (b *body) hasField(name string) bool {
	raw, ok := b.m[name]
	return ok && string(raw) != "null"
}

// intField is a field's value, def if it is not there.
func (b *body) intField(name string, def int) int {
	if b.hasField(name) {
		if n, ok := b.parseWhole(name, b.m[name]); ok {
			return int(n)
		}
	}
	return def
}

// parseWhole is the integer that stands at loc; false if it is none. Like pydantic
// it takes whole floats and numbers in strings.
func (b *body) parseWhole(loc string, raw json.RawMessage) (int64, bool) {
	text := strings.Trim(string(raw), `"`)
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		return n, true
	}
	f, ferr := strconv.ParseFloat(text, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) && f > 0:
		b.atMost(loc, math.MaxInt64, raw)
	case errors.Is(err, strconv.ErrRange):
		b.atLeast(loc, math.MinInt64, raw)
	case ferr == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53:
		return int64(f), true
	case ferr == nil:
		b.noteFault("int_from_float", loc, raw)
	case raw[0] == '"':
		b.noteFault("int_parsing", loc, raw)
	default:
		b.noteFault("int_type", loc, raw)
	}
	return 0, false
}

// idsField is a field that is a list of token ids, nil if it is not there.
func (b *body) idsField(name string) []int64 {
	if !b.hasField(name) {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(b.m[name], &list) != nil {
		b.noteFault("list_type", name, b.m[name])
		return nil
	}
	ids := make([]int64, len(list))
	for i, raw := range list {
		ids[i], _ = b.parseWhole(name+"."+strconv.Itoa(i), raw)
	}
	return ids
}

// sortedKeys are the names of an object's fields, in a fixed order.
func sortedKeys(object map[string]json.RawMessage) []string {
	return slices.Sorted(maps.Keys(object))
}

// floatField is a field's value, def if it is not there.
func (b *body) floatField(name string, def float64) float64 {
	if !b.hasField(name) {
		return def
	}
	f, err := strconv.ParseFloat(strings.Trim(string(b.m[name]), `"`), 64)
	if err != nil {
		b.noteFault("float_parsing", name, b.m[name])
		return def
	}
	return f
}

// boolField is a field's value, false if it is not there.
func (b *body) boolField(name string) bool {
	if !b.hasField(name) {
		return false
	}
	switch strings.ToLower(strings.Trim(string(b.m[name]), `"`)) {
	case "true", "1", "on", "yes", "t", "y":
		return true
	case "false", "0", "off", "no", "f", "n":
		return false
	}
	b.noteFault("bool_parsing", name, b.m[name])
	return false
}

// stringField is a field that is a string.
func (b *body) stringField(name string) (string, bool) {
	var s string
	if !b.hasField(name) || json.Unmarshal(b.m[name], &s) != nil {
		return "", false
	}
	return s, true
}

// stringsField is a field that is a string or a list of strings.
func (b *body) stringsField(name string) []string {
	if !b.hasField(name) {
		return nil
	}
	if one, ok := b.stringField(name); ok {
		return []string{one}
	}
	var many []string
	if err := json.Unmarshal(b.m[name], &many); err != nil {
		b.noteNeither(name, b.m[name])
	}
	return many
}

func isEmptyList(raw json.RawMessage) bool {
	var list []json.RawMessage
	return json.Unmarshal(raw, &list) == nil && len(list) == 0
}

// isAbsent says whether a value is not there, or null.
func isAbsent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }
