package tokenizer

import "unicode/utf8"

// wordPiece is BERT's model: the longest token that a word begins with, then
// the longest that its rest begins with, and so on; a word that is not made up of tokens
// is unknown.
type wordPiece struct {
	begins, goesOn *trie // tokens that begin a word; that go on with it, less their prefix
	vocab          map[string]uint32
	unknown        uint32
	longest        int // characters of a word that is looked at
}

func (m *wordPiece) id(token string) (uint32, bool) { id, ok := m.vocab[token]; return id, ok }

func (m *wordPiece) tokenize(e *Encoder, piece []byte) {
	if e.remembered(piece) {
		return
	}
	before := len(e.ids)
	known := utf8.RuneCount(piece) <= m.longest
	in := m.begins
	for rest := piece; known && len(rest) > 0; in = m.goesOn {
		length, id := 0, uint32(0)
		for at := range in.prefixes(rest) {
			length, id = at.length, at.id
		}
		if known = length > 0; known {
			e.ids = append(e.ids, id)
			rest = rest[length:]
		}
	}
	if !known {
		e.ids = append(e.ids[:before], m.unknown)
	}
	e.remember(piece, before)
}
