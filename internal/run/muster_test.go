package run

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"pitot/internal/data/marks"
	"pitot/internal/load"
	"pitot/internal/measure"
	"pitot/internal/plan"
	"pitot/internal/target"
	"pitot/internal/wire/api"
)

// One process sends what one core reads, whatever the machine has, and where there are no cores
// to spare; beyond, each worker has a third of a core to spare as long as there are enough.
func TestNeeded(t *testing.T) {
	for _, test := range []struct {
		tokens float64
		cores  int
		here   bool
		want   int
	}{
		{0, 64, false, 0},
		{100_000, 64, false, 0},
		{100_001, 64, false, 2},
		{700_000, 64, false, 10},
		{1e7, 64, false, 63},
		{1e7, 2, false, 0},
		{1e7, 3, false, 2},
		{1e7, 2, true, 0},
		{1e7, 7, true, 0},
		{1e7, 8, true, 2},
		{150_000, 64, true, 3},
		{1e7, 64, true, 16},
	} {
		if got := Needed(test.tokens, test.cores, test.here); got != test.want {
			t.Errorf("%v: %d workers", test, got)
		}
	}
}

// someCrew is a crew of so many, which comes unless there is a reason, and loses a worker or not.
type someCrew struct {
	Crew
	n      int
	why    error
	lost   *marks.Lost
	absent error
}

func (c *someCrew) Size() int                    { return c.n }
func (c *someCrew) Gather(context.Context) error { return c.why }
func (c *someCrew) Carry(context.Context, *Task, Sums) (*Carried, error) {
	if c.absent != nil {
		return nil, &AbsentError{c.absent}
	}
	return &Carried{Workers: []marks.Worker{{Rank: 0, Lost: c.lost}, {Rank: 1}}}, nil
}

// Workers that nobody asked for go on from load to load, unless one was lost, however late, or is
// not there any more: then others come, and where they do not one process sends.
func TestMusterAnew(t *testing.T) {
	mustered := 0
	crew := new(someCrew)
	p := plan.Default()
	s := &Session{plan: &p, Target: &target.Target{Kind: plan.KindServer, API: api.Default()}, runner: &Runner{Muster: func(n int) (Crew, error) {
		mustered++
		crew = &someCrew{n: n}
		return crew, nil
	}}}
	for i, test := range []struct {
		lost     *marks.Lost
		mustered int // by the end of the load
	}{{nil, 1}, {&marks.Lost{Why: "killed"}, 1}, {nil, 2}, {nil, 2}} {
		if err := s.muster(t.Context(), 2, 2e5); err != nil || s.crew != Crew(crew) {
			t.Fatalf("load %d: %v, %v", i, s.crew, err)
		}
		crew.lost = test.lost
		if _, err := s.byCrew(t.Context(), &p.Load, Load{}, 0, new(measure.Setup), new(load.Config), newTap(nil), new(source)); err != nil || mustered != test.mustered {
			t.Errorf("load %d: mustered %d times, %v", i, mustered, err)
		}
	}
	crew.why = errors.New("gone")
	if err := s.muster(t.Context(), 2, 2e5); err != nil || s.crew != Crew(crew) || s.mustered != Crew(crew) || mustered != 3 {
		t.Errorf("%v, %v, mustered %d times", s.crew, err, mustered)
	}
	crew.absent = errors.New("worker 1 does not answer") // only when it is given its share
	if c, err := s.carry(t.Context(), &s.plan.Load, Load{}, 0, new(measure.Setup), new(load.Config), newTap(nil), new(source)); err != nil || c == nil || mustered != 4 {
		t.Errorf("%v, mustered %d times", err, mustered)
	}
	crew.why, s.runner.Muster = errors.New("gone"), func(int) (Crew, error) { return nil, errors.New("no room") }
	if err := s.muster(t.Context(), 2, 2e5); err != nil || s.crew != nil || s.mustered != nil || s.runner.Muster != nil {
		t.Errorf("%v, %v", s.crew, err)
	}
}

// What a load is to bring is known of a rate and of generated answers, and of users once some
// were measured. Loads that workers cannot divide stay with one process, and so does one whose
// workers do not come: nobody asked for them.
func TestMuster(t *testing.T) {
	decode := func(args ...string) *plan.Plan {
		t.Helper()
		p, spec, err := plan.Decode(plan.VerbRun, append([]string{"http://192.0.2.1:8000"}, args...), nil)
		if err != nil {
			t.Fatal(err)
		}
		p.Spec = spec[0]
		return &p
	}
	p := decode("--rate", "100", "--output", "200")
	if x := ExpectedTokens(&p.Ask, &p.Load, 0); x != 20_000 {
		t.Errorf("%v tokens/s", x)
	}
	p = decode("--concurrency", "50", "--output", "200")
	if x, y := ExpectedTokens(&p.Ask, &p.Load, 0), ExpectedTokens(&p.Ask, &p.Load, 40); x != 0 || y != 2000 {
		t.Errorf("%v and %v tokens/s", x, y)
	}
	for args, want := range map[string]float64{
		"": 12_800, "--n 4": 51_200, "--no-stream": 0, "--no-stream --n 4": 0, "--api sglang": 12_800,
		"--api openai-embeddings --batch-size 8": 0, "--api rerank": 0,
	} {
		p := decode(append(strings.Fields(args), "--rate", "100")...)
		if err := SuitsName(p); err != nil {
			t.Fatal(err)
		}
		if x := ExpectedTokens(&p.Ask, &p.Load, 0); x != want {
			t.Errorf("%q: %v tokens/s", args, x)
		}
		if x := ExpectedTokens(&p.Ask, &plan.Load{Concurrency: 2}, 40); (x == 0) != (want == 0) {
			t.Errorf("%q: %v tokens/s of users", args, x)
		}
	}
	for args, want := range map[string]bool{
		"--rate 9999": true, "--rate 9999 --fleet auto": true, "--rate 9999 --fleet none": false, "--rate 9999 --fleet 4": false,
		"--rate 9999 --respect-limits": false, "--rate 9999 --verify 5%": false,
	} {
		if got := AutoFleet(decode(strings.Fields(args)...)); got != want {
			t.Errorf("%s: %v", args, got)
		}
	}
	p = decode("--rate", "9999")
	if p.Spec = "mock:fixed"; AutoFleet(p) {
		t.Error("a mock is taken for a server")
	}
	var asked []int
	var why error
	s := &Session{plan: decode("--rate", "9999"), Target: &target.Target{Kind: plan.KindServer}, runner: &Runner{Muster: func(n int) (Crew, error) {
		asked = append(asked, n)
		return &someCrew{n: n, why: why}, nil
	}}}
	for _, n := range []int{3, 2, 4} { // two need no more than were there
		if err := s.muster(context.Background(), n, 2e5); err != nil || s.crew == nil || s.crew.Size() < n {
			t.Errorf("%d: %v, %v", n, s.crew, err)
		}
	}
	why = errors.New("no room")
	if err := s.muster(context.Background(), 5, 3e5); err != nil || s.crew != nil || s.runner.Muster != nil || !slices.Equal(asked, []int{3, 4, 5}) {
		t.Errorf("%v, %v, asked for %v", s.crew, err, asked)
	}
	if err := s.gather(context.Background(), &s.plan.Load); err != nil || s.crew != nil {
		t.Errorf("%v, %v", s.crew, err)
	}
}
