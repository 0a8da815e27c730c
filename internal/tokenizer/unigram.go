package tokenizer

import "unicode/utf8"

// unigram is SentencePiece's model: of all ways to make a piece of tokens, the
// one whose scores add up to the most (Kudo 2018), found by Viterbi's algorithm.
type unigram struct {
	tokens   *trie
	scores   []float64
	vocab    map[string]uint32
	unknown  int32   // the token of what is not in the vocabulary, or none
	penalty  float64 // the score of a character that is no token
	fallback *byteTokens
	single   bool // scores are added in single precision, as SentencePiece itself does
}

// unknownPenalty is by how much an unknown character is worse than the worst token.
const unknownPenalty = 10

// path is the best way to the place where it stands.
type path struct {
	score float64
	from  int32 // where its last token begins, or none
	id    int32
}

func (m *unigram) tokenize(e *Encoder, piece []byte) {
	if e.appendCached(piece) {
		return
	}
	before := len(e.ids)
	n := len(piece)
	best := e.paths[:0]
	for range n + 1 {
		best = append(best, path{from: none})
	}
	e.paths = best
	for at := 0; at < n; {
		here := best[at].score
		_, size := utf8.DecodeRune(piece[at:])
		single := false
		node := int32(0)
		for i := at; i < n; i++ {
			edge := m.tokens.slot(edgeOf(node, piece[i]))
			if edge.from == 0 {
				break
			}
			node = edge.to
			id := m.tokens.ids[node]
			if id < 0 {
				continue
			}
			to := &best[i+1]
			if score := m.sum(m.scores[id], here); to.from == none || score > to.score {
				*to = path{score, int32(at), id}
			}
			single = single || i+1 == at+size
		}
		if !single {
			to := &best[at+size]
			if score := m.sum(m.penalty, here); to.from == none || score > to.score {
				*to = path{score, int32(at), m.unknown}
			}
		}
		at += size
	}
	// Backwards: neighbours that are unknown are one.
	parts := e.symbols[:0] // begins of the tokens, and their ids
	for end, fused := n, false; end > 0; {
		p := best[end]
		if p.id == m.unknown && fused {
			parts[len(parts)-2] = p.from
		} else {
			parts = append(parts, p.from, p.id)
		}
		fused = p.id == m.unknown
		end = int(p.from)
	}
	e.symbols = parts
	for i := len(parts) - 2; i >= 0; i -= 2 {
		if id := parts[i+1]; id != m.unknown {
			e.ids = append(e.ids, uint32(id))
			continue
		}
		end := n
		if i >= 2 {
			end = int(parts[i-2])
		}
		m.appendUnknown(e, piece[parts[i]:end])
	}
	e.cachePiece(piece, before)
}

func (m *unigram) sum(a, b float64) float64 {
	if m.single {
		return float64(float32(a) + float32(b))
	}
	return a + b
}

// appendUnknown appends what stands for text that is not in the vocabulary.
func (m *unigram) appendUnknown(e *Encoder, text []byte) {
	if id, ok := m.vocab[string(text)]; ok { // the text of the unknown token itself
		e.ids = append(e.ids, id)
		return
	}
	if m.fallback.hasBytes(text) {
		for _, b := range text {
			e.ids = append(e.ids, uint32(m.fallback[b]))
		}
		return
	}
	if m.unknown >= 0 {
		e.ids = append(e.ids, uint32(m.unknown))
	}
}
