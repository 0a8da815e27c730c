package workload

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"pitot/internal/workload/plain"
)

// Kind is what a file is for a workload.
type Kind string

// Kinds of files.
const (
	Prompts   Kind = "prompts"  // texts, asked as they stand: [Open]
	Classes   Kind = "mix"      // YAML of several classes of requests, which the plan reads
	Profiled  Kind = "profile"  // what a log was like, without text: workload/profile
	Recorded  Kind = "trace"    // times, lengths and shared blocks of requests, without text: [ReadTrace]
	Sessioned Kind = "sessions" // recorded sessions of agents, in a file, a directory or an archive: [OpenTrajectories]
)

// headBytes are looked at to tell what a file is.
const headBytes = 64 << 10

// Head is how a file begins, as plain text: unpacked, in UTF-8, without a byte order mark.
type Head struct {
	Text    []byte   // not more than some 64 KiB
	Keys    []string // of the first JSON object: the file's only one, the first line's, or an array's first
	Columns []string // of a header of CSV, in lower case
}

// Line is its first line that is not blank.
func (h *Head) Line() string {
	line, _, _ := strings.Cut(strings.TrimLeft(string(h.Text), " \t\r\n"), "\n")
	return strings.TrimRight(line, " \t\r")
}

// Has says that the first object has one of these keys.
func (h *Head) Has(keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return slices.Contains(h.Keys, key) })
}

// HasColumn says that there is a header with one of these columns.
func (h *Head) HasColumn(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(h.Columns, name) })
}

// kinds are the files that there are, in the order in which they are asked for: here each
// is found out by how it begins, whatever it is called. What none of them is is text.
func kinds() []struct {
	kind Kind
	is   func(h *Head) bool
} {
	return []struct {
		kind Kind
		is   func(h *Head) bool
	}{
		{Profiled, isProfile},
		{Sessioned, isTrajectory},
		{Classes, isMix},
		{Recorded, isTrace},
	}
}

// Identify says what kind of workload a file is by how it begins. The error is that of
// opening or unpacking it.
func Identify(path string) (Kind, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return Sessioned, nil
	}
	h, err := headOf(path)
	if err != nil {
		return "", err
	}
	return h.kind(), nil
}

func headOf(path string) (*Head, error) {
	text, err := plain.Head(path, headBytes)
	if _, system := errors.AsType[*fs.PathError](err); system {
		return nil, fmt.Errorf("open workload: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("read workload %s: %w", path, err)
	}
	return newHead(text), nil
}

func (h *Head) kind() Kind {
	for _, k := range kinds() {
		if k.is(h) {
			return k.kind
		}
	}
	return Prompts
}

// newHead looks at how a text begins.
func newHead(text []byte) *Head {
	h := &Head{Text: text}
	switch containerOf(text) {
	case jsonLines:
		first := bytes.TrimLeft(text, " \t\r\n")
		if end := valueEnd(first, 0); end > 0 {
			first = first[:end]
		}
		h.takeKeys(first)
	case jsonArray:
		first := bytes.TrimLeft(text, " \t\r\n")
		first = first[bytes.IndexByte(first, '[')+1:]
		first = first[blank(first, 0):]
		if end := valueEnd(first, 0); end > 0 {
			first = first[:end]
		}
		h.takeKeys(first)
	default:
		if line, separator := h.Line(), h.separator(); strings.IndexByte(line, separator) >= 0 {
			for name := range strings.SplitSeq(line, string(separator)) {
				h.Columns = append(h.Columns, strings.ToLower(strings.Trim(strings.TrimSpace(name), `"`)))
			}
		}
	}
	return h
}

// separator is what stands between the cells of a header: a comma, else a semicolon or a tab.
func (h *Head) separator() byte {
	line := h.Line()
	for _, c := range []byte{',', ';', '\t'} {
		if strings.IndexByte(line, c) >= 0 {
			return c
		}
	}
	return ','
}

// takeKeys takes the keys of an object, as far as it is there. Those of null are none.
func (h *Head) takeKeys(raw []byte) {
	_ = fields(raw, func(key, value []byte) {
		if string(value) != "null" {
			h.Keys = append(h.Keys, string(key))
		}
	})
}

// isProfile tells a profile by the name of its schema.
func isProfile(h *Head) bool {
	line := strings.TrimLeft(h.Line(), "{ ")
	return strings.HasPrefix(strings.Trim(line, `"`), "schema") && strings.Contains(line, "pitot.workload-profile/") || strings.Contains(string(h.Text[:min(len(h.Text), 200)]), `"schema": "pitot.workload-profile/`)
}

// textKeys are those of records that hold a prompt.
var textKeys = []string{"messages", "conversations", "conversation", "prompt", "text", "text_input", "body", "payload", "turns", "texts"}

// mixKeys are those of the YAML of classes: its list of them, and a key of the file or of a
// class.
var mixKeys = [2]*regexp.Regexp{regexp.MustCompile(`(?m)^classes[ \t]*:`), regexp.MustCompile(`(?m)^version[ \t]*:|^[ \t]*-[ \t]*\{?[ \t]*(name|share|rate)[ \t]*:`)}

// isMix tells the YAML of classes of requests.
func isMix(h *Head) bool {
	return h.Keys == nil && mixKeys[0].Match(h.Text) && mixKeys[1].Match(h.Text)
}

// isTrace tells a trace: JSON lines with lengths and without text, CSV with columns that
// are known, or a time a line.
func isTrace(h *Head) bool {
	switch {
	case h.isRequests("lengths"):
		return true
	case h.Has("input_length", "output_length", "hash_ids", "timestamp"):
		return !h.Has(textKeys...)
	case h.Columns != nil:
		return h.HasColumn(timeColumns...) && !h.HasColumn(promptColumns...) || h.HasColumn(inputColumns...) || h.HasColumn(outputColumns...) && !h.HasColumn(promptColumns...)
	case h.Keys == nil:
		return h.isNumbers()
	}
	return false
}

// isTable says that it is CSV with a header of which a column holds prompts.
func (h *Head) isTable() bool { return len(h.Columns) > 1 && h.HasColumn(promptColumns...) }

// isNumbers says that each line is a number, as far as they are seen.
func (h *Head) isNumbers() bool {
	n := 0
	for line := range bytes.Lines(h.Text) {
		switch {
		case len(bytes.TrimSpace(line)) == 0:
		case isNumber(string(line)):
			n++
		case n > 0 && line[len(line)-1] != '\n' && len(h.Text) >= headBytes: // the head cut it
		default:
			return false
		}
	}
	return n > 0
}

// promptColumns are those of CSV, and keys of JSON, that hold a prompt.
var promptColumns = []string{"prompt", "question", "text", "text_input", "instruction", "input_text", "content", "query"}
