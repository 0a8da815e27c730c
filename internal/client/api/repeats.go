package api

import (
	"bytes"

	"pitot/internal/results/record"
)

// repeats are the texts of a stream, each of which may repeat the ones before it. Which it is
// shows with the second.
type repeats struct {
	template        // of its events
	decided  bool   // whether they do is known
	separate bool   // they do not
	last     []byte // text, as it stood between its quotes
	soFar    int32  // tokens of the stream, or events
}

// repeating is the common part of the decoders of such streams.
type repeating struct {
	reading
	repeats
	fill func(in *filling, d *Delta)       // reads an event that differs from others in its holes alone
	read func(d *Delta, stream bool) error // reads any other
}

// Reset implements [Decoder].
func (x *repeating) Reset() {
	x.reading.Reset()
	x.repeats.Reset()
}

// Remembered implements [Decoder].
func (x *repeating) Remembered() []byte { return x.template.event }

// Ahead implements [Decoder].
func (x *repeating) Ahead(data []byte, d *Delta) int {
	var in filling
	n := x.matchAhead(&in, data, x.knownPrefix())
	if n > 0 {
		x.fill(&in, d)
	}
	return n
}

// Event implements [Decoder].
func (x *repeating) Event(name, data []byte, d *Delta) error {
	var in filling
	if x.matchEvent(&in, data, x.knownPrefix()) {
		x.fill(&in, d)
		return nil
	}
	if x.handlePlain(name, data, d) {
		return nil
	}
	err := x.read(d, true)
	if err == nil {
		x.learnText(&x.reading, data, d)
	}
	return err
}

// Whole implements [Decoder].
func (x *repeating) Whole(data []byte, d *Delta) error {
	x.Reset()
	x.beginEvent(data)
	return x.read(d, false)
}

// Reset prepares for the next stream.
func (t *repeats) Reset() { *t = repeats{template: t.template, last: t.last[:0]} }

// knownPrefix returns the text that the next text may begin with.
func (t *repeats) knownPrefix() []byte {
	if t.separate {
		return nil
	}
	return t.last
}

// Held implements [Holder].
func (t *repeats) Held() int { return cap(t.last) + t.heldBytes() }

// Trim implements [Holder].
func (t *repeats) Trim() {
	if cap(t.last) > MaxKept {
		t.last = nil
	}
	t.trim()
}

// compare decides by a text and the one before it, unless that is known or cannot be told
// from them.
func (t *repeats) compare(raw []byte) {
	// Its end may have been an unfinished character.
	before := t.last
	for _, unfinished := range []string{"\uFFFD", `\ufffd`, `\uFFFD`} {
		before = bytes.TrimSuffix(before, []byte(unfinished))
	}
	if !t.decided && len(before) > 0 && len(raw) > 0 {
		t.decided, t.separate = true, !bytes.HasPrefix(raw, before)
	}
}

// newText gives what is new of a text, which begins as the last one does for as many bytes at
// least.
func (t *repeats) newText(raw []byte, same int) []byte {
	if t.separate || len(raw) == 0 {
		return raw
	}
	// What has come stays as it was; only its end may have been an unfinished
	// character.
	before := t.last
	if same == 0 && bytes.HasPrefix(raw, before) {
		same = len(before)
	}
	for same < min(len(raw), len(before)) && raw[same] == before[same] {
		same++
	}
	t.last = append(before[:same], raw[same:]...)
	return wholeEscape(raw, same)
}

// takeText adds what a text says that the ones before it have not, and whether that is nothing. Of
// an answer that is no stream all is new.
func (t *repeats) takeText(raw, all []byte, stream bool, d *Delta) {
	n := int32(textLen(raw))
	if d.Empty = n == 0; d.Empty {
		return
	}
	d.Parts = append(d.Parts, Part{Kind: record.Answer, Bytes: n})
	if d.Spell {
		d.Spelt = appendUnquoted(d.Spelt, raw)
	}
	switch {
	case !d.Keep:
	case t.separate || !stream:
		d.Text = appendUnquoted(d.Text, raw)
	default:
		d.Text = appendUnquoted(d.Text[:0], all)
	}
}

// learnText takes an event of text, without anything else in it, for those that follow.
func (t *repeats) learnText(r *reading, data []byte, d *Delta) {
	if d.Ended || d.Done || d.Fault != nil || len(data) > MaxKept {
		t.forget()
		return
	}
	if holes, ok := r.orderedHoles(); ok {
		t.learnEvent(data, holes, d.Usage)
	}
}

// noteText notes where a text is that was just read.
func (t *repeats) noteText(r *reading, raw []byte) {
	r.texts++
	r.noteHole(hole{r.s.i - 1 - len(raw), r.s.i - 1, aText})
}

// readList counts the elements of an array of token ids, which may go on where the last event's
// ended, and notes where they stand.
func (t *repeats) readList(r *reading, n *int32) bool {
	s := &r.s
	s.skipSpace()
	r.numbers[aList] = min(r.numbers[aList]+1, 2)
	if s.i < len(s.b) && s.b[s.i] == '[' {
		from := s.i + 1
		if length := t.listLength(s.b[from:]); length > 0 {
			s.i, *n = from+length+1, t.items
			r.noteHole(hole{from, from + length, aList})
			return true
		}
	}
	return r.countElements(n)
}

// wholeEscape is the rest of a raw JSON string from a place on that no escape spans.
func wholeEscape(raw []byte, at int) []byte {
	back := max(at-6, 0)
	for i := back; i < at; i++ {
		if raw[i] != '\\' {
			continue
		}
		n := 2
		if i+1 < len(raw) && raw[i+1] == 'u' {
			n = 6
		}
		if i+n > at {
			at = i
			break
		}
		i += n - 1
	}
	return raw[at:]
}
