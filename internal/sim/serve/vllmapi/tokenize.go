package vllmapi

import (
	"encoding/json"
	"net/http"
	"strconv"

	"pitot/internal/sim/serve/dialect"
)

// tokenized is the answer of /tokenize.
type tokenized struct {
	Count       int      `json:"count"`
	MaxModelLen int      `json:"max_model_len"`
	Tokens      []uint32 `json:"tokens"`
	TokenStrs   []string `json:"token_strs"`
}

func (a *api) tokenize(r *dialect.Request) dialect.Reply {
	b, refused := readBody(r)
	if refused != nil {
		return *refused
	}
	t := tokenized{MaxModelLen: a.MaxModelLen}
	names := b.boolField("return_token_strs")
	var text []byte
	template := 0
	switch messages, chat := b.m["messages"]; {
	case chat:
		text, template = b.parseConversation(messages).text, a.model.TemplateTokens()
	case b.hasField("prompt"):
		one, ok := b.stringField("prompt")
		if !ok {
			b.noteFault("string_type", "prompt", b.m["prompt"])
			b.noteMissing("messages")
		}
		text = []byte(one)
	default:
		b.noteMissing("prompt")
		b.noteMissing("messages")
	}
	if refused := b.faultReply(); refused != nil {
		return *refused
	}
	t.Tokens = a.model.Encode(text, template)
	t.Count = len(t.Tokens)
	if names {
		t.TokenStrs = make([]string, len(t.Tokens))
		for i, id := range t.Tokens {
			t.TokenStrs[i] = a.model.TokenName(id)
		}
	}
	return dialect.JSON(http.StatusOK, t)
}

func (a *api) answerDetokenize(r *dialect.Request) dialect.Reply {
	b, refused := readBody(r)
	if refused != nil {
		return *refused
	}
	var ids []int64
	if !b.hasField("tokens") {
		b.noteMissing("tokens")
	} else {
		ids = b.idsField("tokens")
	}
	for i, id := range ids {
		if id < 0 {
			b.atLeast("tokens."+strconv.Itoa(i), 0, json.RawMessage(strconv.FormatInt(id, 10)))
		}
	}
	if refused := b.faultReply(); refused != nil {
		return *refused
	}
	var text []byte
	for _, id := range ids {
		if id < int64(a.model.Size()) { // there is none beyond
			text = a.model.Decode(text, uint32(id))
		}
	}
	return dialect.JSON(http.StatusOK, map[string]string{"prompt": string(text)})
}
