package measure

import "pitot/internal/data/result"

// Reuse holds the hits that the prefix cache was expected to have of the prompts of a load. It also
// holds the hits that it had, in parts of the window.
type Reuse struct {
	result.PrefixCache             // without its shares
	Parts              []ReusePart // in the order of their times
}

// ReusePart is of the requests that were due from a time on until that of the next part, in
// tokens of their prompts.
type ReusePart struct {
	From                                    int64
	Requests, Told                          int
	Prompt, Expected, Late, Endless, Served int64
}

// PrefixCache sums up the parts that lie in the window; nil where nothing is known.
func (s *Setup) PrefixCache() *result.PrefixCache {
	if s.Reuse == nil {
		return nil
	}
	var sum ReusePart
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
	c := s.Reuse.PrefixCache
	c.Requests, c.Expected, c.Late, c.Endless = sum.Requests, float64(sum.Expected)/of, float64(sum.Late)/of, float64(sum.Endless)/of
	if sum.Told > 0 {
		x := float64(sum.Served) / of
		c.Served = &x
	}
	return &c
}
