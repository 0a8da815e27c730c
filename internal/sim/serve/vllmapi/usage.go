package vllmapi

import (
	"fmt"
	"strconv"

	"pitot/internal/sim/serve/dialect"
)

// Usage implements [dialect.Writer]: the event that has nothing but the usage.
func (w *writer) Usage(b []byte, n dialect.Counts) []byte {
	if !w.usage {
		return b
	}
	b = appendCounts(dialect.Append(b, "data: ", w.base, "]"), w.prompt, n.Output)
	if w.details {
		b = dialect.AppendInt(b, `,"prompt_tokens_details":{"cached_tokens":`, n.Cached)
		if w.chat {
			b = dialect.AppendInt(b, `,"created_cache_tokens":`, n.Stored)
		}
		b = append(b, '}')
	}
	if w.reasons && w.chat {
		reasoning := 0
		for i := range w.choices {
			reasoning += min(w.choices[i].sent, w.plan.Reasoning)
		}
		b = w.appendReasoning(b, reasoning)
	}
	return append(b, "}"+fingerprint+"}\n\n"...)
}

// appendReasoning appends how many tokens were reasoning, or null where that is not told.
func (w *writer) appendReasoning(b []byte, tokens int) []byte {
	if !w.reasons || !w.chat {
		return append(b, `,"completion_tokens_details":null`...)
	}
	return append(dialect.AppendInt(b, `,"completion_tokens_details":{"reasoning_tokens":`, tokens), '}')
}

// countUsage appends the usage that goes with an event.
func (w *writer) countUsage(b []byte, prompt, output, reasoning int) []byte {
	b = appendCounts(b, prompt, output)
	if w.chat {
		b = w.appendReasoning(b, reasoning)
	}
	return append(b, '}')
}

// wholeUsage appends the usage of an answer that is not streamed.
func (w *writer) wholeUsage(b []byte, n dialect.Counts, reasoning int) []byte {
	details, stored := "null", "null"
	if w.chat {
		stored = strconv.Itoa(n.Stored)
	}
	if w.details {
		details = fmt.Sprintf(`{"cached_tokens":%d,"created_cache_tokens":%s,"multimodal_tokens":null}`, n.Cached, stored)
	}
	b = dialect.Append(appendCounts(b, w.prompt, n.Output), `,"prompt_tokens_details":`, details)
	return append(w.appendReasoning(b, reasoning), '}')
}

// appendCounts appends the counts that every usage begins with, and leaves the
// object open.
func appendCounts(b []byte, prompt, output int) []byte {
	b = dialect.AppendInt(b, `,"usage":{"prompt_tokens":`, prompt)
	b = dialect.AppendInt(b, `,"total_tokens":`, prompt+output)
	return dialect.AppendInt(b, `,"completion_tokens":`, output)
}
