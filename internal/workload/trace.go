package workload

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/say"
	"pitot/internal/say/unreadable"
	"pitot/internal/userfile"
	"pitot/internal/workload/arrival"
	"pitot/internal/workload/plain"
)

// Trace holds the requests of a file without their text: when they came, how long they were and
// what they share. A column that the file lacks is nil.
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
	Turns    int            // rows that are further turns of sessions, without a time of their own
	Above    int            // lines above the header of a table, left out
	Unused   map[string]int // fields that change what is sent, or when, and are not used: records

	// Of a file of prompts:
	Counted  bool // lengths of prompts are what is counted here, not what a server does
	Same     int  // prompts that were there before
	Empty    int  // requests without a prompt, left out
	Thinking int  // prompts with the reasoning of earlier answers
}

// mostRejected is the largest share of rows that may be left out. If more rows are unreadable, the
// file is not of the kind that it seemed.
const mostRejected = 0.5

// ReadTrace reads times, lengths and shared blocks of a file: JSON lines or an array as
// Mooncake's ("timestamp" in ms, "input_length", "output_length", "hash_ids"), and in seconds
// as Qwen-Bailian's, RAGPulse's and vLLM's timed traces; CSV with a header as Azure's and
// BurstGPT's; or a time in seconds a line. What it is shows in its contents; it may be packed
// as [plain.Open] knows.
func ReadTrace(path string) (*Trace, error) { return scanTrace(path, readTrace) }

// scanTrace reads a trace from its beginning to its end.
func scanTrace(path string, read func(name string, in io.Reader) (*Trace, error)) (*Trace, error) {
	f, err := plain.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open trace %s: %w", path, err)
	}
	defer f.Close()
	t, err := read(path, f.Text())
	if err != nil {
		return nil, &FileError{Path: path, Trace: true, Err: err}
	}
	return t, nil
}

// TraceRow is a request of a trace as its row has it; lengths are Unknown where it does not say
// them.
type TraceRow struct {
	At            int64 // nanoseconds, Unknown where rows have no times
	Input, Output int
	Client        string
	Blocks        []int64
}

// EachRow reads what [ReadTrace] does without keeping it: it hands on the rows in the order of
// the file, and gives the trace without its columns. What is handed on is not to be kept.
// block is of how many tokens the ids of blocks are, 0 where there are none.
func EachRow(path string, take func(q TraceRow, block int)) (*Trace, error) {
	scan := func(visit func(q *row)) (*Trace, error) {
		return scanTrace(path, func(name string, in io.Reader) (*Trace, error) {
			return scanRows(in, name, func(q *row, _ int64, _ []byte) error { visit(q); return nil })
		})
	}
	var sizes blockSizes
	t, err := scan(func(q *row) { sizes.add(q.blocks, int(q.input)) })
	if err != nil {
		return nil, err
	}
	block, _ := sizes.best()
	if t.Format == ragPulseForm {
		block = 0
	}
	return scan(func(q *row) {
		one := TraceRow{At: q.at, Input: int(q.input), Output: int(q.output), Client: q.client}
		if block > 0 {
			one.Blocks = q.blocks
		}
		if t.Unit == "" || q.follows {
			one.At = Unknown
		}
		take(one, block)
	})
}

// What a trace may have that is kept in memory.
const (
	mostTraceRows = 10_000_000
	mostTraceIDs  = 100_000_000 // of blocks
)

func readTrace(name string, in io.Reader) (*Trace, error) {
	c := columns{names: map[string]string{}}
	t, err := scanRows(in, name, func(q *row, _ int64, _ []byte) error { return c.add(q) })
	if err != nil {
		return nil, err
	}
	c.into(t)
	return t, nil
}

// columns are the rows of a trace as they are read. A column that no row has is nil.
type columns struct {
	at            []int64
	input, output []int32
	clients       []string
	blocks        [][]int64

	names           map[string]string // of clients: each is kept once
	latest          map[string]int64  // when the last row of a session was, where some follow others
	turns           []bool            // which rows are further turns, nil for none
	ids             int
	inputs, outputs bool // some row says it
	unsorted        int
	last            int64
}

func (c *columns) add(q *row) error {
	n := len(c.at)
	if n == mostTraceRows {
		return say.Errorf("over %s rows", say.Count(mostTraceRows)).WithHint("take a part of it, as the first of them: head -n 1000000; pitot run replays a trace of any length")
	}
	if c.ids += len(q.blocks); c.ids > mostTraceIDs {
		return say.Errorf("over %s ids of blocks", say.Count(mostTraceIDs)).WithHint("take a part of it, as the first of them: head -n 10000")
	}
	if q.follows { // as early as it can come
		q.at = c.latest[q.client] + q.after
	} else {
		if q.at < c.last {
			c.unsorted++
		}
		c.last = q.at
	}
	if q.client != "" && (q.follows || len(c.latest) < mostSessions) {
		if c.latest == nil {
			c.latest = map[string]int64{}
		}
		c.latest[q.client] = q.at
	}
	c.inputs, c.outputs = c.inputs || q.input != Unknown, c.outputs || q.output != Unknown
	c.at, c.input, c.output = append(c.at, q.at), append(c.input, q.input), append(c.output, q.output)
	name, known := c.names[q.client]
	if !known {
		name = strings.Clone(q.client)
		c.names[name] = name
	}
	c.clients = appendRow(c.clients, n, name, name != "")
	c.turns = appendRow(c.turns, n, q.follows, q.follows)
	c.blocks = appendRow(c.blocks, n, slices.Clone(q.blocks), q.blocks != nil)
	return nil
}

// appendRow appends the value of row n to a column, which stays nil until a row has a value.
func appendRow[T any](column []T, n int, value T, has bool) []T {
	if column == nil && !has {
		return nil
	}
	if column == nil {
		column = make([]T, n)
	}
	return append(column, value)
}

// into gives a trace its columns, in the order of their times.
func (c *columns) into(t *Trace) {
	if t.Unit != "" {
		t.At, t.Unsorted = c.at, c.unsorted
	}
	if c.inputs {
		t.Input = c.input
	}
	if c.outputs {
		t.Output = c.output
	}
	t.Clients = c.clients
	if t.Format != ragPulseForm {
		t.Blocks = c.blocks
	}
	if t.Unsorted == 0 && c.turns == nil || t.Unit == "" {
		return
	}
	order := make([]int32, len(t.At))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(t.At[a], t.At[b]) })
	t.At, t.Input, t.Output = inOrder(order, t.At), inOrder(order, t.Input), inOrder(order, t.Output)
	t.Clients, t.Blocks = inOrder(order, t.Clients), inOrder(order, t.Blocks)
	if turns := inOrder(order, c.turns); turns != nil { // no law makes their times
		k := 0
		t.At = slices.DeleteFunc(t.At, func(int64) bool { k++; return turns[k-1] })
	}
}

// inOrder gives a column in another order of the rows, nil of none.
func inOrder[T any](order []int32, column []T) []T {
	if column == nil {
		return nil
	}
	out := make([]T, len(order))
	for i, k := range order {
		out[i] = column[k]
	}
	return out
}

// Reasons tells why rows were left out, with the line of the first of each.
func (t *Trace) rejectReasons() string {
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

// Requests returns the number of rows.
func (t *Trace) Requests() int {
	n := t.Records
	for _, k := range t.Rejected {
		n -= k
	}
	return n
}

// ArrivalFiles reads what laws of arrivals want of files of times and of rates.
func ArrivalFiles() arrival.Files {
	return arrival.Files{
		Times: func(name string) (arrival.Stamps, error) {
			if kind, err := Identify(name); err == nil && kind == Prompts {
				list, err := PromptTimes(name)
				return arrival.StampList(list), userError(name, err)
			}
			r, err := OpenRows(name)
			if err != nil {
				return nil, userError(name, err)
			}
			if !r.HasTimes() {
				return nil, say.Errorf("%s has no times", name).WithHint("a column or a key timestamp, or a time in seconds a line")
			}
			return r, nil
		},
		Rates: func(name string) (times, rates []float64, err error) {
			times, rates, err = readRates(name)
			return times, rates, userError(name, err)
		},
	}
}

var lastTimes lastFile[[]int64]

// PromptTimes gives the times of the requests of a file of prompts, in order; an error where it has
// none.
func PromptTimes(path string) ([]int64, error) {
	return lastTimes.open(path, func() ([]int64, error) {
		f, err := Open(path, FileOptions{InTime: true})
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return f.requestTimes(), nil
	})
}

// userError makes of an error one for users.
func userError(name string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*say.Error](err); ok {
		return say.Errorf("%v", err).WithHint(say.HintOf(err))
	}
	if at, system := errors.AsType[*fs.PathError](err); system {
		return unreadable.FileError("workload", name, at, "name a file that can be read")
	}
	return say.Errorf("%v", err)
}

// mostRates bounds the lines of a file of rates.
const mostRates = 1_000_000

// readRates reads SECONDS RATE a line, separated by spaces or a comma: from then on so many
// requests per second. The last line's time is the end; its rate may be left out.
func readRates(name string) (times, rates []float64, err error) {
	f, err := userfile.Open(name)
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
