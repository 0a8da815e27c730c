package metrics

import (
	"cmp"
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pitot/internal/metrics/validity"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// servers are those of a queue by when they are free.
type servers []float64

func (s servers) Len() int           { return len(s) }
func (s servers) Less(i, j int) bool { return s[i] < s[j] }
func (s servers) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *servers) Push(x any)        { *s = append(*s, x.(float64)) }
func (s *servers) Pop() any          { panic("never") }

// queued is the load of an M/G/32 queue from empty, first come first served,
// as rows: Poisson arrivals, lognormal service of mean 1 s and coefficient of
// variation 1, first token after a fifth of the service. What begins before
// cold takes twice as long.
func queued(utilisation, seconds, cold float64, seed uint64) (rows []record.Row) {
	const s, sigma2 = 1e9, math.Ln2
	rng := rand.New(rand.NewPCG(seed, 32))
	free := make(servers, 32)
	for at := 0.; ; {
		if at += rng.ExpFloat64() / (32 * utilisation); at > seconds {
			return rows
		}
		service := math.Exp(math.Sqrt(sigma2)*rng.NormFloat64() - sigma2/2)
		start := max(at, free[0])
		if start < cold {
			service *= 2
		}
		free[0] = start + service
		heap.Fix(&free, 0)
		r := blankRow(int64(len(rows)), 0)
		r.Due = int64(at * s)
		r.Eligible, r.Ready, r.Sent = r.Due, r.Due, r.Due
		r.FirstToken, r.LastToken = int64((start+service/5)*s), int64((start+service)*s)
		r.FirstAnswer, r.Done, r.CompletionTokens, r.Chunks = r.FirstToken, r.LastToken, 100, 100
		rows = append(rows, r)
	}
}

// moved is the setup of a load whose window began at 5 s, once it has settled.
func moved(rows []record.Row, seconds float64, objective string, t testing.TB) Setup {
	slices.SortFunc(rows, func(a, b record.Row) int { return cmp.Compare(a.Done, b.Done) }) // as they are recorded
	setup := Setup{T0: 5e9, T1: int64(seconds * 1e9), AutoWarmup: true}
	if objective != "" {
		setup.SLO = spec(t, objective)
	}
	setups := map[int32]Setup{0: setup}
	SettleWindows(setups, func(yield func(record.Frame, error) bool) { yield(record.Frame{Rows: rows}, nil) })
	return setups[0]
}

// Where there is no transient but that of an empty server, little is thrown
// away and few runs are refused.
func TestSettlingOfAStationaryLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("a simulation on one goroutine, which the race detector only slows down")
	}
	t.Parallel()
	const seconds, runs = 300, 10
	for _, c := range []struct {
		utilisation float64
		objective   string
	}{{.5, ""}, {.8, ""}, {.8, "p99 ttft<1s"}, {.9, "p99 ttft<1s"}} {
		discarded, refused := 0., 0
		for i := range runs {
			s := moved(queued(c.utilisation, seconds, 0, uint64(i)), seconds, c.objective, t)
			if s.Settling.Why != "" {
				refused++
			}
			discarded += float64(s.T0) / float64(s.T1)
		}
		discarded /= runs
		t.Logf("utilisation %g %q: %.1f %% discarded, %d of %d refused", c.utilisation, c.objective, 100*discarded, refused, runs)
		if discarded > .15 || refused > runs/10 {
			t.Errorf("utilisation %g: %.1f %% discarded, %d of %d refused", c.utilisation, 100*discarded, refused, runs)
		}
	}
}

// A server that is slow at first leaves a queue that takes its time to go: the
// window begins behind it, and what it gives is that of the warm server.
func TestSettlingOfAColdStart(t *testing.T) {
	if testing.Short() {
		t.Skip("simulations on one goroutine are slow under the race detector")
	}
	t.Parallel()
	const seconds, runs, utilisation = 300, 10, .7
	warm := func(rows []record.Row, from int64) float64 {
		var took []float64
		for _, r := range rows {
			if r.Due >= from {
				took = append(took, float64(r.Done-r.Due)/1e9)
			}
		}
		mean, _ := stats.Moments(took)
		return mean
	}
	truth := warm(queued(utilisation, 20*seconds, 0, 99), 100e9)
	var planned, found, n float64
	for i := range runs {
		rows := queued(utilisation, seconds, .2*seconds, uint64(i))
		s := moved(rows, seconds, "", t)
		if s.Settling.Why != "" {
			t.Logf("run %d: %s", i, s.Settling.Why)
			continue
		}
		if s.T0 < .2*seconds*1e9 {
			t.Errorf("run %d: the window begins at %d s", i, s.T0/1e9)
		}
		planned += warm(rows, 5e9) / truth
		found += warm(rows, s.T0) / truth
		n++
	}
	planned, found = planned/n-1, found/n-1
	t.Logf("bias of mean E2E: %+.1f %% as planned, %+.1f %% settled", 100*planned, 100*found)
	if math.Abs(found) > .02 || planned < .5 || n < .9*runs {
		t.Errorf("bias of mean E2E: %+.1f %% as planned, %+.1f %% settled", 100*planned, 100*found)
	}
}

// What never settles is refused, and its window stays as it was planned.
func TestSettlingOfAGrowingQueue(t *testing.T) {
	t.Parallel()
	for i := range uint64(8) {
		s := moved(queued(1.2, 300, 0, i), 300, "", t)
		if s.Settling.Why == "" || s.T0 != 5e9 {
			t.Errorf("window from %d s: %q", s.T0/1e9, s.Settling.Why)
		}
	}
}

// A load whose end differs from all before it: the values of a steady state
// are withheld with the reason, and its objective is undecided.
func TestNotSettledWithholds(t *testing.T) {
	s := window(100)
	s.SLO, s.T0 = spec(t, "p50 e2e<3600s, errors<1%"), 0
	s.Settling = &validity.Settling{Why: "the load settled too late, or not at all"}
	f := NewFold(s)
	for i := range int64(2000) {
		f.Add(answer{id: i, due: 50 * i, stamps: []int64{50*i + 50, 50*i + 60}, usage: 2, first: 1}.frame())
	}
	p := f.Point()
	for _, x := range p.Metrics.List {
		if !x.Steady || x.Summary == nil {
			continue
		}
		if x.Mean != nil || x.P99 != nil || x.Withheld["p99"].Code != result.NotSettled || x.N == 0 {
			t.Errorf("%+v", x)
		}
	}
	if p.SLO.Met != undecided || p.SLO.Limits[0].Value != nil || p.SLO.Limits[1].Met != yes {
		t.Errorf("%+v", p.SLO)
	}
	if c := find(t, p.Checks, "warm-up"); c.Status != result.Flag || c.Case != result.CaseLate {
		t.Errorf("%+v", c)
	}
	if p.Throughput.CI95 != nil || p.Throughput.NoInterval.IsNone() {
		t.Errorf("%+v", p.Throughput)
	}
}
