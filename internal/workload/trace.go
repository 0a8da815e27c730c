package workload

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitot/internal/say"
	"pitot/internal/workload/arrival"
)

// Trace is what a file tells of requests without their text: when they came, how long they
// were and what they share. A column that the file has not is nil.
type Trace struct {
	Format   string
	Unit     string         // what times are counted in, as the file has them
	At       []int64        // nanoseconds, in order
	Input    []int32        // tokens of prompts, Unknown where a row does not say
	Output   []int32        // tokens of answers, likewise
	Clients  []string       // who asked: a session or a client
	Blocks   [][]int64      // ids of the blocks of prompts, as in Mooncake's trace
	Records  int            // rows, those left out included
	Rejected map[string]int // reason: rows
	First    map[string]int // reason: the line of the first of them
	Unsorted int            // rows that came before the one above them

	// Of a file of prompts:
	Counted  bool // lengths of prompts are what is counted here, not what a server does
	Same     int  // prompts that were there before
	Empty    int  // requests without a prompt, left out
	Thinking int  // prompts with the reasoning of earlier answers
}

// mostRejected is how many rows may be left out, as a share: a file of which more cannot
// be read is another file than it is taken for.
const mostRejected = 0.5

// column names, in lower case, of the files that are known: Azure's, BurstGPT's, and those
// that people give their own.
var (
	timeColumns   = []string{"timestamp", "time", "arrival", "arrived", "arrived_at", "arrival_time", "due", "t"}
	inputColumns  = []string{"contexttokens", "request tokens", "input_length", "input_tokens", "prompt_tokens", "num_prefill_tokens", "isl", "input"}
	outputColumns = []string{"generatedtokens", "response tokens", "output_length", "output_tokens", "completion_tokens", "num_decode_tokens", "osl", "output"}
	clientColumns = []string{"session id", "session_id", "client", "client_id", "user", "user_id", "conversation_id", "tenant"}
)

// row is one request as its line has it.
type row struct {
	at            int64
	input, output int32
	client        string
	blocks        []int64
	line          int
}

// ReadTrace reads times, lengths and shared blocks of a file: JSON lines as Mooncake's
// ("timestamp" in ms, "input_length", "output_length", "hash_ids"), Qwen-Bailian's and
// RAGPulse's (in seconds); CSV with a header as Azure's and BurstGPT's; or a time in seconds
// a line. What it is shows in its contents; it may be gzipped.
func ReadTrace(path string) (*Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 64<<10)
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		plain, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("read trace %s: %w", path, err)
		}
		in = bufio.NewReaderSize(plain, 64<<10)
	}
	t, err := readTrace(in)
	if err != nil {
		return nil, fmt.Errorf("read trace %s: %w", path, err)
	}
	return t, nil
}

func readTrace(in *bufio.Reader) (*Trace, error) {
	if mark, _ := in.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = in.Discard(3)
	}
	head, err := in.Peek(4096)
	if err != nil && err != io.EOF && !errors.Is(err, bufio.ErrBufferFull) {
		return nil, err
	}
	t := &Trace{Rejected: map[string]int{}, First: map[string]int{}}
	var rows []row
	switch first, _, _ := strings.Cut(strings.TrimLeft(string(head), " \t\r\n"), "\n"); {
	case strings.TrimSpace(first) == "":
		return nil, errors.New("it is empty")
	case first[0] == '{':
		rows, err = t.readLines(in)
	case strings.Contains(first, ",") && !isNumber(strings.Split(first, ",")[0]):
		rows, err = t.readCSV(in)
	case isNumber(strings.TrimSpace(first)):
		rows, err = t.readTimes(in)
	default:
		return nil, say.Errorf("%.40q is no trace", first).WithHint("JSON lines with timestamp, input_length and output_length, CSV with a header, or a time in seconds a line")
	}
	if err != nil {
		return nil, err
	}
	if n := t.Records - len(rows); float64(n) > mostRejected*float64(t.Records) || len(rows) == 0 {
		return nil, fmt.Errorf("%d of %d rows cannot be read%s", n, t.Records, t.reasons())
	}
	t.take(rows)
	return t, nil
}

// Reasons tells why rows were left out, with the line of the first of each.
func (t *Trace) reasons() string {
	var b strings.Builder
	for _, reason := range slices.Sorted(maps.Keys(t.Rejected)) {
		if line := t.First[reason]; line > 0 {
			fmt.Fprintf(&b, "; line %d: %s", line, reason)
		} else {
			fmt.Fprintf(&b, "; %d: %s", t.Rejected[reason], reason)
		}
	}
	return b.String()
}

func (t *Trace) reject(line int, reason string) {
	if t.Rejected[reason]++; t.Rejected[reason] == 1 {
		t.First[reason] = line
	}
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return err == nil
}

// nanoseconds of so many seconds, as they are written: exact to the nanosecond.
func nanoseconds(text string) (int64, bool) {
	text = strings.TrimSpace(text)
	whole, fraction, _ := strings.Cut(text, ".")
	if n, err := strconv.ParseInt(whole, 10, 64); err == nil && len(fraction) <= 9 && n >= 0 && n < math.MaxInt64/1_000_000_000-1 {
		f := int64(0)
		if fraction != "" {
			var err error
			if f, err = strconv.ParseInt(fraction+"000000000"[len(fraction):], 10, 64); err != nil || f < 0 {
				return 0, false
			}
		}
		return n*1e9 + f, true
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0 && x < math.MaxInt64/1e9) {
		return 0, false
	}
	return int64(math.Round(x * 1e9)), true
}

func (t *Trace) readTimes(in io.Reader) (rows []row, err error) {
	t.Format, t.Unit = "times", "s"
	lines := bufio.NewScanner(in)
	for line := 1; lines.Scan(); line++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		t.Records++
		if at, ok := nanoseconds(text); ok {
			rows = append(rows, row{at: at, input: Unknown, output: Unknown, line: line})
		} else {
			t.reject(line, "no time in seconds")
		}
	}
	return rows, lines.Err()
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

func (t *Trace) readCSV(in io.Reader) (rows []row, err error) {
	t.Format, t.Unit = "csv", "s"
	r := csv.NewReader(in)
	r.FieldsPerRecord, r.ReuseRecord = -1, true
	head, err := r.Read()
	if err != nil {
		return nil, err
	}
	column := func(names []string) int {
		for _, name := range names {
			for i, h := range head {
				if strings.ToLower(strings.TrimSpace(h)) == name {
					return i
				}
			}
		}
		return -1
	}
	at, input, output, client := column(timeColumns), column(inputColumns), column(outputColumns), column(clientColumns)
	if at < 0 && input < 0 && output < 0 {
		return nil, say.Errorf("no column of its header is known: %.200s", strings.Join(head, ", ")).WithHint("name them timestamp, input_tokens, output_tokens")
	}
	width := len(head)
	for {
		fields, err := r.Read()
		if err == io.EOF {
			break
		}
		var broken *csv.ParseError
		if err != nil && !errors.As(err, &broken) { // it would come again for ever
			return nil, err
		}
		t.Records++
		if err != nil {
			t.reject(broken.StartLine, "broken quotes")
			continue
		}
		line, _ := r.FieldPos(0)
		q, reason := row{input: Unknown, output: Unknown, line: line}, ""
		length := func(i int) int32 {
			if i < 0 || reason != "" {
				return Unknown
			}
			x, err := strconv.ParseFloat(strings.TrimSpace(fields[i]), 64)
			if err != nil || x < 0 || x > MaxLength || x != math.Trunc(x) {
				reason = fmt.Sprintf("column %s is no number of tokens", head0(head, i))
				return Unknown
			}
			return int32(x)
		}
		if len(fields) != width {
			reason = "another number of columns than the header"
		}
		q.input, q.output = length(input), length(output)
		if at >= 0 && reason == "" {
			var ok bool
			if q.at, ok = stampOf(fields[at]); !ok {
				reason = "no time that is known"
			}
		}
		if client >= 0 && reason == "" {
			q.client = strings.Clone(fields[client])
		}
		if reason != "" {
			t.reject(line, reason)
			continue
		}
		rows = append(rows, q)
	}
	if at < 0 {
		t.Unit = ""
	}
	return rows, nil
}

func head0(head []string, i int) string { return strconv.Itoa(i + 1) }

// jsonRow is a line of the traces that are known. Numbers may be strings.
type jsonRow struct {
	Timestamp json.RawMessage `json:"timestamp"`
	Input     *float64        `json:"input_length"`
	Output    *float64        `json:"output_length"`
	Hashes    json.RawMessage `json:"hash_ids"`
	Chat      json.RawMessage `json:"chat_id"`
	Session   string          `json:"session_id"`
}

func (t *Trace) readLines(in io.Reader) (rows []row, err error) {
	t.Format, t.Unit = "mooncake", "ms"
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxRecord)
	timed := 0
	for line := 1; lines.Scan(); line++ {
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		t.Records++
		var j jsonRow
		if json.Unmarshal(text, &j) != nil {
			t.reject(line, "no JSON object with timestamp, input_length and output_length")
			continue
		}
		q, reason := row{input: Unknown, output: Unknown, line: line, client: j.Session}, ""
		length := func(x *float64) int32 {
			if x == nil {
				return Unknown
			}
			if *x < 0 || *x > MaxLength || *x != math.Trunc(*x) {
				reason = "a length that is no number of tokens"
				return Unknown
			}
			return int32(*x)
		}
		q.input, q.output = length(j.Input), length(j.Output)
		if stamp := strings.TrimSpace(string(j.Timestamp)); stamp != "" && stamp != "null" && reason == "" {
			text, quoted := strings.CutPrefix(stamp, `"`)
			switch {
			case quoted: // RAGPulse
				t.Format, t.Unit = "ragpulse", "s"
			case j.Chat != nil: // Qwen-Bailian
				t.Format, t.Unit = "bailian", "s"
			}
			at, ok := nanoseconds(strings.TrimSuffix(text, `"`))
			if !ok {
				reason = "no time that is known"
			}
			q.at, timed = at, timed+1
		}
		if reason == "" && len(j.Hashes) > 0 && j.Hashes[0] == '[' && json.Unmarshal(j.Hashes, &q.blocks) != nil {
			reason = "hash_ids is no list of numbers"
		}
		if reason == "" && q.input == Unknown && q.output == Unknown && len(j.Timestamp) == 0 {
			reason = "none of timestamp, input_length and output_length"
		}
		if reason != "" {
			t.reject(line, reason)
			continue
		}
		rows = append(rows, q)
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return nil, fmt.Errorf("want lines of at most %d MiB", maxRecord>>20)
	}
	if timed == 0 {
		t.Unit = ""
	}
	if t.Unit == "ms" {
		for i := range rows {
			rows[i].at /= 1000
		}
	}
	return rows, lines.Err()
}

// take puts rows into columns, in the order of their times.
func (t *Trace) take(rows []row) {
	if t.Unit != "" {
		for i := 1; i < len(rows); i++ {
			if rows[i].at < rows[i-1].at {
				t.Unsorted++
			}
		}
		slices.SortStableFunc(rows, func(a, b row) int { return int(min(max(a.at-b.at, -1), 1)) })
		for i := range rows {
			t.At = append(t.At, rows[i].at)
		}
	}
	has := func(of func(*row) bool) bool {
		return slices.ContainsFunc(rows, func(q row) bool { return of(&q) })
	}
	if has(func(q *row) bool { return q.input != Unknown }) {
		for i := range rows {
			t.Input = append(t.Input, rows[i].input)
		}
	}
	if has(func(q *row) bool { return q.output != Unknown }) {
		for i := range rows {
			t.Output = append(t.Output, rows[i].output)
		}
	}
	if has(func(q *row) bool { return q.client != "" }) {
		for i := range rows {
			t.Clients = append(t.Clients, rows[i].client)
		}
	}
	if has(func(q *row) bool { return q.blocks != nil }) {
		for i := range rows {
			t.Blocks = append(t.Blocks, rows[i].blocks)
		}
	}
}

// Requests is how many rows there are.
func (t *Trace) Requests() int {
	n := t.Records
	for _, k := range t.Rejected {
		n -= k
	}
	return n
}

// Arrivals reads the law of arrivals that --arrival names, with the files that it is of.
func Arrivals(text string) (*arrival.Law, error) {
	return arrival.ParseLaw(text, arrival.Files{
		Times: func(name string) ([]int64, error) {
			t, err := ReadTrace(name)
			if err != nil {
				return nil, userError(name, err)
			}
			if t.At == nil {
				return nil, say.Errorf("%s has no times", name).WithHint("a column or a key timestamp, or a time in seconds a line")
			}
			return t.At, nil
		},
		Rates: func(name string) (times, rates []float64, err error) {
			times, rates, err = readRates(name)
			return times, rates, userError(name, err)
		},
	})
}

// userError makes of an error one for users.
func userError(name string, err error) error {
	if err == nil {
		return nil
	}
	if u, ok := errors.AsType[*say.Error](err); ok {
		return u
	}
	return say.Errorf("%v", err)
}

// mostRates bounds the lines of a file of rates.
const mostRates = 1_000_000

// readRates reads SECONDS RATE a line, separated by spaces or a comma: from then on so many
// requests per second. The last line's time is the end; its rate may be left out.
func readRates(name string) (times, rates []float64, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, fmt.Errorf("open rates: %w", err)
	}
	defer f.Close()
	return parseRates(name, f)
}

func parseRates(name string, in io.Reader) (times, rates []float64, err error) {
	lines := bufio.NewScanner(in)
	fail := func(line int, what string) error {
		return say.Errorf("%s:%d: %s", name, line, what).WithHint("SECONDS RATE a line, from 0 on; the last line is the end")
	}
	line := 0
	for lines.Scan() {
		line++
		text, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\r' })
		if len(fields) == 0 || line == 1 && !isNumber(fields[0]) { // a header
			continue
		}
		if len(times) > len(rates) {
			return nil, nil, fail(line-1, "no rate")
		}
		at, errAt := strconv.ParseFloat(fields[0], 64)
		switch {
		case errAt != nil || len(fields) > 2:
			return nil, nil, fail(line, "not SECONDS RATE")
		case !(at >= 0 && at <= 366*86400):
			return nil, nil, fail(line, "the time is not within a year")
		case len(times) == 0 && at != 0:
			return nil, nil, fail(line, "the first time is not 0")
		case len(times) > 0 && at < times[len(times)-1]+1e-3:
			return nil, nil, fail(line, "the time is not a millisecond behind the one before")
		case len(times) == mostRates:
			return nil, nil, fail(line, "too many lines")
		}
		times = append(times, at)
		if len(fields) == 2 {
			rate, err := strconv.ParseFloat(fields[1], 64)
			if err != nil || !(rate >= 0 && rate <= arrival.MaxRate) {
				return nil, nil, fail(line, "the rate is no number of requests per second")
			}
			rates = append(rates, rate)
		}
	}
	if lines.Err() != nil {
		return nil, nil, fail(line+1, "a line is too long")
	}
	if len(times) < 2 {
		return nil, nil, fail(line, "two times at least are wanted: a rate and its end")
	}
	return times, rates[:len(times)-1], nil
}
