package workers

import "math"

// Offset estimates how far another process's clock is ahead of this one's, from round trips:
// the other clock was read at some time between the question and its answer, so each round
// trip says in which interval the offset was, half as wide as it took. Clocks drift apart
// steadily; so what is left, offset and drift together, is a polygon that every round trip
// cuts smaller (Duda et al., "Estimating global time in distributed systems", ICDCS 1987).
// Its extent at a time is the estimate, and a bound that holds as long as the drift is
// steady. The zero value knows nothing.
type Offset struct {
	begun   int64   // clock reading of the first round trip: times are seconds since then
	corners []point // of what is possible, empty before the first
	Steps   int     // how often a clock was stepped, as far as round trips show
}

// point is an offset in nanoseconds and a drift in nanoseconds per second.
type point struct{ offset, drift float64 }

// stepLimit is the deviation of a clock that was stepped, in nanoseconds. A change of drift is
// noticed sooner.
const stepLimit = 1e6

// mostDrift is the maximum drift of computers' oscillators, each of both: 500 parts in a million.
const mostDrift = 1e6

// Add takes in a round trip: it began and ended at readings of this clock, and the other
// one's was read in between.
func (o *Offset) Add(began, ended, other int64) {
	if ended < began {
		return
	}
	low, high := float64(other-ended), float64(other-began)
	if len(o.corners) > 0 {
		t := float64(began+(ended-began)/2-o.begun) / 1e9
		left := clipPolygon(clipPolygon(o.corners, 1, t, high), -1, -t, -low)
		if len(left) > 0 {
			o.corners = left
			return
		}
		// It left nothing: a clock was stepped, or begins to drift otherwise, which shows as
		// soon as it is seen.
		if lowest, highest := o.offsetRange(t); max(low-highest, lowest-high) > stepLimit {
			o.Steps++
		}
	}
	o.begun = began + (ended-began)/2
	o.corners = []point{{low, -mostDrift}, {high, -mostDrift}, {high, mostDrift}, {low, mostDrift}}
}

// clipPolygon leaves of a convex polygon what has a·offset + b·drift ≤ c.
func clipPolygon(corners []point, a, b, c float64) (left []point) {
	over := func(p point) float64 { return a*p.offset + b*p.drift - c }
	for i, p := range corners {
		q := corners[(i+1)%len(corners)]
		x, y := over(p), over(q)
		if x <= 0 {
			left = append(left, p)
		}
		if x < 0 && y > 0 || x > 0 && y < 0 {
			w := x / (x - y)
			left = append(left, point{p.offset + w*(q.offset-p.offset), p.drift + w*(q.drift-p.drift)})
		}
	}
	return left
}

// At returns the time by which the other clock is ahead at a reading of this one. It also returns
// the error bound; both are in nanoseconds. Nothing is known before the first round trip.
func (o *Offset) At(now int64) (ahead, bound int64, known bool) {
	if len(o.corners) == 0 {
		return 0, 0, false
	}
	low, high := o.offsetRange(float64(now-o.begun) / 1e9)
	return int64(math.Round((low + high) / 2)), int64(math.Ceil((high - low) / 2)), true
}

// offsetRange is between what the offset may be so many seconds after the first round trip.
func (o *Offset) offsetRange(t float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, p := range o.corners {
		x := p.offset + p.drift*t
		low, high = min(low, x), max(high, x)
	}
	return low, high
}
