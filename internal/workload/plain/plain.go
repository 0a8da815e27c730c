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
	"io/fs"
	"math"
	"os"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"pitot/internal/userfile"
)

// File is a file as plain text that can be read from any place and more than once: the
// file itself, or a copy without a name where it is packed.
type File struct {
	*os.File
	Packed []string // what it was unpacked of, as "gzip", "utf-16"
	start  int64    // behind the byte order mark
	remove string   // where a copy could not lose its name
	held   bool     // it stays open for others
}

// nested is the number of packings that may lie in each other: a Parquet or UTF-16 file in a
// compressed one.
const nested = 3

// mostWindow bounds what a Zstandard file can ask of memory.
const mostWindow = 128 << 20

// Open opens a file. A packed one is unpacked into a file where the system keeps its
// temporary ones.
func Open(path string) (*File, error) {
	f, r, packed, err := openLayers(path)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); len(packed) == 0 && err == nil && info.Mode().IsRegular() {
		var mark [3]byte
		if n, _ := f.ReadAt(mark[:], 0); n == 3 && mark == [3]byte{0xef, 0xbb, 0xbf} {
			f.start = 3
		}
		return f, nil
	}
	defer f.Close()
	copied, err := CopyToFile(r)
	if err != nil {
		return nil, err
	}
	copied.Packed = packed
	return copied, nil
}

// openUnpacked opens a file as it is packed.
func openUnpacked(path string) (*File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if userfile.IsPipe(info) {
		return openPipe(path, info)
	}
	f, err := userfile.Open(path)
	if err != nil {
		return nil, err
	}
	return &File{File: f}, nil
}

// pipes are those that were read: a pipe gives what it holds once, and a workload is read many
// times. What came out of each is kept until the process ends.
var pipes struct {
	sync.Mutex
	read []*pipe
}

type pipe struct {
	path string
	info fs.FileInfo
	once sync.Once
	held *File
	err  error // why it cannot be read, in place of held
}

// mostPiped is the most bytes that a pipe may give.
var mostPiped int64 = 16 << 30

// openPipe opens what came out of a pipe.
func openPipe(path string, info fs.FileInfo) (*File, error) {
	p := pipeOf(path, info)
	p.once.Do(func() { p.held, p.err = keepPipe(path) })
	if p.err != nil {
		return nil, p.err
	}
	return &File{File: p.held.File, held: true}, nil
}

func pipeOf(path string, info fs.FileInfo) *pipe {
	pipes.Lock()
	defer pipes.Unlock()
	for _, p := range pipes.read {
		if p.path == path && os.SameFile(p.info, info) {
			return p
		}
	}
	p := &pipe{path: path, info: info}
	pipes.read = append(pipes.read, p)
	return p
}

func keepPipe(path string) (*File, error) {
	f, err := userfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return CopyToFile(&bounded{r: f, left: mostPiped, over: fmt.Errorf("the pipe gives more than %d GiB", mostPiped>>30)})
}

// bounded reads so many bytes at most; more of them are an error.
type bounded struct {
	r    io.Reader
	left int64
	over error
}

// Read implements [io.Reader].
func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, b.over
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		return n - 1, b.over
	}
	return n, err
}

// What a packed file may come to: so many bytes, or so many times its size where that is more.
var (
	mostUnpacked int64 = 1 << 30
	mostTimes    int64 = 100
)

// limitUnpacked bounds what a packed file comes to.
func limitUnpacked(f *File, r io.Reader) io.Reader {
	most := mostUnpacked
	if info, err := f.Stat(); err == nil {
		most = max(most, mostTimes*info.Size())
	}
	return &bounded{r: r, left: most, over: fmt.Errorf("it comes to more than %d MiB, over %d times its size: unpack it first", most>>20, mostTimes)}
}

// CopyToFile keeps what is read in a file without a name.
func CopyToFile(r io.Reader) (*File, error) {
	f, err := os.CreateTemp("", "pitot-unpacked-")
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	out := &File{File: f}
	if os.Remove(f.Name()) != nil {
		out.remove = f.Name()
	}
	if _, err := io.Copy(f, r); err != nil {
		return nil, errors.Join(fmt.Errorf("unpack: %w", CutError(err)), out.Close())
	}
	return out, nil
}

// Close closes the file.
func (f *File) Close() error {
	if f.held {
		return nil
	}
	err := f.File.Close()
	if f.remove != "" {
		_ = os.Remove(f.remove)
	}
	return err
}

// TextStart is where the text begins, behind a byte order mark.
func (f *File) TextStart() int64 { return f.start }

// Text reads it from the beginning.
func (f *File) Text() io.Reader {
	size := int64(1<<63 - 1)
	if info, err := f.Stat(); err == nil {
		size = info.Size()
	}
	return io.NewSectionReader(f.File, f.start, max(size-f.start, 0))
}

// ReadHead returns the first bytes of the text of a file, at most most of them.
func ReadHead(path string, most int) ([]byte, error) {
	f, r, _, err := openLayers(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(r, int64(most)))
	if err != nil {
		return nil, CutError(err)
	}
	return head, nil
}

// OpenStream reads a file once, from its beginning to its end, without a copy of it anywhere.
func OpenStream(path string) (io.ReadCloser, error) {
	f, r, _, err := openLayers(path)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{r, f}, nil
}

// openLayers opens a file and reads it as plain text, and says what it was packed in.
func openLayers(path string) (f *File, r io.Reader, packed []string, err error) {
	if f, err = openUnpacked(path); err != nil {
		return nil, nil, nil, err
	}
	if r, packed, err = unpackLayers(f); err != nil {
		_ = f.Close()
	} else if len(packed) > 0 {
		r = limitUnpacked(f, r)
	}
	return f, r, packed, err
}

// unpackLayers takes one packing off after the other.
func unpackLayers(f *File) (io.Reader, []string, error) {
	var packed []string
	in := bufio.NewReaderSize(io.NewSectionReader(f, 0, math.MaxInt64), 64<<10)
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
				return nil, nil, fmt.Errorf("gzip: %w", CutError(err))
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

// CutError says of an error of unpacking what it means for the file.
func CutError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the file ends in the middle of its compression: %w", err)
	}
	return err
}

// String names what a file was packed in.
func (f *File) String() string { return strings.Join(f.Packed, ", ") }
