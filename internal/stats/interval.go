package stats

// Interval is a range that is to hold the true value. Its level and its
// assumptions are those of the function that gives it.
type Interval struct{ Lo, Hi float64 }

// Contains says whether x lies in the interval, ends included.
func (v Interval) Contains(x float64) bool { return v.Lo <= x && x <= v.Hi }

// OneSided is the level of the two-sided interval, with equal tails, whose
// ends are each a one-sided limit at the given level: 0.9 for 0.95.
func OneSided(level float64) float64 { return 2*level - 1 }

// tailProbability is the probability left out at one end of a two-sided interval.
func tailProbability(level float64) float64 { return (1 - level) / 2 }
