package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/results/result"
	"pitot/internal/workload"
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
		dst = appendJSON(dst, m.Role)
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

// appendPrompt writes the texts of all messages as one.
func appendPrompt(dst []byte, r *workload.Request, o Options) []byte {
	dst = append(dst, '"')
	at := len(dst)
	dst = r.AppendPrompt(dst, o.Vocab)
	if slices.ContainsFunc(r.Messages, func(m workload.Message) bool { return needsEscape(m.Segments) }) {
		dst = appendEscaped(dst[:at], string(dst[at:]))
	}
	return append(dst, '"')
}

// TakesIDs says whether an API takes a prompt of token ids.
func TakesIDs(a API) bool { return a == Completions || a == SGLang }

// appendIDs writes the prompt as token ids: those of its text where there is something to make
// them with, else some for its generated words.
func appendIDs(dst []byte, r *workload.Request, o Options) ([]byte, error) {
	dst = append(dst, '[')
	from := len(dst)
	if o.Encode != nil {
		ids, err := o.Encode(nil, r.AppendPrompt(nil, o.Vocab))
		if err != nil {
			return nil, fmt.Errorf("make token ids of a prompt: %w", err)
		}
		for i, id := range ids {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendUint(dst, uint64(id), 10)
		}
		return append(dst, ']'), nil
	}
	for _, m := range r.Messages {
		for _, s := range m.Segments {
			if s.Words == 0 {
				return nil, errors.New("a prompt of token ids has no text")
			}
			if len(dst) > from {
				dst = append(dst, ',')
			}
			dst = o.Vocab.AppendIDs(dst, s.Seed, s.Words)
		}
	}
	return append(dst, ']'), nil
}

// concedeSampling leaves out what a server has refused of how tokens are chosen.
func concedeSampling(low string, o *Options) (none result.Adaptation) {
	switch {
	case !o.NoTemperature && strings.Contains(low, "temperature"):
		o.NoTemperature = true
		return result.Adaptation{Kind: result.NoTemperature}
	case (o.IgnoreEOS || o.MinTokens) && (strings.Contains(low, "ignore_eos") || strings.Contains(low, "min_tokens")):
		o.IgnoreEOS, o.MinTokens = false, false
		return result.Adaptation{Kind: result.NoIgnoreEOS}
	}
	return none
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

// mergeJSON lays objects over one another, each a JSON Merge Patch (RFC 7396):
// objects in them are merged too, null takes a field away, and all else, lists too,
// replaces what was there.
func mergeJSON(base []byte, over ...[]byte) ([]byte, error) {
	for _, patch := range over {
		if patch == nil {
			continue
		}
		if !isObject(patch) {
			return nil, errors.New("merge body: what is laid over it is not an object")
		}
		merged, err := mergePatch(base, patch)
		if err != nil {
			return nil, fmt.Errorf("merge body: %w", err)
		}
		base = merged
	}
	return base, nil
}

// mergePatch is the function of that name of RFC 7396, section 2.
func mergePatch(target, patch json.RawMessage) (json.RawMessage, error) {
	if !isObject(patch) {
		return patch, nil
	}
	var fields, changes map[string]json.RawMessage
	if err := json.Unmarshal(patch, &changes); err != nil {
		return nil, err
	}
	if isObject(target) {
		if err := json.Unmarshal(target, &fields); err != nil {
			return nil, err
		}
	} else {
		fields = map[string]json.RawMessage{}
	}
	for name, change := range changes {
		if string(change) == "null" {
			delete(fields, name)
			continue
		}
		merged, err := mergePatch(fields[name], change)
		if err != nil {
			return nil, err
		}
		fields[name] = merged
	}
	return json.Marshal(fields)
}

func isObject(value []byte) bool {
	value = bytes.TrimLeft(value, " \t\r\n")
	return len(value) > 0 && value[0] == '{'
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

// appendJSON writes a string.
func appendJSON(dst []byte, text string) []byte {
	return append(appendEscaped(append(dst, '"'), text), '"')
}

// appendModel begins a body with the model.
func appendModel(dst []byte, o Options) []byte {
	return appendJSON(append(dst, `{"model":`...), o.Model)
}

func appendIf(dst []byte, wanted bool, text string) []byte {
	if !wanted {
		return dst
	}
	return append(dst, text...)
}

// appendNumber writes a number behind its name.
func appendNumber(dst []byte, name string, n int) []byte {
	return strconv.AppendInt(append(dst, name...), int64(n), 10)
}

// overlay is the objects that are laid over a body, one over the other.
type overlay [][]byte

// overlays are those of a request, or the objects in them under a name.
func overlays(r *workload.Request, o Options, within string) overlay {
	list := overlay{r.Body, o.Body}
	for i, object := range list {
		if within != "" {
			list[i] = innerObject(object, within)
		}
	}
	return list
}

// number is a number of the body as it is sent: what is laid over it under one of the names
// rules, n where there is none; null takes it away.
func (l overlay) number(n int64, names ...string) int64 {
	n = max(n, 0)
	for _, object := range l {
		var over map[string]json.RawMessage
		if object == nil || json.Unmarshal(object, &over) != nil {
			continue
		}
		for _, name := range names {
			raw, there := over[name]
			if !there {
				continue
			}
			k := int32(Impossible)
			s := scanner{b: raw}
			switch {
			case s.null():
				n = 0
			case s.countNumber(&k) && k >= 0:
				n = int64(k)
			}
		}
	}
	return n
}

// finishReason returns a finish reason, "" for a word that says that there is none. It
// allocates nothing for the usual ones.
func finishReason(raw []byte) string {
	switch string(raw) {
	case "", "null", "none", "not_finished": // DashScope and TensorRT-LLM name what others leave out
		return ""
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
