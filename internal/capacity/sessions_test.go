package capacity

import (
	"context"
	"testing"
)

// Loads of conversations whose pauses are alike begin with a burst of as many requests as
// conversations are under way, which is over well before the window; requests that stand alone,
// users and short looks that record a load that is decided do not.
func TestBurst(t *testing.T) {
	even := Sessions{Turns: 4, Pause: 6, Even: true}
	for name, c := range map[string]struct {
		sessions Sessions
		closed   bool
		residues float64
		stage    string
		want     [2]float64
	}{
		"pauses that differ":   {sessions: Sessions{Turns: 4, Pause: 6}, residues: Warmup, stage: Main},
		"conversations":        {sessions: even, residues: Warmup, stage: Main, want: [2]float64{6, 8}},
		"a bracket of them":    {sessions: even, residues: bracketWarmup, stage: Bracket, want: [2]float64{6, 8}},
		"a short warm-up":      {sessions: even, residues: hastyWarmup, stage: Bracket},
		"what is only shown":   {sessions: even, residues: bracketWarmup, stage: Shown},
		"users":                {sessions: even, closed: true, residues: Warmup, stage: Main},
		"requests that are it": {residues: Warmup, stage: Main},
	} {
		var asked Probe
		f := newSearch(t.Context(), FindConfig{Eps: []float64{.01}, Residence: .5, Closed: c.closed, Sessions: c.sessions}, func(_ context.Context, p Probe) (Seen, error) {
			asked = p
			return Seen{N: 1, Violations: []int{0}}, nil
		})
		if f.measureLoad(Probe{Load: 3, Requests: 10, Residences: c.residues, Stage: c.stage}); asked.Burst != c.want {
			t.Errorf("%s: a burst of what is due from %v on, want %v", name, asked.Burst, c.want)
		}
		if over := c.residues * asked.Residence; asked.Burst[1] > over/2 {
			t.Errorf("%s: the burst is at %v s of a warm-up of %v s", name, asked.Burst[1], over)
		}
	}
}
