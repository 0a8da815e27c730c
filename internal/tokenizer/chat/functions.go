package chat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// The functions, filters, tests and methods that plain templates use. What is not here is
// refused by its name.

// functions are those that servers put beside Jinja's own.
var functions = map[string]function{
	"raise_exception": func(_ *rendering, arguments []any, _ map[string]any, line int) any {
		why := "no reason"
		if len(arguments) > 0 {
			why = written(arguments[0], line)
		}
		refuse(line, "it refuses the conversation: %s", why)
		return nil
	},
	"namespace": func(_ *rendering, _ []any, named map[string]any, _ int) any {
		n := &namespace{}
		for name, v := range named {
			n.put(name, v)
		}
		return n
	},
	"range": func(r *rendering, arguments []any, _ map[string]any, line int) any {
		at := [3]int64{0, 0, 1}
		for i, a := range arguments {
			n, ok := asNumber(a)
			if !ok || i > 2 {
				refuse(line, "range of %s", typeOf(a))
			}
			at[i] = n
		}
		if len(arguments) == 1 {
			at[0], at[1] = 0, at[0]
		}
		var list []any
		for i := at[0]; at[2] > 0 && i < at[1] || at[2] < 0 && i > at[1]; i += at[2] {
			r.work(line)
			list = append(list, i)
		}
		return list
	},
	"strftime_now": func(r *rendering, arguments []any, _ map[string]any, line int) any {
		layout := stringAt(arguments, 0, line)
		r.read(line, len(layout))
		var b strings.Builder
		for i := 0; i < len(layout); i++ {
			if layout[i] != '%' || i+1 == len(layout) {
				b.WriteByte(layout[i])
				continue
			}
			i++
			r.work(line)
			form, ok := map[byte]string{'d': "02", 'm': "01", 'b': "Jan", 'B': "January", 'Y': "2006", 'y': "06", 'H': "15", 'M': "04", 'S': "05", 'A': "Monday", 'a': "Mon", '%': "%"}[layout[i]]
			if !ok {
				refuse(line, "the form of a date %s", layout)
			}
			b.WriteString(r.now.Format(form))
		}
		return b.String()
	},
}

// stringAt is the argument of a place, which is a string.
func stringAt(arguments []any, at, line int) string {
	if at >= len(arguments) {
		refuse(line, "an argument is missing")
	}
	s, ok := arguments[at].(string)
	if !ok {
		refuse(line, "%s in place of a string", typeOf(arguments[at]))
	}
	return s
}

// filters take the value as their first argument.
var filters = map[string]function{
	"trim": func(r *rendering, a []any, _ map[string]any, line int) any {
		return r.stripped(written(a[0], line), a[1:], true, true, line)
	},
	"length": lengthFilter, "count": lengthFilter,
	"string": func(_ *rendering, a []any, _ map[string]any, line int) any { return written(a[0], line) },
	"safe":   func(_ *rendering, a []any, _ map[string]any, _ int) any { return a[0] },
	"upper":  ofText(strings.ToUpper), "lower": ofText(strings.ToLower), "capitalize": ofText(capitalised),
	"tojson": func(r *rendering, a []any, named map[string]any, line int) any {
		if len(a) > 1 || len(named) > 0 {
			refuse(line, "tojson with a form")
		}
		return r.inJSON(a[0], line)
	},
	"join": func(r *rendering, a []any, _ map[string]any, line int) any {
		between := ""
		if len(a) > 1 {
			between = stringAt(a, 1, line)
		}
		list := r.sequence(a[0], line)
		r.take(line, len(list))
		parts := make([]string, len(list))
		for i, x := range list {
			parts[i] = written(x, line)
		}
		return r.joined(line, parts, between)
	},
	"first": func(r *rendering, a []any, _ map[string]any, line int) any {
		return r.end(a[0], 0, line)
	},
	"last": func(r *rendering, a []any, _ map[string]any, line int) any {
		return r.end(a[0], -1, line)
	},
	"list": func(r *rendering, a []any, _ map[string]any, line int) any { return r.sequence(a[0], line) },
	"reverse": func(r *rendering, a []any, _ map[string]any, line int) any {
		list := slices.Clone(r.sequence(a[0], line))
		r.take(line, len(list))
		slices.Reverse(list)
		return list
	},
	"int": func(r *rendering, a []any, _ map[string]any, line int) any {
		if s, ok := a[0].(string); ok {
			r.read(line, len(s))
			n, _ := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
			return n
		}
		n, _ := asNumber(a[0])
		return n
	},
	"default": defaultFilter, "d": defaultFilter,
	"replace": func(r *rendering, a []any, _ map[string]any, line int) any {
		return r.replaced(line, written(a[0], line), stringAt(a, 1, line), stringAt(a, 2, line))
	},
	"items":      func(r *rendering, a []any, _ map[string]any, line int) any { return r.itemsOf(a[0], line) },
	"selectattr": selected(true), "rejectattr": selected(false),
	"map": func(r *rendering, a []any, named map[string]any, line int) any {
		name, ok := named["attribute"].(string)
		if !ok || len(a) > 1 {
			refuse(line, "map of something else than an attribute")
		}
		var list []any
		for _, x := range r.entries(a[0], line) {
			r.work(line)
			list = append(list, r.member(x, name, line))
		}
		return list
	},
}

var lengthFilter function = func(r *rendering, a []any, _ map[string]any, line int) any { return r.lengthOf(a[0], line) }

var defaultFilter function = func(_ *rendering, a []any, named map[string]any, _ int) any {
	var otherwise any = ""
	if len(a) > 1 {
		otherwise = a[1]
	}
	empty := named["boolean"]
	if len(a) > 2 {
		empty = a[2]
	}
	if _, not := a[0].(undefined); not || truth(empty) && !truth(a[0]) {
		return otherwise
	}
	return a[0]
}

// ofText is a filter of a text alone.
func ofText(do func(string) string) function {
	return func(r *rendering, a []any, _ map[string]any, line int) any {
		return r.changed(line, written(a[0], line), do)
	}
}

// changed is a text as do makes another of it, of about the same length.
func (r *rendering) changed(line int, s string, do func(string) string) string {
	r.read(line, len(s))
	return r.together(line, do(s))
}

// end is the first character or entry, or the last.
func (r *rendering) end(of any, at int64, line int) any {
	if _, is := of.(string); !is {
		of = r.sequence(of, line)
	}
	return r.member(of, at, line)
}

func capitalised(s string) string {
	for i, r := range s {
		return string(unicode.ToTitle(r)) + strings.ToLower(s[i+len(string(r)):])
	}
	return s
}

// entries are those of a list, of none and the like none.
func (r *rendering) entries(v any, line int) []any {
	if !truth(v) {
		return nil
	}
	return r.sequence(v, line)
}

// selected keeps the entries of a list whose attribute is true, or passes a test, or those that do not.
func selected(keep bool) function {
	return func(r *rendering, a []any, _ map[string]any, line int) any {
		name := stringAt(a, 1, line)
		var list []any
		for _, x := range r.entries(a[0], line) {
			r.work(line)
			v := r.member(x, name, line)
			passes := truth(v)
			if len(a) > 2 {
				passes = r.tested(stringAt(a, 2, line), v, a[3:], line)
			}
			if passes == keep {
				list = append(list, x)
			}
		}
		return list
	}
}

// tested is what stands behind "is".
func (r *rendering) tested(name string, v any, arguments []any, line int) bool {
	argument := func() any {
		if len(arguments) == 0 {
			refuse(line, "an argument is missing")
		}
		return arguments[0]
	}
	_, notDefined := v.(undefined)
	switch name {
	case "defined":
		return !notDefined
	case "undefined":
		return notDefined
	case "none":
		return v == nil
	case "true", "false":
		b, ok := v.(bool)
		return ok && b == (name == "true")
	case "string":
		_, ok := v.(string)
		return ok
	case "boolean":
		_, ok := v.(bool)
		return ok
	case "number":
		_, ok := asNumber(v)
		return ok
	case "integer":
		_, ok := v.(int64)
		return ok
	case "mapping":
		_, ok := v.(*dict)
		return ok
	case "iterable", "sequence":
		switch v.(type) {
		case string, []any, *dict:
			return true
		case undefined:
			return true
		}
		return false
	case "eq", "equalto", "==":
		return r.same(v, argument(), line)
	case "ne", "!=":
		return !r.same(v, argument(), line)
	case "in":
		return r.contains(argument(), v, line)
	case "even", "odd":
		n, ok := asNumber(v)
		return ok && n&1 == numberOf(name == "odd")
	case "divisibleby":
		return r.calculated("%", v, argument(), line) == int64(0)
	}
	refuse(line, "the test %s", name)
	return false
}

// method is a method of a value, nil where it has none of that name.
func method(of any, name string) any {
	switch of := of.(type) {
	case string:
		do, ok := methods[name]
		if !ok {
			return nil
		}
		return function(func(r *rendering, arguments []any, _ map[string]any, line int) any {
			return do(r, of, arguments, line)
		})
	case *dict:
		switch name {
		case "items":
			return function(func(r *rendering, _ []any, _ map[string]any, line int) any { return r.itemsOf(of, line) })
		case "keys":
			return function(func(r *rendering, _ []any, _ map[string]any, line int) any { return r.sequence(of, line) })
		case "values":
			return function(func(r *rendering, _ []any, _ map[string]any, line int) any {
				r.take(line, len(of.keys))
				var list []any
				for _, k := range of.keys {
					list = append(list, of.values[k])
				}
				return list
			})
		case "get":
			return function(func(r *rendering, arguments []any, _ map[string]any, line int) any {
				key := stringAt(arguments, 0, line)
				r.read(line, len(key))
				if v, ok := of.values[key]; ok {
					return v
				}
				if len(arguments) > 1 {
					return arguments[1]
				}
				return nil
			})
		}
	}
	return nil
}

// methods are those of Python's strings.
var methods = map[string]func(r *rendering, s string, arguments []any, line int) any{
	"strip":      func(r *rendering, s string, a []any, line int) any { return r.stripped(s, a, true, true, line) },
	"lstrip":     func(r *rendering, s string, a []any, line int) any { return r.stripped(s, a, true, false, line) },
	"rstrip":     func(r *rendering, s string, a []any, line int) any { return r.stripped(s, a, false, true, line) },
	"startswith": func(r *rendering, s string, a []any, line int) any { return r.affixed(s, a, strings.HasPrefix, line) },
	"endswith":   func(r *rendering, s string, a []any, line int) any { return r.affixed(s, a, strings.HasSuffix, line) },
	"upper":      func(r *rendering, s string, _ []any, line int) any { return r.changed(line, s, strings.ToUpper) },
	"lower":      func(r *rendering, s string, _ []any, line int) any { return r.changed(line, s, strings.ToLower) },
	"capitalize": func(r *rendering, s string, _ []any, line int) any { return r.changed(line, s, capitalised) },
	"find": func(r *rendering, s string, a []any, line int) any {
		return r.lengthBefore(s, strings.Index(s, stringAt(a, 0, line)), line)
	},
	"rfind": func(r *rendering, s string, a []any, line int) any {
		return r.lengthBefore(s, strings.LastIndex(s, stringAt(a, 0, line)), line)
	},
	"replace": func(r *rendering, s string, a []any, line int) any {
		if len(a) > 2 {
			refuse(line, "replace of so many")
		}
		return r.replaced(line, s, stringAt(a, 0, line), stringAt(a, 1, line))
	},
	"format": func(r *rendering, s string, a []any, line int) any {
		r.read(line, len(s))
		r.take(line, strings.Count(s, "{}"))
		parts := strings.Split(s, "{}")
		if len(parts) != len(a)+1 || strings.ContainsAny(strings.Join(parts, ""), "{}") {
			refuse(line, "format with more than {}")
		}
		for i, x := range a {
			parts[i] = r.together(line, parts[i], written(x, line))
		}
		return r.together(line, parts...)
	},
	"split": func(r *rendering, s string, a []any, line int) any {
		most := int64(-1)
		if len(a) > 1 {
			most, _ = asNumber(a[1])
		}
		r.read(line, len(s))
		var list []any
		add := func(part string) {
			r.work(line)
			list = append(list, part)
		}
		if len(a) == 0 || a[0] == nil {
			if most >= 0 {
				refuse(line, "split at so many blanks")
			}
			for part := range strings.FieldsFuncSeq(s, blank) {
				add(part)
			}
			return list
		}
		separator := stringAt(a, 0, line)
		if separator == "" {
			refuse(line, "split at nothing")
		}
		for ; most != 0; most-- {
			before, after, found := strings.Cut(s, separator)
			if !found {
				break
			}
			add(before)
			s = after
		}
		add(s)
		return list
	},
}

// lengthBefore is a place in characters of one in bytes, -1 for none.
func (r *rendering) lengthBefore(s string, i, line int) any {
	r.read(line, len(s))
	if i < 0 {
		return int64(-1)
	}
	return r.lengthOf(s[:i], line)
}

func (r *rendering) affixed(s string, arguments []any, has func(s, affix string) bool, line int) any {
	one := func(affix any) bool {
		text := stringAt([]any{affix}, 0, line)
		r.read(line, bytesPerStep+len(text))
		return has(s, text)
	}
	if len(arguments) == 1 {
		if list, ok := arguments[0].([]any); ok {
			return slices.ContainsFunc(list, one)
		}
	}
	return one(stringAt(arguments, 0, line))
}

// blank is whitespace to Python.
func blank(r rune) bool { return unicode.IsSpace(r) || 0x1C <= r && r <= 0x1F }

// stripped leaves characters out at the ends: blanks, or those of the first argument.
func (r *rendering) stripped(s string, arguments []any, left, right bool, line int) string {
	is := func(c rune) bool { r.read(line, 1); return blank(c) }
	if len(arguments) > 0 && arguments[0] != nil {
		set := stringAt(arguments, 0, line)
		is = func(c rune) bool { r.read(line, 1+len(set)); return strings.ContainsRune(set, c) }
	}
	if left {
		s = strings.TrimLeftFunc(s, is)
	}
	if right {
		s = strings.TrimRightFunc(s, is)
	}
	return s
}

func (r *rendering) itemsOf(v any, line int) []any {
	d, ok := v.(*dict)
	if !ok {
		refuse(line, "the items of %s", typeOf(v))
	}
	r.take(line, len(d.keys))
	var list []any
	for _, k := range d.keys {
		list = append(list, []any{k, d.values[k]})
	}
	return list
}

// inJSON is a value as Python's json.dumps writes it, with characters as they are.
func (r *rendering) inJSON(v any, line int) string {
	r.work(line)
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strings.ToLower(written(v, line))
	case int64:
		return written(v, line)
	case string:
		return r.changed(line, v, quotedJSON)
	case []any:
		parts := make([]string, len(v))
		for i, x := range v {
			parts[i] = r.inJSON(x, line)
		}
		return r.together(line, "[", r.joined(line, parts, ", "), "]")
	case *dict:
		parts := make([]string, len(v.keys))
		for i, k := range v.keys {
			parts[i] = r.together(line, r.inJSON(k, line), ": ", r.inJSON(v.values[k], line))
		}
		return r.together(line, "{", r.joined(line, parts, ", "), "}")
	}
	refuse(line, "%s as JSON", typeOf(v))
	return ""
}

func quotedJSON(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		short := strings.IndexRune("\"\\\n\r\t\b\f", r)
		switch {
		case short >= 0:
			b.WriteByte('\\')
			b.WriteByte(`"\nrtbf`[short])
		case r < ' ':
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
