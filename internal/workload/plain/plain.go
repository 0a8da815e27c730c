// Package plain gives files as plain text in UTF-8, whatever they are packed in: gzip,
// Zstandard, UTF-16, a byte order mark, Parquet (a JSON object a row). What a file is
// packed in shows in its first bytes, whatever it is called.
package plain

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// File is a file as plain text that can be read from any place and more than once: the
// file itself, or a copy without a name where it is packed.
type File struct {
	*os.File
	Packed []string // what it was unpacked of, as "gzip", "utf-16"
	start  int64    // behind the byte order mark
	remove string   // where a copy could not lose its name
}

// nested is how many packings may lie in each other: a Parquet or UTF-16 file in a
// compressed one.
const nested = 3

// mostWindow bounds what a Zstandard file can ask of memory.
const mostWindow = 128 << 20

// Open opens a file. A packed one is unpacked into a file where the system keeps its
// temporary ones.
func Open(path string) (*File, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	r, packed, err := unpack(f)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	if info, err := f.Stat(); len(packed) == 0 && err == nil && info.Mode().IsRegular() {
		out := &File{File: f}
		var mark [3]byte
		if n, _ := f.ReadAt(mark[:], 0); n == 3 && mark == [3]byte{0xef, 0xbb, 0xbf} {
			out.start = 3
		}
		return out, nil
	}
	defer f.Close()
	copied, err := Copy(r)
	if err != nil {
		return nil, err
	}
	copied.Packed = packed
	return copied, nil
}

func open(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		_ = f.Close()
		return nil, errors.New("want a regular file")
	}
	return f, nil
}

// Copy keeps what is read in a file without a name.
func Copy(r io.Reader) (*File, error) {
	f, err := os.CreateTemp("", "pitot-unpacked-")
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	out := &File{File: f}
	if os.Remove(f.Name()) != nil {
		out.remove = f.Name()
	}
	if _, err := io.Copy(f, r); err != nil {
		return nil, errors.Join(fmt.Errorf("unpack: %w", Cut(err)), out.Close())
	}
	return out, nil
}

// Close closes the file.
func (f *File) Close() error {
	err := f.File.Close()
	if f.remove != "" {
		_ = os.Remove(f.remove)
	}
	return err
}

// Start is where the text begins, behind a byte order mark.
func (f *File) Start() int64 { return f.start }

// Text reads it from the beginning.
func (f *File) Text() io.Reader {
	size := int64(1<<63 - 1)
	if info, err := f.Stat(); err == nil {
		size = info.Size()
	}
	return io.NewSectionReader(f.File, f.start, max(size-f.start, 0))
}

// Head is how the text of a file begins: so many bytes at most.
func Head(path string, most int) ([]byte, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, _, err := unpack(f)
	if err != nil {
		return nil, err
	}
	head, err := io.ReadAll(io.LimitReader(r, int64(most)))
	if err != nil {
		return nil, Cut(err)
	}
	return head, nil
}

// Stream reads a file once, from its beginning to its end, without a copy of it anywhere.
func Stream(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r, _, err := unpack(f)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{r, f}, nil
}

// unpack reads a file as plain text, and says what it was packed in.
func unpack(f *os.File) (io.Reader, []string, error) {
	var packed []string
	in := bufio.NewReaderSize(f, 64<<10)
	for range nested {
		head, err := in.Peek(4)
		if err != nil && err != io.EOF {
			return nil, nil, err
		}
		var r io.Reader
		switch {
		case bytes.HasPrefix(head, []byte{0xef, 0xbb, 0xbf}):
			_, _ = in.Discard(3)
			continue
		case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
			if r, err = gzip.NewReader(in); err != nil {
				return nil, nil, fmt.Errorf("gzip: %w", Cut(err))
			}
			packed = append(packed, "gzip")
		case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
			z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(mostWindow))
			if err != nil {
				return nil, nil, fmt.Errorf("zstandard: %w", err)
			}
			r, packed = z, append(packed, "zstandard")
		case bytes.HasPrefix(head, []byte("PAR1")):
			if r, err = parquetLines(f, len(packed) > 0, in); err != nil {
				return nil, nil, err
			}
			return r, append(packed, "parquet"), nil
		case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
			_, _ = in.Discard(2)
			r, packed = &utf16Reader{in: in, big: head[0] == 0xfe}, append(packed, "utf-16")
		case len(head) == 4 && head[0] != 0 && head[1] == 0 && head[2] != 0 && head[3] == 0:
			r, packed = &utf16Reader{in: in}, append(packed, "utf-16")
		case len(head) == 4 && head[0] == 0 && head[1] != 0 && head[2] == 0 && head[3] != 0:
			r, packed = &utf16Reader{in: in, big: true}, append(packed, "utf-16")
		default:
			return in, packed, nil
		}
		in = bufio.NewReaderSize(r, 64<<10)
	}
	return in, packed, nil
}

// Cut says of an error of unpacking what it means for the file.
func Cut(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the file ends in the middle of its compression: %w", err)
	}
	return err
}

// String names what a file was packed in.
func (f *File) String() string { return strings.Join(f.Packed, ", ") }
