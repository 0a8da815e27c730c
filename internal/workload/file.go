package workload

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"math/bits"
	"path/filepath"
	"slices"
	"strings"

	"pitot/internal/say"
	"pitot/internal/workload/plain"
	"pitot/internal/workload/seed"
)

// FileOptions say how the requests of a file are asked.
type FileOptions struct {
	Seed    uint64  // order
	Output  Lengths // for requests that say none themselves; zero leaves it to the server
	InOrder bool    // as they stand in the file, not as the seed draws
	InTime  bool    // in the order of their times; those without one are left out
	Exact   bool    // hold the engine to the known output lengths
}

// FileStats count what was in a file.
type FileStats struct {
	Records  int            // lines or array elements, those that were skipped included
	Requests int            // those that can be asked
	Later    int            // of these, conversations with more than their first turn
	Skipped  map[string]int // reason: count, of those that cannot be read too
	First    map[string]int // reason: line of the first, of those that cannot be read
	Timed    int            // requests that have a time
	Unused   map[string]int // fields that change what is asked, or when, and are not used: records
	Above    int            // lines above the header of a table
}

// mostReasons bounds the reasons that are told apart why records cannot be read.
const mostReasons = 8

// otherReasons are those beyond.
const otherReasons = "other reasons"

// unread are the records of a file that could not be read.
type unread struct {
	n     int
	first error            // a *recordError
	at    map[string]int64 // reason: where the first of them lies
}

// add takes in a record.
func (u *unread) add(s *FileStats, offset int64, err error) {
	if u.n++; u.n == 1 {
		u.first, u.at = atOffset(offset, err), map[string]int64{}
	}
	reason := strings.ToValidUTF8(fmt.Sprintf("%.120s", err.Error()), "\uFFFD")
	if _, known := u.at[reason]; !known && len(u.at) >= mostReasons {
		reason = otherReasons
	}
	if _, known := u.at[reason]; !known {
		u.at[reason] = offset
	}
	s.Skipped[reason]++
}

// File is a workload read from a file: literal prompts, in an order shuffled
// by the seed, from the beginning again when a run needs more than there are.
// It keeps 24 bytes a request in memory and reads the prompts when they are
// asked for. It is safe for concurrent use.
type File struct {
	file    *plain.File
	path    string
	options FileOptions
	first   int64 // entry that item 0 asks
	fileIndex
}

// fileIndex holds what is known of a file once it has been read.
type fileIndex struct {
	sha256  string
	format  format
	entries []entry
	stats   FileStats
}

// entry is where a record lies in its file.
type entry struct {
	offset int64
	due    int64 // nanoseconds, noTime where it has none
	length uint32
	sum    uint32 // CRC-32C, to notice a file that changes under a run
}

// noTime is the due time of a record that has none.
const noTime = -1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Open reads a file of prompts. What kind of file it is shows in its contents,
// whatever it is called:
//
//   - a JSON array, or a JSON object a line, of
//     ShareGPT conversations ("conversations" of from and value, or role and
//     content), of which the first question is asked and the answer's length
//     is estimated; OpenAI chat requests ("messages", "max_tokens", and
//     whatever else is to be sent); OpenAI batch requests ("custom_id", "url",
//     "body"); vLLM custom prompts ("prompt", "output_tokens"); AIPerf single
//     turns ("text", "output_length", "extra");
//   - otherwise plain text, one prompt a line.
//
// Records may have times, which [FileOptions.InTime] uses. What else changes what is asked, and is
// not used, is counted. Records that are well formed but cannot be asked, and those that cannot be
// read, are skipped and counted by reason. Where the first cannot be read, or half of them, and where
// the JSON of an array is broken, that is an error that names file and line. The caller closes the File.
func Open(path string, o FileOptions) (*File, error) {
	file, err := plain.Open(path)
	if err != nil {
		return nil, openError(path, false, err)
	}
	f := &File{file: file, path: path, options: o}
	index, err := lastIndex.open(path, func() (fileIndex, error) {
		err := f.indexRequests()
		return f.fileIndex, err
	})
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if f.fileIndex = index; len(index.entries) > mostIndexed {
		lastIndex.forget()
	} else { // what is kept stays as it is
		f.entries, f.stats = slices.Clone(index.entries), index.stats.clone()
	}
	switch {
	case o.InTime:
		if err := f.inTime(); err != nil {
			return nil, errors.Join(err, file.Close())
		}
	case !o.InOrder:
		f.shuffle()
	}
	return f, nil
}

// mostIndexed bounds the requests of which it is kept.
const mostIndexed = 10_000_000

var lastIndex lastFile[fileIndex]

// indexRequests reads the whole file once and keeps where its requests are.
func (f *File) indexRequests() error {
	f.stats = FileStats{Skipped: map[string]int{}, First: map[string]int{}, Unused: map[string]int{}}
	hash := sha256.New()
	var bad unread
	head := make([]byte, headBytes)
	n, err := f.file.ReadAt(head, f.file.TextStart())
	if err != nil && err != io.EOF {
		return &FileError{Path: f.path, Err: err}
	}
	look := looker{head: newHead(f.path, head[:n])}
	found := func(t *table) {
		f.format, look.table = tableFormat(t), t
		f.stats.Above = t.above
	}
	err = scanRecords(io.TeeReader(io.NewSectionReader(f.file, 0, math.MaxInt64), hash), f.path, found, func(kind container, offset int64, raw []byte) error {
		f.stats.Records++
		if f.format.parse == nil {
			if kind == textLines && namesJSON(f.path) { // text would be asked as it stands, braces and all
				return errors.New("want a JSON object, by the file's name")
			}
			format, err := detectFormat(kind, raw)
			if err != nil {
				return err
			}
			if f.format = format; format.header {
				f.stats.Records--
				return nil
			}
		}
		r, err := f.format.parse(raw)
		if skip, ok := errors.AsType[skipReason](err); ok {
			f.stats.Skipped[string(skip)]++
			return nil
		}
		if err != nil && f.stats.Records == 1 {
			return err // another kind of file, perhaps
		}
		if err != nil {
			bad.add(&f.stats, offset, err)
			return nil
		}
		if len(r.later) > 0 {
			f.stats.Later++
		}
		due := look.recordTime(&f.format, raw, &r, f.stats.Unused)
		if due != noTime {
			f.stats.Timed++
		}
		f.entries = append(f.entries, entry{offset, due, uint32(len(raw)), crc32.Checksum(raw, castagnoli)})
		return nil
	})
	if err == nil && float64(bad.n) >= mostRejected*float64(f.stats.Records) && bad.n > 0 {
		err = bad.first
	}
	for reason, offset := range bad.at {
		line, lineErr := lineAt(f.file, offset)
		err = cmp.Or(err, lineErr)
		f.stats.First[reason] = line
	}
	if at, ok := errors.AsType[*recordError](err); ok {
		line, lineErr := lineAt(f.file, at.offset)
		return &FileError{Path: f.path, Line: line, Err: cmp.Or(lineErr, at.err)}
	}
	if err != nil {
		return &FileError{Path: f.path, Err: err}
	}
	f.stats.Requests = len(f.entries)
	if len(f.entries) == 0 {
		return &FileError{Path: f.path, Err: fmt.Errorf("no request in %d records%s", f.stats.Records, f.stats.skipReasons())}
	}
	f.sha256 = hex.EncodeToString(hash.Sum(nil))
	return nil
}

// HasTimes says that the requests of a file have times: half of them at least.
func (f *File) HasTimes() bool { return f.stats.Timed > 0 && 2*f.stats.Timed >= f.stats.Requests }

// inTime puts requests in the order of their times.
func (f *File) inTime() error {
	if !f.HasTimes() {
		return say.Errorf("%s has no times", f.path).WithHint("a key or a column timestamp")
	}
	f.entries = slices.DeleteFunc(f.entries, func(e entry) bool { return e.due == noTime })
	if n := f.stats.Requests - len(f.entries); n > 0 {
		f.stats.Skipped[string(skipNoTime)] += n
		f.stats.Requests = len(f.entries)
	}
	slices.SortStableFunc(f.entries, func(a, b entry) int { return cmp.Compare(a.due, b.due) })
	return nil
}

// Begin says which request item 0 asks: where due times begin in the middle of a file.
func (f *File) Begin(row int64) { f.first = row }

// requestTimes are those of all requests, in order.
func (f *File) requestTimes() []int64 {
	list := make([]int64, len(f.entries))
	for i := range f.entries {
		list[i] = f.entries[i].due
	}
	return list
}

// skipReasons tells why records were skipped, for an error.
func (s FileStats) skipReasons() string {
	var b strings.Builder
	for _, reason := range slices.Sorted(maps.Keys(s.Skipped)) {
		fmt.Fprintf(&b, "; %d skipped: %s", s.Skipped[reason], reason)
	}
	return b.String()
}

// shuffle is Fisher and Yates' shuffle by the seed.
func (f *File) shuffle() {
	for i := len(f.entries) - 1; i > 0; i-- {
		j, _ := bits.Mul64(seed.At(f.options.Seed, streamOrder, uint64(i)), uint64(i)+1)
		f.entries[i], f.entries[j] = f.entries[j], f.entries[i]
	}
}

// At gives the i-th request. It reads the file, and says so if that has
// changed since it was opened.
func (f *File) At(i int64) (Request, error) {
	if i < 0 {
		return Request{}, fmt.Errorf("workload %s: no request %d", f.path, i)
	}
	r, err := f.read(i)
	if err != nil {
		return Request{}, err
	}
	return f.makeRequest(i, r), nil
}

// read reads the record of the i-th request.
func (f *File) read(i int64) (record, error) {
	e := f.entries[(i+f.first)%int64(len(f.entries))]
	raw := make([]byte, e.length)
	if _, err := f.file.ReadAt(raw, e.offset); err != nil {
		return record{}, &FileError{Path: f.path, Err: err}
	}
	if crc32.Checksum(raw, castagnoli) != e.sum {
		return record{}, &FileError{Path: f.path, Err: errChanged}
	}
	r, err := f.format.parse(raw)
	if err != nil {
		return record{}, &FileError{Path: f.path, Err: err}
	}
	return r, nil
}

// makeRequest returns the i-th request.
func (f *File) makeRequest(i int64, r record) Request {
	if r.output == Unknown {
		r.output = f.options.Output.Draw(seed.At(f.options.Seed, streamOutput, uint64(i)))
	}
	return Request{
		ID:       i,
		Messages: r.messages,
		Input:    Unknown,
		Output:   r.output,
		Exact:    f.options.Exact && r.output != Unknown,
		Session:  Unknown,
		Body:     r.body,
	}
}

// Stats count what was in the file.
func (f *File) Stats() FileStats { return f.stats.clone() }

func (s FileStats) clone() FileStats {
	s.Skipped, s.First, s.Unused = maps.Clone(s.Skipped), maps.Clone(s.First), maps.Clone(s.Unused)
	return s
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// recordError is an error at a place of the file.
type recordError struct {
	offset int64
	err    error
}

func (e *recordError) Error() string { return e.err.Error() }
func (e *recordError) Unwrap() error { return e.err }

// atOffset places an error in the file: at its record, or, where the JSON
// itself is broken, inside it.
func atOffset(offset int64, err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset += max(0, syntax.Offset-1)
	}
	return &recordError{offset, err}
}

// namesJSON says that a file is to hold JSON, by the end of its name.
func namesJSON(path string) bool {
	return slices.Contains([]string{".json", ".jsonl", ".ndjson"}, strings.ToLower(filepath.Ext(path)))
}
