package metrics

import (
	"testing"

	"pitot/internal/metrics/validity"
)

// Blocks are of whole sessions, in the order in which these began, whenever their turns
// come; a request is of a larger session than sessions are on average.
func TestSessionBlocks(t *testing.T) {
	f := &Fold{conditions: validity.Conditions{T0: 100, T1: 200}}
	id := int64(0)
	for k := range int64(4) {
		for s := range int64(10) {
			if s%2 == 1 && k >= 2 {
				continue
			}
			f.talks.list = append(f.talks.list, turn{session: s, id: id, due: 100 + 10*k + s, turn: int32(k)})
			id++
		}
	}
	const n = 30
	b := f.sessionBlocks(n)
	for i := range f.talks.list {
		q := &f.talks.list[i]
		if got, want := b.block(&Request{id: q.id}, 0, n, 5), int(q.session)/2; got != want {
			t.Errorf("session %d: block %d, want %d", q.session, got, want)
		}
	}
	if got, want := b.meanClusterSize(), (5*16.+5*4)/30; got != want {
		t.Errorf("cluster %v, want %v", got, want)
	}
	if b = f.sessionBlocks(31); b.block(&Request{id: 99}, 30, 31, 5) != 4 || b.block(&Request{id: 9}, 1, 31, 5) != 4 || b.alone != 1 {
		t.Error("a request that stands alone among sessions is not put by its time, or others are")
	}
}
