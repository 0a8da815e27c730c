package example

import (
	"regexp/syntax"
	"strings"
	"unicode"
)

// OfPattern gives a short text that a regular expression matches as a whole:
// the first of what it lets choose from. An error says what of it is not
// understood.
func OfPattern(pattern string) (string, error) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	appendMatching(&b, re)
	return b.String(), nil
}

// maxMatching bounds the text that repetitions inside each other can ask for.
const maxMatching = 1 << 12

func appendMatching(b *strings.Builder, re *syntax.Regexp) {
	if b.Len() > maxMatching {
		return
	}
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		b.WriteRune(readableRune(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('a')
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			appendMatching(b, sub)
		}
	case syntax.OpAlternate:
		appendMatching(b, re.Sub[0])
	case syntax.OpPlus, syntax.OpStar, syntax.OpQuest:
		appendMatching(b, re.Sub[0])
	case syntax.OpRepeat:
		n := max(re.Min, 1)
		if re.Max >= 0 {
			n = min(n, re.Max)
		}
		for range n {
			appendMatching(b, re.Sub[0])
		}
	}
}

// readableRune is a character of a class given as pairs of limits: a letter or a
// digit if there is one.
func readableRune(class []rune) rune {
	for _, want := range []rune{'a', '1', 'A'} {
		for i := 0; i+1 < len(class); i += 2 {
			if class[i] <= want && want <= class[i+1] {
				return want
			}
		}
	}
	for i := 0; i+1 < len(class); i += 2 {
		if unicode.IsLetter(class[i]) || unicode.IsDigit(class[i]) {
			return class[i]
		}
	}
	if len(class) == 0 {
		return 'a'
	}
	return class[0]
}
