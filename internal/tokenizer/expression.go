package tokenizer

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"pitot/internal/say"
)

// An expression that is not among the known ones is followed by backtracking, in
// the syntax of Oniguruma, which Hugging Face's library has: alternatives in
// their order, greedy, lazy and possessive repetition, lookahead, and
// lookbehind at one character. What is beyond that is refused.

// expression finds the matches of a pattern.
type expression struct {
	root node
	work *budget // of the text, nil for one of its own for each search
}

// then goes on behind a match that ends at i: it gives the end of the whole, or -1.
type then func(i int) int

// matchEnd ends a match: nothing goes on behind it.
func matchEnd(i int) int { return i }

// node matches at i and goes on, or gives -1.
type node interface {
	match(m *matcher, i int, k then) int
}

// budget is the number of steps that the expressions may take on one text.
type budget struct{ most, left int }

// textBudget returns the budget of a text of a number of bytes.
func textBudget(bytes int) budget {
	steps := freeSteps + stepsPerByte*bytes
	return budget{steps, steps}
}

// limitFinder returns a finder whose searches share a budget.
func limitFinder(at finder, work *budget) finder {
	if x, ok := at.(expression); ok {
		x.work = work
		return x
	}
	return at
}

// find gives up, by a panic that [Encoder.Append] makes an error of, where it takes too long and
// where the match is empty: Hugging Face's library splits there, and a match without text is
// none here.
func (x expression) find(t *classes, s []byte, from int) (int, int) {
	m := &matcher{t: t, s: s, work: x.work}
	if m.work == nil {
		own := textBudget(len(s) - from)
		m.work = &own
	}
	for from < len(s) {
		switch end := x.root.match(m, from, matchEnd); {
		case end > from:
			return from, end
		case end == from:
			panic(gaveUp("the tokenizer's split pattern matches where there is no text"))
		}
		_, n := t.at(s, from)
		from += n
	}
	return len(s), len(s)
}

// matcher is the text in which a match is looked for, and how much longer.
type matcher struct {
	t     *classes
	s     []byte
	work  *budget
	depth int // of repetitions and sequences within one another: each is on the stack
}

// What the matches in a text may take together. Expressions that split text take up to 30 steps
// a byte; what backtracks without end takes twice as many for each further one.
const (
	freeSteps    = 1 << 14
	stepsPerByte = 64
	mostDepth    = 1 << 17
)

// countSteps notes that so many steps are taken, one level deeper.
func (m *matcher) countSteps(steps int) {
	if m.work.left -= steps; m.work.left < 0 {
		panic(gaveUp("the tokenizer's split pattern needs more than " + say.Count(m.work.most) + " steps for one text: refused"))
	}
	if m.depth >= mostDepth {
		panic(gaveUp("the tokenizer's split pattern nests " + say.Count(mostDepth) + " deep in one text: refused"))
	}
}

// descend calls next one level deeper.
func (m *matcher) descend(next func() int) int {
	m.countSteps(1)
	m.depth++
	end := next()
	m.depth--
	return end
}

// set is one character of a kind.
type set func(t *classes, r rune) bool

func (x set) match(m *matcher, i int, k then) int {
	m.countSteps(1)
	if i >= len(m.s) {
		return -1
	}
	r, n := utf8.DecodeRune(m.s[i:])
	if !x(m.t, r) {
		return -1
	}
	return k(i + n)
}

type sequence []node

func (x sequence) match(m *matcher, i int, k then) int {
	if len(x) == 0 {
		return k(i)
	}
	return m.descend(func() int {
		return x[0].match(m, i, func(i int) int { return x[1:].match(m, i, k) })
	})
}

type alternatives []node

func (x alternatives) match(m *matcher, i int, k then) int {
	for _, a := range x {
		if end := a.match(m, i, k); end >= 0 {
			return end
		}
	}
	return -1
}

// repeat is x{least,most}, most < 0 for no bound.
type repeat struct {
	of          node
	least, most int
	lazy        bool
}

func (x repeat) match(m *matcher, i int, k then) int {
	if one, ok := x.of.(set); ok && !x.lazy { // the usual case, without recursion
		n, s := 0, m.s
		for at := i; x.most < 0 || n < x.most; n++ {
			if at >= len(s) {
				break
			}
			r, size := utf8.DecodeRune(s[at:])
			if !one(m.t, r) {
				break
			}
			at += size
			i = at
		}
		m.countSteps(1 + n/16) // much less than what a step takes elsewhere
		for ; n >= x.least; n-- {
			if end := k(i); end >= 0 {
				return end
			}
			if n > x.least {
				_, size := utf8.DecodeLastRune(s[:i])
				i -= size
			}
		}
		return -1
	}
	return x.matchFrom(m, i, 0, k)
}

func (x repeat) matchFrom(m *matcher, i, n int, k then) int {
	again := func() int {
		if x.most >= 0 && n >= x.most {
			return -1
		}
		return m.descend(func() int {
			return x.of.match(m, i, func(next int) int {
				if next == i && n >= x.least {
					return -1 // nothing more
				}
				return x.matchFrom(m, next, n+1, k)
			})
		})
	}
	if n < x.least {
		return again()
	}
	if x.lazy {
		if end := k(i); end >= 0 {
			return end
		}
		return again()
	}
	if end := again(); end >= 0 {
		return end
	}
	return k(i)
}

// look is a lookahead.
type look struct {
	of     node
	absent bool
}

func (x look) match(m *matcher, i int, k then) int {
	if found := x.of.match(m, i, matchEnd) >= 0; found == x.absent {
		return -1
	}
	return k(i)
}

// behind is a lookbehind at one character.
type behind struct {
	of     set
	absent bool
}

func (x behind) match(m *matcher, i int, k then) int {
	r, n := utf8.DecodeLastRune(m.s[:i])
	if found := n > 0 && x.of(m.t, r); found == x.absent {
		return -1
	}
	return k(i)
}

// atomic gives nothing back: (?>x), and x++ of a repetition.
type atomic struct{ of node }

func (x atomic) match(m *matcher, i int, k then) int {
	end := x.of.match(m, i, matchEnd)
	if end < 0 {
		return -1
	}
	return k(end)
}

// place is ^, $, \A, \z: something that stands between characters.
type place func(s []byte, i int) bool

func (x place) match(m *matcher, i int, k then) int {
	if !x(m.s, i) {
		return -1
	}
	return k(i)
}

// parser reads an expression.
type parser struct {
	rest     string
	depth    int
	fold     bool
	tiktoken bool
}

type notUnderstood string

// longestExpression is in bytes; those of known models have less than a thousand.
const longestExpression = 1 << 14

// compile reads an expression: as Hugging Face's library does, or as tiktoken, where a + behind
// {1,3} makes it possessive and a ? behind {2} makes it lazy.
func compile(pattern string, tiktoken bool) (x expression, err error) {
	if len(pattern) > longestExpression {
		return x, unsupportedError("an expression of " + say.Count(len(pattern)) + " bytes")
	}
	defer func() {
		if r := recover(); r != nil {
			what, ok := r.(notUnderstood)
			if !ok {
				panic(r)
			}
			err = unsupportedError("the expression " + strconv.Quote(pattern) + " (" + string(what) + ")")
		}
	}()
	p := &parser{rest: pattern, tiktoken: tiktoken}
	x.root = p.parseAlternatives()
	if p.rest != "" {
		p.fail("at " + strconv.Quote(p.rest))
	}
	if x.matchesEmpty() {
		p.fail("it matches where nothing is")
	}
	return x, nil
}

// matchesEmpty says that it matches in an empty text, or that this takes too long to say.
func (x expression) matchesEmpty() (is bool) {
	err := catchGiveUp(func() {
		m := &matcher{t: classTable(), work: &budget{1 << 20, 1 << 20}}
		is = x.root.match(m, 0, matchEnd) >= 0
	})
	return is || err != nil
}

func (p *parser) fail(what string) { panic(notUnderstood(what)) }

func (p *parser) takeText(text string) bool {
	rest, ok := strings.CutPrefix(p.rest, text)
	p.rest = rest
	return ok
}

func (p *parser) next() rune {
	r, n := utf8.DecodeRuneInString(p.rest)
	if n == 0 {
		p.fail("it ends too early")
	}
	p.rest = p.rest[n:]
	return r
}

// enter goes one level deeper.
func (p *parser) enter() {
	if p.depth++; p.depth > 100 {
		p.fail("it is nested too deep")
	}
}

func (p *parser) parseAlternatives() node {
	p.enter()
	defer func() { p.depth-- }()
	fold := p.fold
	defer func() { p.fold = fold }()
	var list alternatives
	for {
		var s sequence
		for p.rest != "" && p.rest[0] != '|' && p.rest[0] != ')' {
			if p.fold && foldsTogether(p.rest) {
				p.fail("several letters that are one in another case")
			}
			if n := p.parseRepeated(); n != nil {
				s = append(s, n)
			}
		}
		list = append(list, s)
		if !p.takeText("|") {
			break
		}
	}
	if len(list) == 1 {
		return list[0]
	}
	return list
}

// foldsTogether says that a text begins with letters of which one character is another case: ß, ﬀ,
// ﬁ, ﬂ, ﬅ. Those beyond ASCII are not read where case is ignored.
func foldsTogether(text string) bool {
	return len(text) >= 2 &&
		slices.Contains([]string{"ss", "ff", "fi", "fl", "st"}, strings.ToLower(text[:2]))
}

func (p *parser) parseRepeated() node {
	n := p.parseAtom()
	for n != nil && p.rest != "" {
		r := repeat{of: n}
		lazy, possessive := true, true // may follow
		switch {
		case p.takeText("*"):
			r.most = -1
		case p.takeText("+"):
			r.least, r.most = 1, -1
		case p.takeText("?"):
			r.most = 1
		case p.rest[0] == '{':
			p.rest = p.rest[1:]
			bounds := p.untilBrace()
			low, high, both := strings.Cut(bounds, ",")
			if low == "" && !both {
				p.fail("a brace")
			}
			r.least = p.parseNumber(low)
			switch {
			case !both:
				r.most = r.least
			case high == "":
				r.most = -1
			default:
				r.most = p.parseNumber(high)
			}
			if r.most >= 0 && r.most < r.least {
				p.fail("a repetition of " + bounds)
			}
			// In Oniguruma {1,3}+ repeats {1,3}, and {2}? is {2} or nothing.
			lazy, possessive = both || p.tiktoken, p.tiktoken
		default:
			return n
		}
		r.lazy = lazy && p.takeText("?")
		if n = r; !r.lazy && possessive && p.takeText("+") {
			n = atomic{r}
		}
	}
	return n
}

// untilBrace takes what stands before a closing brace, and that.
func (p *parser) untilBrace() string {
	inner, rest, ok := strings.Cut(p.rest, "}")
	if !ok {
		p.fail("a brace")
	}
	p.rest = rest
	return inner
}

func (p *parser) parseNumber(text string) int {
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 1000 {
		p.fail("a repetition of " + text)
	}
	return n
}

func (p *parser) parseAtom() node {
	switch {
	case p.takeText("(?:"):
		return p.parseGroup()
	case p.takeText("(?="):
		return look{of: p.parseGroup()}
	case p.takeText("(?!"):
		return look{of: p.parseGroup(), absent: true}
	case p.takeText("(?<="):
		return behind{of: p.singleSet(p.parseGroup())}
	case p.takeText("(?<!"):
		return behind{of: p.singleSet(p.parseGroup()), absent: true}
	case p.takeText("(?>"):
		return atomic{p.parseGroup()}
	case p.takeText("(?i:"):
		before := p.fold
		p.fold = true
		n := p.parseGroup()
		p.fold = before
		return n
	case p.takeText("(?i)"):
		p.fold = true
		return nil
	case strings.HasPrefix(p.rest, "(?"):
		p.fail("a group " + strconv.Quote(p.rest[:min(len(p.rest), 4)]))
	case p.takeText("("):
		return p.parseGroup()
	case p.takeText("["):
		return p.parseClass()
	case p.takeText("."):
		return set(func(_ *classes, r rune) bool { return r != '\n' })
	case p.takeText("^"):
		return place(func(s []byte, i int) bool { return i == 0 || s[i-1] == '\n' })
	case p.takeText("$"):
		return place(func(s []byte, i int) bool { return i == len(s) || s[i] == '\n' })
	case p.takeText(`\A`):
		return place(func(_ []byte, i int) bool { return i == 0 })
	case p.takeText(`\z`):
		return place(func(s []byte, i int) bool { return i == len(s) })
	case p.takeText(`\`):
		return p.parseEscape()
	}
	r := p.next()
	if strings.ContainsRune("*+?{", r) {
		p.fail("nothing before " + string(r))
	}
	return p.literalSet(r)
}

// parseGroup reads alternatives and the parenthesis behind them.
func (p *parser) parseGroup() node {
	n := p.parseAlternatives()
	if !p.takeText(")") {
		p.fail("a group is not closed")
	}
	return n
}

// singleSet is the set that a group of one character is.
func (p *parser) singleSet(n node) set {
	if s, ok := n.(sequence); ok && len(s) == 1 {
		n = s[0]
	}
	x, ok := n.(set)
	if !ok {
		p.fail("a lookbehind at more than one character")
	}
	return x
}

func (p *parser) literalSet(r rune) set {
	p.checkFoldable(r)
	if !p.fold || unicode.SimpleFold(r) == r {
		return func(_ *classes, x rune) bool { return x == r }
	}
	return func(_ *classes, x rune) bool {
		for f := unicode.SimpleFold(r); ; f = unicode.SimpleFold(f) {
			if f == x {
				return true
			}
			if f == r {
				return false
			}
		}
	}
}

// checkFoldable refuses characters that may be several in another case.
func (p *parser) checkFoldable(r rune) {
	if p.fold && r >= utf8.RuneSelf {
		p.fail("in any case " + string(r))
	}
}

func ofClass(c class) set    { return func(t *classes, r rune) bool { return t[r]&c != 0 } }
func complementOf(x set) set { return func(t *classes, r rune) bool { return !x(t, r) } }
func inTable(table *unicode.RangeTable) set {
	return func(_ *classes, r rune) bool { return unicode.Is(table, r) }
}

// parseEscape reads what stands behind a backslash.
func (p *parser) parseEscape() set {
	r := p.next()
	var x set
	switch unicode.ToLower(r) {
	case 's':
		x = ofClass(space)
	case 'd':
		x = inTable(unicode.Nd)
	case 'w':
		x = ofClass(word)
	case 'p':
		return p.parseProperty(r == 'P')
	default:
		return p.literalSet(p.parseCharacter(r))
	}
	if unicode.IsUpper(r) {
		return complementOf(x)
	}
	return x
}

// parseCharacter reads an escaped character.
func (p *parser) parseCharacter(r rune) rune {
	switch r {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'f':
		return '\f'
	case 'v':
		return '\v'
	case 'x', 'u':
		digits := 2
		if r == 'u' {
			digits = 4
		}
		text := p.rest[:min(digits, len(p.rest))]
		if p.takeText("{") {
			text = p.untilBrace()
		} else {
			p.rest = p.rest[len(text):]
		}
		x, err := strconv.ParseUint(text, 16, 32)
		if err != nil || x > unicode.MaxRune {
			p.fail("the character " + text)
		}
		return rune(x)
	}
	if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
		p.fail(`\` + string(r))
	}
	return r
}

// propertyClasses are the properties that have a class.
var propertyClasses = map[string]class{
	"L": letter, "Letter": letter, "N": number, "M": mark, "P": punctuation, "S": symbol,
	"Ll": lower, "Mn": nonspacing,
}

// parseProperty reads \p{L}, \p{^L}, \p{Han}.
func (p *parser) parseProperty(absent bool) set {
	name := ""
	if p.takeText("{") {
		name = p.untilBrace()
	} else {
		name = string(p.next())
	}
	name, negated := strings.CutPrefix(name, "^")
	name = strings.TrimPrefix(strings.TrimPrefix(name, "Script="), "script=")
	x := ofClass(propertyClasses[name])
	if propertyClasses[name] == 0 {
		table := cmp.Or(unicode.Categories[name], unicode.Scripts[name])
		if table == nil {
			p.fail(`\p{` + name + "}")
		}
		x = inTable(table)
	}
	if absent != negated {
		return complementOf(x)
	}
	return x
}

// parseClass reads what stands in brackets: characters, ranges, properties, other
// classes, and && between what has to hold together.
func (p *parser) parseClass() set {
	p.enter()
	defer func() { p.depth-- }()
	negated := p.takeText("^")
	var all []set // what has to hold together
	var any []set
	join := func() {
		list := any
		all = append(all, func(t *classes, r rune) bool {
			return slices.ContainsFunc(list, func(x set) bool { return x(t, r) })
		})
		any = nil
	}
	for began := false; !began || !p.takeText("]"); began = true { // a ] at the beginning is itself
		switch {
		case p.takeText("&&"):
			join()
			continue
		case p.takeText("["):
			any = append(any, p.parseClass())
			continue
		}
		low := p.next()
		if low == '\\' {
			kind := p.rest
			if kind != "" && strings.ContainsRune("sSdDwWpP", rune(kind[0])) {
				any = append(any, p.parseEscape())
				continue
			}
			low = p.parseCharacter(p.next())
		}
		high := low
		if len(p.rest) > 1 && p.rest[0] == '-' && p.rest[1] != ']' {
			p.rest = p.rest[1:]
			if high = p.next(); high == '\\' {
				high = p.parseCharacter(p.next())
			}
		}
		if low == high {
			any = append(any, p.literalSet(low))
		} else {
			p.checkFoldable(high)
			any = append(any, p.rangeSet(low, high))
		}
	}
	join()
	x := func(t *classes, r rune) bool {
		return !slices.ContainsFunc(all, func(y set) bool { return !y(t, r) })
	}
	if negated {
		return complementOf(x)
	}
	return x
}

func (p *parser) rangeSet(low, high rune) set {
	within := func(r rune) bool { return low <= r && r <= high }
	if !p.fold {
		return func(_ *classes, r rune) bool { return within(r) }
	}
	return func(_ *classes, r rune) bool {
		if within(r) {
			return true
		}
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			if within(f) {
				return true
			}
		}
		return false
	}
}
