package vllmapi

import (
	"fmt"

	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/lm"
)

// Whole implements [dialect.Writer].
func (w *writer) Whole(b []byte, parts []dialect.Part, n dialect.Counts) []byte {
	b = append(b, w.base...)
	reasoning := 0
	for i, p := range parts {
		if i > 0 {
			b = append(b, ',')
		}
		b = w.wholeChoice(b, &w.choices[i], p)
		reasoning += min(p.Tokens, w.plan.Reasoning)
	}
	b = w.wholeUsage(append(b, `],"service_tier":null`+fingerprint...), n, reasoning)
	if w.chat {
		c := &w.choices[0]
		b = w.appendPromptLogprobs(append(b, `,"prompt_logprobs":`...), c)
		b = dialect.Append(b, `,"prompt_token_ids":`, w.promptIDs(c, w.tokenIDs), `,"prompt_text":null`)
	}
	return append(b, `,"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}`...)
}

// wholeChoice appends one choice.
func (w *writer) wholeChoice(b []byte, c *choice, p dialect.Part) []byte {
	b = dialect.AppendInt(b, `{"index":`, c.index)
	if w.chat {
		b = w.appendMessage(dialect.Append(b, `,"message":{"role":`, nameJSON(w.role), ","), c, p.Tokens)
	} else {
		b = append(w.completionText(append(b, `,"text":"`...), c, 0, p.Tokens, true), '"')
	}
	if w.parsed {
		w.parsing.whole.count(w.plan.Call != nil && p.Tokens >= w.plan.Call.Tokens())
	}
	b = w.appendLogprobs(append(b, `,"logprobs":`...), c, 0, p.Tokens)
	b = dialect.Append(b, `,"finish_reason":`, nameJSON(w.finishReason(p.Finish)), `,"stop_reason":`, c.stopJSON(p.Finish), `,"token_ids":`)
	b = w.answerIDs(b, c, 0, p.Tokens)
	if !w.chat {
		b = w.appendPromptLogprobs(append(b, `,"prompt_logprobs":`...), c)
		b = dialect.Append(b, `,"prompt_token_ids":`, w.promptIDs(c, w.tokenIDs))
	}
	return append(b, `,"routed_experts":null}`...)
}

// appendMessage appends the fields of a whole chat answer behind its role.
func (w *writer) appendMessage(b []byte, c *choice, tokens int) []byte {
	const rest = `,"refusal":null,"annotations":null,"audio":null,"function_call":null`
	call, reasoning := w.plan.Call, w.plan.Reasoning
	b = dialect.Append(b, `"content":"`, c.echo)
	switch {
	case call != nil && tokens >= call.Tokens():
		b = fmt.Appendf(b, `"`+rest+`,"tool_calls":[{"id":"%s","type":"function","function":{"name":%s,"arguments":%s}}],"reasoning":null`,
			c.callID(), dialect.Marshal(call.Name), dialect.Marshal(call.Args))
	case call != nil: // cut off: what there is of it
		b = append(lm.AppendQuoted(b, call.TextOf(tokens)), `"`+rest+`,"reasoning":null`...)
	case reasoning > 0:
		b = append(c.Append(b, min(reasoning+1, tokens), tokens, true), `"`+rest+`,"reasoning":`...)
		if w.hideReasoning {
			b = append(b, "null"...)
		} else {
			b = append(c.Append(append(b, '"'), 0, min(reasoning, tokens), true), '"')
		}
	default:
		b = append(c.Append(b, 0, tokens, true), `"`+rest+`,"reasoning":null`...)
	}
	return append(b, '}')
}
