package api

import "bytes"

// Framing is the way in which a stream divides into events.
type Framing uint8

const (
	// EventStream is server-sent events (WHATWG HTML, section 9.2): lines may end
	// in LF, CRLF or CR, data may span lines, comments and unknown fields are
	// ignored.
	EventStream Framing = iota
	// JSONLines is one JSON document a line (NDJSON), which is an event without
	// a name; empty lines are ignored.
	JSONLines
)

// Frames cuts a byte stream into events, push-style: any of it may be split
// across reads.
type Frames struct {
	framing Framing

	line  []byte // incomplete line carried over
	data  []byte // data of the current event when it spans lines or reads
	name  []byte
	head  []byte // what stood before the data of an event that was handed on in place: its name, its field
	has   bool   // the event has data
	cr    bool   // the last line ended in CR: a LF right behind belongs to it
	begun bool   // past the byte order mark
	after bool   // lines have come since the last event
	stray []byte // the first lines that are no part of an event, cut
}

// Reset prepares for another stream.
func (p *Frames) Reset(f Framing) {
	*p = Frames{framing: f, line: p.line[:0], data: p.data[:0], name: p.name[:0], head: p.head[:0], stray: p.stray[:0]}
}

// Feed hands each complete event to event. The slices are valid during the
// call only.
//
// Where an event may begin like the last one, ahead is asked first, unless it is nil: where data
// begins with an event that it knows, and an empty line is behind it, it has read it and gives the
// bytes of both; else 0. No line has to be looked for then.
func (p *Frames) Feed(b []byte, ahead func(data []byte) (n int, err error), event func(name, data []byte) error) error {
	returns, looked := false, false // few servers write any CR
	for len(b) > 0 {
		if p.cr {
			p.cr = false
			if b[0] == '\n' {
				b = b[1:]
				continue
			}
		}
		if k := len(p.head); k > 0 && ahead != nil && len(p.line) == 0 && !p.has && len(p.name) == 0 && bytes.HasPrefix(b, p.head) {
			n, err := ahead(b[k:])
			if err != nil {
				return err
			}
			if n > 0 {
				b = b[k+n:]
				p.after = false
				continue
			}
		}
		if !looked {
			looked, returns = true, bytes.IndexByte(b, '\r') >= 0
		}
		// Lines end at the first CR or LF; a CR before the LF is part of the
		// end, and a JSON text never holds either unescaped.
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			if returns {
				i = bytes.IndexByte(b, '\r')
			}
			if i < 0 {
				if len(p.line)+len(b)+len(p.data) > MaxEvent {
					return &OversizedError{"bytes in one event", MaxEvent}
				}
				p.line = append(p.line, b...)
				return nil
			}
		} else if returns {
			if j := bytes.IndexByte(b[:i], '\r'); j >= 0 {
				i = j
			}
		}
		line, end := b[:i], i+lineEnd(b[i:])
		p.cr = b[end-1] == '\r'
		b = b[end:]
		carried := len(p.line) > 0
		if !carried && p.begun && p.framing == EventStream && bytes.HasPrefix(line, eventField) {
			p.after = true
			p.name = append(p.name[:0], bytes.TrimPrefix(line[len(eventField):], []byte{' '})...)
			continue
		}
		if carried {
			p.line = append(p.line, line...)
			line = p.line
		}
		// The usual case by far: one data line with an empty line behind it,
		// both in this read. It is handed on in place.
		if blank := lineEnd(b); blank > 0 && b[blank-1] == '\n' && !p.cr && !carried && !p.has && p.framing == EventStream {
			if data, ok := dataField(line); ok {
				b = b[blank:]
				p.begun, p.after = true, false
				p.rememberHead(line[:len(line)-len(data)], blank > 1)
				err := event(p.name, data)
				p.name = p.name[:0]
				if err != nil {
					return err
				}
				continue
			}
		}
		err := p.takeLine(line, event)
		p.line = p.line[:0]
		if err != nil {
			return err
		}
	}
	return nil
}

// lineEnd returns the length of the line end that b begins with, 0 where it begins with none.
func lineEnd(b []byte) int {
	switch {
	case len(b) == 0 || b[0] != '\n' && b[0] != '\r':
		return 0
	case b[0] == '\r' && len(b) > 1 && b[1] == '\n':
		return 2
	}
	return 1
}

// blankLine returns the length of a line's end and the empty line after it, at the beginning of b.
// Ends are LF or CRLF. The result is 0 where they are not there.
func blankLine(b []byte) int {
	for _, ends := range [2]string{"\n\n", "\r\n\r\n"} {
		if len(b) >= len(ends) && string(b[:len(ends)]) == ends {
			return len(ends)
		}
	}
	return 0
}

// rememberHead keeps what stands before an event's data, of which field is on its line; crlf says
// how lines end.
func (p *Frames) rememberHead(field []byte, crlf bool) {
	p.head = p.head[:0]
	if len(p.name) > 0 {
		p.head = append(append(append(p.head, eventField...), ' '), p.name...)
		if crlf {
			p.head = append(p.head, '\r')
		}
		p.head = append(p.head, '\n')
	}
	p.head = append(p.head, field...)
}

// eventField is the beginning of a line with an event's name.
var eventField = []byte("event:")

// takeLine handles one line.
func (p *Frames) takeLine(line []byte, event func(name, data []byte) error) error {
	if !p.begun {
		p.begun = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	if p.framing == JSONLines {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			return nil
		}
		return event(nil, line)
	}
	if len(line) == 0 {
		if !p.has {
			if len(p.name) > 0 {
				p.keepStray(append(append([]byte(nil), "event: "...), p.name...))
			}
			p.name = p.name[:0]
			return nil
		}
		p.after = false
		err := event(p.name, p.data)
		p.data, p.name, p.has = p.data[:0], p.name[:0], false
		return err
	}
	p.after = true
	if data, ok := dataField(line); ok {
		if p.has {
			p.data = append(p.data, '\n')
		}
		if len(p.data)+len(data) > MaxEvent {
			return &OversizedError{"bytes in one event", MaxEvent}
		}
		p.data, p.has = append(p.data, data...), true
		return nil
	}
	if v, ok := bytes.CutPrefix(line, eventField); ok {
		p.name = append(p.name[:0], bytes.TrimPrefix(v, []byte{' '})...)
		return nil
	}
	if !isIgnorable(line) {
		p.keepStray(line)
	}
	return nil
}

// isIgnorable reports whether a line is a comment, or a field of the standard that says
// nothing about the response.
func isIgnorable(line []byte) bool {
	field, _, _ := bytes.Cut(line, []byte{':'})
	switch string(field) {
	case "", "id", "retry":
		return true
	}
	return false
}

// maxStray bounds what is kept of lines that are no part of an event.
const maxStray = 2 << 10

// keepStray keeps a line that is no part of an event: a server or a proxy that breaks off
// may write its reason so.
func (p *Frames) keepStray(line []byte) {
	if room := maxStray - len(p.stray); room > len(line) {
		p.stray = append(append(p.stray, line...), '\n')
	} else if len(p.stray) == 0 {
		p.stray = append(p.stray, line[:maxStray]...)
	}
}

// Stray returns the first lines of the stream that are no part of an event.
func (p *Frames) Stray() []byte { return p.stray }

// dataField gives the value of a data line; one space after the colon is not
// part of it.
func dataField(line []byte) ([]byte, bool) {
	v, ok := bytes.CutPrefix(line, []byte("data:"))
	if !ok {
		return nil, string(line) == "data"
	}
	return bytes.TrimPrefix(v, []byte{' '}), true
}

// Held returns the number of bytes of the buffers.
func (p *Frames) Held() int {
	return cap(p.line) + cap(p.data) + cap(p.name) + cap(p.head) + cap(p.stray)
}

// Trim gives large buffers back.
func (p *Frames) Trim() {
	for _, b := range []*[]byte{&p.line, &p.data, &p.name, &p.head} {
		if cap(*b) > MaxKept {
			*b = nil
		}
	}
}

// HasPending says whether anything has come behind the last event: the
// beginning of another, or a comment.
func (p *Frames) HasPending() bool { return p.after || len(p.line) > 0 }

// FlushEvent hands on an event that the stream's end left without its empty line:
// many servers forget it.
func (p *Frames) FlushEvent(event func(name, data []byte) error) error {
	if len(p.line) > 0 {
		line := p.line
		p.line = nil
		if err := p.takeLine(line, event); err != nil {
			return err
		}
		p.line = line[:0]
	}
	if p.has {
		return p.takeLine(nil, event)
	}
	return nil
}

// PartialBytes returns the number of bytes received of an unfinished event.
func (p *Frames) PartialBytes() int { return len(p.line) + len(p.data) }
