package arrival

import (
	"math"

	"pitot/internal/say"
	"pitot/internal/workload/seed"
)

// curve is a Poisson process whose rate is a function of time, of straight pieces: due
// times are those of a process of rate 1, put through the inverse of the integral of the
// rate (Çinlar, Introduction to Stochastic Processes, 1975, section 4.7).
type curve struct {
	at         []float64 // seconds at which the pieces begin; the last is where the last one ends
	begin, end []float64 // rates of each piece, over that of the law
	again      bool      // it begins again behind the last; else the last rate goes on
}

func (c *curve) add(seconds, begin, end float64) {
	if len(c.at) == 0 {
		c.at = []float64{0}
	}
	c.at = append(c.at, c.at[len(c.at)-1]+seconds)
	c.begin, c.end = append(c.begin, begin), append(c.end, end)
}

// totalTime is the time of the pieces.
func (c *curve) totalTime() float64 { return c.at[len(c.at)-1] }

// pieceIntegral is the integral of the rate over a piece.
func (c *curve) pieceIntegral(i int) float64 {
	return (c.at[i+1] - c.at[i]) * (c.begin[i] + c.end[i]) / 2
}

// mean is that of the pieces.
func (c *curve) mean() float64 {
	sum := 0.0
	for i := range c.begin {
		sum += c.pieceIntegral(i)
	}
	return sum / c.totalTime()
}

// meanSquaredRate is the mean of the rate's square.
func (c *curve) meanSquaredRate() float64 {
	sum := 0.0
	for i, a := range c.begin {
		b := c.end[i]
		sum += float64((c.at[i+1] - c.at[i]) * (a*a + a*b + b*b) / 3)
	}
	return sum / c.totalTime()
}

// toMean makes the mean 1, so that the law has the rate that is asked for.
func (c *curve) toMean() {
	m := c.mean()
	for i := range c.begin {
		c.begin[i], c.end[i] = c.begin[i]/m, c.end[i]/m
	}
}

const (
	mostFactor = 1000
	sinePieces = 256
)

func parseStep(a *arguments) law {
	to, at := a.numberAt(0, "rate over the first", 0, mostFactor), a.secondsAt(1, "time of the step")
	c := &curve{}
	c.add(at, 1, 1)
	if len(a.list) < 3 {
		c.add(1, to, to)
		return c
	}
	back := a.secondsAt(2, "time of the step back")
	if back <= at {
		a.fail("the step back, at %s, is not behind the step", a.list[2])
	}
	c.add(back-at, to, to)
	c.add(1, 1, 1)
	return c
}

func parseRamp(a *arguments) law {
	from := a.numberAt(0, "rate at the beginning", 0, mostFactor)
	to := a.numberAt(1, "rate at the end", 0, mostFactor)
	span := a.secondsAt(2, "time of the ramp")
	if a.err == nil && from == 0 && to == 0 {
		a.fail("both rates are 0")
	}
	c := &curve{}
	c.add(span, from, to)
	return c
}

func parseSinusoid(a *arguments) law {
	part, period := a.numberAt(0, "part that the rate goes up and down by", 0.001, 1), a.secondsAt(1, "period")
	c := &curve{again: true}
	value := func(i int) float64 {
		return max(0, 1+float64(part*math.Sin(2*math.Pi*float64(i%sinePieces)/sinePieces)))
	}
	for i := range sinePieces {
		c.add(period/sinePieces, value(i), value(i+1))
	}
	return c
}

// dayShape is the rate in each hour of a day over the day's mean: of the 73 clients of
// deepseek-r1 in ServeGen (Apache-2.0; Xiang et al., arXiv 2505.09999), from where its
// trace begins.
var dayShape = [24]float64{
	1.21, 1.39, 2.03, 1.79, 1.06, 0.91, 0.75, 0.58, 0.60, 0.66, 0.81, 0.83,
	0.45, 0.54, 0.68, 0.70, 0.88, 0.55, 0.75, 0.59, 1.24, 1.62, 2.19, 1.18,
}

func parseDiurnal(a *arguments) law {
	day := a.secondsAt(0, "length of the day")
	c := &curve{again: true}
	for i := range dayShape {
		c.add(day/24, dayShape[i], dayShape[(i+1)%24])
	}
	c.toMean()
	return c
}

func parsePiecewise(a *arguments) law {
	if a.files.Rates == nil {
		a.fail(noFiles)
		return nil
	}
	times, rates, err := a.files.Rates(a.list[0])
	if err != nil {
		a.failWith(err)
		return nil
	}
	c := &curve{again: true}
	for i := range rates {
		c.add(times[i+1]-times[i], rates[i], rates[i])
	}
	if a.own = c.mean(); !(a.own >= MinRate && a.own <= MaxRate) {
		a.failWith(say.Errorf("the mean of the rates is %s", say.Exact(a.own)).
			WithHint("rates are requests per second"))
	}
	c.toMean()
	return c
}

func (c *curve) shape() Expected {
	e := Expected{Varies: true}
	top, last := 0.0, c.end[len(c.end)-1]
	for i := range c.begin {
		top = max(top, c.begin[i], c.end[i])
		if i > 0 && c.begin[i] != c.end[i-1] {
			e.Changes = append(e.Changes, c.at[i])
		}
	}
	if c.again {
		e.Cycle, e.Period, e.Peak = c.totalTime(), c.totalTime(), top/c.mean()
		e.Swing = c.meanSquaredRate()/(c.mean()*c.mean()) - 1
		if c.begin[0] != last {
			e.Changes = append([]float64{0}, e.Changes...)
		}
	}
	return e
}

// About its rate it is a Poisson process.
func (c *curve) cv(float64) float64               { return 1 }
func (c *curve) variance(rate, x float64) float64 { return rate * x }
func (c *curve) none(rate, x float64) float64     { return math.NaN() }

func (c *curve) process(rate float64, start uint64, from int64, _ bool) (Process, error) {
	return &varying{curve: c, rate: rate / 1e9, draws: seed.Rand(seed.Mix(start)), origin: from, before: true}, nil
}

// varying goes along a curve.
type varying struct {
	curve  *curve
	rate   float64 // per nanosecond
	draws  seed.Rand
	before bool // the curve has not begun
	at     instant
	origin int64 // ns, where the curve began, for the last time
	i      int   // piece
	into   float64
}

func (v *varying) Next() int64 {
	need := drawExponential(&v.draws)
	c := v.curve
	if v.before {
		r := c.begin[0] * v.rate
		if r > 0 {
			if due := v.at.addGap(need / r); due < v.origin {
				return due
			}
			need = (float64(v.at.whole-v.origin) + v.at.fraction) * r
		}
		v.before = false
	}
	for {
		if v.i == len(c.begin) {
			if !c.again {
				r := c.end[v.i-1] * v.rate
				if r == 0 {
					return math.MaxInt64
				}
				v.into += need / r
				return v.currentTime()
			}
			v.origin += int64(math.Round(c.totalTime() * 1e9))
			v.i, v.into = 0, 0
			if v.origin < 0 {
				v.origin = math.MaxInt64
			}
			if v.origin == math.MaxInt64 {
				return v.origin
			}
		}
		// Within the piece the rate is b + s·x, in ns since its begin.
		length := (c.at[v.i+1] - c.at[v.i]) * 1e9
		b, e := c.begin[v.i]*v.rate, c.end[v.i]*v.rate
		s := (e - b) / length
		now := b + float64(s*v.into)
		left := length - v.into
		has := float64(left * (now + e) / 2)
		if has >= need && has > 0 {
			// s/2·x² + now·x = need, in the form that loses nothing where s is small.
			x := 2 * need / (now + math.Sqrt(max(0, float64(now*now)+float64(2*s*need))))
			v.into += min(x, left)
			return v.currentTime()
		}
		need -= has
		if v.i++; v.i == len(c.begin) && !c.again {
			v.into = 0
			continue
		}
		v.into = 0
	}
}

// currentTime is the time that the curve has come to.
func (v *varying) currentTime() int64 {
	base := v.curve.at[min(v.i, len(v.curve.at)-1)] * 1e9
	if t := base + v.into; t < float64(math.MaxInt64-v.origin) {
		return v.origin + int64(t)
	}
	return math.MaxInt64
}
