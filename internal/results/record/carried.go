package record

import (
	"fmt"
	"hash/crc32"
	"io"
)

// What is carried from one machine to another of a journal are whole frames, byte for
// byte: each has its checksums, so nothing else has to vouch for them.

// WrittenBytes returns the length of the journal's file: whole frames, which no longer change. It
// does not wait for the disk.
func (j *Journal) WrittenBytes() int64 { return j.end.Load() }

// ReadSealed reads whole frames of a journal's file that lie between two offsets: as many as
// fit into so many bytes, and one at least. None is left where it gives nothing. What is no
// whole frame is an error once it comes first.
func ReadSealed(file io.ReaderAt, from, to int64, most int) ([]byte, error) {
	at := from
	for at < to {
		next, err := frameEnd(file, at, to)
		if err != nil && at == from {
			return nil, err
		}
		if err != nil || next-from > int64(most) && at > from {
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

// AreFrames reports whether bytes are whole frames of a journal, by their headers and checksums.
func AreFrames(frames []byte) bool {
	for len(frames) > 0 {
		h, short := parseHeader(frames)
		if short || !h.sound || h.length > int64(len(frames)-headerSize) {
			return false
		}
		payload := frames[headerSize : headerSize+h.length]
		if h.sum != crc32.Checksum(payload, castagnoli) {
			return false
		}
		frames = frames[headerSize+h.length:]
	}
	return true
}

// frameEnd is where a frame ends, by its header, that begins at an offset and lies before another.
func frameEnd(file io.ReaderAt, at, to int64) (int64, error) {
	var buf [headerSize]byte
	head := buf[:min(headerSize, to-at)]
	if _, err := file.ReadAt(head, at); err != nil {
		return 0, fmt.Errorf("read journal at byte %d: %w", at, err)
	}
	h, short := parseHeader(head)
	if short || !h.sound || at+headerSize+h.length > to {
		return 0, fmt.Errorf("read journal at byte %d: no whole frame", at)
	}
	return at + headerSize + h.length, nil
}

// TakeCarried takes the records of a point from frames of another journal, as [ReadSealed] gave
// them, and keeps these bytes: what has no marks stands here as it does there. Of marks it takes
// what [Journal.AddFrame] does. took is called with what a frame of the point holds. Bytes that are
// no whole frames are an error.
func (j *Journal) TakeCarried(frames []byte, point int32, took func(rows []Row, chunks int64)) error {
	var d decoder
	var f Frame
	for at := int64(0); at < int64(len(frames)); {
		h, short := parseHeader(frames[at:])
		from := at + headerSize
		to := from + h.length
		if short || !h.sound || to > int64(len(frames)) {
			return fmt.Errorf("read frames: no whole frame at byte %d of %d", at, len(frames))
		}
		payload := frames[from:to:to]
		d.part = allButChunks
		if h.sum != crc32.Checksum(payload, castagnoli) || !d.decode(payload, &f) {
			return fmt.Errorf("read frames: damaged at byte %d of %d", at, len(frames))
		}
		if at = to; h.point != point {
			continue
		}
		if len(f.Marks) == 0 {
			j.takeWhole(&h, f.Worker, payload)
		} else {
			d.part = everything
			if !d.decode(payload, &f) {
				return fmt.Errorf("read frames: damaged before byte %d of %d", to, len(frames))
			}
			j.AddFrame(&f)
		}
		took(f.Rows, h.holds.chunks)
	}
	return j.Err()
}

// takeWhole takes a frame as it is, behind the plan where that is due: there may be no records
// but those of other journals.
func (j *Journal) takeWhole(h *header, worker int32, payload []byte) {
	j.mu.Lock()
	if j.takesRecords() {
		due := j.planDue(h.point)
		if due && j.open.size() == 0 {
			j.open.point, j.open.worker = h.point, j.worker
		}
		if due || j.open.size() > 0 {
			j.seal()
		}
		j.queue = append(j.queue, &batch{point: h.point, worker: worker, holds: h.holds, whole: payload})
		j.wakeFlusher()
	}
	many := len(j.queue) >= queueLimit/4
	j.mu.Unlock()
	if many { // small frames of many workers come faster than a flusher gets to run
		_ = j.Flush() // whose error the journal tells
	}
}
