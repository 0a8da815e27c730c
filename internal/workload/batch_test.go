package workload

import "testing"

// Each text of a batch is another item, once; what a query adds is not known.
func TestBatch(t *testing.T) {
	r := random(t, RandomConfig{Input: FixedLength(64), Output: FixedLength(100), Prefix: 16, PrefixShare: 1, Seed: 1})
	b := NewBatched(r, BatchConfig{Texts: 3})
	seen := map[uint64]bool{}
	for i := range int64(4) {
		q, err := b.At(i)
		if err != nil || q.ID != i || len(q.Messages) != 3 || q.Input != 3*80 || q.Output != 0 || q.Exact {
			t.Fatalf("%+v, %v", q, err)
		}
		for _, m := range q.Messages {
			own := m.Segments[len(m.Segments)-1].Seed
			if seen[own] || len(m.Segments) != 2 {
				t.Errorf("item %d: %+v", i, m)
			}
			seen[own] = true
		}
	}
	q, err := NewBatched(r, BatchConfig{Texts: 2, Query: FixedLength(8), Seed: 1, Nonce: 2}).At(5)
	if err != nil || len(q.Messages) != 3 || q.Messages[0].Segments[0].Words != 8 || q.Input != Unknown {
		t.Errorf("%+v, %v", q, err)
	}
	if _, err := NewBatched(r, BatchConfig{Texts: 2}).At(-1); err == nil {
		t.Error("item -1")
	}
	if WithoutAnswerEnds(b) != Source(r) {
		t.Error("the texts are of another source")
	}
}
