package workload

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"pitot/internal/say"
)

// row is one request as its line has it.
type row struct {
	at            int64 // nanoseconds
	input, output int32
	client        string
	blocks        []int64 // in RAGPulse's traces with their component in the top byte
	chat, parent  int64   // Qwen-Bailian's: the request, and the one before it in its conversation; below 0 for none
}

// chats finds the conversation of each of Qwen-Bailian's requests, which name the one before
// theirs: that of the first.
type chats map[int64]int64

// mostChats bounds how many are kept: of further ones nothing goes on.
const mostChats = 1 << 20

func (c chats) of(q *row) string {
	if q.chat < 0 {
		return ""
	}
	root, ok := c[q.parent]
	if !ok {
		root = q.chat
	}
	if len(c) < mostChats {
		c[q.chat] = root
	}
	return strconv.FormatInt(root, 10)
}

// Names of the forms of traces.
const (
	mooncakeForm = "mooncake"
	bailianForm  = "bailian"
	ragPulseForm = "ragpulse"
)

// rowForm is how a line says what a request was.
type rowForm struct {
	name   string
	unit   string // of times, "" where there are none
	header bool   // the first line is none
	block  int    // tokens of a block, where the file says it
	array  bool   // the rows are the elements of a JSON array
	parse  func(raw []byte, q *row) (reason string)
}

// mostRow is the most bytes that a row of a trace may have.
const mostRow = 16 << 20

// scanRows hands on the rows of a trace, with where each begins in the text, and counts
// them. What it hands on is not to be kept; an error of take ends it.
func scanRows(r io.Reader, take func(q *row, offset int64, raw []byte) error) (*Trace, error) {
	in := bufio.NewReaderSize(r, 256<<10)
	if mark, _ := in.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = in.Discard(3)
	}
	head, err := in.Peek(headBytes)
	if err != nil && err != io.EOF {
		return nil, err
	}
	form, err := rowFormOf(newHead(head))
	if err != nil {
		return nil, err
	}
	t := &Trace{Format: form.name, Unit: form.unit, Rejected: map[string]int{}, First: map[string]int{}}
	var q row
	kept, conversations := 0, chats{}
	visit := func(offset int64, line int, raw []byte) error {
		t.Records++
		q = row{input: Unknown, output: Unknown, blocks: q.blocks[:0], chat: Unknown, parent: Unknown}
		if reason := form.parse(raw, &q); reason != "" {
			t.reject(line, reason)
			return nil
		}
		kept++
		if form.name == bailianForm {
			q.client = conversations.of(&q)
		}
		if one := q; len(q.blocks) == 0 {
			one.blocks = nil
			return take(&one, offset, raw)
		}
		return take(&q, offset, raw)
	}
	if form.array {
		n := 0
		err = scanArray(in, 0, func(_ container, offset int64, raw []byte) error {
			n++
			return visit(offset, n, raw)
		})
	} else {
		err = scanRowLines(in, form.header, visit, func(line int) {
			t.Records++
			t.reject(line, fmt.Sprintf("a line of more than %d MiB", mostRow>>20))
		})
	}
	if err != nil {
		return nil, err
	}
	if n := t.Records - kept; float64(n) > mostRejected*float64(t.Records) || kept == 0 {
		return nil, fmt.Errorf("%d of %d rows cannot be read%s", n, t.Records, t.reasons())
	}
	return t, nil
}

// scanRowLines hands on the lines that are not blank; long those that are too long.
func scanRowLines(in *bufio.Reader, header bool, visit func(offset int64, line int, raw []byte) error, long func(line int)) error {
	var kept []byte // of a line that is longer than the buffer
	offset := int64(0)
	for line := 1; ; {
		part, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			if len(kept) <= mostRow {
				kept = append(kept, part...)
			} else {
				offset += int64(len(part))
			}
			continue
		}
		if err != nil && err != io.EOF {
			return err
		}
		raw := part
		if len(kept) > 0 {
			kept = append(kept, part...)
			raw = kept
		}
		switch text := bytes.TrimSpace(raw); {
		case len(text) == 0:
		case header:
			header = false
		case len(raw) > mostRow:
			long(line)
		default:
			if err := visit(offset+int64(bytes.IndexByte(raw, text[0])), line, text); err != nil {
				return err
			}
		}
		offset += int64(len(raw))
		kept = kept[:0]
		if err == io.EOF {
			return nil
		}
		line++
	}
}

// rowFormOf tells of which form the rows of a trace are.
func rowFormOf(h *Head) (rowForm, error) {
	line := h.Line()
	switch {
	case strings.TrimSpace(line) == "":
		return rowForm{}, errors.New("it is empty")
	case h.isRequests("lengths"):
		return requestsForm(h), nil
	case h.Keys != nil || line[0] == '{':
		return jsonForm(h), nil
	case h.Columns != nil && !isNumber(h.Columns[0]):
		return csvForm(h)
	case isNumber(line):
		return rowForm{name: "times", unit: "s", parse: func(raw []byte, q *row) string {
			at, ok := nanoseconds(string(raw))
			if !ok {
				return "no time in seconds"
			}
			q.at = at
			return ""
		}}, nil
	}
	return rowForm{}, say.Errorf("%.40q is no trace", line).WithHint("JSON lines with timestamp, input_length and output_length, CSV with a header, or a time in seconds a line")
}

// jsonForm tells how JSON lines count time: as their tools write them Mooncake's are in whole
// milliseconds, those of Qwen-Bailian and RAGPulse in seconds, and so are those that are
// written with a decimal point.
func jsonForm(h *Head) rowForm {
	f := rowForm{name: mooncakeForm, unit: "ms", array: containerOf(h.Text) == jsonArray}
	quoted, point, timed := false, false, false
	for line := range bytes.Lines(h.Text) {
		_ = fields(bytes.TrimRight(bytes.TrimSpace(line), ","), func(key, value []byte) {
			if string(key) == "timestamp" && len(value) > 0 && string(value) != "null" {
				timed = true
				quoted = quoted || value[0] == '"'
				point = point || bytes.IndexByte(value, '.') >= 0
			}
		})
	}
	switch {
	case h.Has("chat_id"):
		f.name, f.unit = bailianForm, "s"
	case quoted:
		f.name, f.unit = ragPulseForm, "s"
	case point:
		f.unit = "s"
	case !timed && !h.Has("timestamp"):
		f.unit = ""
	}
	unit := int64(1e9)
	if f.unit == "ms" {
		unit = 1e6
	}
	f.parse = func(raw []byte, q *row) string { return parseJSONRow(raw, q, unit, f.unit != "") }
	return f
}

// components are the parts of a prompt in RAGPulse's trace, in their order.
var components = []string{"sys_prompt", "passages_ids", "history", "web_search", "user_input"}

// component is where the part of an id stands.
const component = 56

func parseJSONRow(raw []byte, q *row, unit int64, timed bool) (reason string) {
	at, fail := false, func(why string) {
		if reason == "" {
			reason = why
		}
	}
	length := func(value []byte) int32 {
		n, ok := wholeNumber(value)
		if !ok || n < 0 || n > MaxLength {
			fail("a length that is no number of tokens")
			return Unknown
		}
		return int32(n)
	}
	err := fields(raw, func(key, value []byte) {
		if string(value) == "null" || len(value) == 0 {
			return
		}
		switch string(key) {
		case "timestamp":
			text, _ := strings.CutPrefix(string(value), `"`)
			stamp, ok := timeIn(strings.TrimSuffix(text, `"`), unit)
			if !ok {
				fail("no time that is known")
			}
			q.at, at = stamp, true
		case "input_length":
			q.input = length(value)
		case "output_length":
			q.output = length(value)
		case "session_id":
			q.client = unquoted(value)
		case "chat_id":
			if n, ok := wholeNumber(value); ok {
				q.chat = n
			}
		case "parent_chat_id":
			if n, ok := wholeNumber(value); ok {
				q.parent = n
			}
		case "hash_ids":
			switch value[0] {
			case '[':
				var ok bool
				if q.blocks, ok = appendNumbers(q.blocks, value); !ok {
					fail("hash_ids is no list of numbers")
				}
			case '{':
				if fields(value, func(key, ids []byte) {
					from := len(q.blocks)
					var ok bool
					if q.blocks, ok = appendNumbers(q.blocks, ids); !ok {
						fail("hash_ids is no list of numbers")
					}
					for k, name := range components {
						if name == string(key) {
							for i := range q.blocks[from:] {
								q.blocks[from+i] += int64(k+1) << component
							}
						}
					}
				}) != nil {
					fail("hash_ids is no list of numbers")
				}
			}
		}
	})
	switch {
	case err != nil:
		return "no JSON object with timestamp, input_length and output_length"
	case reason != "":
		return reason
	case !at && q.input == Unknown && q.output == Unknown:
		return "none of timestamp, input_length and output_length"
	case timed && !at:
		return "no timestamp, which others have"
	}
	return ""
}

// csvForm binds the columns of a header, whatever their order.
func csvForm(h *Head) (rowForm, error) {
	column := func(names []string) int {
		for _, name := range names {
			for i, c := range h.Columns {
				if c == name {
					return i
				}
			}
		}
		return -1
	}
	at, input, output, client := column(timeColumns), column(inputColumns), column(outputColumns), column(clientColumns)
	if at < 0 && input < 0 && output < 0 {
		return rowForm{}, say.Errorf("no column of its header is known: %.200s", strings.Join(h.Columns, ", ")).WithHint("name them timestamp, input_tokens, output_tokens")
	}
	f := rowForm{name: "csv", unit: "s", header: true}
	if at < 0 {
		f.unit = ""
	}
	var cells [][]byte
	f.parse = func(raw []byte, q *row) (reason string) {
		var ok bool
		if cells, ok = splitCells(cells[:0], raw, h.separator()); !ok {
			return "broken quotes"
		}
		if len(cells) != len(h.Columns) {
			return "another number of columns than the header"
		}
		length := func(i int) int32 {
			if i < 0 || reason != "" {
				return Unknown
			}
			n, ok := wholeNumber(bytes.TrimSpace(cells[i]))
			if !ok || n < 0 || n > MaxLength {
				reason = fmt.Sprintf("column %d is no number of tokens", i+1)
				return Unknown
			}
			return int32(n)
		}
		q.input, q.output = length(input), length(output)
		if at >= 0 && reason == "" {
			if q.at, ok = stampOf(string(cells[at])); !ok {
				return "no time that is known"
			}
		}
		if client >= 0 {
			q.client = string(cells[client])
		}
		return reason
	}
	return f, nil
}

// splitCells splits a line of CSV.
func splitCells(cells [][]byte, line []byte, separator byte) ([][]byte, bool) {
	if bytes.IndexByte(line, '"') < 0 {
		for {
			i := bytes.IndexByte(line, separator)
			if i < 0 {
				return append(cells, line), true
			}
			cells, line = append(cells, line[:i]), line[i+1:]
		}
	}
	r := csv.NewReader(bytes.NewReader(line))
	r.Comma, r.FieldsPerRecord = rune(separator), -1
	texts, err := r.Read()
	if err != nil {
		return cells, false
	}
	for _, s := range texts {
		cells = append(cells, []byte(s))
	}
	return cells, true
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return err == nil
}

// nanoseconds of so many seconds, as they are written: exact to the nanosecond.
func nanoseconds(text string) (int64, bool) { return timeIn(text, 1e9) }

// timeIn is a time in nanoseconds that is written in a unit of so many of them.
func timeIn(text string, unit int64) (int64, bool) {
	text = strings.TrimSpace(text)
	whole, fraction, _ := strings.Cut(text, ".")
	if n, err := strconv.ParseInt(whole, 10, 64); err == nil && len(fraction) <= 9 && n >= 0 && n < math.MaxInt64/unit-1 {
		f := int64(0)
		if fraction != "" {
			var err error
			if f, err = strconv.ParseInt(fraction+"000000000"[len(fraction):], 10, 64); err != nil || f < 0 {
				return 0, false
			}
		}
		return n*unit + f/(1e9/unit), true
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0 && x < math.MaxInt64/float64(unit)) {
		return 0, false
	}
	return int64(math.Round(x * float64(unit))), true
}

// dateForms are how times of day are written.
var dateForms = []string{"2006-01-02 15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", time.RFC3339Nano, "2006-01-02T15:04:05.999999999"}

func stampOf(text string) (at int64, ok bool) {
	if at, ok := nanoseconds(text); ok {
		return at, ok
	}
	for _, form := range dateForms {
		if when, err := time.Parse(form, strings.TrimSpace(text)); err == nil && when.Year() > 1970 && when.Year() < 2200 {
			return when.UnixNano(), true
		}
	}
	return 0, false
}
