package metrics

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"pitot/internal/results/record"
	"pitot/internal/results/spill"
	"pitot/internal/stats"
)

// maxClasses is the number of parts of a cohort that a report shows at most.
const maxClasses = 6

// maxNamed is the number of parts that it shows at most of those that the workload names.
const maxNamed = 12

// groups holds what is pooled while records come in, by the class the
// workload gave or else by the power of four that the input length reaches.
// Which of them become classes is decided when the point is asked for.
type groups struct {
	store *spill.Store
	list  []*group
	names map[groupKey]int32
}

type groupKey struct {
	name   string // "" for one by length
	bucket int8   // input ≤ 4^bucket, -1 if its length is not known
}

type group struct {
	key   groupKey
	index int32
	gaps  *gapSet
	tally requestTally
	n     int
	// shortest and longest input
	low, high int32
}

func newGroups(s *spill.Store) groups { return groups{store: s, names: map[groupKey]int32{}} }

func (g *groups) groupOf(r *record.Row) *group {
	length := r.InputPlanned
	if length < 0 {
		length = r.PromptTokens
	}
	key := groupKey{name: r.Class}
	if key.name == "" {
		key.bucket = lengthBucket(length)
	}
	i, ok := g.names[key]
	if !ok {
		i = int32(len(g.list))
		g.names[key] = i
		g.list = append(g.list, &group{key: key, index: i, gaps: newGapSet(g.store), low: length, high: length})
	}
	p := g.list[i]
	p.n++
	p.low, p.high = min(p.low, length), max(p.high, length)
	return p
}

// groupsOf are the groups of a class that the workload gave.
func (g *groups) groupsOf(class string) (list []*group) {
	if i, ok := g.names[groupKey{name: class}]; ok {
		list = append(list, g.list[i])
	}
	return list
}

// dueCount returns the number of requests of a class.
func (g *groups) dueCount(class string) (n int) {
	for _, p := range g.groupsOf(class) {
		n += p.n
	}
	return n
}

// lengthBucket is the least b with length ≤ 4^b.
func lengthBucket(length int32) int8 {
	if length < 0 {
		return -1
	}
	if length <= 1 {
		return 0
	}
	return int8((bits.Len32(uint32(length-1)) + 1) / 2)
}

// class is a part of the cohort as it is shown.
type class struct {
	name   string
	groups []*group
	n      int
}

// shownClasses says which parts to show: the workload's own, the largest five and
// the rest; or by input length, when the longest is at least four times the
// shortest. One part alone is none.
func (g *groups) shownClasses() []class {
	list := slices.Clone(g.list)
	named := slices.ContainsFunc(list, func(p *group) bool { return p.key.name != "" })
	var out []class
	if named {
		out = byName(list)
	} else {
		out = byLength(list)
	}
	if len(out) < 2 {
		return nil
	}
	return out
}

func byName(list []*group) []class {
	var out []class
	rest := class{name: "other"}
	for _, p := range list {
		if p.key.name == "" || p.key.name == rest.name {
			rest.groups, rest.n = append(rest.groups, p), rest.n+p.n
			continue
		}
		out = append(out, class{p.key.name, []*group{p}, p.n})
	}
	stats.SortStable(out, func(a, b class) int {
		return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.name, b.name))
	})
	for len(out) > maxNamed || len(out) == maxNamed && rest.n > 0 {
		last := out[len(out)-1]
		rest.groups, rest.n = append(rest.groups, last.groups...), rest.n+last.n
		out = out[:len(out)-1]
	}
	if rest.n > 0 {
		out = append(out, rest)
	}
	return out
}

func byLength(list []*group) []class {
	stats.SortStable(list, func(a, b *group) int { return cmp.Compare(a.key.bucket, b.key.bucket) })
	if len(list) == 0 || list[0].key.bucket >= 0 && list[len(list)-1].high < 4*max(list[0].low, 1) {
		return nil
	}
	var out []class
	for _, p := range list {
		out = append(out, class{groups: []*group{p}, n: p.n})
	}
	for len(out) > maxClasses { // join the two neighbours that are fewest together
		best := 0
		for i := range len(out) - 1 {
			if out[i].n+out[i+1].n < out[best].n+out[best+1].n {
				best = i
			}
		}
		a, b := out[best], out[best+1]
		out[best] = class{groups: append(a.groups, b.groups...), n: a.n + b.n}
		out = slices.Delete(out, best+1, best+2)
	}
	for i := range out {
		first, last := out[i].groups[0].key.bucket, out[i].groups[len(out[i].groups)-1].key.bucket
		top := 1 << (2 * max(last, 0))
		switch {
		case last < 0:
			out[i].name = "input unknown"
		case i == 0 || first <= 0:
			out[i].name = fmt.Sprintf("input ≤%d", top)
		default:
			out[i].name = fmt.Sprintf("input %d–%d", 1<<(2*(first-1))+1, top)
		}
	}
	return out
}
