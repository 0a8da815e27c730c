package api

import (
	"bytes"

	"pitot/internal/results/record"
)

// holeReader is a decoder that says where the event it read last differs from those
// around it.
type holeReader interface {
	Reset()
	Ended() bool
	Whole(body []byte, d *Delta) error
	handlePlain(name, data []byte, d *Delta) bool
	// readEvent reads an event that is JSON.
	readEvent(data []byte, d *Delta) error
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

// counted is the kind of content in a hole.
type counted uint8

const (
	aText             counted = iota // of the answer
	aString                          // that is not used: filling, a time
	aNumber                          // that is not used: a total, a number in sequence
	aFraction                        // likewise, of any form
	aList                            // of token ids
	countedCompletion                // so many tokens
	countedReasoning
	kindsCounted = iota
)

// maxHoles bounds the holes of one event; what has more is always scanned.
const maxHoles = 8

// template is an event of a stream without what differs from event to event. Nearly all
// events equal one another but for their text, for a number in sequence, and for the
// counts of a usage that comes with each of them; and what equals one around these
// means the same: comparing is several times as fast as scanning.
type template struct {
	event []byte // without its holes
	holes []hole // from: where in event; none before the first
	usage Usage
	plus  int32  // what the usage counts beyond the number of completion tokens
	list  []byte // of the last event
	items int32  // it has
}

// filling holds what an event has in the holes of its template.
type filling struct {
	text  []byte // as it stands between its quotes
	known int    // bytes of it that are the text that it may begin with, all of that or none
	items int32  // of the list
	usage Usage
}

// forget makes it match nothing.
func (t *template) forget() { t.holes = t.holes[:0] }

// learnEvent takes an event, of which usage is what it says, for those that follow. One whose data
// span lines is none of them.
func (t *template) learnEvent(data []byte, holes []hole, usage Usage) {
	if bytes.IndexByte(data, '\n') >= 0 {
		t.forget()
		return
	}
	t.event, t.holes = t.event[:0], t.holes[:0]
	t.usage, t.plus = usage, 0
	copied := 0 // of data
	for _, h := range holes {
		if h.of == countedCompletion {
			n, _ := plainNumber(data[h.from:h.to])
			if t.plus = usage.Completion - n; usage.Completion < n {
				t.forget()
				return
			}
		}
		t.event = append(t.event, data[copied:h.from]...)
		t.holes = append(t.holes, hole{from: len(t.event), of: h.of})
		copied = h.to
	}
	t.event = append(t.event, data[copied:]...)
}

// matchEvent says whether an event differs from others in its holes alone, and gives what stands in
// them. known is text that it may begin with, as it stands between its quotes: of that only the
// rest is read.
func (t *template) matchEvent(in *filling, data, known []byte) bool {
	n := t.matchedLength(in, data, known)
	return n > 0 && n == len(data)
}

// matchAhead is [template.matchEvent] of an event that data begins with. It gives its length with
// that of the empty line behind it, 0 where both are not there.
func (t *template) matchAhead(in *filling, data, known []byte) int {
	if n := t.matchedLength(in, data, known); n > 0 {
		if blank := blankLine(data[n:]); blank > 0 {
			return n + blank
		}
	}
	return 0
}

// matchedLength gives how long the event is that data begins with, 0 where it is not like that of
// the template.
func (t *template) matchedLength(in *filling, data, known []byte) int {
	if len(t.holes) == 0 {
		return 0
	}
	*in = filling{}
	in.usage = t.usage
	matched, i := 0, 0 // of the template, in data
	for _, h := range t.holes {
		literal := t.event[matched:h.from]
		if !bytes.HasPrefix(data[i:], literal) {
			return 0
		}
		i, matched = i+len(literal), h.from
		n := 0
		switch h.of {
		case aText:
			if len(known) > 0 && bytes.HasPrefix(data[i:], known) {
				in.known = len(known)
			}
			n = stringLength(data[i:], in.known)
			if n >= 0 {
				in.text = data[i : i+n]
			}
		case aString:
			n = stringLength(data[i:], 0)
		case aList:
			n = t.listLength(data[i:])
			in.items = t.items
		case aFraction:
			n = fractionLength(data[i:])
		default:
			var number int32
			number, n = plainNumber(data[i:])
			switch {
			case n == 0:
				return 0
			case h.of == countedReasoning:
				in.usage.Reasoning = number
			case h.of == countedCompletion:
				in.usage.Completion = number + t.plus
				if in.usage.Completion < number { // no 32 bits hold it
					return 0
				}
			}
		}
		if n < 0 {
			return 0
		}
		i += n
	}
	last := t.event[matched:]
	if !bytes.HasPrefix(data[i:], last) {
		return 0
	}
	return i + len(last)
}

// fractionLength returns the length of the number that b begins with, -1 where there is none.
func fractionLength(b []byte) int {
	if _, n := plainNumber(b); n > 0 && n < len(b) && (b[n] == ',' || b[n] == '}') {
		return n
	}
	s := scanner{b: b}
	if len(b) == 0 || b[0] <= ' ' {
		return -1
	}
	if _, _, ok := s.number(); !ok {
		return -1
	}
	return s.i
}

// listLength returns the length of the list of plain numbers that b begins with, without its
// bracket. It returns -1 where it is none. If a list continues the last one, it is read from where
// that ended.
func (t *template) listLength(b []byte) int {
	i, items := 0, int32(0)
	if k := len(t.list); k > 0 && bytes.HasPrefix(b, t.list) && k < len(b) && (b[k] == ',' || b[k] == ']') {
		if i, items = k, t.items; b[i] == ',' {
			i++
		} else {
			return i
		}
	}
	n, more := plainList(b[i:])
	if n < 0 {
		return -1
	}
	t.items = items + more
	t.list = append(t.list[:max(0, i-1)], b[max(0, i-1):i+n]...) // its comma too
	return i + n
}

// plainList returns the length of the list of plain numbers that b begins with, without its
// bracket, and their number. The list has at least one; n is -1 where it is none.
func plainList(b []byte) (n int, items int32) {
	for {
		_, digits := plainNumber(b[n:])
		n += digits
		items++
		switch {
		case digits == 0 || n >= len(b):
			return -1, 0
		case b[n] == ']':
			return n, items
		case b[n] != ',':
			return -1, 0
		}
		n++
	}
}

// heldBytes returns the number of bytes that it takes beyond those of an event.
func (t *template) heldBytes() int { return cap(t.list) }

// trim gives a large list back.
func (t *template) trim() {
	if cap(t.list) > MaxKept {
		t.list, t.items = nil, 0
	}
}

// fast is a decoder that reads most events by comparison.
type fast struct {
	holeReader
	template
	part Part
}

func newFast(d holeReader) Decoder { return &fast{holeReader: d} }

// Remembered implements [Decoder].
func (f *fast) Remembered() []byte { return f.event }

// Ahead implements [Decoder].
func (f *fast) Ahead(data []byte, d *Delta) int {
	var in filling
	n := f.matchAhead(&in, data, nil)
	if n == 0 || len(in.text) == 0 {
		return 0
	}
	f.takeFilling(&in, d)
	return n
}

// takeFilling adds what an event says that differs from others in its holes alone.
func (f *fast) takeFilling(in *filling, d *Delta) {
	p := f.part
	p.Bytes = int32(textLen(in.text))
	if d.Keep && p.Kind == record.Answer && p.Choice == 0 {
		d.Text = appendUnquoted(d.Text, in.text)
	}
	if d.Spell {
		d.Spelt = appendUnquoted(d.Spelt, in.text)
	}
	d.Parts = append(d.Parts, p)
	d.Usage = in.usage
}

// Event implements [Decoder].
func (f *fast) Event(name, data []byte, d *Delta) error {
	var in filling
	if f.matchEvent(&in, data, nil) && len(in.text) > 0 {
		f.takeFilling(&in, d)
		return nil
	}
	var err error
	if !f.handlePlain(name, data, d) {
		err = f.readEvent(data, d)
	}
	if len(d.Parts) == 0 {
		f.forget() // its tokens may count with the next event's
	}
	if err == nil && len(data) <= MaxKept && len(d.Parts) == 1 &&
		!d.Ended && !d.Done && !d.Empty && !d.Summarised && d.Fault == nil {
		if holes, ok := f.holeReader.holes(); ok {
			f.learnEvent(data, holes, d.Usage)
			f.part = d.Parts[0]
		}
	}
	return err
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
