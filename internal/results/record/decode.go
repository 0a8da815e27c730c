package record

import (
	"encoding/binary"
	"math"
	"slices"
)

// A decoder turns the payload of a frame back into records. It remembers the
// short strings it has seen: finish reasons, classes and metric names come
// again in every frame.
type decoder struct {
	rest  []byte
	bad   bool // something was missing or impossible; every later value is zero
	other bool // rows have other fields than those that are known here
	seen  map[string]string
	part  reading
}

// reading is the part of a frame that is read; the rest stays unread.
type reading uint8

const (
	everything reading = iota
	allButChunks
	marksAlone
)

// decode fills f, whose slices are used again, and reports whether the
// payload was sound.
func (d *decoder) decode(payload []byte, f *Frame) bool {
	d.rest, d.bad, d.other = payload, false, false
	f.Point = int32(d.varint())
	chunks, rows, samples, marks := d.bytes(), d.bytes(), d.bytes(), d.bytes()
	f.Worker = 0
	if d.hasMore() {
		if w := d.uvarint(); w <= math.MaxInt32 {
			f.Worker = int32(w)
		} else {
			d.bad = true
		}
	}
	if len(d.rest) > 0 {
		d.bad = true
	}
	f.Chunks, f.Rows, f.Samples, f.Marks = f.Chunks[:0], f.Rows[:0], f.Samples[:0], f.Marks[:0]
	switch d.part {
	case allButChunks:
		chunks = nil
	case marksAlone:
		chunks, rows, samples = nil, nil, nil
	}
	d.readChunks(chunks, f)
	d.readRows(rows, f)
	for d.beginSection(samples); d.hasMore(); {
		f.Samples = append(f.Samples, Sample{
			Point: f.Point, T: d.varint(), Source: d.string(), Name: d.string(), Value: d.float(),
		})
	}
	for d.beginSection(marks); d.hasMore(); {
		f.Marks = append(f.Marks, Mark{
			Point: f.Point, T: d.varint(), Name: d.string(), Data: slices.Clone(d.bytes()),
		})
	}
	return !d.bad
}

func (d *decoder) readChunks(section []byte, f *Frame) {
	var request, t int64
	for d.beginSection(section); d.hasMore(); {
		flags := d.byte()
		request += d.varint()
		t += d.varint()
		f.Chunks = append(f.Chunks, Chunk{
			Request: request, T: t, Earliest: t,
			Bytes:  int32(d.uvarint()),
			Tokens: int32(flags >> tokenShift & 3),
			Kind:   Kind(flags >> kindShift & 3),
		})
		c := &f.Chunks[len(f.Chunks)-1]
		if flags&chunkInterval != 0 {
			c.Earliest = t - d.varint()
		}
		if flags&chunkChoice != 0 {
			c.Choice = int32(d.uvarint())
		}
		if c.Tokens == tokenMany {
			c.Tokens = int32(d.uvarint())
		} else if c.Tokens > tokenMany || flags&chunkUnknown != 0 {
			d.bad = true
		}
	}
}

func (d *decoder) readRows(section []byte, f *Frame) {
	d.beginSection(section)
	if d.hasMore() && d.uvarint() != uint64(len(rowFields)) {
		d.other = !d.bad
		d.fail()
	}
	for d.hasMore() {
		f.Rows = append(f.Rows, BlankRow())
		r := &f.Rows[len(f.Rows)-1]
		for i := range rowFields {
			switch v := rowFields[i].at(r).(type) {
			case *int64:
				*v = d.varint()
			case *int32:
				*v = int32(d.varint())
			case *string:
				*v = d.string()
			case *bool:
				*v = d.readBelow(2) == 1
			case *uint8:
				*v = d.readBelow(len(rowFields[i].words))
			}
		}
		r.Point = f.Point
	}
}

// beginSection makes the decoder read from b next, unless it has already failed.
func (d *decoder) beginSection(b []byte) {
	if !d.bad {
		d.rest = b
	}
}

func (d *decoder) hasMore() bool { return !d.bad && len(d.rest) > 0 }

func (d *decoder) varint() int64 {
	u := d.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// uvarint reads a number. Most are of one byte or two: these are read in place.
func (d *decoder) uvarint() uint64 {
	if b := d.rest; len(b) > 0 && b[0] < 0x80 {
		d.rest = b[1:]
		return uint64(b[0])
	}
	return d.longUvarint()
}

func (d *decoder) longUvarint() uint64 {
	if b := d.rest; len(b) > 1 && b[1] < 0x80 {
		d.rest = b[2:]
		return uint64(b[0]&0x7f) | uint64(b[1])<<7
	}
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) byte() byte {
	if len(d.rest) == 0 {
		d.fail()
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return b
}

// readBelow reads a number that must be below n.
func (d *decoder) readBelow(n int) byte {
	b := d.byte()
	if int(b) >= n {
		d.fail()
		return 0
	}
	return b
}

func (d *decoder) float() float64 {
	if len(d.rest) < 8 {
		d.fail()
		return 0
	}
	v := math.Float64frombits(binary.LittleEndian.Uint64(d.rest))
	d.rest = d.rest[8:]
	return v
}

// bytes reads a length and that many bytes, which stay part of the payload.
func (d *decoder) bytes() []byte {
	n := d.uvarint()
	if n > uint64(len(d.rest)) {
		d.fail()
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) string() string { return d.intern(d.bytes()) }

// intern gives the string of b, one copy of each while they are few.
func (d *decoder) intern(b []byte) string {
	const longest, most = 64, 4096
	if len(b) == 0 {
		return ""
	}
	if s, ok := d.seen[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(s) <= longest && len(d.seen) < most {
		if d.seen == nil {
			d.seen = make(map[string]string)
		}
		d.seen[s] = s
	}
	return s
}

func (d *decoder) fail() { d.bad, d.rest = true, nil }
