package record

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"pitot/internal/results/rundir"
)

const (
	// Rows of a row group, and bytes of a page of it. A group is in memory until it is
	// written, compressed, and so is a page of each column. What the end of a file
	// says of each group, column and page is there until the file is complete: it
	// grows with the run, by as much less as groups and pages are larger.
	requestGroup, requestPage = 1 << 20, 1 << 19
	chunkGroup, chunkPage     = 1 << 20, 1 << 19
	sampleGroup, samplePage   = 1 << 18, 1 << 18
)

// Finish turns the journal of a run directory into its Parquet files and then removes it; a
// directory without a journal is left as it is. A damaged journal stays, as [rundir.Damaged]; if
// Finish fails the journal stays as well. What is written are frames: those of [Frames], and
// whatever a killed run's journal lacks. On the way each frame is handed to see, up to the first
// error, also when nothing can be written.
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
	release, err := rundir.Claim(path)
	if err != nil {
		return err
	}
	defer release()
	read, damaged := false, false
	seen := func(yield func(Frame, error) bool) {
		read = true
		goOn := true
		for f, err := range frames {
			if err == nil {
				damaged = damaged || isDamage(&f)
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
	if damaged { // what could not be read today may be read by other means
		if _, err := rundir.KeepDamaged(dir); err != nil {
			return err
		}
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
	temps := map[string]*os.File{}
	var w parquetWriter
	defer func() {
		if err != nil {
			err = fmt.Errorf("write parquet: %w", err)
			w.abandon()
			for _, temp := range temps {
				temp.Close() // most are already
				os.Remove(temp.Name())
			}
		}
	}()
	for _, name := range fileNames() {
		if temps[name], err = rundir.CreateTemp(dir, name); err != nil {
			delete(temps, name)
			return err
		}
	}
	if w.requests, err = newTable(temps[rundir.Requests], "requests", requestFields, requestGroup, requestPage); err != nil {
		return err
	}
	if w.chunks, err = newTable(temps[rundir.Chunks], "chunks", chunkFields, chunkGroup, chunkPage); err != nil {
		return err
	}
	if w.samples, err = newTable(temps[rundir.Telemetry], "telemetry", sampleFields, sampleGroup, samplePage); err != nil {
		return err
	}
	for frame, err := range frames {
		if err != nil {
			return err
		}
		w.writeFrame(frame)
	}
	if err := w.finish(); err != nil {
		return err
	}
	if err := writeMarks(temps[rundir.Marks], w.marks); err != nil {
		return err
	}
	for _, name := range fileNames() {
		if err := rundir.PlaceFile(temps[name].Name(), dir, name); err != nil {
			return err
		}
	}
	return rundir.SyncDir(dir)
}

// fileNames lists the files in the order in which they appear: the one that a
// reader looks for comes last.
func fileNames() [4]string {
	return [...]string{rundir.Telemetry, rundir.Chunks, rundir.Marks, rundir.Requests}
}

type parquetWriter struct {
	requests *table[requestRow]
	chunks   *table[chunkRow]
	samples  *table[sampleRow]
	marks    []jsonMark

	written int64                    // chunks so far
	ends    map[part]map[int64]int64 // open request: written after its last chunk
}

func (w *parquetWriter) writeFrame(f Frame) {
	if w.ends == nil {
		w.ends = make(map[part]map[int64]int64)
	}
	of := f.partKey()
	ends := w.ends[of]
	if ends == nil {
		ends = make(map[int64]int64)
		w.ends[of] = ends
	}
	for i := range f.Chunks {
		w.written++
		ends[f.Chunks[i].Request] = w.written
		c := chunkRow{f.Point, f.Chunks[i]}
		c.Request = globalID(f.Worker, c.Request)
		w.chunks.appendRow(c)
	}
	for i := range f.Rows {
		row := requestRow{f.Rows[i], ends[f.Rows[i].ID]}
		row.Point = f.Point
		delete(ends, row.ID)
		row.ID = globalID(f.Worker, row.ID)
		if row.After >= 0 {
			row.After = globalID(f.Worker, row.After)
		}
		w.requests.appendRow(row)
	}
	for _, s := range f.Samples {
		s.Point = f.Point
		w.samples.appendRow(sampleRow{s, f.Worker})
	}
	for _, m := range f.Marks {
		w.marks = append(w.marks, jsonMark{f.Point, f.Worker, m.T, m.Name, string(m.Data)})
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

func (w *parquetWriter) abandon() {
	w.requests.abandon()
	w.chunks.abandon()
	w.samples.abandon()
}
