package telemetry

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// A page of metrics is text, a series a line:
//
//	NAME{LABEL="VALUE",…} NUMBER TIMESTAMP # EXEMPLAR
//
// with the labels, the timestamp and the exemplar in some, and comments behind #.
// This is version 0.0.4 of Prometheus' text format and, as far as its lines go,
// OpenMetrics 1.0. Version 1.0.0 may have the name quoted, as the first of the braces.
// A line that cannot be read is passed over: one that is malformed costs one signal,
// not the page.

// labels are those of a series: name, value, … They point into the page, but for values
// with escapes.
type labels []label

type label struct{ name, value string }

// value is that of a label, and whether it has it.
func (l labels) value(name string) (string, bool) {
	for _, one := range l {
		if one.name == name {
			return one.value, true
		}
	}
	return "", false
}

// eachSeriesLine calls see with each line that has a series: its name, and what stands behind
// it, for [parseSeries]; where the name is quoted that is the whole line. It stops where
// OpenMetrics ends.
func eachSeriesLine(page []byte, see func(name, rest []byte)) {
	for len(page) > 0 {
		var line []byte
		if end := bytes.IndexByte(page, '\n'); end >= 0 {
			line, page = page[:end], page[end+1:]
		} else {
			line, page = page, nil
		}
		line = trimSpace(line)
		if len(line) == 0 {
			continue
		}
		if line[0] == '#' {
			if string(line) == "# EOF" {
				return
			}
			continue
		}
		if line[0] == '{' {
			if name, ok := quotedName(line); ok {
				see(name, line)
			}
			continue
		}
		end := 0
		for end < len(line) && line[end] != '{' && line[end] != ' ' && line[end] != '\t' {
			end++
		}
		if end < len(line) {
			see(line[:end], line[end:])
		}
	}
}

// quotedName is the name of a line that begins with the braces: {"NAME",…}.
func quotedName(line []byte) ([]byte, bool) {
	s := trimSpace(line[1:])
	if len(s) == 0 || s[0] != '"' {
		return nil, false
	}
	end := bytes.IndexByte(s[1:], '"')
	if end < 0 || bytes.IndexByte(s[1:1+end], '\\') >= 0 {
		return nil, false
	}
	if after := trimSpace(s[2+end:]); len(after) == 0 || after[0] != ',' && after[0] != '}' { // JSON begins so too
		return nil, false
	}
	return s[1 : 1+end], true
}

func trimSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\r') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t' || b[len(b)-1] == '\r') {
		b = b[:len(b)-1]
	}
	return b
}

// parseSeries reads what stands behind the name of a series. The labels use space,
// which they give back.
func parseSeries(rest []byte, space labels) (of labels, x float64, ok bool) {
	of = space[:0]
	rest = trimSpace(rest)
	if len(rest) > 0 && rest[0] == '{' {
		if of, rest, ok = parseLabels(rest[1:], of); !ok {
			return of, 0, false
		}
		rest = trimSpace(rest)
	}
	end := 0
	for end < len(rest) && rest[end] != ' ' && rest[end] != '\t' {
		end++
	}
	x, err := strconv.ParseFloat(string(rest[:end]), 64)
	if err != nil || bytes.IndexByte(rest[:end], '_') >= 0 { // Go's own numbers may have them
		return of, 0, false
	}
	return of, x, true
}

// parseLabels reads labels up to the closing brace, and gives what is behind it.
func parseLabels(s []byte, of labels) (labels, []byte, bool) {
	for {
		s = trimSpace(s)
		switch {
		case len(s) == 0:
			return of, nil, false
		case s[0] == '}':
			return of, s[1:], true
		case s[0] == ',':
			s = s[1:]
			continue
		}
		var name string
		if s[0] == '"' { // the name of the series, or of a label that is no identifier
			text, rest, ok := quotedText(s)
			if !ok {
				return of, nil, false
			}
			s = trimSpace(rest)
			if len(s) == 0 || s[0] != '=' {
				continue
			}
			name = text
		} else {
			end := bytes.IndexByte(s, '=')
			if end < 0 {
				return of, nil, false
			}
			name, s = string(trimSpace(s[:end])), s[end:]
		}
		s = trimSpace(s[1:])
		if len(s) == 0 || s[0] != '"' {
			return of, nil, false
		}
		value, rest, ok := quotedText(s)
		if !ok {
			return of, nil, false
		}
		of, s = append(of, label{name, value}), rest
	}
}

// quotedText reads a text in quotes, in which \\, \" and \n stand for themselves and for
// a new line.
func quotedText(s []byte) (text string, rest []byte, ok bool) {
	escaped := false
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			escaped = true
			i++
		case '"':
			text = string(s[1:i])
			if escaped {
				text = unescape.Replace(text)
			}
			return text, s[i+1:], true
		}
	}
	return "", nil, false
}

var unescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")

// isNumber says that a value can be reckoned with.
func isNumber(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
