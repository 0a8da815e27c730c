package record

import (
	"fmt"
	"iter"
	"path/filepath"

	"pitot/internal/results/rundir"
)

// mergeRows is the largest number of lines of one file in a frame.
const mergeRows = 1 << 14

// parquetFrames yields the records of the Parquet files of dir, in the order
// of their lines, joined to frames. Of a chunk only the fields given are read.
func parquetFrames(dir string, chunk []field[chunkRow]) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		m, err := openMerge(dir, chunk)
		if err != nil {
			yield(Frame{}, err)
			return
		}
		defer m.close()
		for {
			more, err := m.nextFrame()
			if err != nil {
				yield(Frame{}, err)
				return
			}
			if !more || !yield(m.frame, nil) {
				return
			}
		}
	}
}

// parquetRows yields the rows of a finished run, from requests.parquet alone.
func parquetRows(dir string) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		requests, err := openLines(dir, rundir.Requests, requestFields)
		if err != nil {
			yield(Frame{}, err)
			return
		}
		defer requests.close()
		var f Frame
		for {
			f.Rows = f.Rows[:0]
			for len(f.Rows) < mergeRows {
				r, err := requests.peek()
				if err != nil {
					yield(Frame{}, err)
					return
				}
				if r == nil || len(f.Rows) > 0 && r.partKey() != f.partKey() {
					break
				}
				of := r.partKey()
				f.Point, f.Worker, f.Rows = of.point, of.worker, append(f.Rows, r.toRow())
				requests.dropRow()
			}
			if len(f.Rows) == 0 || !yield(f, nil) {
				return
			}
		}
	}
}

// A merge joins the lines of the Parquet files, point after point. Within a
// point a row comes as soon as its last chunk has.
type merge struct {
	requests *lines[requestRow]
	chunks   *lines[chunkRow]
	samples  *lines[sampleRow]
	marks    []jsonMark

	read  int64 // chunks so far
	frame Frame
}

func openMerge(dir string, chunk []field[chunkRow]) (m *merge, err error) {
	m = new(merge)
	defer func() {
		if err != nil {
			m.close()
		}
	}()
	if m.requests, err = openLines(dir, rundir.Requests, requestFields); err != nil {
		return m, err
	}
	if m.chunks, err = openLines(dir, rundir.Chunks, chunk); err != nil {
		return m, err
	}
	if m.samples, err = openLines(dir, rundir.Telemetry, sampleFields); err != nil {
		return m, err
	}
	m.marks, err = readMarks(filepath.Join(dir, rundir.Marks))
	return m, err
}

// nextFrame makes the next frame and reports whether there was one.
func (m *merge) nextFrame() (bool, error) {
	of, more, err := m.nextPart()
	if err != nil || !more {
		return false, err
	}
	f := &m.frame
	f.Point, f.Worker = of.point, of.worker
	f.Chunks, f.Rows, f.Samples, f.Marks = f.Chunks[:0], f.Rows[:0], f.Samples[:0], f.Marks[:0]
	for len(m.marks) > 0 && m.marks[0].partKey() == of {
		f.Marks, m.marks = append(f.Marks, m.marks[0].toMark()), m.marks[1:]
	}
	for len(f.Chunks) < mergeRows {
		c, err := m.chunks.peek()
		if err != nil {
			return false, err
		}
		if c == nil || c.partKey() != of {
			break
		}
		f.Chunks = append(f.Chunks, c.toChunk())
		m.read++
		m.chunks.dropRow()
	}
	for len(f.Rows) < mergeRows {
		r, err := m.nextRow()
		if err != nil {
			return false, err
		}
		if r == nil || r.partKey() != of {
			break
		}
		f.Rows = append(f.Rows, r.toRow())
		m.requests.dropRow()
	}
	for len(f.Samples) < mergeRows {
		s, err := m.samples.peek()
		if err != nil {
			return false, err
		}
		if s == nil || s.partKey() != of {
			break
		}
		f.Samples = append(f.Samples, s.Sample)
		m.samples.dropRow()
	}
	return true, nil
}

// nextPart gives the part of the next frame: the first of those that have a line
// ready. Something is ready as long as anything is left, since a row
// that is not waits for a chunk.
func (m *merge) nextPart() (of part, more bool, err error) {
	ready := func(p part) {
		if !more || p.less(of) {
			of, more = p, true
		}
	}
	if len(m.marks) > 0 {
		ready(m.marks[0].partKey())
	}
	if c, err := m.chunks.peek(); err != nil {
		return of, false, err
	} else if c != nil {
		ready(c.partKey())
	}
	if r, err := m.nextRow(); err != nil {
		return of, false, err
	} else if r != nil {
		ready(r.partKey())
	}
	if s, err := m.samples.peek(); err != nil {
		return of, false, err
	} else if s != nil {
		ready(s.partKey())
	}
	return of, more, nil
}

// nextRow gives the next row if all its chunks have been read, else nil.
func (m *merge) nextRow() (*requestRow, error) {
	r, err := m.requests.peek()
	if err != nil || r == nil || r.chunkEnd <= m.read {
		return r, err
	}
	c, err := m.chunks.peek()
	if err != nil || c != nil {
		return nil, err
	}
	return nil, fmt.Errorf("read %s: chunks of request %d are missing", rundir.Chunks, r.ID)
}

func (m *merge) close() {
	if m.requests != nil {
		m.requests.close()
	}
	if m.chunks != nil {
		m.chunks.close()
	}
	if m.samples != nil {
		m.samples.close()
	}
}
