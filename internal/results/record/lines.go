package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"pitot/internal/results/parquet"
	"pitot/internal/userfile"
)

// A lines reads the rows of a Parquet file in order, a batch at a time.
// Columns that T has no field for are passed over.
type lines[T any] struct {
	name    string
	fields  []field[T]
	file    *os.File
	parquet *parquet.File
	words   decoder // for its store of strings

	at      []int // of each field's column
	group   int   // next row group
	left    int64 // rows of the current group not read yet
	columns []column
	buf     []T // rows read but not taken
	batch   []T
}

func openLines[T any](dir, name string, fields []field[T]) (l *lines[T], err error) {
	file, err := userfile.Open(filepath.Join(dir, name))
	if err != nil {
		return nil, fmt.Errorf("open records: %w", err)
	}
	l = &lines[T]{name: name, fields: fields, file: file, batch: make([]T, batchRows)}
	if err := recoverError(l.open); err != nil {
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
	if l.parquet, err = parquet.Open(l.file, info.Size()); err != nil {
		return err
	}
	for i := range l.fields {
		f := &l.fields[i]
		c, at := l.parquet.Column(f.name)
		if c == nil || !c.IsLeaf() || c.Repeated || c.Kind() != f.kind() {
			return fmt.Errorf("no column %s of type %s", f.name, f.kind())
		}
		l.at = append(l.at, at)
	}
	l.columns = make([]column, len(l.fields))
	return nil
}

// peek gives the next row, nil at the end. It is valid until take.
func (l *lines[T]) peek() (*T, error) {
	if len(l.buf) == 0 {
		if err := recoverError(l.fill); err != nil {
			return nil, fmt.Errorf("read %s: %w", l.name, err)
		}
		if len(l.buf) == 0 {
			return nil, nil
		}
	}
	return &l.buf[0], nil
}

// dropRow passes to the row after the one that peek gave.
func (l *lines[T]) dropRow() { l.buf = l.buf[1:] }

// fill reads the next batch of rows, none at the end of the file.
func (l *lines[T]) fill() error {
	for l.left == 0 {
		if l.group == l.parquet.GroupCount() {
			return nil
		}
		for i := range l.columns {
			pages, err := l.parquet.ReadPages(l.group, l.at[i])
			if err != nil {
				return fmt.Errorf("column %s: %w", l.fields[i].name, err)
			}
			l.columns[i] = column{pages: pages}
		}
		l.left = l.parquet.Rows(l.group)
		l.group++
	}
	rows := l.batch[:min(int64(len(l.batch)), l.left)]
	for i := range l.fields {
		if err := readColumn(&l.columns[i], &l.fields[i], &l.words, rows); err != nil {
			return fmt.Errorf("column %s: %w", l.fields[i].name, err)
		}
	}
	l.left -= int64(len(rows))
	l.buf = rows
	return nil
}

func (l *lines[T]) close() { l.file.Close() }

// A column reads the values of one column of a row group, page by page.
type column struct {
	pages *parquet.Pages
	page  *parquet.Page // nil where the next is to be read
	slot  int           // of it
	value int
}

// readColumn sets field f of all rows.
func readColumn[T any](c *column, f *field[T], words *decoder, rows []T) error {
	for len(rows) > 0 {
		if c.page == nil {
			page, err := c.pages.Next()
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			if err != nil {
				return err
			}
			c.page, c.slot, c.value = page, 0, 0
		}
		n := min(len(rows), c.page.Slots-c.slot)
		if err := f.takeValues(c, words, rows[:n]); err != nil {
			return err
		}
		if rows = rows[n:]; c.slot == c.page.Slots {
			c.page = nil
		}
	}
	return nil
}

// nextIndex is the place of the value of the slot that is next, false for a null.
func (c *column) nextIndex() (int, bool) {
	i := c.slot
	if c.slot++; c.page.Def != nil && c.page.Def[i] == 0 {
		return 0, false
	}
	at := c.value
	if c.value++; c.page.Index != nil {
		at = int(c.page.Index[at])
	}
	return at, true
}

// setNumbers sets field f of rows to values as they lie in the page, which most columns have; false
// where there are nulls among them, or a dictionary.
func setNumbers[T, N any](c *column, f *field[T], rows []T, values []N) bool {
	if c.page.Def != nil || c.page.Index != nil {
		return false
	}
	values = values[c.value:]
	for i := range rows {
		*f.at(&rows[i]).(*N) = values[i]
	}
	c.slot, c.value = c.slot+len(rows), c.value+len(rows)
	return true
}

// takeValues sets field f of as many rows as there are slots for.
func (f *field[T]) takeValues(c *column, words *decoder, rows []T) error {
	null := int64(0)
	if f.null == ifUnset {
		null = Unset
	}
	var zero T
	switch f.at(&zero).(type) { // once, not for every row
	case *int64:
		if setNumbers(c, f, rows, c.page.Longs) {
			break
		}
		for i := range rows {
			x := null
			if at, ok := c.nextIndex(); ok {
				x = c.page.Longs[at]
			}
			*f.at(&rows[i]).(*int64) = x
		}
	case *int32:
		if setNumbers(c, f, rows, c.page.Ints) {
			break
		}
		for i := range rows {
			x := int32(null)
			if at, ok := c.nextIndex(); ok {
				x = c.page.Ints[at]
			}
			*f.at(&rows[i]).(*int32) = x
		}
	case *float64:
		for i := range rows {
			x := 0.
			if at, ok := c.nextIndex(); ok {
				x = c.page.Doubles[at]
			}
			*f.at(&rows[i]).(*float64) = x
		}
	case *bool:
		for i := range rows {
			x := false
			if at, ok := c.nextIndex(); ok {
				x = c.page.Bools[at]
			}
			*f.at(&rows[i]).(*bool) = x
		}
	case *string:
		for i := range rows {
			x := ""
			if at, ok := c.nextIndex(); ok {
				x = words.intern(c.page.Texts[at])
			}
			*f.at(&rows[i]).(*string) = x
		}
	case *uint8:
		for i := range rows {
			var text []byte
			if at, ok := c.nextIndex(); ok {
				text = c.page.Texts[at]
			}
			word := slices.IndexFunc(f.words, func(word []byte) bool { return bytes.Equal(word, text) })
			if word < 0 {
				return fmt.Errorf("unknown word %q", text)
			}
			*f.at(&rows[i]).(*uint8) = uint8(word)
		}
	}
	return nil
}

// recoverError runs f and makes an error of a panic: a damaged Parquet file can
// bring its decoder to one.
func recoverError(f func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("damaged file")
		}
	}()
	return f()
}
