package capacity

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Loads that are chosen have three digits, in a curve and in a search; one that
// was given stays as it is.
func TestChosenLoadsAreTidy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := math.Pow(10, rapid.Float64Range(-6, 6).Draw(t, "exponent"))
		near, below := roundDigits(x), tidyBelow(x)
		if math.Abs(near/x-1) > 0.005001 || below > x || below < 0.99*x {
			t.Errorf("%v: %v, and from below %v", x, near, below)
		}
		for _, y := range []float64{near, below} {
			if roundDigits(y) != y {
				t.Errorf("%v of %v has more than three digits", y, x)
			}
		}
	})
	l := NewLoads(LoadsConfig{Points: 9, Residence: 0.4762})
	var seen []CurvePoint
	for load, ok := l.Next(seen); ok; load, ok = l.Next(seen) {
		if load != roundDigits(load) {
			t.Errorf("a curve's load is %v", load)
		}
		p := CurvePoint{Load: load, Offered: load, RequestsPerS: min(load, 40), E2E: 500}
		if load > 40 {
			p.Stability = "unstable"
		}
		seen = append(seen, p)
	}
	if len(seen) != 9 {
		t.Errorf("%d loads", len(seen))
	}
	got, err := Find(t.Context(), search80k(), truthAt(37).probe)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range got.Trail {
		if s.Load != roundDigits(s.Load) {
			t.Errorf("a search's load is %v", s.Load)
		}
	}
	if got.Quote == 0 || got.Quote != roundDigits(got.Quote) || got.Quote > got.Lower {
		t.Errorf("the quote is %v, below %v", got.Quote, got.Lower)
	}
	const given = 30.1234
	v, err := Verify(t.Context(), search80k(), given, truthAt(37).probe)
	if err != nil || v.Verified.Load != given {
		t.Errorf("of %v %v was verified: %v", given, v.Verified.Load, err)
	}
}

// With steps of four and little time, loads that do not fit are left out, and the rest goes between.
func TestLoadsThatFit(t *testing.T) {
	l := NewLoads(LoadsConfig{Points: 8, Closed: true, Residence: 0.4, Step: 4})
	left := 30 * time.Second
	l.FitUsers(2500*time.Millisecond, func() time.Duration { return left })
	var seen []CurvePoint
	var loads []float64
	for {
		load, ok := l.Next(seen)
		if !ok {
			break
		}
		loads = append(loads, load)
		served := min(load/0.4, 8) // saturated by 4 users
		seen = append(seen, CurvePoint{Load: load, RequestsPerS: served, E2E: 1000 * load / served})
		left -= 5 * time.Second
	}
	if slices.Max(loads) > 16 || loads[0] != 1 || loads[1] != 4 || len(loads) < 4 {
		t.Errorf("%v", loads)
	}
}
