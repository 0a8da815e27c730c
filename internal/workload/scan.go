package workload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
)

// container is the way in which a file holds its records together.
type container uint8

const (
	textLines container = iota // one prompt a line
	jsonLines                  // one object a line
	jsonArray                  // one array of objects, perhaps under the key "data" of an object
	csvRows                    // a header, and a row each
)

// maxRecord is the most bytes that a record may have.
const maxRecord = 64 << 20

// visitor takes one record, which lies at offset. It must not keep raw.
type visitor func(kind container, offset int64, raw []byte) error

// scanRecords calls visit with each record of a file in turn; blank lines are none. name is that of
// the file. found is called before the first record of a table. Errors that have a place in the
// file are a *recordError.
func scanRecords(r io.Reader, name string, found func(t *table), visit visitor) error {
	in := bufio.NewReaderSize(r, headBytes)
	var start int64
	if mark, _ := in.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		discarded, _ := in.Discard(len(mark)) // cannot fail, it was peeked at
		start = int64(discarded)
	}
	head, err := in.Peek(headBytes - 3)
	if err != nil && err != io.EOF {
		return err
	}
	kind := containerOf(head)
	if kind == jsonArray {
		return scanArray(in, start, visit)
	}
	var t *table
	if kind == textLines {
		h := newHead(name, head)
		if h.problem != nil {
			return h.problem
		}
		if h.table != nil && h.table.text {
			kind, t = csvRows, h.table
			found(t)
			skipped, err := in.Discard(int(t.begin))
			start += int64(skipped)
			if err != nil && err != io.EOF {
				return err
			}
		}
	}
	return scanLines(in, kind, t, start, visit)
}

// containerOf tells from how a file begins what it holds.
func containerOf(head []byte) container {
	head = bytes.TrimLeft(head, " \t\r\n")
	if len(head) == 0 {
		return textLines
	}
	switch head[0] {
	case '{':
		if data.Match(head) {
			return jsonArray
		}
		return jsonLines
	case '[':
		if conversationLine(head) {
			return jsonLines
		}
		// A prompt may begin with a bracket, as in "[INST] Hello".
		if rest := bytes.TrimLeft(head[1:], " \t\r\n"); len(rest) == 0 || bytes.IndexByte([]byte(`{["]`), rest[0]) >= 0 {
			return jsonArray
		}
	}
	return textLines
}

// conversationLine reports whether a text begins with a conversation in a line: an array of
// messages, as EvalScope has them.
func conversationLine(head []byte) bool {
	first := head[1:]
	first = first[skipBlanks(first, 0):]
	end := valueEnd(first, 0)
	if len(first) == 0 || first[0] != '{' || end < 0 {
		return false
	}
	role, content := false, false
	_ = eachMember(first[:end], func(key, _ []byte) {
		role, content = role || string(key) == "role", content || string(key) == "content"
	})
	line, _, _ := bytes.Cut(head, []byte("\n"))
	return role && content && bytes.HasSuffix(bytes.TrimRight(line, " \t\r,"), []byte("]")) || role && content && bytes.IndexByte(head, '\n') < 0
}

// data matches the beginning of a JSON object that has its records under a key. genai-perf and
// AIPerf write inputs.json with data. SGLang's agentic traces have conversations that are arrays
// themselves.
var data = regexp.MustCompile(`^\{\s*("data"\s*:\s*\[|"conversations"\s*:\s*\[\s*\[)`)

func scanLines(r io.Reader, kind container, t *table, start int64, visit visitor) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxRecord)
	end := start
	split := bufio.ScanLines
	if kind == csvRows {
		split = t.splitRecords()
	}
	lines.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		advance, line, err := split(data, atEOF)
		end += int64(advance)
		return advance, line, err
	})
	for start = end; lines.Scan(); start = end {
		line, at := lines.Bytes(), start
		switch {
		case kind == jsonLines: // a comma between records is none of theirs
			trimmed := bytes.TrimLeft(line, ", \t")
			at += int64(len(line) - len(trimmed))
			line = bytes.TrimRight(trimmed, ", \t\r")
		case kind == csvRows && t.isComment(line):
			continue
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := visit(kind, at, line); err != nil {
			return atOffset(at, err)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return atOffset(start, fmt.Errorf("want lines of at most %d MiB", maxRecord>>20))
	} else if err != nil {
		return err
	}
	return nil
}

func scanArray(r io.Reader, start int64, visit visitor) error {
	in := json.NewDecoder(r)
	// fail places an error of the decoder, which counts from the first byte.
	fail := func(err error) error {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return &recordError{start + max(0, syntax.Offset-1), fmt.Errorf("want a JSON array of objects: %w", err)}
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return &recordError{start + in.InputOffset(), errors.New("want a JSON array of objects: the file ends inside it")}
		}
		return err
	}
	first, err := in.Token()
	inside := first == json.Delim('{') // {"data": [ … ]} or the like, as its beginning has said
	for range 2 {
		if err == nil && inside {
			_, err = in.Token()
		}
	}
	if err != nil {
		return fail(err)
	}
	var raw json.RawMessage
	for in.More() {
		if err := in.Decode(&raw); err != nil {
			return fail(err)
		}
		offset := start + in.InputOffset() - int64(len(raw))
		if len(raw) > maxRecord {
			return atOffset(offset, fmt.Errorf("want elements of at most %d MiB", maxRecord>>20))
		}
		if err := visit(jsonArray, offset, raw); err != nil {
			return atOffset(offset, err)
		}
	}
	if _, err := in.Token(); err != nil {
		return fail(err)
	}
	if inside {
		return nil // what stands behind is no request
	}
	if _, err := in.Token(); err == nil {
		return &recordError{start + in.InputOffset(), errors.New("want nothing after the JSON array")}
	} else if err != io.EOF {
		return fail(err)
	}
	return nil
}

// lineAt is the line, from 1, that the byte at offset is on.
func lineAt(r io.ReaderAt, offset int64) (int, error) {
	line, buf := 1, make([]byte, 64<<10)
	for in := io.NewSectionReader(r, 0, offset); ; {
		n, err := in.Read(buf)
		line += bytes.Count(buf[:n], []byte("\n"))
		if err == io.EOF {
			return line, nil
		}
		if err != nil {
			return 0, err
		}
	}
}
