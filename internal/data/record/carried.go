package record

import (
	"bytes"
	"fmt"
	"io"
	"iter"
)

// What is carried from one machine to another of a journal are whole frames, byte for
// byte: each has its checksums, so nothing else has to vouch for them.

// Written is how long the journal's file is: whole frames, that no longer change.
func (j *Journal) Written() int64 {
	j.writing.Lock()
	defer j.writing.Unlock()
	return j.end
}

// Sealed reads whole frames of a journal's file that lie between two offsets: as many as
// fit into so many bytes, and one at least. None is left where it gives nothing.
func Sealed(file io.ReaderAt, from, to int64, most int) ([]byte, error) {
	var head [headerV2]byte
	at := from
	for at < to {
		if _, err := file.ReadAt(head[:min(headerV2, to-at)], at); err != nil {
			return nil, fmt.Errorf("read journal at byte %d: %w", at, err)
		}
		h, short := parseHeader(head[:min(headerV2, to-at)])
		if short || !h.sound || at+h.size()+h.length > to {
			return nil, fmt.Errorf("read journal at byte %d: no whole frame", at)
		}
		next := at + h.size() + h.length
		if next-from > int64(most) && at > from {
			break
		}
		at = next
	}
	if at == from {
		return nil, nil
	}
	frames := make([]byte, at-from)
	if _, err := file.ReadAt(frames, from); err != nil {
		return nil, fmt.Errorf("read journal at byte %d: %w", from, err)
	}
	return frames, nil
}

// Carried yields the frames that [Sealed] gave. Bytes that are none are an error, the
// last thing that is yielded: unlike a journal on a disk they can be asked for again.
// A frame's slices are used again for the next one.
func Carried(frames []byte) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		s := scanner{in: bytes.NewReader(frames), size: int64(len(frames))}
		for {
			f, err := s.next()
			switch {
			case err == io.EOF && s.offset == s.size:
				return
			case err == io.EOF:
				err = fmt.Errorf("read frames: cut short at byte %d of %d", s.offset, s.size)
			case err == nil && isDamage(&f):
				err = fmt.Errorf("read frames: damaged before byte %d of %d", s.offset, s.size)
			}
			if !yield(f, err) || err != nil {
				return
			}
		}
	}
}
