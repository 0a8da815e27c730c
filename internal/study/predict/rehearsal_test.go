package predict

import (
	"errors"
	"math"
	"testing"

	"pitot/internal/slo"
	"pitot/internal/twin/deploy"
)

// A schedule on a slower twin violates more, and a slower twin is the same one to which
// all comes faster with tighter limits.
func TestRehearsalSlows(t *testing.T) {
	claimsOf := func(text string) []slo.Claim {
		spec, err := slo.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		claims, err := spec.Claims()
		if err != nil {
			t.Fatal(err)
		}
		return claims
	}
	d, err := deploy.Parse("llama-3.1-8b@h100?max_num_seqs=4&step_jitter=0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Schedule{From: 20, To: 220}
	for i := range 240 {
		s.Asked = append(s.Asked, Asked{At: int64(i) * 30e6, Input: int32(100 + i*37%400), Output: int32(8 + i%9)})
	}
	r := &Rehearsal{Deployment: d, Claims: claimsOf("p99 ttft<60ms, p90 e2e<250ms"), Schedule: func(int) (*Schedule, error) { return s, nil }}
	last := -1
	for _, k := range []float64{1. / 3, 1, 1.5, 3} {
		got, err := r.Again(t.Context(), []int{0, 0}, k)
		if err != nil || got[0][2] != got[1][2] || got[0][2] < max(got[0][0], got[0][1]) || got[0][2] < last {
			t.Fatalf("slowed by %v: %v, %v, after %d", k, got, err, last)
		}
		last = got[0][2]
	}
	if last < 190 {
		t.Errorf("three times as slow, %d of 200 violate", last)
	}
	x := judgedRow{ok: false}
	for _, c := range r.Claims {
		if !math.IsInf(c.Times(&x), 1) || !c.Violates(&x) {
			t.Errorf("%s of a request that failed", c.Spec)
		}
	}
}

// A rehearsal that takes more to simulate than it may fails, whatever the machine; one that takes
// less says the same as without a limit.
func TestRehearsalEndsByWork(t *testing.T) {
	d, err := deploy.Parse("llama-3.1-8b@h100")
	if err != nil {
		t.Fatal(err)
	}
	s := &Schedule{From: 10, To: 110}
	for i := range 110 {
		s.Asked = append(s.Asked, Asked{At: int64(i) * 30e6, Input: 64 * 5, Output: 7})
	}
	again := func(most int64) ([][]int, error) {
		r := &Rehearsal{Deployment: d, Schedule: func(int) (*Schedule, error) { return s, nil }, Most: most}
		return r.Again(t.Context(), []int{0, 0, 0}, 1)
	}
	const each = 7 + requestWork + 5
	want, err := again(0)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := again(3 * 110 * each); err != nil || got[0][0] != want[0][0] {
		t.Errorf("%v: %v, want %v", err, got, want)
	}
	if _, err := again(3*110*each - 1); !errors.Is(err, errTooMuch) {
		t.Errorf("one more than it may: %v", err)
	}
}
