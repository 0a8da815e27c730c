package capacity

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// LoadsConfig says which loads a curve is drawn from.
type LoadsConfig struct {
	Given     []float64 // these alone; none: chosen
	Points    int       // how many are chosen
	Repeat    int       // how often each is measured; 0 is once
	Closed    bool      // loads are whole numbers of users
	MaxLoad   float64   // no load above it, 0 for no limit
	Residence float64   // seconds, about how long a request alone takes
	Seed      uint64    // of the random orders
	Step      float64   // each of the first loads is this many times the last; 0 is 2
}

// step returns the factor between the first loads.
func (c *LoadsConfig) step() float64 {
	if c.Step > 1 {
		return c.Step
	}
	return 2
}

const (
	// A load is past the knee when less than this share of the requests asked
	// for is served, or twice the users get less than so much more out of it.
	servedShare = 0.9
	leastGain   = 1.1
	// or when requests take so many times as long as one at a time.
	slowed = 10

	maxSteps = 24 // doublings
)

// Loads chooses the loads of a curve one after the other. They double from one
// request at a time until they are past the knee. Where the curve bends most
// between two of them the rest is put, in one go and in random order, so that a
// drift of the target does not look like an effect of the load.
type Loads struct {
	cfg   LoadsConfig
	queue []float64 // fixed, not measured yet
	fixed bool      // nothing more is chosen

	inTime func(load float64, seen []CurvePoint) bool // whether there is time for a load; nil is always
}

// NewLoads begins a curve.
func NewLoads(cfg LoadsConfig) *Loads {
	l := &Loads{cfg: cfg}
	if len(cfg.Given) > 0 {
		l.orderLoads(cfg.Given, cfg.Given)
	}
	return l
}

// Next gives the load to measure after those seen; false when there is none.
func (l *Loads) Next(seen []CurvePoint) (load float64, ok bool) {
	if !l.fixed {
		if next, up := l.nextDoubling(seen); up && l.fits(next, seen) {
			return next, true
		}
		between := l.addBetween(seen)
		all := slices.Clone(between)
		for _, p := range seen {
			all = append(all, p.Load)
		}
		l.orderLoads(between, all)
	}
	for len(l.queue) > 0 {
		load, l.queue = l.queue[0], l.queue[1:]
		if l.fits(load, seen) {
			return load, true
		}
	}
	return 0, false
}

func (l *Loads) fits(load float64, seen []CurvePoint) bool {
	return len(seen) == 0 || l.inTime == nil || l.inTime(load, seen)
}

// FitUsers leaves out numbers of users for which there is no time: left returns what is left. Requests
// take about as long as the users divided by the highest throughput seen. A load takes two
// of them until it is steady, and two more at its ends.
func (l *Loads) FitUsers(window time.Duration, left func() time.Duration) {
	l.inTime = func(users float64, seen []CurvePoint) bool {
		most := 0.
		for _, p := range seen {
			most = max(most, p.RequestsPerS)
		}
		return most == 0 || window.Seconds()+4*users/most <= left().Seconds()
	}
}

// Left returns how many loads [Loads.Next] is still to give at most, after those seen.
func (l *Loads) Left(seen int) int {
	if l.fixed {
		return len(l.queue)
	}
	return max(1, l.cfg.Points*max(1, l.cfg.Repeat)-seen)
}

// orderLoads puts loads in random order and chooses no more. Behind them each of all
// comes again, as often as loads are repeated, in an order of its own each time.
func (l *Loads) orderLoads(loads, all []float64) {
	rng := rand.New(rand.NewPCG(l.cfg.Seed, 0x6c6f616473))
	for r := range max(1, l.cfg.Repeat) {
		if r > 0 {
			loads = all
		}
		loads = slices.Clone(loads)
		rng.Shuffle(len(loads), func(i, j int) { loads[i], loads[j] = loads[j], loads[i] })
		l.queue = append(l.queue, loads...)
	}
	l.fixed = true
}

// nextDoubling gives the next of the doubling loads; false once they are past the knee.
func (l *Loads) nextDoubling(seen []CurvePoint) (float64, bool) {
	if len(seen) == 0 {
		first := 1.0
		if !l.cfg.Closed {
			first = 1 / l.cfg.Residence
		}
		return l.allowedLoad(first), true
	}
	last := seen[len(seen)-1]
	next := l.allowedLoad(l.cfg.step() * last.Load)
	if l.isPastKnee(seen) || next <= last.Load || len(seen) >= min(maxSteps, l.cfg.Points) {
		return 0, false
	}
	return next, true
}

func (l *Loads) allowedLoad(load float64) float64 {
	if l.cfg.Closed {
		load = max(1, math.Round(load))
	} else {
		load = roundDigits(load)
	}
	if l.cfg.MaxLoad > 0 {
		load = min(load, l.cfg.MaxLoad)
	}
	return load
}

// roundDigits is a load to three digits: what is chosen is no more exact than that, and
// is read and typed again.
func roundDigits(load float64) float64 {
	x, _ := strconv.ParseFloat(strconv.FormatFloat(load, 'g', 3, 64), 64) // a number, as it was written
	return x
}

// tidyBelow is the greatest such load that is not above one.
func tidyBelow(load float64) float64 {
	x := roundDigits(load)
	if x > load {
		x = roundDigits(x - math.Pow(10, math.Floor(math.Log10(load))-2))
	}
	return x
}

// isPastKnee says that the last load is past the knee.
func (l *Loads) isPastKnee(seen []CurvePoint) bool {
	last := seen[len(seen)-1]
	for _, first := range seen { // the lightest whose latency is known
		if first.E2E > 0 {
			if last.E2E > slowed*first.E2E {
				return true
			}
			break
		}
	}
	if last.IsUnstable() || last.Failing {
		return true
	}
	if !l.cfg.Closed {
		return last.IsBehind()
	}
	return len(seen) > 1 && last.RequestsPerS < math.Pow(leastGain, math.Log2(l.cfg.step()))*seen[len(seen)-2].RequestsPerS
}

// demandRatio returns the excess of the requested load over the served one, in a closed loop up to
// a factor. It returns 0 where that is not known.
func (l *Loads) demandRatio(p *CurvePoint) float64 {
	switch {
	case p.RequestsPerS <= 0:
		return 0
	case l.cfg.Closed:
		return p.Load / p.RequestsPerS
	case !p.IsBehind():
		return 1
	}
	return p.Offered / p.RequestsPerS
}

// addBetween puts the loads that are left where the curve bends most: again and
// again in the middle of the neighbours between which latency rises most and
// throughput falls most behind the load.
func (l *Loads) addBetween(seen []CurvePoint) []float64 {
	points := byLoad(seen)
	if len(points) < 2 {
		return nil
	}
	type gap struct{ lo, hi, bend float64 }
	var gaps []gap
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		if a.IsUnstable() || a.Failing || !l.cfg.Closed && a.IsBehind() {
			break // of loads that are too high one is enough
		}
		width := math.Log(b.Load / a.Load)
		bend := width / 10 // of a straight curve
		switch {
		case b.IsUnstable(): // it has no latency and falls behind as one likes: somewhere between the two it bends
			bend += width
		case a.E2E > 0 && b.E2E > 0:
			bend += min(math.Abs(math.Log(b.E2E/a.E2E)), 2*width)
		}
		if x, y := l.demandRatio(&a), l.demandRatio(&b); x > 0 && y > 0 && !b.IsUnstable() {
			bend += math.Abs(math.Log(y / x))
		}
		gaps = append(gaps, gap{a.Load, b.Load, bend})
	}
	var loads []float64
	for left := l.cfg.Points - len(points); left > 0 && len(gaps) > 0; {
		i := 0
		for k := range gaps {
			if gaps[k].bend > gaps[i].bend {
				i = k
			}
		}
		g := gaps[i]
		middle := l.allowedLoad(math.Sqrt(g.lo * g.hi))
		if middle <= g.lo || middle >= g.hi { // users are whole
			gaps = slices.Delete(gaps, i, i+1)
			continue
		}
		gaps[i] = gap{g.lo, middle, g.bend / 2}
		gaps = append(gaps, gap{middle, g.hi, g.bend / 2})
		loads = append(loads, middle)
		left--
	}
	return loads
}
