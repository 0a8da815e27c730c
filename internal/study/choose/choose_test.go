package choose

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"pitot/internal/plan"
	"pitot/internal/slo"
	"pitot/internal/twin/catalogue"
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
	ask := plan.Default().Ask
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
		if bound := r.bound(o.candidate); o.Capacity > bound {
			t.Errorf("%s carries %v/s, above the bound of %v/s", o.Spec, o.Capacity, bound)
		}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	one, _ := json.Marshal(choice(t, w))
	if many, _ := json.Marshal(x); string(one) != string(many) {
		t.Error("on one processor another choice is made")
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
