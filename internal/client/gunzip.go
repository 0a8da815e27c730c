package client

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"iter"

	"github.com/klauspost/compress/flate"
)

// gunzip decompresses push-style (RFC 1952). The library pulls, so the two are joined by
// a coroutine: it runs until it wants more input, then hands control back.
type gunzip struct {
	in   []byte
	out  func([]byte) error
	err  error
	next func() (struct{}, bool)
	stop func()
}

// feed decompresses b and hands the result to out.
func (g *gunzip) feed(b []byte, out func([]byte) error) error {
	g.in, g.out = b, out
	if g.next == nil {
		g.next, g.stop = iter.Pull(func(yield func(struct{}) bool) {
			if err := g.inflate(&gunzipSource{g: g, yield: yield}); g.err == nil {
				g.err = err
			}
		})
	}
	if g.err == nil {
		g.next()
	}
	return g.err
}

// close ends the coroutine.
func (g *gunzip) close() {
	if g.stop != nil {
		g.stop()
		*g = gunzip{}
	}
}

// errGzip is the error of a body that is not gzip, though its header says so.
var errGzip = errors.New("malformed gzip")

// inflate is the coroutine. A body is one member or several in a row; bytes after them that
// begin no member are padding.
func (g *gunzip) inflate(src *gunzipSource) error {
	// Text is handed on after each block, so servers may flush in whichever way.
	z := flate.NewReaderOpts(src, flate.WithPartialBlock())
	buf := make([]byte, 16<<10)
	for members := 0; ; members++ {
		if is, err := src.takeHeader(); err != nil || !is {
			if members > 0 && err == nil {
				g.in = nil
				continue
			}
			return errors.Join(err, errGzip)
		}
		sum, size := crc32.NewIEEE(), uint32(0)
		for {
			n, err := z.Read(buf)
			if n > 0 {
				_, _ = sum.Write(buf[:n]) // never fails
				size += uint32(n)
				if err := g.out(buf[:n]); err != nil {
					return err
				}
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
		}
		var trailer [8]byte
		if _, err := io.ReadFull(src, trailer[:]); err != nil {
			return err
		}
		if binary.LittleEndian.Uint32(trailer[:4]) != sum.Sum32() || binary.LittleEndian.Uint32(trailer[4:]) != size {
			return errors.Join(errGzip, errors.New("its checksum does not match"))
		}
		if err := z.(flate.Resetter).Reset(src, nil); err != nil {
			return err
		}
	}
}

// gunzipSource is the reader of the decompressor. ReadByte keeps the library from reading ahead
// through a buffer of its own.
type gunzipSource struct {
	g     *gunzip
	yield func(struct{}) bool
	ended bool
}

// takeHeader reads the header of a member, and reports whether there is one.
func (s *gunzipSource) takeHeader() (is bool, err error) {
	const hasSum, hasExtra, hasName, hasComment = 1 << 1, 1 << 2, 1 << 3, 1 << 4
	var head [10]byte
	for i := range head {
		if head[i], err = s.ReadByte(); err != nil {
			return false, err
		}
		if i == 2 && (head[0] != 0x1f || head[1] != 0x8b || head[2] != 8) {
			return false, nil
		}
	}
	flags := head[3]
	skip := 0
	if flags&hasExtra != 0 {
		var length [2]byte
		if _, err := io.ReadFull(s, length[:]); err != nil {
			return false, err
		}
		skip = int(binary.LittleEndian.Uint16(length[:]))
	}
	for range skip {
		if _, err := s.ReadByte(); err != nil {
			return false, err
		}
	}
	for _, field := range []byte{hasName, hasComment} {
		for c := byte(1); flags&field != 0 && c != 0; {
			if c, err = s.ReadByte(); err != nil {
				return false, err
			}
		}
	}
	if flags&hasSum != 0 {
		_, err = io.ReadFull(s, head[:2])
	}
	return err == nil, err
}

// waitInput waits for input.
func (s *gunzipSource) waitInput() error {
	for len(s.g.in) == 0 {
		if s.ended || !s.yield(struct{}{}) {
			s.ended = true
			return io.ErrUnexpectedEOF
		}
	}
	return nil
}

func (s *gunzipSource) Read(p []byte) (int, error) {
	if err := s.waitInput(); err != nil {
		return 0, err
	}
	n := copy(p, s.g.in)
	s.g.in = s.g.in[n:]
	return n, nil
}

func (s *gunzipSource) ReadByte() (byte, error) {
	if err := s.waitInput(); err != nil {
		return 0, err
	}
	c := s.g.in[0]
	s.g.in = s.g.in[1:]
	return c, nil
}
