package loadgen

import (
	"cmp"
	"context"
	"slices"
	"testing"

	"pitot/internal/results/record"
)

// mortal is a server in virtual time that refuses connections for a while, from
// a time on. What it has begun by then it ends.
type mortal struct {
	from, to int64 // it refuses
	took     func(id int64) int64

	now     int64
	events  []Event
	sent    []Action
	dropped []Action
}

func (m *mortal) Now() int64 { return m.now }

func (m *mortal) Do(a Action) {
	switch a.Kind {
	case Start:
		m.sent = append(m.sent, a)
		e := Event{ID: a.ID, At: m.now + m.took(a.ID)}
		if m.now >= m.from && m.now < m.to {
			e = Event{ID: a.ID, At: m.now + 1, Failed: true, Refused: true}
		}
		m.events = append(m.events, e)
	case Cancel:
		for i := range m.events {
			if m.events[i].ID == a.ID {
				m.events[i].At = m.now
			}
		}
	case Drop:
		m.dropped = append(m.dropped, a)
	}
}

func (m *mortal) Wait(_ context.Context, until int64) []Event {
	slices.SortFunc(m.events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	if len(m.events) == 0 || m.events[0].At > until {
		m.now = max(m.now, until)
		return nil
	}
	e := m.events[0]
	m.events = m.events[1:]
	m.now = max(m.now, e.At)
	return []Event{e}
}

// A load ends when its target has gone away, and what was still to come due is
// due all the same. Times are in milliseconds.
func TestGone(t *testing.T) {
	const later = 1 << 40
	quick := func(int64) int64 { return 20 }
	for _, c := range []struct {
		name     string
		cfg      Config
		from, to int64
		took     func(id int64) int64
		since    int64 // it is gone, -1 if it is not
		last     int64 // when the last request is sent at the latest
		due      int   // requests of the window
	}{
		{"never", Config{Arrivals: &every{0, 10}, Window: 10_000, Gone: 1000}, later, later, quick, -1, 11_000, 1000},
		{"in the window", Config{Arrivals: &every{0, 10}, Warmup: 1000, Window: 9000, Gone: 1000}, 4000, later, quick, 4011, 5030, 900},
		{"in the warm-up", Config{Arrivals: &every{0, 10}, Warmup: 4000, Window: 6000, Gone: 1000}, 500, later, quick, 511, 1530, 600},
		{"back in time", Config{Arrivals: &every{0, 10}, Window: 10_000, Gone: 1000}, 4000, 4900, quick, -1, 11_000, 1000},
		{"nobody was asked to stop", Config{Arrivals: &every{0, 10}, Window: 10_000}, 4000, later, quick, -1, 11_000, 1000},
		{"counted", Config{Arrivals: &every{0, 10}, Requests: 500, Gone: 1000}, 3000, later, quick, 3011, 4030, 500},
		{"exactly", Config{Arrivals: &every{0, 10}, Requests: 500, Total: 500, Gone: 1000}, 3000, later, quick, 3011, 4030, 500},
		{"a cap", Config{Arrivals: &every{0, 10}, Window: 9000, Cap: 1, Gone: 1000}, 3000, later, quick, 3001, 4100, 900},
		{"few are due", Config{Arrivals: &every{0, 500}, Window: 20_000, Gone: 1000}, 3000, later, quick, 3001, 7501, 40},
		{"one is still answered", Config{Arrivals: &every{0, 10}, Window: 10_000, Gone: 1000}, 4000, later,
			func(id int64) int64 { return map[bool]int64{true: 5000, false: 20}[id == 300] }, 8001, 9020, 1000},
		{"users", Config{Users: 4, Window: 10_000, Gone: 1000000000}, 4000, later, quick, -1, 10_100, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.cfg.Gone == 0 {
				c.since = -1
			}
			w := &mortal{from: c.from, to: c.to, took: c.took}
			core := NewCore(c.cfg)
			Run(t.Context(), core, w)
			since, gone := core.TargetGone()
			if gone != (c.since >= 0) || gone && since != c.since {
				t.Errorf("gone %v since %d, want %d", gone, since, c.since)
			}
			if last := w.sent[len(w.sent)-1].Eligible; last > c.last {
				t.Errorf("the last request is sent at %d, want %d at the latest", last, c.last)
			}
			t0, t1 := core.MeasuredWindow()
			due, ids := 0, map[int64]bool{}
			for _, a := range append(w.sent, w.dropped...) {
				if ids[a.ID] {
					t.Errorf("request %d started twice", a.ID)
				}
				ids[a.ID] = true
				if a.Due >= t0 && a.Due < t1 {
					due++
				}
				if a.Kind == Drop && gone && a.Class != record.ErrConnect {
					t.Errorf("request %d is unsent because of %s", a.ID, a.Class)
				}
			}
			if c.due >= 0 && due != c.due {
				t.Errorf("%d were due in [%d, %d), want %d", due, t0, t1, c.due)
			}
		})
	}
}

// Users who are refused ask again, and give up together: what they would have
// asked nobody knows, so the window ends.
func TestGoneUsers(t *testing.T) {
	w := &mortal{from: 4e9, to: 1 << 60, took: func(int64) int64 { return 2e7 }}
	core := NewCore(Config{Users: 4, Window: 60e9, Gone: 1e9})
	Run(t.Context(), core, w)
	since, gone := core.TargetGone()
	_, t1 := core.MeasuredWindow()
	if !gone || since < 4e9 || since > 4.1e9 || t1 < 5e9 || t1 > 5.2e9 {
		t.Errorf("gone %v since %d, the window ends at %d", gone, since, t1)
	}
}
