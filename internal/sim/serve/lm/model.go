// Package lm is the language model that a mock server pretends to have: how it
// takes text apart into tokens, what it says, and where it stops. It knows no
// HTTP and no time: when a token comes is the engine's affair.
package lm

import (
	"unicode/utf8"

	"pitot/internal/sim"
)

// Config describes a model. The zero value works.
type Config struct {
	// Tokenize takes a text apart: it calls token with the bytes of each token
	// in turn. nil, with Count nil as well, is words.
	Tokenize func(text []byte, token func([]byte))
	// Count counts the tokens of a text. It is for want of Tokenize: prompts of
	// text then share nothing.
	Count func(text []byte) int
	// Vocab is the size of the vocabulary: all token ids are below it. 0 is
	// 131072, less than 1024 is 1024.
	Vocab int
	// Words are words that Tokenize makes one token of.
	Words Words
	// Template is the number of tokens that the chat template adds to a chat.
	Template int
	// Cached says that the engine may have a prefix cache: prompts then know
	// their tokens.
	Cached bool

	// Ends tells after how many tokens the model ends answer n by itself; nil
	// for never.
	Ends func(n int64) int
	// ToolCalls is the share of chats, 0 to 1, in which it calls a tool where it
	// may choose.
	ToolCalls float64
	// Reasoning is the share of a chat's answer, 0 to 1, that is reasoning.
	Reasoning float64
	// Seed decides the chances.
	Seed uint64
}

// Model is a language model. It may be used by several goroutines.
type Model struct {
	cfg   Config
	vocab vocabulary
	stock [len(stock)]struct{ id, key uint32 }
	// longest is the length of the longest token in characters, 0 if there is no
	// such.
	longest int
}

// New makes a model.
func New(c Config) *Model {
	if c.Count == nil && c.Tokenize == nil {
		c.Tokenize = splitWords
	}
	c.Reasoning, c.ToolCalls = min(max(c.Reasoning, 0), 1), min(max(c.ToolCalls, 0), 1)
	m := &Model{cfg: c}
	m.vocab.init(c.Vocab, c.Words)
	if c.Words != nil {
		for i := range c.Words.Size() {
			m.longest = max(m.longest, 1+utf8.RuneCount(c.Words.Word(i)))
		}
	}
	for i, w := range stock {
		b := []byte(w)
		if c.Tokenize != nil {
			c.Tokenize([]byte(w), func(token []byte) { b = token })
		}
		m.stock[i].id, m.stock[i].key = m.vocab.idOf(b), tokenKey(b)
	}
	return m
}

// IsReasoning says whether it reasons before it answers.
func (m *Model) IsReasoning() bool { return m.cfg.Reasoning > 0 }

// LongestToken returns the maximum number of characters in a token, or 0 where there is no bound.
func (m *Model) LongestToken() int { return m.longest }

// TemplateTokens returns the number of tokens that the model's chat template adds to a chat.
func (m *Model) TemplateTokens() int { return m.cfg.Template }

// CallsTool says whether the model calls one of n tools, and which, in the
// answer that begins at first.
func (m *Model) CallsTool(n int, first int64) (which int, calls bool) {
	draw := sim.Mix(m.cfg.Seed ^ sim.Mix(uint64(first)))
	if n == 0 || float64(draw>>11)/(1<<53) >= m.cfg.ToolCalls {
		return 0, false
	}
	return int(draw % uint64(n)), true
}
