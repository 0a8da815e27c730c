package workload

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"pitot/internal/workload/field"
)

// format is a way in which one record of a file states a request.
type format struct {
	name      string
	estimated bool          // output lengths are estimated
	keys      []string      // an object that has one of these is such a record
	takes     []field.Field // what it uses of a record, besides times, the prompt and the answer's length
	parse     parser
	header    bool // the first record is none
}

// parser reads a record. Its error is a [skipReason] where a well-formed record cannot be asked.
type parser func(raw []byte) (record, error)

// objectParser reads records that are JSON objects.
func objectParser(parse func(o object) (record, error)) parser {
	return func(raw []byte) (record, error) {
		o, err := parseObject(raw)
		if err != nil {
			return record{}, err
		}
		return parse(o)
	}
}

// record holds what a request needs of its record.
type record struct {
	messages []Message
	output   int // Unknown if it does not say
	body     []byte
	later    []further // what its conversation goes on with
	stamp    string    // when it came, as it is written where that is not at the top
	due      int64     // when it came, in nanoseconds; of Pitot's own format
	timed    bool      // due is known
}

// further is a turn of a conversation behind its first.
type further struct {
	answer string // to the turn before, "" where it is not recorded
	text   string
	output int           // Unknown if it does not say
	after  time.Duration // of the answer, Unknown if it does not say
}

// objectFormats are the kinds of objects, in the order in which they are tried.
func objectFormats() []format {
	asked := []field.Field{field.System}
	all := []field.Field{field.System, field.Suffix, field.Sampling, field.Tools, field.Media, field.Context, field.Adapter, field.Scheduling}
	return []format{
		{name: "openai-batch", keys: []string{"custom_id", "body"}, parse: objectParser(batchOf), takes: all},
		{name: "payloads", keys: []string{"payload", "payloads"}, parse: objectParser(payloadOf), takes: all},
		{name: "aiperf-multi-turn", keys: []string{"turns"}, parse: parseMultiTurn, takes: []field.Field{field.Delay}},
		{name: "log", parse: objectParser(loggedOf), takes: asked},
		{name: "openai-chat", keys: []string{"messages"}, parse: objectParser(chatOf), takes: all},
		{name: "sharegpt", keys: []string{"conversations", "conversation"}, parse: parseShareGPT, estimated: true, takes: asked},
		{name: "vllm-custom", keys: []string{"prompt"}, parse: objectParser(promptOf), takes: asked},
		{name: "guidellm", keys: strings.Fields("prompt_0 question instruction input_text"),
			parse: objectParser(aliasedOf), takes: asked},
		{name: "aiperf-single-turn", keys: []string{"text", "text_input"}, parse: objectParser(singleTurnOf), takes: asked},
	}
}

// detectFormat tells the format of a file by its first record.
func detectFormat(kind container, raw []byte) (format, error) {
	if kind == textLines {
		return format{name: "text", parse: parseText}, nil
	}
	if text := bytes.TrimLeft(raw, " \t\r\n"); len(text) > 0 && text[0] == '[' {
		if kind == jsonArray {
			return agenticTrace(), nil
		}
		return format{name: "conversations", parse: parseConversation}, nil
	}
	o, err := parseObject(raw)
	if err != nil {
		return format{}, err
	}
	if newHead("", raw).isRequests("prompts") {
		return format{name: "pitot", parse: parseRequest, header: true}, nil
	}
	var want []string
	for _, f := range objectFormats() {
		if f.name == "log" && isLogged(o) {
			return f, nil
		}
		if o.firstKey(f.keys...) != "" {
			return f, nil
		}
		want = append(want, f.keys...)
	}
	found := slices.Sorted(maps.Keys(o))
	if len(found) > 8 {
		found = append(found[:8], "…")
	}
	return format{}, fmt.Errorf("want an object with one of the keys %s; found %.200q", strings.Join(want, ", "), strings.Join(found, ", "))
}

// promptRecord is a record with one literal question.
func promptRecord(text string, output int) (record, error) {
	if strings.TrimSpace(text) == "" {
		return record{}, skipEmpty
	}
	return record{messages: []Message{TextMessage("user", text)}, output: output}, nil
}

// skipReason says why a record is skipped.
type skipReason string

func (s skipReason) Error() string { return string(s) }

// Why records are skipped.
const (
	skipEmpty    skipReason = "empty prompt"
	skipNoOutput skipReason = "asks for no output tokens"
	skipNotChat  skipReason = "no chat request"
	skipMedia    skipReason = "images, audio or video"
	skipOneTurn  skipReason = "fewer than two turns"
	skipNoHuman  skipReason = "no human turn"
	skipNoAnswer skipReason = "no answer to the first human turn"
	skipNoTime   skipReason = "no time, which others have"
)

func parseText(raw []byte) (record, error) {
	if !utf8.Valid(raw) {
		return record{}, errors.New("want UTF-8 text, one prompt a line")
	}
	return promptRecord(string(raw), Unknown)
}

func promptOf(o object) (record, error) { return customOf(o, "prompt") }

// aliasedOf reads a question under any of the names that people give it.
func aliasedOf(o object) (record, error) {
	return customOf(o, questionKeys...)
}

var questionKeys = strings.Fields(
	"prompt_0 prompt question text text_input instruction input_text content query")

// customOf is a question, what its system prompt says, and how long its answer is to be.
func customOf(o object, keys ...string) (record, error) {
	text, err := o.stringOf(keys...)
	if err != nil {
		return record{}, err
	}
	if o.firstKey(keys...) == "instruction" { // Alpaca's, and Dolly's
		for _, key := range []string{"input", "context"} {
			if behind := o.stringAt(key); strings.TrimSpace(behind) != "" {
				text += "\n\n" + behind
				break
			}
		}
	}
	output, err := o.answerTokens()
	if err != nil {
		return record{}, err
	}
	r, err := promptRecord(text, output)
	for k := 1; o["prompt_0"] != nil && o[fmt.Sprint("prompt_", k)] != nil && err == nil; k++ { // GuideLLM's turns
		next := further{output: output, after: Unknown}
		count := fmt.Sprint("output_tokens_count_", k)
		if next.text, err = o.stringOf(fmt.Sprint("prompt_", k)); err == nil && o[count] != nil {
			next.output, err = o.tokensAt(count)
		}
		r.later = append(r.later, next)
	}
	r.prependSystem(o)
	return r, err
}

// prependSystem puts what an object's own field for a system prompt says in front, where no message
// does.
func (r *record) prependSystem(o object) {
	if len(r.messages) == 0 || r.messages[0].Role == "system" {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(o)) {
		text := o.stringAt(key)
		if field.ParseName(key).Field == field.System && strings.TrimSpace(text) != "" {
			r.messages = append([]Message{TextMessage("system", text)}, r.messages...)
			return
		}
	}
}

var mediaKeys = strings.Fields("image images audio audios video videos")

func singleTurnOf(o object) (record, error) {
	if o.firstKey(mediaKeys...) != "" {
		return record{}, skipMedia
	}
	text, err := o.stringOf("text", "text_input")
	if err != nil {
		return record{}, err
	}
	output, err := o.answerTokens()
	if err != nil {
		return record{}, err
	}
	r, err := promptRecord(text, output)
	if err != nil {
		return r, err
	}
	r.prependSystem(o)
	if o["extra"] != nil {
		extra, err := parseObject(o["extra"])
		if err != nil {
			return record{}, fmt.Errorf("extra: %w", err)
		}
		r.body = extra.remainingBody()
	}
	return r, nil
}

// payloadOf asks the requests of a session in genai-perf's and AIPerf's inputs.json: the
// first as it stands, of further ones what they ask last.
func payloadOf(o object) (record, error) {
	key := o.firstKey("payloads", "payload")
	var list []json.RawMessage
	if json.Unmarshal(o[key], &list) != nil {
		list = []json.RawMessage{o[key]}
	}
	if len(list) == 0 {
		return record{}, skipEmpty
	}
	parse := objectParser(func(o object) (record, error) {
		if o["messages"] != nil {
			return chatOf(o)
		}
		return promptOf(o)
	})
	r, err := parse(list[0])
	for k := 1; k < len(list) && err == nil; k++ {
		var next record
		if next, err = parse(list[k]); err == nil {
			r.later = append(r.later, next.lastTurn())
		}
	}
	if err != nil {
		return record{}, fmt.Errorf("%s: %w", key, err)
	}
	return r, nil
}

// lastTurn returns the part of a request that is new after everything said before it. This is its
// last message, and the answer before that.
func (r *record) lastTurn() further {
	n := len(r.messages)
	t := further{text: r.messages[n-1].Segments[0].Text, output: r.output, after: Unknown}
	if n > 1 && r.messages[n-2].Role == "assistant" {
		t.answer = r.messages[n-2].Segments[0].Text
	}
	return t
}

// agenticTrace is SGLang's: each conversation is an array of turns with the messages that
// each adds, and the answers are those that the server gives.
func agenticTrace() format {
	return format{name: "sglang-agentic-trace", parse: parseAgentic}
}

// parseAgentic asks the turns of one. What tools answered is asked as the user's.
func parseAgentic(raw []byte) (record, error) {
	var turns []object
	if json.Unmarshal(raw, &turns) != nil || len(turns) == 0 {
		return record{}, errors.New("want a conversation: an array of one or more turns with messages")
	}
	var all record
	for k, o := range turns {
		o.dropNulls()
		var messages []object
		if json.Unmarshal(o["messages"], &messages) != nil || len(messages) == 0 {
			return record{}, fmt.Errorf("turn %d: messages: want an array of one or more objects", k+1)
		}
		output, err := o.answerTokens()
		if err != nil {
			return record{}, fmt.Errorf("turn %d: %w", k+1, err)
		}
		var texts []string
		var list []Message
		for i, m := range messages {
			message, _, err := parseMessage(m)
			if err != nil {
				return record{}, fmt.Errorf("turn %d, message %d: %w", k+1, i+1, err)
			}
			text := message.Segments[0].Text
			if strings.TrimSpace(text) == "" || k > 0 && message.Role == "assistant" {
				continue
			}
			if message.Role != "system" && message.Role != "assistant" {
				message.Role = "user"
			}
			texts, list = append(texts, text), append(list, message)
		}
		switch {
		case len(texts) == 0:
			return record{}, skipEmpty
		case k == 0:
			all.messages, all.output = list, output
		default:
			all.later = append(all.later, further{text: strings.Join(texts, "\n\n"), output: output, after: Unknown})
		}
	}
	return all, nil
}

// parseMultiTurn asks the first question of AIPerf's sessions, behind what its system says.
func parseMultiTurn(raw []byte) (record, error) {
	var c struct {
		Turns []struct {
			Role, Text string
			Texts      []string
			Output     *float64 `json:"output_length"`
			Delay      *float64 // milliseconds
			Timestamp  json.RawMessage
		}
	}
	if json.Unmarshal(raw, &c) != nil || len(c.Turns) == 0 {
		return record{}, errors.New("turns: want an array of one or more objects with a text")
	}
	r := record{output: Unknown}
	asked := false
	for _, t := range c.Turns {
		if t.Text == "" && len(t.Texts) > 0 {
			t.Text = t.Texts[0]
		}
		role := cmp.Or(t.Role, "user")
		if role != "user" {
			if !asked {
				r.messages = append(r.messages, TextMessage(role, t.Text))
			}
			continue
		}
		if strings.TrimSpace(t.Text) == "" {
			return record{}, skipEmpty
		}
		output := Unknown
		if x := t.Output; x != nil {
			if !(*x >= 0 && *x <= MaxLength) || *x != math.Trunc(*x) {
				return record{}, fmt.Errorf("output_length: want a whole number of tokens, 0 to %d", MaxLength)
			}
			if output = int(*x); output == 0 {
				return record{}, skipNoOutput
			}
		}
		after := time.Duration(Unknown)
		if x := t.Delay; x != nil {
			if !(*x >= 0 && *x <= 1e9) {
				return record{}, errors.New("delay: want milliseconds, 0 to a thousand million")
			}
			after = time.Duration(*x * 1e6)
		}
		if asked {
			r.later = append(r.later, further{text: t.Text, output: output, after: after})
			continue
		}
		asked, r.output = true, output
		if string(t.Timestamp) != "null" {
			r.stamp = strings.Trim(string(t.Timestamp), `"`)
		}
		r.messages = append(r.messages, TextMessage(role, t.Text))
	}
	if !asked {
		return record{}, skipNoHuman
	}
	return r, nil
}

// tableFormat reads the rows of a table with prompts.
func tableFormat(t *table) format {
	parse := func(raw []byte) (record, error) {
		cells, ok := t.splitCells(raw)
		if !ok {
			return record{}, errors.New(t.rejectReason(raw))
		}
		o, err := t.rowObject(cells)
		if err != nil {
			return record{}, err
		}
		if t.hasField(field.Messages) || t.hasField(field.Request) {
			return loggedOf(o)
		}
		prompt := t.columns[t.columnIndex(field.Prompt)]
		if field.NormalizeName(prompt) == "prompt0" {
			prompt = "prompt_0"
		}
		return customOf(o, strings.ToLower(prompt))
	}
	return format{name: "csv", parse: parse, takes: []field.Field{field.System}}
}

// rowObject is a row as if it were JSON, under the names of the columns in lower case. The lengths
// of answers have their usual names.
func (t *table) rowObject(cells []string) (object, error) {
	o := object{}
	for i, cell := range cells {
		name := strings.ToLower(t.columns[i])
		cell = strings.ToValidUTF8(cell, "\uFFFD")
		text := strings.TrimSpace(cell)
		switch f := t.is[i].Field; {
		case f == field.Output && i == t.columnIndex(field.Output):
			if text = strings.TrimSpace(commaToPoint(unquoteCell(cell), t.commas)); text == "" {
				continue
			}
			if !json.Valid([]byte(text)) {
				return nil, fmt.Errorf("%s: want a whole number of tokens, 0 to %d", t.columns[i], MaxLength)
			}
			o["completion_tokens"] = json.RawMessage(text)
			continue
		case f == field.Messages, f == field.Request, f == field.Usage:
			if json.Valid([]byte(text)) {
				if !blankCell(text) {
					o[name] = json.RawMessage(text)
				}
				continue
			}
		case strings.HasPrefix(name, "output_tokens_count"): // of GuideLLM's further turns
			if json.Valid([]byte(text)) {
				o[name] = json.RawMessage(text)
			}
			continue
		}
		if text != "" || t.is[i].Field == field.Prompt {
			o[name], _ = json.Marshal(cell)
		}
	}
	return o, nil
}

func batchOf(o object) (record, error) {
	url, err := o.stringOf("url")
	if err != nil {
		return record{}, err
	}
	if !strings.HasSuffix(strings.TrimRight(url, "/"), "/chat/completions") {
		return record{}, skipNotChat
	}
	if o["body"] == nil {
		return record{}, errors.New("body: want a chat request")
	}
	r, err := objectParser(chatOf)(o["body"])
	if err != nil {
		return record{}, fmt.Errorf("body: %w", err)
	}
	return r, nil
}
