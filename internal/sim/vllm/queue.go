package vllm

import (
	"cmp"
	"container/heap"
)

// queue holds the requests that wait. It serves them in the order they came
// (FCFSRequestQueue), or by priority and then by arrival
// (PriorityRequestQueue); a preempted request comes first in either.
type queue struct {
	byPriority bool
	items      []*request // the heap, or the FIFO from head on
	head       int
}

func (q *queue) len() int { return len(q.items) - q.head }

func (q *queue) peek() *request { return q.items[q.head] }

func (q *queue) push(r *request) {
	if q.byPriority {
		heap.Push((*byPriority)(q), r)
		return
	}
	if q.head > len(q.items)/2 && q.head > 1<<10 { // forget those that have gone
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, r)
}

// prepend puts a preempted request back.
func (q *queue) prepend(r *request) {
	switch {
	case q.byPriority:
		heap.Push((*byPriority)(q), r)
	case q.head > 0:
		q.head--
		q.items[q.head] = r
	default:
		const room = 64
		items := make([]*request, room+len(q.items), room+2*len(q.items)+1)
		copy(items[room:], q.items)
		q.items, q.head = items, room-1
		q.items[q.head] = r
	}
}

func (q *queue) pop() *request {
	if q.byPriority {
		return heap.Pop((*byPriority)(q)).(*request)
	}
	r := q.items[q.head]
	q.items[q.head] = nil
	if q.head++; q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return r
}

// remove takes a request out, wherever it is.
func (q *queue) remove(r *request) {
	for i := q.head; i < len(q.items); i++ {
		if q.items[i] != r {
			continue
		}
		if q.byPriority {
			heap.Remove((*byPriority)(q), i)
			return
		}
		copy(q.items[q.head+1:i+1], q.items[q.head:i])
		q.items[q.head] = nil
		q.head++
		return
	}
}

// isMoreUrgent is the order of the priority queue (Request.__lt__).
func isMoreUrgent(a, b *request) bool {
	if u := compareUrgency(a, b); u != 0 {
		return u < 0
	}
	return a.job.ID < b.job.ID
}

// compareUrgency compares two requests: a smaller priority is more urgent, and of
// equals who came first.
func compareUrgency(a, b *request) int {
	return cmp.Or(cmp.Compare(a.job.Priority, b.job.Priority), cmp.Compare(a.arrived, b.arrived))
}

// byPriority is the queue as a heap.
type byPriority queue

func (h *byPriority) Len() int           { return len(h.items) }
func (h *byPriority) Less(i, j int) bool { return isMoreUrgent(h.items[i], h.items[j]) }
func (h *byPriority) Swap(i, j int)      { h.items[i], h.items[j] = h.items[j], h.items[i] }
func (h *byPriority) Push(x any)         { h.items = append(h.items, x.(*request)) }
func (h *byPriority) Pop() any {
	r := h.items[len(h.items)-1]
	h.items[len(h.items)-1] = nil
	h.items = h.items[:len(h.items)-1]
	return r
}
