package profile

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"

	"pitot/internal/stats"
)

// tree counts what prompts begin with, by keyed hashes, in bounded memory: where there are
// too many beginnings those that the fewest had are forgotten (after Manku and Motwani,
// Approximate frequency counts over data streams, VLDB 2002).
type tree struct {
	enough enough
	nodes  map[uint64]node // by value: the collector need not look at a million of them
	n      int             // requests
	seen   []ended
}

// node is a block and all before it.
type node struct {
	before  uint64
	count   int32
	last    int32 // request that had it last
	clients [2]uint64
	session uint64 // of the request that had it last
	tokens  float32
}

// ended is a request as the tree needs it when all are known: a few of its nodes.
type ended struct {
	input int32
	again int32 // tokens that one before began with too, 0 for none
	back  int32
	node  uint64 // the deepest one that several had by then, 0 for none
	who   uint64
}

const (
	// mostNodes bounds the tree.
	mostNodes = 1 << 19
	// mostEnded bounds the requests whose place in it is told.
	mostEnded = 1 << 20
)

func newTree(e enough) *tree {
	return &tree{enough: e, nodes: map[uint64]node{}}
}

func (t *tree) add(chain []uint64, tokens float64, input int, client, session uint64) {
	if len(t.seen) >= mostEnded {
		return
	}
	hits, deepest := 0, node{}
	for hits < len(chain) {
		n, ok := t.nodes[chain[hits]]
		if !ok {
			break
		}
		hits, deepest = hits+1, n
	}
	e := ended{input: int32(input), who: client}
	if n := deepest; hits > 0 {
		if session == 0 || n.session != session { // one's own history is no sharing
			e.again, e.back = int32(min(float64(hits)*tokens, float64(input))), int32(t.n)-n.last
		}
	}
	before := uint64(0)
	for i, h := range chain {
		n, ok := t.nodes[h]
		if !ok {
			if len(t.nodes) >= mostNodes {
				t.forget()
			}
			n = node{before: before, tokens: float32(tokens * float64(i+1))}
		}
		n.count++
		n.last, n.session = int32(t.n), session
		switch {
		case n.clients[0] == 0:
			n.clients[0] = client
		case n.clients[1] == 0 && n.clients[0] != client:
			n.clients[1] = client
		}
		t.nodes[h] = n
		before = h
	}
	// Where the request ends in the common part is told once all are known; until then its
	// deepest node that has been there before, or its first, stands for it.
	e.node = chain[max(hits, 1)-1]
	t.seen = append(t.seen, e)
	t.n++
}

// forget drops the nodes that the fewest requests had, and of these the older ones.
func (t *tree) forget() {
	for most := int32(1); len(t.nodes) > mostNodes/2; most++ {
		for h, n := range t.nodes {
			if n.count <= most && n.last < int32(t.n)-1 {
				delete(t.nodes, h)
			}
		}
	}
}

func (n *node) isFrequent(e enough) bool {
	clients := 0
	for _, c := range n.clients {
		if c != 0 {
			clients++
		}
	}
	return int(n.count) >= e.requests && clients >= min(e.clients, len(n.clients))
}

// prefixes is the tree of what enough prompts begin with. nil where there is nothing in common.
func (t *tree) prefixes(e enough) *Prefixes {
	if len(t.seen) < e.requests {
		return nil
	}
	public := func(h uint64) uint64 { // the deepest node of its line that enough have
		for h != 0 {
			n, ok := t.nodes[h]
			if !ok {
				return 0
			}
			if n.isFrequent(e) {
				return h
			}
			h = n.before
		}
		return 0
	}
	// Uses by octave of the prompt and deepest public node; what too few are goes up to the
	// node before.
	type use struct {
		octave int
		node   uint64
	}
	uses := map[use]*cell{}
	ends := make([]use, len(t.seen))
	for i := range t.seen {
		s := &t.seen[i]
		u := use{bits.Len32(uint32(s.input)) - 1, public(s.node)}
		addToCell(uses, u, 1, []uint64{s.who}, e.clients)
		ends[i] = u
	}
	// Deepest first, so that what goes up is seen once more.
	moved := map[use]use{}
	order := slices.Collect(maps.Keys(uses))
	for len(order) > 0 {
		stats.SortStable(order, func(a, b use) int {
			return cmp.Compare(t.tokens(b.node), t.tokens(a.node))
		})
		var next []use
		for _, u := range order {
			c := uses[u]
			if c == nil || u.node == 0 || e.isMet(c.n, len(c.clients)) {
				continue
			}
			up := use{u.octave, t.nodes[u.node].before}
			if up.node != 0 {
				up.node = public(up.node)
			}
			fresh := uses[up] == nil
			addToCell(uses, up, c.n, c.clients, e.clients)
			delete(uses, u)
			moved[u] = up
			if fresh || !slices.Contains(next, up) && up.node != 0 {
				next = append(next, up)
			}
		}
		order = next
	}
	// What else was there before is told by sums.
	again := map[int]*grid{} // by octave: tokens, requests back
	for i := range t.seen {
		s, u := &t.seen[i], ends[i]
		for {
			up, ok := moved[u]
			if !ok {
				break
			}
			u = up
		}
		if s.again > 0 && float32(s.again) > t.tokens(u.node)+0.5 {
			if again[u.octave] == nil {
				again[u.octave] = newGrid()
			}
			again[u.octave].add(int(s.again), int(max(s.back, 1)), s.who, max(e.clients, 1))
		}
	}
	p := &Prefixes{Requests: len(t.seen)}
	var octaves [25]int
	for i := range t.seen {
		octaves[bits.Len32(uint32(t.seen[i].input))-1]++
	}
	for k, n := range octaves {
		if n >= e.requests { // of fewer it is not told that there are any
			p.Prompts = append(p.Prompts, [2]int{k, n})
		}
	}
	t.writeNodes(p, func(yield func(octave int, h uint64, n int)) {
		var list []use
		for u, c := range uses {
			if u.node != 0 && e.isMet(c.n, len(c.clients)) {
				list = append(list, u)
			}
		}
		stats.SortStable(list, func(a, b use) int {
			return cmp.Or(cmp.Compare(uses[b].n, uses[a].n),
				cmp.Compare(a.octave, b.octave), cmp.Compare(a.node, b.node))
		})
		for _, u := range list[:min(len(list), mostUses)] {
			yield(u.octave, u.node, uses[u].n)
		}
	})
	for octave := range 25 {
		if again[octave] == nil {
			continue
		}
		for _, a := range again[octave].mergeBuckets(e) {
			p.Again = append(p.Again, [6]int{octave, a[0], a[1], a[2], a[3], a[4]})
		}
	}
	if len(p.Nodes) == 0 && len(p.Again) == 0 {
		return nil
	}
	return p
}

// mostUses bounds the entries of a profile.
const mostUses = 8192

func (t *tree) tokens(h uint64) float32 {
	if h == 0 {
		return 0
	}
	return t.nodes[h].tokens
}

// writeNodes numbers the nodes that are used, and those where the lines of two of them part; what
// lies between is one stretch.
func (t *tree) writeNodes(p *Prefixes, each func(func(octave int, h uint64, n int))) {
	wanted := map[uint64]bool{}
	children := map[uint64]map[uint64]bool{}
	each(func(_ int, h uint64, _ int) {
		wanted[h] = true
		for h != 0 {
			n := t.nodes[h]
			if children[n.before] == nil {
				children[n.before] = map[uint64]bool{}
			}
			children[n.before][h] = true
			h = n.before
		}
	})
	for h, c := range children {
		if h != 0 && len(c) > 1 {
			wanted[h] = true
		}
	}
	number := map[uint64]int{}
	var put func(h uint64) int
	put = func(h uint64) int {
		if h == 0 || number[h] > 0 {
			return number[h]
		}
		up := t.nodes[h].before
		for up != 0 && !wanted[up] {
			up = t.nodes[up].before
		}
		from := put(up)
		p.Nodes = append(p.Nodes, [2]int{from, max(int(t.nodes[h].tokens-t.tokens(up)+.5), 1)})
		number[h] = len(p.Nodes)
		return number[h]
	}
	each(func(octave int, h uint64, n int) { p.Uses = append(p.Uses, [3]int{octave, put(h), n}) })
}
