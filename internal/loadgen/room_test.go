package loadgen

import (
	"context"
	"testing"

	"pitot/internal/client"
	"pitot/internal/results/record"
	"pitot/internal/workload/arrival"
)

// limited is a server in virtual time that answers so many requests in each second, says in
// each answer how many are left, and refuses the others.
type limited struct {
	mortal
	limit   int64
	second  int64
	used    int64
	refused int
}

func (l *limited) Do(a Action) {
	if a.Kind != Start {
		l.mortal.Do(a)
		return
	}
	l.sent = append(l.sent, a)
	const second = int64(1e9)
	if s := l.now / second; s != l.second {
		l.second, l.used = s, 0
	}
	room := &client.Room{Limit: l.limit, At: l.now, Whole: (l.second + 1) * second}
	e := Event{ID: a.ID, At: l.now + 30e6, Room: room}
	if l.used++; l.used > l.limit {
		l.refused++
		e.Failed = true
	}
	room.Requests = max(l.limit-l.used, 0)
	l.events = append(l.events, e)
}

// What a server says that it will refuse is held back, and sent when there is room again;
// without that it is refused.
func TestLimitsRespected(t *testing.T) {
	for _, respect := range []bool{true, false} {
		due, err := arrival.NewConstant(25)
		if err != nil {
			t.Fatal(err)
		}
		w := &limited{limit: 10}
		c := NewCore(Config{Arrivals: due, Window: 4e9, Limits: respect, Timeout: 60e9})
		Run(context.Background(), c, w)
		if respect && (w.refused > 1 || len(w.sent) < 35) || !respect && w.refused < 50 {
			t.Errorf("respected %v: %d of %d refused", respect, w.refused, len(w.sent))
		}
		seen := map[int64]bool{}
		late := 0
		for _, a := range w.sent {
			if seen[a.ID] || a.Eligible < a.Due {
				t.Errorf("%+v", a)
			}
			seen[a.ID] = true
			if a.Eligible > a.Due {
				late++
			}
		}
		if respect && late < 20 || !respect && late > 0 {
			t.Errorf("respected %v: %d held back", respect, late)
		}
	}
}

// A refusal without a word of limits is waited for as it asks; a request that waits too long is
// not sent.
func TestLimitsAfterRefusal(t *testing.T) {
	due, err := arrival.NewConstant(10)
	if err != nil {
		t.Fatal(err)
	}
	w := &refusing{limited{limit: 1 << 40}}
	c := NewCore(Config{Arrivals: due, Window: 2e9, Limits: true, Timeout: 1500e6})
	Run(context.Background(), c, w)
	if len(w.sent) != 1 || len(w.dropped) < 19 || w.dropped[0].Class != record.ErrTimeout {
		t.Errorf("%d sent, %d dropped: %+v", len(w.sent), len(w.dropped), w.dropped[:1])
	}
}

// refusing refuses all for an hour.
type refusing struct{ limited }

func (r *refusing) Do(a Action) {
	if a.Kind != Start {
		r.mortal.Do(a)
		return
	}
	r.sent = append(r.sent, a)
	r.events = append(r.events, Event{ID: a.ID, At: r.now + 1e6, Failed: true, Room: &client.Room{At: r.now + 1e6, Whole: r.now + 3600e9}})
}
