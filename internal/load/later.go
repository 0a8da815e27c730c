package load

// later holds what is to come, in the order in which it is due; of what is due at the same
// time, what was added first. It is a binary heap: with many users thinking at once, adding
// to it takes a logarithm of their number.
type later struct {
	heap  []numbered
	added int64
}

// numbered is what is to come, and how much was added before it.
type numbered struct {
	Ask
	number int64
}

func (l *later) len() int { return len(l.heap) }

// first returns when the next is due. There is one.
func (l *later) first() int64 { return l.heap[0].Due }

func (l *later) before(i, j int) bool {
	a, b := &l.heap[i], &l.heap[j]
	return a.Due < b.Due || a.Due == b.Due && a.number < b.number
}

// push adds what is to come.
func (l *later) push(ask Ask) {
	l.heap = append(l.heap, numbered{ask, l.added})
	l.added++
	for i := len(l.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !l.before(i, up) {
			break
		}
		l.heap[i], l.heap[up] = l.heap[up], l.heap[i]
		i = up
	}
}

// pop takes what is due first. There is something.
func (l *later) pop() Ask {
	ask, last := l.heap[0].Ask, len(l.heap)-1
	l.heap[0] = l.heap[last]
	l.heap[last] = numbered{}
	l.heap = l.heap[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			return ask
		}
		if down+1 < last && l.before(down+1, down) {
			down++
		}
		if !l.before(down, i) {
			return ask
		}
		l.heap[i], l.heap[down] = l.heap[down], l.heap[i]
		i = down
	}
}
