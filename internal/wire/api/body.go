package api

import (
	"encoding/json"
	"fmt"
	"pitot/internal/workload"
	"slices"
)

// What the bodies of several APIs have in common.

// appendMessages writes a conversation: a list of roles and contents.
func appendMessages(dst []byte, r *workload.Request, o Options) []byte {
	dst = append(dst, '[')
	for i, m := range r.Messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"role":`...)
		dst = appendJSON(dst, []byte(m.Role))
		dst = append(dst, `,"content":"`...)
		at := len(dst)
		dst = m.Append(dst, o.Vocab)
		if needsEscape(m.Segments) {
			dst = appendEscaped(dst[:at], string(dst[at:]))
		}
		dst = append(dst, '"', '}')
	}
	return append(dst, ']')
}

// withExtras lays what the workload and then the user add over the body that begins
// at start.
func withExtras(dst []byte, start int, r *workload.Request, o Options) ([]byte, error) {
	if o.Body == nil && r.Body == nil {
		return dst, nil
	}
	merged, err := mergeJSON(dst[start:], r.Body, o.Body)
	if err != nil {
		return nil, err
	}
	return append(dst[:start], merged...), nil
}

// mergeJSON lays objects over one another, key by key; null takes a key away.
func mergeJSON(base []byte, over ...[]byte) ([]byte, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(base, &all); err != nil {
		return nil, fmt.Errorf("merge body: %w", err)
	}
	for _, o := range over {
		if o == nil {
			continue
		}
		var m map[string]json.RawMessage
		if err := json.Unmarshal(o, &m); err != nil {
			return nil, fmt.Errorf("merge body: %w", err)
		}
		for k, v := range m {
			if string(v) == "null" {
				delete(all, k)
			} else {
				all[k] = v
			}
		}
	}
	return json.Marshal(all)
}

// needsEscape says whether text needs escaping: generated words are plain letters.
func needsEscape(segments []workload.Segment) bool {
	return slices.ContainsFunc(segments, func(s workload.Segment) bool { return s.Words == 0 })
}

func appendEscaped(dst []byte, text string) []byte {
	q, err := json.Marshal(text)
	if err != nil { // cannot be: strings always marshal
		return dst
	}
	return append(dst, q[1:len(q)-1]...)
}

func appendJSON(dst, text []byte) []byte {
	dst = append(dst, '"')
	dst = appendEscaped(dst, string(text))
	return append(dst, '"')
}

// finishReason gives a finish reason without an allocation for the usual ones.
func finishReason(raw []byte) string {
	switch string(raw) {
	case "stop":
		return "stop"
	case "length":
		return "length"
	case "tool_calls":
		return "tool_calls"
	case "content_filter":
		return "content_filter"
	}
	return unquote(raw[:min(len(raw), 4096)])
}
