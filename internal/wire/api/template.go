package api

import (
	"bytes"

	"pitot/internal/data/record"
)

// holeReader is a decoder that says where the event it read last differs from those
// around it.
type holeReader interface {
	Decoder
	// holes are the stretches that may differ, in the order in which they stand;
	// false where the event is not one of text like others.
	holes() ([]hole, bool)
}

// hole is a stretch of an event that differs from event to event: a number, or what
// stands between the quotes of a string.
type hole struct {
	from, to int
	of       counted
}

// counted is what stands in a hole.
type counted uint8

const (
	aText             counted = iota // of the answer
	aString                          // that is not used: filling, a time
	aNumber                          // that is not used: a total, a number in sequence
	aFraction                        // likewise, of any form
	countedCompletion                // so many tokens
	countedReasoning
)

// maxHoles bounds the holes of one event; what has more is always scanned.
const maxHoles = 8

// fast is a decoder that reads most events by comparison. Nearly all events of a
// stream equal one another but for their text, for a number in sequence, and for the
// counts of a usage that comes with each of them; and what equals one around these
// means the same: comparing is several times as fast as scanning.
type fast struct {
	holeReader
	event []byte // without its holes
	holes []hole // from: where in event; none before the first
	part  Part
	usage Usage
}

func newFast(d holeReader) Decoder { return &fast{holeReader: d} }

// Remembered implements [Decoder].
func (f *fast) Remembered() []byte { return f.event }

// Event implements [Decoder].
func (f *fast) Event(name, data []byte, d *Delta) error {
	if raw, usage, ok := f.matches(data); ok {
		p := f.part
		p.Bytes = int32(textLen(raw))
		if d.Keep && p.Kind == record.Answer && p.Choice == 0 {
			d.Text = appendUnquoted(d.Text, raw)
		}
		if d.Spell {
			d.Spelt = appendUnquoted(d.Spelt, raw)
		}
		d.Parts = append(d.Parts, p)
		d.Usage = usage
		return nil
	}
	err := f.holeReader.Event(name, data, d)
	if len(d.Parts) == 0 {
		f.holes = f.holes[:0] // its tokens may count with the next event's
	}
	if err == nil && len(data) <= MaxKept && len(d.Parts) == 1 &&
		!d.Ended && !d.Done && !d.Empty && !d.Summarised && d.Fault == nil {
		if holes, ok := f.holeReader.holes(); ok {
			f.learn(data, holes, d)
		}
	}
	return err
}

// learn takes an event for the template of those that follow.
func (f *fast) learn(data []byte, holes []hole, d *Delta) {
	f.event, f.holes = f.event[:0], f.holes[:0]
	at := 0
	for _, h := range holes {
		f.event = append(f.event, data[at:h.from]...)
		f.holes = append(f.holes, hole{from: len(f.event), of: h.of})
		at = h.to
	}
	f.event = append(f.event, data[at:]...)
	f.part, f.usage = d.Parts[0], d.Usage
}

// matches gives the text and the usage of an event that differs in its holes alone.
func (f *fast) matches(data []byte) (text []byte, usage Usage, ok bool) {
	if len(f.holes) == 0 {
		return nil, usage, false
	}
	usage = f.usage
	at, i := 0, 0 // in the template, in data
	for _, h := range f.holes {
		literal := f.event[at:h.from]
		if !bytes.HasPrefix(data[i:], literal) {
			return nil, usage, false
		}
		i, at = i+len(literal), h.from
		if h.of == aText || h.of == aString {
			s := scanner{b: data, i: i - 1}
			raw, ok := s.rawString()
			if !ok {
				return nil, usage, false
			}
			if h.of == aText {
				text = raw
			}
			i = s.i - 1
			continue
		}
		if h.of == aFraction {
			s := scanner{b: data, i: i}
			if i >= len(data) || data[i] <= ' ' {
				return nil, usage, false
			}
			if _, _, ok := s.number(); !ok {
				return nil, usage, false
			}
			i = s.i
			continue
		}
		n, digits := plainNumber(data[i:])
		if digits == 0 {
			return nil, usage, false
		}
		switch h.of {
		case countedCompletion:
			usage.Completion = n
		case countedReasoning:
			usage.Reasoning = n
		}
		i += digits
	}
	return text, usage, len(text) > 0 && bytes.Equal(data[i:], f.event[at:])
}

// plainNumber reads a number of a few digits and no more to it; digits is 0 where
// there is none. What it does not take is read by scanning.
func plainNumber(b []byte) (n int32, digits int) {
	for digits < len(b) && '0' <= b[digits] && b[digits] <= '9' {
		n = n*10 + int32(b[digits]-'0')
		if digits++; digits > 9 {
			return 0, 0
		}
	}
	if digits > 1 && b[0] == '0' {
		return 0, 0
	}
	return n, digits
}
