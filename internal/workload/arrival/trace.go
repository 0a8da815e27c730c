package arrival

import (
	"math"
	"slices"
	"strings"

	"pitot/internal/say"
	"pitot/internal/workload/seed"
)

// trace is due times as they were recorded, again from the beginning at their end.
type trace struct {
	stamps []int64 // nanoseconds since the first
	own    float64 // rate at which they came, by --speed
	speed  float64
	spread int64 // nanoseconds that each stamp stands for, 0 for itself alone
}

func parseTrace(args []string, files Files) (law, float64, error) {
	a := arguments{list: args}
	a.want(1, 3)
	l := &trace{speed: 1}
	spread, auto := int64(0), false
	for i, option := range args {
		key, v, _ := strings.Cut(option, "=")
		switch {
		case i == 0:
		case key == "speed":
			l.speed = a.value(v, "speed", 1e-6, 1e6)
		case option == "spread":
			auto = true
		case key == "spread":
			spread = int64(a.span(v, "time that a stamp stands for") * 1e9)
		default:
			a.fail("unknown option %.20q", option)
		}
	}
	if a.err != nil {
		return nil, 0, a.err
	}
	if files.Times == nil {
		return nil, 0, say.Errorf("no file can be read here")
	}
	stamps, err := files.Times(args[0])
	if err != nil {
		return nil, 0, err
	}
	n := len(stamps)
	if n < 2 || stamps[n-1] == stamps[0] {
		return nil, 0, say.Errorf("%s has %s in it", args[0], say.Plural(n, "time")).WithHint("two different ones at least make a rate")
	}
	if auto {
		if spread = Rounding(stamps); spread == 0 {
			return nil, 0, say.Errorf("the stamps of %s are not rounded", args[0]).WithHint("leave spread out, or say what a stamp stands for: spread=1s")
		}
	}
	l.spread = spread
	l.stamps = make([]int64, n)
	for i, s := range stamps {
		l.stamps[i] = s - stamps[0]
	}
	l.own = float64(n-1) / float64(l.stamps[n-1]) * 1e9 * l.speed
	return l, l.own, nil
}

// Rounding is the step of stamps that are rounded, in nanoseconds, where most requests share
// their stamp with the one before: the gap that nearly all others are near, else the
// greatest time that all gaps are multiples of; 0 where they are not rounded.
func Rounding(stamps []int64) int64 {
	same, step := 0, int64(0)
	var gaps []int64
	for i := 1; i < len(stamps); i++ {
		gap := stamps[i] - stamps[i-1]
		if gap == 0 {
			same++
		} else {
			gaps = append(gaps, gap)
		}
		for a, b := gap, step; ; a, b = b%a, a {
			if a == 0 {
				step = b
				break
			}
		}
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
	return Expected{Varies: true, Cycle: 0, Period: l.length(), Peak: math.NaN()}
}

// length is the time after which it begins again, in seconds, with a mean gap behind the
// last.
func (l *trace) length() float64 { return float64(len(l.stamps)) / l.own }

// scaled is a stamp at a rate. At the trace's own it is the stamp itself.
func (l *trace) scaled(stamp int64, rate float64) int64 {
	by := l.own / rate / l.speed
	if by == 1 {
		return stamp
	}
	return int64(math.Round(float64(stamp) * by))
}

// What a trace is like is what was observed.
func (l *trace) seen(rate float64) Expected {
	due := make([]int64, len(l.stamps))
	for i, s := range l.stamps {
		due[i] = l.scaled(s, rate)
	}
	return Observed(due)
}

func (l *trace) cv(rate float64) float64      { return l.seen(rate).CV }
func (l *trace) none(rate, x float64) float64 { return math.NaN() }
func (l *trace) variance(rate, x float64) float64 {
	due := make([]int64, len(l.stamps))
	for i, s := range l.stamps {
		due[i] = l.scaled(s, rate)
	}
	return DispersionOf(due, x) * rate * x
}

func (l *trace) process(rate float64, start uint64, from int64, _ bool) (Process, error) {
	due := make([]int64, len(l.stamps))
	for i, s := range l.stamps {
		if l.spread > 0 {
			u := seed.Float(seed.At(start, streamSpread, uint64(i)))
			s += int64(u * float64(l.spread))
		}
		due[i] = l.scaled(s, rate)
	}
	slices.Sort(due)
	length := int64(math.Round(float64(len(due)) / rate * 1e9))
	p := &replayed{due: due, length: max(length, due[len(due)-1]), origin: from}
	if from > 0 { // before it begins, what comes at its end
		back := (from + p.length - 1) / p.length
		p.origin -= back * p.length
		for p.Peek() < 0 {
			p.Next()
		}
	}
	return p, nil
}

// replayed gives recorded times again and again.
type replayed struct {
	due            []int64
	length, origin int64
	i              int
}

// Peek is what Next will give.
func (p *replayed) Peek() int64 {
	if p.due[p.i] > math.MaxInt64-max(p.origin, 0) {
		return math.MaxInt64
	}
	return p.origin + p.due[p.i]
}

func (p *replayed) Next() int64 {
	due := p.Peek()
	if p.i++; p.i == len(p.due) {
		if p.i = 0; p.origin > math.MaxInt64-p.length {
			p.origin = math.MaxInt64
		} else {
			p.origin += p.length
		}
	}
	return due
}
