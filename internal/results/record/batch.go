package record

import (
	"encoding/binary"
	"math"
)

// Flags of an encoded chunk: what the usual chunk does not need to say.
const (
	chunkInterval = 1 << 0 // T − Earliest follows
	chunkChoice   = 1 << 1 // choice follows
	tokenShift    = 2      // 2 bits: 0 tokens, 1 token, or a count that follows
	tokenMany     = 2
	kindShift     = 4 // 2 bits
	chunkUnknown  = 0xC0
)

// A batch is a frame in the making. Its sections are encoded as records
// come, so that taking one allocates nothing.
type batch struct {
	point, worker                int32
	chunks, rows, samples, marks []byte

	holds tally // how many of each

	whole []byte // the payload, of a frame that was taken as it is: the sections have nothing then

	request, t int64 // of the last chunk: what the next one's deltas start from
	scratch    Row
}

func (b *batch) size() int {
	return len(b.chunks) + len(b.rows) + len(b.samples) + len(b.marks)
}

func (b *batch) reset(of part) {
	*b = batch{
		point: of.point, worker: of.worker,
		chunks: b.chunks[:0], rows: b.rows[:0], samples: b.samples[:0], marks: b.marks[:0],
	}
}

func (b *batch) addChunk(c Chunk) {
	flags := byte(c.Kind&3) << kindShift
	if c.Earliest != c.T {
		flags |= chunkInterval
	}
	if c.Choice != 0 {
		flags |= chunkChoice
	}
	many := uint32(c.Tokens) > 1
	if many {
		flags |= tokenMany << tokenShift
	} else {
		flags |= byte(c.Tokens) << tokenShift
	}
	p := append(b.chunks, flags)
	p = binary.AppendVarint(p, c.Request-b.request)
	p = binary.AppendVarint(p, c.T-b.t)
	p = binary.AppendUvarint(p, uint64(uint32(c.Bytes)))
	if flags&chunkInterval != 0 {
		p = binary.AppendVarint(p, c.T-c.Earliest)
	}
	if flags&chunkChoice != 0 {
		p = binary.AppendUvarint(p, uint64(uint32(c.Choice)))
	}
	if many {
		p = binary.AppendUvarint(p, uint64(uint32(c.Tokens)))
	}
	b.chunks, b.request, b.t = p, c.Request, c.T
	b.holds.chunks++
}

// addRow takes r as a row of the batch's point.
func (b *batch) addRow(r *Row) {
	b.scratch = *r // a copy of our own to point into: r must not escape to the heap
	b.scratch.Point = b.point
	p := b.rows
	if len(p) == 0 {
		p = binary.AppendUvarint(p, uint64(len(rowFields)))
	}
	for i := range rowFields {
		switch v := rowFields[i].at(&b.scratch).(type) {
		case *int64:
			p = binary.AppendVarint(p, *v)
		case *int32:
			p = binary.AppendVarint(p, int64(*v))
		case *string:
			p = appendString(p, *v)
		case *bool:
			p = append(p, 0)
			if *v {
				p[len(p)-1] = 1
			}
		case *uint8:
			p = append(p, *v&3)
		}
	}
	b.rows = p
	b.scratch = Row{} // its strings are not ours to keep
	b.holds.rows++
}

func (b *batch) addSample(s Sample) {
	p := binary.AppendVarint(b.samples, s.T)
	p = appendString(p, s.Source)
	p = appendString(p, s.Name)
	b.samples = binary.LittleEndian.AppendUint64(p, math.Float64bits(s.Value))
	b.holds.samples++
}

func (b *batch) addMark(m Mark) {
	p := binary.AppendVarint(b.marks, m.T)
	p = appendString(p, m.Name)
	b.marks = appendString(p, m.Data)
	b.holds.marks++
}

// appendPayload appends the payload of the frame to dst.
func (b *batch) appendPayload(dst []byte) []byte {
	if b.whole != nil {
		return append(dst, b.whole...)
	}
	dst = binary.AppendVarint(dst, int64(b.point))
	for _, section := range [...][]byte{b.chunks, b.rows, b.samples, b.marks} {
		dst = appendString(dst, section)
	}
	if b.worker != 0 {
		dst = binary.AppendUvarint(dst, uint64(uint32(b.worker)))
	}
	return dst
}

func appendString[S string | []byte](dst []byte, s S) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}
