// Package token makes text of an exact length in tokens without having a
// tokenizer: from words that are one token each in every common vocabulary.
package token

import (
	_ "embed"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
)

//go:embed words.txt
var wordList string

//go:embed first_words.txt
var firstList string

// Vocabulary is a set of words that count as one token each: any word with
// the space before it, and some, the first words, without one too. It never
// changes, so it is safe for concurrent use.
type Vocabulary struct {
	name  string
	words list
	first list
	known func() map[string]int32 // to find words by, hence built on demand
}

// slot is the room of one word with its leading space. All slots being of one
// size, a word is copied by two moves and no branch.
const slot = 16

// list is words, each with its leading space.
type list struct {
	text   [][slot]byte
	length []uint8 // bytes in use, the space included
}

func (l *list) addWord(word string) {
	w := [slot]byte{' '}
	l.length = append(l.length, uint8(1+copy(w[1:], word)))
	l.text = append(l.text, w)
}

// parseWords reads one word a line, none longer than a slot has room for.
func parseWords(lines string) list {
	n := strings.Count(lines, "\n")
	l := list{text: make([][slot]byte, 0, n), length: make([]uint8, 0, n)}
	for word := range strings.Lines(lines) {
		l.addWord(word[:len(word)-1])
	}
	return l
}

func (l *list) wordCount() int { return len(l.text) }

// wordAt is word i without its space.
func (l *list) wordAt(i int) []byte { return l.text[i][1:l.length[i]] }

// eachWord goes through the words.
func (l *list) eachWord(yield func(string) bool) {
	for i := range l.wordCount() {
		if !yield(string(l.wordAt(i))) {
			return
		}
	}
}

// filterWords is the words that keep wants.
func (l *list) filterWords(keep func(string) bool) (kept list) {
	for i := range l.wordCount() {
		if w := string(l.wordAt(i)); keep(w) {
			kept.addWord(w)
		}
	}
	return kept
}

func newVocabulary(name string, words, first list) *Vocabulary {
	v := &Vocabulary{name: name, words: words, first: first}
	v.known = sync.OnceValue(func() map[string]int32 {
		m := make(map[string]int32, v.Size())
		for i := range v.Size() {
			m[string(v.words.wordAt(i))] = int32(i)
		}
		return m
	})
	return v
}

var universal = sync.OnceValue(func() *Vocabulary {
	return newVocabulary("universal", parseWords(wordList), parseWords(firstList))
})

// Universal is the built-in vocabulary: 8,192 words, 2,048 of them first
// words. README.md next to this file says which tokenizers it was computed
// from.
func Universal() *Vocabulary { return universal() }

// Name says which vocabulary it is: "universal", or what Restrict made of it.
func (v *Vocabulary) Name() string { return v.name }

// Size is the number of words.
func (v *Vocabulary) Size() int { return v.words.wordCount() }

// FirstSize is the number of words that may begin a text.
func (v *Vocabulary) FirstSize() int { return v.first.wordCount() }

// Word is word i, without a space; it must not be changed.
func (v *Vocabulary) Word(i int) []byte { return v.words.wordAt(i) }

// Index is which word it is, given without a space; false if it is none.
func (v *Vocabulary) Index(word []byte) (int, bool) {
	i, ok := v.known()[string(word)]
	return int(i), ok
}

// Words goes through the words; with a space before it each is a token.
func (v *Vocabulary) Words() iter.Seq[string] { return v.words.eachWord }

// FirstWords goes through the words that may begin a text.
func (v *Vocabulary) FirstWords() iter.Seq[string] { return v.first.eachWord }

// RestrictTo is the vocabulary of the words that keep wants, and of the first
// words that keepFirst wants, for a server on whose tokenizer some of them are
// not one token. It is an error if no word, or no first word, is left.
func (v *Vocabulary) RestrictTo(keep, keepFirst func(word string) bool) (*Vocabulary, error) {
	words, first := v.words.filterWords(keep), v.first.filterWords(keepFirst)
	if words.wordCount() == 0 || first.wordCount() == 0 {
		return nil, errors.New("restrict vocabulary: no words are left")
	}
	name := v.name
	if words.wordCount() < v.Size() || first.wordCount() < v.FirstSize() {
		base, _, _ := strings.Cut(v.name, "/")
		name = fmt.Sprintf("%s/%d", base, words.wordCount())
	}
	return newVocabulary(name, words, first), nil
}
