package arrival

import "math"

// What laws make one expect. A stationary law is told by two functions: that nobody comes
// within x of any time (the survival of the forward recurrence time), and the variance of
// how many do. Gaps as they come have, by Palm's inversion, E[X²] = 2·E[X]·∫none: it holds
// for renewal processes, for modulated ones, and for sums of these (Daley and Vere-Jones,
// An Introduction to the Theory of Point Processes, 2003, section 3.4).

// expectedOf puts together what is expected of a law.
func expectedOf(l law, rate float64) Expected {
	e := l.shape()
	e.Rate, e.CV = rate, l.cv(rate)
	e.Dispersion = lawDispersion(l, rate)
	return e
}

func lawDispersion(l law, rate float64) (d [3]float64) {
	for i, t := range Scales {
		d[i] = l.variance(rate, t) / (rate * t)
	}
	return d
}

// cvOf is the coefficient of variation of a law's gaps by its none, integrated by
// Simpson's rule over ln x, as gaps spread over orders of magnitude.
func cvOf(l law, rate float64) float64 {
	const steps = 1200
	low, high := math.Log(1e-7/rate), math.Log(1e5/rate)
	h := (high - low) / steps
	sum := math.Exp(low) // below the lowest none is 1
	for i := range steps + 1 {
		x := math.Exp(low + float64(i)*h)
		w := 2.0
		switch {
		case i == 0 || i == steps:
			w = 1
		case i%2 == 1:
			w = 4
		}
		n := l.none(rate, x)
		if n < 1e-14 {
			break
		}
		sum += w * h / 3 * n * x
	}
	return math.Sqrt(max(0, 2*rate*sum-1))
}

// ObserveTimes returns the statistics of given due times: nanoseconds, in order. A statistic is NaN
// where there are too few times for it.
func ObserveTimes(due []int64) Expected {
	e := Expected{Rate: math.NaN(), CV: math.NaN(), Dispersion: [3]float64{math.NaN(), math.NaN(), math.NaN()}}
	n := len(due)
	if n < 2 || due[n-1] <= due[0] {
		return e
	}
	span := float64(due[n-1] - due[0])
	mean := span / float64(n-1)
	e.Rate = 1e9 / mean
	squares := 0.0
	for i := 1; i < n; i++ {
		d := float64(due[i]-due[i-1]) - mean
		squares += d * d
	}
	e.CV = math.Sqrt(squares/float64(n-1)) / mean
	for i, t := range Scales {
		e.Dispersion[i] = DispersionOf(due, t)
	}
	return e
}

// DispersionOf is the variance over the mean of how many come in windows of so many
// seconds, NaN with fewer than five windows.
func DispersionOf(due []int64, seconds float64) float64 {
	width := int64(seconds * 1e9)
	if len(due) < 2 {
		return math.NaN()
	}
	windows := (due[len(due)-1] - due[0]) / width
	if windows < 5 {
		return math.NaN()
	}
	// Windows without a request are counted, not kept: a trace may be long.
	var sum, squares float64
	for i := 0; i < len(due); {
		w := (due[i] - due[0]) / width
		if w >= windows {
			break
		}
		k := i
		for k < len(due) && (due[k]-due[0])/width == w {
			k++
		}
		c := float64(k - i)
		sum, squares, i = sum+c, squares+c*c, k
	}
	n := float64(windows)
	mean := sum / n
	return (squares/n - mean*mean) * n / (n - 1) / mean
}
