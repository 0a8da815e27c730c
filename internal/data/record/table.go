package record

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// batchRows is how many rows pass through a table at once: a column of them
// stays in the processor's cache.
const batchRows = 1024

// A table writes rows of T to a Parquet file, column by column, in row
// groups of a fixed number of rows: equal rows give equal bytes. A goroutine
// of its own encodes while further rows are added.
type table[T any] struct {
	fields []field[T]
	file   *os.File
	out    *bufio.Writer
	writer *parquet.GenericWriter[any]

	buf  []T        // takes rows
	full chan []T   // to the goroutine
	free chan []T   // back from it
	done chan error // its first error, when full was closed

	group  int // rows of a row group, a multiple of batchRows
	rows   int // in the row group so far
	values []parquet.Value
}

// newTable starts a Parquet file. Page is the size in bytes at which a
// page of a column is encoded; a column keeps a buffer of about that size.
func newTable[T any](file *os.File, name string, fields []field[T], group, page int) *table[T] {
	out := bufio.NewWriterSize(file, 1<<18)
	options := []parquet.WriterOption{
		schemaOf(name, fields),
		parquet.Compression(newPageCodec(page)),
		parquet.PageBufferSize(page),
		parquet.DictionaryMaxBytes(1 << 20),
		parquet.DataPageStatistics(false), // the column index has the same
		parquet.CreatedBy("pitot", "1", ""),
	}
	t := &table[T]{
		fields: fields,
		file:   file,
		out:    out,
		writer: parquet.NewGenericWriter[any](out, options...),
		buf:    make([]T, 0, batchRows),
		full:   make(chan []T),
		free:   make(chan []T, 2),
		done:   make(chan error, 1),
		group:  group,
		values: make([]parquet.Value, batchRows),
	}
	for range cap(t.free) {
		t.free <- make([]T, 0, batchRows)
	}
	go t.encode(t.full)
	return t
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
	columns := t.writer.ColumnWriters()
	values := t.values[:len(rows)]
	for i := range t.fields {
		f := &t.fields[i]
		f.values(values, rows)
		if _, err := columns[i].WriteRowValues(values); err != nil {
			return fmt.Errorf("write column %s: %w", f.name, err)
		}
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

// values sets values to the field of each of rows, as Parquet has it.
func (f *field[T]) values(values []parquet.Value, rows []T) {
	var zero T
	switch f.at(&zero).(type) { // once, not for every row
	case *int64:
		for i := range rows {
			values[i] = parquet.Int64Value(*f.at(&rows[i]).(*int64))
		}
	case *int32:
		for i := range rows {
			values[i] = parquet.Int32Value(*f.at(&rows[i]).(*int32))
		}
	case *float64:
		for i := range rows {
			values[i] = parquet.DoubleValue(*f.at(&rows[i]).(*float64))
		}
	case *bool:
		for i := range rows {
			values[i] = parquet.BooleanValue(*f.at(&rows[i]).(*bool))
		}
	case *uint8:
		for i := range rows {
			values[i] = parquet.ByteArrayValue(f.words[*f.at(&rows[i]).(*uint8)&3])
		}
	case *string:
		for i := range rows {
			// A detail is cut at a number of bytes, perhaps inside a letter,
			// and other readers refuse text that is not UTF-8.
			text := strings.ToValidUTF8(*f.at(&rows[i]).(*string), "\uFFFD")
			values[i] = parquet.ByteArrayValue([]byte(text))
		}
	}
	if f.null == never {
		return
	}
	null := int64(0)
	if f.null == ifUnset {
		null = Unset
	}
	last, defined := null, parquet.Value{} // most numbers are the one before again
	for i := range values {
		n := values[i].Int64()
		if n != last {
			last, defined = n, parquet.Value{}
			if n != null {
				defined = values[i].Level(0, 1, 0)
			}
		}
		values[i] = defined
	}
}

// kind gives the physical type of the field's column.
func (f *field[T]) kind() parquet.Kind {
	var row T
	switch f.at(&row).(type) {
	case *int64:
		return parquet.Int64
	case *int32:
		return parquet.Int32
	case *float64:
		return parquet.Double
	case *bool:
		return parquet.Boolean
	}
	return parquet.ByteArray
}

// node gives the field's column: numbers as deltas, which suits stamps in
// order and constants alike, strings through a dictionary.
func (f *field[T]) node() parquet.Node {
	var node parquet.Node
	switch kind := f.kind(); kind {
	case parquet.Int64:
		node = parquet.Encoded(parquet.Leaf(parquet.Int64Type), &parquet.DeltaBinaryPacked)
	case parquet.Int32:
		node = parquet.Encoded(parquet.Leaf(parquet.Int32Type), &parquet.DeltaBinaryPacked)
	case parquet.Double:
		node = parquet.Leaf(parquet.DoubleType)
	case parquet.Boolean:
		node = parquet.Leaf(parquet.BooleanType)
	default:
		node = parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
	}
	if f.null != never {
		node = parquet.Optional(node)
	}
	return node
}

func schemaOf[T any](name string, fields []field[T]) *parquet.Schema {
	columns, at := parquet.Group{}, make(map[string]int)
	for i := range fields {
		columns[fields[i].name], at[fields[i].name] = fields[i].node(), i
	}
	order := make([]parquet.Field, len(fields))
	for _, column := range columns.Fields() {
		order[at[column.Name()]] = column
	}
	return parquet.NewSchema(name, orderedGroup{columns, order})
}

// orderedGroup is a group whose columns keep the order of the fields; the
// library would sort them by name.
type orderedGroup struct {
	parquet.Group
	fields []parquet.Field
}

func (g orderedGroup) Fields() []parquet.Field { return g.fields }
