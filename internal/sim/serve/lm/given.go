package lm

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Given is an answer whose words are given: what a schema, a list of choices
// or a regular expression allows. Behind it comes the token that ends a text.
type Given struct {
	text string
	ends []int    // where the text of each token ends, never inside a character
	keys []uint32 // of the tokens
	ids  []uint32
}

// givenPiece is the bytes of a token where no tokenizer covers the text.
const givenPiece = 4

// TokenizeGiven takes a text apart into tokens as a prompt that repeats it would be.
func (m *Model) TokenizeGiven(text string) *Given {
	g := &Given{text: text}
	at := 0
	token := func(b []byte) {
		at += len(b)
		g.ends = append(g.ends, characterAt(text, at))
		g.keys = append(g.keys, tokenKey(b))
		g.ids = append(g.ids, m.vocab.idOf(b))
	}
	if m.cfg.Tokenize != nil {
		m.cfg.Tokenize([]byte(text), token)
	}
	if at != len(text) { // a tokenizer that leaves some of it out
		*g, at = Given{text: text}, 0
		for from := 0; from < len(text); from += givenPiece {
			token([]byte(text[from:min(from+givenPiece, len(text))]))
		}
	}
	return g
}

// tokenCount returns the number of tokens in the given text, with the token that ends it.
func (g *Given) tokenCount() int { return len(g.ends) + 1 }

// slice is the text of the tokens [from, to).
func (g *Given) slice(from, to int) string {
	endOf := func(token int) int {
		if token <= 0 || len(g.ends) == 0 {
			return 0
		}
		return g.ends[min(token, len(g.ends))-1]
	}
	return g.text[endOf(from):endOf(to)]
}

// cacheKey returns the key by which the prefix cache knows token i; id is its number.
func (g *Given) cacheKey(i int) uint32 {
	if i < len(g.keys) {
		return g.keys[i]
	}
	return specialKey(0)
}

func (g *Given) tokenID(v *vocabulary, i int) uint32 {
	if i < len(g.ids) {
		return g.ids[i]
	}
	return v.specialID(0)
}

// characterAt is the last place up to at where a character begins.
func characterAt(text string, at int) int {
	for at > 0 && at < len(text) && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

// AppendQuoted appends a text as it stands inside a JSON string, with < and >
// as they are.
func AppendQuoted(b []byte, text string) []byte {
	var q bytes.Buffer
	e := json.NewEncoder(&q)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a text always encodes
	return append(b, q.Bytes()[1:q.Len()-2]...)
}
