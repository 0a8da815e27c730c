package token

import (
	"math/bits"
	"slices"
	"strconv"

	"pitot/internal/workload/seed"
)

// perDraw is the number of words that one 64-bit draw gives: 4 × 13 bits for the universal words.
const perDraw = 4

// AppendText appends n words that depend on start alone, n tokens for a server
// that knows the vocabulary. When first is set the text begins with one of
// the first words and no space; every other word has a space before it. The
// text of n words begins with the text of n−1, and first changes no word but
// the first one.
//
// Words come from splitmix64 begun at start, four from each draw x: the word
// at ⌊x·size/2⁶⁴⌋, then the same with what the product has left below 2⁶⁴.
// For the universal words the first eight hold 102 bits or more, so two starts
// share them with a chance below 2⁻¹⁰¹.
//
// Nothing is allocated when dst has room for the text and 64 bytes more,
// which may be overwritten.
func (v *Vocabulary) AppendText(dst []byte, start uint64, n int, first bool) []byte {
	r := seed.Rand(start)
	size := uint64(v.words.wordCount())
	for ; n > 0; n -= perDraw {
		dst = slices.Grow(dst, perDraw*slot)
		x := r.Uint64()
		for range min(n, perDraw) {
			i, rest := bits.Mul64(x, size)
			if first {
				i, _ = bits.Mul64(x, uint64(v.first.wordCount()))
				dst = append(dst, v.first.wordAt(int(i))...)
				first = false
			} else {
				end := len(dst)
				*(*[slot]byte)(dst[end : end+slot]) = v.words.text[i]
				dst = dst[:end+int(v.words.length[i])]
			}
			x = rest
		}
	}
	return dst
}

// Token ids that a prompt may be made of: those from lowestID on, so many. Below are what
// vocabularies keep for themselves (the first thousand of Tekken's, BERT's unused), and all
// that are in use have more.
const (
	lowestID = 1000
	idCount  = 3000
)

// AppendIDs appends n token ids that depend on start alone, with commas between them: one for
// each of the words that [Vocabulary.AppendText] would append, equal where these are.
func (v *Vocabulary) AppendIDs(dst []byte, start uint64, n int) []byte {
	r := seed.Rand(start)
	size := uint64(v.words.wordCount())
	for begun := false; n > 0; n -= perDraw {
		x := r.Uint64()
		for range min(n, perDraw) {
			i, rest := bits.Mul64(x, size)
			if begun {
				dst = append(dst, ',')
			}
			dst, begun = strconv.AppendUint(dst, lowestID+i%idCount, 10), true
			x = rest
		}
	}
	return dst
}

// Count returns the number of tokens of text when every known word, with one space before it, is
// one token. Anything between known words counts one token for every four bytes, rounded up. This
// is the usual rule of thumb for English, and no more than that. For generated text the count is
// exact.
func (v *Vocabulary) Count(text []byte) int {
	tokens := 0
	v.Split(text, func([]byte) { tokens++ })
	return tokens
}

// Split takes text apart into the tokens that Count counts, and calls token
// with the bytes of each in turn.
func (v *Vocabulary) Split(text []byte, token func([]byte)) {
	known := v.known()
	open := 0 // where the stretch that is not known begins
	closeAt := func(end int) {
		for ; open < end; open += 4 {
			token(text[open:min(open+4, end)])
		}
	}
	for i := 0; i < len(text); {
		if !inWord[text[i]] {
			i++
			continue
		}
		begin := i
		for i < len(text) && inWord[text[i]] {
			i++
		}
		if _, ok := known[string(text[begin:i])]; !ok {
			continue
		}
		if begin > open && text[begin-1] == ' ' {
			begin--
		}
		closeAt(begin)
		token(text[begin:i])
		open = i
	}
	closeAt(len(text))
}

// inWord marks the bytes that make up words: letters, digits, and all of
// UTF-8 beyond ASCII, so that "früh" is one word that is not known rather
// than two that may be.
var inWord = func() (in [256]bool) {
	for c := range in {
		in[c] = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c >= 0x80
	}
	return in
}()
