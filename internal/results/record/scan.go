package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
)

// DamageMark is the name of the mark that stands where a stretch of a journal
// could not be read. Its data is a [Damage].
const DamageMark = "records_lost"

// Damage is a stretch of a journal that could not be read: a flipped bit, a hole,
// frames that are gone. It is written to marks.json with the other marks.
type Damage struct {
	// The records that it held, by the counts of the frames around it. Where Exact is
	// false no frame follows that counts them: how many they are is not known.
	Chunks  int64 `json:"chunks"`
	Rows    int64 `json:"rows"`
	Samples int64 `json:"samples"`
	Marks   int64 `json:"marks"`
	Exact   bool  `json:"exact"`

	FirstPoint int32 `json:"first_point"` // of the frames around it
	LastPoint  int32 `json:"last_point"`
}

// IsNone reports whether no record is missing, as where bytes of another file stand
// between two frames.
func (d *Damage) IsNone() bool { return d.Exact && d.Chunks+d.Rows+d.Samples+d.Marks == 0 }

// DamageOf returns the damage that a mark reports.
func DamageOf(m *Mark) (d Damage, ok bool) {
	return d, m.Name == DamageMark && json.Unmarshal(m.Data, &d) == nil
}

// isDamage reports whether a frame is none of the journal but holds a [DamageMark].
func isDamage(f *Frame) bool {
	for i := range f.Marks {
		if f.Marks[i].Name == DamageMark {
			return true
		}
	}
	return false
}

// lossFrames returns a frame with a mark for every point that the damage may be of.
func (d *Damage) lossFrames() (frames []Frame) {
	data, err := json.Marshal(d)
	if err != nil {
		panic(err) // numbers always marshal
	}
	for p := d.FirstPoint; ; p++ {
		frames = append(frames, Frame{Point: p, Marks: []Mark{{Point: p, Name: DamageMark, Data: data}}})
		const most = 10_000 // more points than a run has: a count that is itself damaged
		if p >= d.LastPoint || len(frames) == most {
			return frames
		}
	}
}

// ErrVersion says that records have another version than the one that is read.
var ErrVersion = errors.New("another version of pitot wrote it")

// A scanner reads the frames of a journal one after the other. It skips what it cannot
// read, goes on at the next frame, and yields a mark of what was lost in between. A frame
// that is cut short at the end, as a killed process leaves it, is no loss.
type scanner struct {
	in     io.ReaderAt
	size   int64 // of the journal when it was opened: no payload is longer
	offset int64 // where the next frame starts

	buffer  *bufio.Reader
	at      int64 // offset of the buffer
	payload []byte
	decoder decoder
	frame   Frame

	// What the frames so far tell of the next one.
	follows bool // number and count are known
	number  uint64
	count   tally
	point   int32

	gap   *gap    // what was skipped since, nil for nothing
	lost  []Frame // to be yielded before frame
	ready bool    // frame waits behind them
}

// gap is a stretch that is being skipped.
type gap struct {
	frames      uint64 // whose headers are sound
	number      uint64 // of the first of these
	first, last int32  // points of these
}

func (s *scanner) nextFrame() (Frame, error) {
	for {
		switch {
		case len(s.lost) > 0:
			f := s.lost[0]
			s.lost = s.lost[1:]
			return f, nil
		case s.ready:
			s.ready = false
			return s.frame, nil
		}
		h, err := s.read()
		switch {
		case err == io.EOF && s.gap != nil:
			s.reportGap(nil)
		case err == nil && s.follows && h.number < s.number: // a stretch that was read already
			s.beginGap()
			s.offset += headerSize + h.length
		case err == nil:
			if s.gap != nil || s.follows && h.number != s.number {
				s.reportGap(&h)
			}
			s.point, s.ready = h.point, true
			s.offset += headerSize + h.length
			s.follows, s.number, s.count = true, h.number+1, h.before.plus(h.holds)
		case err == errDamaged:
			s.skipToFrame(&h)
		default:
			return Frame{}, err
		}
	}
}

var errDamaged = errors.New("damaged frame")

// read decodes the frame at the offset and leaves the offset there. With errDamaged comes its
// header, if that is sound.
func (s *scanner) read() (header, error) {
	if s.buffer == nil {
		s.buffer = bufio.NewReaderSize(nil, 1<<16)
		s.at = -1
	}
	if s.at != s.offset {
		s.buffer.Reset(io.NewSectionReader(s.in, s.offset, max(0, s.size-s.offset)))
		s.at = s.offset
	}
	p, err := s.buffer.Peek(headerSize)
	if err != nil && err != io.EOF {
		return header{}, err
	}
	if len(p) == 0 {
		return header{}, io.EOF
	}
	h, short := parseHeader(p)
	switch {
	case short:
		return header{}, io.EOF
	case !h.sound && s.offset == 0 && otherVersion(p) && s.find(1) < 0:
		return header{}, ErrVersion
	case !h.sound || h.length > largestPayload:
		return header{}, errDamaged
	case h.length > s.size-s.offset-headerSize:
		if s.find(s.offset+1) < 0 {
			return header{}, io.EOF
		}
		return h, errDamaged
	}
	if int64(cap(s.payload)) < h.length {
		s.payload = make([]byte, h.length)
	}
	s.payload = s.payload[:h.length]
	if _, err := s.buffer.Discard(headerSize); err != nil {
		return header{}, err
	}
	s.at = -1
	if _, err := io.ReadFull(s.buffer, s.payload); err != nil {
		if err == io.ErrUnexpectedEOF { // it was made shorter since
			err = io.EOF
		}
		return header{}, err
	}
	s.at = s.offset + headerSize + h.length
	switch {
	case h.sum != crc32.Checksum(s.payload, castagnoli):
		return h, errDamaged
	case s.decoder.decode(s.payload, &s.frame):
		return h, nil
	case s.decoder.other:
		return header{}, ErrVersion
	}
	return h, errDamaged
}

// otherVersion reports whether a journal begins as one of another version does, and not with
// a frame whose magic is damaged.
func otherVersion(p []byte) bool {
	if len(p) < len(magic) || p[0] != 'P' || p[1] != 'J' || p[2] <= '1' || p[2] > '9' || p[3] != '\n' {
		return false
	}
	h, _ := parseHeader(append([]byte(magic), p[len(magic):]...))
	return !h.sound
}

// skipToFrame goes to the next frame that can be found, or to the end. The header of the damaged
// frame counts if it is sound.
func (s *scanner) skipToFrame(h *header) {
	next := s.find(s.offset + 1)
	if next < 0 && s.endsInZeros() {
		s.size, s.at = s.offset, -1
		return
	}
	g := s.beginGap()
	if h.sound {
		if g.frames++; g.frames == 1 {
			g.number, g.first, g.last = h.number, h.point, h.point
		}
		g.first, g.last = min(g.first, h.point), max(g.last, h.point)
	}
	if s.offset = next; next < 0 {
		s.offset = s.size
	}
}

// beginGap returns the gap, a new one if there is none.
func (s *scanner) beginGap() *gap {
	if s.gap == nil {
		s.gap = &gap{}
	}
	return s.gap
}

// endsInZeros reports whether the journal ends in zeros: a system that lost its power had made room
// for more than it wrote. The frame before them was cut short, as that of a killed process.
func (s *scanner) endsInZeros() bool {
	const sector = 512 // the least that a disk writes, and more zeros than a frame ends with
	return s.hasOnlyZeros(max(s.offset, s.size-sector))
}

// reportGap ends a gap before the next frame that was read, nil for the journal's end.
func (s *scanner) reportGap(h *header) {
	g := s.beginGap()
	s.gap = nil
	d := Damage{FirstPoint: s.point, LastPoint: s.point}
	if g.frames > 0 {
		if d.LastPoint = max(s.point, g.last); s.follows && g.number == s.number {
			d.FirstPoint = g.first
		}
	}
	if h != nil {
		if !s.follows || g.frames != h.number-s.number { // others were skipped too
			d.LastPoint = max(s.point, h.point)
		}
		if held := h.before.minus(s.count); s.follows && !held.isNegative() {
			d.Chunks, d.Rows, d.Samples, d.Marks, d.Exact = held.chunks, held.rows, held.samples, held.marks, true
		}
	}
	s.lost = d.lossFrames()
}

// headerAt reports whether a sound header stands at an offset.
func (s *scanner) headerAt(offset int64) bool {
	p := make([]byte, headerSize)
	n, err := s.in.ReadAt(p, offset)
	if err != nil && err != io.EOF {
		return false
	}
	h, _ := parseHeader(p[:n])
	return h.sound && (!s.follows || h.number >= s.number)
}

// find returns the offset of the next sound header from an offset on, -1 if there is none.
func (s *scanner) find(from int64) int64 {
	const window = 1 << 16
	p := make([]byte, window)
	for from < s.size {
		n, err := s.in.ReadAt(p, from)
		if n < len(magic) || err != nil && err != io.EOF {
			return -1
		}
		for i := 0; ; i++ {
			k := bytes.Index(p[i:n], []byte(magic[:2]))
			if k < 0 {
				break
			}
			i += k
			if s.headerAt(from + int64(i)) {
				return from + int64(i)
			}
		}
		from += int64(n - len(magic) + 1)
	}
	return -1
}

// hasOnlyZeros reports whether nothing but zeros stands from an offset on.
func (s *scanner) hasOnlyZeros(from int64) bool {
	rest, err := io.ReadAll(io.NewSectionReader(s.in, from, s.size-from))
	return err == nil && len(bytes.Trim(rest, "\x00")) == 0
}
