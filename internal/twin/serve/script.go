package serve

import "unicode/utf8"

// script is an answer whose words are given: what a schema, a list of choices
// or a regular expression allows. Behind it comes the token that ends a text.
type script struct {
	text string
	ends []int    // where the text of each token ends, never inside a character
	keys []uint32 // of the tokens
	ids  []uint32
}

// scriptPiece is the bytes of a token where no tokenizer covers the text.
const scriptPiece = 4

// newScript takes a text apart into tokens as a prompt that repeats it would be.
func (s *Server) newScript(text string) *script {
	sc := &script{text: text}
	at := 0
	token := func(b []byte) {
		at += len(b)
		sc.ends = append(sc.ends, characterAt(text, at))
		sc.keys = append(sc.keys, key(b))
		sc.ids = append(sc.ids, s.vocab.id(b))
	}
	if s.cfg.Tokenize != nil {
		s.cfg.Tokenize([]byte(text), token)
	}
	if at != len(text) { // a tokenizer that leaves some of it out
		*sc, at = script{text: text}, 0
		for from := 0; from < len(text); from += scriptPiece {
			token([]byte(text[from:min(from+scriptPiece, len(text))]))
		}
	}
	return sc
}

// tokens is how many tokens it has with the one that ends it.
func (sc *script) tokens() int { return len(sc.ends) + 1 }

// slice is the text of the tokens [from, to).
func (sc *script) slice(from, to int) string {
	at := func(token int) int {
		if token <= 0 || len(sc.ends) == 0 {
			return 0
		}
		return sc.ends[min(token, len(sc.ends))-1]
	}
	return sc.text[at(from):at(to)]
}

// key is what the prefix cache knows token i by, id its number.
func (sc *script) key(i int) uint32 {
	if i < len(sc.keys) {
		return sc.keys[i]
	}
	return specialKey(0)
}

func (sc *script) id(v *vocabulary, i int) uint32 {
	if i < len(sc.ids) {
		return sc.ids[i]
	}
	return v.special(0)
}

// characterAt is the last place up to at where a character begins.
func characterAt(text string, at int) int {
	for at > 0 && at < len(text) && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

// appendQuoted appends a text as it stands inside a JSON string.
func appendQuoted(b []byte, text string) []byte {
	q := marshal(text)
	return append(b, q[1:len(q)-1]...)
}
