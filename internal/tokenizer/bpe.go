package tokenizer

import (
	"math"
	"slices"
	"unicode"
	"unicode/utf8"
)

// model makes ids of a piece of text.
type model interface {
	tokenize(e *Encoder, piece []byte)
}

// bpe is byte-pair encoding: a piece begins as its bytes or characters, and of
// all pairs of neighbours that a merge is known for, the one of the lowest rank is merged,
// the leftmost of equals, until none is left (Sennrich et al. 2016).
type bpe struct {
	vocab  map[string]uint32
	chars  characterIDs // of the tokens that are one character; empty where pieces begin as bytes
	merges *mergeTable
	bytes  *byteTokens // nil: pieces begin as characters
	whole  bool        // a piece that is in the vocabulary is that token, whatever the merges say

	prefix, suffix string // of characters that do not begin a word; of the one that ends it
	fallback       *byteTokens
	unknown        int32 // the token of what is not in the vocabulary, -1: it is left out
	fuse           bool  // neighbours that are unknown are one token

	cuts   bool   // pieces may be cut where no merge joins two characters: see tokenize
	joined joints // characters that merges join
}

const none = int32(-1)

// byteTokens has the token of each byte, none where there is none.
type byteTokens [256]int32

// hasBytes says that all bytes of a character have one.
func (f *byteTokens) hasBytes(char []byte) bool {
	if f == nil {
		return false
	}
	for _, b := range char {
		if f[b] == none {
			return false
		}
	}
	return true
}

// characterIDs has 1 more than the id of each character that is a token, in pages of 256
// characters.
type characterIDs [][]int32

func characterIDsOf(vocab map[string]uint32) characterIDs {
	table := make(characterIDs, (unicode.MaxRune+1)>>8)
	for token, id := range vocab {
		r, n := utf8.DecodeRuneInString(token)
		if n == 0 || n < len(token) || r == utf8.RuneError && n == 1 {
			continue
		}
		if table[r>>8] == nil {
			table[r>>8] = make([]int32, 256)
		}
		table[r>>8][r&0xFF] = int32(id) + 1
	}
	return table
}

// idOf gives the id of a character.
func (c characterIDs) idOf(r rune) (id int32, ok bool) {
	page := c[r>>8]
	if page == nil {
		return 0, false
	}
	id = page[r&0xFF]
	return id - 1, id > 0
}

// mergeTable is a hash table of pairs of ids with open addressing: of all that
// encoding does, looking up pairs takes the longest. Most of them are not in it: a bit for each
// hash tells so, in a thirty-second of the memory, which stays in the processor's cache.
type mergeTable struct {
	filter  []uint64 // a bit for each value of the first bits of a hash, 2 more than those of a place
	entries []mergeEntry
	mask    uint64
	shift   uint
}

type mergeEntry struct {
	pair uint64 // both ids, and 1 more: 0 is an empty place
	rank uint32
	id   int32
}

func newMergeTable(n int) *mergeTable {
	bits := uint(4)
	for 1<<bits < 2*n {
		bits++
	}
	return &mergeTable{entries: make([]mergeEntry, 1<<bits), mask: 1<<bits - 1, shift: 64 - bits, filter: make([]uint64, 1<<(bits-4))}
}

func hashOf(pair uint64) uint64 { return pair * 0x9E3779B97F4A7C15 }

func (m *mergeTable) slot(pair uint64) *mergeEntry {
	for i := hashOf(pair) >> m.shift; ; i++ {
		e := &m.entries[i&m.mask]
		if e.pair == pair || e.pair == 0 {
			return e
		}
	}
}

func pairOf(a, b int32) uint64 { return (uint64(uint32(a))<<32 | uint64(uint32(b))) + 1 }

func (m *mergeTable) add(a, b int32, rank uint32, id int32) {
	*m.slot(pairOf(a, b)) = mergeEntry{pairOf(a, b), rank, id}
	bit := hashOf(pairOf(a, b)) >> (m.shift - 2)
	m.filter[bit/64] |= 1 << (bit % 64)
}

const never = math.MaxUint32

// lookUpMerge gives the rank of merging two tokens and what becomes of them.
func (m *mergeTable) lookUpMerge(a, b int32) (uint32, int32) {
	pair := pairOf(a, b)
	if bit := hashOf(pair) >> (m.shift - 2); m.filter[bit/64]>>(bit%64)&1 == 0 {
		return never, none
	}
	e := m.slot(pair)
	if e.pair == 0 {
		return never, none
	}
	return e.rank, e.id
}

func (m *bpe) tokenize(e *Encoder, piece []byte) {
	if !m.cuts {
		m.encodeCached(e, piece)
		return
	}
	// Where no merge joins a character with the one behind it, none ever crosses from the
	// one to the other, so that a long text comes apart into words without changing anything.
	begin, previous := 0, otherCharacter
	for i := 0; i < len(piece); {
		r, n := utf8.DecodeRune(piece[i:])
		c := characterOf(r)
		if i > begin && !m.joined[previous][c] {
			m.encodeCached(e, piece[begin:i])
			begin = i
		}
		previous = c
		i += n
	}
	m.encodeCached(e, piece[begin:])
}

// joints says of two characters whether a merge joins a token that ends in the one with
// a token that begins with the other. It knows ASCII and ▁ apart, and all others are one
// to it.
type joints [otherCharacter + 1][otherCharacter + 1]bool

const (
	markCharacter  = utf8.RuneSelf
	otherCharacter = utf8.RuneSelf + 1
)

func characterOf(r rune) int {
	switch {
	case r < utf8.RuneSelf:
		return int(r)
	case r == '▁':
		return markCharacter
	}
	return otherCharacter
}

// addMerge notes a merge.
func (j *joints) addMerge(left, right string) {
	a, _ := utf8.DecodeLastRuneInString(left)
	b, _ := utf8.DecodeRuneInString(right)
	j[characterOf(a)][characterOf(b)] = true
	// The token of a byte stands for a character that is not in the vocabulary, and is
	// spelt otherwise: what is merged with one, any character may be.
	if _, is := byteToken(left); is {
		j.allowAll()
	} else if _, is := byteToken(right); is {
		j.allowAll()
	}
}

func (j *joints) allowAll() {
	for a := range j {
		for b := range j[a] {
			j[a][b] = true
		}
	}
}

func (m *bpe) encodeCached(e *Encoder, piece []byte) {
	if e.appendCached(piece) {
		return
	}
	before := len(e.ids)
	id, whole := uint32(0), false
	if m.whole {
		id, whole = m.vocab[string(piece)]
	}
	if whole {
		e.ids = append(e.ids, id)
	} else {
		m.mergePiece(e, piece)
	}
	e.cachePiece(piece, before)
}

func (m *bpe) mergePiece(e *Encoder, piece []byte) {
	e.symbols = m.initialTokens(e.symbols[:0], piece)
	if len(e.symbols) <= longPiece {
		e.symbols = m.mergeShort(e, e.symbols)
	} else {
		e.symbols = m.mergeLong(e, e.symbols)
	}
	for _, id := range e.symbols {
		e.ids = append(e.ids, uint32(id))
	}
}

// initialTokens appends the tokens that a piece begins as.
func (m *bpe) initialTokens(dst []int32, piece []byte) []int32 {
	if m.bytes != nil {
		for _, b := range piece {
			switch id := m.bytes[b]; {
			case id >= 0:
				dst = append(dst, id)
			case m.unknown >= 0 && !(m.fuse && len(dst) > 0 && dst[len(dst)-1] == m.unknown):
				dst = append(dst, m.unknown)
			}
		}
		return dst
	}
	unknown := false // the last one
	for i := 0; i < len(piece); {
		r, n := utf8.DecodeRune(piece[i:])
		char := piece[i : i+n]
		id, ok := m.chars.idOf(r)
		if m.prefix != "" && i > 0 || m.suffix != "" && i+n == len(piece) {
			whole := string(char)
			if i > 0 {
				whole = m.prefix + whole
			}
			if i+n == len(piece) {
				whole += m.suffix
			}
			var token uint32
			token, ok = m.vocab[whole]
			id = int32(token)
		}
		i += n
		if ok {
			dst, unknown = append(dst, id), false
			continue
		}
		if m.fallback.hasBytes(char) {
			for _, b := range char {
				dst = append(dst, m.fallback[b])
			}
			continue
		}
		if m.unknown >= 0 && !(m.fuse && unknown) {
			dst = append(dst, m.unknown)
		}
		unknown = true
	}
	return dst
}

// longPiece is from where on a heap is faster than looking for the lowest rank.
const longPiece = 96

func (m *bpe) mergeShort(e *Encoder, ids []int32) []int32 {
	n := len(ids)
	if n < 2 {
		return ids
	}
	ranks, into := e.ranks[:0], e.into[:0]
	for i := 0; i+1 < n; i++ {
		rank, id := m.merges.lookUpMerge(ids[i], ids[i+1])
		ranks, into = append(ranks, rank), append(into, id)
	}
	e.ranks, e.into = ranks, into
	for {
		best, at := uint32(never), -1
		for i, r := range ranks {
			if r < best {
				best, at = r, i
			}
		}
		if at < 0 {
			return ids
		}
		ids[at] = into[at]
		copy(ids[at+1:], ids[at+2:])
		ids = ids[:len(ids)-1]
		if at+1 < len(ranks) {
			copy(ranks[at+1:], ranks[at+2:])
			copy(into[at+1:], into[at+2:])
		}
		ranks, into = ranks[:len(ranks)-1], into[:len(into)-1]
		if at > 0 {
			ranks[at-1], into[at-1] = m.merges.lookUpMerge(ids[at-1], ids[at])
		}
		if at < len(ranks) {
			ranks[at], into[at] = m.merges.lookUpMerge(ids[at], ids[at+1])
		}
	}
}

// candidate is a pair that may be merged: its rank above its place, so that
// the least of all is the leftmost of the lowest rank.
type candidate struct {
	order uint64
	id    int32
}

func (m *bpe) mergeLong(e *Encoder, ids []int32) []int32 {
	n := len(ids)
	e.neighbours = slices.Grow(e.neighbours[:0], 2*n)[:2*n]
	next, previous, heap := e.neighbours[:n], e.neighbours[n:], e.heap[:0]
	push := func(at int32) {
		if to := next[at]; to < int32(n) {
			if rank, id := m.merges.lookUpMerge(ids[at], ids[to]); id >= 0 {
				heap = siftUp(append(heap, candidate{uint64(rank)<<32 | uint64(at), id}))
			}
		}
	}
	for i := range ids {
		next[i], previous[i] = int32(i+1), int32(i-1)
	}
	for i := range ids {
		push(int32(i))
	}
	for len(heap) > 0 {
		c := heap[0]
		heap = popLeast(heap)
		at := int32(uint32(c.order))
		if ids[at] == none || next[at] >= int32(n) {
			continue
		}
		to := next[at]
		if _, id := m.merges.lookUpMerge(ids[at], ids[to]); id != c.id {
			continue // it was merged with another meanwhile
		}
		ids[at], ids[to] = c.id, none
		next[at] = next[to]
		if next[at] < int32(n) {
			previous[next[at]] = at
		}
		if previous[at] >= 0 {
			push(previous[at])
		}
		push(at)
	}
	e.heap = heap
	out := ids[:0]
	for _, id := range ids {
		if id != none {
			out = append(out, id)
		}
	}
	return out
}

func siftUp(h []candidate) []candidate {
	i := len(h) - 1
	c := h[i]
	for i > 0 {
		p := (i - 1) / 2
		if h[p].order <= c.order {
			break
		}
		h[i] = h[p]
		i = p
	}
	h[i] = c
	return h
}

// popLeast takes the least one away.
func popLeast(h []candidate) []candidate {
	n := len(h) - 1
	c := h[n]
	h = h[:n]
	i := 0
	for {
		k := 2*i + 1
		if k >= n {
			break
		}
		if k+1 < n && h[k+1].order < h[k].order {
			k++
		}
		if c.order <= h[k].order {
			break
		}
		h[i] = h[k]
		i = k
	}
	if n > 0 {
		h[i] = c
	}
	return h
}
