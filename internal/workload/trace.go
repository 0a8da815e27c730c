package workload

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/say"
	"pitot/internal/workload/arrival"
	"pitot/internal/workload/plain"
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

// ReadTrace reads times, lengths and shared blocks of a file: JSON lines or an array as
// Mooncake's ("timestamp" in ms, "input_length", "output_length", "hash_ids"), and in seconds
// as Qwen-Bailian's, RAGPulse's and vLLM's timed traces; CSV with a header as Azure's and
// BurstGPT's; or a time in seconds a line. What it is shows in its contents; it may be packed
// as [plain.Open] knows.
func ReadTrace(path string) (*Trace, error) {
	f, err := plain.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open trace %s: %w", path, err)
	}
	defer f.Close()
	t, err := readTrace(f.Text())
	if err != nil {
		return nil, fmt.Errorf("read trace %s: %w", path, err)
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
		f, err := plain.Open(path)
		if err != nil {
			return nil, fmt.Errorf("open trace %s: %w", path, err)
		}
		defer f.Close()
		t, err := scanRows(f.Text(), func(q *row, _ int64, _ []byte) { visit(q) })
		if err != nil {
			return nil, fmt.Errorf("read trace %s: %w", path, err)
		}
		return t, nil
	}
	misfits, ids := make([]int, len(blockSizes)), false
	t, err := scan(func(q *row) {
		if q.blocks != nil {
			ids = true
			misfit(misfits, q)
		}
	})
	if err != nil {
		return nil, err
	}
	block := 0
	if ids = ids && t.Format != ragPulseForm; ids {
		block = blockSizes[slices.Index(misfits, slices.Min(misfits))]
	}
	return scan(func(q *row) {
		one := TraceRow{At: q.at, Input: int(q.input), Output: int(q.output), Client: q.client}
		if ids {
			one.Blocks = q.blocks
		}
		if t.Unit == "" {
			one.At = Unknown
		}
		take(one, block)
	})
}

// misfit counts for each of the block sizes whether the ids of a row do not fit its length.
func misfit(counts []int, q *row) {
	for i, size := range blockSizes {
		if len(q.blocks) != (int(max(q.input, 0))+size-1)/size {
			counts[i]++
		}
	}
}

func readTrace(in io.Reader) (*Trace, error) {
	var rows []row
	t, err := scanRows(in, func(q *row, _ int64, _ []byte) {
		own := *q
		own.blocks = slices.Clone(q.blocks)
		rows = append(rows, own)
	})
	if err != nil {
		return nil, err
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
	if t.Format != ragPulseForm && has(func(q *row) bool { return q.blocks != nil }) {
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
func Arrivals(text string) (*arrival.Law, error) { return arrival.ParseLaw(text, ArrivalFiles()) }

// ArrivalFiles reads what laws of arrivals want of files of times and of rates.
func ArrivalFiles() arrival.Files {
	return arrival.Files{
		Times: func(name string) (arrival.Stamps, error) {
			r, err := OpenRows(name)
			if err != nil {
				return nil, userError(name, err)
			}
			if !r.Timed() {
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
