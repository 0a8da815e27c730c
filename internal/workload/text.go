package workload

import "pitot/internal/workload/token"

// How prompts become text. A generated word brings the space before it along,
// so generated segments that follow anything are joined by one space and
// their tokens add up; only at the beginning of a text there is none. Literal
// text is written as it is: its spaces are its own.

// Append appends the text of the segment. first says that nothing stands
// before it.
func (s Segment) Append(dst []byte, v *token.Vocabulary, first bool) []byte {
	if s.Words == 0 {
		return append(dst, s.Text...)
	}
	return v.AppendText(dst, s.Seed, s.Words, first)
}

// Append appends the text of the message, which starts fresh: chat templates
// set messages apart.
func (m Message) Append(dst []byte, v *token.Vocabulary) []byte {
	return appendSegments(dst, len(dst), m.Segments, v)
}

// AppendPrompt appends the texts of all messages as one prompt, for APIs that
// take no messages. Generated text goes on with its own space; before a
// message that begins with literal text stands one line break.
func (r *Request) AppendPrompt(dst []byte, v *token.Vocabulary) []byte {
	start := len(dst)
	for _, m := range r.Messages {
		if len(dst) > start && len(m.Segments) > 0 && m.Segments[0].Words == 0 {
			dst = append(dst, '\n')
		}
		dst = appendSegments(dst, start, m.Segments, v)
	}
	return dst
}

// appendSegments appends to a text that began at start.
func appendSegments(dst []byte, start int, segments []Segment, v *token.Vocabulary) []byte {
	for _, s := range segments {
		dst = s.Append(dst, v, len(dst) == start)
	}
	return dst
}
