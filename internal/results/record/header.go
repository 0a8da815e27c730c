package record

import (
	"encoding/binary"
	"hash/crc32"
)

// The journal is a sequence of frames. A frame decodes on its own: a header,
// then the payload, which is the point as a varint, four sections (chunks, rows,
// samples, marks), each after its length as an uvarint, and of another worker than 0
// its number as an uvarint.
//
// The header has a checksum of its own, so that a damaged length is distinguished from a
// frame that was cut short, and the next frame is found behind a damaged one. It
// counts the records before the frame and in it: so the frames around a damaged stretch tell
// what it held.
//
// All numbers are little-endian:
//
//	 0  magic "PJ1\n"
//	 4  u32  length of the payload
//	 8  u32  CRC-32C of the payload
//	12  i32  point
//	16  u64  number of the frame, from 0
//	24  u64  chunks in all frames before it, then rows, samples and marks
//	56  u32  chunks in it, then rows, samples and marks
//	72  u32  CRC-32C of the 72 bytes before
const (
	magic      = "PJ1\n"
	headerSize = 76

	// A longer payload is none of ours: a frame is closed at frameSize, and the
	// largest mark has some kilobytes.
	largestPayload = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// tally counts records by kind.
type tally struct{ chunks, rows, samples, marks int64 }

func (t tally) plus(o tally) tally {
	return tally{t.chunks + o.chunks, t.rows + o.rows, t.samples + o.samples, t.marks + o.marks}
}

func (t tally) minus(o tally) tally {
	return tally{t.chunks - o.chunks, t.rows - o.rows, t.samples - o.samples, t.marks - o.marks}
}

func (t tally) isNegative() bool { return min(t.chunks, t.rows, t.samples, t.marks) < 0 }

// header holds the fields before the payload of a frame.
type header struct {
	sound  bool // its checksum is right
	length int64
	sum    uint32
	point  int32
	number uint64
	before tally
	holds  tally
}

// frameWriter puts headers before payloads. It counts what it has written.
type frameWriter struct {
	number uint64
	before tally
}

// append appends the frame of a batch to dst.
func (w *frameWriter) append(dst []byte, b *batch) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, headerSize)...)
	dst = b.appendPayload(dst)
	h, payload := dst[start:start+headerSize], dst[start+headerSize:]
	le := binary.LittleEndian
	copy(h, magic)
	le.PutUint32(h[4:], uint32(len(payload)))
	le.PutUint32(h[8:], crc32.Checksum(payload, castagnoli))
	le.PutUint32(h[12:], uint32(b.point))
	le.PutUint64(h[16:], w.number)
	for i, n := range [...]int64{w.before.chunks, w.before.rows, w.before.samples, w.before.marks} {
		le.PutUint64(h[24+8*i:], uint64(n))
	}
	for i, n := range [...]int64{b.holds.chunks, b.holds.rows, b.holds.samples, b.holds.marks} {
		le.PutUint32(h[56+4*i:], uint32(n))
	}
	le.PutUint32(h[72:], crc32.Checksum(h[:72], castagnoli))
	w.number++
	w.before = w.before.plus(b.holds)
	return dst
}

// parseHeader reads the header at the beginning of p; where it is not sound nothing else of it
// counts. It is short where p ends before it does.
func parseHeader(p []byte) (h header, short bool) {
	begin := p[:min(len(p), len(magic))]
	switch {
	case string(begin) != magic[:len(begin)]:
		return h, false
	case len(p) < headerSize:
		return h, true
	}
	le := binary.LittleEndian
	u64, u32 := func(i int) int64 { return int64(le.Uint64(p[i:])) }, func(i int) int64 { return int64(le.Uint32(p[i:])) }
	h = header{
		length: u32(4), sum: le.Uint32(p[8:]), point: int32(le.Uint32(p[12:])), number: le.Uint64(p[16:]),
		before: tally{u64(24), u64(32), u64(40), u64(48)},
		holds:  tally{u32(56), u32(60), u32(64), u32(68)},
	}
	h.sound = le.Uint32(p[72:]) == crc32.Checksum(p[:72], castagnoli) && !h.before.isNegative()
	return h, false
}
