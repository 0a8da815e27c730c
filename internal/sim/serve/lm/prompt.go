package lm

import (
	"strconv"

	"pitot/internal/sim"
)

// splitWords takes text apart at ASCII white space: a token is a word with the
// space before it.
func splitWords(text []byte, token func([]byte)) {
	begin := -1
	for i, b := range text {
		space := b == ' ' || b == '\n' || b == '\t' || b == '\r'
		switch {
		case space && begin >= 0:
			token(text[begin:i])
			begin = -1
		case !space && begin < 0:
			begin = i
			if i > 0 && text[i-1] == ' ' {
				begin--
			}
		}
	}
	if begin >= 0 {
		token(text[begin:])
	}
}

// Prompt is one prompt as the engine knows it.
type Prompt struct {
	Tokens int
	Text   []byte   // as it came, nil for ids
	IDs    []uint32 // of its tokens: those that came, or that the answer is to contain
	hash   uint64   // of what it says
	keys   []uint32 // of its tokens; nil where nothing is shared
}

// TextPrompt is a prompt of text, with so many tokens of a chat's template.
func (m *Model) TextPrompt(text []byte, template int) Prompt {
	if m.cfg.Tokenize == nil {
		return Prompt{Tokens: m.cfg.Count(text) + template, hash: uint64(tokenKey(text)), Text: text}
	}
	p := Prompt{Text: text}
	if m.cfg.Cached {
		p.keys = make([]uint32, 0, len(text)/5+template+1)
	}
	m.eachToken(text, template, func(i int) { m.appendToken(&p, specialKey(i)) }, func(b []byte) { m.appendToken(&p, tokenKey(b)) })
	return p
}

// IDPrompt is a prompt of token ids.
func (m *Model) IDPrompt(ids []uint32) Prompt {
	p := Prompt{IDs: ids}
	for _, id := range ids {
		m.appendToken(&p, m.vocab.cacheKey(id))
	}
	return p
}

// appendToken appends a token to a prompt.
func (m *Model) appendToken(p *Prompt, key uint32) {
	p.Tokens++
	p.hash = sim.Mix(p.hash ^ uint64(key))
	if m.cfg.Cached {
		p.keys = append(p.keys, key)
	}
}

// eachToken goes through the tokens of a prompt of text: those of the chat's
// template, of which only the number is known, and those of the text. The
// template stands before the text, but for what would end a message: that
// comes after it, where the answer begins, so that the next turn's prompt
// begins with this one's and its answer.
func (m *Model) eachToken(text []byte, template int, special func(i int), token func([]byte)) {
	end := 0
	m.cfg.Tokenize(newline, func([]byte) { end++ })
	if end > template {
		end = 0
	}
	for i := range template - end {
		special(i)
	}
	m.cfg.Tokenize(text, token)
	if end > 0 {
		m.cfg.Tokenize(newline, token)
	}
}

var newline = []byte("\n")

// Truncation is which tokens of a prompt are kept.
type Truncation struct {
	Set  bool
	Keep int
	Left bool // the last ones
}

// Truncate cuts a prompt.
func (p *Prompt) Truncate(t Truncation) {
	if t.Set {
		p.Tokens = min(p.Tokens, t.Keep)
		p.keys, p.IDs = t.truncate(p.keys), t.truncate(p.IDs)
	}
}

// truncate returns the tokens of a prompt that remain after truncation.
func (t Truncation) truncate(tokens []uint32) []uint32 {
	switch {
	case !t.Set || len(tokens) <= t.Keep:
		return tokens
	case t.Left:
		return tokens[len(tokens)-t.Keep:]
	}
	return tokens[:t.Keep]
}

// Tell gives a prompt the ids of its tokens, which an answer is to tell.
func (m *Model) Tell(p *Prompt, template int, t Truncation) {
	if p.IDs == nil {
		p.IDs = t.truncate(m.Encode(p.Text, template))
	}
}

// Encode gives the ids of a prompt of text.
func (m *Model) Encode(text []byte, template int) []uint32 {
	if m.cfg.Tokenize == nil { // only their number is known
		ids := make([]uint32, m.cfg.Count(text)+template)
		for i := range ids {
			ids[i] = uint32(i) % m.vocab.size
		}
		return ids
	}
	ids := make([]uint32, 0, len(text)/5+template+1)
	m.eachToken(text, template,
		func(i int) { ids = append(ids, m.vocab.specialID(i)) },
		func(b []byte) { ids = append(ids, m.vocab.idOf(b)) })
	return ids
}

// Decode appends the text of tokens.
func (m *Model) Decode(b []byte, ids ...uint32) []byte {
	for _, id := range ids {
		b = m.vocab.appendText(b, id)
	}
	return b
}

// Size returns the number of token ids.
func (m *Model) Size() int { return int(m.vocab.size) }

// TokenName returns the tokenizer's name of the token with an id.
func (m *Model) TokenName(id uint32) string {
	if i, ok := m.vocab.isSpecial(id); ok {
		return "<|template_" + strconv.Itoa(i) + "|>"
	}
	return tokenName(m.vocab.appendText(nil, id))
}

// HashSalt is a number for a text that keeps prompts apart (cache_salt).
func HashSalt(text string) uint64 { return uint64(tokenKey([]byte(text))) }

// content implements [sim.Content] for one answer: the prompt, and behind it
// the answer as it is sent, so that a next turn that repeats both finds them
// in the cache.
type content struct {
	salt uint64
	keys []uint32
	a    *Answer
}

func (x *content) Tokens(from, to int) uint64 {
	h := x.salt
	for i := from; i < to; i++ {
		var k uint32
		if i < len(x.keys) {
			k = x.keys[i]
		} else {
			k = x.a.cacheKey(i - len(x.keys))
		}
		h = sim.Mix(h ^ uint64(k))
	}
	return h
}
