package workload

import (
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"pitot/internal/say"
	"pitot/internal/workload/arrival"
	"pitot/internal/workload/seed"
)

// Tree holds texts that fork, with which the prompts of many requests begin. A request goes from
// the root down, one level after the other. Its prompt begins with the texts on that path. So
// requests share as much as their paths have in common. There may be several trees, each with its
// share of the requests. [ParseTree] reads it, and it never changes.
type Tree struct {
	written  string
	branches []branch
}

// branch is one tree of those side by side.
type branch struct {
	share  float64 // of the requests
	upTo   float64 // and of all before
	levels []level // none: the prompt begins with nothing that is shared
}

// level is one step down: each place above it forks into so many.
type level struct {
	siblings int
	length   Lengths // of the text of each
	zipf     float64 // the k-th is as likely as k^-zipf; 0: all are alike
	upTo     []float64
}

// Bounds of a tree.
const (
	mostSiblings = 1 << 20
	mostLevels   = 16
	mostBranches = 64
)

const treeHint = "write tree(1x512, 8x1024 zipf(1.1), 64x256): at each level how many there are, how long, and zipf(s) where some are used more than others; or several as 0.6*tree(10x100) + 0.4*tree(4x2000), with none for no prefix"

// ParseTree reads "tree(COUNTxLENGTH [zipf(s)|uniform], …)", or a sum of such with the
// share of the requests that each has, as "0.6*tree(10x100) + 0.3*tree(4x2000) + 0.1*none".
// LENGTH is as [ParseLengths] reads it, drawn once for each text. Every error is a
// [say.Error].
func ParseTree(s string) (*Tree, error) {
	fail := func(format string, args ...any) (*Tree, error) {
		return nil, say.Errorf("prefix %.60q: %s", s, say.Errorf(format, args...).Error()).WithHint(treeHint)
	}
	t := &Tree{}
	terms, ok := arrival.SplitOutside(strings.ToLower(s), '+')
	if !ok {
		return fail("a parenthesis is missing")
	}
	if len(terms) > mostBranches {
		return fail("%d trees, want at most %d", len(terms), mostBranches)
	}
	var written []string
	all := 0.
	for _, term := range terms {
		term = strings.TrimSpace(term)
		b := branch{share: 1}
		if share, rest, ok := strings.Cut(term, "*"); ok {
			x, err := strconv.ParseFloat(strings.TrimSpace(share), 64)
			if err != nil || !(x > 0 && x <= 1) {
				return fail("%.20q is no share of the requests, want above 0 and at most 1", share)
			}
			b.share, term = x, strings.TrimSpace(rest)
		} else if len(terms) > 1 {
			return fail("%.30q has no share of the requests", term)
		}
		text := "none"
		if term != "none" {
			inner, is := strings.CutPrefix(term, "tree(")
			inner, closed := strings.CutSuffix(inner, ")")
			parts, ok := arrival.SplitOutside(inner, ',')
			if !is || !closed || !ok {
				return fail("%.30q is no tree", term)
			}
			if len(parts) > mostLevels {
				return fail("%d levels, want at most %d", len(parts), mostLevels)
			}
			var levels []string
			for _, p := range parts {
				l, err := parseLevel(strings.TrimSpace(p))
				if err != nil {
					return fail("%v", err)
				}
				b.levels, levels = append(b.levels, l), append(levels, l.String())
			}
			text = "tree(" + strings.Join(levels, ", ") + ")"
		}
		if all += b.share; len(terms) > 1 {
			text = say.Exact(b.share) + "*" + text
		}
		b.upTo = all
		t.branches, written = append(t.branches, b), append(written, text)
	}
	if math.Abs(all-1) > 1e-9 {
		return fail("the shares of the requests come to %s, want 1", say.Exact(all))
	}
	t.branches[len(t.branches)-1].upTo = 1
	if t.Mean() == 0 {
		return fail("nothing in it is shared")
	}
	if t.longestPath() > MaxLength {
		return fail("its texts come to more than %s tokens", say.Count(MaxLength))
	}
	t.written = strings.Join(written, " + ")
	return t, nil
}

func parseLevel(s string) (l level, err error) {
	count, rest, ok := strings.Cut(s, "x")
	n, notNumber := strconv.Atoi(strings.TrimSpace(count))
	if !ok || notNumber != nil {
		return l, say.Errorf("%.30q does not begin with how many there are, as 8x1024", s)
	}
	if n < 1 || n > mostSiblings {
		return l, say.Errorf("%d siblings, want 1 to %s", n, say.Count(mostSiblings))
	}
	l.siblings = n
	rest = strings.TrimSpace(rest)
	if length, popular, ok := cutLastWord(rest); ok && (popular == "uniform" || strings.HasPrefix(popular, "zipf(") && length != "") {
		if inner, is := strings.CutPrefix(popular, "zipf("); is {
			x, err := strconv.ParseFloat(strings.TrimSuffix(inner, ")"), 64)
			if err != nil || !(x >= 0 && x <= 10) {
				return l, say.Errorf("%.30q: want zipf(s) with s of 0 to 10", popular)
			}
			l.zipf = x + 0
		}
		rest = length
	}
	if l.length, err = ParseLengths(rest); err != nil {
		return l, err
	}
	if l.zipf > 0 && n > 1 {
		l.upTo = make([]float64, n)
		sum := 0.
		for k := range l.upTo {
			sum += math.Pow(float64(k+1), -l.zipf)
			l.upTo[k] = sum
		}
		for k := range l.upTo {
			l.upTo[k] /= sum
		}
	}
	return l, nil
}

// cutLastWord takes the last of the words of s, which are apart by spaces outside of
// parentheses.
func cutLastWord(s string) (before, last string, ok bool) {
	parts, ok := arrival.SplitOutside(s, ' ')
	if !ok || len(parts) < 2 {
		return s, "", false
	}
	n := len(parts) - 1
	return strings.TrimSpace(strings.Join(parts[:n], " ")), parts[n], true
}

func (l *level) String() string {
	s := strconv.Itoa(l.siblings) + "x" + l.length.String()
	if l.zipf > 0 {
		s += " zipf(" + say.Exact(l.zipf) + ")"
	}
	return s
}

// String writes the tree so that [ParseTree] reads it back; "" for none.
func (t *Tree) String() string {
	if t == nil {
		return ""
	}
	return t.written
}

// Mean is the mean length of what a prompt begins with, in tokens, as the lengths were
// asked for; 0 for no tree.
func (t *Tree) Mean() (sum float64) {
	if t == nil {
		return 0
	}
	for _, b := range t.branches {
		for _, l := range b.levels {
			sum += b.share * l.length.Mean()
		}
	}
	return sum
}

// hasPartialShare says that some requests have no prefix, and others do.
func (t *Tree) hasPartialShare() bool {
	none := func(b branch) bool { return len(b.levels) == 0 }
	return t != nil && slices.ContainsFunc(t.branches, none)
}

// longestPath returns the length of the longest path down, except for one in a million texts.
func (t *Tree) longestPath() (most int) {
	for _, b := range t.branches {
		sum := 0
		for _, l := range b.levels {
			sum += l.length.Quantile(1 - 1e-6)
		}
		most = max(most, sum)
	}
	return most
}

// LeafCount returns the number of paths down in all. It is at most what an int holds.
func (t *Tree) LeafCount() int {
	if t == nil {
		return 0
	}
	sum := 0.
	for _, b := range t.branches {
		n := min(float64(len(b.levels)), 1)
		for _, l := range b.levels {
			n *= float64(l.siblings)
		}
		sum += n
	}
	return int(min(sum, math.MaxInt32))
}

// Streams of a seed that a tree draws from.
const (
	streamBranch = 0x7472_6565_0000_0000 + iota // which tree a request is of
	streamStep                                  // which way it goes at a level, and on from the number of that level
)

const (
	streamNodeLength = 0x6e6f_6465_0000_0000 + iota
	streamNodeText
)

// node is a text of the tree: where it hangs, and how long it is.
type node struct {
	key    uint64
	tokens int
}

// requestPath is the way of a request through the tree; draws are from chosen, lengths of texts
// from lengths, each a seed.
func (t *Tree) requestPath(chosen, lengths, request uint64) (nodes []node) {
	u := seed.Float(seed.At(chosen, streamBranch, request))
	k := sort.Search(len(t.branches)-1, func(k int) bool { return u < t.branches[k].upTo })
	key := treeKey(k)
	for i := range t.branches[k].levels {
		l := &t.branches[k].levels[i]
		n := l.siblingNode(key, i, l.drawSibling(seed.Float(seed.At(chosen, streamStep+uint64(i), request))), lengths)
		key, nodes = n.key, append(nodes, n)
	}
	return nodes
}

// treeKey is the key of the k-th tree.
func treeKey(k int) uint64 { return seed.Mix(uint64(k) + 1) }

// siblingNode is one of the siblings of level i below a place.
func (l *level) siblingNode(above uint64, i, which int, lengths uint64) node {
	key := seed.At(above, uint64(i)+1, uint64(which))
	return node{key, l.length.Draw(seed.At(lengths, streamNodeLength, key))}
}

// allPaths are all that there are, the less popular first.
func (t *Tree) allPaths(lengths uint64) (all [][]node) {
	for k := len(t.branches) - 1; k >= 0; k-- {
		levels := t.branches[k].levels
		var down func(key uint64, so []node)
		down = func(key uint64, so []node) {
			i := len(so)
			if i == len(levels) {
				if i > 0 {
					all = append(all, slices.Clone(so))
				}
				return
			}
			for which := levels[i].siblings - 1; which >= 0; which-- {
				n := levels[i].siblingNode(key, i, which, lengths)
				down(n.key, append(so, n))
			}
		}
		down(treeKey(k), nil)
	}
	return all
}

// drawSibling is which of the siblings a number of (0, 1) stands for, the most popular first.
func (l *level) drawSibling(u float64) int {
	if l.upTo == nil {
		return min(int(u*float64(l.siblings)), l.siblings-1)
	}
	return sort.SearchFloat64s(l.upTo[:l.siblings-1], u)
}
