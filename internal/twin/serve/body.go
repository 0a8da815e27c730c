package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
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
	b.addContext(kind, loc, message, input, "")
}

// addContext is add with what the complaint is measured by.
func (b *body) addContext(kind, loc, message string, input json.RawMessage, context string) {
	if len(b.faults) == 0 {
		b.param = loc
	}
	if context != "" {
		context = ", 'ctx': {" + context + "}"
	}
	b.faults = append(b.faults, fmt.Sprintf("{'type': '%s', 'loc': '%s', 'msg': %s, 'input': %s%s}", kind, loc, quoted(message), quoted(shown(input)), context))
}

// atLeast notes that a number is too small.
func (b *body) atLeast(name string, least int64, input json.RawMessage) {
	b.addContext("greater_than_equal", "body."+name, fmt.Sprintf("Input should be greater than or equal to %d", least), input, fmt.Sprintf("'ge': %d", least))
}

// atMost notes that a number is too large.
func (b *body) atMost(name string, most int64, input json.RawMessage) {
	b.addContext("less_than_equal", "body."+name, fmt.Sprintf("Input should be less than or equal to %d", most), input, fmt.Sprintf("'le': %d", most))
}

// notObject notes that a value is no object.
func (b *body) notObject(name string, input json.RawMessage) {
	b.add("model_attributes_type", "body."+name, "Input should be a valid dictionary or object to extract fields from", input)
}

// absent notes that a field of an object is not there.
func (b *body) absent(name string, object json.RawMessage) {
	b.add("missing", "body."+name, "Field required", object)
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

// integer is a field's value, def if it is not there.
func (b *body) integer(name string, def int) int {
	if b.has(name) {
		if n, ok := b.whole(name, b.m[name]); ok {
			return int(n)
		}
	}
	return def
}

// whole is the integer that stands at loc; false if it is none. Like pydantic
// it takes whole floats and numbers in strings.
func (b *body) whole(loc string, raw json.RawMessage) (int64, bool) {
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
		b.add("int_from_float", "body."+loc, "Input should be a valid integer, got a number with a fractional part", raw)
	case raw[0] == '"':
		b.add("int_parsing", "body."+loc, "Input should be a valid integer, unable to parse string as an integer", raw)
	default:
		b.add("int_type", "body."+loc, "Input should be a valid integer", raw)
	}
	return 0, false
}

// ids is a field that is a list of token ids, nil if it is not there.
func (b *body) ids(name string) []int64 {
	if !b.has(name) {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(b.m[name], &list) != nil {
		b.add("list_type", "body."+name, "Input should be a valid list", b.m[name])
		return nil
	}
	ids := make([]int64, len(list))
	for i, raw := range list {
		ids[i], _ = b.whole(name+"."+strconv.Itoa(i), raw)
	}
	return ids
}

// sortedKeys are the names of an object's fields, in a fixed order.
func sortedKeys(object map[string]json.RawMessage) []string {
	return slices.Sorted(maps.Keys(object))
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

// conversation is what the messages of a chat come to.
type conversation struct {
	text  []byte
	media bool   // there is more than text
	last  string // role of the last message
}

// chat reads the messages: contents that are strings, and the text parts of
// the others, one after the other.
func (b *body) chat(raw json.RawMessage) (c conversation) {
	var messages []struct {
		Role    *string         `json:"role"`
		Content json.RawMessage `json:"content"`
		Calls   json.RawMessage `json:"tool_calls"`
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || list == nil {
		b.add("list_type", "body.messages", "Input should be a valid list", raw)
		return c
	}
	if err := json.Unmarshal(raw, &messages); err != nil {
		b.add("dict_type", "body.messages.0", "Input should be a valid dictionary", list[0])
		return c
	}
	for i, m := range messages {
		loc := fmt.Sprintf("body.messages.%d.", i)
		if m.Role == nil {
			b.add("missing", loc+"role", "Field required", list[i])
			continue
		}
		c.last = *m.Role
		if i > 0 {
			c.text = append(c.text, '\n')
		}
		var one string
		var parts []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		switch {
		case absent(m.Content):
			if *m.Role != "assistant" { // which may only call tools
				b.add("string_type", loc+"content", "Input should be a valid string", m.Content)
			}
		case json.Unmarshal(m.Content, &one) == nil:
			c.text = append(c.text, one...)
		case json.Unmarshal(m.Content, &parts) == nil:
			for _, p := range parts {
				c.text = append(c.text, p.Text...)
				c.media = c.media || isMedia(p.Type)
			}
		default:
			b.add("string_type", loc+"content", "Input should be a valid string", m.Content)
		}
		if !absent(m.Calls) {
			c.text = append(c.text, m.Calls...)
		}
	}
	return c
}

// isMedia says whether a part of a message is an image, a sound or a film.
func isMedia(kind string) bool {
	kind = strings.TrimPrefix(kind, "input_")
	return strings.HasPrefix(kind, "image") || strings.HasPrefix(kind, "audio") || strings.HasPrefix(kind, "video")
}
