package loadgen

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitot/internal/workload/arrival"
)

// asked is what a request is, wherever it is sent from.
type asked struct {
	Item, Due int64
	Window    bool // it is of the window's cohort
}

// carried is what one worker sends of a load whose every request takes equally long.
func carried(cfg Config) (sent []asked, ids []int64, t0, t1 int64) {
	w := &noting{fixedWorld: fixedWorld{took: 70e6}}
	c := NewCore(cfg)
	Run(context.Background(), c, w)
	t0, t1 = c.MeasuredWindow()
	for _, a := range w.starts {
		if a.Due < t1 { // what comes later goes on only while others end
			sent = append(sent, asked{a.Item, a.Due, a.Due >= t0})
			ids = append(ids, a.ID)
		}
	}
	return sent, ids, t0, t1
}

// noting is a world that keeps what was started.
type noting struct {
	fixedWorld
	starts []Action
}

func (n *noting) Do(a Action) {
	if a.Kind == Start {
		n.starts = append(n.starts, a)
	}
	n.fixedWorld.Do(a)
}

// lawFiles are what laws read that are kept in files.
func lawFiles() arrival.Files {
	return arrival.Files{
		Times: func(string) (arrival.Stamps, error) {
			return arrival.StampList{0, 1e9, 1e9, 1e9, 2e9, 4e9, 4e9, 7e9}, nil
		},
		Rates: func(string) ([]float64, []float64, error) { return []float64{0, 1, 3}, []float64{50, 200}, nil },
		Profile: func(string) (*arrival.Law, error) {
			return arrival.FromCascade(&arrival.Cascade{Requests: 10, Every: 8, Spans: []float64{1.5, 2}, Slopes: []float64{0.1}, Splits: []arrival.Split{{Gap: -4, Logits: []float64{-1, 0, 2}}}})
		},
	}
}

var fleets = []int{1, 2, 7, 64}

// Workers send together exactly what one machine would: the same items, due at the same
// times, in the same window, for every law of arrivals, for windows that end by the
// clock and by a count, for single requests, conversations and agents.
func TestShares(t *testing.T) {
	follows := map[string]func(int64, Event) []Ask{"alone": nil, "conversations": FollowOf(talks{}), "agents": FollowOf(fans{})}
	laws := []string{"poisson", "constant", "gamma(0.3)", "on-off(100ms,200ms)", "mmpp(0.5:200ms,4:100ms)", "step(3,1s)", "ramp(0.5,2,2s)", "sinusoid(0.5,1s)", "diurnal(2s)", "piecewise(x)", "trace(x)", "profile(x)", "0.4*poisson + 0.6*gamma(0.2)"}
	for _, form := range arrival.ExampleForms() { // a law that comes is to be tried too
		name, _, _ := strings.Cut(form[0], "(")
		if strings.Contains(name, "*") { // a sum of laws
			continue
		}
		if !slices.ContainsFunc(laws, func(l string) bool { return len(l) >= len(name) && l[:len(name)] == name }) {
			t.Errorf("the law %s is not tried", name)
		}
	}
	for _, name := range laws {
		law, err := arrival.ParseLaw(name, lawFiles())
		if err != nil {
			t.Fatal(err)
		}
		for kind, follow := range follows {
			for _, requests := range []int64{0, 150} {
				if follow != nil && requests > 0 {
					continue // see TestSharesCount
				}
				t.Run(fmt.Sprintf("%s/%s/%d", name, kind, requests), func(t *testing.T) {
					whole := func() Config {
						p, err := law.NewProcess(200, 11, 300e6)
						if err != nil {
							t.Fatal(err)
						}
						cfg := Config{Arrivals: p, Follow: follow, Warmup: 300e6, Window: 800e6, Requests: requests}
						if requests > 0 {
							cfg.Window = 0
						}
						return cfg
					}
					compareShares(t, whole, follow == nil)
				})
			}
		}
	}
}

func compareShares(t *testing.T, whole func() Config, ids bool) {
	t.Helper()
	want, wantIDs, t0, t1 := carried(whole())
	for _, n := range fleets {
		var got []asked
		var gotIDs []int64
		for rank := range n {
			sent, ids, u0, u1 := carried(whole().ForShare(Share{Rank: rank, Of: n, Seed: 3}))
			if u0 != t0 || u1 != t1 {
				t.Errorf("worker %d of %d has the window %d to %d, one machine %d to %d", rank, n, u0, u1, t0, t1)
			}
			got, gotIDs = append(got, sent...), append(gotIDs, ids...)
		}
		byDue := func(a, b asked) int {
			if a.Due != b.Due {
				return int(a.Due - b.Due)
			}
			return int(a.Item - b.Item)
		}
		slices.SortFunc(got, byDue)
		slices.SortFunc(want, byDue)
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("one machine (-) and %d workers (+):\n%s", n, d)
		}
		slices.Sort(gotIDs)
		if len(slices.Compact(slices.Clone(gotIDs))) != len(gotIDs) {
			t.Errorf("%d workers gave an id twice", n)
		}
		if slices.Sort(wantIDs); ids && !slices.Equal(gotIDs, wantIDs) {
			t.Errorf("%d workers gave other ids than one machine", n)
		}
	}
}

// So they do for random schedules with bursts, a total and counts of requests.
func TestAnyShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var due []int64
		at := int64(0)
		for range rapid.IntRange(0, 60).Draw(t, "arrivals") {
			at += rapid.SampledFrom([]int64{0, 0, 1, 5e6, 40e6}).Draw(t, "gap")
			due = append(due, at)
		}
		n := rapid.IntRange(2, 9).Draw(t, "workers")
		cfg := Config{
			Warmup: rapid.SampledFrom([]int64{0, 30e6}).Draw(t, "warmup"), Requests: rapid.Int64Range(1, 40).Draw(t, "requests"),
			Total: rapid.Int64Range(0, 50).Draw(t, "total"),
		}
		whole := func() Config {
			c := cfg
			c.Arrivals = dueAt(due...)
			return c
		}
		all, _, _, _ := carried(whole())
		sum := 0
		for rank := range n {
			sent, _, _, _ := carried(whole().ForShare(Share{Rank: rank, Of: n, Seed: 9}))
			for _, a := range sent {
				if !slices.Contains(all, a) {
					t.Fatalf("worker %d sends %+v, which one machine does not: %+v", rank, a, all)
				}
			}
			sum += len(sent)
		}
		if sum != len(all) {
			t.Fatalf("%d workers send %d requests, one machine %d", n, sum, len(all))
		}
	})
}

// Users, caps and counts that no schedule decides are divided: together they are those of
// one machine.
func TestSharesCount(t *testing.T) {
	for _, n := range fleets {
		var users, most, requests, total int64
		items := map[int64]int{}
		for rank := range n {
			s := Share{Rank: rank, Of: n, Seed: 5}
			cfg := Config{Users: 100, Cap: 90, Requests: 1000, Total: 1000}.ForShare(s)
			users, most, requests = users+int64(cfg.Users), most+int64(cfg.Cap), requests+cfg.Requests
			sent, _, _, _ := carried(Config{Users: 100, Window: 500e6, Total: 300}.ForShare(s))
			for _, a := range sent {
				items[a.Item]++
			}
			cfg = Config{Users: 100, Total: 1000, Requests: 1000, Follow: FollowOf(talks{})}.ForShare(s)
			total += cfg.Total
		}
		if users != 100 || most != 90 || requests != 1000 || total != 1000 {
			t.Errorf("%d workers have %d of 100 users, %d of 90 in flight, %d and %d of 1000 requests", n, users, most, requests, total)
		}
		if len(items) != 300 {
			t.Errorf("%d workers ask for %d of 300 items", n, len(items))
		}
		for item, times := range items {
			if times != 1 || item >= 300 {
				t.Errorf("%d workers ask for item %d %d times", n, item, times)
			}
		}
	}
}

// A worker that has none of a total sends nothing, and no two workers' users begin at the
// same time.
func TestSharesOfFew(t *testing.T) {
	sent := 0
	begins := map[int64]bool{}
	for rank := range 7 {
		s := Share{Rank: rank, Of: 7, Seed: 5}
		some, _, _, _ := carried(Config{Users: 7, Window: 500e6, Total: 3, Follow: FollowOf(talks{})}.ForShare(s))
		sent += len(some)
		if cfg := (Config{Users: 20, Requests: 3}).ForShare(s); cfg.Requests != 1 {
			t.Errorf("worker %d counts %d requests", rank, cfg.Requests)
		}
		for g := newStagger(Config{Users: 20}.ForShare(s)); g.left > 0; g.begin() {
			if begins[g.next] {
				t.Errorf("two users begin at %d", g.next)
			}
			begins[g.next] = true
		}
	}
	if sent != 3 || len(begins) != 20 {
		t.Errorf("%d of 3 requests, %d of 20 users", sent, len(begins))
	}
}

// Each worker's part of a Poisson process is one, and so is the sum when clocks are
// apart, where turns would have made it too even: the variance of counts over their mean.
func TestSharesStayPoisson(t *testing.T) {
	law, err := arrival.ParseLaw("poisson", arrival.Files{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := law.NewProcess(1000, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	const n, width = 8, int64(8e6)
	s := Share{Of: n, Seed: 2}
	hashed, turns := map[int64]int{}, map[int64]int{}
	var last int64
	for i := range int64(400_000) {
		last = p.Next()
		offset := func(rank int64) int64 { return (rank*2 - n + 1) * 50e6 / n }
		rank := int64(0)
		for s.Rank = 0; !s.Includes(i); s.Rank++ {
			rank++
		}
		hashed[(last+offset(rank)+1e9)/width]++
		turns[(last+offset(i%n)+1e9)/width]++
	}
	of := func(counts map[int64]int) float64 {
		var sum, squares, k float64
		for i := 1e9/width + 20; i < (last+1e9)/width-20; i++ {
			x := float64(counts[i])
			sum, squares, k = sum+x, squares+x*x, k+1
		}
		mean := sum / k
		return (squares/k - mean*mean) / mean
	}
	if d := of(hashed); math.Abs(d-1) > .03 {
		t.Errorf("dispersion %.3f by a hash, want 1", d)
	}
	if d := of(turns); d > .6 {
		t.Errorf("dispersion %.3f in turn: the reason for the hash is gone", d)
	}
}

// BenchmarkShare is what a million due times cost a worker of many.
func BenchmarkShare(b *testing.B) {
	law, err := arrival.ParseLaw("poisson", arrival.Files{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		p, err := law.NewProcess(1000, 1, 0)
		if err != nil {
			b.Fatal(err)
		}
		s := Share{Rank: 1, Of: 64, Seed: 2}
		for i := range int64(1_000_000) {
			p.Next()
			s.Includes(i)
		}
	}
}
