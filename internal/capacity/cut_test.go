package capacity

import (
	"context"
	"math/rand/v2"
	"testing"

	"pitot/internal/results/result"
)

// cutAfter interrupts the long look behind the loads of a search when so many of its requests have
// ended.
func (t *truth) cutAfter(requests int, cancel context.CancelFunc) func(context.Context, Probe) (Seen, error) {
	return func(ctx context.Context, p Probe) (Seen, error) {
		if ctx.Err() != nil || p.Stage != Verifying {
			s, _ := t.probe(ctx, p)
			return s, ctx.Err()
		}
		cancel()
		p.Requests = min(p.Requests, requests)
		s, _ := t.probe(ctx, p)
		s.Cut = true
		return s, ctx.Err()
	}
}

// What had ended of a look that is interrupted decides where it is enough, and says how much would
// be where not.
func TestVerifyIsInterrupted(t *testing.T) {
	for _, c := range []struct {
		load            float64
		requests        int
		passed, refuted bool
		reason          result.Reason
	}{
		{20, 20_000, true, false, result.Reason{Code: result.SearchInterrupted}},
		{20, 10_000, false, false, result.Reason{Code: result.LookWithoutBursts, N: 10_000, Low: 20, Needed: 17_800}},
		{50, 10_000, false, true, result.Reason{Code: result.LookMissed, Low: 50}},
		{37, 10_000, false, false, result.Reason{Code: result.LookBursty, N: 10_000, Low: 37, Needed: 76_900}},
		{20, 700, false, false, result.Reason{Code: result.LookInterrupted, N: 700, Low: 20, Needed: 1000}},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		config := search80k()
		config.Budget.Requests = 4000 // no short looks come first
		if c.requests > 1000 {
			config.Budget.Requests = 80_000
		}
		got, err := Verify(ctx, config, c.load, truthAt(37).cutAfter(c.requests, cancel))
		if v := got.Verified; c.load == 50 { // two short looks
			err = ctx.Err()
		} else if err == nil || v.Passed && v.N != c.requests {
			t.Errorf("at %v: %v, %+v", c.load, err, v)
		}
		if v := got.Verified; v.Passed != c.passed || v.Refuted != c.refuted || (got.Quote > 0) != c.passed || got.Reason != c.reason {
			t.Errorf("at %v: %v, %+v, %+v", c.load, err, v, got.Reason)
		}
		cancel()
	}
}

// A load at the capacity seldom passes when its look is interrupted, whenever that is.
func TestVerifyInterruptedAtCapacity(t *testing.T) {
	const reps = 120
	rng, passed := rand.New(rand.NewPCG(3, 4)), 0
	for r := range reps {
		ctx, cancel := context.WithCancel(t.Context())
		of := truthAt(37)
		of.rng = rand.New(rand.NewPCG(5, uint64(r)))
		got, _ := Verify(ctx, search80k(), 37, of.cutAfter(1000+rng.IntN(30_000), cancel))
		count(&passed, got.Verified.Passed)
		cancel()
	}
	if passed > reps/20 {
		t.Errorf("%d of %d passed at the capacity", passed, reps)
	}
}

// A search whose long look is interrupted quotes the load all the same, where what had ended is
// enough.
func TestFindIsInterruptedInALook(t *testing.T) {
	for _, c := range []struct {
		requests int
		quoted   bool
	}{{3000, true}, {300, false}} {
		ctx, cancel := context.WithCancel(t.Context())
		config := search80k()
		config.Budget.Requests = 40_000
		got, err := Find(ctx, config, truthAt(37).cutAfter(c.requests, cancel))
		if err == nil || (got.Quote > 0) != c.quoted || !(got.Estimate > 0) || got.Quote > 37 {
			t.Errorf("%d requests: %v, quote %v, %+v, %v", c.requests, err, got.Quote, got.Verified, got.Reason)
		}
		if last := got.Trail[len(got.Trail)-1]; !last.Seen.Cut {
			t.Errorf("%d requests: the last load is %+v", c.requests, last)
		}
		cancel()
	}
}
