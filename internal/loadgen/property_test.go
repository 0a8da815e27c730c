package loadgen

import (
	"container/heap"
	"context"
	"testing"

	"pgregory.net/rapid"

	"pitot/internal/results/record"
)

// judge is a world of random service times that watches what it is told. Some
// requests are never answered, some answers are heard of late and so in
// another order than they were given.
type judge struct {
	t       *rapid.T
	c       *Core
	cfg     Config
	now     int64
	jitter  int64 // the pacer comes up to so much late
	draw    func() (service, late int64)
	waits   int
	running map[int64]bool
	pending deliveries
	acts    []Action
	ended   map[int64]bool
	started int
}

const unanswered = -1

// delivery is an event and when it is heard of.
type delivery struct {
	Event
	heard int64
}

type deliveries []delivery

func (d deliveries) Len() int           { return len(d) }
func (d deliveries) Less(i, j int) bool { return d[i].heard < d[j].heard }
func (d deliveries) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *deliveries) Push(x any)        { *d = append(*d, x.(delivery)) }
func (d *deliveries) Pop() any {
	old := *d
	x := old[len(old)-1]
	*d = old[:len(old)-1]
	return x
}

func (j *judge) Now() int64 { return j.now }

func (j *judge) Do(a Action) {
	j.acts = append(j.acts, a)
	switch a.Kind {
	case Start:
		j.started++
		j.running[a.ID] = true
		if n := len(j.running); j.cfg.Cap > 0 && n > j.cfg.Cap {
			j.t.Fatalf("%d in flight with a cap of %d", n, j.cfg.Cap)
		}
		if a.Due > a.Eligible || a.Eligible > j.now {
			j.t.Fatalf("at %d started %+v", j.now, a)
		}
		if service, late := j.draw(); service != unanswered {
			heap.Push(&j.pending, delivery{Event{ID: a.ID, At: j.now + service}, j.now + service + late})
		}
	case Cancel:
		// A cancel can meet an answer on its way: then the answer is the end.
		for _, d := range j.pending {
			if d.ID == a.ID {
				return
			}
		}
		if j.running[a.ID] {
			heap.Push(&j.pending, delivery{Event{ID: a.ID, At: j.now}, j.now + 1})
		}
	}
}

func (j *judge) Wait(ctx context.Context, until int64) []Event {
	if j.waits++; j.waits > 20*(len(j.acts)+20) {
		j.t.Fatalf("%d waits for %d actions: it makes no progress at %d", j.waits, len(j.acts), j.now)
	}
	next := until
	if len(j.pending) > 0 {
		next = min(next, j.pending[0].heard)
	}
	if next == Never {
		j.t.Fatalf("it would wait for ever at %d, %d in flight", j.now, j.c.InFlight())
	}
	if j.now = max(j.now, next); j.jitter > 0 {
		j.now += rapid.Int64Range(0, j.jitter).Draw(j.t, "late pacer")
	}
	var events []Event
	for len(j.pending) > 0 && j.pending[0].heard <= j.now {
		d := heap.Pop(&j.pending).(delivery)
		if j.ended[d.ID] {
			j.t.Fatalf("request %d ended twice", d.ID)
		}
		j.ended[d.ID] = true
		delete(j.running, d.ID)
		events = append(events, d.Event)
	}
	return events
}

// gaps is a random open loop, with bursts that are due at the same time.
type gaps struct {
	t    *rapid.T
	due  int64
	most int64
	left int // how many there are
}

func (g *gaps) Next() int64 {
	if g.left--; g.left < 0 {
		return Never
	}
	g.due += rapid.Int64Range(0, g.most).Draw(g.t, "gap")
	return g.due
}

func TestAnyWorld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := func(name string, lo, hi int64) int64 { return rapid.Int64Range(lo, hi).Draw(t, name) }
		cfg := Config{
			Warmup:  small("warm-up", 0, 50),
			Cap:     int(small("cap", 0, 5)),
			Timeout: small("timeout", 1, 300),
		}
		if rapid.Bool().Draw(t, "counts") {
			cfg.Requests = small("requests", 1, 40)
		} else {
			cfg.Window = small("window", 1, 300)
		}
		if rapid.Bool().Draw(t, "open") {
			cfg.Arrivals = &gaps{t: t, most: small("gap", 1, 30), left: int(small("arrivals", 0, 150))}
		} else {
			cfg.Users = int(small("users", 1, 8))
			if think := small("think", 0, 40); think > 0 {
				cfg.Think = func(id int64) int64 { return 1 + (id*7)%think }
			}
		}
		switch rapid.IntRange(0, 2).Draw(t, "sessions") {
		case 1:
			cfg.Follow = FollowOf(talks{})
		case 2:
			cfg.Follow = FollowOf(fans{})
		}
		slow, loss, late := small("slowest", 1, 400), small("loss %", 0, 40), small("late", 0, 5)
		j := &judge{t: t, cfg: cfg, jitter: small("jitter", 0, 3), running: map[int64]bool{}, ended: map[int64]bool{}}
		j.draw = func() (int64, int64) {
			if small("lost", 1, 100) <= loss {
				return unanswered, 0
			}
			return small("service", 1, slow), small("heard late", 0, late)
		}
		j.c = NewCore(cfg)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		interrupted := rapid.IntRange(0, 4).Draw(t, "interrupted") == 0
		if interrupted {
			Run(ctx, j.c, &interrupting{j, small("at", 0, 400), cancel})
		} else {
			Run(ctx, j.c, j)
		}
		j.verdict(interrupted)
	})
}

// interrupting stops the load at a time.
type interrupting struct {
	*judge
	at   int64
	stop func()
}

func (i *interrupting) Wait(ctx context.Context, until int64) []Event {
	if i.now < i.at {
		if until = min(until, i.at); until == i.at {
			defer func() {
				if i.now >= i.at {
					i.stop()
				}
			}()
		}
	}
	return i.judge.Wait(ctx, until)
}

// verdict looks at the whole.
func (j *judge) verdict(interrupted bool) {
	t := j.t
	t0, t1 := j.c.MeasuredWindow()
	if t1 == Never || t1 < t0 {
		t.Fatalf("the window is [%d, %d)", t0, t1)
	}
	if len(j.running) > 0 || j.started != len(j.ended) {
		t.Fatalf("%d started, %d ended", j.started, len(j.ended))
	}
	next := int64(0)
	var cohort int64
	cancels := map[int64]int{}
	j.sessions()
	for _, a := range j.acts {
		if a.Kind == Prepare || a.Kind == Forget {
			continue
		}
		if a.Kind == Cancel {
			if cancels[a.ID]++; cancels[a.ID] > 2 {
				t.Fatalf("request %d was cancelled %d times", a.ID, cancels[a.ID])
			}
			continue
		}
		if a.ID != next {
			t.Fatalf("request %d came after %d", a.ID, next-1)
		}
		next++
		if a.Due >= t0 && a.Due < t1 {
			cohort++
		}
		if a.Kind == Drop && a.Class == record.ErrTimeout && j.cfg.Cap == 0 {
			t.Fatalf("request %d was held too long without a cap", a.ID)
		}
	}
	if j.cfg.Requests > 0 {
		g, open := j.cfg.Arrivals.(*gaps)
		exhausted := open && g.left < 0
		if cohort > j.cfg.Requests || cohort < j.cfg.Requests && !interrupted && !exhausted {
			t.Fatalf("%d due in the window, want %d", cohort, j.cfg.Requests)
		}
	} else if !interrupted && t1 != t0+j.cfg.Window {
		t.Fatalf("the window is [%d, %d)", t0, t1)
	}
}

// sessions looks at what follows what: an item is asked once, after the end of the one
// it waited for, as part of its session, and nothing of a session comes when it is over.
func (j *judge) sessions() {
	t := j.t
	asked, over, alive := map[int64]Action{}, map[int64]bool{}, map[int64]bool{}
	items := map[int64]bool{}
	for _, a := range j.acts {
		switch a.Kind {
		case Cancel:
			continue
		case Forget:
			if over[a.Session] || !alive[a.Session] {
				t.Fatalf("session %d is over twice, or never began", a.Session)
			}
			over[a.Session] = true
			delete(alive, a.Session)
			continue
		}
		if over[a.Session] {
			t.Fatalf("session %d is over, and then %+v", a.Session, a)
		}
		if (a.Session == record.Unset) != (j.cfg.Follow == nil) {
			t.Fatalf("no session, or one where there is none: %+v", a)
		}
		if a.After != record.Unset {
			if before, ok := asked[a.After]; !ok || before.Session != a.Session || !j.ended[a.After] || a.Due < before.Due {
				t.Fatalf("%+v follows %+v", a, before)
			}
		}
		if a.Kind == Prepare {
			continue
		}
		if items[a.Item] {
			t.Fatalf("item %d is asked twice", a.Item)
		}
		items[a.Item], asked[a.ID] = true, a
		if a.Session == a.ID {
			alive[a.ID] = true
		}
		if n := len(alive); j.cfg.Arrivals == nil && n > j.cfg.Users {
			t.Fatalf("%d sessions of %d users", n, j.cfg.Users)
		}
	}
}
