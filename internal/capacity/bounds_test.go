package capacity

import (
	"context"
	"math"
	"slices"
	"testing"

	"pitot/internal/results/result"
)

// What is left of a budget of time is not spent on ever higher loads that tell nothing: where the
// limits hold at all of them, and where the instrument fails at all from one on.
func TestBoundAboveEnds(t *testing.T) {
	for name, c := range map[string]struct {
		capacity, invalid float64
		reason            result.ReasonCode
	}{
		"limits that always hold":  {1e12, 0, result.MetAtEveryLoad},
		"windows that are INVALID": {1e12, 50, result.WindowsInvalid},
		"an INVALID bracket's end": {37, 50, ""},
	} {
		of, highest := truthAt(c.capacity), 0.
		config := search80k()
		config.Budget = Budget{Seconds: 3600}
		got, err := Find(t.Context(), config, func(ctx context.Context, p Probe) (Seen, error) {
			s, err := of.probe(ctx, p)
			s.Invalid, highest = c.invalid > 0 && p.Load > c.invalid, max(highest, p.Load)
			return s, err
		})
		if err != nil || len(got.Trail) > 3*maxDoublings+20 || highest > 1e10 || c.reason != "" && got.Reason.Code != c.reason {
			t.Errorf("%s: %v, %d probes up to %.3g/s, %v", name, err, len(got.Trail), highest, got.Reason)
		}
	}
}

// Where the bracket ended before a load was refuted a few higher ones are looked at, and none
// behind a window that tells nothing.
func TestBoundAboveTakesFewSteps(t *testing.T) {
	of, probes := truthAt(1e12), 0
	config := search80k()
	config.Budget = Budget{Seconds: 1e6}
	for _, invalid := range []bool{false, true} {
		f := newSearch(t.Context(), config, func(ctx context.Context, p Probe) (Seen, error) {
			s, err := of.probe(ctx, p)
			probes++
			s.Invalid = invalid
			return s, err
		})
		f.cap.Trail = []Step{{Probe: Probe{Load: 20}, Seen: Seen{Load: 20, N: 100, Violations: []int{0}}}}
		f.cap.Reason, f.lo, probes = result.Reason{Code: result.BudgetInBracket}, 20, 0
		f.boundAbove()
		want := stepsAbove
		if invalid {
			want = 1 + again
		}
		if probes != want || f.cap.Reason.Code != result.BudgetInBracket {
			t.Errorf("INVALID %v: %d probes, %v", invalid, probes, f.cap.Reason)
		}
	}
}

// A look that meets no violation says that a load is low, but not where windows above it met bursts
// as long as themselves or none.
func TestLongBursts(t *testing.T) {
	for name, c := range map[string]struct {
		above  []int // violations of 300 requests at loads from 20 on
		passes bool
	}{
		"a share that rises":          {[]int{10, 30, 90, 200, 290, 300}, true},
		"all from one load on":        {[]int{300, 300, 300, 300, 300, 300}, true},
		"bursts as long as windows":   {[]int{250, 0, 300, 0, 280, 0}, false},
		"a window that has met none":  {[]int{10, 30, 0, 200, 290, 300}, true},
		"single violations, some not": {[]int{4, 2, 5, 3, 6, 2}, true},
	} {
		f := newSearch(t.Context(), search80k(), nil)
		for i, n := range c.above {
			load := 20 * math.Pow(1.3, float64(i))
			f.cap.Trail = append(f.cap.Trail, Step{Probe: Probe{Load: load, Stage: Bracket}, Seen: Seen{Load: load, N: 300, Violations: []int{n}}})
		}
		v, _ := f.judgeLow(10, &Seen{Load: 10, N: 2000, Violations: []int{0}}, 1)
		if v.Passed != c.passes {
			t.Errorf("%s: %+v, φ %.0f", name, v, f.longBursts(0))
		}
	}
}

// A load that is far beyond the limit is refuted by two short looks, and one of them alone
// refutes none: it may lie in a burst.
func TestVerifyHopeless(t *testing.T) {
	for _, c := range []struct {
		name  string
		share []int // of the requests of each look that violate, one in so many, 0 none
		looks int
	}{
		{"hopeless", []int{2, 2}, 2},
		{"a burst first", []int{2, 0, 0, 0, 0}, 5},
		{"refuted by a long look, without loads above", []int{0, 2}, 2},
	} {
		var asked []int
		v, err := Verify(t.Context(), search80k(), 50, func(_ context.Context, p Probe) (Seen, error) {
			n := 0
			if one := c.share[len(asked)]; one > 0 {
				n = p.Requests / one / Blocks
			}
			asked = append(asked, p.Requests)
			return Seen{Load: p.Load, N: p.Requests, Violations: []int{n * Blocks}, Blocks: [][]int{slices.Repeat([]int{n}, Blocks)}}, nil
		})
		if err != nil || v.Verified.Refuted != (c.share[len(c.share)-1] > 0) || len(asked) != c.looks || asked[0] != leastLook {
			t.Errorf("%s: looks of %d requests: %+v, %v", c.name, asked, v.Verified, err)
		}
	}
}

// Where requests may violate more often than a verdict may be wrong, a burst could outlast both
// short looks as often: the long look decides.
func TestVerifyHopelessOfManyAllowed(t *testing.T) {
	cfg, first := search80k(), 0
	cfg.Eps = []float64{0.1}
	v, err := Verify(t.Context(), cfg, 50, func(_ context.Context, p Probe) (Seen, error) {
		first = max(first, p.Requests)
		return Seen{Load: p.Load, N: p.Requests, Violations: []int{p.Requests / 2}, Blocks: [][]int{slices.Repeat([]int{p.Requests / 2 / Blocks}, Blocks)}}, nil
	})
	if err != nil || !v.Verified.Refuted || len(v.Trail) != 1 || first <= leastLook {
		t.Errorf("looks of up to %d requests: %+v, %v", first, v.Verified, err)
	}
}
