package workload

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// format is how one record of a file says what to ask.
type format struct {
	name      string
	estimated bool     // output lengths are estimated
	keys      []string // an object that has one of these is such a record
	parse     parser
}

// parser reads a record. skip says why a well-formed record cannot be asked.
type parser func(raw []byte) (r record, skip string, err error)

// record is what a request needs of its record.
type record struct {
	messages []Message
	output   int // Unknown if it does not say
	body     []byte
}

// formats are the kinds of objects, in the order in which they are tried.
func formats() []format {
	return []format{
		{name: "openai-batch", keys: []string{"custom_id", "body"}, parse: parseBatch},
		{name: "openai-chat", keys: []string{"messages"}, parse: parseChat},
		{name: "sharegpt", keys: []string{"conversations", "conversation"}, parse: parseShareGPT, estimated: true},
		{name: "vllm-custom", keys: []string{"prompt"}, parse: parseCustom},
		{name: "aiperf-single-turn", keys: []string{"text", "text_input"}, parse: parseSingleTurn},
	}
}

// detect tells the format of a file by its first record.
func detect(kind container, raw []byte) (format, error) {
	if kind == textLines {
		return format{name: "text", parse: parseText}, nil
	}
	o, err := parseObject(raw)
	if err != nil {
		return format{}, err
	}
	var want []string
	for _, f := range formats() {
		for _, key := range f.keys {
			if o[key] != nil {
				return f, nil
			}
		}
		want = append(want, f.keys...)
	}
	found := slices.Sorted(maps.Keys(o))
	if len(found) > 8 {
		found = append(found[:8], "…")
	}
	return format{}, fmt.Errorf("want an object with one of the keys %s; found %.200q", strings.Join(want, ", "), strings.Join(found, ", "))
}

// prompt is a record with one literal question.
func prompt(text string, output int) (record, string, error) {
	if strings.TrimSpace(text) == "" {
		return record{}, skipEmpty, nil
	}
	return record{messages: []Message{{Role: "user", Segments: []Segment{{Text: text}}}}, output: output}, "", nil
}

// Why records are skipped.
const (
	skipEmpty    = "empty prompt"
	skipNoOutput = "asks for no output tokens"
	skipNotChat  = "no chat request"
	skipMedia    = "images, audio or video"
	skipOneTurn  = "fewer than two turns"
	skipNoHuman  = "no human turn"
	skipNoAnswer = "no answer to the first human turn"
)

func parseText(raw []byte) (record, string, error) {
	if !utf8.Valid(raw) {
		return record{}, "", errors.New("want UTF-8 text, one prompt a line")
	}
	return prompt(string(raw), Unknown)
}

func parseCustom(raw []byte) (record, string, error) {
	o, err := parseObject(raw)
	if err != nil {
		return record{}, "", err
	}
	text, err := o.stringOf("prompt")
	if err != nil {
		return record{}, "", err
	}
	output, err := o.tokens("output_tokens", "max_tokens")
	if err != nil || output == 0 {
		return record{}, skipNoOutput, err
	}
	return prompt(text, output)
}

func parseSingleTurn(raw []byte) (record, string, error) {
	o, err := parseObject(raw)
	if err != nil {
		return record{}, "", err
	}
	for _, medium := range []string{"image", "images", "audio", "audios", "video", "videos"} {
		if o[medium] != nil {
			return record{}, skipMedia, nil
		}
	}
	text, err := o.stringOf("text", "text_input")
	if err != nil {
		return record{}, "", err
	}
	output, err := o.tokens("output_length")
	if err != nil || output == 0 {
		return record{}, skipNoOutput, err
	}
	r, skip, err := prompt(text, output)
	if extra := o["extra"]; extra != nil && skip == "" && err == nil {
		more, err := parseObject(extra)
		if err != nil {
			return record{}, "", fmt.Errorf("extra: %w", err)
		}
		if r.body, err = more.body(); err != nil {
			return record{}, "", err
		}
	}
	return r, skip, err
}

func parseBatch(raw []byte) (record, string, error) {
	o, err := parseObject(raw)
	if err != nil {
		return record{}, "", err
	}
	url, err := o.stringOf("url")
	if err != nil {
		return record{}, "", err
	}
	if !strings.HasSuffix(strings.TrimRight(url, "/"), "/chat/completions") {
		return record{}, skipNotChat, nil
	}
	if o["body"] == nil {
		return record{}, "", errors.New("body: want a chat request")
	}
	r, skip, err := parseChat(o["body"])
	if err != nil {
		return record{}, "", fmt.Errorf("body: %w", err)
	}
	return r, skip, nil
}
