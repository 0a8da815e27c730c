package api

import (
	"bytes"

	"pitot/internal/data/record"
)

// textReader is a decoder that says where the text of the event it read last
// stands in it: behind its opening quote, to its closing one. ok is false unless
// there was one stretch of text.
type textReader interface {
	Decoder
	soleText() (from, to int, ok bool)
	// running are the counts of a usage that goes on from event to event, in the
	// order in which they stand.
	runningCounts() []runningCount
}

// runningCount is where a number stands in an event, and what it counts.
type runningCount struct {
	from, to int
	of       counted
}

// counted is what a running count is of.
type counted uint8

const (
	countedTotal counted = iota // which is not used
	countedCompletion
	countedReasoning
)

// fast is a decoder that reads most events by comparison. Nearly all events of a
// stream equal one another but for their text, and for the counts of a usage
// that comes with each of them; and what equals one around these means the same:
// comparing is several times as fast as scanning.
type fast struct {
	textReader
	event  []byte // without its text and its running counts
	split  int    // where the text's opening quote ends, 0 before the first
	part   Part
	usage  Usage
	counts []runningCount // from: where in event the number was
}

func newFast(d textReader) Decoder { return &fast{textReader: d} }

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
		d.Parts = append(d.Parts, p)
		d.Usage = usage
		return nil
	}
	err := f.textReader.Event(name, data, d)
	if from, to, ok := f.soleText(); ok && err == nil && len(data) <= MaxKept && len(d.Parts) == 1 &&
		!d.Ended && d.Fault == nil && d.Parts[0].Tokens == 0 {
		f.learn(data, from, to, d)
	}
	return err
}

// learn takes an event for the template of those that follow. It must not have
// counts before its text, which no server puts there.
func (f *fast) learn(data []byte, from, to int, d *Delta) {
	event, counts := append(f.event[:0], data[:from]...), f.counts[:0]
	f.split = 0
	for _, c := range f.runningCounts() {
		if c.from < to {
			return
		}
		event = append(event, data[to:c.from]...)
		counts = append(counts, runningCount{from: len(event), of: c.of})
		to = c.to
	}
	f.event, f.counts = append(event, data[to:]...), counts
	f.split, f.part, f.usage = from, d.Parts[0], d.Usage
}

// matches gives the text and the usage of an event that differs in nothing else.
func (f *fast) matches(data []byte) (raw []byte, usage Usage, ok bool) {
	if f.split == 0 || !bytes.HasPrefix(data, f.event[:f.split]) {
		return nil, usage, false
	}
	s := scanner{b: data, i: f.split - 1}
	raw, ok = s.rawString()
	if !ok || len(raw) == 0 {
		return nil, usage, false
	}
	rest, at := data[s.i-1:], f.split
	usage = f.usage
	for _, c := range f.counts {
		literal := f.event[at:c.from]
		if !bytes.HasPrefix(rest, literal) {
			return nil, usage, false
		}
		n, digits := plainNumber(rest[len(literal):])
		if digits == 0 {
			return nil, usage, false
		}
		switch c.of {
		case countedCompletion:
			usage.Completion = n
		case countedReasoning:
			usage.Reasoning = n
		}
		rest, at = rest[len(literal)+digits:], c.from
	}
	return raw, usage, bytes.Equal(rest, f.event[at:])
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
