package workload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"pitot/internal/workload/field"
)

// Rows of the logs that gateways and tracing tools export: LiteLLM, Langfuse, Portkey, Helicone and
// others. Each has a request, or its messages, next to times, token counts and much that is no part
// of a request: nothing of that is sent.

// isLogged reports whether a JSON object is such a row.
func isLogged(o object) bool {
	request, log := false, false
	for key, value := range o {
		switch is := field.ParseName(key); is.Field {
		case field.Messages, field.Request:
			request = request || !blankCell(string(value))
		case field.InputEither:
			_, number := wholeNumber(value)
			request = request || !number && !blankCell(string(value))
		case field.Time:
			log = log || key != "timestamp" // AIPerf's
		case field.Usage, field.Input:
			log = log || key != "input_length"
		}
	}
	return request && log
}

// loggedOf asks the request of a row: the surest that is there.
func loggedOf(o object) (record, error) {
	best, at, output := "", math.MaxInt, Unknown
	surest := math.MaxInt
	take := func(value json.RawMessage, rank int) error {
		if rank >= surest {
			return nil
		}
		n, ok := tokenCount(bytes.Trim(value, `"`))
		if !ok {
			return fmt.Errorf("want a whole number of tokens, 0 to %d", MaxLength)
		}
		output, surest = int(n), rank
		return nil
	}
	for key, value := range o {
		is, rank := field.ParseName(key), 0
		switch is.Field {
		case field.Request:
			rank = 1 + is.Rank
		case field.Messages:
			rank = 100 + is.Rank
		case field.Prompt:
			rank = 200 + is.Rank
		case field.InputEither:
			rank = 300
		case field.Output:
			if err := take(value, is.Rank); err != nil {
				return record{}, fmt.Errorf("%s: %w", key, err)
			}
		case field.Usage:
			var usage object
			if json.Unmarshal(value, &usage) == nil {
				for name, n := range usage {
					switch inner := field.ParseName(name); inner.Field {
					case field.Output:
						_ = take(n, 1000+inner.Rank)
					case field.OutputEither:
						_ = take(n, 2000)
					}
				}
			}
		}
		if rank > 0 && rank < at && !blankCell(string(value)) {
			best, at = key, rank
		}
	}
	if best == "" {
		return record{}, skipEmpty
	}
	if output == 0 {
		return record{}, skipNoOutput
	}
	r, err := requestIn(o[best], 0)
	if err != nil {
		return record{}, fmt.Errorf("%s: %w", best, err)
	}
	if output != Unknown {
		r.output = output
	}
	r.prependSystem(o)
	return r, nil
}

// deepestRequest is the depth within objects and strings to which the search for a request goes.
const deepestRequest = 4

// requestIn reads a request from what a log has of it: its body, an object around that, its
// messages, its prompt, or one of these as JSON in a string.
func requestIn(raw json.RawMessage, depth int) (record, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || depth > deepestRequest {
		return record{}, skipEmpty
	}
	switch raw[0] {
	case '"':
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return record{}, err
		}
		if inner := strings.TrimSpace(text); len(inner) > 0 && bytes.IndexByte([]byte(`{["`), inner[0]) >= 0 && json.Valid([]byte(inner)) {
			return requestIn(json.RawMessage(inner), depth+1)
		}
		return promptRecord(text, Unknown)
	case '[':
		return chatOf(object{"messages": raw})
	case '{':
		o, err := parseObject(raw)
		if err != nil {
			return record{}, err
		}
		for _, key := range []string{"messages", "prompt", "body", "request", "input"} {
			switch {
			case blankCell(string(o[key])) || o[key] == nil:
			case key == "messages":
				return chatOf(o)
			case key == "prompt":
				return customOf(o, key)
			default:
				return requestIn(o[key], depth+1)
			}
		}
	}
	return record{}, errors.New("want a request with messages or a prompt")
}

// parseConversation reads a conversation as EvalScope has it: an array of messages. Its first
// question is asked, behind what its system says; further ones follow the answers that are
// recorded.
func parseConversation(raw []byte) (record, error) {
	var turns []object
	if json.Unmarshal(raw, &turns) != nil || len(turns) == 0 {
		return record{}, errors.New("want a conversation: an array of one or more messages, each with role and content")
	}
	r, answer := record{output: Unknown}, ""
	asked := false
	for i, o := range turns {
		m, _, err := parseMessage(o)
		if err != nil {
			return record{}, fmt.Errorf("message %d: %w", i+1, err)
		}
		text := m.Segments[0].Text
		switch {
		case m.Role == "assistant":
			answer = text
		case strings.TrimSpace(text) == "":
		case m.Role == "user" && asked:
			r.later = append(r.later, further{answer: answer, text: text, output: Unknown, after: Unknown})
			answer = ""
		case !asked:
			r.messages = append(r.messages, m)
			asked = m.Role == "user"
		}
	}
	if !asked {
		return record{}, skipNoHuman
	}
	return r, nil
}
