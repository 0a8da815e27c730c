package record

import (
	"bytes"
	"errors"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pitot/internal/results/rundir"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
)

// run makes the frames of a run with points of requests that overlap as
// streams do, cut into frames of about perFrame chunks.
func run(points, requests, chunks, perFrame int) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		const open = 100
		for p := range int32(points) {
			random := rand.New(rand.NewPCG(1, uint64(p)))
			f := Frame{Point: p, Marks: []Mark{{Point: p, Name: "start", Data: []byte(`{"rate":10}`)}}}
			seen := make([]int, requests)
			t := int64(0)
			for lo := 0; lo < requests; lo += open {
				for left := min(open, requests-lo) * chunks; left > 0; left-- {
					id := lo + random.IntN(min(open, requests-lo))
					for seen[id] == chunks {
						if id++; id == lo+open || id == requests {
							id = lo
						}
					}
					seen[id]++
					t += int64(random.ExpFloat64() * 50_000)
					f.Chunks = append(f.Chunks, Chunk{Request: int64(id), T: t, Earliest: t, Tokens: 1, Bytes: 3 + int32(random.IntN(4))})
					if seen[id] == chunks {
						f.Rows = append(f.Rows, Row{
							ID: int64(id), Point: p, Session: Unset, Due: t - 1e9, Sent: t - 9e8, FirstToken: t - 8e8, LastToken: t, Done: t,
							FirstAnswer: Unset, Chunks: int32(chunks), Finish: "stop", Status: 200, Stream: true,
						})
					}
					if len(f.Chunks) == perFrame {
						f.Samples = append(f.Samples, Sample{Point: p, T: t, Source: "client", Name: "cpu", Value: random.Float64()})
						if !yield(f, nil) {
							return
						}
						f = Frame{Point: p}
					}
				}
			}
			f.Rows = append(f.Rows, Row{ID: int64(requests), Point: p, Outcome: Unsent, Sent: Unset})
			if !yield(f, nil) {
				return
			}
		}
	}
}

func readDir(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = data
	}
	return files
}

func TestParquetOfLongerRun(t *testing.T) {
	dir := t.TempDir()
	frames := run(3, 250, 30, 333)
	if err := WriteParquet(dir, frames); err != nil {
		t.Fatal(err)
	}
	if d := collect(t, frames).diff(collect(t, Frames(dir))); d != "" {
		t.Fatal(d)
	}
	last := int32(0)
	for f := range Frames(dir) { // one point after the other
		if f.Point < last {
			t.Errorf("point %d after point %d", f.Point, last)
		}
		last = f.Point
	}
}

func TestParquetBytesDependOnRecordsOnly(t *testing.T) {
	a, b, c := t.TempDir(), t.TempDir(), t.TempDir()
	apart := func(yield func(Frame, error) bool) {
		for f := range run(2, 120, 30, 500) {
			for i := range f.Chunks {
				if !yield(Frame{Point: f.Point, Chunks: f.Chunks[i : i+1]}, nil) {
					return
				}
			}
			f.Chunks = nil
			if !yield(f, nil) {
				return
			}
		}
	}
	for dir, frames := range map[string]iter.Seq2[Frame, error]{a: run(2, 120, 30, 500), b: apart} {
		if err := WriteParquet(dir, frames); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteParquet(c, Frames(a)); err != nil {
		t.Fatal(err)
	}
	want := readDir(t, a)
	if len(want) != 4 {
		t.Fatalf("%d files", len(want))
	}
	for name, data := range want {
		for _, other := range []string{b, c} {
			if !bytes.Equal(data, readDir(t, other)[name]) {
				t.Errorf("%s differs", name)
			}
		}
	}
}

// The files as another program sees them: read by the library's own means.
func TestParquetColumns(t *testing.T) {
	dir := t.TempDir()
	frames := func(yield func(Frame, error) bool) {
		yield(Frame{
			Point:  2,
			Chunks: []Chunk{{Request: 7, T: 90, Earliest: 80, Tokens: 0, Bytes: 5, Choice: 1, Kind: ToolCall}, {Request: 7, T: 95, Earliest: 95, Tokens: 4}},
			Rows: []Row{{ID: 7, Session: Unset, Due: 0, FirstToken: Unset, DNS: Unset, Status: 503, RetryAfter: Unset,
				PromptTokens: Unset, CompletionTokens: 12, Outcome: Failed, Error: ServerError(500), Detail: "caf\xc3", Finish: "stop", Reused: true}},
			Samples: []Sample{{Point: 2, T: 1, Source: "server", Name: "queue", Value: 3.5}},
			Marks:   []Mark{{Point: 2, T: 3, Name: "end", Data: []byte(`{"a":"<b>"}`)}},
		}, nil)
	}
	if err := WriteParquet(dir, frames); err != nil {
		t.Fatal(err)
	}

	type request struct {
		Point            int32  `parquet:"point"`
		ID               int64  `parquet:"id"`
		Session          *int64 `parquet:"session,optional"`
		Due              *int64 `parquet:"due_ns,optional"`
		FirstToken       *int64 `parquet:"first_token_ns,optional"`
		DNS              *int64 `parquet:"dns_ns,optional"`
		Reused           bool   `parquet:"reused"`
		PromptTokens     *int32 `parquet:"prompt_tokens,optional"`
		CompletionTokens *int32 `parquet:"completion_tokens,optional"`
		Finish           string `parquet:"finish"`
		Status           *int32 `parquet:"status,optional"`
		RetryAfter       *int32 `parquet:"retry_after,optional"`
		Outcome          string `parquet:"outcome"`
		Error            string `parquet:"error"`
		Detail           string `parquet:"detail"`
		ChunkEnd         *int64 `parquet:"chunk_end,optional"`
	}
	requests, err := parquet.ReadFile[request](filepath.Join(dir, rundir.Requests))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]request{{
		Point: 2, ID: 7, Due: new(int64(0)), Reused: true, CompletionTokens: new(int32(12)), Finish: "stop",
		Status: new(int32(503)), Outcome: "failed", Error: "http_500", Detail: "caf\uFFFD", ChunkEnd: new(int64(2)),
	}}, requests); d != "" {
		t.Error(d)
	}

	type chunk struct {
		Point    int32  `parquet:"point"`
		Request  int64  `parquet:"request"`
		T        int64  `parquet:"t_ns"`
		Earliest int64  `parquet:"earliest_ns"`
		Tokens   *int32 `parquet:"tokens,optional"`
		Bytes    int32  `parquet:"bytes"`
		Choice   int32  `parquet:"choice"`
		Kind     string `parquet:"kind"`
	}
	chunks, err := parquet.ReadFile[chunk](filepath.Join(dir, rundir.Chunks))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]chunk{{2, 7, 90, 80, nil, 5, 1, "tool_call"}, {2, 7, 95, 95, new(int32(4)), 0, 0, "answer"}}, chunks); d != "" {
		t.Error(d)
	}

	type sample struct {
		Point  int32   `parquet:"point"`
		T      int64   `parquet:"t_ns"`
		Source string  `parquet:"source"`
		Name   string  `parquet:"name"`
		Value  float64 `parquet:"value"`
	}
	samples, err := parquet.ReadFile[sample](filepath.Join(dir, rundir.Telemetry))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]sample{{2, 1, "server", "queue", 3.5}}, samples); d != "" {
		t.Error(d)
	}

	pf := openParquet(t, filepath.Join(dir, rundir.Requests))
	var names []string
	for _, c := range pf.Root().Columns() {
		names = append(names, c.Name())
	}
	if !slices.Equal(names[:6], []string{"point", "id", "session", "turn", "class", "due_ns"}) {
		t.Errorf("columns in another order: %v", names)
	}
	if created := pf.Metadata().CreatedBy; !strings.HasPrefix(created, "pitot version 1") {
		t.Errorf("created by %q", created)
	}
	if marks, err := os.ReadFile(filepath.Join(dir, rundir.Marks)); string(marks) != `{"schema":"pitot.marks/v1","marks":[{"point":2,"t_ns":3,"name":"end","data":"{\"a\":\"\u003cb\u003e\"}"}]}`+"\n" {
		t.Errorf("marks: %s, %v", marks, err)
	}
}

func TestRowGroups(t *testing.T) {
	dir := t.TempDir()
	samples, err := createTable(dir, rundir.Telemetry, "telemetry", sampleFields, 2*batchRows, 1<<12)
	if err != nil {
		t.Fatal(err)
	}
	const rows = 5*batchRows + 17
	for i := range rows {
		samples.appendRow(sampleRow{Sample: Sample{T: int64(i), Name: strings.Repeat("n", i%7), Value: float64(i)}})
	}
	if err := samples.finish(); err != nil {
		t.Fatal(err)
	}
	l, err := openLines(dir, rundir.Telemetry, sampleFields)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if n := l.parquet.GroupCount(); n != 3 {
		t.Errorf("%d row groups", n)
	}
	for i := range rows {
		s, err := l.peek()
		if err != nil || s == nil {
			t.Fatalf("row %d: %v", i, err)
		}
		if s.T != int64(i) || len(s.Name) != i%7 || s.Value != float64(i) {
			t.Fatalf("row %d: %+v", i, s)
		}
		l.dropRow()
	}
	if s, err := l.peek(); s != nil || err != nil {
		t.Errorf("after the end: %v, %v", s, err)
	}
}

// openParquet opens a file until the end of the test.
func openParquet(t *testing.T, path string) *parquet.File {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	info, _ := file.Stat()
	pf, err := parquet.OpenFile(file, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	return pf
}

// Other programs pass over a page whose bounds say that what they look for is not in
// it: so the bounds that a file states hold, of its pages and of its row groups.
func TestParquetBounds(t *testing.T) {
	dir := t.TempDir()
	var f Frame
	for i := range int64(40) {
		r := BlankRow()
		r.ID, r.Due, r.Outcome, r.Error, r.Reused = i, 10*i, Outcome(i/10), []string{ServerError(500), ""}[i%2], i > 20
		if i%3 == 0 {
			r.Status = 200
		}
		f.Rows = append(f.Rows, r)
		f.Chunks = append(f.Chunks, Chunk{Request: i, T: i, Earliest: i, Bytes: int32(i), Kind: Kind(i % 4)})
		f.Samples = append(f.Samples, Sample{T: i, Source: SourceClient, Name: CPUShare, Value: float64(i) - 7})
	}
	if err := WriteParquet(dir, func(yield func(Frame, error) bool) { yield(f, nil) }); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{rundir.Requests, rundir.Chunks, rundir.Telemetry} {
		pf := openParquet(t, filepath.Join(dir, name))
		for _, column := range pf.RowGroups()[0].ColumnChunks() {
			boundsHold(t, name, pf.Root().Columns()[column.Column()].Name(), column)
		}
	}
}

// boundsHold says where the values of a column are not within the bounds of their page, or
// those of the pages not within those of the group.
func boundsHold(t *testing.T, file, name string, column parquet.ColumnChunk) {
	t.Helper()
	index, err := column.ColumnIndex()
	if err != nil {
		t.Fatal(err)
	}
	compare := column.Type().Compare
	pages := column.Pages()
	defer pages.Close()
	for p := range index.NumPages() {
		page, err := pages.ReadPage()
		if err != nil {
			t.Fatal(err)
		}
		values := make([]parquet.Value, page.NumValues())
		if n, err := page.Values().ReadValues(values); n != len(values) {
			t.Fatal(n, err)
		}
		lowest, highest, any := column.(*parquet.FileColumnChunk).Bounds()
		for _, v := range values {
			if v.IsNull() {
				continue
			}
			if index.NullPage(p) || compare(v, index.MinValue(p)) < 0 || compare(v, index.MaxValue(p)) > 0 {
				t.Fatalf("%s, column %s: %v is not from %v to %v", file, name, v, index.MinValue(p), index.MaxValue(p))
			}
			if any && (compare(v, lowest) < 0 || compare(v, highest) > 0) {
				t.Fatalf("%s, column %s: %v is not from %v to %v", file, name, v, lowest, highest)
			}
		}
	}
}

func TestFailedWriteLeavesWhatWasThere(t *testing.T) {
	dir := t.TempDir()
	if err := WriteParquet(dir, run(1, 10, 3, 10)); err != nil {
		t.Fatal(err)
	}
	before := readDir(t, dir)
	boom := errors.New("boom")
	err := WriteParquet(dir, func(yield func(Frame, error) bool) {
		_ = yield(Frame{Rows: []Row{{}}}, nil) && yield(Frame{}, boom)
	})
	if !errors.Is(err, boom) {
		t.Errorf("error: %v", err)
	}
	if d := cmp.Diff(before, readDir(t, dir)); d != "" {
		t.Error(d)
	}
	if err := WriteParquet(filepath.Join(dir, "none"), run(1, 1, 1, 1)); err == nil {
		t.Error("no error for a directory that is not there")
	}
}

// A damaged file gives an error or other values, never a panic or an endless
// run.
func TestDamagedParquet(t *testing.T) {
	good := t.TempDir()
	if err := WriteParquet(good, run(1, 30, 10, 100)); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := readDir(t, good)
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	failed, tried := 0, 0
	for name, data := range files {
		try := func(bad []byte) {
			if err := os.WriteFile(filepath.Join(dir, name), bad, 0o644); err != nil {
				t.Fatal(err)
			}
			tried++
			for _, err := range Frames(dir) {
				if err != nil {
					failed++
				}
			}
		}
		for n := 0; n < len(data); n += len(data)/10 + 1 {
			try(data[:n])
		}
		for i := 0; i < len(data); i += len(data)/50 + 1 {
			bad := bytes.Clone(data)
			bad[i] ^= 0x55
			try(bad)
		}
		try([]byte{})
		try(data)
	}
	if failed == 0 || failed == tried {
		t.Errorf("%d of %d damaged files gave an error", failed, tried)
	}
	os.Remove(filepath.Join(dir, rundir.Chunks))
	for _, err := range Frames(dir) {
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("without chunks: %v", err)
		}
	}
}

func TestMissingColumn(t *testing.T) {
	dir := t.TempDir()
	if err := WriteParquet(dir, run(1, 3, 3, 10)); err != nil {
		t.Fatal(err)
	}
	fewer, err := createTable(dir, rundir.Chunks, "chunks", chunkFields[:5], chunkGroup, 1<<12)
	if err != nil {
		t.Fatal(err)
	}
	if err := fewer.finish(); err != nil {
		t.Fatal(err)
	}
	for _, err := range Frames(dir) {
		if err == nil || !strings.Contains(err.Error(), "no column bytes") {
			t.Errorf("error: %v", err)
		}
	}
}

// Times has of the chunks what it says, and all of the rest.
func TestTimes(t *testing.T) {
	dir := t.TempDir()
	if err := WriteParquet(dir, run(3, 50, 20, 100)); err != nil {
		t.Fatal(err)
	}
	gather := func(frames iter.Seq2[Frame, error]) (chunks []Chunk, rows []Row) {
		for f, err := range frames {
			if err != nil {
				t.Fatal(err)
			}
			chunks, rows = append(chunks, f.Chunks...), append(rows, f.Rows...)
		}
		return chunks, rows
	}
	chunks, rows := gather(Frames(dir))
	times, same := gather(FrameTimes(dir))
	for i := range chunks {
		c := chunks[i]
		chunks[i] = Chunk{Request: c.Request, T: c.T, Tokens: c.Tokens, Choice: c.Choice}
	}
	if d := cmp.Diff(chunks, times) + cmp.Diff(rows, same); len(chunks) == 0 || d != "" {
		t.Errorf("of %d chunks: %s", len(chunks), d)
	}
}

// Rows are there without their chunks, and as they are beside them.
func TestRowsAlone(t *testing.T) {
	dir := t.TempDir()
	if err := WriteParquet(dir, run(3, 50, 20, 100)); err != nil {
		t.Fatal(err)
	}
	want := collect(t, Frames(dir)).Rows
	if err := os.Remove(filepath.Join(dir, rundir.Chunks)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, collect(t, Rows(dir)).Rows); len(want) != 3 || d != "" {
		t.Error(d)
	}
	if err := os.Truncate(filepath.Join(dir, rundir.Requests), 100); err != nil {
		t.Fatal(err)
	}
	for f, err := range Rows(dir) {
		if err == nil {
			t.Errorf("%d rows of a damaged file", len(f.Rows))
		}
	}
}

// createTable starts a file of a run directory under its own name.
func createTable[T any](dir, file, name string, fields []field[T], group, page int) (*table[T], error) {
	f, err := os.Create(filepath.Join(dir, file))
	if err != nil {
		return nil, err
	}
	return newTable(f, name, fields, group, page)
}

// Of a marks.json of another version nothing is read.
func TestMarksFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), rundir.Marks)
	for text, want := range map[string]string{
		`{"schema":"pitot.marks/v1","marks":[{"point":2,"t_ns":3,"name":"end","data":"{}"}]}`: "",
		`{"schema":"pitot.marks/v3","marks":7}`:                                               "another version of pitot wrote it",
		`{}`:                                                                                  "another version of pitot wrote it",
		`{"schema":`:                                                                          "unexpected end",
		`[{"point":"x"}]`:                                                                     "cannot unmarshal",
		`{"schema":"pitot.marks/v1","marks":7}`:                                               "cannot unmarshal",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		marks, err := readMarks(path)
		switch {
		case want != "":
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", text, err)
			}
		case err != nil || len(marks) != 1 || marks[0].Point != 2 || marks[0].T != 3 || marks[0].Name != "end" || string(marks[0].Data) != "{}":
			t.Errorf("%s: %v, %v", text, marks, err)
		}
	}
}
