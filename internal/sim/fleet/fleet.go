// Package fleet makes one engine of several behind a router: the replicas of a
// deployment, or the engines of vLLM's data parallelism. A job goes to one of them
// when it arrives and stays there; each has its own steps, its own KV cache and its own
// prefix cache, and none waits for another. It has no goroutine, no clock and no I/O.
package fleet

import (
	"math"
	"slices"

	"pitot/internal/sim"
)

// Fleet is a [sim.Model] of several.
type Fleet struct {
	of     []member
	open   []int  // those that take new jobs, ascending
	due    []turn // of all, as a heap
	router router
	where  map[int64]int // which of them has a job
	now    int64         // no engine was stepped later
	coming []Change
	lost   []sim.Emission // of jobs whose engine has died
	again  func(engine int) sim.Model
	steps  func() int64 // of engines that step together
	taken  int64
	pace   func(start int64) float64
	brief  bool
	out    []sim.Emission
}

// member is an engine of a fleet.
type member struct {
	sim.Model
	jobs  int   // that were sent there and have not ended
	next  int64 // when it is to be stepped
	place int   // in the heap
	busy  bool  // a step runs until then, which gives what is held
	held  []sim.Emission
	dead  bool
	watch func(sim.StepInfo)
	past  sim.Stats // what engines counted that were in its place before
}

// New puts engines without jobs behind a router. There must be at least one; they must
// take requests of the same length. The configuration must pass Check.
func New(c Config, engines []sim.Model) *Fleet {
	f := &Fleet{where: make(map[int64]int), coming: c.Changes, again: c.Again, steps: c.Steps}
	for i, e := range engines {
		f.of = append(f.of, member{Model: e, next: math.MaxInt64, place: i})
		f.due = append(f.due, turn{math.MaxInt64, i})
		if takesFromStart(c.Changes, i) {
			f.open = append(f.open, i)
		}
	}
	f.router = c.newRouter(f)
	return f
}

// Add implements [sim.Engine]: the job goes where the router sends it. Where no engine
// takes jobs it is lost.
func (f *Fleet) Add(now int64, j sim.Job) {
	if _, known := f.where[j.ID]; known {
		return
	}
	if !f.Serves(now) {
		f.lost = append(f.lost, sim.Emission{ID: j.ID, At: max(now, f.now), Finish: sim.Lost})
		return
	}
	i := f.router.route(now, &j)
	f.where[j.ID] = i
	f.of[i].jobs++
	f.of[i].Add(now, j)
	f.scheduleStep(i, now)
}

// Abort implements [sim.Engine].
func (f *Fleet) Abort(id int64) {
	i, known := f.where[id]
	if !known {
		return
	}
	f.forget(id, i)
	f.of[i].Abort(id)
	f.scheduleStep(i, f.now)
}

// forget takes a job out of the books.
func (f *Fleet) forget(id int64, i int) {
	delete(f.where, id)
	f.of[i].jobs--
	f.router.ended(id, i)
}

// scheduleStep has an engine stepped at a time, unless it is busy or would be sooner.
func (f *Fleet) scheduleStep(i int, at int64) {
	if m := &f.of[i]; !m.busy && at < m.next {
		f.waitUntil(i, at)
	}
}

func (f *Fleet) waitUntil(i int, until int64) {
	f.of[i].next = until
	f.updateTurn(turn{until, i})
}

// Step implements [sim.Engine]: it steps those that are due by now in the order of
// their times.
func (f *Fleet) Step(now int64) sim.Step {
	f.out = f.out[:0]
	for {
		f.applyChanges(min(f.due[0].at, now))
		f.out = append(f.out, f.lost...)
		f.lost = f.lost[:0]
		at, i := f.due[0].at, f.due[0].engine
		if at > now {
			break
		}
		m := &f.of[i]
		f.now = max(f.now, at)
		f.router.passes(f.now)
		if m.busy {
			m.busy = false
			m.held = slices.DeleteFunc(m.held, func(e sim.Emission) bool { at, known := f.where[e.ID]; return !known || at != i })
			f.forwardEmissions(i, m.held)
		}
		s := m.Step(f.now)
		if m.busy = !s.Idle && s.End > f.now; m.busy {
			m.held = append(m.held[:0], s.Out...)
		} else {
			f.forwardEmissions(i, s.Out)
		}
		f.waitUntil(i, max(s.End, s.Next))
		if f.steps != nil {
			f.rescheduleAll()
		}
	}
	next := min(f.due[0].at, f.nextChange())
	if len(f.out) > 0 {
		return sim.Step{End: now, Out: f.out, Next: next}
	}
	return sim.Step{End: next, Idle: true}
}

// rescheduleAll has all engines say when they are due, after a step of all has begun.
func (f *Fleet) rescheduleAll() {
	if n := f.steps(); n != f.taken {
		f.taken = n
		for i := range f.of {
			f.scheduleStep(i, f.now)
		}
	}
}

// forwardEmissions hands on what an engine gave.
func (f *Fleet) forwardEmissions(i int, out []sim.Emission) {
	for _, e := range out {
		if e.Finish != "" {
			if _, known := f.where[e.ID]; known {
				f.forget(e.ID, i)
			}
		}
		e.Engine = i
		f.out = append(f.out, e)
	}
}

// Replicas implements [sim.Replicated].
func (f *Fleet) Replicas() []sim.Observable {
	list := make([]sim.Observable, len(f.of))
	for i := range f.of {
		list[i] = place{f, i}
	}
	return list
}

// place is where an engine is, and others in its place after it.
type place struct {
	f *Fleet
	i int
}

// Stats implements [sim.Observable].
func (p place) Stats() sim.Stats { return p.f.of[p.i].stats() }

// Watch implements [sim.Observable].
func (p place) Watch(watch func(sim.StepInfo)) {
	m := &p.f.of[p.i]
	m.watch = nil
	if watch != nil {
		m.watch = func(s sim.StepInfo) {
			s.Engine = p.i
			watch(s)
		}
	}
	m.Model.Watch(m.watch)
}

// stats are an engine's and those that it was before.
func (m *member) stats() sim.Stats {
	s := m.Model.Stats()
	s.Add(&m.past)
	return s
}

// Stats implements [sim.Observable]: the sum of all, and the KV cache that is fullest.
func (f *Fleet) Stats() (sum sim.Stats) {
	for i := range f.of {
		s := f.of[i].stats()
		sum.Add(&s)
	}
	return sum
}

// Watch implements [sim.Observable]. Of a step that is planned it tells which engine's
// it is; steps of different engines overlap, so their ends are in no order.
func (f *Fleet) Watch(watch func(sim.StepInfo)) {
	for i := range f.of {
		place{f, i}.Watch(watch)
	}
}

// MaxModelLen implements [sim.Limited].
func (f *Fleet) MaxModelLen() int { return f.of[0].MaxModelLen() }

// Pace implements [sim.Model].
func (f *Fleet) Pace(pace func(start int64) float64) {
	f.pace = pace
	for i := range f.of {
		f.of[i].Pace(pace)
	}
}

// Brief implements [sim.Model].
func (f *Fleet) Brief() {
	f.brief = true
	for i := range f.of {
		f.of[i].Brief()
	}
}

// Warm implements [sim.Warmable]: a prompt that many asked before is in the cache of
// each.
func (f *Fleet) Warm(j sim.Job) {
	for i := range f.of {
		if w, ok := f.of[i].Model.(sim.Warmable); ok {
			w.Warm(j)
		}
	}
}

// Resume implements [sim.Resumable].
func (f *Fleet) Resume(j sim.Job) {
	if len(f.open) == 0 {
		return
	}
	i := f.router.route(f.now, &j)
	f.router.ended(j.ID, i)
	if w, ok := f.of[i].Model.(sim.Warmable); ok {
		w.Warm(j)
	}
}

// turn is when an engine is to be stepped.
type turn struct {
	at     int64
	engine int
}

// before is the order of the heap: by times, then by the engines' numbers.
func (t turn) before(u turn) bool { return t.at < u.at || t.at == u.at && t.engine < u.engine }

// updateTurn puts a turn where it belongs in the heap, in place of the one that its engine has
// there.
func (f *Fleet) updateTurn(t turn) {
	i := f.of[t.engine].place
	for i > 0 && t.before(f.due[(i-1)/2]) {
		f.placeTurn(i, f.due[(i-1)/2])
		i = (i - 1) / 2
	}
	for {
		first := 2*i + 1
		if first+1 < len(f.due) && f.due[first+1].before(f.due[first]) {
			first++
		}
		if first >= len(f.due) || !f.due[first].before(t) {
			break
		}
		f.placeTurn(i, f.due[first])
		i = first
	}
	f.placeTurn(i, t)
}

func (f *Fleet) placeTurn(i int, t turn) { f.due[i], f.of[t.engine].place = t, i }

// leastLoaded is the first of the engines that take jobs, from a place on and around, with
// the least of something.
func (f *Fleet) leastLoaded(from int, of func(i int) int) int {
	best, least := -1, 0
	for k := range f.open {
		i := f.open[(from+k)%len(f.open)]
		if n := of(i); best < 0 || n < least {
			best, least = i, n
		}
	}
	return best
}

func (f *Fleet) jobCount(i int) int { return f.of[i].jobs }

// takesJobs says whether an engine takes new jobs.
func (f *Fleet) takesJobs(i int) bool {
	_, found := slices.BinarySearch(f.open, i)
	return found
}
