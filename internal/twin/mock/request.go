package mock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// request is the body of a generation or of /tokenize, as far as the mock
// reads it. Other fields, ignore_eos and min_tokens among them, are accepted
// and have no effect: an answer always has as many tokens as were asked for.
type request struct {
	Model               string          `json:"model"`
	Messages            json.RawMessage `json:"messages"`
	Prompt              json.RawMessage `json:"prompt"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	Stream              bool            `json:"stream"`
	N                   *int            `json:"n"`
	StreamOptions       *struct {
		IncludeUsage         bool `json:"include_usage"`
		ContinuousUsageStats bool `json:"continuous_usage_stats"`
	} `json:"stream_options"`
}

// ask is what a request comes to.
type ask struct {
	chat       bool
	stream     bool
	prompt     int // tokens
	output     int // tokens
	usage      bool
	continuous bool
}

// parse reads the body of a generation.
func (s *Server) parse(body []byte, chat bool) (ask, *reply) {
	var q request
	if err := json.Unmarshal(body, &q); err != nil {
		return ask{}, rejection("", "invalid JSON body: %v", err)
	}
	if q.Model != "" && q.Model != s.cfg.Model {
		r := reply{status: 404, body: failureJSON(404, fmt.Sprintf("The model `%s` does not exist.", q.Model), "model")}
		return ask{}, &r
	}
	a := ask{chat: chat, stream: q.Stream}
	if q.N != nil && *q.N != 1 {
		return a, rejection("n", "n must be 1 here, got %d.", *q.N)
	}
	if o := q.StreamOptions; o != nil {
		if !q.Stream {
			return a, rejection("stream_options", "Stream options can only be defined when `stream=True`.")
		}
		a.usage = o.IncludeUsage
		a.continuous = o.IncludeUsage && o.ContinuousUsageStats
	}
	var err error
	if a.prompt, err = s.promptTokens(q, chat); err != nil {
		param := "prompt"
		if chat {
			param = "messages"
		}
		return a, rejection(param, "%v", err)
	}
	limit := q.MaxTokens
	if chat && q.MaxCompletionTokens != nil {
		limit = q.MaxCompletionTokens
	}
	switch room := s.cfg.MaxModelLen - a.prompt; {
	case limit == nil && chat:
		a.output = max(min(defaultChatTokens, room), 1)
	case limit == nil:
		a.output = max(min(defaultCompletionTokens, room), 1)
	case *limit < 1:
		return a, rejection("max_tokens", "max_tokens must be at least 1, got %d.", *limit)
	default:
		a.output = *limit
	}
	if a.output > s.cfg.MaxModelLen-a.prompt {
		return a, rejection("input_tokens", "This model's maximum context length is %d tokens. However, "+
			"you requested %d output tokens and your prompt contains %d input tokens.",
			s.cfg.MaxModelLen, a.output, a.prompt)
	}
	return a, nil
}

var errOnePrompt = errors.New("one prompt per request is supported here")

// promptTokens counts what the request asks with: messages, a text, or token
// ids.
func (s *Server) promptTokens(q request, chat bool) (int, error) {
	if chat {
		text, err := chatText(q.Messages)
		return s.cfg.Count(text) + s.cfg.PromptOverhead, err
	}
	var one string
	if json.Unmarshal(q.Prompt, &one) == nil && !bytes.Equal(q.Prompt, []byte("null")) {
		return s.cfg.Count([]byte(one)), nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(q.Prompt, &list); err != nil || len(list) == 0 {
		return 0, errors.New("prompt must be a string or a list of token ids")
	}
	switch list[0][0] {
	case '"', '[':
		if len(list) > 1 {
			return 0, errOnePrompt
		}
		return s.promptTokens(request{Prompt: list[0]}, false)
	}
	for _, id := range list {
		var n uint32
		if err := json.Unmarshal(id, &n); err != nil || id[0] == 'n' {
			return 0, errors.New("prompt must be a string or a list of token ids")
		}
	}
	return len(list), nil
}

// chatText is the text of all messages: contents that are strings, and the
// text parts of the others, one after the other.
func chatText(raw json.RawMessage) ([]byte, error) {
	var messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(raw, &messages); err != nil || len(messages) == 0 {
		return nil, errors.New("messages must be a non-empty list of messages")
	}
	var text []byte
	for i, m := range messages {
		if i > 0 {
			text = append(text, '\n')
		}
		var one string
		var parts []struct {
			Text string `json:"text"`
		}
		switch {
		case len(m.Content) == 0: // an assistant that only calls tools
		case json.Unmarshal(m.Content, &one) == nil:
			text = append(text, one...)
		case json.Unmarshal(m.Content, &parts) == nil:
			for _, p := range parts {
				text = append(text, p.Text...)
			}
		default:
			return nil, fmt.Errorf("messages[%d].content must be a string or a list of parts", i)
		}
	}
	return text, nil
}
