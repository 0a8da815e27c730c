package tokenizer

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"unicode/utf8"
)

// A model as SentencePiece writes it (tokenizer.model): a protobuf message, of
// which a few fields are needed. Field numbers are those of sentencepiece_model.proto.

// spPiece is an entry of the vocabulary.
type spPiece struct {
	text  string
	score float32
	kind  uint64
}

// Kinds of pieces.
const (
	spUnknown = 2
	spControl = 3
	spUser    = 4
	spUnused  = 5
	spByte    = 6
)

type spModel struct {
	pieces   []spPiece
	kind     uint64 // 1 Unigram, 2 BPE
	fallback bool
	suffix   bool // whitespace belongs to the word before it

	charsmap []byte
	prefix   bool // a space before the text
	extra    bool // spaces at the ends, and those behind a space, are left out
	escape   bool // spaces are ▁
}

// field is one field of a protobuf message: its number, and its value as a
// number or as bytes.
type field struct {
	number uint64
	value  uint64
	data   []byte
}

// readFields reads a message.
func readFields(data []byte, each func(field) bool) bool {
	for len(data) > 0 {
		key, n := binary.Uvarint(data)
		if n <= 0 {
			return false
		}
		data = data[n:]
		f := field{number: key >> 3}
		switch key & 7 {
		case 0:
			if f.value, n = binary.Uvarint(data); n <= 0 {
				return false
			}
		case 1:
			n = 8
		case 2:
			size, m := binary.Uvarint(data)
			if m <= 0 || size > uint64(len(data)-m) {
				return false
			}
			f.data = data[m : m+int(size)]
			n = m + int(size)
		case 5:
			if n = 4; len(data) >= 4 {
				f.value = uint64(binary.LittleEndian.Uint32(data))
			}
		default:
			return false
		}
		if n > len(data) || !each(f) {
			return false
		}
		data = data[n:]
	}
	return true
}

func parseSentencePiece(data []byte) (m spModel, ok bool) {
	m = spModel{kind: 1, prefix: true, extra: true, escape: true}
	ok = readFields(data, func(f field) bool {
		switch f.number {
		case 1:
			p := spPiece{kind: 1}
			ok := readFields(f.data, func(f field) bool {
				switch f.number {
				case 1:
					p.text = string(f.data)
				case 2:
					p.score = math.Float32frombits(uint32(f.value))
				case 3:
					p.kind = f.value
				}
				return true
			})
			m.pieces = append(m.pieces, p)
			return ok
		case 2:
			return readFields(f.data, func(f field) bool {
				switch f.number {
				case 3:
					m.kind = f.value
				case 24:
					m.suffix = f.value != 0
				case 35:
					m.fallback = f.value != 0
				}
				return true
			})
		case 3:
			return readFields(f.data, func(f field) bool {
				switch f.number {
				case 2:
					m.charsmap = f.data
				case 3:
					m.prefix = f.value != 0
				case 4:
					m.extra = f.value != 0
				case 5:
					m.escape = f.value != 0
				}
				return true
			})
		}
		return true
	})
	return m, ok && len(m.pieces) > 0
}

func sentencePiece(data []byte) (*Tokenizer, error) {
	m, ok := parseSentencePiece(data)
	if !ok {
		return nil, damagedError("it is not a SentencePiece model")
	}
	b := &builder{t: &Tokenizer{}, fallback: m.fallback, lead: m.prefix && !m.suffix, vocabulary: map[string]uint32{}}
	if m.escape {
		b.metaspace = "▁"
	}
	var user []added
	all, unknown := map[string]uint32{}, none
	for i, p := range m.pieces {
		if err := checkToken(p.text); err != nil {
			return nil, err
		}
		all[p.text] = uint32(i)
		switch p.kind {
		case spUnknown:
			unknown = int32(i)
		case spControl, spByte, spUnused:
		case spUser:
			user = append(user, added{id: uint32(i), content: p.text})
			fallthrough
		default:
			b.vocabulary[p.text] = uint32(i)
		}
	}
	n := spNormalizer{m: m, user: newAddedSet(user)}
	if len(m.charsmap) > 0 {
		var err error
		if n.charsmap, err = parseCharsmap(m.charsmap); err != nil {
			return nil, err
		}
	}
	b.t.normalizers = []normalizer{normalizerOf(n.change)}
	var fallback *byteTokens
	if m.fallback {
		fallback = fallbackOf(all)
	}
	switch m.kind {
	case 1:
		b.spUnigram(m, unknown, fallback)
	case 2:
		b.kind = "SentencePiece BPE"
		var ranks []float32
		for _, p := range m.pieces {
			ranks = append(ranks, -p.score)
		}
		slices.Sort(ranks)
		ranks = slices.Compact(ranks)
		p := mergesByRank(b.vocabulary, func(id uint32) uint32 {
			r, _ := slices.BinarySearch(ranks, -m.pieces[id].score)
			return uint32(r)
		}, true)
		p.fallback, p.unknown, p.fuse = fallback, unknown, true
		p.cuts = m.escape && (unknown < 0 || fallback != nil)
		b.t.model = p
		for i := range user {
			if m.escape {
				user[i].content = string(replaceByte(nil, []byte(user[i].content), ' ', "▁"))
			}
		}
		b.t.normalized = newAddedSet(user)
	default:
		return nil, unsupportedError("a SentencePiece model that is neither Unigram nor BPE")
	}
	b.vocabulary = all
	b.decodeTokens(nil)
	return b.finish(), nil
}

// spUnigram is SentencePiece's own Unigram: in single precision, with a score for
// symbols of the user that makes them win.
func (b *builder) spUnigram(m spModel, unknown int32, fallback *byteTokens) {
	p := &unigram{
		tokens: newVocabularyTrie(b.vocabulary), scores: make([]float64, len(m.pieces)),
		vocab: b.vocabulary, unknown: unknown, fallback: fallback, single: true,
	}
	least, most := float32(math.Inf(1)), float32(math.Inf(-1))
	for _, x := range m.pieces {
		if x.kind == 1 {
			least, most = min(least, x.score), max(most, x.score)
		}
	}
	for token, id := range b.vocabulary {
		p.scores[id] = float64(m.pieces[id].score)
		if m.pieces[id].kind == spUser {
			p.scores[id] = float64(float32(len(token))*most - 0.1)
		}
	}
	p.penalty = float64(least - unknownPenalty)
	b.kind = "SentencePiece Unigram"
	b.t.model = p
}

// mergesByRank makes a BPE model of a vocabulary in which the rank of a merge is that of
// what comes of it: any two tokens that are a token together may be merged.
func mergesByRank(vocab map[string]uint32, rank func(id uint32) uint32, characters bool) *bpe {
	type merge struct {
		a, b, id uint32
	}
	var merges []merge
	for token, id := range vocab {
		for i := 1; i < len(token); i++ {
			if characters && !utf8.RuneStart(token[i]) {
				continue
			}
			a, okA := vocab[token[:i]]
			z, okZ := vocab[token[i:]]
			if okA && okZ {
				merges = append(merges, merge{a, z, id})
			}
		}
	}
	p := &bpe{vocab: vocab, merges: newMergeTable(len(merges)), unknown: none}
	text := make(map[uint32]string, len(vocab))
	for token, id := range vocab {
		text[id] = token
	}
	for _, m := range merges {
		p.merges.add(int32(m.a), int32(m.b), rank(m.id), int32(m.id))
		if characters {
			p.joined.addMerge(text[m.a], text[m.b])
		}
	}
	if characters {
		p.chars = characterIDsOf(vocab)
	}
	return p
}

// spNormalizer does what SentencePiece does before it encodes: replaces by the
// longest entry of the charsmap, takes out spaces and marks those that stay.
type spNormalizer struct {
	m        spModel
	charsmap *charsmap
	user     *addedSet
}

// normalizePrefix gives what the beginning of s becomes, and the length of that beginning.
func (n spNormalizer) normalizePrefix(s []byte) (text []byte, length int) {
	if n.user != nil && n.user.first[s[0]] {
		if _, begin, end, ok := n.user.find(s[:min(len(s), n.user.longest)], 0); ok && begin == 0 {
			return s[:end], end
		}
	}
	if n.charsmap != nil {
		if text, length = n.charsmap.match(s, true); length > 0 {
			return text, length
		}
	}
	_, length = utf8.DecodeRune(s)
	return s[:length], length
}

func (n spNormalizer) change(_ *classes, dst, s []byte) []byte {
	mark := []byte(" ")
	if n.m.escape {
		mark = []byte("▁")
	}
	if n.m.extra {
		for len(s) > 0 {
			text, length := n.normalizePrefix(s)
			if string(text) != " " {
				break
			}
			s = s[length:]
		}
	}
	if len(s) == 0 {
		return dst
	}
	if n.m.prefix && !n.m.suffix {
		dst = append(dst, mark...)
	}
	spaced, before := n.m.extra, len(s)
	for len(s) > 0 {
		checkGrowth(len(dst), before)
		text, length := n.normalizePrefix(s)
		for spaced && len(text) > 0 && text[0] == ' ' {
			text = text[1:]
		}
		if len(text) > 0 {
			dst = replaceByte(dst, text, ' ', string(mark))
			spaced = text[len(text)-1] == ' '
		}
		s = s[length:]
		spaced = spaced && n.m.extra
	}
	if n.m.extra {
		for bytes.HasSuffix(dst, mark) {
			dst = dst[:len(dst)-len(mark)]
		}
	}
	if n.m.prefix && n.m.suffix {
		dst = append(dst, mark...)
	}
	return dst
}
