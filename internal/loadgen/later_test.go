package loadgen

import (
	"math/rand/v2"
	"testing"
)

// What is due first comes first, and of equals what was added first.
func TestLater(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var l later
	var before Ask
	item := int64(0)
	for step := range 20_000 {
		if l.len() == 0 || step < 10_000 && rng.IntN(3) > 0 {
			l.push(Ask{Due: max(before.Due, 0) + rng.Int64N(50), Item: item})
			item++
			continue
		}
		first := l.earliestDue()
		ask := l.pop()
		if ask.Due != first || ask.Due < before.Due || ask.Due == before.Due && step > 0 && ask.Item < before.Item && before.Item != 0 {
			t.Fatalf("step %d: %+v after %+v", step, ask, before)
		}
		before = ask
	}
}
