package plain

import (
	"encoding/json"
	"fmt"
	"io"

	"pitot/internal/results/parquet"
)

// parquetLines gives the rows of a Parquet file as JSON, a line each. Its index is at the
// end: what is compressed besides is unpacked first.
func parquetLines(f *File, packed bool, in io.Reader) (lines io.Reader, err error) {
	defer recoverDamage(&err)
	var at io.ReaderAt = f
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size()
	if packed {
		whole, err := CopyToFile(limitUnpacked(f, in))
		if err != nil {
			return nil, err
		}
		if info, err = whole.Stat(); err != nil {
			return nil, err
		}
		at, size = whole, info.Size()
	}
	file, err := parquet.Open(at, size)
	if err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	return &parquetReader{rows: file.All()}, nil
}

// recoverDamage makes an error of a panic of the library at a damaged file.
func recoverDamage(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("parquet: a damaged file: %v", p)
	}
}

type parquetReader struct {
	rows *parquet.Rows
	out  []byte
	err  error
}

// Read implements [io.Reader].
func (r *parquetReader) Read(p []byte) (int, error) {
	for len(r.out) == 0 && r.err == nil {
		r.readRow()
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	if n == 0 {
		return 0, r.err
	}
	return n, nil
}

// readRow reads a row.
func (r *parquetReader) readRow() {
	defer recoverDamage(&r.err)
	row, err := r.rows.Next()
	var line []byte
	if err == nil {
		line, err = json.Marshal(row)
	}
	switch {
	case err == io.EOF:
		r.out, r.err = nil, io.EOF
	case err != nil:
		r.out, r.err = nil, fmt.Errorf("parquet: %w", err)
	default:
		r.out = append(append(r.out[:0], line...), '\n')
	}
}
