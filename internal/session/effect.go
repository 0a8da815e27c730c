package session

import (
	"cmp"
	"slices"

	"pitot/internal/metrics"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// pairs keeps when the first tokens of two points came that are compared request by
// request: --cache both.
type pairs struct {
	setups map[int32]metrics.Setup
	took   map[int32]map[int64]firstToken
}

// firstToken is of a request that was answered, in nanoseconds.
type firstToken struct{ due, after int64 }

func newPairs(setups map[int32]metrics.Setup) *pairs {
	p := &pairs{setups, map[int32]map[int64]firstToken{}}
	for point, s := range setups {
		if s.Stage == result.StageCold || s.Stage == result.StageWarm {
			p.took[point] = map[int64]firstToken{}
		}
	}
	return p
}

func (p *pairs) add(f *record.Frame) {
	of, s := p.took[f.Point], p.setups[f.Point]
	if of == nil {
		return
	}
	for i := range f.Rows {
		if r := &f.Rows[i]; r.Outcome == record.OK && r.FirstToken >= 0 && r.Due >= s.T0 && r.Due < s.T1 {
			of[r.ID] = firstToken{r.Due, r.FirstToken - r.Due}
		}
	}
}

// effectBatches are of how many batches the interval is.
const effectBatches = 20

// cacheEffect returns the effect of a warm cache on TTFT, nil where there are no two such points.
func (p *pairs) cacheEffect() *result.CacheEffect {
	cold, warm := p.took[0], p.took[1]
	if p.setups[0].Stage != result.StageCold || p.setups[1].Stage != result.StageWarm {
		return nil
	}
	var ids []int64
	for id := range cold {
		if _, both := warm[id]; both {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	slices.SortFunc(ids, func(a, b int64) int { return cmp.Or(cmp.Compare(cold[a].due, cold[b].due), cmp.Compare(a, b)) })
	e := &result.CacheEffect{Cold: 0, Warm: 1, Pairs: len(ids)}
	var differences []float64
	for _, id := range ids {
		c, w := float64(cold[id].after)/1e6, float64(warm[id].after)/1e6
		e.ColdMS += c
		e.WarmMS += w
		differences = append(differences, w-c)
	}
	n := float64(len(ids))
	e.ColdMS, e.WarmMS = e.ColdMS/n, e.WarmMS/n
	e.DifferenceMS = e.WarmMS - e.ColdMS
	if len(ids) >= 5*effectBatches {
		if m, ok := stats.BatchMeans(differences, effectBatches, .95); ok {
			e.CI95 = &[2]float64{m.Lo, m.Hi}
		}
	}
	return e
}
