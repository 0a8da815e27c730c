package main

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
)

// The quick form of what whole plans must reach, and what is kept is gone on with.
func TestWholes(t *testing.T) {
	keep := filepath.Join(t.TempDir(), "kept")
	if _, err := wholes(0, 20, 5, 16, 1000, true, keep); err != nil {
		t.Fatal(err)
	}
	list, err := wholes(0, 40, 5, 16, 1000, true, keep)
	if err != nil {
		t.Fatal(err)
	}
	again, err := wholes(0, 40, 5, 16, 1000, true, "")
	if err != nil {
		t.Fatal(err)
	}
	s := summarise(list)
	if s != summarise(again) {
		t.Errorf("gone on with: %+v, at once: %+v", s, summarise(again))
	}
	if s.good < 36 || s.violates > 0 || s.undecided > 8 {
		t.Errorf("%+v", s)
	}
	if share, _ := ratio(list); share > .6 {
		t.Errorf("takes %.2f of the time of a fixed grid", share)
	}
	nothing, err := wholes(0, 40, 6, 12, 1000, false, "")
	if err != nil {
		t.Fatal(err)
	}
	if n := summarise(nothing).claims; n > 5 {
		t.Errorf("a difference is claimed in %d of %d plans without one", n, len(nothing))
	}
}

// Where launches differ much and none is bad, intervals hold and few configurations are
// accepted that carry less than is wanted.
func TestBelow(t *testing.T) {
	for _, sd := range []float64{.06, .08, .1} {
		const plans = 150
		accepted, holds := below(rand.New(rand.NewPCG(4, 9)), kind{wide: sd}, plans, 3)
		if accepted > .1 || holds < .92 { // 5 % and what chance adds to it
			t.Errorf("launches that differ by %.0f %%: %.1f %% accepted, %.1f %% of intervals hold", 100*sd, 100*accepted, 100*holds)
		}
	}
}
