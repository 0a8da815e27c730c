package loadgen

import (
	"cmp"
	"container/heap"
)

// later holds what is to come, in the order in which it is due; of what is due at the same
// time, what was added first. It is a heap: with many users thinking at once, adding to it
// takes a logarithm of their number.
type later struct {
	list  dueHeap
	added int64
}

// numbered is an ask that is to come, with the number of asks added before it.
type numbered struct {
	Ask
	number int64
}

func (l *later) len() int { return len(l.list) }

// earliestDue returns when the next is due. There is one.
func (l *later) earliestDue() int64 { return l.list[0].Due }

// push adds what is to come.
func (l *later) push(ask Ask) {
	l.list = append(l.list, numbered{ask, l.added})
	l.added++
	heap.Fix(&l.list, len(l.list)-1) // heap.Push would allocate
}

// pop takes what is due first. There is something.
func (l *later) pop() Ask {
	last := len(l.list) - 1
	l.list.Swap(0, last)
	ask := l.list[last].Ask
	l.list[last] = numbered{}
	if l.list = l.list[:last]; last > 0 {
		heap.Fix(&l.list, 0)
	}
	return ask
}

// dueHeap is a [heap.Interface] of which Push and Pop are not used.
type dueHeap []numbered

func (a dueHeap) Len() int { return len(a) }
func (a dueHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(a[i].Due, a[j].Due), cmp.Compare(a[i].number, a[j].number)) < 0
}
func (a dueHeap) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *dueHeap) Push(any)     {}
func (a *dueHeap) Pop() any     { return nil }
