package vllmapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"pitot/internal/sim/serve/dialect"
)

// What is wrong with a body is reported in the words and the order of pydantic, which
// validates vLLM's requests.

// badJSON says where a body is no JSON, as Python's parser would.
func badJSON(raw []byte) *dialect.Reply {
	var any json.RawMessage
	var syntax *json.SyntaxError
	at := int64(len(raw))
	if err := json.Unmarshal(raw, &any); errors.As(err, &syntax) && !strings.Contains(err.Error(), "unexpected end") {
		at = max(syntax.Offset-1, 0)
	}
	problem := "Expecting value"
	if before := bytes.TrimSpace(raw[:at]); bytes.HasSuffix(before, []byte("{")) {
		problem = "Expecting property name enclosed in double quotes"
	} else if bytes.HasSuffix(before, []byte(`"`)) || bytes.HasSuffix(before, []byte("}")) || bytes.HasSuffix(before, []byte("]")) {
		problem = "Expecting ',' delimiter"
	}
	loc := fmt.Sprintf("body.%d", at)
	return refusalReply("Bad Request", loc, fmt.Sprintf(
		"1 validation error:\n  {'type': 'json_invalid', 'loc': '%s', 'msg': 'JSON decode error', 'input': '<dict of 0 items>', 'ctx': {'error': %s}}",
		loc, pythonString(problem)))
}

// faultMessages are pydantic's messages for its kinds of faults.
var faultMessages = map[string]string{
	"missing":               "Field required",
	"string_type":           "Input should be a valid string",
	"list_type":             "Input should be a valid list",
	"dict_type":             "Input should be a valid dictionary",
	"model_attributes_type": "Input should be a valid dictionary or object to extract fields from",
	"int_type":              "Input should be a valid integer",
	"int_parsing":           "Input should be a valid integer, unable to parse string as an integer",
	"int_from_float":        "Input should be a valid integer, got a number with a fractional part",
	"float_parsing":         "Input should be a valid number, unable to parse string as a number",
	"bool_parsing":          "Input should be a valid boolean, unable to interpret input",
}

// noteFault notes a fault of the input that has a name in the body, "" for the body itself.
func (b *body) noteFault(kind, name string, input json.RawMessage) {
	b.complainWith(kind, name, faultMessages[kind], input, "")
}

// noteNeither notes that an input is neither a string nor a list.
func (b *body) noteNeither(name string, input json.RawMessage) {
	b.noteFault("string_type", name, input)
	b.noteFault("list_type", name, input)
}

// complainWith notes a fault with a message of its own, and what it is measured by.
func (b *body) complainWith(kind, name, message string, input json.RawMessage, context string) {
	loc := "body"
	if name != "" {
		loc += "." + name
	}
	if len(b.faults) == 0 {
		b.param = loc
	}
	if context != "" {
		context = ", 'ctx': {" + context + "}"
	}
	b.faults = append(b.faults, fmt.Sprintf("{'type': '%s', 'loc': '%s', 'msg': %s, 'input': %s%s}", kind, loc, pythonString(message), pythonString(shownValue(input)), context))
}

// atLeast notes that a number is too small.
func (b *body) atLeast(name string, least int64, input json.RawMessage) {
	b.complainWith("greater_than_equal", name, fmt.Sprintf("Input should be greater than or equal to %d", least), input, fmt.Sprintf("'ge': %d", least))
}

// atMost notes that a number is too large.
func (b *body) atMost(name string, most int64, input json.RawMessage) {
	b.complainWith("less_than_equal", name, fmt.Sprintf("Input should be less than or equal to %d", most), input, fmt.Sprintf("'le': %d", most))
}

// notObject notes that a value is no object.
func (b *body) notObject(name string, input json.RawMessage) {
	b.noteFault("model_attributes_type", name, input)
}

// noteAbsent notes that a field of an object is not there.
func (b *body) noteAbsent(name string, object json.RawMessage) {
	b.noteFault("missing", name, object)
}

// noteMissing notes that a field is not there.
func (b *body) noteMissing(name string) {
	b.noteFault("missing", name, json.RawMessage(fmt.Sprintf("<%d>", len(b.m))))
}

// faultReply is the answer if anything is wrong.
func (b *body) faultReply() *dialect.Reply {
	n, s := len(b.faults), "s"
	switch n {
	case 0:
		return nil
	case 1:
		s = ""
	}
	return refusalReply("Bad Request", b.param, fmt.Sprintf("%d validation error%s:\n  %s", n, s, strings.Join(b.faults, "\n  ")))
}

// noteLiteral notes that a field is not one of the words it may be.
func (b *body) noteLiteral(loc string, in map[string]json.RawMessage, words string, ok bool) {
	raw, there := in["type"]
	switch {
	case ok:
	case !there:
		b.noteAbsent(loc, json.RawMessage(fmt.Sprintf("<%d>", len(in))))
	default:
		b.complainWith("literal_error", loc, "Input should be "+words, raw, "'expected': "+pythonString(words))
	}
}
