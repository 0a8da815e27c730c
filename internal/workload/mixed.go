package workload

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"pitot/internal/workload/arrival"
	"pitot/internal/workload/seed"
)

// Mixed is a workload of several classes of requests, each from a source of its own. The
// k-th request of a class is item k of its source. It is pure in the item, the seed and,
// where classes arrive by laws of their own, those arrivals. It is safe for concurrent use.
type Mixed struct {
	classes []ClassOf
	upTo    []float64 // shares of each class and all before
	seed    uint64

	mu     sync.Mutex
	of     func(item int64) int // class of the next item in order
	placed []ofClass            // of the items so far
	counts []int32              // of each class among them
}

// ClassOf is a class of requests.
type ClassOf struct {
	Name   string
	Share  float64 // of the requests
	Source Source
}

// ofClass is where an item is found: which of the requests of its class it is.
type ofClass struct {
	rank  int32
	class uint8
}

// streamMixed is the random stream by which requests are of a class.
const streamMixed = 0x6d69786564

// beyond is an item that no load comes to: those from there on are not counted through.
const beyond = 1 << 30

// NewMixed makes the workload of classes whose shares come to 1. Of which class a request is
// is drawn by the seed, until [Mixed.Arrive] says of which arrivals it is.
func NewMixed(classes []ClassOf, seed uint64) (*Mixed, error) {
	if len(classes) == 0 || len(classes) > math.MaxUint8 {
		return nil, fmt.Errorf("mixed workload: %d classes", len(classes))
	}
	m := &Mixed{classes: classes, seed: seed, counts: make([]int32, len(classes))}
	total := 0.
	for _, c := range classes {
		if !(c.Share > 0) {
			return nil, fmt.Errorf("mixed workload: class %s has a share of %g", c.Name, c.Share)
		}
		total += c.Share
		m.upTo = append(m.upTo, total)
	}
	if math.Abs(total-1) > 1e-6 {
		return nil, fmt.Errorf("mixed workload: the shares come to %g", total)
	}
	m.of = m.drawClass
	return m, nil
}

// drawClass is the class of an item by the shares alone.
func (m *Mixed) drawClass(item int64) int {
	u := seed.Float(seed.At(m.seed, streamMixed, uint64(item)))
	for k, top := range m.upTo {
		if u < top {
			return k
		}
	}
	return len(m.upTo) - 1
}

// Arrive says which arrivals the items are of: item i is of the class whose process the
// i-th due time comes from. The process is the workload's own from then on: another one of
// the same law, rate and seed than the load's. One of as many parts as there are classes is
// wanted; of any other the classes are drawn by their shares.
func (m *Mixed) Arrive(p arrival.Process) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.placed, m.counts, m.of = nil, make([]int32, len(m.classes)), m.drawClass
	if parts, ok := p.(arrival.Superposed); ok {
		m.of = func(int64) int {
			_, k := parts.NextOf()
			return min(k, len(m.classes)-1)
		}
	}
}

// find says of which class an item is, and which of its requests.
func (m *Mixed) find(item int64) ofClass {
	if item >= beyond {
		return ofClass{int32(item % beyond), uint8(m.drawClass(item))}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for int64(len(m.placed)) <= item {
		k := m.of(int64(len(m.placed)))
		m.placed = append(m.placed, ofClass{m.counts[k], uint8(k)})
		m.counts[k]++
	}
	return m.placed[item]
}

// At gives the i-th request, or a turn of the session that the i-th request begins.
func (m *Mixed) At(i int64) (Request, error) {
	if i < 0 {
		return Request{}, fmt.Errorf("mixed workload: no request %d", i)
	}
	session, turn := SplitItem(i)
	at := m.find(session)
	c := &m.classes[at.class]
	r, err := c.Source.At(TurnItem(int64(at.rank), turn))
	if err != nil {
		return Request{}, fmt.Errorf("class %s: %w", c.Name, err)
	}
	r.ID, r.Class = i, c.Name
	if r.Session != Unknown {
		r.Session = session
	}
	return r, nil
}

// SessionSource gives the workload with what follows its items, where that of a class has any;
// else as it is.
func (m *Mixed) SessionSource() Source {
	for _, c := range m.classes {
		if _, ok := c.Source.(Sessions); ok {
			return mixedSessions{m}
		}
	}
	return m
}

// mixedSessions are classes of which some have sessions.
type mixedSessions struct{ *Mixed }

// At gives the i-th request: answers that it repeats are those of its own session.
func (m mixedSessions) At(i int64) (Request, error) {
	r, err := m.Mixed.At(i)
	session, _ := SplitItem(i)
	messages := slices.Clone(r.Messages)
	for k := range messages {
		messages[k].Segments = slices.Clone(messages[k].Segments)
		for j := range messages[k].Segments {
			if s := &messages[k].Segments[j]; s.Served {
				_, turn := SplitItem(s.Item)
				s.Item = TurnItem(session, turn)
			}
		}
	}
	r.Messages = messages
	return r, err
}

// Follow implements [Sessions].
func (m mixedSessions) Follow(item int64, answered bool) []Next {
	session, turn := SplitItem(item)
	at := m.find(session)
	s, ok := m.classes[at.class].Source.(Sessions)
	if !ok {
		return nil
	}
	list := slices.Clone(s.Follow(TurnItem(int64(at.rank), turn), answered))
	for i := range list {
		_, turn := SplitItem(list[i].Item)
		list[i].Item = TurnItem(session, turn)
	}
	return list
}
