package tokenizer

// trie finds all tokens that a text begins with, byte by byte: an edge is a
// place in one hash table for all nodes.
type trie struct {
	edges []edge
	mask  uint64
	shift uint
	ids   []int32 // by node: the token that ends there, or none
}

type edge struct {
	from uint64 // node<<8 | byte, and 1 more: 0 is an empty place
	to   int32
}

// newTrie makes room for tokens of so many bytes together.
func newTrie(bytes int) *trie {
	bits := uint(4)
	for 1<<bits < 2*bytes {
		bits++
	}
	return &trie{edges: make([]edge, 1<<bits), mask: 1<<bits - 1, shift: 64 - bits, ids: []int32{none}}
}

// newVocabularyTrie has the tokens of a vocabulary.
func newVocabularyTrie(vocabulary map[string]uint32) *trie {
	bytes := 0
	for token := range vocabulary {
		bytes += len(token)
	}
	t := newTrie(bytes)
	for token, id := range vocabulary {
		t.add(token, id)
	}
	return t
}

func (t *trie) slot(key uint64) *edge {
	for i := key * 0x9E3779B97F4A7C15 >> t.shift; ; i++ {
		e := &t.edges[i&t.mask]
		if e.from == key || e.from == 0 {
			return e
		}
	}
}

func edgeOf(node int32, b byte) uint64 { return (uint64(node)<<8 | uint64(b)) + 1 }

func (t *trie) add(token string, id uint32) {
	node := int32(0)
	for _, b := range []byte(token) {
		e := t.slot(edgeOf(node, b))
		if e.from == 0 {
			*e = edge{edgeOf(node, b), int32(len(t.ids))}
			t.ids = append(t.ids, none)
		}
		node = e.to
	}
	t.ids[node] = int32(id)
}

// longestToken gives the longest token that s begins with, and how many bytes it has: 0 where
// there is none.
func (t *trie) longestToken(s []byte) (id int32, length int) {
	node := int32(0)
	for i, b := range s {
		e := t.slot(edgeOf(node, b))
		if e.from == 0 {
			break
		}
		node = e.to
		if ends := t.ids[node]; ends >= 0 {
			id, length = ends, i+1
		}
	}
	return id, length
}
