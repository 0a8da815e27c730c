package measure

import (
	"pitot/internal/data/result"
	"pitot/internal/slo"
)

// Violations counts the requests of the cohort that violate claims. Failed,
// cut and unsent requests violate every claim.
type Violations struct {
	N      int     // requests due
	Any    int     // that violate some claim
	Of     []int   // each claim
	Blocks [][]int // of each claim, in equal blocks of consecutive requests by due time
	InAny  []int   // of Any, likewise
}

// Violations counts them; at most as many blocks as there are requests.
func (f *Fold) Violations(claims []slo.Claim, blocks int) Violations {
	all := f.part(f.groups.list, nil)
	v := Violations{N: int(all.tally.due()), Of: make([]int, len(claims)), Blocks: make([][]int, len(claims))}
	blocks = min(blocks, v.N)
	for i := range v.Blocks {
		v.Blocks[i] = make([]int, blocks)
	}
	v.InAny = make([]int, blocks)
	one := &judged{part: all}
	k := -1
	for q := range all.requests() {
		one.q = q
		k++
		any := false
		for i, c := range claims {
			if c.Violates(one) {
				v.Of[i]++
				v.Blocks[i][k*blocks/v.N]++
				any = true
			}
		}
		if any {
			v.Any++
			v.InAny[k*blocks/v.N]++
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
		list = append(list, result.Violations{Spec: c.Spec, Allowed: c.Share, Blocks: v.Blocks[i]})
	}
	return list
}
