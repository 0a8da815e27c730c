package api

import (
	"bytes"
	"slices"

	"pitot/internal/results/record"
)

// reading holds the common part of the decoders of all APIs. It has a scanner over the event,
// whether the stream may end, and where the event differs from others.
type reading struct {
	s            scanner
	finish, done bool
	isError      bool // the event is named "error"
	texts        int  // stretches of text in this event
	added        int  // what was taken for text, those included
	found        [maxHoles]hole
	nFound       int
	numbers      [kindsCounted]uint8 // counts that were read, by what they count
}

// beginEvent prepares for an event.
func (r *reading) beginEvent(data []byte) {
	r.s, r.texts, r.added, r.nFound = scanner{b: data}, 0, 0, 0
	r.numbers = [kindsCounted]uint8{}
}

// handlePlain prepares for an event of a stream, and reads the ones that are not JSON objects: the
// end mark, heartbeats, and an error in words.
func (r *reading) handlePlain(name, data []byte, d *Delta) bool {
	r.beginEvent(data)
	r.isError = string(name) == "error"
	switch {
	case len(data) > 2 && data[0] == '{' && (len(name) == 0 || !isHeartbeat(name)): // nearly all
		return false
	case string(data) == "[DONE]":
		d.Done, r.done = true, true
	case r.isError && len(data) > 0 && data[0] != '{':
		d.Fault = &Fault{Message: string(data)}
	case r.isError:
		d.Fault = &Fault{Message: "an error event without a message"}
	case isHeartbeat(name), saysNothing(data):
		d.Nothing = true
	default:
		return false
	}
	return true
}

// isHeartbeat reports whether the name of an event says that it only keeps the connection open.
func isHeartbeat(name []byte) bool {
	switch string(name) {
	case "ping", "pong", "heartbeat", "keepalive", "keep-alive", "keep_alive", "noop":
		return true
	}
	return false
}

// saysNothing reports whether the data of an event has no content: servers and gateways send
// empty data, null, "ping" and wrapped comments as heartbeats.
func saysNothing(data []byte) bool {
	if len(data) > 64 {
		return len(bytes.TrimSpace(data)) == 0 || bytes.TrimLeft(data, " \t\r\n")[0] == ':'
	}
	word := bytes.TrimSpace(data)
	for len(word) > 1 && slices.Contains([]string{`""`, "''", "[]", "{}", "()", "<>"}, string(word[:1])+string(word[len(word)-1:])) {
		word = bytes.TrimSpace(word[1 : len(word)-1])
	}
	if len(word) == 0 || word[0] == ':' {
		return true
	}
	switch lower := bytes.ToLower(word); string(lower) {
	case "null", "nil", "none", "undefined", "true", "false":
		return true
	default:
		_, digits := plainNumber(word)
		return isHeartbeat(lower) || digits == len(word)
	}
}

// endEvent notes what a whole event has said, and whether it was one JSON document.
func (r *reading) endEvent(ok bool, d *Delta) error {
	if !ok || !r.s.atEnd() {
		return errJSON
	}
	if r.isError && d.Fault == nil {
		whole := reading{s: scanner{b: r.s.b}}
		whole.readFault(d)
	}
	r.finish = r.finish || d.Ended
	return nil
}

// Reset implements [Decoder].
func (r *reading) Reset() { r.finish, r.done, r.isError = false, false, false }

// Ended implements [Decoder].
func (r *reading) Ended() bool { return r.finish || r.done }

// Ahead implements [Decoder]: it knows no event before it is cut out.
func (r *reading) Ahead([]byte, *Delta) int { return 0 }

// Remembered implements [Decoder].
func (r *reading) Remembered() []byte { return nil }

// noteHole keeps where a hole is. Of those that there are too many no template is made.
func (r *reading) noteHole(h hole) {
	if r.nFound < maxHoles {
		r.found[r.nFound] = h
	}
	r.nFound++
}

// holes implements [holeReader].
func (r *reading) holes() ([]hole, bool) {
	if r.added != 1 {
		return nil, false
	}
	return r.orderedHoles()
}

// orderedHoles are the holes in their order; false where there are too many, or where what
// stands in them is not all that the event says.
func (r *reading) orderedHoles() ([]hole, bool) {
	if r.texts != 1 || r.nFound > maxHoles || max(r.numbers[countedCompletion], r.numbers[countedReasoning], r.numbers[aList]) > 1 {
		return nil, false
	}
	holes := r.found[:r.nFound]
	slices.SortFunc(holes, func(a, b hole) int { return a.from - b.from })
	return holes, true
}

// readText adds a text that is not empty; texts of the same kind in one event (a call's
// name and arguments) are one part. It has no choice yet: [reading.assignChoice] gives it
// one.
func (r *reading) readText(d *Delta, kind record.Kind) bool {
	_, ok := r.textBeyond(d, kind, 0)
	return ok
}

// textBeyond adds what a text has beyond bytes that are known already, under another
// name, and gives its length.
func (r *reading) textBeyond(d *Delta, kind record.Kind, known int32) (n int32, ok bool) {
	s := &r.s
	if s.peek() != '"' {
		return 0, s.skipValue()
	}
	from := s.i + 1
	raw, ok := s.rawString()
	n = int32(textLen(raw))
	if !ok || n == 0 {
		return n, ok
	}
	r.texts++
	r.noteHole(hole{from, s.i - 1, aText})
	if d.Keep && kind == record.Answer {
		d.Text = appendUnquoted(d.Text, raw)
	}
	if n <= known {
		r.added++ // so no template is made of the event
		return n, true
	}
	if !r.addText(d, kind, n-known) {
		return n, false
	}
	if d.Spell {
		at := len(d.Spelt)
		d.Spelt = appendUnquoted(d.Spelt, raw)
		d.Spelt = slices.Delete(d.Spelt, at, at+int(known))
	}
	return n, true
}

// readArguments adds the arguments of a call that are no string: as they stand.
func (r *reading) readArguments(d *Delta) bool {
	text, ok := r.s.rawValue()
	return ok && r.addArguments(d, text)
}

func (r *reading) addArguments(d *Delta, text []byte) bool {
	if d.Spell {
		d.Spelt = append(d.Spelt, text...)
	}
	return r.addText(d, record.ToolCall, int32(len(text)))
}

// undecided is the choice of a part until the event has said which it is of.
const undecided = -1

// addText adds n bytes of text to the event's part of a kind.
func (r *reading) addText(d *Delta, kind record.Kind, n int32) bool {
	r.added++
	for i := len(d.Parts) - 1; i >= 0 && d.Parts[i].Choice == undecided; i-- {
		if p := &d.Parts[i]; p.Kind == kind {
			p.Bytes += n
			return true
		}
	}
	if d.Most > 0 && len(d.Parts) >= d.Most {
		d.Excess = true
		return false
	}
	d.Parts = append(d.Parts, Part{Kind: kind, Bytes: n, Choice: undecided})
	return true
}

// skipOpaque passes over content that is no text, and notes that there is some.
func (r *reading) skipOpaque(d *Delta) bool {
	value, ok := r.s.rawValue()
	switch string(value) {
	case "null", "{}", "[]", `""`:
	default:
		d.Opaque = true
	}
	return ok
}

// assignChoice gives the parts from first on to a choice, and the tokens of all of them to
// the first.
func (r *reading) assignChoice(d *Delta, first int, choice, tokens int32) {
	parts := d.Parts[first:]
	for i := range parts {
		parts[i].Choice = choice
	}
	if len(parts) == 0 {
		d.Empty = true
	} else {
		parts[0].Tokens = tokens
	}
}

// readCount reads a count that may go on from event to event, nil for one that is not
// used, and notes where it stands if it is a plain number.
func (r *reading) readCount(of counted, into *int32) bool {
	s := &r.s
	s.skipSpace()
	from := s.i
	r.numbers[of] = min(r.numbers[of]+1, 2)
	if into == nil && !s.skipValue() || into != nil && !s.countNumber(into) {
		return false
	}
	if _, digits := plainNumber(s.b[from:s.i]); digits > 0 && digits == s.i-from {
		r.noteHole(hole{from, s.i, of})
	}
	return true
}

// skipVarying reads a value that may differ from event to event and says nothing.
func (r *reading) skipVarying() bool {
	s := &r.s
	switch c := s.peek(); {
	case c == '-' || '0' <= c && c <= '9':
		from := s.i
		_, _, ok := s.number()
		if ok {
			r.noteHole(hole{from, s.i, aFraction})
		}
		return ok
	case c != '"':
		return s.skipValue()
	}
	from := s.i + 1
	if _, ok := s.rawString(); !ok {
		return false
	}
	r.noteHole(hole{from, s.i - 1, aString})
	return true
}

// countElements counts the elements of an array.
func (r *reading) countElements(n *int32) bool {
	s := &r.s
	if s.peek() != '[' {
		return s.skipValue()
	}
	var k int32
	ok := s.eachElement(func() bool { k++; return s.skipValue() })
	if k > 0 {
		*n = k
	}
	return ok
}

// readWord reads a string that is one of a few, nil for anything else.
func (r *reading) readWord(raw *[]byte) (ok bool) {
	if r.s.peek() != '"' {
		*raw = nil
		return r.s.skipValue()
	}
	*raw, ok = r.s.rawString()
	return ok
}

// readReason reads why an answer ended, "" where it has not.
func (r *reading) readReason(reason *string) bool {
	var raw []byte
	ok := r.readWord(&raw)
	*reason = finishReason(raw)
	return ok
}

// eachField reads an object, or passes over what is none.
func (r *reading) eachField(field func(key []byte) bool) bool {
	if r.s.peek() != '{' {
		return r.s.skipValue()
	}
	return r.s.eachKey(field)
}

// fieldIn reads one field of an object, and passes over the others and over what is none.
func (r *reading) fieldIn(name string, read func() bool) bool {
	return r.eachField(func(key []byte) bool {
		if string(key) == name {
			return read()
		}
		return r.s.skipValue()
	})
}

// countIn reads a count in an object.
func (r *reading) countIn(name string, into *int32) bool {
	return r.fieldIn(name, func() bool { return r.s.countNumber(into) })
}

// eachObject reads a list of objects, or passes over what is none.
func (r *reading) eachObject(element func() bool) bool {
	if r.s.peek() != '[' {
		return r.s.skipValue()
	}
	return r.s.eachElement(element)
}

// readFault reads an error: an object with a message, or a bare string. An empty value is no
// error; an object without a message is quoted as it is.
func (r *reading) readFault(d *Delta) bool { return r.faultWithin(d, 0) }

// maxFaultDepth bounds errors within errors: gateways wrap those of the servers behind them.
const maxFaultDepth = 4

func (r *reading) faultWithin(d *Delta, depth int) bool {
	s := &r.s
	var f Fault
	s.skipSpace()
	from := s.i
	switch s.peek() {
	case '"':
		raw, ok := s.rawString()
		if f.Message = unquote(raw); f.Message != "" {
			d.Fault = &f
		}
		return ok
	case '{':
	default:
		return s.skipValue()
	}
	fields := 0
	ok := s.eachKey(func(key []byte) bool {
		fields++
		k := string(key)
		switch {
		case (k == "error" || k == "message") && s.peek() == '{' && f.Message == "" && depth < maxFaultDepth:
			inner := Delta{}
			ok := r.faultWithin(&inner, depth+1)
			if inner.Fault != nil {
				f = *inner.Fault
			}
			return ok
		case s.peek() != '"':
			return s.skipValue()
		}
		switch k {
		case "message", "detail", "msg", "error":
			raw, ok := s.rawString()
			if k == "message" || f.Message == "" {
				f.Message = unquote(raw)
			}
			return ok
		case "type", "status":
			raw, ok := s.rawString()
			f.Type = unquote(raw)
			return ok
		}
		return s.skipValue()
	})
	if f.Message == "" && fields > 0 {
		f.Message = string(s.b[from:min(s.i, from+4096)])
	}
	if f != (Fault{}) {
		d.Fault = &f
	}
	return ok
}

// stringField gives a field of an object as it stands between its quotes, nil where it
// is not there or no string. It is for events whose kind has to be known before they
// are read.
func stringField(data []byte, name string) (value []byte) {
	s := scanner{b: data}
	s.eachKey(func(key []byte) bool {
		if string(key) == name && s.peek() == '"' {
			value, _ = s.rawString()
			return false // what stands behind it is not asked for
		}
		return s.skipValue()
	})
	return value
}

// ModelIn returns the model that an event or a whole response names, "" where it names none.
func ModelIn(data []byte) string {
	for _, name := range []string{"model", "modelVersion"} {
		if value := stringField(data, name); len(value) > 0 {
			return unquote(value)
		}
	}
	s := scanner{b: data}
	model := ""
	s.eachKey(func(key []byte) bool {
		if k := string(key); model == "" && (k == "message" || k == "response") && s.peek() == '{' { // Anthropic, Responses
			model = unquote(stringField(s.b[s.i:], "model"))
		}
		return s.skipValue()
	})
	return model
}
