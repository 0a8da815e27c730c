package tokenizer

import "bytes"

// sink takes one piece of a text; first says that it begins where the text does.
type sink func(piece []byte, first bool)

// preTokenizer is a step that takes text apart: what it makes of a piece goes on to next.
// The steps of an encoder are put together once, so that no piece costs an allocation.
type preTokenizer interface {
	into(t *classes, next sink) sink
}

// finder gives the first match at or behind from; an empty one, or begin = len(s), is none.
type finder interface {
	find(t *classes, s []byte, from int) (begin, end int)
}

func (scan scanner) find(t *classes, s []byte, from int) (int, int) {
	for from < len(s) {
		if end := scan(t, s, from); end > from {
			return from, end
		}
		_, n := t.at(s, from)
		from += n
	}
	return len(s), len(s)
}

// literal finds a text.
type literal []byte

func (l literal) find(_ *classes, s []byte, from int) (int, int) {
	if i := bytes.Index(s[from:], l); i >= 0 && len(l) > 0 {
		return from + i, from + i + len(l)
	}
	return len(s), len(s)
}

// characters finds single characters that are of one of several kinds.
type characters class

func (kinds characters) find(t *classes, s []byte, from int) (int, int) {
	for from < len(s) {
		c, n := t.at(s, from)
		if c&class(kinds) != 0 {
			return from, from + n
		}
		from += n
	}
	return len(s), len(s)
}

// wordsAndSigns is \w+|[^\w\s]+.
func wordsAndSigns(t *classes, s []byte, i int) int {
	c, n := t.at(s, i)
	switch {
	case c&word != 0:
		return t.runEnd(s, i+n, word, 0)
	case c&space == 0:
		return t.runEnd(s, i+n, ^class(0), word|space)
	}
	return i
}

// behaviour is the treatment of a match that splits a text.
type behaviour int

const (
	isolated       behaviour = iota // a piece of its own
	removed                         // left out
	mergedPrevious                  // belongs to the piece before it
	mergedNext                      // belongs to the piece behind it
	contiguous                      // one piece with other matches next to it
)

// split cuts pieces at what a finder finds.
type split struct {
	at     finder
	does   behaviour
	invert bool // the matches are what stands between what is found
}

func (p split) into(t *classes, next sink) sink {
	if (p.does == isolated || p.does == removed) && !p.invert { // the usual case
		return func(s []byte, first bool) {
			for open := 0; open < len(s); {
				begin, end := p.at.find(t, s, open)
				if open < begin {
					next(s[open:begin], first && open == 0)
				}
				if begin < end && p.does == isolated {
					next(s[begin:end], first && begin == 0)
				}
				open = max(begin, end)
			}
		}
	}
	return func(s []byte, first bool) {
		m := merger{does: p.does, s: s, first: first, next: next, at: -1}
		done := 0
		for done < len(s) {
			begin, end := p.at.find(t, s, done)
			if begin > done {
				m.add(done, begin, p.invert)
			}
			if end > begin {
				m.add(begin, end, !p.invert)
			}
			done = max(end, begin)
		}
		m.flush(len(s))
	}
}

// merger puts matches and what is between them together as a behaviour says.
type merger struct {
	does     behaviour
	s        []byte
	first    bool
	next     sink
	at       int  // where the piece begins that is not handed on yet, -1: none
	previous bool // the last part was a match
}

func (m *merger) emit(begin, end int) {
	if begin >= 0 && begin < end {
		m.next(m.s[begin:end], m.first && begin == 0)
	}
}

func (m *merger) flush(end int) {
	m.emit(m.at, end)
	m.at = -1
}

func (m *merger) add(begin, end int, match bool) {
	switch m.does {
	case isolated:
		m.emit(begin, end)
	case removed:
		if !match {
			m.emit(begin, end)
		}
	case contiguous:
		if match != m.previous || m.at < 0 {
			m.flush(begin)
			m.at = begin
		}
	case mergedPrevious: // a match goes to the part before it, unless that is a match
		if !match || m.previous || m.at < 0 {
			m.flush(begin)
			m.at = begin
		}
	case mergedNext: // a part goes to the match before it
		if match || !m.previous {
			m.flush(begin)
			m.at = begin
		}
	}
	m.previous = match
}

// byteLevel is GPT-2's: an expression of its own, and text as bytes from there on, which
// it is here anyway.
type byteLevel struct {
	prefix bool // a space before what begins without one
	words  bool // its expression is used
}

func (p byteLevel) into(t *classes, next sink) sink {
	if p.words {
		next = split{at: scanner(matchGPT2)}.into(t, next)
	}
	if !p.prefix {
		return next
	}
	var buf []byte
	return func(s []byte, first bool) {
		if len(s) > 0 && s[0] != ' ' {
			buf = append(append(buf[:0], ' '), s...)
			s = buf
		}
		next(s, first)
	}
}

// metaspace is SentencePiece's: spaces become a character, ▁, and words begin with it.
type metaspace struct {
	mark          string
	always, first bool // put before what begins without one; at the beginning of the text only
	split         bool
}

func (p metaspace) into(t *classes, next sink) sink {
	if p.split {
		next = split{at: literal(p.mark), does: mergedNext}.into(t, next)
	}
	var buf []byte
	return func(s []byte, first bool) {
		buf = buf[:0]
		if (p.always || p.first && first) && !bytes.HasPrefix(s, []byte(p.mark)) && (len(s) == 0 || s[0] != ' ') {
			buf = append(buf, p.mark...)
		}
		next(replaceByte(buf, s, ' ', p.mark), first)
	}
}

// replaceByte appends s to dst with each b replaced.
func replaceByte(dst, s []byte, b byte, by string) []byte {
	for {
		i := bytes.IndexByte(s, b)
		if i < 0 {
			return append(dst, s...)
		}
		dst = append(append(dst, s[:i]...), by...)
		s = s[i+1:]
	}
}

// fixedLength cuts pieces of so many characters.
type fixedLength int

func (p fixedLength) into(t *classes, next sink) sink {
	return func(s []byte, first bool) {
		for at := 0; at < len(s); {
			end := at
			for n := 0; n < int(p) && end < len(s); n++ {
				_, size := t.at(s, end)
				end += size
			}
			next(s[at:end], first && at == 0)
			at = end
		}
	}
}
