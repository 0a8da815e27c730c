package tokenizer

// The expressions that known models split text with, by hand: Go's regexp has
// no lookahead, and what is written for one expression is much faster. Each is
// known by its text, to the letter; their order of alternatives and their
// backtracking are followed, so that the pieces are the same.

// scanner gives the end of the piece that begins at i, or i where none does.
type scanner func(t *classes, s []byte, i int) int

// The tails that nearly all of them have: \s+(?!\S)|\s+ and, before it, lines.
const (
	wordsOfGPT2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

	suffixes = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	linesEnd = `|\s*[\r\n]+|\s+(?!\S)|\s+`
	capitals = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`
	mixed    = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`
)

// knownScanners are the known expressions by their text.
func knownScanners() map[string]scanner {
	llama3 := lines{word: letter, digits: 3}.scan
	qwen2 := lines{word: letter, digits: 1}.scan
	marks := lines{word: letter | mark, digits: 1}.scan
	o200k := cased{digits: 3, suffix: true}.scan
	tekken := cased{digits: 1}.scan
	return map[string]scanner{
		wordsOfGPT2: matchGPT2,
		`'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`:         matchGPT2,
		`'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s`: matchGPT2,

		suffixes + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + linesEnd:                               llama3,
		`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + linesEnd:                     llama3,
		`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*` + `|\s*[\r\n]|\s+(?!\S)|\s+`: llama3,
		suffixes + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*` + linesEnd:                                    qwen2,
		suffixes + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*` + linesEnd:                        marks,
		capitals + suffixes + `?|` + mixed + suffixes + `?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + linesEnd:                 o200k,
		capitals + `|` + mixed + `|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + linesEnd:                                              tekken,
		` {2,}`:        severalSpaces,
		`\p{N}{1,3}`:   threeDigits,
		`[一-龥぀-ゟ゠-ヿ]+`: matchChinese,
		"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+": matchDeepSeek,
	}
}

// cl100k is tiktoken's own expression of cl100k_base. It is not among the others: in a
// tokenizer.json its {1,3}+ is a run of numbers of any length.
const cl100k = `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`

func scanCL100k(t *classes, s []byte, i int) int {
	return lines{word: letter, digits: 3, whole: true}.scan(t, s, i)
}

// contractionLength gives how many bytes of s from i on are one of 's 't 're 've 'm
// 'll 'd, or 0; fold takes capitals too, and ſ, which is an s.
func contractionLength(s []byte, i int, fold bool) int {
	if i+1 >= len(s) || s[i] != '\'' {
		return 0
	}
	a, b := s[i+1], byte(0)
	if i+2 < len(s) {
		b = s[i+2]
	}
	if fold {
		if a == 0xC5 && b == 0xBF { // ſ
			return 3
		}
		a, b = a|0x20, b|0x20
	}
	switch {
	case a == 's' || a == 't' || a == 'm' || a == 'd':
		return 2
	case a == 'r' && b == 'e' || a == 'v' && b == 'e' || a == 'l' && b == 'l':
		return 3
	}
	return 0
}

// matchBlanks is \s+(?!\S)|\s+ at i, where whitespace begins: a run of it, but for its last
// character where something follows, unless it is the only one.
func matchBlanks(t *classes, s []byte, i int) int {
	last := i
	for j := i; j < len(s); {
		c, n := t.at(s, j)
		if c&space == 0 {
			if last == i {
				return j
			}
			return last
		}
		last = j
		j += n
	}
	return len(s)
}

// lineEnd gives the end of \s*[\r\n]+ at i, or i: behind the last line break in
// the whitespace. end is where the whitespace ends.
func lineEnd(t *classes, s []byte, i int) (after, end int) {
	after = i
	for end = i; end < len(s); {
		c, n := t.at(s, end)
		if c&space == 0 {
			break
		}
		end += n
		if c&newline != 0 {
			after = end
		}
	}
	return after, end
}

func matchGPT2(t *classes, s []byte, i int) int {
	if n := contractionLength(s, i, false); n > 0 {
		return i + n
	}
	j := i
	if s[i] == ' ' {
		j++
	}
	c, n := t.at(s, j)
	switch {
	case n == 0 || c&space != 0:
		return matchBlanks(t, s, i)
	case c&letter != 0:
		return t.runEnd(s, j+n, letter, 0)
	case c&number != 0:
		return t.runEnd(s, j+n, number, 0)
	}
	return t.runEnd(s, j+n, ^class(0), space|letter|number)
}

// lines is the expression of cl100k, Llama-3 and Qwen: runs of letters with one
// other character before them, digits in groups, and whitespace that ends
// lines apart.
type lines struct {
	word   class // what words are of
	digits int   // the most in a group
	whole  bool  // \s++$: whitespace at the end is one piece, whatever line breaks it has
}

func (l lines) scan(t *classes, s []byte, i int) int {
	if n := contractionLength(s, i, true); n > 0 {
		return i + n
	}
	c, n := t.at(s, i)
	if c&l.word != 0 {
		return t.runEnd(s, i+n, l.word, 0)
	}
	next, m := t.at(s, i+n)
	switch {
	case c&number != 0:
		return matchDigits(t, s, i, l.digits)
	case c&newline == 0 && next&l.word != 0:
		return t.runEnd(s, i+n+m, l.word, 0)
	case c&space == 0:
		return t.runEnd(s, t.runEnd(s, i+n, ^class(0), space|l.word|number), newline, 0)
	case s[i] == ' ' && m > 0 && next&(space|number) == 0:
		return t.runEnd(s, t.runEnd(s, i+n+m, ^class(0), space|l.word|number), newline, 0)
	}
	after, end := lineEnd(t, s, i)
	if l.whole && end == len(s) {
		return end
	}
	if after > i {
		return after
	}
	return matchBlanks(t, s, i)
}

// matchDigits gives the end of a group of at most n numbers.
func matchDigits(t *classes, s []byte, i, n int) int {
	for ; n > 0; n-- {
		c, size := t.at(s, i)
		if c&number == 0 {
			break
		}
		i += size
	}
	return i
}

// cased is the expression of o200k and of Mistral's tekken: words also end
// where capitals begin again.
type cased struct {
	digits int
	suffix bool // 's and its like belong to the word before them
}

const (
	caseless = letter | mark // with neither upper nor lower: Lm, Lo, M
)

func isUpper(c class) bool { return c&caseless != 0 && c&lower == 0 }
func isLower(c class) bool { return c&caseless != 0 && c&upper == 0 }

// matchCapitalised matches [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+ at i, or gives i;
// run is where the capitals and caseless ones that it begins with end.
func matchCapitalised(t *classes, s []byte, i int) (end, run int) {
	both := i // behind the last caseless character of the run
	for run = i; ; {
		c, n := t.at(s, run)
		if !isUpper(c) {
			break
		}
		run += n
		if isLower(c) {
			both = run
		}
	}
	end = run
	for {
		c, n := t.at(s, end)
		if !isLower(c) {
			break
		}
		end += n
	}
	if end > run {
		return end, run
	}
	return both, run // the run gives back what comes after its last caseless character
}

func (k cased) scan(t *classes, s []byte, i int) int {
	c, n := t.at(s, i)
	prefixed := i
	if c&(newline|letter|number) == 0 {
		prefixed = i + n
	}
	end := k.matchWord(t, s, i, prefixed)
	if end > i {
		if k.suffix {
			end += contractionLength(s, end, true)
		}
		return end
	}
	next, m := t.at(s, i+n)
	switch {
	case c&number != 0:
		return matchDigits(t, s, i, k.digits)
	case c&space == 0:
		return k.matchRest(t, s, i+n)
	case s[i] == ' ' && m > 0 && next&(space|letter|number) == 0:
		return k.matchRest(t, s, i+n+m)
	}
	if after, _ := lineEnd(t, s, i); after > i {
		return after
	}
	return matchBlanks(t, s, i)
}

// matchWord tries both forms of a word, each first with the character before it.
func (k cased) matchWord(t *classes, s []byte, i, prefixed int) int {
	end, run := matchCapitalised(t, s, prefixed)
	if end > prefixed {
		return end
	}
	if prefixed > i { // without it: a mark may begin a word itself
		if alone, _ := matchCapitalised(t, s, i); alone > i {
			return alone
		}
	}
	if run > prefixed {
		return run // capitals alone
	}
	return i
}

// matchRest matches the remainder of [^\s\p{L}\p{N}]+[\r\n/]*.
func (k cased) matchRest(t *classes, s []byte, i int) int {
	i = t.runEnd(s, i, ^class(0), space|letter|number)
	for i < len(s) && (s[i] == '\r' || s[i] == '\n' || s[i] == '/') {
		i++
	}
	return i
}

// severalSpaces matches the spaces that SentencePiece's models replace by one.
func severalSpaces(_ *classes, s []byte, i int) int {
	end := i
	for end < len(s) && s[end] == ' ' {
		end++
	}
	if end < i+2 {
		return i
	}
	return end
}

func threeDigits(t *classes, s []byte, i int) int { return matchDigits(t, s, i, 3) }

// matchChinese is a run of CJK ideographs (as far as U+9FA5), hiragana and katakana.
func matchChinese(_ *classes, s []byte, i int) int {
	for i+2 < len(s) { // all of them have three bytes
		if s[i]&0xF0 != 0xE0 {
			break
		}
		r := rune(s[i]&0x0F)<<12 | rune(s[i+1]&0x3F)<<6 | rune(s[i+2]&0x3F)
		if (r < 0x4E00 || r > 0x9FA5) && (r < 0x3040 || r > 0x30FF) {
			break
		}
		i += 3
	}
	return i
}

func asciiLetter(b byte) bool { b |= 0x20; return 'a' <= b && b <= 'z' }

func matchDeepSeek(t *classes, s []byte, i int) int {
	const words = letter | mark
	c, n := t.at(s, i)
	if n == 1 && c&(punctuation|symbol) != 0 && i+1 < len(s) && asciiLetter(s[i+1]) {
		for i++; i < len(s) && asciiLetter(s[i]); i++ {
		}
		return i
	}
	next, m := t.at(s, i+n)
	switch {
	case c&(newline|letter|punctuation|symbol) == 0 && next&words != 0:
		return t.runEnd(s, i+n+m, words, 0)
	case c&words != 0:
		return t.runEnd(s, i+n, words, 0)
	case c&(punctuation|symbol) != 0:
		return t.runEnd(s, t.runEnd(s, i+n, punctuation|symbol, 0), newline, 0)
	case s[i] == ' ' && next&(punctuation|symbol) != 0:
		return t.runEnd(s, t.runEnd(s, i+n+m, punctuation|symbol, 0), newline, 0)
	case c&space == 0:
		return i
	}
	if after, _ := lineEnd(t, s, i); after > i {
		return after
	}
	return matchBlanks(t, s, i)
}
