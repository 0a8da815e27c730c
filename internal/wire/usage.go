package wire

import (
	"fmt"

	"pitot/internal/data/record"
	"pitot/internal/wire/api"
)

// A server's usage is checked for plausibility: a count that is not a number of
// tokens, that comes after the end of the answer, or that exceeds both the tokens asked
// for and the bytes of the text, is left out of the row, and its detail says so.

// freeTokens are allowed on top where the length was left to the server: some models
// write tokens that are neither shown nor counted as reasoning.
const freeTokens = 1024

// kinds is how many kinds of text one event may have for a choice.
const kinds = 4

// usage takes the server's count as an event has it.
func (x *Exchange) usage(u *api.Usage) {
	if x.answered {
		x.disbelieve("it came after the end mark")
		return
	}
	r := &x.Row
	r.PromptTokens = latestCount(r.PromptTokens, u.Prompt)
	r.CachedTokens = latestCount(r.CachedTokens, u.Cached)
	r.CompletionTokens = latestCount(r.CompletionTokens, u.Completion)
	r.ReasoningTokens = latestCount(r.ReasoningTokens, u.Reasoning)
	if min(u.Prompt, u.Cached, u.Completion, u.Reasoning) == api.Impossible {
		x.dropImpossible("prompt", u.Prompt, &r.PromptTokens)
		x.dropImpossible("cached", u.Cached, &r.CachedTokens)
		x.dropImpossible("completion", u.Completion, &r.CompletionTokens)
		x.dropImpossible("reasoning", u.Reasoning, &r.ReasoningTokens)
	}
}

// latestCount is the newer of two counts, or the older where the newer is unset.
func latestCount(old, now int32) int32 {
	if now >= 0 {
		return now
	}
	return old
}

// dropImpossible unsets a count that is not a number of tokens.
func (x *Exchange) dropImpossible(what string, count int32, into *int32) {
	if count == api.Impossible {
		*into = record.Unset
		x.disbelieve("its " + what + " tokens are no count")
	}
}

// disbelieve notes why a usage is ignored; the first reason is kept.
func (x *Exchange) disbelieve(why string) {
	if x.doubt == "" {
		x.doubt = why
	}
}

// checkUsage drops impossible counts once the answer is complete.
func (x *Exchange) checkUsage() {
	r := &x.Row
	if r.CachedTokens > r.PromptTokens && r.PromptTokens >= 0 {
		x.disbelieve(fmt.Sprintf("%d tokens cached of a prompt of %d", r.CachedTokens, r.PromptTokens))
		r.CachedTokens = record.Unset
	}
	if r.ReasoningTokens > r.CompletionTokens && r.CompletionTokens >= 0 {
		x.disbelieve(fmt.Sprintf("%d reasoning tokens of %d", r.ReasoningTokens, r.CompletionTokens))
		r.ReasoningTokens = record.Unset
	}
	tokens := int64(r.CompletionTokens)
	if x.bounds.tokens == 0 && r.ReasoningTokens <= unlimited { // reasoning that is not shown has no bytes
		tokens -= int64(max(r.ReasoningTokens, 0)) + freeTokens
	}
	if x.bounds.believable(tokens, r.TextBytes) {
		return
	}
	asked := ""
	if x.bounds.tokens > 0 {
		asked = fmt.Sprintf("%d tokens were asked for and ", x.bounds.tokens)
	}
	x.disbelieve(fmt.Sprintf("%d completion tokens, where %s%d bytes of text came", r.CompletionTokens, asked, r.TextBytes))
	r.CompletionTokens, r.ReasoningTokens = record.Unset, record.Unset
}

// countTokens sets the tokens of an event's parts: by the usage that comes with every
// event, else by token ids or logprobs. Impossible counts are ignored.
func (x *Exchange) countTokens(d *api.Delta) {
	if tokens := x.tokensByUsage(d); tokens > 0 {
		d.Parts[0].Tokens = tokens
	}
	sum := x.visible
	for _, p := range d.Parts {
		sum += int64(p.Tokens)
	}
	if x.bounds.believable(sum, x.Row.TextBytes) {
		x.visible = sum
		return
	}
	x.disbelieve(fmt.Sprintf("%d tokens in the events so far, whose text has %d bytes", sum, x.Row.TextBytes))
	for i := range d.Parts {
		d.Parts[i].Tokens = 0
	}
}

// tokensByUsage gives the tokens of an event with text by the usage that comes with
// every event, 0 if the server does not send it. Tokens of events without
// text (an unfinished character, a special token) count with the text that
// follows them, reasoning that is never shown with no event at all. With
// several choices it is not known whose tokens a usage counts.
func (x *Exchange) tokensByUsage(d *api.Delta) int32 {
	for _, p := range d.Parts {
		x.reasoning = x.reasoning || p.Kind == record.Reasoning && !d.Summarised
	}
	visible := d.Usage.Completion
	if d.Usage.Reasoning > 0 && !x.reasoning {
		visible -= d.Usage.Reasoning
	}
	if x.Row.FirstToken < 0 { // usage already with the first token
		x.perEvent = visible > 0
	}
	if !x.perEvent || x.Row.Choices > 1 || visible <= x.completion {
		return 0
	}
	tokens := visible - x.completion
	x.completion = visible
	return tokens
}

// takeChoice notes the choice that a text belongs to, and says whether that
// is more choices than were asked for.
func (x *Exchange) takeChoice(choice int32) (excess bool) {
	if choice < 64 {
		bit := uint64(1) << uint(choice&63)
		if x.choices&bit != 0 {
			return false
		}
		x.choices |= bit
	} else {
		for _, c := range x.others {
			if c == choice {
				return false
			}
		}
		x.others = append(x.others, choice)
	}
	x.Row.Choices++
	return int64(x.Row.Choices) > x.bounds.choices
}
