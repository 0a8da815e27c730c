package chat

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is what a token of a template is.
type kind int

const (
	endOfTemplate kind = iota
	text               // what stands outside of tags
	beginPrint         // {{
	endPrint           // }}
	beginTag           // {%
	endTag             // %}
	name
	number
	quoted
	operator
)

// token is one token of a template: its text, of a quoted one what it stands for.
type token struct {
	kind kind
	text string
	line int
}

// String is the token as messages name it.
func (t token) String() string {
	switch t.kind {
	case endOfTemplate:
		return "end of the template"
	case quoted:
		return "string " + strconv.Quote(t.text)
	}
	return strconv.Quote(t.text)
}

// lexer takes a template apart as Jinja does with trim_blocks and lstrip_blocks, as servers have
// them: the line break behind a tag is no part of the text, nor is what indents a tag.
type lexer struct {
	source string
	at     int
	line   int
	begun  bool // the text that follows begins a line
	tokens []token
}

// mostSource bounds a template, in bytes: the longest known ones have some tens of thousands.
const mostSource = 1 << 20

// longestName bounds a name in it: each use looks it up.
const longestName = 200

// lex gives the tokens of a template.
func lex(source string) ([]token, error) {
	if len(source) > mostSource {
		return nil, fmt.Errorf("it is over %d MiB long", mostSource>>20)
	}
	source = strings.TrimSuffix(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(source), "\n")
	x := &lexer{source: source, line: 1, begun: true}
	for x.at < len(x.source) {
		if err := x.part(); err != nil {
			return nil, err
		}
	}
	x.add(endOfTemplate, "")
	return x.tokens, nil
}

func (x *lexer) add(k kind, text string) {
	if k != endOfTemplate && text == "" && k != quoted {
		return
	}
	x.tokens = append(x.tokens, token{k, text, x.line})
}

// take goes on by n bytes.
func (x *lexer) take(n int) string {
	s := x.source[x.at : x.at+n]
	x.at += n
	x.line += strings.Count(s, "\n")
	return s
}

// part reads text and the tag behind it.
func (x *lexer) part() error {
	rest := x.source[x.at:]
	begin := tagBegin(rest)
	plain := rest[:begin]
	if begin == len(rest) {
		x.add(text, x.take(begin))
		return nil
	}
	mark, sign := rest[begin:begin+2], byte(0)
	if begin+2 < len(rest) {
		sign = rest[begin+2]
	}
	shown := plain
	switch lineBegin := strings.LastIndexByte(plain, '\n') + 1; {
	case sign == '-':
		shown = strings.TrimRightFunc(plain, unicode.IsSpace)
	case sign != '+' && mark != "{{" && (lineBegin > 0 || x.begun) && strings.TrimSpace(plain[lineBegin:]) == "":
		shown = plain[:lineBegin]
	}
	x.add(text, shown)
	x.take(begin + 2)
	if sign == '-' || sign == '+' {
		x.take(1)
	}
	switch mark {
	case "{#":
		end := strings.Index(x.source[x.at:], "#}")
		if end < 0 {
			return fmt.Errorf("line %d: a comment has no end", x.line)
		}
		hard := end > 0 && x.source[x.at+end-1] == '-'
		soft := end > 0 && x.source[x.at+end-1] == '+'
		x.take(end + 2)
		x.behind(hard, !soft)
		return nil
	case "{%":
		x.tokens = append(x.tokens, token{beginTag, mark, x.line})
		return x.inside("%}", endTag)
	}
	x.tokens = append(x.tokens, token{beginPrint, mark, x.line})
	return x.inside("}}", endPrint)
}

// tagBegin is where the first tag of s begins, the length of s where there is none.
func tagBegin(s string) int {
	for at := 0; ; at++ {
		i := strings.IndexByte(s[at:], '{')
		if i < 0 {
			return len(s)
		}
		if at += i; at+1 < len(s) && strings.IndexByte("{%#", s[at+1]) >= 0 {
			return at
		}
	}
}

// behind leaves out what follows a tag: all whitespace, or a line break.
func (x *lexer) behind(all, lineBreak bool) {
	rest := x.source[x.at:]
	x.begun = false
	switch {
	case all:
		x.take(len(rest) - len(strings.TrimLeftFunc(rest, unicode.IsSpace)))
		x.begun = strings.HasSuffix(x.source[:x.at], "\n")
	case lineBreak && strings.HasPrefix(rest, "\n"):
		x.take(1)
		x.begun = true
	}
}

// inside reads what stands in a tag, to its end.
func (x *lexer) inside(end string, k kind) error {
	var open []byte // brackets
	for x.at < len(x.source) {
		rest := x.source[x.at:]
		c := rest[0]
		if len(open) == 0 {
			for _, sign := range []string{"", "-", "+"} {
				if strings.HasPrefix(rest, sign+end) {
					x.take(len(sign + end))
					x.tokens = append(x.tokens, token{k, end, x.line})
					x.behind(sign == "-", sign == "" && k == endTag)
					return nil
				}
			}
		}
		switch {
		case c == ' ' || c == '\t' || c == '\n':
			x.take(1)
		case c == '\'' || c == '"':
			s, n, err := unquote(rest)
			if err != nil {
				return fmt.Errorf("line %d: %w", x.line, err)
			}
			x.tokens = append(x.tokens, token{quoted, s, x.line})
			x.take(n)
		case c == '_' || c >= utf8.RuneSelf || 'a' <= c|0x20 && c|0x20 <= 'z':
			n := strings.IndexFunc(rest, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
			if n < 0 {
				n = len(rest)
			}
			if n == 0 {
				return fmt.Errorf("line %d: an unknown sign %q", x.line, firstOf(rest))
			}
			if n > longestName {
				return fmt.Errorf("line %d: a name of %d letters", x.line, n)
			}
			x.add(name, x.take(n))
		case '0' <= c && c <= '9':
			n := len(rest) - len(strings.TrimLeft(rest, "0123456789_"))
			if n+1 < len(rest) && rest[n] == '.' && '0' <= rest[n+1] && rest[n+1] <= '9' {
				return fmt.Errorf("line %d: a number with a fraction", x.line)
			}
			x.add(number, strings.ReplaceAll(x.take(n), "_", ""))
		default:
			sign := ""
			for _, s := range []string{"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ","} {
				if strings.HasPrefix(rest, s) {
					sign = s
					break
				}
			}
			switch sign {
			case "":
				return fmt.Errorf("line %d: an unknown sign %q", x.line, firstOf(rest))
			case "(", "[", "{":
				open = append(open, c)
			case ")", "]", "}":
				if len(open) == 0 || open[len(open)-1] != map[string]byte{")": '(', "]": '[', "}": '{'}[sign] {
					return fmt.Errorf("line %d: an unexpected %q", x.line, sign)
				}
				open = open[:len(open)-1]
			}
			x.add(operator, x.take(len(sign)))
		}
	}
	return fmt.Errorf("line %d: a tag has no end", x.line)
}

func firstOf(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return s[:n]
}

// unquote reads the string that s begins with, and gives how many bytes it takes there.
func unquote(s string) (text string, n int, err error) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == s[0]:
			return b.String(), i + 1, nil
		case c != '\\' || i+1 == len(s):
			b.WriteByte(c)
		default:
			i++
			short := strings.IndexByte(`ntr\'"bfav`, s[i])
			long := strings.IndexByte("xuU", s[i])
			switch {
			case s[i] == '\n': // a line that goes on
			case short >= 0:
				b.WriteByte("\n\t\r\\'\"\b\f\a\v"[short])
			case long >= 0:
				digits := 2 << long
				if i+digits >= len(s) {
					return "", 0, fmt.Errorf("a string has no end")
				}
				r, err := strconv.ParseUint(s[i+1:i+1+digits], 16, 32)
				if err != nil || r > unicode.MaxRune {
					return "", 0, fmt.Errorf("a string has the escape %q", s[i-1:i+1+digits])
				}
				b.WriteRune(rune(r))
				i += digits
			case '0' <= s[i] && s[i] <= '7' || s[i] == 'N':
				return "", 0, fmt.Errorf("a string has the escape %q", s[i-1:i+1])
			default:
				b.WriteByte('\\')
				b.WriteByte(s[i])
			}
		}
	}
	return "", 0, fmt.Errorf("a string has no end")
}
