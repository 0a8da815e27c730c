package plain

import (
	"bufio"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// utf16Reader gives text in UTF-16 as UTF-8. Halves of pairs become U+FFFD, as editors
// show them.
type utf16Reader struct {
	in   *bufio.Reader
	big  bool
	out  []byte // not yet read
	held rune   // a unit that was read and did not belong to the one before
	has  bool
	err  error
}

func (r *utf16Reader) readUnit() (rune, error) {
	if r.has {
		r.has = false
		return r.held, nil
	}
	var b [2]byte
	if _, err := io.ReadFull(r.in, b[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, errors.New("UTF-16 text with an odd number of bytes")
		}
		return 0, err
	}
	if r.big {
		return rune(b[0])<<8 | rune(b[1]), nil
	}
	return rune(b[1])<<8 | rune(b[0]), nil
}

// Read implements [io.Reader].
func (r *utf16Reader) Read(p []byte) (int, error) {
	for len(r.out) < len(p) && r.err == nil {
		u, err := r.readUnit()
		if err != nil {
			r.err = err
			break
		}
		if utf16.IsSurrogate(u) {
			second, err := r.readUnit()
			if err != nil {
				r.err, u = err, utf8.RuneError
			} else if pair := utf16.DecodeRune(u, second); pair != utf8.RuneError {
				u = pair
			} else {
				r.held, r.has, u = second, true, utf8.RuneError
			}
		}
		r.out = utf8.AppendRune(r.out, u)
	}
	n := copy(p, r.out)
	r.out = append(r.out[:0], r.out[n:]...)
	if n == 0 {
		return 0, r.err
	}
	return n, nil
}
