package result

import "testing"

// A load that was asked about is met, missed or left open, by one rule for all that show it.
func TestAskedMet(t *testing.T) {
	at, lower, higher := 24., 20., 30.
	for name, c := range map[string]struct {
		of   Capacity
		want Met
	}{
		"passed":                          {Capacity{Verified: &Verified{Passed: true}}, Yes},
		"refuted":                         {Capacity{Verified: &Verified{Refuted: true}}, No},
		"neither":                         {Capacity{Verified: &Verified{}}, Undecided},
		"never looked at":                 {Capacity{}, Undecided},
		"an upper bound below it":         {Capacity{Verified: &Verified{}, Bracket: &[2]*float64{nil, &lower}}, No},
		"an upper bound that is the load": {Capacity{Verified: &Verified{}, Bracket: &[2]*float64{nil, &at}}, Undecided},
		"an upper bound above it":         {Capacity{Verified: &Verified{}, Bracket: &[2]*float64{nil, &higher}}, Undecided},
		"no load meets it":                {Capacity{Floor: &Floor{}}, No},
	} {
		c.of.Trail = []CapacityProbe{{Load: at, Stage: "verifying"}}
		if got := c.of.AskedMet(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if got := (&Capacity{Verified: &Verified{Passed: true}}).AskedMet(); got != Undecided {
		t.Errorf("no load was asked about: %v", got)
	}
}
