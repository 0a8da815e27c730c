package vllmapi

import (
	"encoding/json"
	"fmt"
	"strings"
)

// conversation is the parsed form of a chat's messages.
type conversation struct {
	text     []byte
	media    bool   // there is more than text
	last     string // role of the last message
	lastText string // and what it says
}

// parseConversation reads the messages: contents that are strings, and the text parts of
// the others, one after the other.
func (b *body) parseConversation(raw json.RawMessage) (c conversation) {
	var messages []struct {
		Role    *string         `json:"role"`
		Content json.RawMessage `json:"content"`
		Calls   json.RawMessage `json:"tool_calls"`
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || list == nil {
		b.noteFault("list_type", "messages", raw)
		return c
	}
	if err := json.Unmarshal(raw, &messages); err != nil {
		b.noteFault("dict_type", "messages.0", list[0])
		return c
	}
	for i, m := range messages {
		loc := fmt.Sprintf("messages.%d.", i)
		if m.Role == nil {
			b.noteFault("missing", loc+"role", list[i])
			continue
		}
		c.last, c.lastText = *m.Role, ""
		if i > 0 {
			c.text = append(c.text, '\n')
		}
		var one string
		var parts []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		switch {
		case isAbsent(m.Content):
			if *m.Role != "assistant" { // which may only call tools
				b.noteFault("string_type", loc+"content", m.Content)
			}
		case json.Unmarshal(m.Content, &one) == nil:
			c.text = append(c.text, one...)
			c.lastText = one
		case json.Unmarshal(m.Content, &parts) == nil:
			for k, p := range parts {
				c.text = append(c.text, p.Text...)
				c.lastText += "\n"[:min(k, 1)] + p.Text
				c.media = c.media || isMedia(p.Type)
			}
		default:
			b.noteFault("string_type", loc+"content", m.Content)
		}
		if !isAbsent(m.Calls) {
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
