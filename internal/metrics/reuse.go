package metrics

import (
	"pitot/internal/results/marks"
	"pitot/internal/results/result"
)

// PrefixCache sums up the parts that lie in the window; nil where nothing is known.
func (s *Setup) PrefixCache() *result.PrefixCache {
	if s.Reuse == nil {
		return nil
	}
	var sum marks.CachePart
	for _, p := range s.Reuse.Parts {
		if p.From < s.T0 {
			continue
		}
		sum.Requests, sum.Told = sum.Requests+p.Requests, sum.Told+p.Told
		sum.Prompt, sum.Expected, sum.Late = sum.Prompt+p.Prompt, sum.Expected+p.Expected, sum.Late+p.Late
		sum.Endless, sum.Served = sum.Endless+p.Endless, sum.Served+p.Served
	}
	if sum.Prompt == 0 {
		return nil
	}
	of := float64(sum.Prompt)
	u := s.Reuse
	c := &result.PrefixCache{
		All: u.All, BlockSize: u.BlockSize, Assumed: u.Assumed, Tokens: u.Tokens, Off: u.Off,
		Asked: u.Asked, Mode: u.Mode, Requests: sum.Requests,
		Expected: float64(sum.Expected) / of, Late: float64(sum.Late) / of, Endless: float64(sum.Endless) / of,
	}
	if sum.Told > 0 {
		x := float64(sum.Served) / of
		c.Served = &x
	}
	return c
}
