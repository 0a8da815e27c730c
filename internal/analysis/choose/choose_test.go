package choose

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"pitot/internal/config"
	"pitot/internal/sim/catalogue"
	"pitot/internal/sim/deploy"
	"pitot/internal/sim/engines"
	"pitot/internal/slo"
	"pitot/internal/stats"
	"pitot/internal/workload"
)

// wanted is a small choice: short requests on few machines.
func wanted(t *testing.T, limits string, rate float64, gpus ...string) Wanted {
	t.Helper()
	lengths := func(s string) workload.Lengths {
		l, err := workload.ParseLengths(s)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	spec, err := slo.Parse(limits)
	if err != nil {
		t.Fatal(err)
	}
	ask := config.Default().Ask
	ask.Input, ask.Output, ask.Seed = lengths("uniform(50,200)"), lengths("3"), 1
	w := Wanted{Model: "llama-3.1-8b", DTypes: []string{"bf16"}, Ask: &ask, Arrival: "poisson", SLO: spec, Rate: rate}
	for _, name := range gpus {
		a, err := catalogue.FindAccelerator(name)
		if err != nil {
			t.Fatal(err)
		}
		w.Offers = append(w.Offers, Offer{Accelerator: a, Most: 1, USDPerHour: a.USDPerHour})
	}
	return w
}

func choice(t *testing.T, w Wanted) *Choice {
	t.Helper()
	x, err := Choose(context.Background(), w)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// What is chosen does not depend on how many processors there are, all candidates are
// accounted for, and the first option carries what is wanted, all its engines together.
func TestChoose(t *testing.T) {
	w := wanted(t, "p95 ttft<200ms", 250, "h100", "l4")
	x := choice(t, w)
	if len(x.Options) != 2 || len(x.Failing) != 0 {
		t.Fatalf("options %v, failing %v", x.Options, x.Failing)
	}
	best := x.Options[0]
	if best.Capacity*float64(best.Engines) < 250 || best.Whole == nil || !best.Whole.Met {
		t.Errorf("%d engines of %v/s each do not carry 250/s: %+v", best.Engines, best.Capacity, best.Whole)
	}
	if sum := x.Options[0].Cheapest + x.Options[1].Cheapest; sum < 0.999 || sum > 1.001 {
		t.Errorf("one of them is the cheapest with a probability of %v", sum)
	}
	n := x.Counts
	if n.All != n.Refused+n.Bounded+n.Dearer+n.Simulated {
		t.Errorf("candidates do not add up: %+v", n)
	}
	for _, o := range x.Options {
		if !(o.Interval[0] < o.Capacity && o.Capacity < o.Interval[1]) {
			t.Errorf("%s: %v is outside of %v", o.Spec, o.Capacity, o.Interval)
		}
		r := &race{wanted: &w, schedule: &schedule{input: x.Input, output: x.Output, own: x.Input}}
		if bound := r.rateBound(o.candidate); o.Capacity > bound {
			t.Errorf("%s carries %v/s, above the bound of %v/s", o.Spec, o.Capacity, bound)
		}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	one, _ := json.Marshal(choice(t, w))
	if many, _ := json.Marshal(x); string(one) != string(many) {
		t.Error("on one processor another choice is made")
	}
}

// Where the published weights cost what quantised ones do, and are as sure, they are proposed.
func TestPublishedWeightsFirst(t *testing.T) {
	w := wanted(t, "p95 ttft<200ms", 20, "h100")
	w.DTypes = nil
	w.Settings = []Set{{"max_num_seqs", "128"}, {"max_num_batched_tokens", "2048"}}
	x := choice(t, w)
	if len(x.Options) != 2 || x.Options[0].DType != "bf16" || x.Options[0].PerHour != x.Options[1].PerHour {
		t.Fatalf("%s first of %d", x.Options[0].Spec, len(x.Options))
	}
	for _, o := range x.Options {
		if o.Cheapest < 0.9 {
			t.Errorf("%s: nothing costs less with a probability of %v, of two that cost the same and carry it", o.Spec, o.Cheapest)
		}
	}
}

// A rate of conversations is of those that begin: an engine carries fewer of them the more
// requests they have, and more than of single requests as long, for what was said is in its
// cache.
func TestConversations(t *testing.T) {
	if testing.Short() {
		t.Skip("slow under the race detector, for which TestCandidatesAreApart is")
	}
	w := wanted(t, "p95 ttft<100ms", 0, "l4")
	w.Settings = []Set{{"max_num_seqs", "128"}, {"max_num_batched_tokens", "2048"}}
	single := choice(t, w).Options[0].Capacity
	w.Ask.Turns, w.Ask.Think = workload.FixedLength(4), workload.Pause{}
	x := choice(t, w)
	if len(x.Options) != 1 || x.Turns != 4 {
		t.Fatalf("%d options, %v requests each", len(x.Options), x.Turns)
	}
	o := x.Options[0]
	if o.Capacity >= single || o.Capacity < single/10 {
		t.Errorf("%v conversations/s of 4 requests each, %v single ones/s", o.Capacity, single)
	}
	// Prompts of turns are 125, 253, 381 and 509 tokens long, of which about 125 are new.
	w.Ask.Turns, w.Ask.Input = workload.FixedLength(1), workload.FixedLength(317)
	if long := choice(t, w).Options[0].Capacity; 4*o.Capacity < long {
		t.Errorf("%v requests/s in conversations, %v single ones/s as long: nothing was found in the cache", 4*o.Capacity, long)
	}
	if !(o.Interval[0] < o.Capacity && o.Capacity < o.Interval[1]) {
		t.Errorf("%v is outside of %v", o.Capacity, o.Interval)
	}
}

// As many engines as --sure takes are enough in that share of what the errors allow: engines
// that are slower or faster than the twin, each served all that is wanted.
func TestSure(t *testing.T) {
	w := wanted(t, "p95 ttft<200ms", 400, "h100")
	w.Settings = []Set{{"max_num_seqs", "128"}, {"max_num_batched_tokens", "8192"}}
	w.Sure = 0.8
	o := choice(t, w).Options[0]
	if o.Engines < 2 || o.NeverSure || o.Enough < 0.75 {
		t.Fatalf("%d engines are enough with a probability of %v", o.Engines, o.Enough)
	}
	s := must(newSchedule(w.Ask, must(config.ReadArrivals("poisson")), 4000))
	e, claims := s.effort(4000, 1), must(w.SLO.SplitClaims())
	met := func(spec string) (n int) { // of ten that are equally likely
		for i := range 10 {
			z := stats.NormalQuantile((float64(i) + 0.5) / 10)
			slow := math.Pow(1+o.Error.TTFTPct/100, z/stats.NormalQuantile(0.9))
			d := must(deploy.Parse(fmt.Sprintf("%s&scale=%v", spec, slow)))
			if must(s.serve(context.Background(), d, claims, w.Rate, 1000, &e)).isMet() {
				n++
			}
		}
		return n
	}
	if n := met(o.Whole.Spec); n < 8 {
		t.Errorf("%d engines are enough in %d of ten", o.Engines, n)
	}
}

// Limits that no GPU can meet leave nothing to choose from, and are told for each.
func TestNothingToChoose(t *testing.T) {
	x := choice(t, wanted(t, "p95 tpot<2ms", 0, "h100", "l4"))
	if len(x.Options) != 0 || len(x.Failing) != 2 {
		t.Errorf("options %v, failing %v", x.Options, x.Failing)
	}
	for _, f := range x.Failing {
		if f.Times != 0 { // the weights alone take 4.5 ms and more to read
			t.Errorf("%s was simulated though the datasheet excludes it", f.Spec)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		change func(*Wanted)
		want   string
	}{
		{func(w *Wanted) { w.SLO = slo.Spec{} }, "no limits"},
		{func(w *Wanted) { w.Arrival = "ramp(0.5,2,60s)" }, "no steady load"},
		{func(w *Wanted) { w.Model = "llama-9" }, "unknown model"},
		{func(w *Wanted) { w.Model = "llama-3.1-70b" }, "no deployment of llama-3.1-70b exists"},
		{func(w *Wanted) { w.Settings = []Set{{"max_nun_seqs", "4"}} }, "max_nun_seqs"},
	} {
		w := wanted(t, "p95 ttft<200ms", 10, "l4")
		c.change(&w)
		if _, err := Choose(context.Background(), w); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one of %q", err, c.want)
		}
	}
}

// A limit on the time of a token alone says nothing of those who wait: what an engine carries
// is then where the queue begins to grow, and never above what bandwidth and compute allow.
func TestQueueThatGrows(t *testing.T) {
	w := wanted(t, "p99 tpot<5s", 0, "l4")
	x := choice(t, w)
	if len(x.Options) != 1 {
		t.Fatalf("options %v, failing %v", x.Options, x.Failing)
	}
	o := x.Options[0]
	r := &race{wanted: &w, schedule: &schedule{input: x.Input, output: x.Output, own: x.Input}}
	if bound := r.rateBound(o.candidate); o.Capacity > bound {
		t.Errorf("carries %v/s, above the bound of %v/s", o.Capacity, bound)
	}
	s, err := newSchedule(w.Ask, must(config.ReadArrivals("poisson")), 2000)
	if err != nil {
		t.Fatal(err)
	}
	e := s.effort(2000, 1.06)
	claims := must(w.SLO.SplitClaims())
	for _, c := range []struct {
		of    float64
		grows bool
	}{{0.8, false}, {1.3, true}} {
		y, err := s.serveLoad(context.Background(), o.candidate, claims, c.of*o.Capacity, &e)
		if err != nil || y.Grows != c.grows {
			t.Errorf("at %v times the capacity the queue grows: %v (error %v)", c.of, y.Grows, err)
		}
	}
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// Hardware is excluded by what more requests cannot meet than may violate a limit, and not by
// what the mean of all cannot: a few long prompts lift that.
func TestBoundOfSkewedPrompts(t *testing.T) {
	w := wanted(t, "p90 ttft<145ms", 0, "l4")
	c, err := w.newCandidate(EngineShape{w.Offers[0], engines.Default(), 1, "bf16"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &schedule{own: 1300, input: 1300, output: 20}
	for i := range 1000 {
		a := drawnRequest{Input: 100, Output: 20}
		if i >= 940 {
			a.Input = 20_000
		}
		s.asked = append(s.asked, a)
	}
	r := &race{wanted: &w, schedule: s}
	if claim, ok := r.canMeetLimits(c); !ok {
		t.Errorf("%s is said to be impossible, and 94 %% of the prompts are short", claim)
	}
	w.SLO = must(slo.Parse("p95 ttft<145ms"))
	if _, ok := r.canMeetLimits(c); ok {
		t.Error("6 % of the prompts take longer than the limit on 5 % of them")
	}
}

// TestLimitsJudged: a limit that the twin's requests have no value of is refused, and not
// taken to be met.
func TestLimitsJudged(t *testing.T) {
	for spec, known := range map[string]bool{"p99 ttft<1s, p95 e2e<9s": true, "p99 stall<100ms": false, "ttft<1s, stall<100ms @99%": false} {
		s, err := slo.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		w := Wanted{SLO: s}
		if _, err := w.claims(); (err == nil) != known {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

// TestAsFlags: what would fit is said in the flags of choose.
func TestAsFlags(t *testing.T) {
	if got := asFlags("it would fit with max_num_seqs=256 or dtype=int4 or @8xl40s"); got != "it would fit with --settings max_num_seqs=256 or --dtypes int4 or --gpus l40s:8" {
		t.Error(got)
	}
}

// TestLockstep: engines that share experts are expected to be as far off as was seen of such, and
// those of several machines, which share none, are not simulated as if they did.
func TestLockstep(t *testing.T) {
	w := wanted(t, "p95 ttft<1s", 500, "h100")
	w.Model, w.Settings = "qwen3-30b-a3b", []Set{{"enable_expert_parallel", "true"}, {"max_num_seqs", "32"}, {"max_num_batched_tokens", "2048"}}
	w.Offers[0].Most = 2
	sawTogether, sawApart := false, false
	for _, rate := range []float64{300, 600} {
		w.Rate = rate
		for _, o := range choice(t, w).Options {
			together := o.Engines > 1 && o.GPUs <= 2
			if o.Error.Lockstep != together {
				t.Errorf("%d engines of %d GPUs: %+v", o.Engines, o.TensorParallel, o.Error)
			}
			if apart := o.GPUs > 2; apart && o.Engines > 1 {
				sawApart = true
				if o.Whole != nil {
					t.Errorf("%d engines of several machines were put together", o.Engines)
				}
			}
			sawTogether = sawTogether || together
		}
	}
	if !sawApart || !sawTogether {
		t.Error(sawApart, sawTogether)
	}
}

// Candidates of several accelerators and settings are looked at at once. It asks of the race
// detector whether they share something that is written.
func TestCandidatesAreApart(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	w := wanted(t, "p95 ttft<200ms", 100, "h100", "a100", "l40s")
	for i := range w.Offers {
		w.Offers[i].USDPerHour = 2 // so that all of them stay in the race
	}
	w.Ask.Input = workload.FixedLength(400)
	if x := choice(t, w); len(x.Options) < 2 || x.Counts.Simulated < 6 {
		t.Errorf("%d options, of %+v", len(x.Options), x.Counts)
	}
}
