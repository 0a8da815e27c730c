package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
)

// A lines reads the rows of a Parquet file in order, a batch at a time.
// Columns that T has no field for are passed over.
type lines[T any] struct {
	name    string
	fields  []field[T]
	file    *os.File
	parquet *parquet.File
	words   decoder // for its store of strings

	at      []int // of each field's column, or absent
	group   int   // next row group
	left    int64 // rows of the current group not read yet
	columns []column
	buf     []T // rows read but not taken
	batch   []T
}

// absent is the column of a field that a file does not have.
const absent = -1

func openLines[T any](dir, name string, fields []field[T]) (l *lines[T], err error) {
	file, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return nil, fmt.Errorf("open records: %w", err)
	}
	l = &lines[T]{name: name, fields: fields, file: file, batch: make([]T, batchRows)}
	if err := guard(l.open); err != nil {
		file.Close()
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return l, nil
}

func (l *lines[T]) open() error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	l.parquet, err = parquet.OpenFile(l.file, info.Size(),
		parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.ReadBufferSize(1<<16))
	if err != nil {
		return err
	}
	for i := range l.fields {
		f := &l.fields[i]
		c := l.parquet.Root().Column(f.name)
		if c == nil && f.later {
			l.at = append(l.at, absent)
			continue
		}
		if c == nil || !c.Leaf() || c.Repeated() || c.Type().Kind() != f.kind() {
			return fmt.Errorf("no column %s of type %s", f.name, f.kind())
		}
		l.at = append(l.at, c.Index())
	}
	l.columns = make([]column, len(l.fields))
	return nil
}

// peek gives the next row, nil at the end. It is valid until take.
func (l *lines[T]) peek() (*T, error) {
	if len(l.buf) == 0 {
		if err := guard(l.fill); err != nil {
			return nil, fmt.Errorf("read %s: %w", l.name, err)
		}
		if len(l.buf) == 0 {
			return nil, nil
		}
	}
	return &l.buf[0], nil
}

// drop passes to the row after the one that peek gave.
func (l *lines[T]) drop() { l.buf = l.buf[1:] }

// fill reads the next batch of rows, none at the end of the file.
func (l *lines[T]) fill() error {
	groups := l.parquet.RowGroups()
	for l.left == 0 {
		if l.group == len(groups) {
			return nil
		}
		group := groups[l.group]
		chunks := group.ColumnChunks()
		for i := range l.columns {
			l.columns[i].close()
			if l.at[i] != absent {
				l.columns[i] = column{pages: chunks[l.at[i]].Pages()}
			}
		}
		l.left = group.NumRows()
		l.group++
	}
	rows := l.batch[:min(int64(len(l.batch)), l.left)]
	for i := range l.fields {
		if l.at[i] == absent {
			l.fields[i].clear(rows)
			continue
		}
		if err := readColumn(&l.columns[i], &l.fields[i], &l.words, rows); err != nil {
			return fmt.Errorf("column %s: %w", l.fields[i].name, err)
		}
	}
	l.left -= int64(len(rows))
	l.buf = rows
	return nil
}

func (l *lines[T]) close() {
	for i := range l.columns {
		l.columns[i].close()
	}
	l.file.Close()
}

// A column reads the values of one column of a row group, page by page.
type column struct {
	pages  parquet.Pages
	page   parquet.Page
	values parquet.ValueReader // nil where the page is plain numbers:
	longs  []int64
	ints   []int32
	buf    [256]parquet.Value
}

// open takes the next page. Numbers without a null among them, which most are,
// need not become values one by one.
func (c *column) open(page parquet.Page) {
	c.page = page
	if page.Dictionary() == nil && page.NumNulls() == 0 {
		switch data := page.Data(); data.Kind() {
		case encoding.Int64:
			if c.longs = data.Int64(); int64(len(c.longs)) == page.NumValues() {
				return
			}
		case encoding.Int32:
			if c.ints = data.Int32(); int64(len(c.ints)) == page.NumValues() {
				return
			}
		}
	}
	c.longs, c.ints, c.values = nil, nil, page.Values()
}

// done gives the page back.
func (c *column) done() {
	parquet.Release(c.page)
	c.page, c.values, c.longs, c.ints = nil, nil, nil, nil
}

// readNumbers sets field f of as many rows as plain numbers are left of the page.
func readNumbers[T, N any](f *field[T], rows []T, numbers []N) int {
	n := min(len(rows), len(numbers))
	for i := range n {
		*f.at(&rows[i]).(*N) = numbers[i]
	}
	return n
}

// readColumn sets field f of all rows.
func readColumn[T any](c *column, f *field[T], words *decoder, rows []T) error {
	for len(rows) > 0 {
		if c.page == nil {
			page, err := c.pages.ReadPage()
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			if err != nil {
				return err
			}
			c.open(page)
		}
		if c.values == nil {
			n := readNumbers(f, rows, c.longs)
			c.longs = c.longs[min(n, len(c.longs)):]
			if n == 0 {
				n = readNumbers(f, rows, c.ints)
				c.ints = c.ints[n:]
			}
			if rows = rows[n:]; len(c.longs)+len(c.ints) == 0 {
				c.done()
			}
			continue
		}
		n, err := c.values.ReadValues(c.buf[:min(len(c.buf), len(rows))])
		for i, v := range c.buf[:n] {
			if !f.decode(&rows[i], v, words) {
				return fmt.Errorf("unknown word %q", v.String())
			}
		}
		rows = rows[n:]
		if err == io.EOF {
			c.done()
		} else if err != nil {
			return err
		} else if n == 0 {
			return io.ErrNoProgress
		}
	}
	return nil
}

func (c *column) close() {
	if c.page != nil {
		parquet.Release(c.page)
	}
	if c.pages != nil {
		c.pages.Close()
	}
	*c = column{}
}

// decode puts v into the field of row; false says that it is no word of it.
func (f *field[T]) decode(row *T, v parquet.Value, words *decoder) bool {
	switch p := f.at(row).(type) {
	case *int64:
		*p = v.Int64()
		if v.IsNull() && f.null == ifUnset {
			*p = Unset
		}
	case *int32:
		*p = v.Int32()
		if v.IsNull() && f.null == ifUnset {
			*p = Unset
		}
	case *float64:
		*p = v.Double()
	case *bool:
		*p = v.Boolean()
	case *string:
		*p = words.intern(v.ByteArray())
	case *uint8:
		for i, word := range f.words {
			if bytes.Equal(word, v.ByteArray()) {
				*p = uint8(i)
				return true
			}
		}
		return false
	}
	return true
}

// clear makes the field null, or 0, in all rows.
func (f *field[T]) clear(rows []T) {
	for i := range rows {
		f.decode(&rows[i], parquet.NullValue(), nil)
	}
}

// guard runs f and makes an error of a panic: a damaged Parquet file can
// bring its decoder to one.
func guard(f func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("damaged file")
		}
	}()
	return f()
}
