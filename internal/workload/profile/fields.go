package profile

import (
	"bytes"
	"encoding/json"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitot/internal/workload/field"
)

// record is a JSON object of a log: what it says under each key, its own and those of the
// objects in it that hold a request or an answer.
type record []map[string]json.RawMessage

// within are the keys of objects that say more of the same request.
var within = strings.Fields(`
	request response body usage metadata standard_logging_object kwargs model_parameters
	hidden_params attributes obj out meta_info response_obj sampling_params timings timing
	user_api_key_metadata extra fields data log`)

// deepest is the depth of objects within objects that are read.
const deepest = 5

func recordOf(raw []byte) (record, bool) {
	var top map[string]json.RawMessage
	if json.Unmarshal(raw, &top) != nil || top == nil {
		return nil, false
	}
	r := record{normalizeKeys(top)}
	from := 0
	for range deepest {
		to := len(r)
		for _, m := range r[from:to] {
			for _, key := range within {
				v := bytes.TrimSpace(m[key])
				if len(v) == 0 {
					continue
				}
				if v[0] == '"' { // an object in a string
					var text string
					if json.Unmarshal(v, &text) != nil || !strings.HasPrefix(strings.TrimSpace(text), "{") {
						continue
					}
					v = []byte(text)
				}
				var inner map[string]json.RawMessage
				if v[0] == '{' && json.Unmarshal(v, &inner) == nil {
					r = append(r, normalizeKeys(inner))
				}
			}
		}
		from = to
	}
	return r, true
}

// normalizeKeys has the values of an object under their keys as [field.NormalizeName] gives them,
// too.
func normalizeKeys(m map[string]json.RawMessage) map[string]json.RawMessage {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if name := field.NormalizeName(key); m[name] == nil {
			m[name] = m[key]
		}
	}
	return m
}

// valuesAt goes through the values under keys, in the order of the keys.
func (r record) valuesAt(keys []string) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		for _, key := range keys {
			for _, m := range r {
				if v := m[key]; v != nil && string(v) != "null" && !yield(v) {
					return
				}
			}
		}
	}
}

// valueAt is the first value under one of the keys, in their order.
func (r record) valueAt(keys ...string) json.RawMessage {
	for v := range r.valuesAt(keys) {
		return v
	}
	return nil
}

// textAt is a value as text: a string as it is, a number as it is written.
func (r record) textAt(keys ...string) string {
	for v := range r.valuesAt(keys) {
		if s := plainText(v); s != "" {
			return s
		}
	}
	return ""
}

func plainText(v json.RawMessage) string {
	if len(v) == 0 || string(v) == "null" {
		return ""
	}
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(v, &n) == nil {
		return n.String()
	}
	return ""
}

// numberAt is the first number under one of the keys; NaN where there is none.
func (r record) numberAt(keys ...string) float64 {
	for v := range r.valuesAt(keys) {
		x, err := strconv.ParseFloat(strings.TrimSpace(plainText(v)), 64)
		if err == nil && !math.IsInf(x, 0) {
			return x
		}
	}
	return math.NaN()
}

// Keys of what a request can say, the most exact first, besides those of [field].
var (
	startKeys   = field.KnownNames(field.Time)
	endKeys     = field.KnownNames(field.End)
	firstKeys   = field.KnownNames(field.First)
	inputKeys   = field.KnownNames(field.Input)
	outputKeys  = field.KnownNames(field.Output)
	clientKeys  = field.KnownNames(field.Client)
	sessionKeys = field.KnownNames(field.Session)
	modelKeys   = strings.Fields("model_group gen_ai.request.model gen_ai.response.model model model_name llm.request.model")
	routeKeys   = strings.Fields("call_type gen_ai.operation.name endpoint path url route uri")
	finishKeys  = strings.Fields("finish_reason stop_reason gen_ai.response.finish_reasons finishReason")
	promptKeys  = strings.Fields("messages gen_ai.input.messages input_messages gen_ai.prompt prompt input text input_ids prompt_token_ids")
	statusKeys  = strings.Fields("status_code http_status http.response.status_code response_status")

	firstMillis  = strings.Fields("ttft_ms time_to_first_token_ms first_token_ms")
	firstSeconds = strings.Fields(`ttft time_to_first_token gen_ai.response.time_to_first_chunk
		gen_ai.latency.time_to_first_token first_token_latency`)
	wholeMillis  = strings.Fields("latency_ms duration_ms response_ms elapsed_ms total_ms e2e_ms")
	wholeSeconds = strings.Fields(`e2e_latency latency duration elapsed response_time request_duration
		duration_s latency_s gen_ai.latency.e2e`)

	// What tells LiteLLM's records and spans of OpenTelemetry.
	litellmKeys = strings.Fields("standard_logging_object model_group litellm_call_id call_type")
	spanKeys    = strings.Fields("gen_ai.request.model gen_ai.system gen_ai.provider.name gen_ai.operation.name")
)

// addLine takes one value of a log in.
func (l *Log) addLine(number int, raw []byte, hand func(*Request)) {
	r, ok := recordOf(raw)
	if !ok {
		l.reject(number, "no JSON object")
		return
	}
	if spans, ok := otlpSpans(r[0]); ok {
		l.Format = "otel"
		for _, s := range spans {
			l.addRecord(number, s, hand)
		}
		return
	}
	l.addRecord(number, r, hand)
}

func (l *Log) addRecord(number int, r record, hand func(*Request)) {
	if l.Format == "" {
		l.Format = formOf(r)
	}
	if event := r.textAt("event"); event == "request.received" { // SGLang's: its end says all of it
		return
	}
	if list := r.valueAt("attributes"); len(list) > 0 && list[0] == '[' {
		r = append(r, otlpAttributes(list))
	}
	q := newRequest(unknown)
	ok := false
	if v := r.valueAt(startKeys...); v != nil {
		if q.At, ok = stampOf(v); !ok {
			l.reject(number, "a time that is not known")
			return
		}
	}
	if at, ok := stampOf(r.valueAt(endKeys...)); ok {
		q.End = at
	}
	if d := r.duration(); q.End == unknown && q.At != unknown && d >= 0 {
		q.End = q.At + d
		if r.textAt("event") == "request.finished" { // stamped at the end
			q.At, q.End = q.At-d, q.At
		}
	}
	if at, ok := stampOf(r.valueAt(firstKeys...)); ok && q.At != unknown && at > q.At {
		q.TTFT = at - q.At
	}
	if q.TTFT == unknown {
		if x := r.numberAt(firstMillis...); x > 0 && x < 1e9 {
			q.TTFT = int64(x * 1e6)
		} else if x := r.numberAt(firstSeconds...); x > 0 && x < 1e6 {
			q.TTFT = int64(x * 1e9)
		}
	}
	q.Input, q.Output = tokensOf(r.numberAt(inputKeys...)), tokensOf(r.numberAt(outputKeys...))
	q.Model, q.Route = r.textAt(modelKeys...), r.textAt(routeKeys...)
	q.Client, q.Session = r.textAt(clientKeys...), r.textAt(sessionKeys...)
	if q.Session == "" { // {"conversation": {"id": …}}
		var id struct{ ID string }
		if json.Unmarshal(r.valueAt("conversation", "session"), &id) == nil {
			q.Session = id.ID
		}
	}
	q.Finish = r.finishReason()
	q.Failed = r.hasFailed()
	q.Prompt = r.promptText()
	if q.Input == unknown && q.Output == unknown && q.At == unknown {
		l.reject(number, "neither a time nor lengths of a request")
		return
	}
	if l.Format == "otel" && q.Input == unknown && q.Output == unknown && r.valueAt(spanKeys...) == nil {
		l.reject(number, "a span that is no model's")
		return
	}
	hand(q)
}

// formOf names the form of a log by its first record.
func formOf(r record) string {
	switch {
	case r.valueAt(litellmKeys...) != nil:
		return "litellm"
	case r.valueAt(spanKeys...) != nil, r.valueAt("traceId", "startTimeUnixNano") != nil:
		return "otel"
	case strings.HasPrefix(r.textAt("event"), "request."):
		return "sglang"
	}
	return "openai"
}

// finishReason is why the answer ended.
func (r record) finishReason() string {
	v := r.valueAt(finishKeys...)
	if s := plainText(v); s != "" {
		return strings.Trim(s, `[]"' `)
	}
	var list []string
	if json.Unmarshal(v, &list) == nil && len(list) > 0 {
		return list[0]
	}
	var of struct{ Type string } // SGLang's
	if json.Unmarshal(v, &of) == nil && of.Type != "" {
		return of.Type
	}
	var choices []struct {
		FinishReason string `json:"finish_reason"`
	}
	if json.Unmarshal(r.valueAt("choices"), &choices) == nil && len(choices) > 0 {
		return choices[0].FinishReason
	}
	return ""
}

func (r record) hasFailed() bool {
	for _, key := range []string{"status", "outcome"} {
		switch s := strings.ToLower(r.textAt(key)); s {
		case "failure", "failed", "error", "cancelled":
			return true
		default:
			if code, err := strconv.Atoi(s); err == nil && code >= 400 {
				return true
			}
		}
	}
	if code := r.numberAt(statusKeys...); code >= 400 {
		return true
	}
	v := r.valueAt("error", "exception", "error.type")
	return len(v) > 0 && string(v) != `""` && string(v) != "{}" && string(v) != "false"
}

// duration returns the time that the request took, in ns, or -1 where the record lacks it.
func (r record) duration() int64 {
	for _, k := range []struct {
		keys []string
		ns   float64
	}{
		{wholeMillis, 1e6},
		{wholeSeconds, 1e9},
	} {
		if x := r.numberAt(k.keys...); x >= 0 && x*k.ns < 1e15 {
			return int64(x * k.ns)
		}
	}
	return -1
}

// promptText is the text that the prompt begins with, roles and all, as far as it is there.
func (r record) promptText() []byte {
	for _, key := range promptKeys {
		if v := r.valueAt(key); len(v) >= textBlock {
			return bytes.TrimRight(v, "]} \t") // what follows a history is no part of its beginning
		}
	}
	return nil
}

// Dates as logs write them.
var stampForms = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05,999999999", "02/Jan/2006:15:04:05 -0700"}

// stampOf reads a time: a date, or a number of seconds, ms, µs or ns by its size.
func stampOf(v json.RawMessage) (int64, bool) {
	return stampText(strings.TrimSpace(plainText(v)))
}

func stampText(s string) (int64, bool) {
	if x, err := strconv.ParseFloat(s, 64); err == nil {
		unit := 1e9
		switch {
		case !(x >= 0) || x >= 9e18:
			return unknown, false
		case x >= 1e17:
			if n, err := strconv.ParseInt(s, 10, 64); err == nil { // exact
				return n, true
			}
			unit = 1
		case x >= 1e14:
			unit = 1e3
		case x >= 1e11:
			unit = 1e6
		}
		whole, fraction := math.Modf(x)
		return int64(whole)*int64(unit) + int64(math.Round(fraction*unit)), true
	}
	for _, form := range stampForms {
		if t, err := time.Parse(form, s); err == nil && t.Year() >= 1970 && t.Year() < 2200 {
			return t.UnixNano(), true
		}
	}
	return unknown, false
}

// otlpSpans are the spans of an export: {"resourceSpans": [{"scopeSpans": [{"spans": […]}]}]}.
func otlpSpans(top map[string]json.RawMessage) (out []record, ok bool) {
	raw := top["resourceSpans"]
	if raw == nil {
		raw = top["resource_spans"]
	}
	if raw == nil {
		return nil, false
	}
	var resources []map[string]json.RawMessage
	_ = json.Unmarshal(raw, &resources)
	for _, res := range resources {
		for _, key := range []string{"scopeSpans", "scope_spans", "instrumentationLibrarySpans"} {
			var scopes []struct {
				Spans []map[string]json.RawMessage `json:"spans"`
			}
			_ = json.Unmarshal(res[key], &scopes)
			for _, s := range scopes {
				for _, span := range s.Spans {
					r := record{normalizeKeys(span), otlpAttributes(span["attributes"])}
					delete(span, "attributes")
					var status struct{ Code any }
					if json.Unmarshal(span["status"], &status) == nil {
						if status.Code == 2.0 || status.Code == "STATUS_CODE_ERROR" {
							span["error"] = json.RawMessage("true")
						}
						delete(span, "status")
					}
					out = append(out, r)
				}
			}
		}
	}
	return out, true
}

// otlpAttributes are those of OTLP: a list of keys with a value of some type.
func otlpAttributes(raw json.RawMessage) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	var list []struct {
		Key   string                     `json:"key"`
		Value map[string]json.RawMessage `json:"value"`
	}
	if json.Unmarshal(raw, &list) != nil {
		_ = json.Unmarshal(raw, &out)
		return normalizeKeys(out)
	}
	for _, a := range list {
		for kind, v := range a.Value {
			if kind == "arrayValue" {
				var array struct {
					Values []map[string]json.RawMessage `json:"values"`
				}
				if json.Unmarshal(v, &array) == nil && len(array.Values) > 0 {
					for _, first := range array.Values[0] {
						v = first
					}
				}
			}
			out[a.Key] = v
		}
	}
	return normalizeKeys(out)
}
