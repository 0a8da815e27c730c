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
	Offset int64 `json:"offset"` // in the journal, where it begins
	Bytes  int64 `json:"bytes"`  // 0 where whole frames are missing

	// What it held. Where Exact is false it is at most so many: nothing but the
	// length of the stretch tells. Of bytes that are gone nothing does, where no
	// sound frame follows.
	Chunks  int64 `json:"chunks"`
	Rows    int64 `json:"rows"`
	Samples int64 `json:"samples"`
	Marks   int64 `json:"marks"`
	Exact   bool  `json:"exact"`

	// It lies between a stamp of one point and a stamp of another, mostly the
	// same; null: from its beginning, to its end.
	FirstPoint int32  `json:"first_point"`
	LastPoint  int32  `json:"last_point"`
	From       *int64 `json:"from_ns"`
	To         *int64 `json:"to_ns"`
}

// None says that nothing is missing, as where bytes of another file stand
// between two frames.
func (d *Damage) None() bool { return d.Exact && d.Chunks+d.Rows+d.Samples+d.Marks == 0 }

// DamageOf gives the damage that a mark tells of.
func DamageOf(m *Mark) (d Damage, ok bool) {
	return d, m.Name == DamageMark && json.Unmarshal(m.Data, &d) == nil
}

// isDamage says that a frame is no frame of the journal but what a [DamageMark] stands in.
func isDamage(f *Frame) bool {
	for i := range f.Marks {
		if f.Marks[i].Name == DamageMark {
			return true
		}
	}
	return false
}

// frames says it to every point that it may be of.
func (d *Damage) frames() (frames []Frame) {
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

// leastChunk is the shortest that a chunk can be, and leastRow a row: each field takes a byte.
const leastChunk = 4

var leastRow = int64(len(rowFields))

// A scanner reads the frames of a journal one after the other. It steps over
// what it cannot read, goes on at the next frame, and yields a mark of what was
// lost in between. A frame cut short at the end, as a killed process leaves it,
// is no loss.
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
	last    *int64 // latest stamp of that point

	gap   *gap
	lost  []Frame // to be yielded before frame
	ready bool    // frame waits behind them
}

// gap is a stretch that is being stepped over.
type gap struct {
	from        int64
	unexplained int64 // bytes that no header accounts for
	holds       tally // of frames whose headers can be read
	span        span
	points      bool // first and last are known
	first, last int32
}

func (s *scanner) next() (Frame, error) {
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
			s.close(nil)
		case err == nil && s.follows && h.number < s.number: // a stretch that was read already
			s.begin()
			s.offset += headerSize + h.length
		case err == nil:
			if s.gap != nil || s.follows && h.number != s.number {
				s.begin()
				s.close(&h)
			}
			s.accept(&h)
			s.ready = true
		case errors.Is(err, errDamaged):
			s.step(h)
		default:
			return Frame{}, err
		}
	}
}

var errDamaged = errors.New("damaged frame")

// read decodes the frame at the offset and leaves the offset there. With
// errDamaged comes its header if that is sound.
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
	case !h.sound:
		return header{}, errDamaged
	case h.length > largestPayload:
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
		if err == io.EOF || err == io.ErrUnexpectedEOF { // it was made shorter since
			err = io.EOF
		}
		return header{}, err
	}
	s.at = s.offset + headerSize + h.length
	switch {
	case h.sum != crc32.Checksum(s.payload, castagnoli):
		return h, errDamaged
	case s.decoder.decode(s.payload, &s.frame):
	case s.decoder.other:
		return header{}, ErrVersion
	default:
		return h, errDamaged
	}
	return h, nil
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

// accept steps behind a frame that was read.
func (s *scanner) accept(h *header) {
	if h.point != s.point {
		s.last = nil
	}
	s.point = h.point
	if h.span.any {
		last := h.span.last
		if s.last != nil {
			last = max(last, *s.last)
		}
		s.last = &last
	}
	s.offset += headerSize + h.length
	s.follows, s.number, s.count = true, h.number+1, h.before.plus(h.holds)
}

func (s *scanner) begin() {
	if s.gap == nil {
		s.gap = &gap{from: s.offset}
	}
}

// step goes on behind a damaged frame, of which the header may be known.
func (s *scanner) step(h header) {
	end := s.offset + headerSize + h.length
	next := s.find(s.offset + 1)
	// A frame that was cut may have whole ones in the place of its payload, even such as
	// end where it would have.
	if h.sound && end < s.size && s.headerAt(end) && (next < 0 || next > end) {
		next = end
	}
	switch {
	case next < 0 && s.torn():
		s.size, s.at = s.offset, -1
		return
	case h.sound && (next == end || next < 0 && end == s.size):
		s.begin()
		s.gap.takes(&h)
		s.offset = end
		return
	case next < 0:
		next = s.size
	}
	s.begin()
	s.gap.unexplained += next - s.offset
	s.offset = next
}

const (
	// sector is the least that a disk writes: what was not written before the power
	// failed begins at a multiple of it.
	sector = 512
	// leastTorn is more zeros than a frame ends with.
	leastTorn = 16
)

// torn says that nothing follows that was ever written, but zeros to the end of the
// journal: what a system that lost its power had made room for. The frame before
// them was cut short, as that of a process that is killed.
func (s *scanner) torn() bool {
	return s.zeros(max(s.offset, (s.size-leastTorn)/sector*sector)) || s.zeros(s.offset)
}

// takes adds a frame whose header tells what it held.
func (g *gap) takes(h *header) {
	g.holds = g.holds.plus(h.holds)
	if h.span.any {
		g.span.include(h.span.first)
		g.span.include(h.span.last)
	}
	if !g.points {
		g.points, g.first, g.last = true, h.point, h.point
	}
	g.first, g.last = min(g.first, h.point), max(g.last, h.point)
}

// close ends the gap before the next sound frame, nil for the journal's end.
func (s *scanner) close(h *header) {
	g := s.gap
	s.gap = nil
	d := Damage{Offset: g.from, Bytes: s.offset - g.from, FirstPoint: s.point, LastPoint: s.point, From: s.last}
	held := g.holds
	switch {
	case h != nil && s.follows && !h.before.minus(s.count).negative():
		held, d.Exact = h.before.minus(s.count), true
	case g.unexplained == 0:
		d.Exact = true
	default:
		held = held.plus(tally{g.unexplained / leastChunk, g.unexplained / leastRow, g.unexplained / leastChunk, g.unexplained / leastChunk})
	}
	d.Chunks, d.Rows, d.Samples, d.Marks = held.chunks, held.rows, held.samples, held.marks
	if h != nil {
		d.LastPoint = h.point
		if h.span.any {
			d.To = &h.span.first
		}
	} else if g.points {
		d.LastPoint = g.last
	}
	if g.unexplained == 0 && g.points { // the headers know better
		d.FirstPoint, d.LastPoint = g.first, g.last
		if g.span.any {
			d.From, d.To = &g.span.first, &g.span.last
		}
	}
	d.LastPoint = max(d.LastPoint, d.FirstPoint)
	s.lost = d.frames()
}

// headerAt says that a sound header stands at an offset.
func (s *scanner) headerAt(offset int64) bool {
	p := make([]byte, headerSize)
	n, err := s.in.ReadAt(p, offset)
	if err != nil && err != io.EOF {
		return false
	}
	h, _ := parseHeader(p[:n])
	return h.sound && (!s.follows || h.number >= s.number)
}

// find gives the offset of the next sound header from an offset on, -1 if
// there is none.
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

// zeros says that nothing but zeros stands from an offset on.
func (s *scanner) zeros(from int64) bool {
	r := bufio.NewReader(io.NewSectionReader(s.in, from, s.size-from))
	for {
		switch b, err := r.ReadByte(); {
		case err != nil:
			return err == io.EOF
		case b != 0:
			return false
		}
	}
}
