package mock

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"sync"

	"pitot/internal/twin"
)

// Token ids are made from the bytes of a token, so that equal text is equal
// tokens without a vocabulary: up to six bytes are the id itself, with their
// number above them, and longer ones are hashed. All are below 2^53, which
// JSON numbers hold exactly.
const (
	idBytes  = 6
	idBits   = 8 * idBytes
	idHashed = uint64(7) << idBits
)

// tokenID is the id of a token's bytes.
func tokenID(b []byte) uint64 {
	if len(b) <= idBytes {
		id := uint64(len(b)) << idBits
		for i, c := range b {
			id |= uint64(c) << (8 * i)
		}
		return id
	}
	h := fnv.New64a()
	_, _ = h.Write(b)
	return idHashed | twin.Mix(h.Sum64())>>(64-idBits)
}

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
	ids    []uint32 // nil where nothing is shared
	text   []byte   // to be echoed
	given  []uint64 // the ids that the client sent
}

// fold makes 32 bits of an id: what the prefix cache compares is hashed again
// with the tokens around it.
func fold(id uint64) uint32 { return uint32(twin.Mix(id) >> 32) }

// content implements [twin.Content] for one choice: the prompt, and behind it
// the answer as it is sent, so that a next turn that repeats both finds them
// in the cache.
type content struct {
	salt uint64
	ids  []uint32
	c    *choice
}

func (x *content) Tokens(from, to int) uint64 {
	h := x.salt
	for i := from; i < to; i++ {
		var id uint32
		if i < len(x.ids) {
			id = x.ids[i]
		} else {
			id = x.c.answerID(i - len(x.ids))
		}
		h = twin.Mix(h ^ uint64(id))
	}
	return h
}

// textPrompt is a prompt of text. The overhead of a chat's template stands
// before it, but for what would end a message: that comes after it, where the
// answer begins, so that the next turn's prompt begins with this one's and its
// answer.
func (s *Server) textPrompt(text []byte, overhead int) prompt {
	if s.cfg.Tokenize == nil {
		return prompt{tokens: s.cfg.Count(text) + overhead, text: text}
	}
	ids := make([]uint64, 0, len(text)/5+overhead+1)
	token := func(b []byte) { ids = append(ids, tokenID(b)) }
	s.cfg.Tokenize([]byte("\n"), token)
	end := slices.Clone(ids)
	if len(end) > overhead {
		end = nil
	}
	ids = ids[:0]
	for i := range overhead - len(end) {
		ids = append(ids, uint64(i))
	}
	s.cfg.Tokenize(text, token)
	ids = append(ids, end...)
	return prompt{tokens: len(ids), ids: s.shared(ids), text: text, given: ids}
}

// idPrompt is a prompt of token ids.
func (s *Server) idPrompt(ids []uint64) prompt {
	return prompt{tokens: len(ids), ids: s.shared(ids), given: ids}
}

// shared keeps ids for an engine that may have a prefix cache.
func (s *Server) shared(ids []uint64) []uint32 {
	if !s.caching {
		return nil
	}
	folded := make([]uint32, len(ids))
	for i, id := range ids {
		folded[i] = fold(id)
	}
	return folded
}

// lexicon remembers the long tokens that /tokenize gave an id, for
// /detokenize.
type lexicon struct {
	mu   sync.Mutex
	text map[uint64]string
}

// maxLexicon bounds what clients can make the server remember.
const maxLexicon = 1 << 16

func (l *lexicon) learn(id uint64, b []byte) {
	if id>>idBits != 7 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text == nil {
		l.text = make(map[uint64]string)
	}
	if len(l.text) < maxLexicon {
		l.text[id] = string(b)
	}
}

// appendText appends the text of a token; nothing for an unknown one.
func (l *lexicon) appendText(b []byte, id uint64) []byte {
	n := int(id >> idBits)
	if n == 7 {
		l.mu.Lock()
		defer l.mu.Unlock()
		return append(b, l.text[id]...)
	}
	if n > idBytes {
		return b
	}
	for i := range n {
		b = append(b, byte(id>>(8*i)))
	}
	return b
}

// tokenized is the answer of /tokenize.
type tokenized struct {
	Count       int      `json:"count"`
	MaxModelLen int      `json:"max_model_len"`
	Tokens      []uint64 `json:"tokens"`
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
		text, overhead = b.chatText(messages), s.cfg.PromptOverhead
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
	p := s.textPrompt(text, overhead)
	t.Count, t.Tokens = p.tokens, p.given
	if t.Tokens == nil { // only their number is known
		t.Tokens = make([]uint64, t.Count)
		for i := range t.Tokens {
			t.Tokens[i] = uint64(i)
		}
	}
	if s.cfg.Tokenize != nil {
		s.cfg.Tokenize(text, func(b []byte) { s.lexicon.learn(tokenID(b), b) })
	}
	if strs {
		t.TokenStrs = make([]string, len(t.Tokens))
		for i, id := range t.Tokens {
			t.TokenStrs[i] = string(s.lexicon.appendText(nil, id))
		}
	}
	return ok(t)
}

func (s *Server) detokenize(raw []byte) reply {
	b, refused := readBody(raw)
	if refused != nil {
		return *refused
	}
	var ids []uint64
	if !b.has("tokens") {
		b.missing("tokens")
	} else if err := json.Unmarshal(b.m["tokens"], &ids); err != nil {
		b.add("int_parsing", "body.tokens", "Input should be a list of token ids", b.m["tokens"])
	}
	if refused := b.refused(); refused != nil {
		return *refused
	}
	var text []byte
	for _, id := range ids {
		text = s.lexicon.appendText(text, id)
	}
	return ok(map[string]string{"prompt": string(text)})
}
