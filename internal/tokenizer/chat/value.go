package chat

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A value is what Python would have there: nil (None), bool, int64, string, []any, *dict,
// *namespace, function, or undefined.

// undefined is a name that nothing was set for.
type undefined struct{ name string }

// dict is a mapping of strings, in the order in which they were put.
type dict struct {
	keys   []string
	values map[string]any
}

func (d *dict) put(key string, v any) {
	if d.values == nil {
		d.values = map[string]any{}
	}
	if _, ok := d.values[key]; !ok {
		d.keys = append(d.keys, key)
	}
	d.values[key] = v
}

// namespace is a dict whose entries can be set from within loops.
type namespace struct{ dict }

// function is what can be called.
type function func(r *rendering, arguments []any, named map[string]any, line int) any

// truth says whether a value counts as true.
func truth(v any) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case *dict:
		return len(v.keys) > 0
	}
	return true
}

// written is a value as it is printed.
func written(v any, line int) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case bool:
		if v {
			return "True"
		}
		return "False"
	case nil:
		return "None"
	case undefined:
		return ""
	}
	refuse(line, "%s is printed", typeOf(v))
	return ""
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "none"
	case bool:
		return "a truth value"
	case int64:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "a list"
	case *dict, *namespace:
		return "a mapping"
	case undefined:
		return "what is not defined"
	}
	return "a function"
}

// sequence is what a loop goes over. A list is given as it is, and costs nothing.
func (r *rendering) sequence(v any, line int) []any {
	switch v := v.(type) {
	case []any:
		return v
	case undefined:
		return nil
	case *dict:
		r.take(line, len(v.keys))
		keys := make([]any, len(v.keys))
		for i, k := range v.keys {
			keys[i] = k
		}
		return keys
	case string:
		n := int(r.lengthOf(v, line))
		r.take(line, n)
		characters := make([]any, 0, n)
		for _, c := range v {
			characters = append(characters, string(c))
		}
		return characters
	}
	refuse(line, "a loop over %s", typeOf(v))
	return nil
}

// same compares two values as Python does.
func (r *rendering) same(a, b any, line int) bool {
	r.work(line)
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, func(x, y any) bool { return r.same(x, y, line) })
	case *dict:
		b, ok := b.(*dict)
		if !ok || len(a.keys) != len(b.keys) {
			return false
		}
		for k, v := range a.values {
			if other, ok := b.values[k]; !ok || !r.same(v, other, line) {
				return false
			}
		}
		return true
	case undefined:
		_, ok := b.(undefined)
		return ok
	case bool:
		if n, ok := b.(int64); ok {
			return n == numberOf(a)
		}
	case int64:
		if other, ok := b.(bool); ok {
			return a == numberOf(other)
		}
	case *namespace:
		b, ok := b.(*namespace)
		return ok && a == b
	case string:
		if b, ok := b.(string); ok && len(a) == len(b) {
			r.read(line, len(a))
		}
	case function:
		return false
	}
	switch b.(type) {
	case []any, *dict, *namespace, function, undefined:
		return false
	}
	return a == b
}

func numberOf(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// asNumber takes a truth value for 1 or 0, as Python does.
func asNumber(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case bool:
		return numberOf(v), true
	}
	return 0, false
}

func (r *rendering) compared(operator string, a, b any, line int) bool {
	switch operator {
	case "==":
		return r.same(a, b, line)
	case "!=":
		return !r.same(a, b, line)
	case "in":
		return r.contains(b, a, line)
	case "not in":
		return !r.contains(b, a, line)
	}
	order := 0
	x, okX := a.(string)
	y, okY := b.(string)
	n, okN := asNumber(a)
	m, okM := asNumber(b)
	switch {
	case okX && okY:
		r.read(line, min(len(x), len(y)))
		order = strings.Compare(x, y)
	case okN && okM:
		order = cmp.Compare(n, m)
	default:
		refuse(line, "%s is compared with %s", typeOf(a), typeOf(b))
	}
	switch operator {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

func (r *rendering) contains(in, v any, line int) bool {
	switch in := in.(type) {
	case string:
		s, ok := v.(string)
		if !ok {
			refuse(line, "%s in a string", typeOf(v))
		}
		r.read(line, len(in))
		return strings.Contains(in, s)
	case *dict:
		s, ok := v.(string)
		r.read(line, len(s))
		_, has := in.values[s]
		return ok && has
	}
	return slices.ContainsFunc(r.sequence(in, line), func(x any) bool { return r.same(x, v, line) })
}

func (r *rendering) calculated(operator string, a, b any, line int) any {
	if operator == "~" {
		return r.together(line, written(a, line), written(b, line))
	}
	if x, ok := a.(string); ok && operator == "+" {
		if y, ok := b.(string); ok {
			return r.together(line, x, y)
		}
	}
	if x, ok := a.([]any); ok && operator == "+" {
		if y, ok := b.([]any); ok {
			r.take(line, len(x)+len(y))
			return slices.Concat(x, y)
		}
	}
	if x, ok := a.(string); ok && operator == "*" {
		if n, ok := b.(int64); ok {
			n = max(n, 0)
			r.make(line, min(n, mostText+1), len(x))
			return strings.Repeat(x, int(n))
		}
	}
	x, okX := asNumber(a)
	y, okY := asNumber(b)
	if !okX || !okY {
		refuse(line, "%s %s %s", typeOf(a), operator, typeOf(b))
	}
	switch operator {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	}
	if y == 0 {
		refuse(line, "a division by 0")
	}
	rest := (x%y + y) % y // as Python has it: of the divisor's sign
	if operator == "%" {
		return rest
	}
	return (x - rest) / y
}

// member is an item or an attribute of a value, undefined where it has none.
func (r *rendering) member(of, key any, line int) any {
	missing := undefined{written(key, line)}
	switch of := of.(type) {
	case undefined:
		refuse(line, "%s of %s, which is not defined", missing.name, of.name)
	case *dict:
		if s, ok := key.(string); ok {
			r.read(line, len(s))
			if v, ok := of.values[s]; ok {
				return v
			}
		}
	case *namespace:
		return r.member(&of.dict, key, line)
	case []any:
		if i, ok := place(key, len(of)); ok {
			return of[i]
		}
	case string:
		if i, ok := key.(int64); ok {
			if c, ok := r.character(of, i, line); ok {
				return c
			}
		}
	}
	return missing
}

// character is the one of a place in a text, which counts from the end where it is negative.
func (r *rendering) character(s string, at int64, line int) (c string, ok bool) {
	if at < 0 {
		at += r.lengthOf(s, line)
	}
	for i, c := range s {
		if at == 0 {
			r.read(line, i)
			return string(c), true
		}
		at--
	}
	r.read(line, len(s))
	return "", false
}

// place is where an index points to in a sequence of n.
func place(key any, n int) (int, bool) {
	i, ok := key.(int64)
	if i < 0 {
		i += int64(n)
	}
	return int(i), ok && 0 <= i && i < int64(n)
}

// sliced is of[at[0]:at[1]:at[2]].
func (r *rendering) sliced(of any, at [3]*int64, line int) any {
	switch of := of.(type) {
	case string:
		r.read(line, 4*len(of)) // which are as wide as the widest
		return string(cut([]rune(of), at, line))
	case []any:
		kept := cut(of, at, line)
		r.take(line, len(kept))
		return kept
	}
	refuse(line, "a slice of %s", typeOf(of))
	return nil
}

// cut is what a slice keeps of items.
func cut[T any](items []T, at [3]*int64, line int) []T {
	n, step := int64(len(items)), int64(1)
	if at[2] != nil {
		step = *at[2]
	}
	if step == 0 {
		refuse(line, "a slice in steps of 0")
	}
	step = max(-n-1, min(n+1, step))
	from, to, low, high := int64(0), n, int64(0), n
	if step < 0 {
		from, to, low, high = n-1, -1, -1, n-1
	}
	clamp := func(p *int64, otherwise int64) int64 {
		if p == nil {
			return otherwise
		}
		i := *p
		if i < 0 {
			i += n
		}
		return max(low, min(high, i))
	}
	from, to = clamp(at[0], from), clamp(at[1], to)
	var kept []T
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		kept = append(kept, items[i])
	}
	return kept
}

// lengthOf is how many characters or entries a value has.
func (r *rendering) lengthOf(v any, line int) int64 {
	if s, ok := v.(string); ok {
		r.read(line, len(s))
		return int64(utf8.RuneCountInString(s))
	}
	return int64(len(r.sequence(v, line)))
}

// make counts a text of n parts of so many bytes, before it is made; one that is too long is
// refused.
func (r *rendering) make(line int, n int64, bytes int) {
	if n*int64(bytes) > mostText || n > mostText {
		refuse(line, "it makes too much text")
	}
	r.read(line, int(n)*bytes)
}

// together is texts one behind the other.
func (r *rendering) together(line int, parts ...string) string { return r.joined(line, parts, "") }

// joined is texts with another between them.
func (r *rendering) joined(line int, parts []string, between string) string {
	size := 0
	for _, p := range parts {
		size += len(p) + len(between)
	}
	r.make(line, 1, size)
	return strings.Join(parts, between)
}

// replaced is a text with others in it replaced.
func (r *rendering) replaced(line int, s, old, by string) string {
	r.read(line, len(s))
	r.make(line, int64(strings.Count(s, old)), len(by))
	return r.together(line, strings.ReplaceAll(s, old, by))
}
