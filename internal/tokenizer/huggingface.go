package tokenizer

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"pitot/internal/say"
)

// A tokenizer.json as Hugging Face's library writes it: each part is an
// object whose type says what else it has. What a file asks for that is not
// here is refused by name, since a count that is nearly right is worse than none.

type hfFile struct {
	Added         []hfAdded       `json:"added_tokens"`
	Normalizer    *hfPart         `json:"normalizer"`
	PreTokenizer  *hfPart         `json:"pre_tokenizer"`
	PostProcessor *hfPart         `json:"post_processor"`
	Decoder       *hfPart         `json:"decoder"`
	Model         json.RawMessage `json:"model"`
}

type hfAdded struct {
	ID         uint32 `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	Left       bool   `json:"lstrip"`
	Right      bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
}

// hfPart has the fields of every normalizer, pre-tokenizer, post-processor and decoder.
type hfPart struct {
	Type string `json:"type"`

	Normalizers   []hfPart `json:"normalizers"`
	PreTokenizers []hfPart `json:"pretokenizers"`
	Processors    []hfPart `json:"processors"`
	Decoders      []hfPart `json:"decoders"`

	Pattern     hfPattern `json:"pattern"`
	Content     string    `json:"content"`
	Prepend     string    `json:"prepend"`
	StripLeft   bool      `json:"strip_left"`
	StripRight  bool      `json:"strip_right"`
	Charsmap    string    `json:"precompiled_charsmap"`
	CleanText   bool      `json:"clean_text"`
	Chinese     bool      `json:"handle_chinese_chars"`
	Accents     *bool     `json:"strip_accents"`
	Lowercase   bool      `json:"lowercase"`
	Behavior    string    `json:"behavior"`
	Invert      bool      `json:"invert"`
	PrefixSpace *bool     `json:"add_prefix_space"`
	UseRegex    *bool     `json:"use_regex"`
	Replacement string    `json:"replacement"`
	Scheme      string    `json:"prepend_scheme"`
	Split       *bool     `json:"split"`
	Individual  bool      `json:"individual_digits"`
	Delimiter   string    `json:"delimiter"`
	Length      int       `json:"length"`

	Single  []map[string]hfPiece `json:"single"`
	Special map[string]hfSpecial `json:"special_tokens"`
	Sep     json.RawMessage      `json:"sep"`
	Cls     json.RawMessage      `json:"cls"`
}

type hfPattern struct {
	String *string `json:"String"`
	Regex  *string `json:"Regex"`
}

type hfPiece struct {
	ID json.RawMessage `json:"id"`
}

type hfSpecial struct {
	IDs []uint32 `json:"ids"`
}

type hfModel struct {
	Type         string          `json:"type"`
	Vocab        json.RawMessage `json:"vocab"`
	Merges       json.RawMessage `json:"merges"`
	Dropout      *float64        `json:"dropout"`
	UnkToken     string          `json:"unk_token"`
	UnkID        *int            `json:"unk_id"`
	Prefix       string          `json:"continuing_subword_prefix"`
	Suffix       string          `json:"end_of_word_suffix"`
	FuseUnk      bool            `json:"fuse_unk"`
	ByteFallback bool            `json:"byte_fallback"`
	IgnoreMerges bool            `json:"ignore_merges"`
	LongestWord  int             `json:"max_input_chars_per_word"`
}

// damagedError says that the file cannot be what it should be.
func damagedError(format string, args ...any) error {
	return say.Errorf(format, args...).WithHint("it may be damaged: fetch it again")
}

// unsupportedError says that the file asks for something that is not here.
func unsupportedError(what string) error {
	return say.Errorf("%s is not supported", what).
		WithHint("without --tokenizer Pitot counts by the server's own usage")
}

func huggingFace(data []byte) (*Tokenizer, error) {
	var f hfFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, damagedError("it is not a tokenizer.json: %v", err)
	}
	if len(f.Model) == 0 {
		return nil, say.Errorf("it has no model, so it is not a tokenizer.json").
			WithHint("tokenizer_config.json and vocab.json lie beside the file that is meant, tokenizer.json")
	}
	var m hfModel
	if err := json.Unmarshal(f.Model, &m); err != nil {
		return nil, damagedError("its model cannot be read: %v", err)
	}
	b := &builder{t: &Tokenizer{}}
	if err := b.buildNormalizer(f.Normalizer); err != nil {
		return nil, err
	}
	if err := b.preTokenizer(f.PreTokenizer); err != nil {
		return nil, err
	}
	if err := b.buildModel(m); err != nil {
		return nil, err
	}
	b.decodeTokens(f.Decoder)
	if err := b.addTokens(f.Added); err != nil {
		return nil, err
	}
	if err := b.postProcessor(f.PostProcessor); err != nil {
		return nil, err
	}
	return b.finish(), nil
}

// builder puts a tokenizer together.
type builder struct {
	t          *Tokenizer
	byteLevel  bool // text becomes bytes, in the alphabet of GPT-2
	metaspace  string
	vocabulary map[string]uint32
	kind       string
	lead       bool // a space is put before the text
	fallback   bool
}

// eachPart builds parts that follow each other.
func eachPart(parts []hfPart, build func(p *hfPart) error) error {
	for i := range parts {
		if err := build(&parts[i]); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) buildNormalizer(p *hfPart) error {
	if p == nil {
		return nil
	}
	for _, text := range []string{p.Prepend, p.Content} {
		if err := checkToken(text); err != nil {
			return err
		}
	}
	add := func(n normalizer) { b.t.normalizers = append(b.t.normalizers, n) }
	switch p.Type {
	case "Sequence":
		return eachPart(p.Normalizers, b.buildNormalizer)
	case "NFC":
		add(normalForm(norm.NFC))
	case "NFD":
		add(normalForm(norm.NFD))
	case "NFKC":
		add(normalForm(norm.NFKC))
	case "NFKD":
		add(normalForm(norm.NFKD))
	case "Lowercase":
		add(lowercase)
	case "StripAccents":
		add(withoutMarks)
	case "Nmt":
		add(spaceless)
	case "Strip":
		add(strip(p.StripLeft, p.StripRight))
	case "Prepend":
		add(prepend(p.Prepend))
		b.lead = true
	case "Replace":
		at, err := p.Pattern.newFinder()
		if err != nil {
			return err
		}
		if p.Content == "▁" {
			b.metaspace = p.Content
		}
		add(replace(at, p.Content))
	case "BertNormalizer":
		if p.CleanText {
			add(cleaned)
		}
		if p.Chinese {
			add(spaced)
		}
		if valueOr(p.Accents, p.Lowercase) {
			add(normalForm(norm.NFD))
			add(withoutAccents)
		}
		if p.Lowercase {
			add(lowercase)
		}
	case "Precompiled":
		data, err := base64.StdEncoding.DecodeString(p.Charsmap)
		if err != nil {
			return damagedError("its charsmap cannot be read: %v", err)
		}
		if len(data) == 0 {
			return nil
		}
		m, err := parseCharsmap(data)
		if err != nil {
			return err
		}
		add(m.normalizeGraphemes())
	case "ByteLevel":
		b.byteLevel = true
	default:
		return unsupportedError("its normalizer " + strconv.Quote(p.Type))
	}
	return nil
}

func (p hfPattern) newFinder() (finder, error) {
	switch {
	case p.String != nil:
		return literal(*p.String), nil
	case p.Regex != nil:
		return expressionOf(*p.Regex, false)
	}
	return nil, damagedError("a pattern is missing")
}

// expressionOf is a known expression's scanner, or the expression itself.
func expressionOf(pattern string, tiktoken bool) (finder, error) {
	if scan, ok := knownScanners()[pattern]; ok {
		return scan, nil
	}
	if tiktoken && pattern == cl100k {
		return scanner(scanCL100k), nil
	}
	return compile(pattern, tiktoken)
}

func behaviourOf(name string) (behaviour, error) {
	names := []string{"Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"}
	if i := slices.Index(names, name); i >= 0 {
		return behaviour(i), nil
	}
	return 0, unsupportedError("its behaviour " + strconv.Quote(name))
}

func valueOr(p *bool, otherwise bool) bool {
	if p == nil {
		return otherwise
	}
	return *p
}

func (b *builder) preTokenizer(p *hfPart) error {
	if p == nil {
		return nil
	}
	if b.byteLevel && p.Type != "Sequence" && len(b.t.steps) > 0 {
		if _, last := b.t.steps[len(b.t.steps)-1].(byteLevel); last {
			return unsupportedError("a pre-tokenizer behind ByteLevel")
		}
	}
	add := func(s preTokenizer) { b.t.steps = append(b.t.steps, s) }
	switch p.Type {
	case "Sequence":
		return eachPart(p.PreTokenizers, b.preTokenizer)
	case "ByteLevel":
		b.byteLevel = true
		prefix := valueOr(p.PrefixSpace, true)
		b.lead = b.lead || prefix
		add(byteLevel{prefix: prefix, words: valueOr(p.UseRegex, true)})
	case "Split":
		at, err := p.Pattern.newFinder()
		if err != nil {
			return err
		}
		does, err := behaviourOf(p.Behavior)
		if err != nil {
			return err
		}
		add(split{at, does, p.Invert})
	case "Whitespace":
		add(split{scanner(wordsAndSigns), removed, true})
	case "WhitespaceSplit":
		add(split{characters(space), removed, false})
	case "BertPreTokenizer":
		add(split{characters(space), removed, false})
		add(split{characters(sign), isolated, false})
	case "Punctuation":
		does, err := behaviourOf(cmp.Or(p.Behavior, "Isolated"))
		if err != nil {
			return err
		}
		add(split{characters(sign), does, false})
	case "Digits":
		does := contiguous
		if p.Individual {
			does = isolated
		}
		add(split{characters(number), does, false})
	case "CharDelimiterSplit":
		add(split{literal(p.Delimiter), removed, false})
	case "FixedLength":
		n := cmp.Or(p.Length, 5)
		if n < 0 {
			return damagedError("pieces of %d characters", n)
		}
		add(fixedLength(n))
	case "Metaspace":
		if utf8.RuneCountInString(p.Replacement) != 1 {
			return damagedError("its Metaspace replaces %q", p.Replacement)
		}
		scheme := p.Scheme
		switch {
		case !valueOr(p.PrefixSpace, true):
			scheme = "never"
		case scheme == "":
			scheme = "always"
		}
		b.metaspace = p.Replacement
		b.lead = b.lead || scheme != "never"
		add(metaspace{mark: p.Replacement, always: scheme == "always", first: scheme == "first", split: valueOr(p.Split, true)})
	default:
		return unsupportedError("its pre-tokenizer " + strconv.Quote(p.Type))
	}
	return nil
}

func (b *builder) buildModel(m hfModel) error {
	if m.Type == "" { // files of old libraries
		switch {
		case len(m.Merges) > 0:
			m.Type = "BPE"
		case bytes.HasPrefix(bytes.TrimSpace(m.Vocab), []byte("[")):
			m.Type = "Unigram"
		case m.LongestWord > 0:
			m.Type = "WordPiece"
		}
	}
	for _, text := range []string{m.Prefix, m.Suffix} {
		if err := checkToken(text); err != nil {
			return err
		}
	}
	b.fallback = m.ByteFallback
	switch m.Type {
	case "BPE":
		return b.buildBPE(m)
	case "WordPiece":
		return b.wordPiece(m)
	case "Unigram":
		return b.buildUnigram(m)
	}
	return unsupportedError("its model " + strconv.Quote(m.Type))
}

func (b *builder) read(vocab json.RawMessage) error {
	if err := json.Unmarshal(vocab, &b.vocabulary); err != nil {
		return damagedError("its vocabulary cannot be read: %v", err)
	}
	for token, id := range b.vocabulary {
		if id > mostIDs {
			return damagedError("it has the id %d", id)
		}
		if err := checkToken(token); err != nil {
			return err
		}
	}
	return nil
}

// mostIDs bounds what is believed of a file.
const mostIDs = 1 << 21

// byteTokensOf finds the token of each byte under its name.
func byteTokensOf(vocab map[string]uint32, name func(b byte) string) *byteTokens {
	var tokens byteTokens
	for i := range tokens {
		tokens[i] = none
		if id, ok := vocab[name(byte(i))]; ok {
			tokens[i] = int32(id)
		}
	}
	return &tokens
}

// fallbackOf gives the tokens of bytes, none where one is missing.
func fallbackOf(vocab map[string]uint32) *byteTokens {
	return byteTokensOf(vocab, func(b byte) string { return fmt.Sprintf("<0x%02X>", b) })
}

// ownBytesOf gives the tokens that are one byte.
func ownBytesOf(vocab map[string]uint32) *byteTokens {
	return byteTokensOf(vocab, func(b byte) string { return string([]byte{b}) })
}

func (b *builder) buildBPE(m hfModel) error {
	if m.Dropout != nil && *m.Dropout > 0 {
		return unsupportedError("BPE with dropout, whose counts are random,")
	}
	if err := b.read(m.Vocab); err != nil {
		return err
	}
	pairs, err := mergesOf(m.Merges)
	if err != nil {
		return err
	}
	p := &bpe{
		vocab: b.vocabulary, merges: newMergeTable(len(pairs)), whole: m.IgnoreMerges,
		prefix: m.Prefix, suffix: m.Suffix, unknown: none, fuse: m.FuseUnk,
	}
	if m.ByteFallback {
		p.fallback = fallbackOf(p.vocab)
	}
	for rank, pair := range pairs {
		left, okLeft := p.vocab[pair[0]]
		right, okRight := p.vocab[pair[1]]
		both, ok := p.vocab[pair[0]+strings.TrimPrefix(pair[1], m.Prefix)]
		if !okLeft || !okRight || !ok {
			return damagedError("it merges %q and %q, which are not all in its vocabulary", pair[0], pair[1])
		}
		p.merges.add(int32(left), int32(right), uint32(rank), int32(both))
		p.joined.addMerge(pair[0], pair[1])
	}
	if m.UnkToken != "" {
		id, ok := p.vocab[m.UnkToken]
		if !ok {
			return damagedError("its unknown token %q is not in its vocabulary", m.UnkToken)
		}
		p.unknown = int32(id)
	}
	b.kind = "BPE"
	b.t.model = p
	if b.byteLevel && m.Prefix == "" && m.Suffix == "" {
		b.kind = "byte-level BPE"
		b.inBytes(p)
		return nil
	}
	if b.byteLevel {
		return unsupportedError("byte-level BPE with a prefix or a suffix")
	}
	p.chars = characterIDsOf(p.vocab)
	words := slices.ContainsFunc(b.t.steps, func(s preTokenizer) bool { m, is := s.(metaspace); return is && m.split })
	p.cuts = !words && (p.unknown < 0 || p.fallback != nil) && !p.whole && m.Prefix == "" && m.Suffix == ""
	return nil
}

// inBytes makes a model that works on the alphabet of GPT-2, a character for each byte, work on
// bytes themselves.
func (b *builder) inBytes(p *bpe) {
	vocab := make(map[string]uint32, len(p.vocab))
	for token, id := range p.vocab {
		if raw, ok := fromAlphabet(token); ok {
			vocab[raw] = id
		}
	}
	p.vocab, p.bytes = vocab, ownBytesOf(vocab)
}

// alphabet is GPT-2's: visible characters of Latin-1 stand for themselves, the
// other bytes for the characters from U+0100 on.
var alphabet = sync.OnceValue(func() map[rune]byte {
	of := map[rune]byte{}
	next := rune(256)
	for i := range rune(256) {
		if '!' <= i && i <= '~' || 0xA1 <= i && i <= 0xAC || 0xAE <= i {
			of[i] = byte(i)
		} else {
			of[next] = byte(i)
			next++
		}
	}
	return of
})

// fromAlphabet gives the bytes that a token in GPT-2's alphabet stands for.
func fromAlphabet(token string) (string, bool) {
	raw, bytesOf := make([]byte, 0, len(token)), alphabet()
	for _, r := range token {
		x, ok := bytesOf[r]
		if !ok {
			return "", false
		}
		raw = append(raw, x)
	}
	return string(raw), true
}

// mergesOf reads merges as they are written: "a b" in older files, ["a", "b"] in newer ones.
func mergesOf(data json.RawMessage) ([][2]string, error) {
	var pairs [][2]string
	if json.Unmarshal(data, &pairs) == nil {
		return pairs, nil
	}
	var lines []string
	if err := json.Unmarshal(data, &lines); err != nil {
		return nil, damagedError("its merges cannot be read: %v", err)
	}
	pairs = make([][2]string, 0, len(lines))
	for _, line := range lines {
		if strings.HasPrefix(line, "#version") {
			continue
		}
		a, z, ok := strings.Cut(line, " ")
		if !ok || strings.Contains(z, " ") {
			return nil, damagedError("the merge %q is not of two tokens", line)
		}
		pairs = append(pairs, [2]string{a, z})
	}
	return pairs, nil
}

func (b *builder) wordPiece(m hfModel) error {
	if err := b.read(m.Vocab); err != nil {
		return err
	}
	unknown, ok := b.vocabulary[m.UnkToken]
	if !ok {
		return damagedError("its unknown token %q is not in its vocabulary", m.UnkToken)
	}
	longest := m.LongestWord
	if longest <= 0 {
		longest = 100
	}
	rests := map[string]uint32{}
	for token, id := range b.vocabulary {
		if rest, ok := strings.CutPrefix(token, m.Prefix); ok {
			rests[rest] = id
		}
	}
	b.kind = "WordPiece"
	b.t.model = &wordPiece{newVocabularyTrie(b.vocabulary), newVocabularyTrie(rests), unknown, longest}
	return nil
}

func (b *builder) buildUnigram(m hfModel) error {
	var rows [][2]json.RawMessage
	if err := json.Unmarshal(m.Vocab, &rows); err != nil {
		return damagedError("its vocabulary cannot be read: %v", err)
	}
	tokens, scores := make([]string, len(rows)), make([]float64, len(rows))
	for i, row := range rows {
		if json.Unmarshal(row[0], &tokens[i]) != nil || json.Unmarshal(row[1], &scores[i]) != nil {
			return damagedError("token %d of its vocabulary cannot be read", i)
		}
		if err := checkToken(tokens[i]); err != nil {
			return err
		}
	}
	unknown := int(none)
	if m.UnkID != nil {
		unknown = *m.UnkID
		if unknown < 0 || unknown >= len(rows) {
			return damagedError("its unknown token %d is not in its vocabulary", unknown)
		}
	}
	return b.unigramOf(tokens, scores, unknown, m.ByteFallback)
}

func (b *builder) unigramOf(tokens []string, scores []float64, unknown int, fallback bool) error {
	b.vocabulary = make(map[string]uint32, len(tokens))
	for i, token := range tokens { // of two that are equal the later one
		b.vocabulary[token] = uint32(i)
	}
	p := &unigram{
		scores: scores, unknown: int32(unknown),
		vocab: b.vocabulary, tokens: newVocabularyTrie(b.vocabulary),
	}
	if len(scores) > 0 {
		p.penalty = slices.Min(scores)
	}
	p.penalty -= unknownPenalty
	if fallback {
		p.fallback = fallbackOf(p.vocab)
	}
	b.kind = "Unigram"
	b.t.model = p
	return nil
}

// addTokens takes the tokens beside the vocabulary. As in Hugging Face's library, one that the
// vocabulary has keeps the vocabulary's id.
func (b *builder) addTokens(tokens []hfAdded) error {
	for _, a := range tokens {
		if a.ID > mostIDs {
			return damagedError("it has the id %d", a.ID)
		}
		if err := checkToken(a.Content); err != nil {
			return err
		}
	}
	var raw, normalized []added
	t := &Tokenizer{class: classTable(), normalizers: b.t.normalizers}
	var work budget
	change := t.normalizerSteps(&work)
	for _, a := range tokens {
		if a.Content == "" {
			continue
		}
		id, ok := b.vocabulary[a.Content]
		if !ok {
			id = a.ID
		}
		b.setText(id, a.Content)
		x := added{id: id, content: a.Content, singleWord: a.SingleWord, left: a.Left, right: a.Right}
		if !a.Normalized {
			raw = append(raw, x)
			continue
		}
		s := []byte(a.Content)
		work = textBudget(len(s))
		if err := catchGiveUp(func() {
			for _, c := range change {
				s, _ = c(s)
				checkGrowth(len(s), len(a.Content))
			}
		}); err != nil {
			return err
		}
		if x.content = string(s); x.content != "" {
			normalized = append(normalized, x)
		}
	}
	b.t.raw, b.t.normalized = newAddedSet(raw), newAddedSet(normalized)
	return nil
}

// setText keeps what an id stands for.
func (b *builder) setText(id uint32, text string) {
	if n := int(id) + 1 - len(b.t.text); n > 0 {
		b.t.text = append(b.t.text, make([]string, n)...)
	}
	b.t.text[id] = text
}

// decodeTokens finds out what ids stand for, one by one.
func (b *builder) decodeTokens(p *hfPart) {
	joins, wordPieces := b.metaspace, false
	var look func(p *hfPart)
	look = func(p *hfPart) {
		if p == nil {
			return
		}
		switch p.Type {
		case "Metaspace":
			joins = p.Replacement
		case "Replace":
			if p.Pattern.String != nil && p.Content == " " {
				joins = *p.Pattern.String
			}
		case "WordPiece":
			wordPieces = true
		}
		for i := range p.Decoders {
			look(&p.Decoders[i])
		}
	}
	look(p)
	_, pieces := b.t.model.(*wordPiece)
	b.t.lossless = !pieces && !wordPieces
	ids := slices.Sorted(maps.Values(b.vocabulary))
	if len(ids) > 0 {
		b.setText(ids[len(ids)-1], "")
	}
	for token, id := range b.vocabulary {
		text := token
		if b.byteLevel {
			if raw, ok := fromAlphabet(token); ok {
				text = raw
			}
		} else {
			if joins != "" {
				text = strings.ReplaceAll(text, joins, " ")
			}
			if x, ok := byteToken(token); ok && b.fallback {
				text = string([]byte{x})
			}
		}
		b.setText(id, text)
	}
	if b.lead {
		b.t.lead = " "
	}
}

// byteToken reads <0xAB>.
func byteToken(token string) (byte, bool) {
	if len(token) != 6 || !strings.HasPrefix(token, "<0x") || token[5] != '>' {
		return 0, false
	}
	x, err := strconv.ParseUint(token[3:5], 16, 8)
	return byte(x), err == nil
}

// postProcessor finds out what stands before and behind a text that is encoded alone.
func (b *builder) postProcessor(p *hfPart) error {
	if p == nil {
		return nil
	}
	switch p.Type {
	case "Sequence":
		return eachPart(p.Processors, b.postProcessor)
	case "ByteLevel":
	case "TemplateProcessing":
		text := false
		for _, piece := range p.Single {
			if s, ok := piece["SpecialToken"]; ok {
				var name string
				if json.Unmarshal(s.ID, &name) != nil {
					return damagedError("its template cannot be read")
				}
				if text {
					b.t.after = append(b.t.after, p.Special[name].IDs...)
				} else {
					b.t.before = append(b.t.before, p.Special[name].IDs...)
				}
			}
			if _, ok := piece["Sequence"]; ok {
				text = true
			}
		}
	case "BertProcessing", "RobertaProcessing":
		for _, around := range []struct {
			data json.RawMessage
			to   *[]uint32
		}{{p.Cls, &b.t.before}, {p.Sep, &b.t.after}} {
			var pair [2]json.RawMessage
			var id uint32
			if json.Unmarshal(around.data, &pair) != nil || json.Unmarshal(pair[1], &id) != nil {
				return damagedError("its [CLS] and [SEP] cannot be read")
			}
			*around.to = append(*around.to, id)
		}
	default:
		return unsupportedError("its post-processor " + strconv.Quote(p.Type))
	}
	return nil
}

func (b *builder) finish() *Tokenizer {
	b.t.size = len(b.t.text)
	b.t.name = fmt.Sprintf("%s, %s tokens", b.kind, say.Count(b.t.size))
	return b.t
}
