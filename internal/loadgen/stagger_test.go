package loadgen

import (
	"context"
	"slices"
	"testing"
)

// begun gives when the last user of a load began whose requests all take as long.
func begun(cfg Config, takes int64) int64 {
	c := NewCore(cfg)
	var running []Event
	for now := int64(0); ; now++ {
		var ended []Event
		for len(running) > 0 && running[0].At <= now {
			ended, running = append(ended, running[0]), running[1:]
		}
		for _, a := range c.Advance(now, ended) {
			running = append(running, Event{ID: a.ID, At: now + takes})
		}
		if c.stagger.left == 0 {
			return now
		}
	}
}

// Users who are no more than a few begin over the time of two requests.
func TestStagger(t *testing.T) {
	c := NewCore(Config{Users: 4, Stagger: 100, Window: 1000})
	var dues []int64
	for _, now := range []int64{0, 49, 50, 160} {
		for _, a := range c.Advance(now, nil) {
			dues = append(dues, a.Due)
		}
	}
	if want := []int64{0, 50, 100, 150}; !slices.Equal(dues, want) {
		t.Errorf("users begin at %v, want %v", dues, want)
	}
}

// All begin at once without a warm-up to begin in.
func TestNoStagger(t *testing.T) {
	if last := begun(Config{Users: 5, Window: 1000}, 10); last != 0 {
		t.Errorf("the last user begins at %d", last)
	}
}

// What requests come to take under load is what the users are spread over,
// however little they were expected to take; and a time by which all have begun
// is kept.
func TestStaggerFollowsTheLoad(t *testing.T) {
	for _, c := range []struct{ by, takes, from, to int64 }{
		{0, 10_000, 10_000, 20_000},
		{0, 2_000, 4_000, 10_000},
		{500, 10_000, 400, 500},
	} {
		last := begun(Config{Users: 64, Stagger: 1000, Begun: c.by, Window: 1e6}, c.takes)
		if last < c.from || last > c.to {
			t.Errorf("requests take %d, all begin by %d: the last user begins at %d", c.takes, c.by, last)
		}
	}
}

// The window waits for the users, and no request of before is in it. A load that
// is stopped before that begins where it was planned.
func TestWindowWaitsForUsers(t *testing.T) {
	cfg := Config{Users: 64, Stagger: 1e6, Warmup: 10, Window: 50e6, Settle: true}
	core := NewCore(cfg)
	w := &fixedWorld{took: 4e6}
	Run(context.Background(), core, w)
	t0, t1 := core.MeasuredWindow()
	last := w.due[63]
	if t0 < last+settling*4e6 || t1 != t0+cfg.Window {
		t.Errorf("the last user began at %d, the window is [%d, %d)", last, t0, t1)
	}
	core = NewCore(cfg)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	Run(ctx, core, &fixedWorld{took: 4e6})
	if t0, t1 := core.MeasuredWindow(); t0 != cfg.Warmup || t1 != cfg.Warmup {
		t.Errorf("stopped at once, the window is [%d, %d)", t0, t1)
	}
	cfg.Begun = 3e6
	core = NewCore(cfg)
	Run(context.Background(), core, &fixedWorld{took: 400e6})
	if t0, _ := core.MeasuredWindow(); t0 > 2*cfg.Begun {
		t.Errorf("users begin by %d, the window at %d", cfg.Begun, t0)
	}
}

// fixedWorld answers every request after the same time.
type fixedWorld struct {
	now, took int64
	running   []Event
	due       []int64
}

func (w *fixedWorld) Now() int64 { return w.now }

func (w *fixedWorld) Do(a Action) {
	switch a.Kind {
	case Start:
		w.running = append(w.running, Event{ID: a.ID, At: w.now + w.took})
		w.due = append(w.due, a.Due)
	case Cancel:
		for i := range w.running {
			if w.running[i].ID == a.ID {
				w.running[i].At = w.now
			}
		}
	}
}

func (w *fixedWorld) Wait(ctx context.Context, until int64) (ended []Event) {
	next := until
	for _, e := range w.running {
		next = min(next, e.At)
	}
	w.now = max(w.now, next)
	w.running = slices.DeleteFunc(w.running, func(e Event) bool {
		if e.At <= w.now {
			ended = append(ended, e)
		}
		return e.At <= w.now
	})
	return ended
}
