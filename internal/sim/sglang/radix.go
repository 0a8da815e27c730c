package sglang

import (
	"container/heap"
	"sort"

	"pitot/internal/sim"
)

// tree is the radix cache: the tokens of requests that ended, or of whose prompt a part
// is computed, by their beginnings. A request that uses a path holds it; what nobody holds
// can be evicted, the least recently used leaf first (radix_cache.py).
type tree struct {
	root    *node
	old     oldest // leaves that nobody holds, each once, with those that are so no more
	tokens  int    // of all nodes
	held    int    // of these, of nodes that are held
	clock   int64
	created int

	evicted, evictions int64 // tokens, and times at which any were
}

// node is a stretch of tokens behind those of its parents.
type node struct {
	parent   *node
	children map[uint64]*node // by their first token
	content  sim.Content
	from, to int
	holders  int
	used     int64 // when
	born     int
	listed   bool // among the oldest
}

func newTree() *tree {
	return &tree{root: &node{children: make(map[uint64]*node)}}
}

// evictable returns the number of tokens that no request holds.
func (t *tree) evictable() int { return t.tokens - t.held }

// match finds the longest beginning of a request's n tokens; the node ends with it.
func (t *tree) match(c sim.Content, n int) (*node, int) {
	t.clock++
	at, found := t.root, 0
	at.used = t.clock
	for found < n {
		next := at.children[c.Tokens(found, found+1)]
		if next == nil {
			break
		}
		same := commonLength(next.content, c, found, min(next.to, n))
		if same == found { // another token with the same number
			break
		}
		next.used = t.clock
		if same < next.to {
			next = t.split(next, same)
		}
		at, found = next, same
		if found < at.to {
			break
		}
	}
	return at, found
}

// commonLength is where two contents that are equal up to a place stop being so, at most to.
func commonLength(a, b sim.Content, from, to int) int {
	return from + sort.Search(to-from, func(k int) bool {
		return a.Tokens(from, from+k+1) != b.Tokens(from, from+k+1)
	})
}

// split divides a node in two and gives the first.
func (t *tree) split(n *node, at int) *node {
	first := &node{
		parent: n.parent, children: map[uint64]*node{n.content.Tokens(at, at+1): n},
		content: n.content, from: n.from, to: at, holders: n.holders, used: n.used, born: n.born,
	}
	n.parent.children[n.content.Tokens(n.from, n.from+1)] = first
	n.parent, n.from = first, at
	return first
}

// insert makes a request's n tokens findable. It gives the node that ends with them.
func (t *tree) insert(c sim.Content, n int) *node {
	at, found := t.match(c, n)
	if found == n {
		return at
	}
	t.created++
	leaf := &node{parent: at, children: make(map[uint64]*node), content: c, from: found, to: n, used: t.clock, born: t.created}
	at.children[c.Tokens(found, found+1)] = leaf
	t.listEvictable(leaf)
	t.tokens += n - found
	return leaf
}

// hold keeps a node and those before it from being evicted.
func (t *tree) hold(n *node) {
	for ; n != nil && n != t.root; n = n.parent {
		if n.holders == 0 {
			t.held += n.to - n.from
		}
		n.holders++
	}
}

// releaseNode undoes hold.
func (t *tree) releaseNode(n *node) {
	for ; n != nil && n != t.root; n = n.parent {
		if n.holders--; n.holders == 0 {
			t.held -= n.to - n.from
			t.listEvictable(n)
		}
	}
}

// listEvictable notes a node that may be evicted.
func (t *tree) listEvictable(n *node) {
	if !n.listed && n != t.root && n.holders == 0 && len(n.children) == 0 {
		n.listed = true
		heap.Push(&t.old, leaf{n, n.used})
	}
}

// evict takes away at least so many tokens, as far as there are any, and says how many.
func (t *tree) evict(tokens int) (gone int) {
	for gone < tokens && len(t.old) > 0 {
		l := heap.Pop(&t.old).(leaf)
		n := l.node
		n.listed = false
		if n.used != l.used || n.holders > 0 || len(n.children) > 0 {
			t.listEvictable(n) // it was used meanwhile, so others are older
			continue
		}
		gone += n.to - n.from
		t.tokens -= n.to - n.from
		delete(n.parent.children, n.content.Tokens(n.from, n.from+1))
		t.listEvictable(n.parent)
	}
	if gone > 0 {
		t.evicted += int64(gone)
		t.evictions++
	}
	return gone
}

// leaf is a node as it was when it was listed.
type leaf struct {
	*node
	used int64
}

// oldest is leaves as a heap, the least recently used first.
type oldest []leaf

func (o oldest) Len() int { return len(o) }

func (o oldest) Less(i, j int) bool {
	if o[i].used != o[j].used {
		return o[i].used < o[j].used
	}
	return o[i].born < o[j].born
}

func (o oldest) Swap(i, j int) { o[i], o[j] = o[j], o[i] }
func (o *oldest) Push(x any)   { *o = append(*o, x.(leaf)) }

func (o *oldest) Pop() any {
	l := (*o)[len(*o)-1]
	*o = (*o)[:len(*o)-1]
	return l
}
