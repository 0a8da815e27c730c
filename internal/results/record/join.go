package record

import "iter"

// A Join brings the chunks of each request together with its row, in the order
// in which frames hold them. S is what a reader makes of a request's chunks. The
// join keeps one S for each request under way, and uses it again for a later
// request: memory is bounded by what is in flight, however long a run is.
//
// Requests are identified by their point, worker and id. A join is not safe for
// concurrent use.
type Join[S any] struct {
	// Chunk takes in the next chunk of a request.
	Chunk func(*S, *Chunk)
	// Row takes in a request's row, behind all its chunks. Neither argument may be kept.
	Row func(*Row, *S)
	// Reset empties an S for another request. It may keep its memory.
	Reset func(*S)

	part    part
	flights flights[S]           // of that part
	left    map[part]*flights[S] // of other parts: requests without a row
	free    []*S
	last    int64 // the request of the latest chunk
	lastOf  *S    // nil for none
}

// Add takes in the chunks and rows of a frame.
func (j *Join[S]) Add(f *Frame) {
	if of := f.partKey(); of != j.part && len(f.Chunks)+len(f.Rows) > 0 {
		j.turnTo(of)
	}
	for i := range f.Chunks {
		c := &f.Chunks[i]
		if j.lastOf == nil || c.Request != j.last {
			j.last, j.lastOf = c.Request, j.stateOf(c.Request)
		}
		j.Chunk(j.lastOf, c)
	}
	for i := range f.Rows {
		r := &f.Rows[i]
		s := j.flights.remove(r.ID)
		if s == nil {
			s = j.newState()
		}
		j.Row(r, s)
		j.Reset(s)
		j.free = append(j.free, s)
		if r.ID == j.last {
			j.lastOf = nil
		}
	}
}

// Open yields the requests of the latest point and worker whose row has not come, in no
// order.
func (j *Join[S]) Open() iter.Seq2[int64, *S] {
	return j.flights.eachFlight
}

// turnTo begins a part, or goes on with one.
func (j *Join[S]) turnTo(of part) {
	if j.left == nil {
		j.left = map[part]*flights[S]{}
	}
	if j.flights.n > 0 {
		was := j.flights
		j.left[j.part], j.flights = &was, flights[S]{}
	}
	if again := j.left[of]; again != nil {
		j.flights = *again
		delete(j.left, of)
	}
	j.part, j.lastOf = of, nil
}

// stateOf gives what is kept of a request.
func (j *Join[S]) stateOf(request int64) *S {
	s := j.flights.find(request)
	if s == nil {
		s = j.newState()
		j.flights.insert(request, s)
	}
	return s
}

func (j *Join[S]) newState() *S {
	n := len(j.free)
	if n == 0 {
		return new(S)
	}
	s := j.free[n-1]
	j.free = j.free[:n-1]
	return s
}

// flights is a map from the ids of requests under way. Those lie close together,
// so nearly every one has a slot of its own by its last bits, which is found
// without hashing; the others are in a map.
type flights[S any] struct {
	slots []slot[S] // a power of two
	far   map[int64]*S
	n     int
}

// slot is empty while of is nil.
type slot[S any] struct {
	id int64
	of *S
}

const (
	firstSlots = 1 << 8
	mostSlots  = 1 << 20
)

func (f *flights[S]) findSlot(id int64) *slot[S] { return &f.slots[id&int64(len(f.slots)-1)] }

func (f *flights[S]) find(id int64) *S {
	if f.n == 0 {
		return nil
	}
	if s := f.findSlot(id); s.id == id && s.of != nil {
		return s.of
	}
	return f.far[id]
}

// insert adds an id that is not there.
func (f *flights[S]) insert(id int64, of *S) {
	if f.slots == nil {
		f.slots, f.far = make([]slot[S], firstSlots), map[int64]*S{}
	}
	f.n++
	if s := f.findSlot(id); s.of == nil {
		*s = slot[S]{id, of}
		return
	}
	f.far[id] = of
	if 4*len(f.far) > len(f.slots) && len(f.slots) < mostSlots {
		f.grow()
	}
}

// grow makes twice as many slots and moves into them what fits.
func (f *flights[S]) grow() {
	was := *f
	*f = flights[S]{slots: make([]slot[S], 2*len(was.slots)), far: map[int64]*S{}}
	for id, of := range was.eachFlight {
		f.n++
		if s := f.findSlot(id); s.of == nil {
			*s = slot[S]{id, of}
		} else {
			f.far[id] = of
		}
	}
}

// remove gives what is kept of an id and forgets it; nil if there is nothing.
func (f *flights[S]) remove(id int64) (of *S) {
	if f.n == 0 {
		return nil
	}
	if s := f.findSlot(id); s.id == id && s.of != nil {
		of, s.of = s.of, nil
	} else if of = f.far[id]; of != nil {
		delete(f.far, id)
	} else {
		return nil
	}
	f.n--
	return of
}

func (f *flights[S]) eachFlight(yield func(int64, *S) bool) {
	for i := range f.slots {
		if s := &f.slots[i]; s.of != nil && !yield(s.id, s.of) {
			return
		}
	}
	for id, of := range f.far {
		if !yield(id, of) {
			return
		}
	}
}
