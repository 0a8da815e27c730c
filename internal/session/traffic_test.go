package session

import (
	"math"
	"testing"

	"pitot/internal/config"
	"pitot/internal/slo"
)

// What a plan says of its traffic: how much lengths and gaps vary, the usual where it is not known,
// and whether that is all that varies.
func TestTrafficOf(t *testing.T) {
	for _, c := range []struct {
		args          []string
		lengths, gaps float64
		plain         bool
	}{
		{nil, 0, 1, true},
		{[]string{"--input", "lognormal(500,250)"}, 0.25, 1, true},
		{[]string{"--output", "lognormal(100,150)"}, 2.2, 1, true},
		{[]string{"--arrival", "gamma(0.25)"}, 0, 4, true},
		{[]string{"--arrival", "constant"}, 0, 0, true},
		{[]string{"--arrival", "ramp(0.5,2,60s)"}, 0, 1, false},
		{[]string{"--prefix", "1000", "--prefix-share", "0.5"}, 0, 1, false},
		{[]string{"--cache", "60%"}, 0, 1, false},
		{[]string{"--turns", "4"}, 0, 1, false},
		{[]string{"--over", "concurrency"}, 0, 1, false},
	} {
		p, _, err := config.Decode(config.VerbFind, append([]string{"sim:llama-3.1-8b@h100", "--slo", "chat"}, c.args...), nil)
		if err != nil {
			t.Fatal(c.args, err)
		}
		got := TrafficOf(&p, []slo.Claim{{Share: 0.01}})
		if math.Abs(got.Lengths-c.lengths) > 0.05 || got.Gaps != c.gaps || got.Plain != c.plain {
			t.Errorf("%v: %+v", c.args, got)
		}
	}
}
