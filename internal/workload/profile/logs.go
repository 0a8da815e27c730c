package profile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"pitot/internal/say"
	"pitot/internal/say/unreadable"
	"pitot/internal/workload"
	"pitot/internal/workload/plain"
)

// Log holds what was read of a log.
type Log struct {
	Format   string
	Requests int
	Rejected map[string]int // reason: lines that are no request
	First    map[string]int // reason: the line of the first of them
	Says     string         // what such a log does not tell, "" for nothing of importance
}

// mostLine is the most bytes that a line of a log may have.
const mostLine = 64 << 20

const logHint = "logs that are read: OpenAI-style JSON lines, LiteLLM, OpenTelemetry GenAI spans, vLLM's and SGLang's request logs, and the traces that pitot workload stats takes"

// ReadLog hands on the requests of a log, whatever it is packed in, one after the other. What it is
// shows in its contents. What is handed on must not be kept.
func ReadLog(name string, take func(q *Request) bool) (*Log, error) {
	f, err := plain.OpenStream(name)
	if err != nil {
		return nil, unreadable.FileError("log", name, plain.CutError(err), logHint)
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 256<<10)
	head, _ := in.Peek(64 << 10)
	if !isLog(head) {
		return readTrace(name, take)
	}
	l, err := readLog(in, take)
	if err != nil {
		return nil, say.Errorf("%s:%v", name, err).WithHint(say.HintOf(err))
	}
	if l.Requests == 0 {
		return nil, say.Errorf("%s: no request in it%s", name, l.RejectReasons()).WithHint(logHint)
	}
	return l, nil
}

// RejectReasons tells why lines were left out, with the line of the first of each.
func (l *Log) RejectReasons() string {
	var b strings.Builder
	for _, reason := range slices.Sorted(maps.Keys(l.Rejected)) {
		fmt.Fprintf(&b, "; %s, the first at line %d: %s", say.Plural(l.Rejected[reason], "line"), l.First[reason], reason)
	}
	return b.String()
}

// LeftOut returns the number of lines that were left out.
func (l *Log) LeftOut() (n int) {
	for _, k := range l.Rejected {
		n += k
	}
	return n
}

func (l *Log) reject(line int, reason string) {
	if l.Rejected[reason]++; l.Rejected[reason] == 1 {
		l.First[reason] = line
	}
}

// readTrace hands on the rows of a trace.
func readTrace(name string, take func(q *Request) bool) (*Log, error) {
	said := false // what prompts share, or sessions
	t, err := workload.EachRow(name, func(row workload.TraceRow, block int) {
		said = said || row.Client != "" || row.Blocks != nil
		q := Request{At: row.At, End: unknown, Input: row.Input, Output: row.Output, TTFT: unknown, Session: row.Client}
		if row.Blocks != nil {
			q.Blocks, q.BlockTokens = row.Blocks, block
		}
		take(&q)
	})
	if err != nil {
		if u, ok := errors.AsType[*say.Error](err); ok {
			return nil, say.Errorf("%s: %v", name, u).WithHint(logHint)
		}
		return nil, say.Errorf("%v", err).WithHint(logHint)
	}
	l := &Log{Format: t.Format, Requests: t.Requests(), Rejected: t.Rejected, First: t.First}
	if !said {
		l.Says = "the trace does not show what prompts share, nor sessions"
	}
	return l, nil
}

// isLog tells a log of requests from a trace.
func isLog(head []byte) bool {
	for line := range bytes.Lines(head) {
		line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")))
		if len(line) == 0 {
			continue
		}
		if line[0] == '{' || line[0] == '[' && len(line) < 3 {
			for _, key := range []string{`"hash_ids"`, `"input_length"`, `"num_prefill_tokens"`} {
				if bytes.Contains(line, []byte(key)) {
					return false
				}
			}
			return true
		}
		break
	}
	return engineOf(head) != ""
}

// readLog reads lines of JSON or of an engine.
func readLog(in *bufio.Reader, take func(q *Request) bool) (*Log, error) {
	l := &Log{Rejected: map[string]int{}, First: map[string]int{}}
	head, _ := in.Peek(64 << 10)
	hand := func(q *Request) {
		take(q)
		l.Requests++
	}
	if engine := engineOf(head); engine != "" {
		return l, l.readEngine(engine, in, hand)
	}
	if wholeJSON(head) { // one value over many lines
		data, err := io.ReadAll(io.LimitReader(in, mostLine+1))
		if err != nil {
			return l, fmt.Errorf("1: %w", err)
		}
		if len(data) > mostLine {
			return l, say.Errorf("1: one JSON value of over %d MiB", mostLine>>20).WithHint("write it as lines: jq -c '.[]' FILE")
		}
		for i, v := range splitJSON(data) {
			l.addLine(i+1, v, hand)
		}
		return l, nil
	}
	return l, eachLine(in, "split it, or leave its bodies out", func(line int, text []byte) {
		text = bytes.TrimSpace(text)
		if len(text) > 0 && string(text) != "[" && string(text) != "]" {
			l.addLine(line, bytes.TrimSuffix(text, []byte(",")), hand)
		}
	})
}

// eachLine hands on the lines of a log. The hint is for one that is too long.
func eachLine(in io.Reader, hint string, take func(line int, text []byte)) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 256<<10), mostLine)
	line := 0
	for lines.Scan() {
		line++
		take(line, lines.Bytes())
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return say.Errorf("%d: a line of over %d MiB", line+1, mostLine>>20).WithHint(hint)
	case err != nil:
		return say.Errorf("%d: it cannot be read on: %v", line+1, plain.CutError(err))
	}
	return nil
}

// wholeJSON tells a value that is written over many lines: the first line is none.
func wholeJSON(head []byte) bool {
	head = bytes.TrimLeft(head, " \t\r\n")
	first, more, ok := bytes.Cut(head, []byte("\n"))
	first = bytes.TrimSpace(first)
	if len(first) > 2 && first[0] == '[' {
		return true // an array in a line
	}
	return ok && len(bytes.TrimSpace(more)) > 0 && len(first) < 200 && (bytes.HasSuffix(first, []byte("{")) || bytes.HasSuffix(first, []byte("[")))
}

// splitJSON gives the elements of arrays, and values that follow each other. What is broken
// at the end is a value too, for the reader to refuse.
func splitJSON(data []byte) (out [][]byte) {
	for len(bytes.TrimSpace(data)) > 0 {
		d := json.NewDecoder(bytes.NewReader(data))
		var raw json.RawMessage
		if d.Decode(&raw) != nil {
			return append(out, data)
		}
		data = data[d.InputOffset():]
		var list []json.RawMessage
		if raw[0] == '[' && json.Unmarshal(raw, &list) == nil {
			for _, x := range list {
				out = append(out, x)
			}
			continue
		}
		out = append(out, raw)
	}
	return out
}

// tokensOf is a number of tokens that is written in some way.
func tokensOf(x float64) int {
	if math.IsNaN(x) || x < 0 || x > workload.MaxLength {
		return unknown
	}
	return int(x)
}
