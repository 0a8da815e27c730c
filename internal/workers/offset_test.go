package workers

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Offsets of seconds with drifts of hundreds of parts in a million are estimated within half
// the least round trip and 50 µs, whatever the delays of either way, and the bound always
// holds; a step of the clock is noticed.
func TestOffset(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		ahead, ppm := (r.Float64()*2-1)*5e9, (r.Float64()*2-1)*200
		theta := func(now int64) float64 { return ahead + ppm*1e-6*float64(now) }
		delay := func() int64 { return 20_000 + int64(r.ExpFloat64()*200_000) }
		var o Offset
		now, floor := int64(1e15), int64(math.MaxInt64)
		base := now
		for i := range 120 { // a burst, then one each half second for a minute
			if i > 15 {
				now += 500e6
			}
			began := now
			read := began + delay()
			now = read + delay()
			other := read + int64(theta(read-base))
			o.Add(began, now, other)
			floor = min(floor, now-began)
			if i < 15 {
				continue
			}
			x, bound, known := o.At(now)
			off := math.Abs(float64(x) - theta(now-base))
			if !known || off > float64(bound)+2 {
				t.Fatalf("seed %d, round trip %d: off by %.0f ns, bound %d", seed, i, off, bound)
			}
			if i > 40 && off > float64(floor)/2+50_000 {
				t.Errorf("seed %d, round trip %d: off by %.0f ns, half the least round trip is %d", seed, i, off, floor/2)
			}
		}
		if o.Steps != 0 {
			t.Errorf("%d steps", o.Steps)
		}
		ahead += 80e6
		read := now + 30_000
		o.Add(now, now+60_000, read+int64(theta(read-base)))
		if x, _, _ := o.At(now); o.Steps != 1 || math.Abs(float64(x)-theta(now-base)) > 40_000 {
			t.Errorf("after a step: %d steps, off by %.0f ns", o.Steps, float64(x)-theta(now-base))
		}
	}
}
