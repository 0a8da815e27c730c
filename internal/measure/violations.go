package measure

import (
	"pitot/internal/data/result"
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
}

// Violations counts them; at most as many blocks as there are requests.
func (f *Fold) Violations(claims []slo.Claim, blocks int) Violations {
	all := f.part(f.groups.list, nil)
	n := int(all.tally.due())
	v := Violations{N: n, Due: make([]int, len(claims)), Of: make([]int, len(claims)), Blocks: make([][]int, len(claims)), InAny: make([]int, min(blocks, n))}
	for i, c := range claims {
		v.Due[i] = n
		if c.Class != "" {
			v.Due[i] = f.groups.due(c.Class)
		}
		v.Blocks[i] = make([]int, min(blocks, v.Due[i]))
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
			if c.Violates(one) {
				v.Of[i]++
				v.Blocks[i][of[i]*len(v.Blocks[i])/v.Due[i]]++
				any = true
			}
			of[i]++
		}
		if any {
			v.Any++
			v.InAny[k*len(v.InAny)/n]++
		}
	}
	return v
}

// windowBlocks is into how many blocks a window's violations are divided.
const windowBlocks = 10

// inBlocks are the violations of each claim of the objective, none where it has a limit
// that is no claim on requests.
func (f *Fold) inBlocks() (list []result.Violations) {
	claims, err := f.setup.SLO.Claims()
	if err != nil {
		return nil
	}
	v := f.Violations(claims, windowBlocks)
	for i, c := range claims {
		one := result.Violations{Spec: c.Spec, Allowed: c.Share, Blocks: v.Blocks[i]}
		if c.Class != "" {
			one.Due = &v.Due[i]
		}
		list = append(list, one)
	}
	return list
}
