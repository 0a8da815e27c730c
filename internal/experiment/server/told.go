package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/sim/engines"
)

// What a server tells of its settings comes as JSON, as a command line, as the lines that
// engines log when they begin, or as KEY: VALUE. All of it is read by the names of the
// settings alone.

// longestValue is the longest value that is kept, in bytes.
const longestValue = 200

// secret names say that a value is nobody's business.
var secret = regexp.MustCompile(`(?i)(key|token|secret|passw|credential|auth)s?$`)

// counts are those of tokens, which are no secrets.
var counts = regexp.MustCompile(`(?i)(max|num|min|chunked|total)_.*tokens?$`)

func isSecret(name string) bool { return secret.MatchString(name) && !counts.MatchString(name) }

// Read reads what a server tells of its settings, by their names with underscores. Of what
// is told twice the last counts, as on a command line; in JSON what is less deep, and else
// the last by the names of the objects around it. Secrets are left out.
func Read(text string) map[string]string {
	told := map[string]string{}
	add := func(name, value string) {
		name = strings.ReplaceAll(strings.TrimLeft(name, "-"), "-", "_")
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		if name != "" && len(value) <= longestValue && !isSecret(name) {
			told[name] = value
		}
	}
	var root any
	if json.Unmarshal([]byte(text), &root) == nil {
		flatten(root, add)
		return told
	}
	for _, m := range pairs.FindAllStringSubmatch(text, -1) {
		add(m[1], m[2])
	}
	words := strings.Fields(text)
	for i, w := range words {
		name, ok := strings.CutPrefix(w, "--")
		if !ok || name == "" {
			continue
		}
		name, value, given := strings.Cut(name, "=")
		switch {
		case given:
		case i+1 < len(words) && !strings.HasPrefix(words[i+1], "--"):
			value = words[i+1]
		case strings.HasPrefix(name, "no-"):
			name, value = strings.TrimPrefix(name, "no-"), "false"
		default:
			value = "true"
		}
		add(name, value)
	}
	return told
}

// pairs are 'name': value of Python's dictionaries, name=value and name: value.
var pairs = regexp.MustCompile(`(?:^|[\s{(,'"])([A-Za-z][A-Za-z0-9_]*)['"]?\s*(?:[:=])\s*('[^']*'|"[^"]*"|[^\s,'"{}()\[\]]+)`)

// deepest is the maximum depth of nested objects that are looked into.
const deepest = 6

// flatten adds what is in objects within objects, the deepest first.
func flatten(root any, add func(name, value string)) {
	type member struct {
		name string
		v    any
	}
	levels := [][]member{{{"", root}}}
	for depth := range deepest {
		var next []member
		for _, m := range levels[depth] {
			object, _ := m.v.(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(object)) {
				next = append(next, member{name, object[name]})
			}
		}
		levels = append(levels, next)
	}
	for _, level := range slices.Backward(levels) {
		for _, m := range level {
			switch v := m.v.(type) {
			case string:
				add(m.name, v)
			case bool:
				add(m.name, strconv.FormatBool(v))
			case float64:
				add(m.name, strconv.FormatFloat(v, 'f', -1, 64))
			case nil:
				add(m.name, "None")
			}
		}
	}
}

// own are the lines in which engines log the settings that they were given.
var own = func() *regexp.Regexp {
	var all []string
	for _, k := range engines.All() {
		if k.Logged != "" {
			all = append(all, k.Logged)
		}
	}
	return regexp.MustCompile(strings.Join(all, "|"))
}()

// ReadLog reads the settings that an engine logged when it began, the last time.
func ReadLog(text string) map[string]string {
	starts := own.FindAllStringSubmatch(text, -1)
	if len(starts) == 0 {
		return map[string]string{}
	}
	last := starts[len(starts)-1]
	return Read(strings.Join(last[1:], ""))
}

// others are names that engines have for the same setting.
var others = map[string][]string{
	"tensor_parallel_size": {"tp_size", "tp"}, "tp_size": {"tensor_parallel_size", "tp"}, "tp": {"tp_size", "tensor_parallel_size"},
	"kv_cache_dtype": {"cache_dtype"}, "num_gpu_blocks_override": {"num_gpu_blocks"},
}

// Ignored is a setting that a server reports otherwise than it was asked for.
type Ignored struct{ Name, Asked, Told string }

// String is for messages.
func (i Ignored) String() string {
	return fmt.Sprintf("%s=%s was set, and the server reports %s", i.Name, i.Asked, i.Told)
}

// CompareSettings holds what was asked against what was told: what is told otherwise, and the
// names that nothing was told of.
func CompareSettings(asked []Setting, told map[string]string) (ignored []Ignored, silent []string) {
	for _, s := range asked {
		value, ok := told[s.Name]
		for _, name := range others[s.Name] {
			if !ok {
				value, ok = told[name]
			}
		}
		switch {
		case !ok, strings.EqualFold(s.Value, "auto"), value == "None" && s.Value != "false":
			silent = append(silent, s.Name)
		case !sameValue(s.Value, value):
			ignored = append(ignored, Ignored{s.Name, s.Value, value})
		}
	}
	return ignored, silent
}

// sameValue says that two spellings are of one value.
func sameValue(asked, told string) bool {
	a, b := strings.ToLower(asked), strings.ToLower(told)
	if x, err := strconv.ParseFloat(a, 64); err == nil {
		if y, err := strconv.ParseFloat(b, 64); err == nil {
			return x == y
		}
	}
	if x, err := strconv.ParseBool(a); err == nil {
		if b == "none" {
			return !x
		}
		if y, err := strconv.ParseBool(b); err == nil {
			return x == y
		}
	}
	return a == b || strings.HasPrefix(b, a+"_") // fp8 is fp8_e4m3
}

// shown are words in text behind which a secret may stand.
var shown = regexp.MustCompile(`(?i)((?:api[_-]?key|hf[_-]?token|auth[_-]?token|secret|password|bearer)s?['"]?\s*[:= ]\s*)(\[?['"]?)[^\s'",\]]+`)

// Redact takes out of text what looks like a secret.
func Redact(text string) string { return shown.ReplaceAllString(text, "${1}${2}[redacted]") }
