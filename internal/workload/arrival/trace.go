package arrival

import (
	"container/heap"
	"math"
	"slices"
	"sort"
	"strings"

	"pitot/internal/say"
	"pitot/internal/workload/seed"
)

// Stamps are recorded times in nanoseconds, in order: not all of them need to be in memory.
type Stamps interface {
	Len() int64
	Times(to []int64, from int64) // those from the from-th on, as many as fit
}

// StampList is stamps in memory.
type StampList []int64

// Len returns the number of stamps.
func (l StampList) Len() int64 { return int64(len(l)) }

// Times implements [Stamps].
func (l StampList) Times(to []int64, from int64) { copy(to, l[from:]) }

// mostLooked is of how many stamps it is worked out what a trace is like.
const mostLooked = 1 << 20

// trace is due times as they were recorded, again from the beginning at their end.
type trace struct {
	stamps      Stamps
	n           int64
	begin, last int64   // the first and the last
	look        []int64 // the first of them, since the first
	own         float64 // rate at which they came, by --speed
	speed       float64
	spread      int64 // nanoseconds that each stamp stands for, 0 for itself alone
}

func parseTrace(a *arguments) law {
	l, name, auto := &trace{speed: 1}, a.list[0], false
	for _, option := range a.list[1:] {
		key, v, _ := strings.Cut(option, "=")
		switch {
		case key == "speed":
			l.speed = a.value(v, "speed", 1e-6, 1e6)
		case option == "spread":
			auto = true
		case key == "spread":
			l.spread = int64(a.parseSpan(v, "time that a stamp covers") * 1e9)
		default:
			a.fail("unknown option %.20q", option)
		}
	}
	if a.files.Times == nil {
		a.fail(noFiles)
	}
	if a.err != nil {
		return nil
	}
	if l.stamps, a.err = a.files.Times(name); a.err != nil {
		return nil
	}
	if l.n = l.stamps.Len(); l.n > 0 {
		l.begin, l.last = l.stampAt(0), l.stampAt(l.n-1)
	}
	if l.n < 2 || l.last == l.begin {
		a.failWith(say.Errorf("%s has %s in it", name, say.Plural(int(l.n), "time")).
			WithHint("two different ones at least make a rate"))
		return nil
	}
	l.look = make([]int64, min(l.n, mostLooked))
	l.stamps.Times(l.look, 0)
	for i := range l.look {
		l.look[i] -= l.begin
	}
	if auto {
		if l.spread = StampRounding(l.look); l.spread == 0 {
			a.failWith(say.Errorf("the stamps of %s are not rounded", name).
				WithHint("leave spread out, or say what time a stamp covers: spread=1s"))
		}
	}
	l.own = float64(l.n-1) / float64(l.last-l.begin) * 1e9 * l.speed
	a.own = l.own
	return l
}

// stampAt is the i-th.
func (l *trace) stampAt(i int64) int64 {
	var one [1]int64
	l.stamps.Times(one[:], i)
	return one[0]
}

// GreatestDivisor is the greatest number that two are multiples of; 0 has any.
func GreatestDivisor(a, b int64) int64 {
	for a != 0 {
		a, b = b%a, a
	}
	return b
}

// StampRounding is the step of stamps that are rounded, in nanoseconds, where most requests share
// their stamp with the one before: the gap that nearly all others are near, else the
// greatest time that all gaps are multiples of; 0 where they are not rounded.
func StampRounding(stamps []int64) int64 {
	same, step := 0, int64(0)
	var gaps []int64
	for i := 1; i < len(stamps); i++ {
		gap := stamps[i] - stamps[i-1]
		if gap == 0 {
			same++
		} else {
			gaps = append(gaps, gap)
		}
		step = GreatestDivisor(gap, step)
	}
	if 2*same < len(stamps) || len(gaps) == 0 {
		return 0
	}
	slices.Sort(gaps)
	median := gaps[len(gaps)/2]
	low, _ := slices.BinarySearch(gaps, median-median/20)
	high, _ := slices.BinarySearch(gaps, median+median/20+1)
	if 10*(high-low) >= 8*len(gaps) {
		step = max(step, median)
	}
	if step < 1e6 {
		return 0
	}
	return step
}

func (l *trace) shape() Expected {
	return Expected{Varies: true, Cycle: 0, Period: l.cycleSeconds(), Peak: math.NaN()}
}

// cycleSeconds is the time after which it begins again, in seconds, with a mean gap behind the
// last.
func (l *trace) cycleSeconds() float64 { return float64(l.n) / l.own }

// scaleStamp is a stamp at a rate. At the trace's own it is the stamp itself.
func (l *trace) scaleStamp(stamp int64, rate float64) int64 {
	by := l.own / rate / l.speed
	if by == 1 {
		return stamp
	}
	return int64(math.Round(float64(stamp) * by))
}

func (l *trace) sampleTimes(rate float64) []int64 {
	due := make([]int64, len(l.look))
	for i, s := range l.look {
		due[i] = l.scaleStamp(s, rate)
	}
	return due
}

func (l *trace) cv(rate float64) float64   { return ObserveTimes(l.sampleTimes(rate)).CV }
func (l *trace) none(_, _ float64) float64 { return math.NaN() }
func (l *trace) variance(rate, x float64) float64 {
	return DispersionOf(l.sampleTimes(rate), x) * rate * x
}

func (l *trace) process(rate float64, start uint64, from int64, _ bool) (Process, error) {
	p := &replayed{trace: l, rate: rate, start: start, origin: from}
	end := l.scaleStamp(l.last-l.begin, rate)
	if l.spread > 0 { // the latest is among those that stand for a time with the last
		for i := l.n - 1; i >= 0; i-- {
			s := l.stampAt(i) - l.begin
			if s+l.spread < l.last-l.begin {
				break
			}
			end = max(end, p.dueOf(s, i))
		}
	}
	p.length = max(int64(math.Round(float64(l.n)/rate*1e9)), end)
	if from > 0 { // before it begins, what comes at its end
		back := (from + p.length - 1) / p.length
		p.origin -= back * p.length
		// Those that are due before the load begins are stepped over; of spread ones those
		// that may be due within it are looked at one by one.
		p.next = int64(sort.Search(int(l.n), func(i int) bool {
			return p.origin+l.scaleStamp(l.stampAt(int64(i))-l.begin+l.spread, rate) >= 0
		}))
		p.row = p.next
		if p.next == l.n {
			p.startOver()
		}
		for p.Peek() < 0 {
			p.Next()
		}
	}
	return p, nil
}

// replayed gives recorded times again and again.
type replayed struct {
	trace          *trace
	rate           float64
	start          uint64
	length, origin int64
	next           int64   // of the stamps that are read
	row            int64   // that is given next
	read           []int64 // stamps from next on
	due            dues    // of those that were read and not given: the least on top
}

const stampsRead = 1024

// dueOf is when the i-th is due, whose stamp is s since the first.
func (p *replayed) dueOf(s, i int64) int64 {
	if p.trace.spread > 0 {
		u := seed.Float(seed.At(p.start, streamSpread, uint64(i)))
		s += int64(u * float64(p.trace.spread))
	}
	return p.trace.scaleStamp(s, p.rate)
}

// readAhead reads until what is due first is known: no stamp behind has an earlier time.
func (p *replayed) readAhead() {
	for p.next < p.trace.n {
		if len(p.read) == 0 {
			p.read = slices.Grow(p.read[:0], stampsRead)[:min(stampsRead, p.trace.n-p.next)]
			p.trace.stamps.Times(p.read, p.next)
		}
		s := p.read[0] - p.trace.begin
		if len(p.due) > 0 && p.trace.scaleStamp(s, p.rate) >= p.due[0] {
			return
		}
		heap.Push(&p.due, p.dueOf(s, p.next))
		p.read, p.next = p.read[1:], p.next+1
	}
}

// startOver begins from the beginning.
func (p *replayed) startOver() {
	p.next, p.row, p.read = 0, 0, nil
	if p.origin > math.MaxInt64-p.length {
		p.origin = math.MaxInt64
	} else {
		p.origin += p.length
	}
}

// Row is which of the stamps, in order, is given next.
func (p *replayed) Row() int64 { return p.row }

// Peek returns what Next will give.
func (p *replayed) Peek() int64 {
	p.readAhead()
	if p.due[0] > math.MaxInt64-max(p.origin, 0) {
		return math.MaxInt64
	}
	return p.origin + p.due[0]
}

func (p *replayed) Next() int64 {
	due := p.Peek()
	heap.Pop(&p.due)
	if p.row++; p.row == p.trace.n {
		p.startOver()
	}
	return due
}

// dues is a heap of times.
type dues []int64

func (d dues) Len() int           { return len(d) }
func (d dues) Less(i, k int) bool { return d[i] < d[k] }
func (d dues) Swap(i, k int)      { d[i], d[k] = d[k], d[i] }

// Push implements [heap.Interface].
func (d *dues) Push(x any) { *d = append(*d, x.(int64)) }

// Pop implements [heap.Interface].
func (d *dues) Pop() any {
	last := len(*d) - 1
	x := (*d)[last]
	*d = (*d)[:last]
	return x
}
