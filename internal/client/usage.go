package client

import (
	"fmt"
	"slices"

	"pitot/internal/client/api"
	"pitot/internal/results/record"
)

// A server's usage is checked for plausibility. A count is left out of the row, whose
// detail says so, if it is not a number of tokens, comes after the end of the response, is
// zero where there was text, shrinks, or exceeds both the tokens requested and the bytes of
// the text.

// freeTokens are allowed on top where the length was left to the server: some models
// write tokens that are neither shown nor counted as reasoning.
const freeTokens = 1024

// kinds is the number of kinds of text that one event may have for a choice.
const kinds = 4

// takeUsage takes the server's counts as an event has them. Counts of a stream only grow: some
// gateways send zeros after the right ones, so the largest is kept.
func (x *Exchange) takeUsage(u *api.Usage) {
	r := &x.Row
	r.PromptTokens = x.largestCount("prompt", r.PromptTokens, u.Prompt, &x.latest.Prompt)
	r.CompletionTokens = x.largestCount("completion", r.CompletionTokens, u.Completion, &x.latest.Completion)
	r.ReasoningTokens = x.largestCount("reasoning", r.ReasoningTokens, u.Reasoning, &x.latest.Reasoning)
	if u.Cached >= 0 {
		r.CachedTokens = u.Cached
	} else if u.Cached == api.Impossible {
		x.ignoreUsage("its cached tokens are no count")
	}
}

// largestCount returns the larger of the count so far and a new one, which it also stores as
// the latest. Unset changes nothing; a number that counts nothing is noted.
func (x *Exchange) largestCount(what string, old, now int32, latest *int32) int32 {
	switch {
	case now == api.Impossible:
		x.ignoreUsage("its " + what + " tokens are no count")
		return old
	case now < 0:
		return old
	}
	*latest = now
	return max(old, now)
}

// ignoreUsage notes why a usage is ignored; the first reason is kept.
func (x *Exchange) ignoreUsage(why string) {
	if x.doubt == "" {
		x.doubt = why
	}
}

// checkUsage drops impossible counts once the answer is complete.
func (x *Exchange) checkUsage() {
	r := &x.Row
	x.checkShrunk("prompt", x.latest.Prompt, r.PromptTokens)
	x.checkShrunk("completion", x.latest.Completion, r.CompletionTokens)
	if r.PromptTokens == 0 {
		x.ignoreUsage("0 prompt tokens, where a prompt was sent")
		r.PromptTokens, r.CachedTokens = record.Unset, record.Unset
	}
	if r.CompletionTokens == 0 && r.TextBytes > 0 && !x.pooling {
		x.ignoreUsage(fmt.Sprintf("0 completion tokens, where %d bytes of text came", r.TextBytes))
		r.CompletionTokens, r.ReasoningTokens = record.Unset, record.Unset
	}
	if r.CachedTokens > r.PromptTokens && r.PromptTokens >= 0 {
		x.ignoreUsage(fmt.Sprintf("%d tokens cached of a prompt of %d", r.CachedTokens, r.PromptTokens))
		r.CachedTokens = record.Unset
	}
	if r.ReasoningTokens > r.CompletionTokens && r.CompletionTokens >= 0 {
		x.ignoreUsage(fmt.Sprintf("%d reasoning tokens of %d", r.ReasoningTokens, r.CompletionTokens))
		r.ReasoningTokens = record.Unset
	}
	tokens := int64(r.CompletionTokens)
	if x.bounds.tokens == 0 && r.ReasoningTokens <= unlimited { // reasoning that is not shown has no bytes
		tokens -= int64(max(r.ReasoningTokens, 0)) + freeTokens
	}
	if x.bounds.isBelievable(tokens, r.TextBytes) {
		return
	}
	asked := ""
	if x.bounds.tokens > 0 {
		asked = fmt.Sprintf("%d tokens were requested and ", x.bounds.tokens)
	}
	x.ignoreUsage(fmt.Sprintf("%d completion tokens, where %s%d bytes of text came", r.CompletionTokens, asked, r.TextBytes))
	r.CompletionTokens, r.ReasoningTokens = record.Unset, record.Unset
}

// checkShrunk notes that the last count of a stream is below an earlier one, which is kept.
func (x *Exchange) checkShrunk(what string, latest, kept int32) {
	if latest >= 0 && latest < kept {
		x.ignoreUsage(fmt.Sprintf("its %s tokens went from %d back to %d", what, kept, latest))
	}
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
	if x.bounds.isBelievable(sum, x.Row.TextBytes) {
		x.visible = sum
		return
	}
	x.ignoreUsage(fmt.Sprintf("%d tokens in the events so far, whose text has %d bytes", sum, x.Row.TextBytes))
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
		if slices.Contains(x.others, choice) {
			return false
		}
		x.others = append(x.others, choice)
	}
	x.Row.Choices++
	return int64(x.Row.Choices) > x.bounds.choices
}
