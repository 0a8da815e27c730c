package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"pitot/internal/data/rundir"
)

const (
	// Rows of a row group: bounds what is in memory before it is written.
	requestGroup = 1 << 17
	chunkGroup   = 1 << 20
	sampleGroup  = 1 << 18
)

// Hold takes a file for this process alone, until it is released or the process
// ends, however it does. Another that has it gives [ErrLive]. Nothing is written,
// and whoever reads the file can go on.
func Hold(path string) (release func(), err error) { return claim(path) }

// Live gives [ErrLive] if the journal of a run directory is still being
// written.
func Live(dir string) error {
	if !hasJournal(dir) {
		return nil
	}
	release, err := claim(filepath.Join(dir, rundir.Journal))
	if err != nil {
		return err
	}
	release()
	return nil
}

// Finish turns the journal of a run directory into its Parquet files and
// then removes it; a directory without a journal is left as it is. If it
// fails the journal stays. What is written are frames: those of [Frames], and
// whatever a killed run's journal lacks. On the way each frame is handed to see,
// up to the first error, also when nothing can be written.
func Finish(dir string, frames iter.Seq2[Frame, error], see func(Frame)) error {
	path := filepath.Join(dir, rundir.Journal)
	if !hasJournal(dir) {
		for f, err := range frames {
			if err != nil {
				return err
			}
			see(f)
		}
		return nil
	}
	release, err := claim(path)
	if err != nil {
		return err
	}
	defer release()
	read := false
	seen := func(yield func(Frame, error) bool) {
		read = true
		goOn := true
		for f, err := range frames {
			if err == nil {
				see(f)
			}
			goOn = goOn && yield(f, err)
		}
	}
	if err := WriteParquet(dir, seen); err != nil {
		if !read {
			seen(func(Frame, error) bool { return false })
		}
		return err
	}
	if err := syncDir(dir); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove journal: %w", err)
	}
	return nil
}

// WriteParquet writes frames to requests.parquet, chunks.parquet,
// telemetry.parquet and marks.json in dir, replacing any that are there: each
// is written under a temporary name and renamed when all are complete. Lines keep the
// order of the records; equal records give equal bytes, however they were
// framed.
//
// Memory is bounded by a row group of each file and the number of requests
// open at a time.
func WriteParquet(dir string, frames iter.Seq2[Frame, error]) (err error) {
	name := func(file string) string { return filepath.Join(dir, file+".tmp") }
	var w parquetWriter
	defer func() {
		if err != nil {
			err = fmt.Errorf("write parquet: %w", err)
			w.abandon()
			for _, file := range fileNames() {
				os.Remove(name(file))
			}
		}
	}()
	if w.requests, err = createTable(name(rundir.Requests), "requests", requestFields, requestGroup, 1<<16); err != nil {
		return err
	}
	if w.chunks, err = createTable(name(rundir.Chunks), "chunks", chunkFields, chunkGroup, 1<<18); err != nil {
		return err
	}
	if w.samples, err = createTable(name(rundir.Telemetry), "telemetry", sampleFields, sampleGroup, 1<<18); err != nil {
		return err
	}
	for frame, err := range frames {
		if err != nil {
			return err
		}
		w.add(frame)
	}
	if err := w.finish(); err != nil {
		return err
	}
	if err := w.writeMarks(name(rundir.Marks)); err != nil {
		return err
	}
	for _, file := range fileNames() {
		if err := os.Rename(name(file), filepath.Join(dir, file)); err != nil {
			return err
		}
	}
	return nil
}

// fileNames lists the files in the order in which they appear: the one that a
// reader looks for comes last.
func fileNames() [4]string {
	return [...]string{rundir.Telemetry, rundir.Chunks, rundir.Marks, rundir.Requests}
}

type parquetWriter struct {
	requests *table[requestRow]
	chunks   *table[chunkRow]
	samples  *table[Sample]
	marks    []jsonMark

	written int64                     // chunks so far
	ends    map[int32]map[int64]int64 // point, open request: written after its last chunk
}

// jsonMark is a mark in its file. Its data is a JSON text inside a
// string, so that it comes back byte by byte.
type jsonMark struct {
	Point int32  `json:"point"`
	T     int64  `json:"t_ns"`
	Name  string `json:"name"`
	Data  string `json:"data"`
}

func (w *parquetWriter) add(f Frame) {
	if w.ends == nil {
		w.ends = make(map[int32]map[int64]int64)
	}
	ends := w.ends[f.Point]
	if ends == nil {
		ends = make(map[int64]int64)
		w.ends[f.Point] = ends
	}
	for i := range f.Chunks {
		w.written++
		ends[f.Chunks[i].Request] = w.written
		w.chunks.add(chunkRow{f.Point, f.Chunks[i]})
	}
	for i := range f.Rows {
		row := requestRow{f.Rows[i], ends[f.Rows[i].ID]}
		row.Point = f.Point
		delete(ends, row.ID)
		w.requests.add(row)
	}
	for _, s := range f.Samples {
		s.Point = f.Point
		w.samples.add(s)
	}
	for _, m := range f.Marks {
		w.marks = append(w.marks, jsonMark{f.Point, m.T, m.Name, string(m.Data)})
	}
}

func (w *parquetWriter) finish() error {
	if err := w.requests.finish(); err != nil {
		return err
	}
	if err := w.chunks.finish(); err != nil {
		return err
	}
	return w.samples.finish()
}

// writeMarks writes the marks as a JSON list.
func (w *parquetWriter) writeMarks(path string) error {
	if w.marks == nil {
		w.marks = []jsonMark{}
	}
	list, err := json.Marshal(w.marks)
	if err != nil {
		return fmt.Errorf("encode marks: %w", err)
	}
	return os.WriteFile(path, append(list, '\n'), 0o644)
}

// readMarks reads them back; there are none in a directory without the file.
func readMarks(path string) (marks []Mark, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read marks: %w", err)
	}
	var list []jsonMark
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	for _, j := range list {
		marks = append(marks, Mark{Point: j.Point, T: j.T, Name: j.Name, Data: []byte(j.Data)})
	}
	return marks, nil
}

func (w *parquetWriter) abandon() {
	w.requests.abandon()
	w.chunks.abandon()
	w.samples.abandon()
}
