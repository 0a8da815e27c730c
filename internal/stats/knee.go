package stats

// Curvature is the way in which a rising curve bends.
type Curvature int

const (
	Concave Curvature = iota // rises ever slower: throughput over load
	Convex                   // rises ever faster: latency over load
)

// Kneedle gives the index of the knee of a rising curve (Satopää et al.,
// "Finding a 'Kneedle' in a Haystack", ICDCSW 2011). Both axes are scaled to
// [0, 1]; the curve's height over the diagonal (depth under it, if convex) has
// local maxima, and one of them is a knee if the height then falls by more
// than sensitivity·(mean step of x) before the next one: 1 is usual, 5
// conservative. Of several knees the one of greatest height counts. The result
// depends on the range of x: end it where the system is no longer stable.
//
// ok is false if there is no knee, fewer than three points, or an x that does
// not rise.
func Kneedle(xs, ys []float64, shape Curvature, sensitivity float64) (index int, ok bool) {
	n := len(xs)
	if n < 3 || len(ys) != n {
		return 0, false
	}
	lowest, highest := ys[0], ys[0]
	for i := range ys {
		if i > 0 && !(xs[i] > xs[i-1]) {
			return 0, false
		}
		lowest, highest = min(lowest, ys[i]), max(highest, ys[i])
	}
	if !(highest > lowest) {
		return 0, false
	}
	height := make([]float64, n)
	for i := range height {
		height[i] = (ys[i]-lowest)/(highest-lowest) - (xs[i]-xs[0])/(xs[n-1]-xs[0])
		if shape == Convex {
			height[i] = -height[i]
		}
	}
	fall := sensitivity / float64(n-1)
	for i := 1; i < n-1; i++ {
		peak := height[i] >= height[i-1] && height[i] > height[i+1]
		if peak && fallsBy(height[i:], fall) && (!ok || height[i] > height[index]) {
			index, ok = i, true
		}
	}
	return index, ok
}

// fallsBy says whether heights sink by more than fall below the first before
// they reach their next local maximum.
func fallsBy(heights []float64, fall float64) bool {
	for i := 1; i < len(heights); i++ {
		if heights[i] < heights[0]-fall {
			return true
		}
		if i+1 < len(heights) && heights[i] > heights[i-1] && heights[i] >= heights[i+1] {
			return false
		}
	}
	return false
}

// PowerKnee gives the index of the greatest power, throughput ÷ latency
// (Kleinrock, "Power and Deterministic Rules of Thumb for Probabilistic
// Problems in Computer Communications", ICC 1979). ok is false without points
// of positive throughput and latency.
func PowerKnee(throughput, latency []float64) (index int, ok bool) {
	var greatest float64
	for i := range min(len(throughput), len(latency)) {
		if power := throughput[i] / latency[i]; latency[i] > 0 && power > greatest {
			greatest, index, ok = power, i, true
		}
	}
	return index, ok
}
