package workload

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"pitot/internal/say"
	"pitot/internal/workload/field"
)

// row is one request as its line has it.
type row struct {
	at            int64 // nanoseconds
	input, output int32
	client        string
	blocks        []int64 // in RAGPulse's traces with their component in the top byte
	chat, parent  int64   // Qwen-Bailian's: the request, and the one before it in its conversation; below 0 for none
	// after is the time from the previous answer in its session to this request, in nanoseconds. It
	// applies where the request has no time of its own, that is, where it follows.
	after   int64
	follows bool
	unused  []string // fields that change what is sent, or when, and are not used
}

// chats finds the conversation of each of Qwen-Bailian's requests, which name the one before
// theirs: that of the first.
type chats map[int64]int64

// mostChats bounds how many are kept: of further ones nothing goes on.
const mostChats = 1 << 20

func (c chats) conversationOf(q *row) string {
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

// rowForm is a way in which a line states what a request was.
type rowForm struct {
	name   string
	unit   string // of times, "" where there are none
	header bool   // the first line is none
	table  *table // that the rows are of, nil for none
	block  int    // tokens of a block, where the file says it
	array  bool   // the rows are the elements of a JSON array
	parse  func(raw []byte, q *row) (reason string)
}

// mostRow is the most bytes that a row of a trace may have.
const mostRow = 16 << 20

// scanRows hands on the rows of a trace, with where each begins in the text, and counts
// them. What it hands on is not to be kept; an error of take ends it.
func scanRows(r io.Reader, name string, take func(q *row, offset int64, raw []byte) error) (*Trace, error) {
	in := bufio.NewReaderSize(r, 256<<10)
	if mark, _ := in.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = in.Discard(3)
	}
	head, err := in.Peek(headBytes)
	if err != nil && err != io.EOF {
		return nil, err
	}
	form, err := rowFormOf(newHead(name, head))
	if err != nil {
		return nil, err
	}
	t := &Trace{Format: form.name, Unit: form.unit, Rejected: map[string]int{}, First: map[string]int{}, Unused: map[string]int{}}
	var q row
	kept, conversations := 0, chats{}
	if form.table != nil {
		t.Above = form.table.above
	}
	begun := map[string]bool{} // sessions, where rows follow others
	visit := func(offset int64, line int, raw []byte) error {
		if form.table != nil && form.table.isComment(raw) {
			return nil
		}
		t.Records++
		q = row{input: Unknown, output: Unknown, blocks: q.blocks[:0], chat: Unknown, parent: Unknown, unused: q.unused[:0]}
		if reason := form.parse(raw, &q); reason != "" {
			t.reject(line, reason)
			return nil
		}
		switch {
		case q.follows && !begun[q.client]:
			t.reject(line, "a delay behind a turn that is not there")
			return nil
		case q.follows:
			t.Turns++
		case q.client != "" && len(begun) < mostSessions:
			begun[q.client] = true
		}
		kept++
		for _, name := range q.unused {
			t.Unused[name]++
		}
		if form.name == bailianForm {
			q.client = conversations.conversationOf(&q)
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
		long := func(line int) {
			t.Records++
			t.reject(line, fmt.Sprintf("a line of more than %d MiB", mostRow>>20))
		}
		if form.table != nil {
			err = scanTable(in, form.table, visit)
		} else {
			err = scanRowLines(in, form.header, visit, long)
		}
	}
	if err != nil {
		return nil, err
	}
	if n := t.Records - kept; float64(n) > mostRejected*float64(t.Records) || kept == 0 {
		return nil, fmt.Errorf("%d of %d rows cannot be read%s", n, t.Records, t.rejectReasons())
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

// mostDelay is the longest delay within a session.
const mostDelay = int64(1e15)

// mostSessions bounds the sessions whose further turns are known.
const mostSessions = 1 << 20

// scanTable hands on the rows of a table.
func scanTable(in *bufio.Reader, t *table, visit func(offset int64, line int, raw []byte) error) error {
	above, err := io.ReadAll(io.LimitReader(in, t.begin))
	if err != nil {
		return err
	}
	rows := bufio.NewScanner(in)
	rows.Buffer(make([]byte, 0, 64<<10), mostRow)
	from, end := t.begin, t.begin
	line, next := 1, 1+bytes.Count(above, []byte("\n"))
	split := t.splitRecords()
	rows.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		advance, record, err := split(data, atEOF)
		from, line = end, next
		end += int64(advance)
		next += bytes.Count(data[:advance], []byte("\n"))
		return advance, record, err
	})
	for rows.Scan() {
		raw := rows.Bytes()
		if len(bytes.TrimSpace(raw)) == 0 {
			continue
		}
		if err := visit(from, line, raw); err != nil {
			return err
		}
	}
	if errors.Is(rows.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("line %d: a row of more than %d MiB: a quote may not be closed", next, mostRow>>20)
	}
	return rows.Err()
}

// rowFormOf tells of which form the rows of a trace are.
func rowFormOf(h *Head) (rowForm, error) {
	line := h.Line()
	switch {
	case h.problem != nil:
		return rowForm{}, h.problem
	case strings.TrimSpace(line) == "":
		return rowForm{}, errors.New("it is empty")
	case h.isRequests("lengths"), h.isRequests("prompts"):
		return requestsForm(h), nil
	case h.Keys != nil || line[0] == '{':
		return jsonForm(h), nil
	case h.table != nil:
		return tableForm(h.table)
	case isNumber(line):
		return rowForm{name: "times", unit: "s", parse: func(raw []byte, q *row) string {
			var ok bool
			if q.at, ok = timeIn(string(raw), 1e9); !ok {
				return "no time in seconds"
			}
			return ""
		}}, nil
	}
	if names := cellsOf([]byte(line), separatorOf([]byte(line), 0)); len(names) > 1 {
		return rowForm{}, say.Errorf("no column of its header is known: %.200s", strings.Join(names, ", ")).WithHint(field.Wanted)
	}
	return rowForm{}, say.Errorf("%.40q is no trace", line).WithHint("JSON lines with timestamp, input_length and output_length, CSV with a header, or a time in seconds a line")
}

// keys tells what the keys of JSON objects stand for, each of which is looked up once.
type keys map[string]field.Is

func (k keys) fieldOf(key []byte) field.Is {
	is, ok := k[string(key)]
	if !ok {
		is = field.ParseName(string(key))
		if len(k) < 1000 {
			k[string(key)] = is
		}
	}
	return is
}

// timeUnit finds out what the numbers of times are in that JSON objects have, from how a file
// begins: as their tools write them those of "timestamp" are in whole milliseconds (Mooncake's,
// AIPerf's), in seconds where they have a decimal point, and others in seconds; times since 1970
// show by their size. quoted says that they are strings, timed that there are any.
func timeUnit(h *Head) (unit int64, quoted, timed bool) {
	known, whole, point, least := keys{}, false, false, math.Inf(1)
	look := func(raw []byte) {
		_ = eachMember(raw, func(key, value []byte) {
			is := known.fieldOf(key)
			if is.Field != field.Time || is.Unit != 0 || len(value) == 0 || string(value) == "null" {
				return
			}
			timed = true
			if value[0] == '"' {
				quoted, value = true, bytes.Trim(value, `"`)
			}
			x, err := strconv.ParseFloat(string(value), 64)
			if err != nil {
				return
			}
			least = min(least, x)
			point = point || bytes.IndexByte(value, '.') >= 0
			whole = whole || string(key) == "timestamp"
		})
	}
	look(h.first)
	for line := range bytes.Lines(h.Text) {
		look(bytes.TrimRight(bytes.TrimSpace(line), ","))
	}
	switch {
	case sinceUnit(least) > 0:
		return sinceUnit(least), quoted, timed
	case whole && !point && !quoted && !h.HasAnyKey("chat_id"):
		return 1e6, quoted, timed
	}
	return 1e9, quoted, timed
}

// sinceUnit returns the unit of a time since 1970, judged by its size. It returns 0 where the value
// is no such time of this century.
func sinceUnit(x float64) int64 {
	for _, unit := range []int64{1e9, 1e6, 1e3, 1} {
		if seconds := x * float64(unit) / 1e9; seconds >= 1e9 && seconds < 4.1e9 {
			return unit
		}
	}
	return 0
}

// jsonForm tells how JSON objects say what requests were.
func jsonForm(h *Head) rowForm {
	f := rowForm{name: mooncakeForm, array: containerOf(h.Text) == jsonArray}
	unit, quoted, timed := timeUnit(h)
	switch {
	case h.HasAnyKey("chat_id"):
		f.name = bailianForm
	case quoted && h.HasAnyKey("hash_ids"):
		f.name = ragPulseForm
	case !h.HasAnyKey("timestamp", "input_length", "output_length", "hash_ids"):
		f.name = "json"
	}
	if timed || h.hasField(field.Time) {
		f.unit = map[int64]string{1e9: "s", 1e6: "ms", 1e3: "µs", 1: "ns"}[unit]
	}
	known := keys{}
	f.parse = func(raw []byte, q *row) string {
		return parseJSONRow(bytes.TrimRight(raw, ", \t"), q, unit, f.unit != "", known)
	}
	return f
}

// components are the parts of a prompt in RAGPulse's trace, in their order.
var components = []string{"sys_prompt", "passages_ids", "history", "web_search", "user_input"}

// component is where the part of an id stands.
const component = 56

func parseJSONRow(raw []byte, q *row, unit int64, timed bool, known keys) (reason string) {
	fail := func(why string) {
		if reason == "" {
			reason = why
		}
	}
	const none = math.MaxInt
	at, in, out, client := none, none, none, none // how sure each is
	session, delay := false, ""
	// takeLength takes a length that is surer than the one so far; what may be another thing
	// than a length counts least.
	takeLength := func(to *int32, best *int, rank int, either bool, value []byte) {
		if either {
			rank = none - 1
			if _, ok := wholeNumber(value); !ok {
				return
			}
		}
		if rank < *best {
			var ok bool
			if *to, ok = tokenCount(bytes.Trim(value, `"`)); !ok {
				fail("a length that is no number of tokens")
			}
			*best = rank
		}
	}
	var take func(key, value []byte)
	take = func(key, value []byte) {
		if len(value) == 0 || string(value) == "null" {
			return
		}
		switch string(key) {
		case "chat_id":
			if n, ok := wholeNumber(value); ok {
				q.chat = n
			}
			return
		case "parent_chat_id":
			if n, ok := wholeNumber(value); ok {
				q.parent = n
			}
			return
		case "hash_ids":
			takeBlocks(value, q, fail)
			return
		}
		switch is := known.fieldOf(key); is.Field {
		case field.Time:
			if is.Rank < at {
				stamp, ok := stampIn(strings.Trim(string(value), `"`), unit, is.Unit)
				if !ok {
					fail("no time that is known")
				}
				q.at, at = stamp, is.Rank
			}
		case field.Delay:
			after, ok := timeIn(strings.Trim(string(value), `"`), cmp.Or(is.Unit, 1e6)) // milliseconds, as AIPerf has them
			if !ok || after > mostDelay {
				fail("a delay that is none")
			}
			q.after, q.follows, delay = after, true, string(key)
		case field.Input, field.InputEither:
			takeLength(&q.input, &in, is.Rank, is.Field == field.InputEither, value)
		case field.Output, field.OutputEither:
			takeLength(&q.output, &out, is.Rank, is.Field == field.OutputEither, value)
		case field.Usage:
			_ = eachMember(value, take)
		case field.Session:
			if value[0] == '{' || value[0] == '[' {
				return
			}
			session = true
			if is.Rank < client {
				q.client, client = unquoteValue(value), is.Rank
			}
		case field.Client:
			if rank := 1000 + is.Rank; rank < client && value[0] != '{' && value[0] != '[' {
				q.client, client = unquoteValue(value), rank
			}
		default:
			q.passOver(string(key), is.Field, string(value))
		}
	}
	err := eachMember(raw, take)
	switch {
	case err != nil:
		return "no JSON object with timestamp, input_length and output_length"
	case reason != "":
		return reason
	case at == none && q.input == Unknown && q.output == Unknown:
		return "none of timestamp, input_length and output_length"
	case at != none || !timed:
		if q.follows = false; delay != "" { // it has a time of its own
			q.unused = append(q.unused, delay)
		}
	case !q.follows || !session:
		return "no timestamp, which others have"
	}
	return ""
}

// passOver notes a field that is not used, if it changes what is sent, or when.
func (q *row) passOver(name string, f field.Field, value string) {
	if changesRequest(f) && !blankCell(value) {
		q.unused = append(q.unused, name)
	}
}

// takeBlocks reads the ids of a row's blocks.
func takeBlocks(value []byte, q *row, fail func(why string)) {
	const why = "hash_ids is no list of numbers"
	switch value[0] {
	case '[':
		var ok bool
		if q.blocks, ok = appendNumbers(q.blocks, value); !ok {
			fail(why)
		}
	case '{':
		if eachMember(value, func(key, ids []byte) {
			from := len(q.blocks)
			var ok bool
			if q.blocks, ok = appendNumbers(q.blocks, ids); !ok {
				fail(why)
			}
			for k, name := range components {
				if name == string(key) {
					for i := range q.blocks[from:] {
						q.blocks[from+i] += int64(k+1) << component
					}
				}
			}
		}) != nil {
			fail(why)
		}
	}
}

// tableForm binds the columns of a table, whatever their order.
func tableForm(t *table) (rowForm, error) {
	at, input, output, usage := t.columnIndex(field.Time), t.columnIndex(field.Input), t.columnIndex(field.Output), t.columnIndex(field.Usage)
	if at < 0 && input < 0 && output < 0 && usage < 0 {
		return rowForm{}, say.Errorf("no column of its header says when requests came, or how long they are: %.200s", strings.Join(t.columns, ", ")).WithHint(field.Wanted)
	}
	client := t.columnIndex(field.Session)
	if client < 0 {
		client = t.columnIndex(field.Client)
	}
	f := rowForm{name: "csv", table: t}
	if at >= 0 {
		f.unit = "s"
	}
	known := keys{}
	f.parse = func(raw []byte, q *row) (reason string) {
		cells, ok := t.splitCells(raw)
		if !ok {
			if why := t.rejectReason(raw); why == "broken quotes" {
				return why
			}
			return "another number of columns than the header"
		}
		length := func(i int) int32 {
			if i < 0 || reason != "" {
				return Unknown
			}
			n, ok := tokenCount([]byte(commaToPoint(unquoteCell(cells[i]), t.commas)))
			if !ok {
				reason = fmt.Sprintf("column %d is no number of tokens", i+1)
			}
			return n
		}
		q.input, q.output = length(input), length(output)
		if usage >= 0 && (input < 0 || output < 0) && reason == "" {
			inner := row{input: Unknown, output: Unknown}
			if parseJSONRow([]byte(cells[usage]), &inner, 1e9, false, known) == "" {
				if input < 0 {
					q.input = inner.input
				}
				if output < 0 {
					q.output = inner.output
				}
			}
		}
		if at >= 0 && reason == "" {
			if q.at, ok = t.timeAt(cells, at); !ok {
				return "no time that is known"
			}
		}
		if client >= 0 {
			q.client = unquoteCell(cells[client])
		}
		for i, is := range t.is {
			q.passOver(t.columns[i], is.Field, cells[i])
		}
		return reason
	}
	return f, nil
}

// timeAt is the time in a cell of a row, in nanoseconds.
func (t *table) timeAt(cells []string, column int) (int64, bool) {
	return stampIn(commaToPoint(unquoteCell(cells[column]), t.commas), 0, t.is[column].Unit)
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return err == nil
}

// timeIn is a time in nanoseconds that is written in a unit of so many of them: exact to the
// nanosecond.
func timeIn(text string, unit int64) (int64, bool) {
	text = strings.TrimSpace(text)
	whole, fraction, _ := strings.Cut(text, ".")
	if n, err := strconv.ParseInt(whole, 10, 64); err == nil && len(fraction) <= 9 && n >= 0 && n < math.MaxInt64/unit-1 {
		part, err := strconv.ParseUint(fraction+"000000000"[len(fraction):], 10, 63)
		return n*unit + int64(part)/(1e9/unit), err == nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0 && x < math.MaxInt64/float64(unit)) {
		return 0, false
	}
	return int64(math.Round(x * float64(unit))), true
}

// dateForms lists the layouts of times of day.
var dateForms = []string{"2006-01-02 15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04:05.999999999Z0700", "2006-01-02 15:04:05.999999999 UTC", "2006-01-02 15:04:05.999999999-07"}

// stampIn reads a time: a date, or a number in a unit of so many nanoseconds, that of its name
// before that of its file; where both are 0 it is in seconds, or since 1970 in what its size says.
func stampIn(text string, unit, named int64) (at int64, ok bool) {
	unit = cmp.Or(named, unit)
	if unit == 0 {
		unit = 1e9
		if x, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil {
			unit = cmp.Or(sinceUnit(x), unit)
		}
	}
	if at, ok := timeIn(text, unit); ok {
		return at, ok
	}
	return dateIn(text)
}

// dateIn reads a date with a time of day.
func dateIn(text string) (at int64, ok bool) {
	text = strings.TrimSpace(text)
	for _, form := range dateForms {
		if when, err := time.Parse(form, text); err == nil && when.Year() > 1970 && when.Year() < 2200 {
			return when.UnixNano(), true
		}
	}
	return 0, false
}

// isDate reports whether a text is a date.
func isDate(text string) bool {
	_, ok := dateIn(unquoteCell(text))
	return ok
}
