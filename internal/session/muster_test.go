package session

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"pitot/internal/client/api"
	"pitot/internal/config"
	"pitot/internal/loadgen"
	"pitot/internal/metrics"
	"pitot/internal/results/result"
	"pitot/internal/target"
)

// What --fleet auto decides is a function of the cores, of what is to be read, of where the server
// is and of how many streams a load has; it says why. One process sends what one core reads,
// whatever the machine has, and where there are no cores to spare; beyond, each worker has a third
// of a core to spare as long as there are enough.
func TestSending(t *testing.T) {
	for _, test := range []struct {
		load  string // of answers of 100 tokens
		cores int
		here  bool
		want  int
		why   string
	}{
		{"--rate 100", 1, false, 0, "one process sends: about 10,000 tokens/s are to be read, and one core reads 100,000"},
		{"--rate 100", 64, false, 0, "one process sends: about 10,000 tokens/s are to be read, and one core reads 100,000"},
		{"--rate 1000", 64, false, 0, "one process sends: about 100,000"},
		{"--rate 1001", 64, false, 2, "2 workers, as about 100,100 tokens/s are to be read and one core reads 100,000; --fleet none keeps one process"},
		{"--rate 7000", 64, false, 10, "10 workers, as about 700,000"},
		{"--rate 100000", 64, false, 63, "which 143 would be needed and 64 cores have no room"},
		{"--rate 6000", 64, false, 9, "as about 600,000"},
		{"--rate 2000", 1, false, 0, "one process sends, though about 200,000 tokens/s are to be read and one core reads 100,000: 1 core has no room"},
		{"--rate 2000", 2, false, 0, ": 2 cores have no room for workers; --fleet N has them all the same"},
		{"--rate 2000", 2, true, 0, ": 2 cores have no room for workers; --fleet N"},
		{"--rate 2000", 3, false, 2, "2 workers, as about 200,000"},
		{"--rate 2000", 8, false, 3, "3 workers, as about 200,000 tokens/s are to be read and one core reads 100,000; --fleet none"},
		{"--rate 10000", 8, false, 7, "more than these read well, for which 15 would be needed and 8 cores have no room"},
		{"--rate 2000", 7, true, 0, ": the server is on this machine, whose 7 cores have no room for workers beside it"},
		{"--rate 2000", 8, true, 2, "2 workers, as about 200,000"},
		{"--rate 2000", 64, true, 3, "3 workers, as"},
		{"--rate 100000", 64, true, 16, "16 workers, as"},
		{"--rate 9000 --max-in-flight 4", 64, false, 4, "4 workers, as about 900,000"},
		{"--rate 9000 --max-in-flight 1", 64, false, 0, "though about 900,000 tokens/s are to be read and one core reads 100,000: the load has no more than one user, or request in flight"},
		{"--concurrency 5000", 64, false, 0, "one process sends: what is to come is not known beforehand; a load that is known to bring over 100,000 tokens/s, which one core reads, has workers"},
		{"--concurrency 5000", 2, false, 0, "one process sends: 2 cores have no room for workers"},
		{"--rate 9000 --no-stream", 64, false, 0, "one process sends: answers come whole, and cost little to read"},
		{"--rate 9000 --respect-limits", 64, false, 0, "though about 900,000 tokens/s are to be read and one core reads 100,000: --respect-limits is kept to by one"},
		{"--rate 9000 --check-answers 5%", 64, false, 0, ": questions (--check-answers) are sent and checked by one"},
	} {
		p := decoded(t, append(strings.Fields(test.load), "--output", "100")...)
		got := SendingOf(p, &p.Load, 0, test.cores, func() bool { return test.here })
		if got.Workers != test.want || !strings.Contains(got.String(), test.why) {
			t.Errorf("%s on %d cores, here %v: %d, %s", test.load, test.cores, test.here, got.Workers, got)
		}
		if much := ExpectedTokens(&p.Ask, &p.Load, 0) > CoreReads*float64(max(1, got.Workers)); got.Short != much {
			t.Errorf("%s on %d cores: short %v", test.load, test.cores, got.Short)
		}
	}
	p := decoded(t, "--concurrency", "5000")
	for users, want := range map[int]int{1: 0, 2: 0, 2000: 0, 2001: 2, 5000: 4} { // of which each brings 50 tokens/s
		p.Concurrency = users
		if got := SendingOf(p, &p.Load, 50, 64, func() bool { return false }); got.Workers != want {
			t.Errorf("%d users: %s", users, got)
		}
	}
	if p.Spec = "mock:fixed"; SendingOf(p, &p.Load, 50, 64, nil).Workers != 0 {
		t.Error("a mock is taken for a server")
	}
}

// decoded is the plan of a run of a server, which is asked nothing.
func decoded(t *testing.T, args ...string) *config.Plan {
	t.Helper()
	p, spec, err := config.Decode(config.VerbRun, append([]string{"http://192.0.2.1:8000"}, args...), nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Spec = spec[0]
	return &p
}

// someCrew is a crew of so many, which comes unless there is a reason, and loses a worker or not.
type someCrew struct {
	Crew
	n      int
	why    error
	lost   *result.Lost
	absent error
}

func (c *someCrew) Size() int                    { return c.n }
func (c *someCrew) Gather(context.Context) error { return c.why }
func (c *someCrew) Carry(context.Context, *Task, Sums) (*Carried, error) {
	if c.absent != nil {
		return nil, &AbsentError{c.absent}
	}
	return &Carried{Workers: []result.Worker{{Rank: 0, Lost: c.lost}, {Rank: 1}}}, nil
}

// Workers that nobody asked for go on from load to load, unless one was lost, however late, or is
// not there any more: then others come, and where they do not one process sends.
func TestMusterAnew(t *testing.T) {
	mustered := 0
	crew := new(someCrew)
	p := config.Default()
	s := &Session{plan: &p, Target: &target.Target{Kind: config.KindServer, API: api.Default()}, runner: &Runner{Muster: func(n int) (Crew, error) {
		mustered++
		crew = &someCrew{n: n}
		return crew, nil
	}}}
	none := &pointLoad{spec: &PointSpec{Load: p.Load}, setup: new(metrics.Setup), cfg: new(loadgen.Config), tap: newTap(nil), src: new(source)}
	for i, test := range []struct {
		lost     *result.Lost
		mustered int // by the end of the load
	}{{nil, 1}, {&result.Lost{Why: "killed"}, 1}, {nil, 2}, {nil, 2}} {
		if err := s.musterWorkers(t.Context(), Sending{Workers: 2}); err != nil || s.workers.present != Crew(crew) {
			t.Fatalf("load %d: %v, %v", i, s.workers.present, err)
		}
		crew.lost = test.lost
		if _, err := s.byCrew(t.Context(), none); err != nil || mustered != test.mustered {
			t.Errorf("load %d: mustered %d times, %v", i, mustered, err)
		}
	}
	crew.why = errors.New("gone")
	if err := s.musterWorkers(t.Context(), Sending{Workers: 2}); err != nil || s.workers.present != Crew(crew) || s.workers.mustered != Crew(crew) || mustered != 3 {
		t.Errorf("%v, %v, mustered %d times", s.workers.present, err, mustered)
	}
	crew.absent = errors.New("worker 1 does not answer") // only when it is given its share
	if c, err := s.carryOut(t.Context(), none); err != nil || c == nil || mustered != 4 {
		t.Errorf("%v, mustered %d times", err, mustered)
	}
	crew.why, s.runner.Muster = errors.New("gone"), func(int) (Crew, error) { return nil, errors.New("no room") }
	if err := s.musterWorkers(t.Context(), Sending{Workers: 2}); err != nil || s.workers.present != nil || s.workers.mustered != nil || s.runner.Muster != nil {
		t.Errorf("%v, %v", s.workers.present, err)
	}
}

// What a load is to bring is known of a rate and of generated answers, and of users once some
// were measured. Loads that workers cannot divide stay with one process, and so does one whose
// workers do not come: nobody asked for them.
func TestMuster(t *testing.T) {
	p := decoded(t, "--rate", "100", "--output", "200")
	if x := ExpectedTokens(&p.Ask, &p.Load, 0); x != 20_000 {
		t.Errorf("%v tokens/s", x)
	}
	p = decoded(t, "--concurrency", "50", "--output", "200")
	if x, y := ExpectedTokens(&p.Ask, &p.Load, 0), ExpectedTokens(&p.Ask, &p.Load, 40); x != 0 || y != 2000 {
		t.Errorf("%v and %v tokens/s", x, y)
	}
	for args, want := range map[string]float64{
		"": 12_800, "--set n=4": 51_200, "--no-stream": 0, "--no-stream --set n=4": 0, "--api sglang": 12_800,
		"--api openai-embeddings --batch-size 8": 0, "--api rerank": 0,
	} {
		p := decoded(t, append(strings.Fields(args), "--rate", "100")...)
		if err := SuitsName(p); err != nil {
			t.Fatal(err)
		}
		if x := ExpectedTokens(&p.Ask, &p.Load, 0); x != want {
			t.Errorf("%q: %v tokens/s", args, x)
		}
		if x := ExpectedTokens(&p.Ask, &config.Load{Concurrency: 2}, 40); (x == 0) != (want == 0) {
			t.Errorf("%q: %v tokens/s of users", args, x)
		}
	}
	var asked []int
	var why error
	s := &Session{plan: decoded(t, "--rate", "9999"), Target: &target.Target{Kind: config.KindServer}, runner: &Runner{Muster: func(n int) (Crew, error) {
		asked = append(asked, n)
		return &someCrew{n: n, why: why}, nil
	}}}
	for _, n := range []int{3, 2, 4} { // two need no more than were there
		if err := s.musterWorkers(context.Background(), Sending{Workers: n}); err != nil || s.workers.present == nil || s.workers.present.Size() < n {
			t.Errorf("%d: %v, %v", n, s.workers.present, err)
		}
	}
	why = errors.New("no room")
	if err := s.musterWorkers(context.Background(), Sending{Workers: 5}); err != nil || s.workers.present != nil || s.runner.Muster != nil || !slices.Equal(asked, []int{3, 4, 5}) {
		t.Errorf("%v, %v, asked for %v", s.workers.present, err, asked)
	}
	if err := s.gather(context.Background(), &s.plan.Load); err != nil || s.workers.present != nil {
		t.Errorf("%v, %v", s.workers.present, err)
	}
}
