package stats

import "math"

// IntervalOfDifference gives an interval of b − a from those of a and b, which
// are independent of each other and need not be symmetric (the method of
// variance estimates recovery: Zou and Donner, Statistics in Medicine 27,
// 2008). Its level is theirs.
func IntervalOfDifference(a, b float64, ofA, ofB Interval) Interval {
	d := b - a
	return Interval{
		Lo: d - math.Hypot(b-ofB.Lo, ofA.Hi-a),
		Hi: d + math.Hypot(ofB.Hi-b, a-ofA.Lo),
	}
}
