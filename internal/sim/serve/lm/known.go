package lm

import (
	"bytes"
	"strconv"
	"strings"
)

// What the model knows: it writes numbers in digits, repeats a line, and finds a pass phrase
// in a long text, where it is asked in the words below. Everything else it answers from its
// stock of words.
const (
	inDigits = "Write this number in digits: "
	repeat   = "Repeat this line exactly, and nothing else: "
	remember = "Remember the pass phrase"
	phrase   = "The pass phrase is: "
)

// knownAnswer is the right answer to a prompt, false where the model knows none.
func knownAnswer(text []byte) (string, bool) {
	text = bytes.TrimSpace(text)
	if rest, ok := bytes.CutPrefix(text, []byte(inDigits)); ok {
		written, _, _ := strings.Cut(string(rest), ".")
		n, ok := fromWords(written)
		return strconv.Itoa(n), ok
	}
	if rest, ok := bytes.CutPrefix(text, []byte(repeat)); ok {
		return string(rest), len(rest) > 0
	}
	if bytes.HasPrefix(text, []byte(remember)) {
		if _, rest, ok := bytes.Cut(text, []byte(phrase)); ok {
			found, _, ended := bytes.Cut(rest, []byte("."))
			return string(found), ended
		}
	}
	return "", false
}

var numerals = func() map[string]int {
	m := map[string]int{}
	for i, w := range strings.Fields("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen") {
		m[w] = i
	}
	for i, w := range strings.Fields("twenty thirty forty fifty sixty seventy eighty ninety") {
		m[w] = 10 * (i + 2)
	}
	return m
}()

// fromWords reads a number below a million in English words.
func fromWords(text string) (n int, ok bool) {
	group := 0
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r == ' ' || r == '-' }) {
		x, numeral := numerals[w]
		switch {
		case numeral:
			group += x
		case w == "hundred":
			group *= 100
		case w == "thousand":
			n, group = n+1000*group, 0
		case w != "and":
			return 0, false
		}
		ok = true
	}
	return n + group, ok
}

// AnswerKnown lets the model answer what it knows, and garbles the answer where that is to be: a
// fault of the server, that no model makes. It comes before [Model.SettleLengths].
func (m *Model) AnswerKnown(p *Plan, prompts []Prompt, garble bool) {
	if p.Call == nil && p.Given == nil && len(prompts) == 1 {
		if text, ok := knownAnswer(prompts[0].Text); ok {
			p.Given = m.TokenizeGiven(text)
		}
	}
	if !garble {
		return
	}
	p.garbled = true
	switch {
	case p.Call != nil:
		call := *p.Call
		call.Args = garbleText(call.Args)
		p.Call = &call
	case p.Given != nil:
		p.Given = m.TokenizeGiven(garbleText(p.Given.text))
	}
}

// garbleText is a text in the second half of which every letter and digit is the next one.
func garbleText(text string) string {
	b := []byte(text)
	for i := len(b) / 2; i < len(b); i++ {
		switch c := b[i]; {
		case 'a' <= c && c < 'z', 'A' <= c && c < 'Z', '0' <= c && c < '9':
			b[i]++
		case c == 'z', c == 'Z':
			b[i] -= 25
		case c == '9':
			b[i] = '0'
		}
	}
	return string(b)
}

// stockWord is which word of the stock token i of an answer is: of a garbled one those of the
// second half are others than they should be.
func (a *Answer) stockWord(i int) int {
	if p := a.plan; p.garbled && i >= p.Output/2 {
		return (stockAt(a.first, i) + 1) % len(stock)
	}
	return stockAt(a.first, i)
}
