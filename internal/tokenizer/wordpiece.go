package tokenizer

import "unicode/utf8"

// wordPiece is BERT's model: the longest token that a word begins with, then
// the longest that its rest begins with, and so on; a word that is not made up of tokens
// is unknown.
type wordPiece struct {
	begins, goesOn *trie // tokens that begin a word; that go on with it, less their prefix
	unknown        uint32
	longest        int // characters of a word that is looked at
}

func (m *wordPiece) tokenize(e *Encoder, piece []byte) {
	if e.appendCached(piece) {
		return
	}
	before := len(e.ids)
	known := len(piece) <= m.longest || utf8.RuneCount(piece) <= m.longest
	in := m.begins
	for rest := piece; known && len(rest) > 0; in = m.goesOn {
		id, length := in.longestToken(rest)
		if known = length > 0; known {
			e.ids = append(e.ids, uint32(id))
			rest = rest[length:]
		}
	}
	if !known {
		e.ids = append(e.ids[:before], m.unknown)
	}
	e.cachePiece(piece, before)
}
