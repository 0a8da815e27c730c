package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitot/internal/sim"
)

// Change is an event that affects an engine of a fleet at a given time.
type Change struct {
	At     int64 // ns on the engine's clock
	What   What
	Engine int
}

// What happens to an engine.
type What string

// An engine that dies loses its jobs at once; one that is drained ends them and takes no
// more. One that is added takes jobs from then on, with empty caches if it had died. One
// that is added before anything else happens to it was not there at the beginning.
const (
	Die   What = "die"
	Drain What = "drain"
	Add   What = "add"
)

// ParseChanges reads changes as they are written, TIME:WHAT:ENGINE joined by commas:
// 30s:die:2,60s:add:2. They are of so many engines, and come back in the order of their
// times.
func ParseChanges(s string, engines int) ([]Change, error) {
	var list []Change
	for _, one := range strings.Split(s, ",") {
		parts := strings.Split(strings.TrimSpace(one), ":")
		if len(parts) != 3 {
			return nil, fmt.Errorf("%q is not TIME:WHAT:ENGINE, as 30s:die:2", one)
		}
		at, err := time.ParseDuration(parts[0])
		if err != nil || at < 0 {
			return nil, fmt.Errorf("%q is not a time such as 30s", parts[0])
		}
		what := What(parts[1])
		if what != Die && what != Drain && what != Add {
			return nil, fmt.Errorf("%q is neither die nor drain nor add", parts[1])
		}
		engine, err := strconv.Atoi(parts[2])
		if err != nil || engine < 0 || engine >= engines {
			return nil, fmt.Errorf("there is no engine %q: they are 0 to %d", parts[2], engines-1)
		}
		list = append(list, Change{int64(at), what, engine})
	}
	slices.SortStableFunc(list, func(a, b Change) int { return cmp.Compare(a.At, b.At) })
	here := make([]bool, engines)
	for i := range here {
		here[i] = takesFromStart(list, i)
	}
	if !slices.Contains(here, true) {
		return nil, errors.New("no engine is there at the beginning")
	}
	draining := make([]bool, engines)
	for _, c := range list {
		i := c.Engine
		switch {
		case c.What == Add && here[i]:
			return nil, fmt.Errorf("engine %d is added at %v, and is there already", i, time.Duration(c.At))
		case c.What == Drain && !here[i], c.What == Die && !here[i] && !draining[i]:
			return nil, fmt.Errorf("engine %d is to %s at %v, and is not there", i, c.What, time.Duration(c.At))
		}
		here[i], draining[i] = c.What == Add, c.What == Drain
	}
	return list, nil
}

// takesFromStart says whether an engine takes jobs at the beginning.
func takesFromStart(list []Change, engine int) bool {
	for _, c := range list {
		if c.Engine == engine {
			return c.What != Add
		}
	}
	return true
}

// SpansWithoutEngines are the stretches of time, [from, until), in which changes leave no engine
// that takes jobs; the last may end at math.MaxInt64.
func SpansWithoutEngines(list []Change, engines int) (spans [][2]int64) {
	here := make([]bool, engines)
	for i := range here {
		here[i] = takesFromStart(list, i)
	}
	served := true
	for n, c := range list {
		here[c.Engine] = c.What == Add
		if n+1 < len(list) && list[n+1].At == c.At { // who comes and goes at one time does so together
			continue
		}
		serves := slices.Contains(here, true)
		switch {
		case served && !serves:
			spans = append(spans, [2]int64{c.At, math.MaxInt64})
		case serves && !served:
			spans[len(spans)-1][1] = c.At
		}
		served = serves
	}
	return spans
}

// Serves implements [sim.Deserted]: whether any engine takes a job at a time.
func (f *Fleet) Serves(now int64) bool {
	f.applyChanges(now)
	return len(f.open) > 0
}

// nextChange is when the next engine comes or goes.
func (f *Fleet) nextChange() int64 {
	if len(f.coming) == 0 {
		return math.MaxInt64
	}
	return f.coming[0].At
}

// applyChanges lets happen what is to happen by a time.
func (f *Fleet) applyChanges(now int64) {
	for f.nextChange() <= now {
		c := f.coming[0]
		f.coming = f.coming[1:]
		f.now = max(f.now, c.At)
		i := c.Engine
		f.open = slices.DeleteFunc(f.open, func(k int) bool { return k == i })
		switch c.What {
		case Add:
			if m := &f.of[i]; m.dead {
				m.dead = false
				f.replaceEngine(i)
			}
			f.open = append(f.open, i)
			slices.Sort(f.open)
		case Die:
			f.failEngine(i)
		}
	}
}

// failEngine takes an engine's jobs away from it and tells that they are lost.
func (f *Fleet) failEngine(i int) {
	var lost []int64
	for id, at := range f.where {
		if at == i {
			lost = append(lost, id)
		}
	}
	slices.Sort(lost)
	for _, id := range lost {
		f.forget(id, i)
		f.of[i].Abort(id)
		f.lost = append(f.lost, sim.Emission{ID: id, At: f.now, Finish: sim.Lost, Engine: i})
	}
	f.of[i].dead, f.of[i].held = true, nil
	f.router.gone(i)
	f.scheduleStep(i, f.now)
}

// replaceEngine puts a new engine in the place of one that died. What the old one counted stays.
func (f *Fleet) replaceEngine(i int) {
	m := &f.of[i]
	if f.again == nil {
		return
	}
	m.past = m.stats()
	m.past.Running, m.past.Waiting, m.past.KVCacheUsage = 0, 0, 0
	m.Model.Watch(nil)
	m.Model = f.again(i)
	m.Model.Watch(m.watch)
	m.Model.Pace(f.pace)
	if f.brief {
		m.Model.Brief()
	}
	m.busy, m.held = false, nil
	f.waitUntil(i, math.MaxInt64)
}
