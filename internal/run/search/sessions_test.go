package search

import (
	"context"
	"testing"
)

// Loads of conversations begin with a burst of as many requests as conversations are under way,
// which is over well before the window; requests that stand alone, users and short looks that
// record a load that is decided do not.
func TestBurst(t *testing.T) {
	for name, c := range map[string]struct {
		sessions Sessions
		closed   bool
		residues float64
		stage    string
		want     [2]float64
	}{
		"conversations":        {sessions: Sessions{Turns: 4, Pause: 6}, residues: Warmup, stage: Main, want: [2]float64{6, 8}},
		"a bracket of them":    {sessions: Sessions{Turns: 4, Pause: 6}, residues: bracketWarmup, stage: Bracket, want: [2]float64{6, 8}},
		"a short warm-up":      {sessions: Sessions{Turns: 4, Pause: 6}, residues: hastyWarmup, stage: Bracket},
		"what is only shown":   {sessions: Sessions{Turns: 4, Pause: 6}, residues: bracketWarmup, stage: Shown},
		"users":                {sessions: Sessions{Turns: 4, Pause: 6}, closed: true, residues: Warmup, stage: Main},
		"requests that are it": {residues: Warmup, stage: Main},
	} {
		var asked Probe
		f := newSearch(t.Context(), FindConfig{Eps: []float64{.01}, Residence: .5, Closed: c.closed, Sessions: c.sessions}, func(_ context.Context, p Probe) (Seen, error) {
			asked = p
			return Seen{N: 1, Violations: []int{0}}, nil
		})
		if f.look(Probe{Load: 3, Requests: 10, Residences: c.residues, Stage: c.stage}); asked.Burst != c.want {
			t.Errorf("%s: a burst of what is due from %v on, want %v", name, asked.Burst, c.want)
		}
		if over := c.residues * asked.Residence; asked.Burst[1] > over/2 {
			t.Errorf("%s: the burst is at %v s of a warm-up of %v s", name, asked.Burst[1], over)
		}
	}
}
