package api

import "bytes"

// textReader is a decoder that says where the text of the event it read last
// stands in it: behind its opening quote, to its closing one. ok is false unless
// there was one stretch of text.
type textReader interface {
	Decoder
	onlyText() (from, to int, ok bool)
}

// fast is a decoder that reads most events by comparison. Nearly all events of a
// stream equal one another but for their text, and what equals one around the
// text means the same: comparing is six times as fast as scanning.
type fast struct {
	textReader
	event []byte // without its text
	split int    // where the text's opening quote ends, 0 before the first
	part  Part
}

func newFast(d textReader) Decoder { return &fast{textReader: d} }

// Remembered implements [Decoder].
func (f *fast) Remembered() []byte { return f.event }

// Event implements [Decoder].
func (f *fast) Event(name, data []byte, d *Delta) error {
	if raw, ok := f.matches(data); ok {
		p := f.part
		p.Bytes = int32(textLen(raw))
		d.Parts = append(d.Parts, p)
		return nil
	}
	err := f.textReader.Event(name, data, d)
	if from, to, ok := f.onlyText(); ok && err == nil && len(data) <= MaxKept && len(d.Parts) == 1 &&
		!d.Ended && d.Fault == nil && d.Usage == Unsaid && d.Parts[0].Tokens == 0 {
		f.event = append(append(f.event[:0], data[:from]...), data[to:]...)
		f.split, f.part = from, d.Parts[0]
	}
	return err
}

// matches gives the text of an event that differs in nothing else.
func (f *fast) matches(data []byte) (raw []byte, ok bool) {
	if f.split == 0 || !bytes.HasPrefix(data, f.event[:f.split]) {
		return nil, false
	}
	s := scanner{b: data, i: f.split - 1}
	raw, ok = s.str()
	return raw, ok && len(raw) > 0 && bytes.Equal(data[s.i-1:], f.event[f.split:])
}
