package spill

import (
	"iter"
	"unsafe"
)

// A Column is values in the order in which they came. T holds no pointers.
type Column[T any] struct {
	store *Store
	full  []piece[T]
	open  []T // behind the full ones
}

// piece is in memory, or in the file.
type piece[T any] struct {
	values []T   // nil in the file
	at     int64 // there
}

// NewColumn gives an empty column.
func NewColumn[T any](s *Store) *Column[T] { return &Column[T]{store: s} }

func (c *Column[T]) size() int {
	var x T
	return int(unsafe.Sizeof(x))
}

// Append takes in a value.
func (c *Column[T]) Append(x T) {
	c.open = append(c.open, x)
	if len(c.open) >= c.store.pieceValues(c.size()) {
		c.seal()
	}
}

// AppendAll takes in values.
func (c *Column[T]) AppendAll(xs []T) {
	for len(xs) > 0 {
		n := min(len(xs), c.store.pieceValues(c.size())-len(c.open))
		c.open = append(c.open, xs[:n]...)
		if xs = xs[n:]; len(c.open) >= c.store.pieceValues(c.size()) {
			c.seal()
		}
	}
}

// seal closes the open piece.
func (c *Column[T]) seal() {
	bytes := len(c.open) * c.size()
	if !c.store.reserveBytes(bytes) {
		if at, ok := c.store.write(bytesOf(c.open)); ok {
			c.full = append(c.full, piece[T]{at: at})
			c.open = c.open[:0]
			return
		}
		c.store.reserveBytes(bytes) // beyond the budget: there is no other place
	}
	c.full = append(c.full, piece[T]{values: c.open})
	c.open = make([]T, 0, len(c.open))
}

// Len returns the number of values.
func (c *Column[T]) Len() int64 {
	return int64(len(c.full))*int64(c.store.pieceValues(c.size())) + int64(len(c.open))
}

// InMemory says that no value is in the file.
func (c *Column[T]) InMemory() bool {
	for i := range c.full {
		if c.full[i].values == nil {
			return false
		}
	}
	return true
}

// Pieces yields the values in order, many at a time. They are not to be changed,
// nor to be kept longer than until the next are yielded.
func (c *Column[T]) Pieces() iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		var buf []T
		for i := range c.full {
			values := c.full[i].values
			if values == nil {
				if buf == nil {
					buf = make([]T, c.store.pieceValues(c.size()))
				}
				values = buf
				c.store.read(bytesOf(values), c.full[i].at)
			}
			if !yield(values) {
				return
			}
		}
		if len(c.open) > 0 {
			yield(c.open)
		}
	}
}

// ReadAt fills to with the values from the i-th on; as many must be there.
func (c *Column[T]) ReadAt(to []T, i int64) {
	per := int64(c.store.pieceValues(c.size()))
	for len(to) > 0 {
		k, from := i/per, int(i%per)
		n := min(len(to), int(per)-from)
		switch {
		case k >= int64(len(c.full)):
			copy(to[:n], c.open[from:])
		case c.full[k].values != nil:
			copy(to[:n], c.full[k].values[from:])
		default:
			c.store.read(bytesOf(to[:n]), c.full[k].at+int64(from*c.size()))
		}
		to, i = to[n:], i+int64(n)
	}
}

// All yields the values in order.
func (c *Column[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		for values := range c.Pieces() {
			for _, x := range values {
				if !yield(x) {
					return
				}
			}
		}
	}
}

// Free empties the column and gives back what it has of the store.
func (c *Column[T]) Free() {
	for i := range c.full {
		if p := &c.full[i]; p.values != nil {
			c.store.releaseBytes(len(p.values) * c.size())
		} else {
			c.store.forget(p.at)
		}
	}
	c.full, c.open = nil, nil
}

// bytesOf is the memory of values: the file is read by the process that wrote it.
func bytesOf[T any](values []T) []byte {
	if len(values) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), len(values)*int(unsafe.Sizeof(values[0])))
}
