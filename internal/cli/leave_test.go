package cli

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// What goes on behind the first signal without looking at its context is left within a second,
// but not where a load has begun, and not what ends by itself.
func TestLeaveUnlessBegun(t *testing.T) {
	for _, c := range []struct {
		name   string
		begun  bool
		signal bool
		takes  time.Duration // that the verb takes behind the signal
		left   bool
	}{
		{"a long reading", false, true, time.Minute, true},
		{"a load that ends", true, true, time.Minute, false},
		{"ends by itself", false, true, 100 * time.Millisecond, false},
		{"no signal", false, false, time.Minute, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				code, at := -1, time.Time{}
				stop := leaveUnlessBegun(ctx, func() bool { return c.begun }, func(x int) { code, at = x, time.Now() })
				begin := time.Now()
				if c.signal {
					cancel()
				}
				time.Sleep(c.takes)
				stop()
				synctest.Wait()
				if left := code == Interrupted; left != c.left {
					t.Errorf("code %d", code)
				}
				if c.left && at.Sub(begin) > time.Second {
					t.Errorf("left after %v", at.Sub(begin))
				}
			})
		})
	}
}
