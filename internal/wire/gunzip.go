package wire

import (
	"compress/gzip"
	"io"
	"iter"
)

// gunzip decompresses push-style. The library pulls, so the two are joined by
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
		g.next, g.stop = iter.Pull(g.inflate)
	}
	if g.err == nil {
		g.next()
	}
	return g.err
}

// inflate is the coroutine: each yield asks for more input.
func (g *gunzip) inflate(yield func(struct{}) bool) {
	src := &gunzipSource{g: g, yield: yield}
	z, err := gzip.NewReader(src)
	if err != nil {
		g.err = err
		return
	}
	buf := make([]byte, 16<<10)
	for {
		n, err := z.Read(buf)
		if n > 0 {
			if g.err = g.out(buf[:n]); g.err != nil {
				return
			}
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			g.err = err
			return
		}
	}
}

// close ends the coroutine.
func (g *gunzip) close() {
	if g.stop != nil {
		g.stop()
		*g = gunzip{}
	}
}

// gunzipSource is what the decompressor reads from. ReadByte keeps the
// library from reading ahead through a buffer of its own.
type gunzipSource struct {
	g     *gunzip
	yield func(struct{}) bool
	ended bool
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
