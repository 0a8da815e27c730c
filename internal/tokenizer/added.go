package tokenizer

import (
	"bytes"
	"unicode/utf8"
)

// Added is a token that stands beside the model's vocabulary and is found in a text
// before anything else is done with it.
type added struct {
	id         uint32
	content    string
	singleWord bool // only where no word goes on before or behind it
	left       bool // takes the whitespace before it
	right      bool // and behind it
}

// addedSet finds added tokens in a text: the leftmost, of those the longest.
type addedSet struct {
	tokens  []added
	trie    *trie // their contents
	first   [256]bool
	longest int
	only    int // the one byte that all begin with, or -1
}

func newAddedSet(tokens []added) *addedSet {
	if len(tokens) == 0 {
		return nil
	}
	size := 0
	for _, t := range tokens {
		size += len(t.content)
	}
	a := &addedSet{tokens: tokens, only: -1, trie: newTrie(size)}
	for i, t := range tokens {
		if t.content == "" { // it is nowhere in a text
			continue
		}
		a.trie.add(t.content, uint32(i))
		a.first[t.content[0]] = true
		a.longest = max(a.longest, len(t.content))
	}
	firsts := 0
	for b, is := range a.first {
		if is {
			firsts, a.only = firsts+1, b
		}
	}
	if firsts > 1 {
		a.only = -1
	}
	return a
}

// find gives the first match at or behind from: the token's number and where it stands.
func (a *addedSet) find(s []byte, from int) (token, begin, end int, ok bool) {
	for i := from; i < len(s); i++ {
		if a.only >= 0 {
			n := bytes.IndexByte(s[i:], byte(a.only))
			if n < 0 {
				break
			}
			i += n
		} else if !a.first[s[i]] {
			continue
		}
		if id, length := a.trie.longestToken(s[i:]); length > 0 {
			return int(id), i, i + length, true
		}
	}
	return 0, 0, 0, false
}

// split calls text with what stands between added tokens (at its place in s), and id with
// each of them.
func (a *addedSet) split(t *classes, s []byte, text func(part []byte, at int), id func(uint32)) {
	done := 0
	for from := 0; a != nil; {
		k, begin, end, ok := a.find(s, from)
		if !ok {
			break
		}
		from = end
		tok := &a.tokens[k]
		if tok.singleWord && (wordBefore(t, s[:begin]) || wordAfter(t, s[end:])) {
			continue
		}
		if tok.left {
			for begin > done {
				r, n := utf8.DecodeLastRune(s[:begin])
				if t[r]&space == 0 {
					break
				}
				begin -= n
			}
		}
		if tok.right {
			end = t.runEnd(s, end, space, 0)
		}
		if done < begin {
			text(s[done:begin], done)
		}
		id(tok.id)
		done = end
	}
	if done < len(s) {
		text(s[done:], done)
	}
}

func wordBefore(t *classes, s []byte) bool {
	r, n := utf8.DecodeLastRune(s)
	return n > 0 && t[r]&word != 0
}

func wordAfter(t *classes, s []byte) bool {
	c, _ := t.at(s, 0)
	return c&word != 0
}
