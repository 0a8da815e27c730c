package lm

import (
	"sync"

	"pitot/internal/sim"
)

// Words are words that each are one token, with the space before them and
// without.
type Words interface {
	Size() int
	Word(i int) []byte                  // without the space
	Index(word []byte) (i int, ok bool) // of a word without the space
}

// vocabulary gives tokens ids below the model's vocab_size, as clients that
// hold ids in 32 bits or compare them with the size expect. From the bottom
// up:
//
//	the 256 single bytes
//	the words without a space, then those with one, where they fit
//	all other texts, at a hash of theirs or the next free id behind it
//	the template's tokens
//
// So bytes, words and template have the same ids on every server. The others
// have them unless two texts met at one id, which the order of their coming
// decided; their texts are remembered, no more of them than there are ids.
type vocabulary struct {
	size  uint32
	words Words
	named uint32 // words that have ids
	rest  uint32 // the first id behind them

	mu   sync.Mutex
	text map[uint32]string
}

const (
	defaultVocab = 1 << 17
	leastVocab   = 1 << 10
	specials     = 64  // ids of the template's tokens
	maxTokenText = 256 // bytes of a text that is remembered
	maxProbes    = 64  // ids that a text is looked for at
)

// init makes a vocabulary of so many ids, 0 for as many as is usual.
func (v *vocabulary) init(size int, words Words) {
	if size <= 0 {
		size = defaultVocab
	}
	v.size, v.rest, v.text = uint32(max(size, leastVocab)), 256, map[uint32]string{}
	if words != nil && 256+2*words.Size()+leastVocab <= int(v.size)-specials {
		v.words, v.named = words, uint32(words.Size())
		v.rest += 2 * v.named
	}
}

// specialID is the id of the template's token i.
func (v *vocabulary) specialID(i int) uint32 { return v.size - 1 - uint32(i%specials) }

// isSpecial says whether an id is the template's, and of which token.
func (v *vocabulary) isSpecial(id uint32) (int, bool) {
	return int(v.size - 1 - id), id < v.size && id >= v.size-specials
}

// idOf is that of a token's text. A text that comes when its place in the
// vocabulary is full shares the id of another one.
func (v *vocabulary) idOf(b []byte) uint32 {
	if len(b) == 1 {
		return uint32(b[0])
	}
	if v.words != nil && len(b) > 0 {
		word, at := b, uint32(256)
		if b[0] == ' ' {
			word, at = b[1:], at+v.named
		}
		if i, ok := v.words.Index(word); ok {
			return at + uint32(i)
		}
	}
	n := v.size - specials - v.rest
	home := uint32(uint64(tokenKey(b)) * uint64(n) >> 32)
	if len(b) > maxTokenText {
		return v.rest + home
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range uint32(min(maxProbes, n)) {
		id := v.rest + (home+i)%n
		text, taken := v.text[id]
		if !taken {
			v.text[id] = string(b)
		}
		if !taken || text == string(b) {
			return id
		}
	}
	return v.rest + home
}

// appendText appends the text of a token: nothing for one of the template, or
// one that the server has not met.
func (v *vocabulary) appendText(b []byte, id uint32) []byte {
	switch {
	case id < 256:
		return append(b, byte(id))
	case id < 256+v.named:
		return append(b, v.words.Word(int(id-256))...)
	case id < v.rest:
		return append(append(b, ' '), v.words.Word(int(id-256-v.named))...)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return append(b, v.text[id]...)
}

// cacheKey returns the key by which the prefix cache knows the token with an id. It is the same key
// as if the token's text had come.
func (v *vocabulary) cacheKey(id uint32) uint32 {
	if i, ok := v.isSpecial(id); ok {
		return specialKey(i)
	}
	var room [maxTokenText]byte
	if text := v.appendText(room[:0], id); len(text) > 0 {
		return tokenKey(text)
	}
	return foldHash(1<<40 | uint64(id))
}

// tokenKey returns the key by which the prefix cache knows a token: a hash of its text (FNV-1a).
func tokenKey(b []byte) uint32 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return foldHash(h)
}

// specialKey is that of the template's token i.
func specialKey(i int) uint32 { return foldHash(1<<41 | uint64(i%specials)) }

// foldHash makes 32 bits of a hash: what the prefix cache compares is hashed again
// with the tokens around it.
func foldHash(h uint64) uint32 { return uint32(sim.Mix(h) >> 32) }
