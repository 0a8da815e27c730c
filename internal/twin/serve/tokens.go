package serve

import (
	"encoding/json"
	"strconv"

	"pitot/internal/twin"
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

// prompt is one prompt as the engine knows it.
type prompt struct {
	tokens int
	hash   uint64   // of what it says
	keys   []uint32 // of its tokens; nil where nothing is shared
	text   []byte   // as it came, nil for ids
	ids    []uint32 // of its tokens: those that came, or that are to be told
}

// content implements [twin.Content] for one choice: the prompt, and behind it
// the answer as it is sent, so that a next turn that repeats both finds them
// in the cache.
type content struct {
	salt uint64
	keys []uint32
	c    *choice
}

func (x *content) Tokens(from, to int) uint64 {
	h := x.salt
	for i := from; i < to; i++ {
		var k uint32
		if i < len(x.keys) {
			k = x.keys[i]
		} else {
			k = x.c.answerKey(i - len(x.keys))
		}
		h = twin.Mix(h ^ uint64(k))
	}
	return h
}

// eachToken goes through the tokens of a prompt of text: those of the chat's
// template, of which only the number is known, and those of the text. The
// template stands before the text, but for what would end a message: that
// comes after it, where the answer begins, so that the next turn's prompt
// begins with this one's and its answer.
func (s *Server) eachToken(text []byte, overhead int, template func(i int), token func([]byte)) {
	end := 0
	s.cfg.Tokenize(newline, func([]byte) { end++ })
	if end > overhead {
		end = 0
	}
	for i := range overhead - end {
		template(i)
	}
	s.cfg.Tokenize(text, token)
	if end > 0 {
		s.cfg.Tokenize(newline, token)
	}
}

var newline = []byte("\n")

// textPrompt is a prompt of text, with so many tokens of a chat's template.
func (s *Server) textPrompt(text []byte, overhead int) prompt {
	if s.cfg.Tokenize == nil {
		return prompt{tokens: s.cfg.Count(text) + overhead, hash: uint64(key(text)), text: text}
	}
	p := prompt{text: text}
	if s.caching {
		p.keys = make([]uint32, 0, len(text)/5+overhead+1)
	}
	s.eachToken(text, overhead, func(i int) { s.take(&p, specialKey(i)) }, func(b []byte) { s.take(&p, key(b)) })
	return p
}

// idPrompt is a prompt of token ids.
func (s *Server) idPrompt(ids []uint32) prompt {
	p := prompt{ids: ids}
	for _, id := range ids {
		s.take(&p, s.vocab.key(id))
	}
	return p
}

// take appends a token to a prompt.
func (s *Server) take(p *prompt, key uint32) {
	p.tokens++
	p.hash = twin.Mix(p.hash ^ uint64(key))
	if s.caching { // the engine may have a prefix cache
		p.keys = append(p.keys, key)
	}
}

// encode gives the ids of a prompt of text.
func (s *Server) encode(text []byte, overhead int) []uint32 {
	if s.cfg.Tokenize == nil { // only their number is known
		ids := make([]uint32, s.cfg.Count(text)+overhead)
		for i := range ids {
			ids[i] = uint32(i) % s.vocab.size
		}
		return ids
	}
	ids := make([]uint32, 0, len(text)/5+overhead+1)
	s.eachToken(text, overhead,
		func(i int) { ids = append(ids, s.vocab.special(i)) },
		func(b []byte) { ids = append(ids, s.vocab.id(b)) })
	return ids
}

// decode appends the text of tokens.
func (s *Server) decode(b []byte, ids []uint32) []byte {
	for _, id := range ids {
		b = s.vocab.appendText(b, id)
	}
	return b
}

// tokenized is the answer of /tokenize.
type tokenized struct {
	Count       int      `json:"count"`
	MaxModelLen int      `json:"max_model_len"`
	Tokens      []uint32 `json:"tokens"`
	TokenStrs   []string `json:"token_strs"`
}

func (s *Server) tokenize(raw []byte) reply {
	b, refused := readBody(raw)
	if refused != nil {
		return *refused
	}
	t := tokenized{MaxModelLen: s.cfg.MaxModelLen}
	strs := b.boolean("return_token_strs")
	var text []byte
	overhead := 0
	switch messages, chat := b.m["messages"]; {
	case chat:
		text, overhead = b.chat(messages).text, s.cfg.PromptOverhead
	case b.has("prompt"):
		one, ok := b.text("prompt")
		if !ok {
			b.add("string_type", "body.prompt", "Input should be a valid string", b.m["prompt"])
			b.missing("messages")
		}
		text = []byte(one)
	default:
		b.missing("prompt")
		b.missing("messages")
	}
	if refused := b.refused(); refused != nil {
		return *refused
	}
	t.Tokens = s.encode(text, overhead)
	t.Count = len(t.Tokens)
	if strs {
		t.TokenStrs = make([]string, len(t.Tokens))
		for i, id := range t.Tokens {
			t.TokenStrs[i] = s.tokenName(id)
		}
	}
	return ok(t)
}

// tokenName is what the tokenizer calls the token with an id.
func (s *Server) tokenName(id uint32) string {
	if i, ok := s.vocab.isSpecial(id); ok {
		return "<|template_" + strconv.Itoa(i) + "|>"
	}
	return tokenName(s.vocab.appendText(nil, id))
}

func (s *Server) detokenize(raw []byte) reply {
	b, refused := readBody(raw)
	if refused != nil {
		return *refused
	}
	var ids []int64
	if !b.has("tokens") {
		b.missing("tokens")
	} else {
		ids = b.ids("tokens")
	}
	for i, id := range ids {
		if id < 0 {
			b.atLeast("tokens."+strconv.Itoa(i), 0, json.RawMessage(strconv.FormatInt(id, 10)))
		}
	}
	if refused := b.refused(); refused != nil {
		return *refused
	}
	var text []byte
	for _, id := range ids {
		if id < int64(s.vocab.size) { // there is none beyond
			text = s.vocab.appendText(text, uint32(id))
		}
	}
	return ok(map[string]string{"prompt": string(text)})
}
