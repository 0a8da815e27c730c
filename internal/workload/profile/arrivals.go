package profile

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"pitot/internal/say"
	"pitot/internal/stats"
	"pitot/internal/workload/arrival"
	"pitot/internal/workload/seed"
)

// How near a law of the grammar has to come to be taken for the one of a log.
const (
	nearDistance   = 0.02
	nearDispersion = 0.10
)

// arrivalOf tells how times came, in nanoseconds and in order: by a law of the grammar where
// one is near, else by sums (see [arrival.Cascade]). nil where all came at once.
func arrivalOf(times []int64, least int) (*Arrival, error) {
	due, rounded := SpreadTimes(times)
	e := arrival.ObserveTimes(due)
	if math.IsNaN(e.Rate) || !(e.Rate >= arrival.MinRate && e.Rate <= arrival.MaxRate) {
		return nil, nil
	}
	a := &Arrival{Rate: roundDigits(e.Rate, 6), CV: roundDigits(e.CV, 4), Rounded: rounded}
	for i, d := range e.Dispersion {
		if !math.IsNaN(d) {
			a.Dispersion[i] = roundDigits(d, 4)
		}
	}
	if a.Law, a.Steady = nearestLaw(due, e); a.Law != "" {
		a.Steady = ""
	} else if c, ok := arrival.NewCascade(due, least); ok {
		a.Cascade, e.Rate = c, c.MeanRate()
	} else { // so few that nothing more is told of them
		a.Law, a.Steady = "poisson", ""
	}
	l, err := a.newLaw()
	if err != nil {
		return nil, err
	}
	a.Distance = roundDigits(gapDistance(l, e.Rate, due), 3)
	return a, nil
}

func roundDigits(x float64, digits int) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return arrival.RoundDigits(x, digits)
}

// spreadRounded lets each time come anywhere in what its stamp stands for, where stamps are
// rounded, and says to how many seconds.
func spreadRounded(due []int64) float64 {
	step := arrival.StampRounding(due)
	if step == 0 {
		for _, at := range due { // the greatest time that all are multiples of
			step = arrival.GreatestDivisor(at, step)
		}
		if step < 1e6 || step == due[len(due)-1] {
			return 0
		}
	}
	for i := range due {
		due[i] += int64(seed.Float(seed.At(spreadSeed, 0, uint64(i))) * float64(step))
	}
	slices.Sort(due)
	first := due[0]
	for i := range due {
		due[i] -= first
	}
	return float64(step) / 1e9
}

// SpreadTimes returns the times of a log from its first on, in order and spread where they are
// rounded, and to how many seconds they are.
func SpreadTimes(times []int64) (due []int64, rounded float64) {
	due = slices.Clone(times)
	slices.Sort(due)
	for i, first := len(due)-1, due[0]; i >= 0; i-- {
		due[i] -= first
	}
	return due, spreadRounded(due)
}

const spreadSeed = 0x3c6ef372fe94f82b // of no run

// nearestLaw looks for a law of the grammar. law is one that is near enough, "" for none; steady
// is the nearest by dispersion.
func nearestLaw(due []int64, e arrival.Expected) (law, steady string) {
	type candidate struct {
		text string
		off  float64
	}
	off := func(text string) float64 {
		l, err := arrival.ParseLaw(text, arrival.Files{})
		if err != nil {
			return math.Inf(1)
		}
		if _, err := l.NewProcess(e.Rate, 1, 0); err != nil {
			return math.Inf(1)
		}
		sum := 0.0
		for i, d := range l.ExpectedDispersion(e.Rate) {
			if !math.IsNaN(e.Dispersion[i]) && e.Dispersion[i] > 0 {
				sum = max(sum, math.Abs(math.Log(max(d, 1e-3)/e.Dispersion[i])))
			}
		}
		return sum
	}
	list := []candidate{{text: "poisson"}}
	if e.CV < 0.02 {
		list = append(list, candidate{text: "constant"})
	}
	if k := 1 / (e.CV * e.CV); k >= arrival.MinShape && k <= arrival.MaxShape {
		list = append(list, candidate{text: "gamma(" + say.Exact(roundDigits(k, 3)) + ")"})
	}
	for i := range list {
		list[i].off = off(list[i].text)
		if list[i].text == "constant" {
			list[i].off = 0
		}
	}
	if text := fitModulated(off, due, e); text != "" {
		list = append(list, candidate{text, off(text)})
	}
	best := slices.MinFunc(list, func(a, b candidate) int { return cmp.Compare(a.off, b.off) })
	for _, c := range list {
		if c.off > math.Log(1+nearDispersion) {
			continue
		}
		l, err := arrival.ParseLaw(c.text, arrival.Files{})
		if err == nil && gapDistance(l, e.Rate, due) < nearDistance && resemblesLog(l, e, len(due)) {
			return c.text, c.text
		}
	}
	return "", best.text
}

// resemblesLog says whether what a law makes of as many times is like the log not in the mean
// alone: of a short log a law has too much chance for that, and sums tell more.
func resemblesLog(l *arrival.Law, e arrival.Expected, n int) bool {
	const replays = 5
	var squares [3]float64
	for k := range replays {
		p, err := l.NewProcess(e.Rate, uint64(k), 0)
		if err != nil {
			return false
		}
		due := make([]int64, min(n, mostCompared))
		for i := range due {
			due[i] = p.Next()
		}
		for i, d := range arrival.ObserveTimes(due).Dispersion {
			if x := math.Log(max(d, 1e-3) / max(e.Dispersion[i], 1e-3)); !math.IsNaN(x) {
				squares[i] += x * x / replays
			}
		}
	}
	for _, s := range squares {
		if math.Sqrt(s) > math.Log(1+nearDispersion) {
			return false
		}
	}
	return true
}

// fitModulated looks for a Poisson process of two rates with these dispersions, by going
// along one number after the other with ever smaller steps.
func fitModulated(off func(string) float64, due []int64, e arrival.Expected) string {
	if !(e.Dispersion[0] > 1.05) && !(e.Dispersion[1] > 1.05) && !(e.Dispersion[2] > 1.05) {
		return ""
	}
	longest := float64(due[len(due)-1]) / 1e9
	text := func(x [3]float64) string {
		d := func(s float64) string {
			return time.Duration(min(max(s, 0.001), max(longest, 0.002)) * 1e9).Round(time.Millisecond).String()
		}
		return fmt.Sprintf("mmpp(1:%s,%s:%s)", d(math.Exp(x[1])), say.Exact(roundDigits(math.Exp(x[0]), 3)), d(math.Exp(x[2])))
	}
	best, at, found := math.Inf(1), [3]float64{}, false
	for _, ratio := range []float64{3, 30} {
		for _, low := range []float64{2, 20, 200} {
			for _, high := range []float64{0.3, 3, 30} {
				x := [3]float64{math.Log(ratio), math.Log(low), math.Log(high)}
				if o := off(text(x)); o < best {
					best, at, found = o, x, true
				}
			}
		}
	}
	for step := 0.8; step > 0.02 && found; step /= 2 {
		for moved, tries := true, 0; moved && tries < 6; tries++ {
			moved = false
			for i := range at {
				for _, by := range []float64{-step, step} {
					x := at
					x[i] += by
					if o := off(text(x)); o < best {
						best, at, moved = o, x, true
					}
				}
			}
		}
	}
	if !found {
		return ""
	}
	return text(at)
}

// mostCompared is the largest number of gaps that are drawn from a law to compare it.
const mostCompared = 1 << 17

// gapDistance is Kolmogorov and Smirnov's of a law's gaps from those that were.
func gapDistance(l *arrival.Law, rate float64, due []int64) float64 {
	p, err := l.NewProcess(rate, 7, 0)
	if err != nil {
		return 1
	}
	made := make([]int64, max(min(len(due), mostCompared), 1<<15))
	for i := range made {
		made[i] = p.Next()
	}
	return GapDistance(due, made)
}

// GapDistance is Kolmogorov and Smirnov's distance of the gaps of two lists of times.
func GapDistance(a, b []int64) float64 {
	gaps := func(due []int64) []int64 {
		out := make([]int64, 0, len(due))
		for i := 1; i < len(due); i++ {
			out = append(out, due[i]-due[i-1])
		}
		slices.Sort(out)
		return out
	}
	x, y := gaps(a), gaps(b)
	if len(x) == 0 || len(y) == 0 {
		return 1
	}
	return stats.KSDistance(x, y)
}
