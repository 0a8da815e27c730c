// Package tokenizer counts tokens as a model does: it reads the tokenizer that is published with
// the model and makes the same ids of a text as Hugging Face's library.
package tokenizer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"pitot/internal/say"
	"pitot/internal/say/unreadable"
	"pitot/internal/userfile"
)

// Tokenizer is one that was read from a file. It does not change: an Encoder,
// one for each goroutine, does the work.
type Tokenizer struct {
	name  string // what kind it is: "byte-level BPE, 128,256 tokens"
	sum   string // the file's SHA-256, the first 16 hexadecimal digits
	size  int    // 1 more than the largest id
	class *classes

	raw, normalized *addedSet // found before and after the text is normalized
	normalizers     []normalizer
	steps           []preTokenizer
	model           model
	before, after   []uint32 // what a prompt has beside its text: <s>, [CLS], [SEP]

	text     []string // what each id stands for
	lossless bool     // the texts of ids, one after the other, are the text again
	lead     string   // what the first of them has in front that the text has not: a space
}

// Open reads a tokenizer from a file.
func Open(path string) (*Tokenizer, error) {
	data, err := userfile.Read(path, userfile.MostLarge)
	if err != nil {
		hint := "a model's tokenizer is its file tokenizer.json, tokenizer.model, tekken.json or *.tiktoken"
		for _, name := range []string{"tokenizer.json", "tokenizer.model", "tekken.json"} {
			if inside, err := os.Stat(filepath.Join(path, name)); err == nil && inside.Mode().IsRegular() {
				hint = "the file in it is meant: --tokenizer " + filepath.Join(path, name)
				break
			}
		}
		return nil, unreadable.FileError("tokenizer", path, err, hint)
	}
	t, err := Parse(data)
	if err != nil {
		hint := say.HintOf(err)
		return nil, say.Errorf("tokenizer %s: %v", path, err).WithHint(hint)
	}
	return t, nil
}

// Parse reads a tokenizer from the bytes of its file.
func Parse(data []byte) (*Tokenizer, error) {
	t, err := readByFormat(data)
	if err != nil {
		return nil, err
	}
	t.class = classTable()
	sum := sha256.Sum256(data)
	t.sum = hex.EncodeToString(sum[:8])
	return t, nil
}

// readByFormat tells the forms of files apart.
func readByFormat(data []byte) (*Tokenizer, error) {
	text := bytes.TrimSpace(data)
	if len(text) > 0 && (text[0] == '{' || text[0] == '[') {
		var is struct {
			Config *struct{ Pattern *string }
		}
		if json.Unmarshal(data, &is) == nil && is.Config != nil && is.Config.Pattern != nil {
			return readTekken(data)
		}
		return huggingFace(data)
	}
	if _, ok := parseSentencePiece(data); ok {
		return sentencePiece(data)
	}
	return readTiktoken(data)
}

// Name says what kind of tokenizer it is.
func (t *Tokenizer) Name() string { return t.name }

// Sum tells tokenizers apart: the beginning of the SHA-256 of the file.
func (t *Tokenizer) Sum() string { return t.sum }

// Size is one more than the largest id.
func (t *Tokenizer) Size() int { return t.size }

// TemplateTokens returns the number of tokens that the model's own template puts around a text
// encoded alone: <s>, [CLS], [SEP].
func (t *Tokenizer) TemplateTokens() int { return len(t.before) + len(t.after) }

// Text returns the bytes of an id in a text, which may be a part of a character.
func (t *Tokenizer) Text(id uint32) string {
	if int(id) >= len(t.text) {
		return ""
	}
	return t.text[id]
}

// Encoder encodes texts, one at a time. It remembers the pieces that it saw.
type Encoder struct {
	t      *Tokenizer
	change []func([]byte) ([]byte, bool)
	pieces sink
	ids    []uint32
	valid  []byte // a text that was not UTF-8, repaired
	seen   *pieces
	work   budget // of this text

	symbols    []int32 // what the models need while they work on a piece
	ranks      []uint32
	into       []int32
	neighbours []int32
	heap       []candidate
	paths      []path
}

// NewEncoder gives a new encoder.
func (t *Tokenizer) NewEncoder() *Encoder {
	e := &Encoder{t: t, seen: newPieces()}
	e.change = t.normalizerSteps(&e.work)
	e.pieces = func(piece []byte, _ bool) { t.model.tokenize(e, piece) }
	for i := len(t.steps) - 1; i >= 0; i-- {
		step := t.steps[i]
		if s, ok := step.(split); ok {
			s.at = limitFinder(s.at, &e.work)
			step = s
		}
		e.pieces = step.into(t.class, e.pieces)
	}
	return e
}

// normalizerSteps makes the steps that change a text, within a budget.
func (t *Tokenizer) normalizerSteps(work *budget) (steps []func([]byte) ([]byte, bool)) {
	for _, n := range t.normalizers {
		steps = append(steps, n(t.class, work))
	}
	return steps
}

// Count returns the number of tokens of a text.
func (e *Encoder) Count(text []byte) (int, error) {
	var err error
	e.ids, err = e.Append(e.ids[:0], text)
	return len(e.ids), err
}

// TokenEnds appends where each token of a text ends in it, in bytes, and says whether
// that is known: a tokenizer that changes text, to lower case or by leaving accents
// out, has no places in it.
func (e *Encoder) TokenEnds(ends []int, text []byte) (_ []int, known bool, err error) {
	if e.ids, err = e.Append(e.ids[:0], text); err != nil {
		return ends, false, err
	}
	at, known := 0, e.t.lossless
	for i, id := range e.ids {
		spelt := e.t.Text(id)
		if i == 0 && e.t.lead != "" && !bytes.HasPrefix(text, []byte(spelt)) {
			spelt = strings.TrimPrefix(spelt, e.t.lead)
		}
		known = known && len(text)-at >= len(spelt) && string(text[at:at+len(spelt)]) == spelt
		at += len(spelt)
		ends = append(ends, at)
	}
	return ends, known && at == len(text), nil
}

// Append appends the ids of a text to ids, without what a template puts around it.
// Bytes that are no UTF-8 count as U+FFFD, one for each sequence that is cut short, which
// is what servers make of them. It fails, and appends nothing, where the tokenizer asks for
// more work or more text than is believed of one.
func (e *Encoder) Append(ids []uint32, text []byte) (_ []uint32, err error) {
	if !utf8.Valid(text) {
		e.valid = repairUTF8(e.valid[:0], text)
		text = e.valid
	}
	own := e.ids
	e.ids, e.work = ids, textBudget(len(text))
	defer func() {
		if e.ids = own; err != nil {
			e.ids = own[:0]
		}
	}()
	if err = catchGiveUp(func() { e.t.raw.split(e.t.class, text, e.normalize, e.appendID) }); err != nil {
		return ids, err
	}
	return e.ids, nil
}

// AppendPrompt appends the ids that a server makes of a prompt: those of the text, with what
// the model's own template puts around one that is encoded alone.
func (e *Encoder) AppendPrompt(ids []uint32, text []byte) ([]uint32, error) {
	ids, err := e.Append(append(ids, e.t.before...), text)
	return append(ids, e.t.after...), err
}

// gaveUp is why a text cannot be encoded. It is thrown from within the steps, which hand on
// what they make, and caught by giving.
type gaveUp string

// catchGiveUp calls do and gives the error with which it gave up.
func catchGiveUp(do func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			why, ok := r.(gaveUp)
			if !ok {
				panic(r)
			}
			err = say.Errorf("%s", string(why)).
				WithHint("its file may be damaged: fetch it again, or leave --tokenizer out")
		}
	}()
	do()
	return nil
}

// What a normalizer may make of a text: no known one makes more than 11 bytes of one.
const (
	mostGrowth = 16
	freeGrowth = 1 << 12
)

// checkGrowth gives up where a text became too long.
func checkGrowth(now, before int) {
	if now > mostGrowth*before+freeGrowth {
		panic(gaveUp("the tokenizer makes too much of a text"))
	}
}

// longestToken bounds what is believed of a file: the tokens of known models have less than 300
// bytes.
const longestToken = 1 << 12

// checkToken refuses a token that is too long.
func checkToken(token string) error {
	if len(token) > longestToken {
		return damagedError("a token of it has %s bytes", say.Count(len(token)))
	}
	return nil
}

func (e *Encoder) appendID(id uint32) { e.ids = append(e.ids, id) }

// normalize goes on with what stands between added tokens.
func (e *Encoder) normalize(s []byte, at int) {
	first, n := at == 0, len(s)
	for _, change := range e.change {
		out, cut := change(s)
		s, first = out, first && !cut
		checkGrowth(len(s), n)
	}
	if e.t.normalized == nil {
		if len(s) > 0 {
			e.pieces(s, first)
		}
		return
	}
	e.t.normalized.split(e.t.class, s, func(s []byte, at int) { e.pieces(s, first && at == 0) }, e.appendID)
}

// appendCached appends the ids of a piece that was seen before.
func (e *Encoder) appendCached(piece []byte) bool {
	if len(piece) > shortPiece {
		return false
	}
	ids, ok := e.seen.find(piece)
	e.ids = append(e.ids, ids...)
	return ok
}

// cachePiece keeps the ids of a piece, which are those from before on.
func (e *Encoder) cachePiece(piece []byte, before int) {
	if len(piece) <= shortPiece {
		e.seen.addPiece(piece, e.ids[before:])
	}
}

// repairUTF8 appends s to dst with U+FFFD for each sequence of bytes that is no
// UTF-8: one for as much as could have begun a character, as Unicode recommends and
// Python and browsers do (The Unicode Standard, 3.9, U+FFFD substitution of
// maximal subparts).
func repairUTF8(dst, s []byte) []byte {
	for i := 0; i < len(s); {
		if r, n := utf8.DecodeRune(s[i:]); r != utf8.RuneError || n > 1 {
			dst = append(dst, s[i:i+n]...)
			i += n
			continue
		}
		dst = append(dst, "\uFFFD"...)
		i += cutShort(s[i:])
	}
	return dst
}

// cutShort gives how many bytes of a sequence that is no character could have begun one.
func cutShort(s []byte) int {
	more, low, high := 0, byte(0x80), byte(0xBF) // bytes that follow; the range of the first of them
	switch b := s[0]; {
	case 0xC2 <= b && b <= 0xDF:
		more = 1
	case b == 0xE0:
		more, low = 2, 0xA0
	case b == 0xED:
		more, high = 2, 0x9F
	case 0xE1 <= b && b <= 0xEF:
		more = 2
	case b == 0xF0:
		more, low = 3, 0x90
	case b == 0xF4:
		more, high = 3, 0x8F
	case 0xF1 <= b && b <= 0xF3:
		more = 3
	}
	n := 1
	for ; n <= more && n < len(s) && low <= s[n] && s[n] <= high; n++ {
		low, high = 0x80, 0xBF
	}
	return n
}
