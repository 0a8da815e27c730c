package vllmapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/lm"
)

// parsePrompts reads the forms that a completion's prompt has: a string, token
// ids, or a list of either. What it refuses is an id beyond the vocabulary.
func (a *api) parsePrompts(b *body) ([]lm.Prompt, *dialect.Reply) {
	raw := b.m["prompt"]
	var list []json.RawMessage
	if one, ok := b.stringField("prompt"); ok {
		return []lm.Prompt{a.model.TextPrompt([]byte(one), 0)}, nil
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		b.noteNeither("prompt", raw)
		return nil, nil
	}
	if ids, ok := tokenIDs(raw); ok {
		if len(ids) == 0 {
			return nil, nil
		}
		if slices.Min(ids) < 0 {
			b.noteNegativeIDs(list, ids)
			return nil, nil
		}
		p, refused := a.knownIDs(ids)
		return []lm.Prompt{p}, refused
	}
	var many []lm.Prompt
	for i, one := range list {
		var text string
		ids, ok := tokenIDs(one)
		switch {
		case one[0] == '"' && json.Unmarshal(one, &text) == nil:
			many = append(many, a.model.TextPrompt([]byte(text), 0))
		case one[0] == '[' && ok && len(ids) > 0:
			p, refused := a.knownIDs(ids)
			if refused != nil {
				return nil, refused
			}
			many = append(many, p)
		default:
			loc := fmt.Sprintf("prompt.%d", i)
			b.noteNeither(loc, one)
			return nil, nil
		}
	}
	return many, nil
}

// tokenIDs reads a list of integers; false if it is none.
func tokenIDs(raw json.RawMessage) (ids []int64, ok bool) {
	return ids, json.Unmarshal(raw, &ids) == nil && !bytes.Contains(raw, []byte("null"))
}

// noteNegativeIDs notes ids below zero, and that the list is nothing else that a
// prompt may be.
func (b *body) noteNegativeIDs(list []json.RawMessage, ids []int64) {
	loc := func(i int) string { return fmt.Sprintf("prompt.%d", i) }
	for i, id := range ids {
		if id < 0 {
			b.atLeast(loc(i), 0, list[i])
		}
	}
	for i, one := range list {
		b.noteFault("list_type", loc(i), one)
	}
	b.noteFault("string_type", "prompt", b.m["prompt"])
	for i, one := range list {
		b.noteFault("string_type", loc(i), one)
	}
}

// knownIDs is a prompt of token ids; ids that the vocabulary does not have are
// refused.
func (a *api) knownIDs(ids []int64) (lm.Prompt, *dialect.Reply) {
	for _, id := range []int64{slices.Min(ids), slices.Max(ids)} {
		if id < 0 || id >= int64(a.model.Size()) {
			return lm.Prompt{}, rejectionReply("", "Token id %d is out of vocabulary", id)
		}
	}
	known := make([]uint32, len(ids))
	for i, id := range ids {
		known[i] = uint32(id)
	}
	return a.model.IDPrompt(known), nil
}

// parseTruncation reads truncate_prompt_tokens and truncation_side. Unless asked
// otherwise vLLM keeps the last tokens.
func (b *body) parseTruncation() (t lm.Truncation) {
	const field, side = "truncate_prompt_tokens", "truncation_side"
	if b.hasField(field) {
		t.Set = true
		if t.Keep = b.intField(field, -1); t.Keep < -1 {
			b.atLeast(field, -1, b.m[field])
		}
	}
	t.Left = true
	if b.hasField(side) {
		where, _ := b.stringField(side)
		if t.Left = where == "left"; !t.Left && where != "right" {
			const words = "'left' or 'right'"
			b.complainWith("literal_error", side, "Input should be "+words, b.m[side], "'expected': "+pythonString(words))
		}
	}
	return t
}

// truncate cuts the prompts as the client asks.
func (r *reader) truncate() *dialect.Reply {
	t := &r.cut
	if t.Keep < 0 {
		t.Keep = r.api.MaxModelLen - 1 // room for a token of the answer
	}
	for i := range r.prompts {
		r.prompts[i].Truncate(*t)
	}
	return nil
}

// checkTextLength refuses a text that is too long however few tokens it has: the
// real server does not take such a one apart.
func (r *reader) checkTextLength(text []byte) *dialect.Reply {
	n, longest := utf8.RuneCount(text), r.api.MaxModelLen
	most := longest * r.api.model.LongestToken()
	if r.cut.Set || most == 0 || n <= most {
		return nil
	}
	return parameterReply("input_text", n,
		"This model's maximum context length is %d tokens. However, your prompt contains %d characters (more than %d characters, "+
			"which is the upper bound for %d input tokens). Please reduce the length of the input prompt.", longest, n, most, longest)
}

// refuseSuffix refuses what only models that fill in the middle take.
func (r *reader) refuseSuffix() *dialect.Reply {
	switch {
	case r.chat || !r.hasField("suffix"):
		return nil
	case isEmptyList(r.m["prompt"]):
		return rejectionReply("", "You must pass at least one prompt")
	case r.unknownID != nil || r.prompts[0].Text == nil:
		return rejectionReply("suffix", "suffix requires text prompt input for FIM completion rendering")
	}
	return rejectionReply("suffix", "suffix is only supported for models with FIM completion rendering")
}

// checkContext refuses prompts that leave no room. Of a text the real server looks at
// no more than would fit, so it does not know how much too long it is.
func (r *reader) checkContext() *dialect.Reply {
	longest := r.api.MaxModelLen
	for _, p := range r.prompts {
		r.prompt += p.Tokens
		if p.Tokens <= longest {
			continue
		}
		contains, n := "", p.Tokens
		if p.Text != nil {
			contains, n = "at least ", longest+1
		}
		return parameterReply("input_tokens", n,
			"This model's maximum context length is %d tokens. However, your prompt contains %s%d input tokens, "+
				"which exceeds this limit even without any output tokens. Please reduce the length of the input prompt.",
			longest, contains, n)
	}
	return nil
}
