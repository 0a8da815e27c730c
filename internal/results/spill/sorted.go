package spill

import (
	"cmp"
	"iter"
	"slices"
	"unsafe"
)

// Codec says by what records are sorted, by a first number and then by a second,
// and how one is written to the file. Decode reads what Append appended, into a
// record that may hold another, and gives how many bytes it took, 0 if it was cut
// short.
type Codec[T any] struct {
	Key    func(*T) (int64, int64)
	Append func(to []byte, x *T) []byte
	Decode func(from []byte, x *T) int
	Most   int // bytes that Append appends
}

// Sorted is records in order, whatever the order in which they came. Those that
// come together are sorted together, as a part; where parts hardly overlap, as
// those of a run do, reading them all is no merge but for their edges.
type Sorted[T any] struct {
	codec Codec[T]
	store *Store
	parts []part[T] // in order of their first
	open  []T       // came since
	order []sortKey // of the open ones, when it was asked for
	file  *Column[byte]
	buf   []byte
	n     int64
}

// part is sorted records, in memory or in the file.
type part[T any] struct {
	a, b     int64 // the first one's key
	records  []T   // nil in the file
	from, to int64 // there
}

// sortKey is where a record stands.
type sortKey struct {
	a, b int64
	at   int32
}

func (k sortKey) compare(l sortKey) int {
	switch {
	case k.a != l.a:
		return cmp.Compare(k.a, l.a)
	case k.b != l.b:
		return cmp.Compare(k.b, l.b)
	}
	return int(k.at - l.at)
}

// partPieces is the number of pieces whose memory a part takes.
const partPieces = 32

// NewSorted gives an empty sequence.
func NewSorted[T any](s *Store, c Codec[T]) *Sorted[T] {
	return &Sorted[T]{codec: c, store: s, file: NewColumn[byte](s)}
}

func (s *Sorted[T]) size() int {
	var x T
	return int(unsafe.Sizeof(x))
}

// partRecords returns the number of records in a part: with their order they take its memory.
func (s *Sorted[T]) partRecords() int {
	return max(1, s.store.pieceBytes()*partPieces/(s.size()+int(unsafe.Sizeof(sortKey{}))))
}

// Len returns the number of records.
func (s *Sorted[T]) Len() int64 { return s.n }

// Add takes in a record.
func (s *Sorted[T]) Add(x *T) {
	s.n++
	s.open = append(s.open, *x)
	if len(s.open) >= s.partRecords() {
		s.seal()
	}
}

// sortedOrder gives the order of the open records.
func (s *Sorted[T]) sortedOrder() []sortKey {
	if len(s.order) == len(s.open) {
		return s.order
	}
	s.order = s.order[:0]
	for i := range s.open {
		a, b := s.codec.Key(&s.open[i])
		s.order = append(s.order, sortKey{a, b, int32(i)})
	}
	slices.SortFunc(s.order, sortKey.compare)
	return s.order
}

// seal makes a part of the open records.
func (s *Sorted[T]) seal() {
	order := s.sortedOrder()
	p := part[T]{a: order[0].a, b: order[0].b}
	if s.store.reserveBytes(len(s.open) * s.size()) {
		p.records = make([]T, len(s.open))
		for i, k := range order {
			p.records[i] = s.open[k.at]
		}
	} else {
		p.from = s.file.Len()
		for _, k := range order {
			s.buf = s.codec.Append(s.buf[:0], &s.open[k.at])
			s.file.AppendAll(s.buf)
		}
		p.to = s.file.Len()
	}
	s.open, s.order = s.open[:0], s.order[:0]
	at, _ := slices.BinarySearchFunc(s.parts, p, func(a, b part[T]) int {
		return cmp.Or(cmp.Compare(a.a, b.a), cmp.Compare(a.b, b.b))
	})
	s.parts = slices.Insert(s.parts, at, p)
}

// All yields the records in order. One is not to be kept longer than until the
// next is yielded. More may be added after.
func (s *Sorted[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		open := cursor[T]{order: s.sortedOrder(), open: s.open}
		m := merger[T]{s: s, waiting: s.parts}
		if open.next(s) {
			m.push(&open)
		}
		for {
			c := m.lowestCursor()
			if c == nil || !yield(c.at) {
				return
			}
			m.advance()
		}
	}
}

// Free empties the sequence and gives back what it has of the store.
func (s *Sorted[T]) Free() {
	for i := range s.parts {
		s.store.releaseBytes(len(s.parts[i].records) * s.size())
	}
	s.file.Free()
	s.parts, s.open, s.order, s.n = nil, nil, nil, 0
}

// cursor is a place in a part, or in the open records.
type cursor[T any] struct {
	a, b int64 // the key of the record
	at   *T    // the record

	records []T // left in memory

	open  []T
	order []sortKey // left of them

	record   T
	from, to int64 // left in the file
	buf      []byte
	left     []byte // of the buffer
}

// readAhead is the number of bytes of a part that are read from the file at once.
const readAhead = 32 << 10

// next goes to the next record and says whether there is one.
func (c *cursor[T]) next(s *Sorted[T]) bool {
	switch {
	case len(c.order) > 0:
		c.at, c.order = &c.open[c.order[0].at], c.order[1:]
	case len(c.records) > 0:
		c.at, c.records = &c.records[0], c.records[1:]
	case len(c.left) > 0 || c.from < c.to:
		if len(c.left) < s.codec.Most && c.from < c.to {
			c.fill(s)
		}
		n := s.codec.Decode(c.left, &c.record)
		if n <= 0 || n > len(c.left) { // the file cannot be read: the store tells
			return false
		}
		c.at, c.left = &c.record, c.left[n:]
	default:
		return false
	}
	c.a, c.b = s.codec.Key(c.at)
	return true
}

// fill reads more of the part behind what is left.
func (c *cursor[T]) fill(s *Sorted[T]) {
	if c.buf == nil {
		c.buf = make([]byte, readAhead+s.codec.Most)
	}
	n := copy(c.buf, c.left)
	more := min(c.to-c.from, int64(len(c.buf)-n))
	s.file.ReadAt(c.buf[n:n+int(more)], c.from)
	c.from += more
	c.left = c.buf[:n+int(more)]
}

// merger has a heap of the parts that are being read, the one with the lowest
// record on top, and those whose first record is not due yet.
type merger[T any] struct {
	s       *Sorted[T]
	waiting []part[T]
	heap    []*cursor[T]
}

func (c *cursor[T]) comesBefore(a, b int64) bool { return c.a < a || c.a == a && c.b <= b }

// lowestCursor is the cursor of the lowest record, nil at the end.
func (m *merger[T]) lowestCursor() *cursor[T] {
	for len(m.waiting) > 0 {
		p := &m.waiting[0]
		if len(m.heap) > 0 && m.heap[0].comesBefore(p.a, p.b) {
			break
		}
		m.waiting = m.waiting[1:]
		c := &cursor[T]{records: p.records, from: p.from, to: p.to}
		if c.next(m.s) {
			m.push(c)
		}
	}
	if len(m.heap) == 0 {
		return nil
	}
	return m.heap[0]
}

// advance goes to the record behind the lowest.
func (m *merger[T]) advance() {
	top := m.heap[0]
	if !top.next(m.s) {
		last := len(m.heap) - 1
		m.heap[0] = m.heap[last]
		m.heap = m.heap[:last]
	}
	for i := 0; ; {
		low := i
		for k := 2*i + 1; k <= 2*i+2 && k < len(m.heap); k++ {
			if !m.heap[low].comesBefore(m.heap[k].a, m.heap[k].b) {
				low = k
			}
		}
		if low == i {
			return
		}
		m.heap[i], m.heap[low] = m.heap[low], m.heap[i]
		i = low
	}
}

func (m *merger[T]) push(c *cursor[T]) {
	m.heap = append(m.heap, c)
	for i := len(m.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if m.heap[up].comesBefore(m.heap[i].a, m.heap[i].b) {
			return
		}
		m.heap[i], m.heap[up] = m.heap[up], m.heap[i]
		i = up
	}
}
