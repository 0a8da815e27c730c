package mock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// body is a JSON object that a client sent, and what is wrong with it. The
// words and the order of the complaints are those of vLLM 0.32, which has them
// from pydantic.
type body struct {
	m      map[string]json.RawMessage
	faults []string
	param  string // where the first of them is
}

// readBody reads the object; what is no object is refused at once.
func readBody(raw []byte) (*body, *reply) {
	b := &body{}
	trimmed := bytes.TrimSpace(raw)
	if len(trimmed) == 0 || string(trimmed) == "null" {
		b.add("missing", "body", "Field required", json.RawMessage("null"))
		return nil, b.refused()
	}
	if !json.Valid(trimmed) {
		return nil, badJSON(raw)
	}
	if err := json.Unmarshal(trimmed, &b.m); err != nil {
		b.add("model_attributes_type", "body", "Input should be a valid dictionary or object to extract fields from", trimmed)
		return nil, b.refused()
	}
	return b, nil
}

// badJSON says where a body is no JSON, as Python's parser would.
func badJSON(raw []byte) *reply {
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
	return refusal("Bad Request", loc, fmt.Sprintf(
		"1 validation error:\n  {'type': 'json_invalid', 'loc': '%s', 'msg': 'JSON decode error', 'input': '<dict of 0 items>', 'ctx': {'error': %s}}",
		loc, quoted(problem)))
}

// quoted is s as Python writes a string: with ' unless there is one in it.
func quoted(s string) string {
	if strings.Contains(s, "'") {
		return `"` + s + `"`
	}
	return "'" + s + "'"
}

// refusal is a 400 of a kind that its status does not tell.
func refusal(kind, param, message string) *reply {
	e := failureError{Message: message, Type: kind, Code: 400}
	if param != "" {
		e.Param = &param
	}
	return &reply{status: 400, body: marshal(failureBody{e})}
}

// add notes a fault of the input at loc.
func (b *body) add(kind, loc, message string, input json.RawMessage) {
	if len(b.faults) == 0 {
		b.param = loc
	}
	b.faults = append(b.faults, fmt.Sprintf("{'type': '%s', 'loc': '%s', 'msg': %s, 'input': %s}", kind, loc, quoted(message), quoted(shown(input))))
}

// missing notes that a field is not there.
func (b *body) missing(name string) {
	b.add("missing", "body."+name, "Field required", json.RawMessage(fmt.Sprintf("<%d>", len(b.m))))
}

// refused is the answer if anything is wrong.
func (b *body) refused() *reply {
	n, s := len(b.faults), "s"
	switch n {
	case 0:
		return nil
	case 1:
		s = ""
	}
	return refusal("Bad Request", b.param, fmt.Sprintf("%d validation error%s:\n  %s", n, s, strings.Join(b.faults, "\n  ")))
}

// shown is how a value is repeated to the client: containers by their size.
func shown(raw json.RawMessage) string {
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

// has says whether a field is there and not null.
func (b *body) has(name string) bool {
	raw, ok := b.m[name]
	return ok && string(raw) != "null"
}

// integer is a field's value, def if it is not there. Like pydantic it takes
// whole floats and numbers in strings.
func (b *body) integer(name string, def int) int {
	if !b.has(name) {
		return def
	}
	raw := b.m[name]
	text := strings.Trim(string(raw), `"`)
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53:
		return int(f)
	case err == nil:
		b.add("int_from_float", "body."+name, "Input should be a valid integer, got a number with a fractional part", raw)
	case raw[0] == '"':
		b.add("int_parsing", "body."+name, "Input should be a valid integer, unable to parse string as an integer", raw)
	default:
		b.add("int_type", "body."+name, "Input should be a valid integer", raw)
	}
	return def
}

// number is a field's value, def if it is not there.
func (b *body) number(name string, def float64) float64 {
	if !b.has(name) {
		return def
	}
	f, err := strconv.ParseFloat(strings.Trim(string(b.m[name]), `"`), 64)
	if err != nil {
		b.add("float_parsing", "body."+name, "Input should be a valid number, unable to parse string as a number", b.m[name])
		return def
	}
	return f
}

// boolean is a field's value, false if it is not there.
func (b *body) boolean(name string) bool {
	if !b.has(name) {
		return false
	}
	switch strings.ToLower(strings.Trim(string(b.m[name]), `"`)) {
	case "true", "1", "on", "yes", "t", "y":
		return true
	case "false", "0", "off", "no", "f", "n":
		return false
	}
	b.add("bool_parsing", "body."+name, "Input should be a valid boolean, unable to interpret input", b.m[name])
	return false
}

// text is a field that is a string.
func (b *body) text(name string) (string, bool) {
	var s string
	if !b.has(name) || json.Unmarshal(b.m[name], &s) != nil {
		return "", false
	}
	return s, true
}

// texts is a field that is a string or a list of strings.
func (b *body) texts(name string) []string {
	if !b.has(name) {
		return nil
	}
	if one, ok := b.text(name); ok {
		return []string{one}
	}
	var many []string
	if err := json.Unmarshal(b.m[name], &many); err != nil {
		b.add("string_type", "body."+name, "Input should be a valid string", b.m[name])
		b.add("list_type", "body."+name, "Input should be a valid list", b.m[name])
	}
	return many
}

// chatText is the text of all messages, one after the other: contents that are
// strings, and the text parts of the others.
func (b *body) chatText(raw json.RawMessage) []byte {
	var messages []struct {
		Role    *string         `json:"role"`
		Content json.RawMessage `json:"content"`
		Calls   json.RawMessage `json:"tool_calls"`
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || list == nil {
		b.add("list_type", "body.messages", "Input should be a valid list", raw)
		return nil
	}
	if err := json.Unmarshal(raw, &messages); err != nil {
		b.add("dict_type", "body.messages.0", "Input should be a valid dictionary", list[0])
		return nil
	}
	var text []byte
	for i, m := range messages {
		loc := fmt.Sprintf("body.messages.%d.", i)
		if m.Role == nil {
			b.add("missing", loc+"role", "Field required", list[i])
			continue
		}
		if i > 0 {
			text = append(text, '\n')
		}
		var one string
		var parts []struct {
			Text string `json:"text"`
		}
		switch {
		case len(m.Content) == 0 || string(m.Content) == "null":
			if *m.Role != "assistant" { // which may only call tools
				b.add("string_type", loc+"content", "Input should be a valid string", m.Content)
			}
		case json.Unmarshal(m.Content, &one) == nil:
			text = append(text, one...)
		case json.Unmarshal(m.Content, &parts) == nil:
			for _, p := range parts {
				text = append(text, p.Text...)
			}
		default:
			b.add("string_type", loc+"content", "Input should be a valid string", m.Content)
		}
		if len(m.Calls) > 0 && string(m.Calls) != "null" {
			text = append(text, m.Calls...)
		}
	}
	return text
}
