package tokenizer

import "hash/maphash"

// What is remembered: pieces of at most so many bytes, and so many of them.
const (
	shortPiece = 48
	mostPieces = 1 << 16
)

// pieces remembers the ids of short pieces of text. It is a hash table with open addressing
// whose texts and ids stand one behind the other: what is new costs no allocation.
type pieces struct {
	seed  maphash.Seed
	slots []slot
	known []known
	texts []byte
	ids   []uint32
}

// slot has the upper half of the hash of a piece and 1 more than its number; number 0 is an empty
// place.
type slot struct{ hash, number uint32 }

// known is a piece: where its text and its ids begin, and how many they are.
type known struct {
	text, ids uint32
	size, n   uint8
}

func newPieces() *pieces { return &pieces{seed: maphash.MakeSeed(), slots: make([]slot, 1<<10)} }

func (p *pieces) slot(hash uint64) *slot { return &p.slots[hash&uint64(len(p.slots)-1)] }

// insertPiece puts the piece of a number into the table.
func (p *pieces) insertPiece(piece []byte, number int) {
	h := maphash.Bytes(p.seed, piece)
	for p.slot(h).number != 0 {
		h++
	}
	*p.slot(h) = slot{uint32(h >> 32), uint32(number)}
}

func (p *pieces) pieceText(number int) []byte {
	k := &p.known[number-1]
	return p.texts[k.text : k.text+uint32(k.size)]
}

// find gives the ids of a piece.
func (p *pieces) find(piece []byte) (ids []uint32, ok bool) {
	for h := maphash.Bytes(p.seed, piece); ; h++ {
		at := p.slot(h)
		if at.number == 0 {
			return nil, false
		}
		if at.hash != uint32(h>>32) {
			continue
		}
		if string(p.pieceText(int(at.number))) == string(piece) {
			k := &p.known[at.number-1]
			return p.ids[k.ids : k.ids+uint32(k.n)], true
		}
	}
}

// addPiece remembers the ids of a piece that is not known.
func (p *pieces) addPiece(piece []byte, ids []uint32) {
	switch n := len(p.known); {
	case n == mostPieces:
		clear(p.slots)
		p.known, p.texts, p.ids = p.known[:0], p.texts[:0], p.ids[:0]
	case 2*n == len(p.slots):
		p.slots = make([]slot, 2*len(p.slots))
		for number := 1; number <= n; number++ {
			p.insertPiece(p.pieceText(number), number)
		}
	}
	p.known = append(p.known, known{uint32(len(p.texts)), uint32(len(p.ids)), uint8(len(piece)), uint8(len(ids))})
	p.texts, p.ids = append(p.texts, piece...), append(p.ids, ids...)
	p.insertPiece(piece, len(p.known))
}
