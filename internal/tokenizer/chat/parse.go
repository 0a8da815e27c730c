package chat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/say"
)

// parser makes nodes of tokens.
type parser struct {
	tokens []token
	at     int
	depth  int
}

// deepest bounds how far tags and brackets are nested.
const deepest = 200

// refusal is what of a template is not followed, or is wrong. It is thrown while a template is
// parsed or rendered, and caught at the ends.
type refusal struct{ why string }

// longestReason bounds what is told of a refusal, in characters: a template may put any text there.
const longestReason = 200

func refuse(line int, format string, args ...any) {
	why := say.Cut(say.Plain(fmt.Sprintf(format, args...)), longestReason)
	panic(refusal{fmt.Sprintf("line %d: %s", line, why)})
}

func (p *parser) now() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != endOfTemplate {
		p.at++
	}
	return t
}

// is says whether the next token is an operator or a name, and goes on behind it if so.
func (p *parser) is(k kind, text string) bool {
	if t := p.now(); t.kind != k || t.text != text {
		return false
	}
	p.next()
	return true
}

func (p *parser) operator(text string) bool { return p.is(operator, text) }
func (p *parser) word(text string) bool     { return p.is(name, text) }

func (p *parser) need(k kind, text string) token {
	t := p.next()
	if t.kind != k || text != "" && t.text != text {
		wanted := "a name"
		if text != "" {
			wanted = strconv.Quote(text)
		}
		refuse(t.line, "%s where %s should be", t, wanted)
	}
	return t
}

func (p *parser) deeper() {
	if p.depth++; p.depth > deepest {
		refuse(p.now().line, "it is nested over %d deep", deepest)
	}
}

// block reads nodes until a tag of one of these names, which it gives.
func (p *parser) block(ends ...string) (nodes []node, end string) {
	p.deeper()
	defer func() { p.depth-- }()
	for {
		t := p.next()
		switch t.kind {
		case endOfTemplate:
			if len(ends) > 0 {
				refuse(t.line, "the tag %s is missing", ends[len(ends)-1])
			}
			return nodes, ""
		case text:
			nodes = append(nodes, plain{t.text, t.line})
		case beginPrint:
			nodes = append(nodes, printed{p.expression(), t.line})
			p.need(endPrint, "}}")
		case beginTag:
			tag := p.next()
			if tag.kind == name && slices.Contains(ends, tag.text) {
				return nodes, tag.text
			}
			nodes = append(nodes, p.tag(tag)...)
		default:
			refuse(t.line, "an unexpected %s", t)
		}
	}
}

func (p *parser) endTag() { p.need(endTag, "%}") }

// tag reads a statement.
func (p *parser) tag(t token) []node {
	switch t.text {
	case "if":
		return []node{p.branch(t.line)}
	case "for":
		return []node{p.loop(t.line)}
	case "set":
		return []node{p.assignment(t.line)}
	case "macro":
		return []node{p.macro(t.line)}
	case "break", "continue":
		p.endTag()
		return []node{leave{next: t.text == "continue"}}
	case "generation": // it marks what a model is trained on
		p.endTag()
		nodes, _ := p.block("endgeneration")
		p.endTag()
		return nodes
	}
	refuse(t.line, "the tag %s", t.text)
	return nil
}

func (p *parser) branch(line int) node {
	b := branch{of: p.expression(), line: line}
	p.endTag()
	var end string
	b.then, end = p.block("elif", "else", "endif")
	switch end {
	case "elif":
		p.deeper()
		b.otherwise = []node{p.branch(line)}
		p.depth--
		return b
	case "else":
		p.endTag()
		b.otherwise, _ = p.block("endif")
	}
	p.endTag()
	return b
}

func (p *parser) loop(line int) node {
	l := loop{line: line}
	for {
		l.names = append(l.names, p.need(name, "").text)
		if !p.operator(",") {
			break
		}
	}
	p.need(name, "in")
	l.over = p.or()
	if p.word("if") {
		l.only = p.expression()
	}
	if p.word("recursive") {
		refuse(line, "a loop that calls itself")
	}
	p.endTag()
	var end string
	if l.body, end = p.block("else", "endfor"); end == "else" {
		p.endTag()
		l.none, _ = p.block("endfor")
	}
	p.endTag()
	return l
}

func (p *parser) assignment(line int) node {
	a := assignment{line: line}
	a.name = p.need(name, "").text
	if p.operator(".") {
		a.attribute = p.need(name, "").text
	}
	if p.now().text == "," {
		refuse(line, "several names are set at once")
	}
	if p.operator("=") {
		a.value = p.expression()
		p.endTag()
		return a
	}
	if p.now().kind != endTag {
		refuse(line, "a filter of a block")
	}
	p.endTag()
	a.block, _ = p.block("endset")
	p.endTag()
	return a
}

func (p *parser) macro(line int) node {
	m := macro{line: line, name: p.need(name, "").text}
	p.need(operator, "(")
	for !p.operator(")") {
		m.names = append(m.names, p.need(name, "").text)
		var value expression
		if p.operator("=") {
			value = p.expression()
		}
		m.defaults = append(m.defaults, value)
		if !p.operator(",") {
			p.need(operator, ")")
			break
		}
	}
	p.endTag()
	m.body, _ = p.block("endmacro")
	p.endTag()
	return m
}

// expression reads one: a value, or one of two by a condition.
func (p *parser) expression() expression {
	p.deeper()
	defer func() { p.depth-- }()
	e := p.or()
	for p.word("if") {
		c := choice{then: e, of: p.or(), line: p.now().line}
		if p.word("else") {
			c.otherwise = p.expression()
		}
		e = c
	}
	return e
}

func (p *parser) or() expression {
	e := p.and()
	for p.word("or") {
		e = either{e, p.and(), true, p.now().line}
	}
	return e
}

func (p *parser) and() expression {
	e := p.not()
	for p.word("and") {
		e = either{e, p.not(), false, p.now().line}
	}
	return e
}

func (p *parser) not() expression {
	if p.word("not") {
		p.deeper()
		defer func() { p.depth-- }()
		return negation{p.not()}
	}
	return p.comparison()
}

func (p *parser) comparison() expression {
	e := p.sum()
	var c *comparison
	for {
		t := p.now()
		op := t.text
		switch {
		case t.kind == operator && slices.Contains([]string{"==", "!=", ">", ">=", "<", "<="}, op):
			p.next()
		case t.kind == name && op == "in":
			p.next()
		case t.kind == name && op == "not" && p.tokens[p.at+1].kind == name && p.tokens[p.at+1].text == "in":
			p.next()
			p.next()
			op = "not in"
		default:
			if c == nil {
				return e
			}
			return *c
		}
		if c == nil {
			c = &comparison{first: e, line: t.line}
		}
		c.operators, c.others = append(c.operators, op), append(c.others, p.sum())
	}
}

// calculations reads values with operators between them, the first of which are worked out first.
func (p *parser) calculations(part func() expression, operators ...string) expression {
	e := part()
	for {
		t := p.now()
		if t.kind != operator || !slices.Contains(operators, t.text) {
			return e
		}
		p.next()
		e = calculation{t.text, e, part(), t.line}
	}
}

func (p *parser) sum() expression { return p.calculations(p.joined, "+", "-") }

func (p *parser) joined() expression { return p.calculations(p.product, "~") }

func (p *parser) product() expression {
	return p.calculations(func() expression { return p.unary(true) }, "*", "//", "%")
}

func (p *parser) unary(filters bool) expression {
	t := p.now()
	var e expression
	if p.operator("-") {
		p.deeper()
		e = calculation{"-", constant{int64(0)}, p.unary(false), t.line}
		p.depth--
	} else {
		e = p.postfix(p.primary())
	}
	for filters {
		t := p.now()
		switch {
		case p.operator("|"):
			f := filter{of: e, name: p.need(name, "").text, line: t.line}
			if p.operator("(") {
				f.arguments = p.arguments()
			}
			e = f
		case p.word("is"):
			c := check{of: e, line: t.line}
			c.not = p.word("not")
			c.name = p.need(name, "").text
			switch n := p.now(); {
			case p.operator("("):
				c.arguments = p.arguments()
			case n.kind == number || n.kind == quoted || n.kind == name && !slices.Contains([]string{"else", "or", "and", "is", "if", "not", "in"}, n.text):
				c.arguments = []argument{{value: p.postfix(p.primary())}}
			}
			e = c
		default:
			return e
		}
	}
	return e
}

func (p *parser) primary() expression {
	t := p.next()
	switch t.kind {
	case name:
		switch t.text {
		case "true", "True":
			return constant{true}
		case "false", "False":
			return constant{false}
		case "none", "None":
			return constant{nil}
		}
		return variable{t.text, t.line}
	case number:
		n, err := strconv.ParseInt(t.text, 10, 32)
		if err != nil {
			refuse(t.line, "the number %s", t.text)
		}
		return constant{n}
	case quoted:
		parts := []string{t.text}
		for p.now().kind == quoted { // strings side by side are one
			parts = append(parts, p.next().text)
		}
		return constant{strings.Join(parts, "")}
	case operator:
		switch t.text {
		case "(":
			return p.bracketed()
		case "[":
			return list{p.items("]"), t.line}
		case "{":
			return p.mapping()
		}
	}
	refuse(t.line, "an unexpected %s", t)
	return nil
}

// bracketed reads what stands in round brackets: an expression, or a tuple.
func (p *parser) bracketed() expression {
	if p.operator(")") {
		return list{}
	}
	e := p.expression()
	if p.operator(",") {
		return list{append([]expression{e}, p.items(")")...), p.now().line}
	}
	p.need(operator, ")")
	return e
}

func (p *parser) items(end string) (items []expression) {
	for !p.operator(end) {
		items = append(items, p.expression())
		if !p.operator(",") {
			p.need(operator, end)
			break
		}
	}
	return items
}

func (p *parser) mapping() expression {
	m := mapping{line: p.now().line}
	for !p.operator("}") {
		m.keys = append(m.keys, p.expression())
		p.need(operator, ":")
		m.values = append(m.values, p.expression())
		if !p.operator(",") {
			p.need(operator, "}")
			break
		}
	}
	return m
}

// arguments reads those of a call, behind its bracket.
func (p *parser) arguments() (list []argument) {
	for !p.operator(")") {
		if t := p.now(); t.kind == operator && (t.text == "*" || t.text == "**") {
			refuse(t.line, "arguments of a list")
		}
		a := argument{}
		if p.now().kind == name && p.tokens[p.at+1].kind == operator && p.tokens[p.at+1].text == "=" {
			a.name = p.next().text
			p.next()
		}
		a.value = p.expression()
		list = append(list, a)
		if !p.operator(",") {
			p.need(operator, ")")
			break
		}
	}
	return list
}

// postfix reads what stands behind a value: attributes, items, calls.
func (p *parser) postfix(e expression) expression {
	for {
		t := p.now()
		switch {
		case p.operator("."):
			n := p.next()
			switch n.kind {
			case name:
				e = attribute{e, n.text, t.line}
			case number:
				i, _ := strconv.ParseInt(n.text, 10, 32)
				e = item{e, constant{i}, t.line}
			default:
				refuse(n.line, "an unexpected %s", n)
			}
		case p.operator("["):
			e = p.subscript(e, t.line)
		case p.operator("("):
			e = call{e, p.arguments(), t.line}
		default:
			return e
		}
	}
}

// subscript reads an item, or a slice.
func (p *parser) subscript(of expression, line int) expression {
	var parts [3]expression
	colons := 0
	for !p.operator("]") {
		switch {
		case p.operator(":"):
			if colons++; colons > 2 {
				refuse(line, "a slice of more than three")
			}
		case parts[colons] != nil:
			refuse(line, "an unexpected %s", p.now())
		default:
			parts[colons] = p.expression()
		}
	}
	if colons > 0 {
		return slice{of, parts, line}
	}
	if parts[0] == nil {
		refuse(line, "an item without a name")
	}
	return item{of, parts[0], line}
}
