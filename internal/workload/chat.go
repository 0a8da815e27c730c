package workload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"pitot/internal/workload/field"
)

// chatOf reads an OpenAI chat request. Messages with anything but a role
// and a text (tool calls, images) go into the body as they are as well, and
// are sent from there.
func chatOf(o object) (record, error) {
	var messages []object
	if json.Unmarshal(o["messages"], &messages) != nil || len(messages) == 0 {
		return record{}, errors.New("messages: want an array of one or more objects")
	}
	r := record{messages: make([]Message, len(messages))}
	allPlain, empty := true, true
	for i, m := range messages {
		message, plain, err := parseMessage(m)
		if err != nil {
			return record{}, fmt.Errorf("message %d: %w", i+1, err)
		}
		r.messages[i] = message
		allPlain = allPlain && plain
		empty = empty && plain && strings.TrimSpace(message.Segments[0].Text) == ""
	}
	if empty {
		return record{}, skipEmpty
	}
	output, err := o.tokensAt("max_completion_tokens", "max_tokens", "output_length")
	if err != nil {
		return record{}, err
	}
	r.output = output
	if r.prependSystem(o); len(r.messages) > len(messages) && !allPlain { // what is sent as it stands has it too
		system := r.messages[0].Segments[0].Text
		said, _ := json.Marshal(map[string]string{"role": "system", "content": system})
		list := bytes.TrimLeft(o["messages"], " \t\r\n")
		o["messages"] = json.RawMessage("[" + string(said) + "," + string(list[1:]))
	}
	for key := range o { // which no API has for a request with messages
		if field.ParseName(key).Field == field.System {
			delete(o, key)
		}
	}
	for _, key := range aiperfKeys {
		delete(o, key)
	}
	if allPlain {
		delete(o, "messages")
	}
	r.body = o.remainingBody()
	return r, nil
}

// aiperfKeys are those of AIPerf's records beside a request.
var aiperfKeys = strings.Fields(
	"timestamp delay session_id input_length output_length hash_ids group_id is_restart message_mode")

// parseMessage reads one message. plain tells that role and text are all
// there is to it.
func parseMessage(o object) (m Message, plain bool, err error) {
	keys := len(o)
	o.dropNulls()
	if m.Role, err = o.stringOf("role"); err != nil {
		return Message{}, false, err
	}
	text, isText, err := contentText(o["content"])
	if err != nil {
		return Message{}, false, err
	}
	m.Segments = []Segment{{Text: text}}
	known := slices.Contains([]string{"system", "user", "assistant"}, m.Role)
	return m, known && isText && keys == 2, nil
}

// contentText is the text of a message's content: a string, or the text parts
// of an array, or nothing.
func contentText(raw json.RawMessage) (text string, isText bool, err error) {
	if raw == nil {
		return "", false, nil
	}
	if json.Unmarshal(raw, &text) == nil {
		return text, true, nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return "", false, errors.New("content: want a string or an array of parts")
	}
	for _, p := range parts {
		if p.Type == "text" {
			text += p.Text
		}
	}
	return text, false, nil
}
