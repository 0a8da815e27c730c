package workload

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"

	"pitot/internal/workload/field"
	"pitot/internal/workload/plain"
)

// Kind is the kind of workload that a file holds.
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

// Head holds the beginning of a file as plain text: unpacked, in UTF-8, without a byte order mark.
type Head struct {
	Text []byte   // not more than some 64 KiB
	Keys []string // of the first JSON object: the file's only one, the first line's, or an array's first

	first   []byte // that object, as far as it is there
	text    bool   // it holds a prompt
	table   *table // what its rows are of, nil for no table
	problem error  // why a table cannot be read that is one by the name of its file
}

// Line is its first line that is not blank.
func (h *Head) Line() string {
	line, _, _ := strings.Cut(strings.TrimLeft(string(h.Text), " \t\r\n"), "\n")
	return strings.TrimRight(line, " \t\r")
}

// HasAnyKey says that the first object has one of these keys.
func (h *Head) HasAnyKey(keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return slices.Contains(h.Keys, key) })
}

// hasField says that the first object has a key for this.
func (h *Head) hasField(f field.Field) bool {
	return slices.ContainsFunc(h.Keys, func(key string) bool { return field.ParseName(key).Field == f })
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
	return h.detectKind(), nil
}

func headOf(path string) (*Head, error) {
	text, err := plain.ReadHead(path, headBytes)
	if err != nil {
		return nil, openError(path, false, err)
	}
	h := newHead(path, text)
	if h.problem != nil {
		return nil, &FileError{Path: path, Err: h.problem}
	}
	return h, nil
}

// detectKind finds out what kind of file it is by how it begins, whatever it is called.
func (h *Head) detectKind() Kind {
	switch {
	case isProfile(h):
		return Profiled
	case isTrajectory(h):
		return Sessioned
	case isMix(h):
		return Classes
	case isTrace(h):
		return Recorded
	}
	return Prompts
}

// newHead looks at how the text of a file begins; name is "" where it has none.
func newHead(name string, text []byte) *Head {
	h := &Head{Text: text}
	kind := containerOf(text)
	if kind == textLines {
		if !h.isNumbers() {
			h.table, h.problem = tableOf(name, text)
		}
		return h
	}
	first := text
	if kind == jsonArray {
		first = first[bytes.IndexByte(first, '[')+1:]
	}
	first = first[skipBlanks(first, 0):]
	if end := valueEnd(first, 0); end > 0 {
		first = first[:end]
	}
	h.takeKeys(first)
	return h
}

// takeKeys takes the keys of an object, as far as it is there. Those of null are none.
func (h *Head) takeKeys(raw []byte) {
	h.first = raw
	_ = eachMember(raw, func(key, value []byte) {
		if string(value) == "null" {
			return
		}
		h.Keys = append(h.Keys, string(key))
		h.text = h.text || holdsText(string(key), value)
	})
}

// holdsText reports whether a key of a JSON object holds a prompt.
func holdsText(key string, value []byte) bool {
	if len(value) > 0 && blankCell(string(value)) { // nothing of it is there where the head cut it
		return false
	}
	switch field.ParseName(key).Field {
	case field.Prompt, field.Messages, field.Request:
		return true
	case field.InputEither:
		_, number := wholeNumber(value)
		return !number
	}
	return slices.Contains(textKeys, key)
}

// isProfile tells a profile by the name of its schema.
func isProfile(h *Head) bool {
	line := strings.TrimLeft(h.Line(), "{ ")
	return strings.HasPrefix(strings.Trim(line, `"`), "schema") && strings.Contains(line, "pitot.workload-profile/") || strings.Contains(string(h.Text[:min(len(h.Text), 200)]), `"schema": "pitot.workload-profile/`)
}

// textKeys are those of records that hold a prompt.
var textKeys = strings.Fields(
	"messages conversations conversation prompt text text_input body payload payloads turns texts")

// mixKeys are those of the YAML of classes: its list of them, and a key of the file or of a
// class.
var mixKeys = [2]*regexp.Regexp{regexp.MustCompile(`(?m)^classes[ \t]*:`), regexp.MustCompile(`(?m)^version[ \t]*:|^[ \t]*-[ \t]*\{?[ \t]*(name|share|rate)[ \t]*:`)}

// isMix tells the YAML of classes of requests.
func isMix(h *Head) bool {
	return h.Keys == nil && mixKeys[0].Match(h.Text) && mixKeys[1].Match(h.Text)
}

// isTrace tells a trace: JSON with times or lengths and without text, a table of such, or a time a
// line.
func isTrace(h *Head) bool {
	switch {
	case h.isRequests("lengths"):
		return true
	case h.Keys != nil:
		return !h.text && (h.HasAnyKey("hash_ids") || slices.ContainsFunc(h.Keys, func(key string) bool {
			f := field.ParseName(key).Field
			return holdsRequests(f) || f == field.Delay
		}))
	case h.table != nil:
		return !h.table.text
	}
	return h.isNumbers()
}

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
