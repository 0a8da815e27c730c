package workload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"pitot/internal/say"
	"pitot/internal/workload/token"
)

// requestsSchema is the schema name in the first line of Pitot's own format. This file has its
// types; docs/guides/model-your-traffic.md says what they mean.
const requestsSchema = "pitot.requests/v1"

// requestsHead is the first line.
type requestsHead struct {
	Schema      string `json:"schema"`
	Holds       string `json:"holds"`                  // "lengths" or "prompts"
	BlockTokens int    `json:"block_tokens,omitempty"` // of the blocks that ids stand for
}

// requestsRow is each line behind it.
type requestsRow struct {
	DueNS    *int64             `json:"due_ns,omitempty"`   // nanoseconds since the first
	AfterNS  *int64             `json:"after_ns,omitempty"` // behind the answer to the request before it of its client: due_ns is then the earliest that it can come
	Input    *int64             `json:"input_tokens,omitempty"`
	Output   *int64             `json:"output_tokens,omitempty"`
	Blocks   []int64            `json:"blocks,omitempty"`
	Client   string             `json:"client,omitempty"`
	Messages *[]requestsMessage `json:"messages,omitempty"`
	Body     json.RawMessage    `json:"body,omitempty"` // sent along
}

type requestsMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// asking is a request as any of the formats may hold it.
type asking struct {
	due           int64
	timed         bool
	after         int64 // behind the answer before it, Unknown for none
	input, output int
	blocks        []int64
	client        string
	messages      []Message
	body          []byte
}

// ConvertTo are the formats that [Convert] writes.
func ConvertTo() []string { return []string{"pitot", "mooncake", "timed_trace", "aiperf", "openai"} }

// Losses lists what a conversion could not keep, one sentence each.
type Losses []string

// Convert writes the requests of a trace or of a file of prompts in another format, in the
// order of their times, else in that of the file, and tells what that cannot hold.
func Convert(w io.Writer, path, to string) (n int, lost Losses, err error) {
	if !slices.Contains(ConvertTo(), to) {
		return 0, nil, say.Errorf("--to %s is no format that can be written", to).WithHint(say.KnownHint(to, ConvertTo()))
	}
	kind, err := Identify(path)
	if err != nil {
		return 0, nil, userError(path, err)
	}
	out := bufio.NewWriterSize(w, 256<<10)
	c := &converter{to: to, out: out}
	switch kind {
	case Recorded:
		err = c.convertTrace(path)
	case Prompts:
		err = c.convertPrompts(path)
	default:
		return 0, nil, say.Errorf("%s is a %s, from which requests are drawn: it has none to convert", path, kind)
	}
	if err == nil {
		err = out.Flush()
	}
	return c.n, c.listLosses(), err
}

// converter writes requests, and counts what it leaves out.
type converter struct {
	to    string
	out   *bufio.Writer
	buf   []byte // of a line
	words []byte // of a prompt
	n     int
	block int // tokens of a block, 0 where there are none
	first int64

	times, rounded, clients, blocks, texts, bodies, rejected, follows int
	unused                                                            map[string]int
	vocabulary                                                        *token.Vocabulary
}

// convertTrace converts the rows of one.
func (c *converter) convertTrace(path string) error {
	rows, err := OpenRows(path)
	if err != nil {
		return userError(path, err)
	}
	c.block, c.vocabulary, c.rejected = rows.block, token.Universal(), rows.count.Records-rows.requests()
	c.unused = rows.count.Unused
	var replay *Replay
	if c.to != "pitot" {
		if replay, err = rows.NewReplay(ReplayConfig{Nonce: 1}); err != nil {
			return err
		}
	}
	if err := c.writeHead("lengths"); err != nil {
		return err
	}
	for i := range rows.Len() {
		if err := c.convertSession(rows, replay, i); err != nil {
			return err
		}
	}
	return nil
}

// convertSession converts a row and those that follow it in its session.
func (c *converter) convertSession(rows *Rows, replay *Replay, i int64) (err error) {
	due, turns := int64(0), rows.turnsOf(i)
	for turn := range 1 + len(turns) {
		var e asking
		take := func(q *row) {
			e = asking{
				due: q.at, timed: rows.HasTimes(), after: Unknown, input: int(q.input), output: int(q.output),
				blocks: slices.Clone(q.blocks), client: q.client,
			}
			if turn > 0 {
				e.due, e.timed, e.after = due+q.after, true, q.after
			}
		}
		if turn == 0 {
			err = rows.readRow(i, take)
		} else {
			err = rows.turnAt(turns[turn-1], take)
		}
		if err != nil {
			return err
		}
		if due = e.due; i == 0 && turn == 0 {
			c.first = due
		}
		if rows.form.name == ragPulseForm { // its components are no blocks
			c.blocks += min(len(e.blocks), 1)
			e.blocks = nil
		}
		if c.to == "openai" {
			q, err := SessionReplay{replay}.At(TurnItem(i, int32(turn)))
			if err != nil {
				return err
			}
			e.messages = q.Messages
		}
		if err := c.write(&e); err != nil {
			return err
		}
	}
	return nil
}

// convertPrompts converts the records of a file.
func (c *converter) convertPrompts(path string) error {
	f, err := Open(path, FileOptions{InOrder: true})
	if err != nil {
		return userError(path, err)
	}
	defer f.Close()
	if f.HasTimes() {
		if err := f.inTime(); err != nil {
			return err
		}
		c.first = f.entries[0].due
	}
	c.unused = f.stats.Unused
	c.vocabulary, c.rejected = token.Universal(), f.stats.Records-f.stats.Requests
	if err := c.writeHead("prompts"); err != nil {
		return err
	}
	for i := range int64(f.stats.Requests) {
		q, err := f.At(i)
		if err != nil {
			return err
		}
		e := asking{after: Unknown, input: Unknown, output: q.Output, messages: q.Messages, body: q.Body}
		if f.HasTimes() {
			e.due, e.timed = f.entries[i].due, true
		}
		if err := c.write(&e); err != nil {
			return err
		}
	}
	return nil
}

func (c *converter) writeHead(holds string) error {
	if c.to != "pitot" {
		return nil
	}
	return c.writeLine(requestsHead{requestsSchema, holds, c.block})
}

func (c *converter) writeLine(x any) error {
	line := json.NewEncoder(c.out) // which ends it
	line.SetEscapeHTML(false)
	return line.Encode(x)
}

// messageTexts returns the text of messages.
func (c *converter) messageTexts(messages []Message) (list []requestsMessage) {
	for _, m := range messages {
		c.words = m.Append(c.words[:0], c.vocabulary)
		list = append(list, requestsMessage{m.Role, string(c.words)})
	}
	return list
}

func knownOrNil(n int) *int64 {
	if n == Unknown {
		return nil
	}
	x := int64(n)
	return &x
}

// write writes one request.
func (c *converter) write(e *asking) error {
	c.n++
	due := e.due - c.first
	switch c.to {
	case "pitot":
		r := requestsRow{Input: knownOrNil(e.input), Output: knownOrNil(e.output), Blocks: e.blocks, Client: e.client, Body: e.body}
		if e.timed {
			r.DueNS = &due
		}
		if e.after != Unknown {
			r.AfterNS = &e.after
		}
		if e.messages != nil {
			texts := c.messageTexts(e.messages)
			r.Messages = &texts
		}
		return c.writeLine(r)
	case "openai":
		return c.openAI(e)
	}
	b := append(c.buf[:0], '{')
	add := func(key string) {
		if len(b) > 1 {
			b = append(b, ", "...)
		}
		b = append(append(append(b, '"'), key...), `": `...)
	}
	switch {
	case e.after != Unknown && c.to == "aiperf":
		if e.after%1e6 != 0 {
			c.rounded++
		}
		add("delay")
		b = strconv.AppendInt(b, (e.after+5e5)/1e6, 10)
	case e.timed:
		if e.after != Unknown {
			c.follows++
		}
		add("timestamp")
		if c.to == "timed_trace" {
			b = appendSeconds(b, due)
		} else {
			if due%1e6 != 0 {
				c.rounded++
			}
			b = strconv.AppendInt(b, (due+5e5)/1e6, 10)
		}
	}
	if e.client != "" {
		if c.to == "aiperf" {
			add("session_id")
			name, _ := json.Marshal(e.client)
			b = append(b, name...)
		} else {
			c.clients++
		}
	}
	if e.messages != nil && c.to == "aiperf" {
		add("messages")
		list, err := json.Marshal(c.messageTexts(e.messages))
		if err != nil {
			return fmt.Errorf("convert: %w", err)
		}
		b = append(b, list...)
		if e.body != nil {
			add("extra")
			b = append(b, bytes.TrimSpace(e.body)...)
		}
	} else {
		if e.messages != nil {
			c.texts++
			e.input = 0
			for _, m := range c.messageTexts(e.messages) {
				e.input += token.Universal().Count([]byte(m.Content))
			}
		}
		if e.body != nil {
			c.bodies++
		}
		add("input_length")
		b = strconv.AppendInt(b, int64(max(e.input, 0)), 10)
	}
	if e.output != Unknown {
		add("output_length")
		b = strconv.AppendInt(b, int64(e.output), 10)
	}
	if e.blocks != nil {
		add("hash_ids")
		b = append(b, '[')
		for i, id := range e.blocks {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = strconv.AppendInt(b, id, 10)
		}
		b = append(b, ']')
	}
	b = append(b, "}\n"...)
	c.buf = b
	_, err := c.out.Write(b)
	return err
}

// openAI writes a chat request.
func (c *converter) openAI(e *asking) error {
	if e.timed {
		c.times++
	}
	if e.client != "" {
		c.clients++
	}
	o := map[string]any{}
	if e.body != nil {
		if err := json.Unmarshal(e.body, &o); err != nil {
			return fmt.Errorf("convert: %w", err)
		}
	}
	if o["messages"] == nil {
		o["messages"] = c.messageTexts(e.messages)
	}
	if e.output != Unknown {
		o["max_tokens"] = max(e.output, 1)
	}
	return c.writeLine(o)
}

// appendSeconds writes nanoseconds as seconds, with a decimal point always.
func appendSeconds(b []byte, ns int64) []byte {
	b = strconv.AppendInt(b, ns/1e9, 10)
	fraction := fmt.Sprintf(".%09d", ns%1e9)
	for len(fraction) > 2 && fraction[len(fraction)-1] == '0' {
		fraction = fraction[:len(fraction)-1]
	}
	return append(b, fraction...)
}

// listLosses tells what was left out.
func (c *converter) listLosses() (list Losses) {
	say1 := func(k int, format string, args ...any) {
		if k > 0 {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	name := map[string]string{"mooncake": "Mooncake's trace", "timed_trace": "vLLM's timed trace", "aiperf": "AIPerf's trace", "openai": "OpenAI JSONL"}[c.to]
	say1(c.rejected, "%s of the file left out, which cannot be sent: pitot workload lint says why", say.Plural(c.rejected, "record"))
	say1(c.follows, "%s has no turns of sessions: %s at the earliest time", name, say.Plural(c.follows, "request"))
	for _, f := range unusedFields(c.unused, "") {
		list = append(list, f.Text)
	}
	say1(c.times, "%s has no times: %s left out", name, say.Plural(c.times, "due time"))
	say1(c.rounded, "%s has whole milliseconds: %s rounded", name, say.Plural(c.rounded, "due time"))
	say1(c.clients, "%s has no clients: those of %s left out", name, say.Plural(c.clients, "request"))
	say1(c.texts, "%s has no text: that of %s left out, lengths are as counted here", name, say.Plural(c.texts, "prompt"))
	say1(c.bodies, "%s has no other fields: those of %s left out", name, say.Plural(c.bodies, "request"))
	say1(c.blocks, "components of prompts are no blocks: those of %s left out", say.Plural(c.blocks, "request"))
	if c.block > 0 && (c.to == "timed_trace" || c.block != 512 && (c.to == "mooncake" || c.to == "aiperf")) {
		list = append(list, fmt.Sprintf("%s does not say how long its blocks are: its reader needs %d tokens", name, c.block))
	}
	return list
}

// requestsForm reads the rows of Pitot's own format.
func requestsForm(h *Head) rowForm {
	f := rowForm{name: "pitot", header: true}
	var head requestsHead
	_ = json.Unmarshal([]byte(h.Line()), &head)
	f.block = head.BlockTokens
	for line := range bytes.Lines(h.Text) {
		_ = eachMember(bytes.TrimSpace(line), func(key, _ []byte) {
			if string(key) == "due_ns" {
				f.unit = "ns"
			}
		})
	}
	known := keys{}
	f.parse = func(raw []byte, q *row) (reason string) {
		at, after := false, int64(Unknown)
		number := func(value []byte, most int64) int64 {
			n, err := strconv.ParseInt(string(value), 10, 64)
			if err != nil || n < 0 || n > most {
				reason = "a length or a time that is none"
			}
			return n
		}
		err := eachMember(raw, func(key, value []byte) {
			switch string(key) {
			case "due_ns":
				q.at, at = number(value, math.MaxInt64/2), true
			case "after_ns":
				after = number(value, mostDelay)
			case "input_tokens":
				q.input = int32(number(value, MaxLength))
			case "output_tokens":
				q.output = int32(number(value, MaxLength))
			case "client":
				q.client = unquoteValue(value)
			case "blocks":
				var ok bool
				if q.blocks, ok = appendNumbers(q.blocks, value); !ok {
					reason = "blocks is no list of numbers"
				}
			default:
				q.passOver(string(key), known.fieldOf(key).Field, string(value))
			}
		})
		switch {
		case err != nil:
			return "no JSON object"
		case reason == "" && f.unit != "" && !at:
			return "no due_ns, which others have"
		}
		if q.follows = q.client != "" && after != Unknown; q.follows {
			q.after = after
		}
		return reason
	}
	return f
}

// isRequests tells Pitot's own format, with lengths or with prompts.
func (h *Head) isRequests(holds string) bool {
	if !h.HasAnyKey("schema") {
		return false
	}
	var head requestsHead
	return json.Unmarshal([]byte(h.Line()), &head) == nil && head.Schema == requestsSchema && head.Holds == holds
}

// parseRequest reads a prompt in Pitot's own format.
func parseRequest(raw []byte) (record, error) {
	var q requestsRow
	if err := json.Unmarshal(raw, &q); err != nil {
		return record{}, fmt.Errorf("want a request of %s: %w", requestsSchema, err)
	}
	r := record{output: Unknown, body: q.Body}
	if q.DueNS != nil {
		if *q.DueNS < 0 || *q.DueNS > math.MaxInt64/2 {
			return record{}, errors.New("due_ns: want nanoseconds since the first request")
		}
		r.due, r.timed = *q.DueNS, true
	}
	if string(q.Body) == "null" {
		r.body = nil
	} else if q.Body != nil && bytes.TrimSpace(q.Body)[0] != '{' {
		return record{}, fmt.Errorf("body: want a JSON object")
	}
	if q.Output != nil {
		if *q.Output < 0 || *q.Output > MaxLength {
			return record{}, fmt.Errorf("output_tokens: want a whole number of tokens, 0 to %d", MaxLength)
		}
		if r.output = int(*q.Output); r.output == 0 {
			return record{}, skipNoOutput
		}
	}
	if q.Messages == nil || len(*q.Messages) == 0 {
		return record{}, skipEmpty
	}
	for _, m := range *q.Messages {
		r.messages = append(r.messages, TextMessage(m.Role, m.Content))
	}
	return r, nil
}
