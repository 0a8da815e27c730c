package plain

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"
)

// parquetRows are read at once.
const parquetRows = 256

// parquetLines gives the rows of a Parquet file as JSON, a line each. Its index is at the
// end: what is compressed besides is unpacked first.
func parquetLines(f *os.File, packed bool, in io.Reader) (lines io.Reader, err error) {
	defer func() {
		if p := recover(); p != nil { // the library's, at a damaged file
			err = fmt.Errorf("parquet: a damaged file: %v", p)
		}
	}()
	var at io.ReaderAt = f
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size()
	if packed {
		whole, err := Copy(in)
		if err != nil {
			return nil, err
		}
		if info, err = whole.Stat(); err != nil {
			return nil, err
		}
		at, size = whole, info.Size()
	}
	file, err := parquet.OpenFile(at, size)
	if err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	r := &parquetReader{rows: parquet.NewGenericReader[any](file)}
	return r, nil
}

type parquetReader struct {
	rows *parquet.GenericReader[any]
	out  []byte
	err  error
}

// Read implements [io.Reader].
func (r *parquetReader) Read(p []byte) (int, error) {
	for len(r.out) == 0 && r.err == nil {
		r.more()
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	if n == 0 {
		return 0, r.err
	}
	return n, nil
}

// more reads some rows.
func (r *parquetReader) more() {
	defer func() {
		if p := recover(); p != nil {
			r.err = fmt.Errorf("parquet: a damaged file: %v", p)
		}
	}()
	rows := make([]any, parquetRows)
	n, err := r.rows.Read(rows)
	r.out = r.out[:0]
	for _, row := range rows[:n] {
		line, err := json.Marshal(row)
		if err != nil {
			r.err = fmt.Errorf("parquet: %w", err)
			return
		}
		r.out = append(append(r.out, line...), '\n')
	}
	if err != nil {
		if r.err = err; !errors.Is(err, io.EOF) {
			r.err = fmt.Errorf("parquet: %w", err)
		}
		_ = r.rows.Close()
	} else if n == 0 {
		r.err = io.ErrNoProgress
	}
}
