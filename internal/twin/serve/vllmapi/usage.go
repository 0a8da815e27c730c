package vllmapi

import "pitot/internal/twin/serve/dialect"

// Usage implements [dialect.Writer]: the event that has nothing but the usage.
func (w *writer) Usage(b []byte, n dialect.Counts) []byte {
	if !w.usage {
		return b
	}
	b = append(append(b, "data: "...), w.base...)
	b = appendCounts(append(b, ']'), w.prompt, n.Output)
	if w.details {
		b = appendInt(b, `,"prompt_tokens_details":{"cached_tokens":`, n.Cached)
		if w.chat {
			b = appendInt(b, `,"created_cache_tokens":`, n.Stored)
		}
		b = append(b, '}')
	}
	if w.reasons && w.chat {
		reasoning := 0
		for i := range w.choices {
			reasoning += min(w.choices[i].sent, w.plan.Reasoning)
		}
		b = append(appendInt(b, `,"completion_tokens_details":{"reasoning_tokens":`, reasoning), '}')
	}
	return append(append(append(b, '}'), fingerprint...), "}\n\n"...)
}

// countUsage appends the usage that goes with an event.
func (w *writer) countUsage(b []byte, prompt, output, reasoning int) []byte {
	b = appendCounts(b, prompt, output)
	switch {
	case !w.chat:
	case w.reasons:
		b = append(appendInt(b, `,"completion_tokens_details":{"reasoning_tokens":`, reasoning), '}')
	default:
		b = append(b, `,"completion_tokens_details":null`...)
	}
	return append(b, '}')
}

// wholeUsage appends the usage of an answer that is not streamed.
func (w *writer) wholeUsage(b []byte, n dialect.Counts, reasoning int) []byte {
	b = appendCounts(b, w.prompt, n.Output)
	b = append(b, `,"prompt_tokens_details":`...)
	switch {
	case !w.details:
		b = append(b, "null"...)
	case w.chat:
		b = appendInt(appendInt(b, `{"cached_tokens":`, n.Cached), `,"created_cache_tokens":`, n.Stored)
		b = append(b, `,"multimodal_tokens":null}`...)
	default:
		b = appendInt(b, `{"cached_tokens":`, n.Cached)
		b = append(b, `,"created_cache_tokens":null,"multimodal_tokens":null}`...)
	}
	if w.reasons && w.chat {
		return append(appendInt(b, `,"completion_tokens_details":{"reasoning_tokens":`, reasoning), "}}"...)
	}
	return append(b, `,"completion_tokens_details":null}`...)
}

// appendCounts appends the counts that every usage begins with, and leaves the
// object open.
func appendCounts(b []byte, prompt, output int) []byte {
	b = appendInt(b, `,"usage":{"prompt_tokens":`, prompt)
	b = appendInt(b, `,"total_tokens":`, prompt+output)
	return appendInt(b, `,"completion_tokens":`, output)
}
