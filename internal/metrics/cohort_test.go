package metrics

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/spill"
	"pitot/internal/slo"
)

// Whatever memory there is, down to a few hundred bytes, the result is the same to
// the last digit: of every metric, class, check, interval, objective and claim.
func TestBudgetDoesNotMatter(t *testing.T) {
	objective := spec(t, "p90 ttft<200ms, stall<30ms, e2e<1s @50%, p90 icl<30ms, p90 itl<30ms, errors<20%")
	want, err := slo.ParsePrecision("p90 e2e +-5%")
	if err != nil {
		t.Fatal(err)
	}
	claims, err := spec(t, "p90 ttft<200ms, stall<30ms, e2e<1s @50%").SplitClaims()
	if err != nil {
		t.Fatal(err)
	}
	users, rate := 20, 143.
	loads := []result.Load{{Loop: "open", Arrival: "poisson", Rate: &rate}, {Loop: "open", MaxInFlight: &users}, {Loop: "closed", Concurrency: &users}}
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		frames := crowd(rng, rapid.IntRange(0, 80).Draw(t, "n"))
		for i := range frames {
			for k := range frames[i].Rows {
				r := &frames[i].Rows[k]
				if rng.IntN(3) > 0 { // others lack the stamps
					r.Eligible = r.Due + rng.Int64N(2*ms)
					r.Ready = r.Eligible + rng.Int64N(2*ms)
					r.Sent = r.Ready + rng.Int64N(3*ms)
				}
				if r.Outcome == record.Failed && rng.IntN(2) == 0 {
					r.Error = record.ErrReset
				}
				if rng.IntN(40) == 0 {
					r.Error = record.ErrInterrupted
				}
				r.Class = []string{"", "a", "b"}[rng.IntN(3)]
			}
		}
		s := Setup{T0: 100 * ms, T1: 3000 * ms, Stamps: "kernel", SLO: objective, Load: rapid.SampledFrom(loads).Draw(t, "load"), Residence: 10 * ms}
		store := spill.NewSized(dir, rapid.SampledFrom([]int64{0, 2000, 20_000}).Draw(t, "budget"), 256)
		memory, file := NewFold(s), NewFoldIn(store, s)
		for i, fr := range frames {
			memory.Add(fr)
			file.Add(fr)
			if i == 50 {
				file.Point() // looking changes nothing
			}
		}
		if d := cmp.Diff(memory.Point(), file.Point()); d != "" {
			t.Fatal(d)
		}
		if d := cmp.Diff(memory.CountViolations(claims, 7), file.CountViolations(claims, 7)); d != "" {
			t.Fatal(d)
		}
		a, why := memory.Precision(want)
		b, whyToo := file.Precision(want)
		if a != b || why != whyToo {
			t.Fatalf("%g %v, in a file %g %v", a, why, b, whyToo)
		}
		if err := file.Err(); err != nil {
			t.Fatal(err)
		}
		file.Free()
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Fatal(left)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A request comes back from the file as it was.
func TestRequestInFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		stamp := func() int64 { return rng.Int64N(1<<rng.IntN(62)) - 1 }
		count := func() int32 { return int32(rng.Int64N(1<<rng.IntN(31)) - 1) }
		q := Request{
			id: stamp(), eligible: stamp(), ready: stamp(), firstLo: stamp(), own: [ownNumbers]int64{stamp(), stamp(), stamp()}, lastGap: stamp(),
			inputPlanned: count(), prompt: count(), cached: count(), chunks: count(), group: count(),
			hidden: rng.IntN(2) == 0, marker: rng.IntN(2) == 0, interrupted: rng.IntN(2) == 0,
			Latency: Latency{
				due: stamp(), sent: stamp(), first: stamp(), answer: stamp(), last: stamp(), done: stamp(),
				visible: count(), firstTokens: count(), planned: count(), output: count(),
				outcome: record.Outcome(rng.IntN(256)), stream: rng.IntN(2) == 0, between: rng.IntN(2) == 0, unreachable: rng.IntN(2) == 0,
			},
		}
		b := appendRequest(nil, &q)
		var got Request
		if n := decodeRequest(append(b, 1, 2, 3), &got); n != len(b) || n > RequestCodec().Most {
			t.Fatalf("%d bytes of %d", n, len(b))
		}
		if got != q {
			t.Fatalf("%+v, want %+v", got, q)
		}
		if n := decodeRequest(b[:rng.IntN(len(b))], &got); n != 0 {
			t.Fatalf("%d bytes of a part", n)
		}
	})
}
