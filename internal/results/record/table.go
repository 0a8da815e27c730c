package record

import (
	"bufio"
	"errors"
	"os"
	"strings"

	"pitot/internal/results/parquet"
)

// batchRows is the number of rows that pass through a table at once: a column of them stays in the
// processor's cache.
const batchRows = 1024

// A table writes rows of T to a Parquet file, column by column, in row
// groups of a fixed number of rows: equal rows give equal bytes. A goroutine
// of its own encodes while further rows are added.
type table[T any] struct {
	fields []field[T]
	file   *os.File
	out    *bufio.Writer
	writer *parquet.Writer

	buf  []T        // takes rows
	full chan []T   // to the goroutine
	free chan []T   // back from it
	done chan error // its first error, when full was closed

	group int // rows of a row group, a multiple of batchRows
	rows  int // in the row group so far
}

// newTable starts a Parquet file. Page is the size in bytes at which a
// page of a column is encoded; a column keeps a buffer of about that size.
func newTable[T any](file *os.File, name string, fields []field[T], group, page int) (*table[T], error) {
	out := bufio.NewWriterSize(file, 1<<18)
	columns := make([]parquet.Column, len(fields))
	for i := range fields {
		columns[i] = parquet.Column{Name: fields[i].name, Kind: fields[i].kind(), Optional: fields[i].null != never}
	}
	writer, err := parquet.NewWriter(out, name, "pitot version 1", columns, page)
	if err != nil {
		return nil, err
	}
	t := &table[T]{
		fields: fields,
		file:   file,
		out:    out,
		writer: writer,
		buf:    make([]T, 0, batchRows),
		full:   make(chan []T),
		free:   make(chan []T, 2),
		done:   make(chan error, 1),
		group:  group,
	}
	for range cap(t.free) {
		t.free <- make([]T, 0, batchRows)
	}
	go t.encode(t.full)
	return t, nil
}

// appendRow takes a row. Its errors are returned by finish.
func (t *table[T]) appendRow(row T) {
	t.buf = append(t.buf, row)
	if len(t.buf) == batchRows {
		t.full <- t.buf
		t.buf = <-t.free
	}
}

func (t *table[T]) encode(full <-chan []T) {
	var err error
	for rows := range full {
		if err == nil {
			err = t.write(rows)
		}
		t.free <- rows[:0]
	}
	t.done <- err
}

// write hands rows to the columns.
func (t *table[T]) write(rows []T) error {
	for i := range t.fields {
		t.fields[i].putColumn(t.writer.Column(i), rows)
	}
	if t.rows += len(rows); t.rows < t.group {
		return nil
	}
	t.rows = 0
	return t.writer.Flush()
}

// finish completes the file and brings it to the disk. The file is closed
// whether that succeeds or not.
func (t *table[T]) finish() (err error) {
	defer func() { err = errors.Join(err, t.file.Close()) }()
	if err := t.stop(); err != nil {
		return err
	}
	if err := t.write(t.buf); err != nil {
		return err
	}
	if err := t.writer.Close(); err != nil {
		return err
	}
	if err := t.out.Flush(); err != nil {
		return err
	}
	return t.file.Sync()
}

// abandon gives up the file, if that is not too late.
func (t *table[T]) abandon() {
	if t != nil && t.full != nil {
		t.stop()
		t.file.Close()
	}
}

// stop ends the goroutine and gives its error.
func (t *table[T]) stop() error {
	close(t.full)
	t.full = nil
	return <-t.done
}

// putColumn hands the field of each of rows to its column.
func (f *field[T]) putColumn(column *parquet.ColumnWriter, rows []T) {
	null := int64(0)
	if f.null == ifUnset {
		null = Unset
	}
	var zero T
	switch f.at(&zero).(type) { // once, not for every row
	case *int64:
		for i := range rows {
			if x := *f.at(&rows[i]).(*int64); f.null != never && x == null {
				column.Null()
			} else {
				column.Long(x)
			}
		}
	case *int32:
		for i := range rows {
			if x := *f.at(&rows[i]).(*int32); f.null != never && int64(x) == null {
				column.Null()
			} else {
				column.Int(x)
			}
		}
	case *float64:
		for i := range rows {
			column.Double(*f.at(&rows[i]).(*float64))
		}
	case *bool:
		for i := range rows {
			column.Bool(*f.at(&rows[i]).(*bool))
		}
	case *uint8:
		for i := range rows {
			column.Text(f.words[*f.at(&rows[i]).(*uint8)&3])
		}
	case *string:
		for i := range rows {
			// A detail is cut at a number of bytes, perhaps inside a letter,
			// and other readers refuse text that is not UTF-8.
			column.Text([]byte(strings.ToValidUTF8(*f.at(&rows[i]).(*string), "\uFFFD")))
		}
	}
}

// kind gives the physical type of the field's column.
func (f *field[T]) kind() parquet.Kind {
	var row T
	switch f.at(&row).(type) {
	case *int64:
		return parquet.Long
	case *int32:
		return parquet.Int
	case *float64:
		return parquet.Double
	case *bool:
		return parquet.Bool
	}
	return parquet.Text
}
