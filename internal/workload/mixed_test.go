package workload

import (
	"math"
	"sync"
	"testing"

	"pitot/internal/workload/arrival"
)

// numbered is a source whose requests have their item as their input.
type numbered struct{}

func (numbered) At(item int64) (Request, error) { return Request{Input: int(item)}, nil }

func mixedOf(t *testing.T, seed uint64, shares ...float64) *Mixed {
	t.Helper()
	var list []ClassOf
	for k, share := range shares {
		list = append(list, ClassOf{Name: string(rune('a' + k)), Share: share, Source: numbered{}})
	}
	m, err := NewMixed(list, seed)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The requests of a class are those of its source one after the other, whatever is asked
// first; and the classes have their shares.
func TestMixed(t *testing.T) {
	const n = 20_000
	m, again := mixedOf(t, 7, .7, .2, .1), mixedOf(t, 7, .7, .2, .1)
	var wg sync.WaitGroup
	for i := range int64(8) { // in another order, from several goroutines
		wg.Go(func() {
			for k := n - 1 - i; k >= 0; k -= 8 {
				if _, err := again.At(k); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	counts := map[string]int{}
	for i := range int64(n) {
		r, err := m.At(i)
		if err != nil {
			t.Fatal(err)
		}
		same, _ := again.At(i)
		if r.Input != counts[r.Class] || r.ID != i || same.Class != r.Class || same.Input != r.Input {
			t.Fatalf("request %d is number %d of class %s, which had %d: %+v", i, r.Input, r.Class, counts[r.Class], same)
		}
		counts[r.Class]++
	}
	for class, share := range map[string]float64{"a": .7, "b": .2, "c": .1} {
		if got := float64(counts[class]) / n; math.Abs(got-share) > 4*math.Sqrt(share*(1-share)/n) {
			t.Errorf("class %s has %g of the requests, not %g", class, got, share)
		}
	}
	if r, err := m.At(math.MaxInt32 - 1); err != nil || r.ID != math.MaxInt32-1 {
		t.Errorf("far beyond the load: %+v, %v", r, err)
	}
	if len(m.placed) != n {
		t.Errorf("%d items are kept", len(m.placed))
	}
	if _, err := m.At(-1); err == nil {
		t.Error("request -1")
	}
}

// Each class arrives by its own law: its due times, taken out of all, are those of a process
// of that law alone, down to the dispersion of its counts.
func TestMixedArrivals(t *testing.T) {
	law, err := arrival.ParseLaw("0.75*poisson + 0.25*on-off(5s,20s)", arrival.Files{})
	if err != nil {
		t.Fatal(err)
	}
	process := func() arrival.Process {
		p, err := law.NewProcess(20, 3, 0)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	m := mixedOf(t, 7, .75, .25)
	m.Arrive(process())
	due := map[string][]int64{}
	for i, p := int64(0), process(); i < 200_000; i++ {
		r, err := m.At(i)
		if err != nil {
			t.Fatal(err)
		}
		due[r.Class] = append(due[r.Class], p.Next())
	}
	for class, want := range map[string]struct {
		law  string
		rate float64
	}{"a": {"poisson", 15}, "b": {"on-off(5s,20s)", 5}} {
		own, err := arrival.ParseLaw(want.law, arrival.Files{})
		if err != nil {
			t.Fatal(err)
		}
		got, expected := arrival.ObserveTimes(due[class]), own.ExpectedAt(want.rate)
		if math.Abs(got.Rate/want.rate-1) > .12 {
			t.Errorf("class %s has a rate of %g, not %g", class, got.Rate, want.rate)
		}
		for k, d := range expected.Dispersion[:2] {
			if math.Abs(got.Dispersion[k]/d-1) > .15 {
				t.Errorf("class %s: the counts of %g s have a dispersion of %g, of %s alone %g", class, arrival.Scales[k], got.Dispersion[k], want.law, d)
			}
		}
	}
}

func TestNewMixedRefuses(t *testing.T) {
	for name, list := range map[string][]ClassOf{
		"none":  nil,
		"short": {{Name: "a", Share: .5, Source: numbered{}}},
		"zero":  {{Name: "a", Share: 1, Source: numbered{}}, {Name: "b", Source: numbered{}}},
	} {
		if _, err := NewMixed(list, 1); err == nil {
			t.Error(name)
		}
	}
}

// talk is a source of sessions of three turns; each repeats the answer before.
type talk struct{}

func (talk) At(item int64) (Request, error) {
	session, turn := SplitItem(item)
	segments := []Segment{{Seed: uint64(item), Words: 3}}
	if turn > 0 {
		segments = append(segments, Segment{Served: true, Item: TurnItem(session, turn-1), Words: 5})
	}
	return Request{Session: session, Turn: turn, Messages: []Message{{Role: "user", Segments: segments}}}, nil
}

func (talk) Follow(item int64, answered bool) []Next {
	session, turn := SplitItem(item)
	if !answered || turn == 2 {
		return nil
	}
	return []Next{{Item: TurnItem(session, turn+1)}}
}

// The sessions of a class go on within it.
func TestMixedSessions(t *testing.T) {
	m, err := NewMixed([]ClassOf{{"talk", .5, talk{}}, {"single", .5, numbered{}}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	src, ok := m.SessionSource().(Sessions)
	if !ok {
		t.Fatal("nothing follows")
	}
	if _, ok := mixedOf(t, 1, 1).SessionSource().(Sessions); ok {
		t.Error("single requests have sessions")
	}
	talks := 0
	for i := range int64(100) {
		first, _ := src.At(i)
		next := src.Follow(i, true)
		if first.Class == "single" {
			if next != nil {
				t.Fatalf("%+v follows", next)
			}
			continue
		}
		if len(next) != 1 || next[0].Item != TurnItem(i, 1) || src.Follow(i, false) != nil || src.Follow(TurnItem(i, 2), true) != nil {
			t.Fatalf("%+v", next)
		}
		second, err := src.At(next[0].Item)
		if err != nil || second.Class != "talk" || second.Session != i || second.Messages[0].Segments[1].Item != i || second.Messages[0].Segments[0].Seed != uint64(TurnItem(int64(talks), 1)) {
			t.Fatalf("%+v, %v", second, err)
		}
		talks++
	}
	if talks == 0 {
		t.Error("no session")
	}
}
