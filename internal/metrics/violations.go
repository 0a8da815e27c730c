package metrics

import (
	"slices"

	"pitot/internal/results/result"
	"pitot/internal/slo"
)

// Violations counts the requests of the cohort that violate claims. Failed,
// cut and unsent requests violate every claim that is about them.
type Violations struct {
	N      int     // requests due
	Any    int     // that violate some claim
	Due    []int   // requests that each claim is about
	Of     []int   // of them, that violate it
	Blocks [][]int // likewise, in equal blocks of consecutive requests that it is about, by due time
	InAny  []int   // of Any, in such blocks of all requests
	// Cluster is the mean number of requests that a request's session has in the cohort. It is 0
	// where requests stand alone. Blocks are then of whole sessions, in the order in which they
	// began. They are also of the requests that stand alone meanwhile, and of about as many.
	Cluster float64
}

// CountViolations counts them; at most as many blocks as there are requests.
func (f *Fold) CountViolations(claims []slo.Claim, blocks int) Violations {
	all := f.buildPart(f.groups.list, nil)
	n := int(all.tally.dueCount())
	v := Violations{N: n, Due: make([]int, len(claims)), Of: make([]int, len(claims)), Blocks: make([][]int, len(claims)), InAny: make([]int, min(blocks, n))}
	for i, c := range claims {
		v.Due[i] = n
		if c.Class != "" {
			v.Due[i] = f.groups.dueCount(c.Class)
		}
		v.Blocks[i] = make([]int, min(blocks, v.Due[i]))
	}
	in := f.sessionBlocks(n)
	v.Cluster = in.meanClusterSize()
	for i, c := range claims {
		if c.OnAnswers() {
			f.questions.countViolations(&v, i, blocks)
		}
	}
	one := &judged{part: all}
	k, of := -1, make([]int, len(claims)) // requests so far
	for q := range all.requests() {
		one.q = q
		k++
		any := false
		for i, c := range claims {
			if !c.IsAbout(one) {
				continue
			}
			if c.ViolatedBy(one) {
				v.Of[i]++
				v.Blocks[i][in.block(q, of[i], v.Due[i], len(v.Blocks[i]))]++
				any = true
			}
			of[i]++
		}
		if any {
			v.Any++
			v.InAny[in.block(q, k, n, len(v.InAny))]++
		}
	}
	return v
}

// sessionBlocks says where each request of a cohort stands when whole sessions are put one
// behind the other; nil where requests stand alone, or are too many to be kept.
type sessionBlocks struct {
	before map[int64]int // by request: how many are of sessions that began before its own
	sizes  []int         // of sessions
	alone  int           // requests that are of none
}

func (f *Fold) sessionBlocks(n int) *sessionBlocks {
	if len(f.talks.list) == 0 || f.talks.dropped {
		return nil
	}
	sizes, sessions := map[int64]int{}, []int64{}
	for i := range f.talks.list {
		if q := &f.talks.list[i]; f.conditions.InWindow(q.due) {
			if sizes[q.session] == 0 {
				sessions = append(sessions, q.session)
			}
			sizes[q.session]++
		}
	}
	slices.Sort(sessions)
	b, at, before := &sessionBlocks{before: make(map[int64]int, n)}, 0, make(map[int64]int, len(sessions))
	for _, s := range sessions {
		before[s], at = at, at+sizes[s]
		b.sizes = append(b.sizes, sizes[s])
	}
	for i := range f.talks.list {
		if q := &f.talks.list[i]; f.conditions.InWindow(q.due) {
			b.before[q.id] = before[q.session]
		}
	}
	b.alone = max(n-len(b.before), 0)
	return b
}

// block is the one of so many that a request belongs to, which is the k-th of n. One that
// stands alone among sessions is put by its time.
func (b *sessionBlocks) block(q *Request, k, n, blocks int) int {
	if b != nil {
		if before, ok := b.before[q.id]; ok {
			k, n = before, len(b.before)
		}
	}
	return min(k*blocks/max(n, 1), blocks-1)
}

// meanClusterSize is the mean size of the session that a request is of.
func (b *sessionBlocks) meanClusterSize() float64 {
	if b == nil {
		return 0
	}
	sum, squares := float64(b.alone), float64(b.alone)
	for _, n := range b.sizes {
		sum, squares = sum+float64(n), squares+float64(n)*float64(n)
	}
	return squares / max(sum, 1)
}

// windowBlocks is into how many blocks a window's violations are divided.
const windowBlocks = 10

// inBlocks are the violations of each claim of the objective, none where it has a limit
// that is no claim on requests.
func (f *Fold) inBlocks() (list []result.Violations) {
	claims, err := f.setup.SLO.SplitClaims()
	if err != nil {
		return nil
	}
	v := f.CountViolations(claims, windowBlocks)
	for i, c := range claims {
		one := result.Violations{Spec: c.Spec, Allowed: c.Share, Blocks: v.Blocks[i]}
		if c.Class != "" || c.OnAnswers() {
			one.Due = &v.Due[i]
		}
		list = append(list, one)
	}
	return list
}
