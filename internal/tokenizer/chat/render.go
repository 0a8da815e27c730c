package chat

import (
	"strings"
	"time"
)

// rendering is a template at work.
type rendering struct {
	out    strings.Builder
	scopes []map[string]any // the innermost last
	now    time.Time
	steps  int // taken, and entries of lists gone over or made
	bytes  int // of text gone over or made
	calls  int // of macros, one in another
}

// What a template may ask for: the known ones need a hundredth of it for a message. Steps bound the
// time of a rendering, and with it the memory: whatever goes over a list or a text, or makes one,
// takes steps by its size.
const (
	mostSteps    = 1 << 17
	bytesPerStep = 64
	mostText     = 4 << 20 // bytes of one text
	mostCalls    = 50
)

// work counts a step of the rendering.
func (r *rendering) work(line int) { r.take(line, 1) }

// take counts n steps, or n entries of a list that are gone over or made.
func (r *rendering) take(line, n int) {
	r.steps += n
	r.bounded(line)
}

// read counts n bytes of text that are gone over or made.
func (r *rendering) read(line, n int) {
	r.bytes += n
	r.bounded(line)
}

func (r *rendering) bounded(line int) {
	if r.steps+r.bytes/bytesPerStep > mostSteps {
		refuse(line, "it takes too long")
	}
}

// write appends to what is rendered.
func (r *rendering) write(line int, s string) {
	if r.out.Len()+len(s) > mostText {
		refuse(line, "it makes too much text")
	}
	r.read(line, len(s))
	r.out.WriteString(s)
}

func (r *rendering) lookup(name string) any {
	for i := len(r.scopes) - 1; i >= 0; i-- {
		if v, ok := r.scopes[i][name]; ok {
			return v
		}
	}
	if f, ok := functions[name]; ok {
		return f
	}
	return undefined{name}
}

func (r *rendering) set(name string, v any) { r.scopes[len(r.scopes)-1][name] = v }

// within runs nodes in a scope of their own, and gives how they were left.
func (r *rendering) within(scope map[string]any, nodes []node) left {
	r.scopes = append(r.scopes, scope)
	defer func() { r.scopes = r.scopes[:len(r.scopes)-1] }()
	return r.run(nodes)
}

// captured gives what do writes.
func (r *rendering) captured(do func()) string {
	before := r.out
	r.out = strings.Builder{}
	do()
	text := r.out.String()
	r.out = before
	return text
}

// left says how nodes were left: at their end, or by break or continue.
type left int

const (
	atEnd left = iota
	byBreak
	byContinue
)

func (r *rendering) run(nodes []node) left {
	for _, n := range nodes {
		if how := n.run(r); how != atEnd {
			return how
		}
	}
	return atEnd
}

// node is a part of a template.
type node interface {
	run(r *rendering) left
}

type plain struct {
	text string
	line int
}

func (n plain) run(r *rendering) left {
	r.work(n.line)
	r.write(n.line, n.text)
	return atEnd
}

type printed struct {
	of   expression
	line int
}

func (n printed) run(r *rendering) left {
	r.work(n.line)
	r.write(n.line, written(n.of.value(r), n.line))
	return atEnd
}

type branch struct {
	of              expression
	then, otherwise []node
	line            int
}

func (n branch) run(r *rendering) left {
	r.work(n.line)
	if truth(n.of.value(r)) {
		return r.run(n.then)
	}
	return r.run(n.otherwise)
}

type leave struct{ next bool }

func (n leave) run(*rendering) left {
	if n.next {
		return byContinue
	}
	return byBreak
}

type loop struct {
	names      []string
	over, only expression
	body, none []node
	line       int
}

func (n loop) run(r *rendering) left {
	var scopes []map[string]any
	var items []any
	for _, x := range r.sequence(n.over.value(r), n.line) {
		r.work(n.line)
		scope := map[string]any{}
		if len(n.names) == 1 {
			scope[n.names[0]] = x
		} else {
			parts := r.sequence(x, n.line)
			if len(parts) != len(n.names) {
				refuse(n.line, "%d values for %d names", len(parts), len(n.names))
			}
			for i, name := range n.names {
				scope[name] = parts[i]
			}
		}
		if n.only != nil {
			r.scopes = append(r.scopes, scope)
			keep := truth(n.only.value(r))
			r.scopes = r.scopes[:len(r.scopes)-1]
			if !keep {
				continue
			}
		}
		scopes, items = append(scopes, scope), append(items, x)
	}
	if len(items) == 0 {
		return r.run(n.none)
	}
	for i, scope := range scopes {
		r.work(n.line)
		about := &dict{}
		for _, f := range []struct {
			name  string
			value any
		}{
			{"index", int64(i + 1)}, {"index0", int64(i)}, {"first", i == 0}, {"last", i == len(items)-1},
			{"length", int64(len(items))}, {"revindex", int64(len(items) - i)}, {"revindex0", int64(len(items) - i - 1)},
		} {
			about.put(f.name, f.value)
		}
		if i > 0 {
			about.put("previtem", items[i-1])
		}
		if i+1 < len(items) {
			about.put("nextitem", items[i+1])
		}
		scope["loop"] = about
		scopes[i] = nil // it is not kept beyond its turn
		if r.within(scope, n.body) == byBreak {
			break
		}
	}
	return atEnd
}

type assignment struct {
	name, attribute string
	value           expression
	block           []node // in place of a value: what it writes
	line            int
}

func (n assignment) run(r *rendering) left {
	r.work(n.line)
	var v any
	if n.value != nil {
		v = n.value.value(r)
	} else {
		v = r.captured(func() { r.within(map[string]any{}, n.block) })
	}
	if n.attribute == "" {
		r.set(n.name, v)
		return atEnd
	}
	space, ok := r.lookup(n.name).(*namespace)
	if !ok {
		refuse(n.line, "%s is no namespace", n.name)
	}
	space.put(n.attribute, v)
	return atEnd
}

type macro struct {
	name     string
	names    []string
	defaults []expression // nil where there is none
	body     []node
	line     int
}

func (n macro) run(r *rendering) left {
	r.work(n.line)
	at := r.scopes
	r.set(n.name, function(func(r *rendering, arguments []any, named map[string]any, line int) any {
		if r.calls++; r.calls > mostCalls {
			refuse(line, "macros call each other over %d deep", mostCalls)
		}
		defer func() { r.calls-- }()
		if len(arguments) > len(n.names) {
			refuse(line, "%s is given %d arguments", n.name, len(arguments))
		}
		scopes := r.scopes
		defer func() { r.scopes = scopes }()
		r.scopes = at[:1:1] // a macro sees what stands outside of all others
		scope := map[string]any{}
		for i, name := range n.names {
			v, given := named[name]
			switch {
			case i < len(arguments):
				scope[name] = arguments[i]
			case given:
				scope[name] = v
			case n.defaults[i] != nil:
				scope[name] = n.defaults[i].value(r)
			default:
				scope[name] = undefined{name}
			}
		}
		return r.captured(func() { r.within(scope, n.body) })
	}))
	return atEnd
}

// expression is what has a value.
type expression interface {
	value(r *rendering) any
}

type constant struct{ of any }

func (e constant) value(*rendering) any { return e.of }

type variable struct {
	name string
	line int
}

func (e variable) value(r *rendering) any {
	r.work(e.line)
	return r.lookup(e.name)
}

type list struct {
	of   []expression
	line int
}

func (e list) value(r *rendering) any {
	r.take(e.line, 1+len(e.of))
	items := make([]any, len(e.of))
	for i, x := range e.of {
		items[i] = x.value(r)
	}
	return items
}

type mapping struct {
	keys, values []expression
	line         int
}

func (e mapping) value(r *rendering) any {
	r.take(e.line, 1+len(e.keys))
	d := &dict{}
	for i, k := range e.keys {
		name, ok := k.value(r).(string)
		if !ok {
			refuse(e.line, "a key that is no string")
		}
		r.read(e.line, len(name))
		d.put(name, e.values[i].value(r))
	}
	return d
}

type choice struct {
	then, of, otherwise expression
	line                int
}

func (e choice) value(r *rendering) any {
	r.work(e.line)
	switch {
	case truth(e.of.value(r)):
		return e.then.value(r)
	case e.otherwise == nil:
		return undefined{"the other case"}
	}
	return e.otherwise.value(r)
}

// either is "or", and "and" where it is not.
type either struct {
	a, b expression
	or   bool
	line int
}

func (e either) value(r *rendering) any {
	r.work(e.line)
	if a := e.a.value(r); truth(a) == e.or {
		return a
	}
	return e.b.value(r)
}

type negation struct{ of expression }

func (e negation) value(r *rendering) any { return !truth(e.of.value(r)) }

type comparison struct {
	first     expression
	operators []string
	others    []expression
	line      int
}

func (e comparison) value(r *rendering) any {
	a := e.first.value(r)
	for i, op := range e.operators {
		r.work(e.line)
		b := e.others[i].value(r)
		if !r.compared(op, a, b, e.line) {
			return false
		}
		a = b
	}
	return true
}

type calculation struct {
	operator string
	a, b     expression
	line     int
}

func (e calculation) value(r *rendering) any {
	r.work(e.line)
	return r.calculated(e.operator, e.a.value(r), e.b.value(r), e.line)
}

type attribute struct {
	of   expression
	name string
	line int
}

func (e attribute) value(r *rendering) any {
	r.work(e.line)
	of := e.of.value(r)
	if m := method(of, e.name); m != nil {
		return m
	}
	return r.member(of, e.name, e.line)
}

type item struct {
	of, key expression
	line    int
}

func (e item) value(r *rendering) any {
	r.work(e.line)
	return r.member(e.of.value(r), e.key.value(r), e.line)
}

type slice struct {
	of    expression
	parts [3]expression
	line  int
}

func (e slice) value(r *rendering) any {
	r.work(e.line)
	var at [3]*int64
	for i, p := range e.parts {
		if p == nil {
			continue
		}
		switch v := p.value(r).(type) {
		case int64:
			at[i] = &v
		case nil:
		default:
			refuse(e.line, "a slice from something that is no number")
		}
	}
	return r.sliced(e.of.value(r), at, e.line)
}

// argument is one of a call: with a name or without.
type argument struct {
	name  string
	value expression
}

func valuesOf(r *rendering, arguments []argument) (values []any, named map[string]any) {
	named = map[string]any{}
	for _, a := range arguments {
		if v := a.value.value(r); a.name != "" {
			named[a.name] = v
		} else {
			values = append(values, v)
		}
	}
	return values, named
}

type call struct {
	of        expression
	arguments []argument
	line      int
}

func (e call) value(r *rendering) any {
	r.take(e.line, 1+len(e.arguments))
	f, ok := e.of.value(r).(function)
	if !ok {
		refuse(e.line, "a call of %s", nameOf(e.of))
	}
	values, named := valuesOf(r, e.arguments)
	return f(r, values, named, e.line)
}

// nameOf names what is called, for messages.
func nameOf(e expression) string {
	switch e := e.(type) {
	case variable:
		return e.name
	case attribute:
		return e.name
	}
	return "a value"
}

type filter struct {
	of        expression
	name      string
	arguments []argument
	line      int
}

func (e filter) value(r *rendering) any {
	r.take(e.line, 1+len(e.arguments))
	f, ok := filters[e.name]
	if !ok {
		refuse(e.line, "the filter %s", e.name)
	}
	values, named := valuesOf(r, e.arguments)
	return f(r, append([]any{e.of.value(r)}, values...), named, e.line)
}

// check is "is" with the name of a test.
type check struct {
	of        expression
	name      string
	not       bool
	arguments []argument
	line      int
}

func (e check) value(r *rendering) any {
	r.take(e.line, 1+len(e.arguments))
	values, _ := valuesOf(r, e.arguments)
	return r.tested(e.name, e.of.value(r), values, e.line) != e.not
}
