package exchange

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Difference says in what an answer differs from the one it should be like, ""
// where it does not. A refusal is the same to the byte. Of an answer the fields,
// their order and the constants are the same; texts and most numbers are each
// server's own.
func Difference(want, got Answer) string {
	var b strings.Builder
	field := func(name string, want, got any) {
		if w, g := fmt.Sprint(want), fmt.Sprint(got); w != g {
			fmt.Fprintf(&b, "%s:\n  want %s\n  got  %s\n", name, w, g)
		}
	}
	field("status", want.Status, got.Status)
	field("content type", want.Type, got.Type)
	field("allow", want.Allow, got.Allow)
	if want.Sent != nil { // older recordings have no header lines
		field("header", want.Sent, got.Sent)
	}
	if (want.Status >= 400) != (got.Status >= 400) {
		field("body", want.Body, firstLine(got.Body))
		return b.String()
	}
	if want.Status >= 400 || got.Status >= 400 {
		field("body", want.Body, got.Body)
		return b.String()
	}
	w, g := Skeleton(want.Body), Skeleton(got.Body)
	for i := range max(len(w), len(g)) {
		line := func(of []string) string {
			if i < len(of) {
				return of[i]
			}
			return "nothing"
		}
		field(fmt.Sprintf("body, part %d", i+1), line(w), line(g))
	}
	return b.String()
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// Skeleton is what the parts of an answer, events or lines, have in common with
// another one's; runs of the same are one. Events of several choices come choice
// by choice: how they interleave is the scheduler's affair.
func Skeleton(body string) (parts []string) {
	lines := strings.Split(body, "\n")
	slices.SortStableFunc(lines, func(a, b string) int { return cmp.Compare(choiceOf(a), choiceOf(b)) })
	event := ""
	for _, line := range lines {
		if strings.HasPrefix(line, "event: ") { // the data follow
			event = line + " "
			continue
		}
		line = strings.TrimPrefix(line, "data: ")
		if strings.HasPrefix(line, "{") && json.Valid([]byte(line)) {
			d := json.NewDecoder(strings.NewReader(line))
			d.UseNumber()
			line = event + bones(d, "")
			event = ""
		}
		if line != "" && (len(parts) == 0 || parts[len(parts)-1] != line) {
			parts = append(parts, line)
		}
	}
	return parts
}

// choiceOf is which choice an event is of; what is of none comes last.
func choiceOf(line string) int {
	var e struct{ Choices []struct{ Index int } }
	data, event := strings.CutPrefix(line, "data: ")
	if event && json.Unmarshal([]byte(data), &e) == nil && len(e.Choices) == 1 {
		return e.Choices[0].Index
	}
	return math.MaxInt
}

// bones writes the next value of valid JSON without what may differ: strings and
// numbers of fields that are not named here. Runs of alike elements are one.
func bones(d *json.Decoder, field string) string {
	token, err := d.Token()
	if err != nil {
		return ""
	}
	switch v := token.(type) {
	case json.Delim:
		return compound(d, v, field)
	case string:
		switch field {
		case "object", "finish_reason", "status", "reason", "role", "type", "name", "model", "organization":
			return strconv.Quote(v)
		case "stop_reason": // in other APIs it is the word at which an answer stopped
			switch v {
			case "end_turn", "max_tokens", "stop_sequence", "tool_use":
				return strconv.Quote(v)
			}
		}
		return "S"
	case json.Number:
		switch field {
		case "index", "max_model_len", "server_load":
			return v.String()
		}
		return "N"
	case nil:
		return "null"
	default:
		return fmt.Sprint(v)
	}
}

// compound writes a list or an object that has been begun.
func compound(d *json.Decoder, open json.Delim, field string) string {
	var parts []string
	addPart := func(part string) {
		if len(parts) == 0 || parts[len(parts)-1] != part {
			parts = append(parts, part)
		}
	}
	for d.More() {
		if open == '[' {
			addPart(bones(d, field))
			continue
		}
		key, _ := d.Token()
		name, _ := key.(string)
		value := bones(d, name)
		if field == "top_logprobs" && value == "N" && name != "logprob" {
			name = "TOKEN" // a completion's alternatives are an object
		}
		if _, err := strconv.Atoi(name); err == nil && field == "prompt_logprobs" {
			name = "TOKEN"
		}
		addPart(strconv.Quote(name) + ":" + value)
	}
	_, _ = d.Token()
	if open == '{' {
		return "{" + strings.Join(parts, ",") + "}"
	}
	if field == "bytes" {
		return "[N]"
	}
	return "[" + strings.Join(parts, ",") + "]"
}
