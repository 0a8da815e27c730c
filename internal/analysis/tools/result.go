// Package tools reads the results of other tools of the field as what those
// tools say, so that old ones can be compared with new ones: one file each. How a run is
// written in their formats is in report/export.
package tools

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/say/unreadable"
	"pitot/internal/userfile"
)

// Result holds what a file of another tool says. What it does not say is nil. Nothing is worked out
// from its other figures, and percentiles stay as that tool took them.
type Result struct {
	Tool    string          `json:"tool"` // "vllm bench serve"
	Version string          `json:"version,omitempty"`
	File    string          `json:"file"`
	Model   string          `json:"model,omitempty"`
	Dataset string          `json:"dataset,omitempty"`     // what was asked, by the tool's name for it
	Started string          `json:"started,omitempty"`     // as the tool writes it
	By      string          `json:"measured_by,omitempty"` // "pitot …" where Pitot wrote it in that tool's format
	Points  []ReportedPoint `json:"points"`
	Notes   []string        `json:"notes,omitempty"` // what a reader must know of the file
}

// ReportedPoint is one load of it. Rates are per second.
type ReportedPoint struct {
	Rate        *float64 `json:"rate"`                // requests asked for
	Unlimited   bool     `json:"unlimited,omitempty"` // all at once, or as fast as they are served
	Concurrency *float64 `json:"concurrency"`         // most at once
	Seconds     *float64 `json:"seconds"`

	Verdict result.Verdict `json:"verdict,omitempty"` // of a point that Pitot measured

	OK         *float64 `json:"ok"`
	Failed     *float64 `json:"failed"`
	Incomplete *float64 `json:"incomplete,omitempty"` // cut off by the tool itself

	RequestsPerS     *float64 `json:"requests_per_s"`
	GoodPerS         *float64 `json:"good_per_s,omitempty"`
	InputTokensPerS  *float64 `json:"input_tokens_per_s"`
	OutputTokensPerS *float64 `json:"output_tokens_per_s"`
	InputTokens      *float64 `json:"input_tokens"` // in all
	OutputTokens     *float64 `json:"output_tokens"`

	TTFT *Summary `json:"ttft_ms"`
	TPOT *Summary `json:"tpot_ms"`
	ITL  *Summary `json:"itl_ms"`
	E2E  *Summary `json:"e2e_ms"`
}

// Summary is one distribution as the tool describes it.
type Summary struct {
	What        string             `json:"what,omitempty"` // what the tool means by the name, where that is not what Pitot means
	N           *float64           `json:"n,omitempty"`
	Mean        *float64           `json:"mean"`
	SD          *float64           `json:"sd,omitempty"`
	Min         *float64           `json:"min,omitempty"`
	Max         *float64           `json:"max,omitempty"`
	Percentiles map[string]float64 `json:"percentiles,omitempty"` // "p50", "p99.9": value
}

// MeasuredBy says that Pitot measured it, and what it thinks of that: "pitot 1.0
// VALID", or "pitot 1.0 (3 VALID, 1 INVALID)" of points that differ; "" for what
// another tool measured.
func (r *Result) MeasuredBy() string {
	if r.By == "" {
		return ""
	}
	n := map[result.Verdict]int{}
	for i := range r.Points {
		n[r.Points[i].Verdict]++
	}
	var words []string
	for _, v := range []result.Verdict{result.Valid, result.ValidWithFlags, result.Invalid} {
		switch {
		case n[v] == len(r.Points) && n[v] > 0:
			return r.By + " " + string(v)
		case n[v] > 0:
			words = append(words, fmt.Sprintf("%d %s", n[v], v))
		}
	}
	if len(words) == 0 {
		return r.By
	}
	return r.By + " (" + strings.Join(words, ", ") + ")"
}

// noteMeasuredBy notes what Pitot wrote into another tool's result of who measured it. No other
// word is a verdict.
func (r *Result) noteMeasuredBy(f fields) bool {
	r.By = f.textOf("measured_by")
	if r.By == "" {
		return false
	}
	switch v := result.Verdict(f.textOf("pitot_verdict")); v {
	case result.Valid, result.ValidWithFlags, result.Invalid:
		for i := range r.Points {
			r.Points[i].Verdict = v
		}
	}
	return true
}

// P gives a percentile, nil if the tool does not tell it.
func (s *Summary) P(name string) *float64 {
	if s == nil {
		return nil
	}
	if x, ok := s.Percentiles[name]; ok {
		return &x
	}
	return nil
}

// orNil is nil for a summary that says nothing.
func (s *Summary) orNil() *Summary {
	if s.Mean == nil && len(s.Percentiles) == 0 {
		return nil
	}
	return s
}

// largest is the largest file that is read. What is decoded takes some five times as much memory.
const largest = 512 << 20

// Read reads a result file of vLLM, SGLang, AIPerf or GuideLLM: JSON, or one
// object a line. Which tool wrote it shows in its contents. Every error is a
// [say.Error].
func Read(path string) (*Result, error) {
	data, err := userfile.Read(path, largest)
	if err != nil {
		return nil, unreadable.FileError("result", path, err, hintKnown)
	}
	r, err := Parse(data)
	if err != nil {
		return nil, say.Errorf("read result %s: %v", path, err).WithHint(say.HintOf(err))
	}
	r.File = path
	return r, nil
}

const hintKnown = "results of vllm bench serve, SGLang's bench_serving, AIPerf and GuideLLM are read, as JSON"

// Parse reads what such a file holds.
func Parse(data []byte) (*Result, error) {
	objects, cut, err := objectsOf(data)
	if err != nil {
		return nil, err
	}
	var r *Result
	for i, o := range objects {
		one, err := o.readResult()
		if err != nil {
			return nil, err
		}
		switch {
		case i == 0:
			r = one
		case one.Tool != r.Tool:
			return nil, say.Errorf("it holds results of %s and of %s", r.Tool, one.Tool).WithHint("give each tool a file of its own")
		case (one.By == "") != (r.By == ""): // a verdict would be ascribed to what has none
			return nil, say.Errorf("it holds results that Pitot measured and results of %s", r.Tool).WithHint("give each a file of its own")
		default:
			r.Points = append(r.Points, one.Points...)
			if one.By != r.By {
				r.Notes = append(r.Notes, fmt.Sprintf("result %d was measured by %s", i+1, cmp.Or(one.By, one.Tool)))
			}
			if one.Model != r.Model {
				r.Notes = append(r.Notes, fmt.Sprintf("result %d is of another model, %s", i+1, one.Model))
			}
		}
	}
	if cut {
		r.Notes = append(r.Notes, "the file is cut off: its last result is missing")
	}
	none := 0
	for i := range r.Points {
		if p := &r.Points[i]; p.OK != nil && *p.OK == 0 {
			// These tools then write zeros.
			p.TTFT, p.TPOT, p.ITL, p.E2E = nil, nil, nil, nil
			none++
		}
	}
	if none > 0 {
		r.Notes = append(r.Notes, "no request ended well: the zeros that the tool writes then are no latencies")
	}
	return r, nil
}

// fields is a JSON object, not yet understood.
type fields map[string]json.RawMessage

// objectsOf gives the objects of a file: one, one a line, or those of an
// array. cut says that the file ends inside one that others came before.
func objectsOf(data []byte) (out []fields, cut bool, err error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, false, say.Errorf("the file is empty").WithHint(hintKnown)
	}
	d := json.NewDecoder(bytes.NewReader(withoutNaN(data)))
	for {
		var raw json.RawMessage
		switch err := d.Decode(&raw); {
		case err == io.EOF:
			if len(out) == 0 {
				return nil, false, say.Errorf("no result in it").WithHint(hintKnown)
			}
			return out, false, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			if len(out) == 0 {
				return nil, false, say.Errorf("it is cut off: it ends inside a value").WithHint("the tool was stopped while it wrote it")
			}
			return out, true, nil
		case err != nil:
			return nil, false, say.Errorf("not JSON: %v", plainJSON(err)).WithHint(hintKnown)
		}
		list := []json.RawMessage{raw}
		if raw[0] == '[' {
			if err := json.Unmarshal(raw, &list); err != nil {
				return nil, false, say.Errorf("not JSON: %v", plainJSON(err)).WithHint(hintKnown)
			}
		}
		for _, one := range list {
			var f fields
			if err := json.Unmarshal(one, &f); err != nil || f == nil {
				return nil, false, say.Errorf("no result of a tool that is known").WithHint(hintKnown)
			}
			out = append(out, f)
		}
	}
}

func plainJSON(err error) string { return strings.TrimPrefix(err.Error(), "json: ") }

// withoutNaN makes null of the bare NaN and Infinity that Python writes, which
// are no JSON.
func withoutNaN(data []byte) []byte {
	words := [][]byte{[]byte("NaN"), []byte("-Infinity"), []byte("Infinity")}
	if !bytes.Contains(data, words[0]) && !bytes.Contains(data, words[2]) {
		return data
	}
	out := make([]byte, 0, len(data))
	quoted := false
next:
	for i := 0; i < len(data); i++ {
		c := data[i]
		switch {
		case quoted && c == '\\' && i+1 < len(data):
			out = append(out, c, data[i+1])
			i++
			continue
		case c == '"':
			quoted = !quoted
		case !quoted && (c == 'N' || c == 'I' || c == '-'):
			for _, w := range words {
				if bytes.HasPrefix(data[i:], w) {
					out = append(out, "null"...)
					i += len(w) - 1
					continue next
				}
			}
		}
		out = append(out, c)
	}
	return out
}

// hasKeys says that all of the keys are there.
func (f fields) hasKeys(keys ...string) bool {
	for _, k := range keys {
		if f[k] == nil {
			return false
		}
	}
	return true
}

// readResult finds the tool and reads its object.
func (f fields) readResult() (*Result, error) {
	switch {
	case f.hasKeys("schema") && strings.HasPrefix(f.textOf("schema"), "pitot."):
		return nil, say.Errorf("it is a run of Pitot's own").WithHint("name its directory")
	case f.isGuideLLM():
		return f.guideLLM()
	case f.isAIPerf():
		return f.readAIPerf()
	case f.isSGLang():
		return f.readSGLang()
	case f.isVLLM():
		return f.readVLLM()
	}
	return nil, say.Errorf("no result of a tool that is known").WithHint(hintKnown)
}

// textOf gives a string, "" if there is none.
func (f fields) textOf(key string) (s string) {
	_ = json.Unmarshal(f[key], &s) // another type is none
	return s
}

// number gives a finite number, nil if there is none.
func (f fields) number(key string) *float64 {
	var x *float64
	if json.Unmarshal(f[key], &x) != nil || x == nil || math.IsInf(*x, 0) {
		return nil
	}
	return x
}

// object gives an object, nil if there is none.
func (f fields) object(key string) (o fields) {
	_ = json.Unmarshal(f[key], &o)
	return o
}

// isUnlimited says that a rate is infinite: "inf", or the Infinity that
// withoutNaN took away.
func (f fields) isUnlimited(key string) bool {
	if s := strings.ToLower(f.textOf(key)); s == "inf" || s == "infinity" {
		return true
	}
	return string(f[key]) == "null"
}

// flatSummary is a summary of keys such as mean_ttft_ms and p99_ttft_ms.
func (f fields) flatSummary(metric string) *Summary {
	at := "_" + metric
	return f.summary(1, []string{"", "mean" + at, "std" + at, "min" + at, "max" + at}, f, func(key string) string {
		p, ok := strings.CutSuffix(key, at)
		switch {
		case !ok:
			return ""
		case p == "median":
			return "p50"
		}
		return p
	})
}

// summary is that of figures in a unit, which have the keys of n, mean, sd, min and max, and of
// the percentiles in an object, whose keys have names.
func (f fields) summary(unit float64, keys []string, percentiles fields, name func(key string) string) *Summary {
	scaled := func(f fields, key string) *float64 {
		x := f.number(key)
		if x != nil {
			*x *= unit
		}
		return x
	}
	s := &Summary{N: f.number(keys[0]), Mean: scaled(f, keys[1]), SD: scaled(f, keys[2]), Min: scaled(f, keys[3]), Max: scaled(f, keys[4]),
		Percentiles: map[string]float64{}}
	for _, key := range slices.Sorted(maps.Keys(percentiles)) { // "median" before "p50"
		if p := name(key); isPercentile(p) {
			if x := scaled(percentiles, key); x != nil {
				s.Percentiles[p] = *x
			}
		}
	}
	return s.orNil()
}

// isPercentile knows p50, p99 and p99.9.
func isPercentile(name string) bool {
	digits, ok := strings.CutPrefix(name, "p")
	p, err := strconv.ParseFloat(digits, 64)
	return ok && err == nil && p >= 0 && p <= 100 && digits[0] != '+' && digits[0] != '-'
}

// errUnknown says why a file of a known tool cannot be read.
func errUnknown(why string) error {
	return say.Errorf("%s", why).WithHint("it may be of a version that is not known; " + hintKnown)
}

// firstText gives a text, or the first of a list of texts or of objects with a
// name.
func firstText(raw json.RawMessage) string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return one
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		return firstText(list[0])
	}
	var o fields
	if json.Unmarshal(raw, &o) == nil {
		for _, k := range []string{"name", "items", "id"} {
			if s := firstText(o[k]); s != "" {
				return s
			}
		}
	}
	return ""
}

// lastObject gives an object, or the last of a list of them: of several
// phases the one that is measured.
func lastObject(raw json.RawMessage) (o fields) {
	var list []fields
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		return list[len(list)-1]
	}
	_ = json.Unmarshal(raw, &o)
	return o
}
