package capacity

import (
	"math"
	"slices"

	"pitot/internal/stats"
)

// noteEvidence notes on which windows rests what was found, so that what is wrong with one of them
// is said of the whole.
func (f *search) noteEvidence() {
	c := &f.cap
	near := []string{Centre, Main, Verifying}
	wide := c.Estimate > 0 && c.Launches <= 1 && f.crossingOf(c.Binding, near...).Reason != "" // the bracket was fitted too
	refuted := c.AtMost > 0 && (c.Estimate == 0 || c.AtMost == f.lowestRefuted())
	byLook := c.Verified.Refuted && slices.ContainsFunc(c.Trail, func(s Step) bool { return s.Stage == Verifying }) // and by no short look before it
	for i := range c.Trail {
		s := &c.Trail[i]
		if !s.Seen.IsEvidence() || byLook && s.Stage == Bracket {
			continue
		}
		below := math.Log(c.AtMost / s.Load)
		switch {
		case c.Floor.Lower > 0:
			s.Carries = s.Load <= c.Floor.Load
		case c.Estimate > 0 && (wide || slices.Contains(near, s.Stage)),
			c.Verified.N > 0 && s.Stage == Verifying && s.Load == c.Verified.Load,
			refuted && below >= 0 && below <= band,
			refuted && s.Seen.Stability == stats.Unstable && s.Load <= c.AtMost:
			s.Carries = f.supportsBounds(s) || c.Estimate > 0
		}
	}
}
