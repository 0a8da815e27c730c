package sglang

import (
	"container/heap"
	"sort"

	"pitot/internal/twin"
)

// tree is the radix cache: the tokens of requests that ended, or of whose prompt a part
// is computed, by their beginnings. A request that uses a path holds it; what nobody holds
// can be evicted, the least recently used leaf first (radix_cache.py).
type tree struct {
	root    *node
	leaves  map[*node]struct{} // that nobody holds
	tokens  int                // of all nodes
	held    int                // of these, of nodes that are held
	clock   int64
	created int
}

// node is a stretch of tokens behind those of its parents.
type node struct {
	parent   *node
	children map[uint64]*node // by their first token
	content  twin.Content
	from, to int
	holders  int
	used     int64 // when
	born     int
}

func newTree() *tree {
	t := &tree{leaves: make(map[*node]struct{})}
	t.root = &node{children: make(map[uint64]*node)}
	return t
}

// evictable is how many tokens nobody holds.
func (t *tree) evictable() int { return t.tokens - t.held }

// match finds the longest beginning of a request's n tokens; the node ends with it.
func (t *tree) match(c twin.Content, n int) (*node, int) {
	t.clock++
	at, found := t.root, 0
	at.used = t.clock
	for found < n {
		next := at.children[c.Tokens(found, found+1)]
		if next == nil {
			break
		}
		same := common(next.content, c, found, min(next.to, n))
		if same == found { // another token with the same number
			break
		}
		if same < next.to {
			next = t.split(next, same)
		}
		at, found = next, same
		at.used = t.clock
		if found < at.to {
			break
		}
	}
	return at, found
}

// common is where two contents that are equal up to a place stop being so, at most to.
func common(a, b twin.Content, from, to int) int {
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

// insert makes a request's n tokens findable. It gives the node that ends with them, and
// how many of them were there already.
func (t *tree) insert(c twin.Content, n int) (*node, int) {
	at, found := t.match(c, n)
	if found == n {
		return at, found
	}
	t.created++
	leaf := &node{parent: at, children: make(map[uint64]*node), content: c, from: found, to: n, used: t.clock, born: t.created}
	delete(t.leaves, at)
	at.children[c.Tokens(found, found+1)] = leaf
	t.leaves[leaf] = struct{}{}
	t.tokens += n - found
	return leaf, found
}

// hold keeps a node and those before it from being evicted.
func (t *tree) hold(n *node) {
	for ; n != nil && n != t.root; n = n.parent {
		if n.holders == 0 {
			t.held += n.to - n.from
			delete(t.leaves, n)
		}
		n.holders++
	}
}

// free undoes hold.
func (t *tree) free(n *node) {
	for ; n != nil && n != t.root; n = n.parent {
		if n.holders--; n.holders == 0 {
			t.held -= n.to - n.from
			if len(n.children) == 0 {
				t.leaves[n] = struct{}{}
			}
		}
	}
}

// evict takes away at least so many tokens, as far as there are any, and says how many.
func (t *tree) evict(tokens int) (gone int) {
	old := make(oldest, 0, len(t.leaves))
	for n := range t.leaves {
		old = append(old, n)
	}
	heap.Init(&old)
	for gone < tokens && len(old) > 0 {
		n := heap.Pop(&old).(*node)
		gone += n.to - n.from
		t.tokens -= n.to - n.from
		delete(t.leaves, n)
		p := n.parent
		delete(p.children, n.content.Tokens(n.from, n.from+1))
		if p != t.root && len(p.children) == 0 && p.holders == 0 {
			t.leaves[p] = struct{}{}
			heap.Push(&old, p)
		}
	}
	return gone
}

// oldest is leaves as a heap, the least recently used first.
type oldest []*node

func (o oldest) Len() int { return len(o) }

func (o oldest) Less(i, j int) bool {
	if o[i].used != o[j].used {
		return o[i].used < o[j].used
	}
	return o[i].born < o[j].born
}

func (o oldest) Swap(i, j int) { o[i], o[j] = o[j], o[i] }
func (o *oldest) Push(x any)   { *o = append(*o, x.(*node)) }

func (o *oldest) Pop() any {
	n := (*o)[len(*o)-1]
	*o = (*o)[:len(*o)-1]
	return n
}
